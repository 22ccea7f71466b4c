"""Commands, one file each: parse, call, show. They are listed in the order of work."""

from headroles.cli import (
    assign,
    best,
    classify,
    compare,
    demo,
    describe,
    export,
    models,
    power,
    score,
)  # isort: skip
from headroles.cli.app import app, main

__all__ = [
    "app",
    "assign",
    "best",
    "classify",
    "compare",
    "demo",
    "describe",
    "export",
    "main",
    "models",
    "power",
    "score",
]
