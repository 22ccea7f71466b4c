"""Run a study for a command, and make the commands of studies from their lines in the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headroles.cli import console
from headroles.cli.flags import (
    FolderOptions,
    ModelArgument,
    OptionalOut,
    Out,
    ReportedOptions,
    ResumeOptions,
    ScoredArgument,
    TaskArgument,
)
from headroles.errors import UsageError
from headroles.options import split_names
from headroles.registry import FOLDERS, SCORES, TASK, Command, result_type

if TYPE_CHECKING:
    from headroles.results.result import Result
    from headroles.results.stored import Stored
    from headroles.scoring.sharing import Sharing
    from headroles.studies.importance.removals import RunOptions

Folders = Annotated[list[Path], typer.Argument(metavar="DIR DIR", help="Folders of results.")]
Names = Annotated[
    str | None,
    typer.Option(
        "--names",
        help="What to call them, separated by commas; if left out: as their folders.",
        rich_help_panel="Output",
    ),
]
R = TypeVar("R")
Resumed = TypeVar("Resumed", bound="RunOptions")


def fill(
    out: Path | None, kind: type[Result], output: FolderOptions, work: Callable[[], Result]
) -> None:
    """Do work whose result, of this ``kind``, is printed, and goes into a folder if there is one.

    The folder is claimed before the work begins.
    """
    if out is None:
        if output.overwrite or getattr(output, "report", False):
            flag = "--overwrite" if output.overwrite else "--report"
            raise UsageError(f"{flag} needs a folder: name one for the {kind.kind} with --out")
        console.show(work(), output)
        return
    from headroles.results.stored import new_folder, write_together

    with new_folder(out, [kind], output.overwrite) as folder:
        result = work()
        write_together(folder, [result])
    console.finish(out, output, result)


@contextmanager
def resumable(
    opened: AbstractContextManager[Path], options: Resumed, work: str, unit: str = "passes"
) -> Iterator[tuple[Path, Resumed]]:
    """Show the progress of a study that fills the folder ``opened``; yield it with the options.

    With these options, an interrupted study leaves its parts in the folder.
    """
    from headroles.storage import parts_beside

    with opened as folder, console.progress_bar(work, unit) as on_progress:
        yield folder, replace(options, parts=parts_beside(folder), on_progress=on_progress)


@contextmanager
def shared_folder(
    out: Path, kinds: Sequence[type[Stored]], output: FolderOptions, resume: bool | None
) -> Iterator[tuple[Path, Sharing]]:
    """Claim a folder for scores; yield it with the place of unfinished windows.

    Of several processes the first fills the folder, and the others work beside it.
    """
    from headroles import storage
    from headroles.results.stored import new_folder
    from headroles.scoring.sharing import Sharing, find_team

    team = find_team()
    if team is not None and team.index > 0:
        yield out, Sharing(storage.parts_in(out), team)
        return
    with new_folder(out, kinds, output.overwrite, resume) as folder:
        yield folder, Sharing(storage.parts_beside(folder), team)


def with_progress(work: str, study: Callable[..., R], *subjects: Any, options: Any) -> R:
    """Run a study of these subjects and options over sentences; show its progress."""
    with console.progress_bar(work) as on_progress:
        watched = (console.watched(subject, on_progress) for subject in subjects)
        return study(*watched, options=replace(options, on_progress=on_progress))


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
