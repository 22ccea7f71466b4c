"""Commands that are made from the line of their study in `headroles.registry`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from headroles.cli import console
from headroles.cli.arguments import ModelArgument, OptionalOut, Out, ScoredArgument, TaskArgument
from headroles.cli.flags import ReportedOptions, ResumeOptions
from headroles.cli.running import fill, resumable
from headroles.options import split_names
from headroles.registry import FOLDERS, SCORES, TASK, Command, result_type

Folders = Annotated[list[Path], typer.Argument(metavar="DIR DIR", help="Folders of results.")]
Names = Annotated[
    str | None,
    typer.Option(
        "--names",
        help="What to call them, separated by commas; if left out: as their folders.",
        rich_help_panel="Output",
    ),
]


def make_function(command: Command) -> Callable[..., None]:
    """Make the function of a command from its line."""
    study = resolve_name(f"headroles.studies.{command.place}")
    result = result_type(command.kind or command.name)
    make = {SCORES: _over_scores, TASK: _over_task, FOLDERS: _over_folders}[command.over]
    made = make(study, result, resolve_name(command.of))
    made.__doc__ = command.help
    made.__annotations__["options"] = study.options
    return made


def _over_scores(study: Any, result: Any, scores: Any) -> Callable[..., None]:
    def run(
        scored: ScoredArgument, options: Any, output: ReportedOptions, out: OptionalOut = None
    ) -> None:
        fill(out, result, output, lambda: study(scores.load(scored), options))

    return run


def _over_task(study: Any, result: Any, _: Any) -> Callable[..., None]:
    def run(
        model: ModelArgument,
        task: TaskArgument,
        out: Out,
        options: Any,
        output: ReportedOptions,
        resuming: ResumeOptions,
    ) -> None:
        from headroles.results.stored import new_folder, write_together

        opened = new_folder(out, [result], output.overwrite, resuming.resume)
        with resumable(opened, options, result.kind) as (folder, resumed):
            found = study(model, task, resumed)
            write_together(folder, [found])
        console.finish(out, output, found)

    return run


def _over_folders(study: Any, result: Any, of: Any) -> Callable[..., None]:
    def run(
        folders: Folders, out: Out, options: Any, output: ReportedOptions, names: Names = None
    ) -> None:
        labels = names_of(folders) if names is None else split_names(names)
        fill(out, result, output, lambda: study(list(map(of.load, folders)), labels, options))

    return run


def names_of(folders: list[Path]) -> list[str]:
    """Return the last parts of paths, or whole paths where these are not different."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
