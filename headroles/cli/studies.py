"""Commands that are made from the declaration of their study in `headroles.registry`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from headroles.cli import console
from headroles.cli.arguments import ModelArgument, OptionalOut, Out, ScoredArgument, TaskArgument
from headroles.cli.flags import FolderOptions, ReportedOptions, ResumeOptions
from headroles.cli.running import fill, refuse_idle_overwrite, resumable, save_or_show
from headroles.options import split_names
from headroles.results.study import FOLDERS, SCORES, TASK, Study

Names = Annotated[
    str | None,
    typer.Option(
        "--names",
        help="What to call them, separated by commas; if left out: as their folders.",
        rich_help_panel="Output",
    ),
]


def make_function(study: Study) -> Callable[..., None]:
    """Make the function of the first command of a study from its declaration."""
    made = {SCORES: _over_scores, TASK: _over_task, FOLDERS: _over_folders}[study.over](study)
    made.__doc__ = next(iter(study.commands.values()))
    made.__annotations__ |= {
        "options": study.load("options"),
        "output": ReportedOptions if study.page or not study.package else FolderOptions,
    }
    return made


def _over_scores(study: Study) -> Callable[..., None]:
    def run(
        scored: ScoredArgument, options: Any, output: FolderOptions, out: OptionalOut = None
    ) -> None:
        from headroles.scoring.scores import HeadScores

        refuse_idle_overwrite(out, output, study.kind)
        save_or_show(study.load("function")(HeadScores.load(scored), options), out, output)

    return run


def _over_task(study: Study) -> Callable[..., None]:
    def run(
        model: ModelArgument,
        task: TaskArgument,
        out: Out,
        options: Any,
        output: FolderOptions,
        resuming: ResumeOptions,
    ) -> None:
        from headroles.results.stored import new_folder, write_together

        opened = new_folder(out, [study.load("result")], output.overwrite, resuming.resume)
        with resumable(opened, options, study.kind) as (folder, resumed):
            result = study.load("function")(model, task, resumed)
            write_together(folder, [result])
        console.finish(out, output, result)

    return run


def _over_folders(study: Study) -> Callable[..., None]:
    def run(
        folders: Any, out: Out, options: Any, output: FolderOptions, names: Names = None
    ) -> None:
        def work() -> Any:
            sets = [study.load("of").load(folder) for folder in folders]
            labels = names_of(folders) if names is None else split_names(names)
            return study.load("function")(sets, labels, options)

        fill(out, study.load("result"), output, work)

    written = f"Folders that {study.written_by} wrote."
    argument = typer.Argument(metavar="DIR DIR", help=written)
    run.__annotations__["folders"] = Annotated[list[Path], argument]
    return run


def names_of(folders: list[Path]) -> list[str]:
    """Return the last parts of paths, or whole paths where these are not different."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
