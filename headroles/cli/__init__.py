"""Commands, one file each: parse, call, show. They are listed in the order of work."""

from headroles.cli.app import app, main

from headroles.cli import classify, score, assign, best, describe, examples, tokens  # isort: skip
from headroles.cli import compare, replicate, power, importance, ablate, by_role  # isort: skip
from headroles.cli import prune, gate, collaborate, report, export, models, demo  # isort: skip

__all__ = [
    "ablate",
    "app",
    "assign",
    "best",
    "by_role",
    "classify",
    "collaborate",
    "compare",
    "demo",
    "describe",
    "examples",
    "export",
    "gate",
    "importance",
    "main",
    "models",
    "power",
    "prune",
    "replicate",
    "report",
    "score",
    "tokens",
]
