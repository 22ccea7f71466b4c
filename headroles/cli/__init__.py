"""Commands, one file each: parse, call, show. They are listed in the order of work."""

from headroles.cli.app import app, main

from headroles.cli import classify, score, assign, compare, power  # isort: skip
from headroles.cli import importance, ablate, by_role, prune  # isort: skip
from headroles.cli import export, models, demo  # isort: skip

__all__ = [
    "ablate",
    "app",
    "assign",
    "by_role",
    "classify",
    "compare",
    "demo",
    "export",
    "importance",
    "main",
    "models",
    "power",
    "prune",
    "score",
]
