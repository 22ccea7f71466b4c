"""The ``headroles`` command. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from headroles.cli import console
from headroles.memory import ask_for_large_pages, collect_rarely

app = typer.Typer(
    name="headroles",
    help="What the attention heads of a BERT-style encoder do, tested for every head and role.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"headroles {version('headroles')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the ``headroles`` command, after `headroles.__main__` has set signals up."""
    console.accept_any_text()
    ask_for_large_pages()
    collect_rarely()
    app()
