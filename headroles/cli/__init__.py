"""Commands: parse, call, show."""

from headroles.cli.app import app, main

__all__ = ["app", "main"]
