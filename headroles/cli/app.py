"""The ``headroles`` command. Each command is made, and its module imported, when it is called."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from headroles import registry
from headroles.cli import console

SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
COMMANDS = {command.name: command for command in registry.COMMANDS}
"""All commands, in the order of the list of commands."""


def find_function(name: str) -> Callable[..., None]:
    """Return the function of a command."""
    command = COMMANDS[name]
    if command.is_made:
        from headroles.cli.studies import make_function

        return make_function(command)
    function: Callable[..., None] = resolve_name(f"headroles.{command.place}")
    return function


def make_command(name: str) -> Any:
    """Make a command with a flag for each option."""
    from headroles.cli.flags import GroupedCommand, with_flags

    alone = typer.Typer(**SETTINGS)
    alone.command(name, cls=GroupedCommand)(with_flags(find_function(name)))
    return typer.main.get_command(alone)


class LazyGroup(TyperGroup):
    """All commands, each made when it is called."""

    def __init__(self, **settings: Any) -> None:
        known = {name: TyperCommand(name, help=command.help) for name, command in COMMANDS.items()}
        super().__init__(**{**settings, "commands": known})

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Read the part of the command line before the command."""
        with console.reported_errors():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; errors that a user can cause end it in one line and an exit code."""
        with console.reported_errors():
            return super().invoke(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, under their titles."""
        width = formatter.width - max(map(len, COMMANDS)) - 6
        sections: dict[str, list[tuple[str, str]]] = {}
        title = ""
        for name, command in COMMANDS.items():
            title = command.title or title
            text = self.commands[name].get_short_help_str(width)
            sections.setdefault(title, []).append((name, text))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Make the command that is called."""
        if args[0] in COMMANDS:
            self.commands[args[0]] = make_command(args[0])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="headroles",
    help="What the attention heads of a BERT-style encoder do, tested for every head and role.",
    cls=LazyGroup,
    no_args_is_help=True,
    **SETTINGS,
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
    console.prepare_output()
    # Batches differ in shape, so with small pages each leaves holes that the next does not quite
    # fit: a tenth more memory over 20,000 sentences (PyTorch, on Linux).
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    # A command imports hundreds of thousands of objects that live as long as it does; to scan them
    # for cyclic garbage again and again takes a fifth of the time of importing.
    gc.set_threshold(100_000, 50, 50)
    app()
