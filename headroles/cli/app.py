"""The ``headroles`` command. Each command is made, and its module imported, when it is called."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
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
    """Return the function of a command. Raises KeyError if there is none."""
    command = registry.find_command(name)
    if command.is_made:
        from headroles.cli.studies import make_function

        return make_function(command)
    function: Callable[..., None] = command.load()
    return function


def make_command(name: str) -> Any:
    """Make a command with a flag for each option."""
    from headroles.cli.flags import GroupedCommand, with_flags

    single = typer.Typer(**SETTINGS)
    single.command(name, cls=GroupedCommand)(with_flags(find_function(name)))
    return typer.main.get_command(single)


class LazyGroup(TyperGroup):
    """All commands, each made when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*registry.all_commands()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Make a command; None if there is none of this name."""
        try:
            return make_command(cmd_name)
        except KeyError:
            self.commands = {name: TyperCommand(name) for name in registry.all_commands()}
            return None  # and the most similar of these names is suggested

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
        listed = registry.all_commands()
        width = formatter.width - max(map(len, listed)) - 6
        sections: dict[str, list[tuple[str, str]]] = {}
        title = ""
        for name, command in listed.items():
            title = command.title or title
            text = TyperCommand(name, help=command.help).get_short_help_str(width)
            sections.setdefault(title, []).append((name, text))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


app = typer.Typer(
    name="headroles",
    help="What the attention heads of a Transformer do, tested for every head and role.",
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
