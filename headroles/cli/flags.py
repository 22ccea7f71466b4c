"""Options -> flags: a command takes whole groups of options, and its flags are made from them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand

from headroles.cli.console import reports_errors
from headroles.memory import refuse_low_limit
from headroles.options import TITLES, Field, Option, Options, fields_of
from headroles.wording import addressed, printable, speaking_of_flags

_ALL = "headroles.help_all"
_MANY = 22
"""Parameters beyond which --help shows the most important ones."""
COMMON = frozenset(
    (
        *("parser", "text_columns", "relations", "roles", "score", "threshold", "margin"),
        *("device", "out", "overwrite", "full", "json", "report", "models", "corpus", "names"),
        *("label_column", "examples", "order", "keep", "share", "written_as", "roles_from"),
        *("fine_tune_on", "seeds", "sets", "ablation", "shares", "orders", "rank", "method"),
        *("error", "sample", "task", "role", "n", "which", "figure", "weights", "model"),
        *("test_file", "claims", "after", "listed"),
    )
)
"""Options that --help shows of commands with many; --help-all shows the others too."""
F = TypeVar("F", bound=Callable[..., None])


@dataclass(frozen=True, kw_only=True)
class OutputOptions(Options):
    """Options of printed output."""

    title: ClassVar[str] = "Output"

    json: Annotated[bool, Option("Print the summary as JSON.")] = False
    full: Annotated[bool, Option("Print every table, not the summary alone.")] = False


@dataclass(frozen=True, kw_only=True)
class FolderOptions(OutputOptions):
    """Options of commands that fill a folder."""

    overwrite: Annotated[bool, Option("Replace results in the folder.")] = False


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(Options):
    """Options of an unfinished run in the folder."""

    title: ClassVar[str] = "Output"

    resume: Annotated[
        bool | None,
        Option(
            "Go on with an unfinished run in the folder, if there is one, or start anew.",
            recorded=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReportedOptions(FolderOptions):
    """Options of commands whose results have a page."""

    report: Annotated[bool, Option("Write the folder's report.html too.")] = False


class GroupedCommand(TyperCommand):
    """A command whose help shows options under the titles of their groups."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line; messages about it lose control characters."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if isinstance(message := getattr(error, "message", None), str):
                error.message = printable(message)  # type: ignore[attr-defined]
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of the help: of many options those that people need most."""
        params = self.get_params(ctx)
        if not ctx.meta.get(_ALL) and len(params) > _MANY:
            params = [one for one in params if _is_common(one)]
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in params:
            record = help_record(param, ctx)
            if record is not None:
                sections.setdefault(_section(param), []).append(record)
        order = ("Arguments", *TITLES, "Options")
        for title in sorted(sections, key=order.index):
            with formatter.section(title):
                formatter.write_dl(sections[title])
        if left := len(self.get_params(ctx)) - len(params):
            formatter.write_paragraph()
            formatter.write_text(f"{left} more options: {ctx.command_path} --help-all")


def help_record(param: Any, ctx: Any) -> tuple[str, str] | None:
    """Return the name and the help of a parameter; arguments are named without their types."""
    record: tuple[str, str] | None = param.get_help_record(ctx)
    if record is None or param.param_type_name != "argument":
        return record
    term, text = record
    return term.partition(" <")[0] + "..." * (param.nargs == -1), text


def _is_common(param: Any) -> bool:
    is_needed = param.param_type_name == "argument" or param.required
    return is_needed or param.name in COMMON or param.name.startswith("help")


def _print_all_help(ctx: typer.Context, value: bool) -> None:
    """Print every option and end the command."""
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        sys.stdout.write(f"{ctx.get_help()}\n")
        raise typer.Exit


_HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all",
            is_eager=True,
            callback=_print_all_help,
            help="Show every option and exit.",
        ),
    ],
)


def _section(param: Any) -> str:
    if param.param_type_name == "argument":
        return "Arguments"
    return getattr(param, "rich_help_panel", None) or "Options"  # --help is of click alone


def command(app: typer.Typer, without: Container[str] = ()) -> Callable[[F], F]:
    """Register a function as a command.

    A parameter whose type is a group of options becomes the flags of the group, except the options
    ``without``; the function receives the group. Errors that a user can cause end the command in
    one line.
    """

    def register(function: F) -> F:
        app.command(cls=GroupedCommand)(reports_errors(_with_flags(function, without)))
        return function

    return register


def _with_flags(function: Callable[..., None], without: Container[str]) -> Callable[..., None]:
    parameters = inspect.signature(function, eval_str=True).parameters
    groups = {
        name: one.annotation
        for name, one in parameters.items()
        if isinstance(one.annotation, type) and issubclass(one.annotation, Options)
    }
    flagged = {
        one.name: one
        for group in groups.values()
        for one in fields_of(group)
        if one.option.has_flag and one.name not in without
    }

    @functools.wraps(function)
    def run(**values: Any) -> None:
        values.pop(_HELP_ALL.name, None)
        given = {name: values.pop(name) for name in flagged}
        for name, group in groups.items():
            own = (one.name for one in fields_of(group) if one.name in given)
            values[name] = group(**{option: given[option] for option in own})
        if "device" in flagged:
            refuse_low_limit()
        function(**values)

    own = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, one in parameters.items()
        if name not in groups
    ]
    signature = inspect.Signature([*own, *map(_flag, flagged.values()), _HELP_ALL])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
    return run


def _flag(one: Field) -> inspect.Parameter:
    names = [one.flag]
    if one.type is bool and one.default is not False:
        names = [f"{one.flag}/--no-{one.flag.removeprefix('--')}"]
    with speaking_of_flags():
        text = addressed(one.option.help)
    settings: Any = typer.Option(
        *names,
        help=text,
        metavar="|".join(one.option.choices) or None,
        rich_help_panel=one.title,
    )
    kind: Any = str if one.option.convert is not None else one.type
    if one.default is None:
        kind = kind | None
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=one.default,
        annotation=Annotated[kind, settings],
    )


def given_flags(context: typer.Context, group: type[Options]) -> list[str]:
    """Return the flags of a group that the user gave."""
    sources = {one.flag: context.get_parameter_source(one.name) for one in fields_of(group)}
    return [flag for flag, one in sources.items() if one is not None and one.name != "DEFAULT"]
