"""Commands, one file each: parse, call, show. They are listed in the order of work."""

from headroles.cli.app import app, main

from headroles.cli import classify, score, assign, best, describe, examples  # isort: skip
from headroles.cli import compare, replicate, power, collaborate, export, models, demo  # isort: skip

__all__ = [
    "app",
    "assign",
    "best",
    "classify",
    "collaborate",
    "compare",
    "demo",
    "describe",
    "examples",
    "export",
    "main",
    "models",
    "power",
    "replicate",
    "score",
]
