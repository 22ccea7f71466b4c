"""Commands: parse, call, show. They are listed in the order of work."""

from headroles.cli.app import app, main
from headroles.cli.studies import add_commands

add_commands()

from headroles.cli import report, figure, export, models, info, demo  # noqa: E402, isort: skip

__all__ = ["app", "demo", "export", "figure", "info", "main", "models", "report"]
