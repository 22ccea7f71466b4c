"""Commands, one file each: parse, call, show. They are listed in the order of work."""

from headroles.cli.app import app, main

from headroles.cli import classify, score, assign, compare, replicate, power, export, models, demo  # isort: skip

__all__ = [
    "app",
    "assign",
    "classify",
    "compare",
    "demo",
    "export",
    "main",
    "models",
    "power",
    "replicate",
    "score",
]
