"""Arguments of commands, and options -> flags: a command takes whole groups of options."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

from headroles.options import CIRCUMSTANCE, TITLES, Convert, Field, Options, fields_of
from headroles.wording import addressed, speaking_of_flags


def argument(name: str, text: str) -> Any:
    """Declare an argument of a command."""
    return typer.Argument(metavar=name, help=text)


def option(flag: str, text: str, panel: str = "Output", metavar: str | None = None) -> Any:
    """Declare a flag of a command."""
    return typer.Option(flag, help=text, metavar=metavar, rich_help_panel=panel)


Model = Annotated[str, argument("MODEL", "Hub id or folder of a model.")]
Texts = Annotated[list[Path], argument("CORPUS", "CoNLL-U files or folders, text, or a bitext.")]
SCORED = "Folder that score or classify wrote."
Scored = Annotated[Path, argument("DIR", SCORED)]
Out = Annotated[Path, option("--out", "Folder for the results.")]
OptionalOut = Annotated[
    Path | None, option("--out", "Folder for the results; left out: none is written.")
]


@dataclass(frozen=True, kw_only=True)
class OutputOptions(Options):
    """Options of printed output."""

    title: ClassVar[str] = "Output"

    json: bool = False
    """Print the summary as JSON."""
    full: bool = False
    """Print the first rows of every table too, not the summary alone."""


@dataclass(frozen=True, kw_only=True)
class FolderOptions(OutputOptions):
    """Options of commands that fill a folder."""

    overwrite: bool = False
    """Replace results in the folder."""


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(FolderOptions):
    """Options of commands that go on with an unfinished run."""

    resume: Annotated[bool | None, CIRCUMSTANCE] = None
    """Go on with an unfinished run in the folder, if there is one, or start anew."""


@dataclass(frozen=True, kw_only=True)
class ReportedOptions(FolderOptions):
    """Options of commands whose results have a page."""

    report: bool = False
    """Write the folder's report.html too."""


@dataclass(frozen=True, kw_only=True)
class LongRunOptions(ReportedOptions, ResumeOptions):
    """Options of commands that go on with runs, and whose results have a page."""


MOST_USED = "Most used"
SECTIONS = ("Arguments", MOST_USED, *TITLES, "Options")
"""Titles of the sections of a help, in order."""
HELP_ALL = "--help-all"
_MOST_USED = {
    "--out",
    "--report",
    "--parser",
    "--relations",
    "--roles",
    "--attention",
    "--roles-from",
    "--order",
    "--orders",
    "--share",
    "--shares",
    "--keep",
    "--quick",
    "--claims",
    "--task",
    "--links",
    "--write-links",
    "--forward",
    "--backward",
    "--by",
}


LONGEST_HELP = 60
"""Lines that two screens show; of a longer help, most groups are lists of names."""


class GroupedCommand(TyperCommand):
    """A command whose help shows options under the titles of their groups.

    A long help explains the options that are used most and names the others, which ``--help-all``
    explains.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of the help."""
        sections: dict[str, list[Any]] = {}
        for param in self.get_params(ctx):
            if help_record(param, ctx):
                title = MOST_USED if param.opts[0] in _MOST_USED else section_of(param)
                sections.setdefault(title, []).append(param)
        whole = ctx.make_formatter()
        self._write(sections, ctx, whole, explained=SECTIONS)
        n_lines = whole.getvalue().count("\n")
        if ctx.meta.get(HELP_ALL) or n_lines <= LONGEST_HELP:
            formatter.write(whole.getvalue())
        else:
            self._write(sections, ctx, formatter, explained=("Arguments", MOST_USED, "Options"))

    def _write(
        self,
        sections: dict[str, list[Any]],
        ctx: Any,
        formatter: Any,
        explained: tuple[str, ...],
    ) -> None:
        for title in sorted(sections, key=SECTIONS.index):
            with formatter.section(title):
                if title in explained:
                    formatter.write_dl([help_record(one, ctx) for one in sections[title]])
                else:
                    names = ", ".join(one.opts[0] for one in sections[title])
                    width = formatter.width - formatter.current_indent
                    for line in textwrap.wrap(names, width, break_on_hyphens=False):
                        formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _explain_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


_HELP_ALL: dict[str, Any] = {
    "callback": _explain_all,
    "is_eager": True,
    "help": "Explain every option and exit.",
    "rich_help_panel": "Options",
}


def help_record(param: Any, ctx: Any) -> tuple[str, str] | None:
    """Return the name and the help of a parameter; arguments are named without their types."""
    record: tuple[str, str] | None = param.get_help_record(ctx)
    if record is None or param.param_type_name != "argument":
        return record
    term, text = record
    return term.partition(" <")[0] + ("..." if param.nargs == -1 else ""), text


def section_of(param: Any) -> str:
    """Return the title under which help shows a parameter."""
    if param.param_type_name == "argument":
        return "Arguments"
    return getattr(param, "rich_help_panel", None) or "Options"  # --help is of click alone


def with_flags(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for each option of its groups.

    A parameter whose type is a group of options becomes the flags of the group; the function
    receives the group.
    """
    parameters = inspect.signature(function, eval_str=True).parameters
    groups = {
        name: parameter.annotation
        for name, parameter in parameters.items()
        if isinstance(parameter.annotation, type) and issubclass(parameter.annotation, Options)
    }
    flagged = {
        field.name: field for group in groups.values() for field in fields_of(group) if field.flag
    }

    def run(help_all: bool, **values: Any) -> None:  # which ends the program before
        flag_values = {name: values.pop(name) for name in flagged}
        for name, group in groups.items():
            names = [field.name for field in fields_of(group) if field.flag]
            values[name] = group(**{option: flag_values[option] for option in names})
        function(**values)

    arguments = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in parameters.items()
        if name not in groups
    ]
    help_all = inspect.Parameter(
        "help_all",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option(HELP_ALL, **_HELP_ALL)],
    )
    flags = [*map(_flag, flagged.values()), help_all]
    command: Any = run
    command.__signature__ = inspect.Signature([*arguments, *flags])
    command.__doc__ = function.__doc__
    return run


def help_of(field: Field) -> str:
    """Return the help of the flag of an option."""
    with speaking_of_flags():
        return addressed(" ".join(field.text.partition("\n\n")[0].split()))


def _flag(field: Field) -> inspect.Parameter:
    """Make the parameter that typer makes the flag of an option from."""
    flag = field.flag
    if field.type is bool and field.default is not False:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    settings = option(flag, help_of(field), field.title, "|".join(field.choices) or None)
    is_converted = any(isinstance(mark, Convert) for mark in field.marks)
    kind: Any = field.type if field.type in (bool, int, float) and not is_converted else str
    default = field.default
    if is_converted and isinstance(default, tuple):
        default = ",".join(map(str, default))
    keyword = inspect.Parameter.KEYWORD_ONLY
    annotation = Annotated[kind, settings]
    return inspect.Parameter(field.name, keyword, default=default, annotation=annotation)


def given(options: Options, group: type[Options]) -> list[str]:
    """Return the flags of a group of options whose values are not the defaults."""
    return [
        field.flag
        for field in fields_of(group)
        if field.flag and getattr(options, field.name) != field.accept(field.default)
    ]
