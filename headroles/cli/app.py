"""The ``headroles`` command. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pkgutil import resolve_name
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from headroles.cli import console
from headroles.memory import ask_for_large_pages, collect_rarely
from headroles.results.study import Study, studies

SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class Known(NamedTuple):
    """A command that was not made yet: the module of its function, or its study, and its help."""

    place: str | Study
    help: str


def _commands() -> Iterator[tuple[str, Known]]:
    for study in studies():
        for k, (name, text) in enumerate(study.commands.items()):
            is_declared = study.over and not k
            yield name, Known(study if is_declared else study.package, text)
    yield "show", Known("results", "Print the summary of results again.")
    yield "report", Known("results", "Make one HTML file of results, to read and to send.")
    yield "figure", Known("results", "Draw a figure of results for a paper.")
    yield "export", Known("results", "Print the table of results in DIR.")
    yield "models", Known("about", "List the encoder families.")
    yield "info", Known("about", "Print versions, processor and devices for bug reports.")
    yield "demo", Known("about", "Run classify on the bundled treebank and model.")


COMMANDS = dict(_commands())
"""All commands, in the order of work."""


def find_function(name: str) -> Callable[..., None]:
    """Return the function of a command."""
    place = COMMANDS[name].place
    if isinstance(place, Study):
        from headroles.cli.studies import make_function

        return make_function(place)
    function: Callable[..., None] = resolve_name(f"headroles.cli.{place}:{name.replace('-', '_')}")
    return function


def make_command(name: str) -> Any:
    """Import the function of a command, and make the command with a flag for each option."""
    from headroles.cli.flags import GroupedCommand, with_flags

    alone = typer.Typer(**SETTINGS)
    alone.command(name, cls=GroupedCommand)(with_flags(find_function(name)))
    return typer.main.get_command(alone)


class LazyGroup(TyperGroup):
    """Commands of which each is made, and its module imported, when it is called."""

    def __init__(self, **settings: Any) -> None:
        known = {name: TyperCommand(name, help=command.help) for name, command in COMMANDS.items()}
        super().__init__(**{**settings, "commands": known})

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
    ask_for_large_pages()
    collect_rarely()
    app()
