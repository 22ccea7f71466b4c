"""Commands, one file each: parse, call, show. They are listed in the order of work."""

from headroles.cli.app import app, main

from headroles.cli import classify, score, merge, assign, best, describe  # isort: skip
from headroles.cli import examples, tokens  # isort: skip
from headroles.cli import compare, replicate, power, importance, ablate, by_role  # isort: skip
from headroles.cli import by_task, pruning_curves, prune, gate, collaborate  # isort: skip
from headroles.cli import report, export, models, demo  # isort: skip

__all__ = [
    "ablate",
    "app",
    "assign",
    "best",
    "by_role",
    "by_task",
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
    "merge",
    "models",
    "power",
    "prune",
    "pruning_curves",
    "replicate",
    "report",
    "score",
    "tokens",
]
