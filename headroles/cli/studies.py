"""Commands of studies, in the order of work.

Most are made from the declaration of the study in `headroles.registry`; the others are in the
module of ``headroles.cli`` with the name of their package in ``headroles.studies``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, OptionalOut, Out, ScoredArgument, TaskArgument
from headroles.cli.flags import FolderOptions, ReportedOptions, ResumeOptions, command
from headroles.cli.running import fill, refuse_idle_overwrite, resumable, save_or_show
from headroles.options import split_names
from headroles.results.study import FOLDERS, SCORES, TASK, Study, studies

Names = Annotated[
    str | None,
    typer.Option(
        "--names",
        help="What to call them, separated by commas; if left out: as their folders.",
        rich_help_panel="Output",
    ),
]


def add_commands() -> None:
    """Register the commands of all studies."""
    for study in studies():
        for name in study.commands:
            if study.over and name == study.commands[0]:
                _add(study)
            else:
                import_module(f"headroles.cli.{study.package}")


def _add(study: Study) -> None:
    made = {SCORES: _over_scores, TASK: _over_task, FOLDERS: _over_folders}[study.over](study)
    made.__name__ = study.commands[0].replace("-", "_")
    made.__doc__ = study.help
    made.__annotations__ |= {
        "options": study.load("options"),
        "output": ReportedOptions if study.page else FolderOptions,
    }
    command(app)(made)


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
        with resumable(opened, options, study.kind) as (folder, asked):
            result = study.load("function")(model, task, asked)
            write_together(folder, [result])
        console.finish(out, output, result)

    return run


def _over_folders(study: Study) -> Callable[..., None]:
    def run(
        folders: Any, out: Out, options: Any, output: FolderOptions, names: Names = None
    ) -> None:
        def work() -> Any:
            sets = [study.load("of").load(folder) for folder in folders]
            called = names_of(folders) if names is None else split_names(names)
            return study.load("function")(sets, called, options)

        fill(out, study.load("result"), output, work)

    written = f"Folders that {study.written_by} wrote."
    argument = typer.Argument(metavar="DIR DIR", help=written)
    run.__annotations__["folders"] = Annotated[list[Path], argument]
    return run


def names_of(folders: list[Path]) -> list[str]:
    """Return the last parts of paths, or whole paths where these are not different."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
