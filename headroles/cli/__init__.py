"""Commands: parse, call, show. They are listed in the order of work."""

from headroles.cli.app import app, main
from headroles.cli.studies import add_commands

add_commands()

from headroles.cli import results, about  # noqa: E402, isort: skip

__all__ = ["about", "app", "main", "results"]
