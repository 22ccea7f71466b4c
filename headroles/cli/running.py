"""Run a study for a command: claim its folder, show progress, save and print its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headroles.cli import console
from headroles.errors import UsageError

if TYPE_CHECKING:
    from headroles.cli.flags import FolderOptions
    from headroles.results.result import Result
    from headroles.results.stored import Stored
    from headroles.scoring.sharing import Sharing
    from headroles.studies.importance.removals import RunOptions

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
