"""Result folders: claimed by one run at a time, and changed as a whole or not at all.

While a run works, what it writes stands in the hidden folder ``.headroles`` of its result folder.
At the end it takes the place of earlier results by renames, which a journal lists: if one fails,
all are undone; if the machine stops between them, whoever opens the folder next goes on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from headroles.errors import StorageError
from headroles.storage.files import cannot_be_written, read_json, sync, write_json
from headroles.storage.run import RUN_FILE, check_record, result_files

HIDDEN = ".headroles"
UNFINISHED = "unfinished"
"""In the hidden folder: what a study that was interrupted keeps for when it is repeated."""
_LOCK, _NEW, _OLD, _JOURNAL = "lock", "new", "old", "swap.json"
_KEPT = "new-results"
_PATIENCE = 10.0
"""Seconds to wait for the renames of another process: they take a moment."""


@contextmanager
def result_folder(folder: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write results into, which become those of ``folder`` when the block succeeds.

    ``folder`` belongs to this run until then. If the block fails or is interrupted, it is as it
    was before. With ``overwrite``, the results that it held are replaced; other files in it stay.
    New results that cannot take their place are kept beside the old ones.

    Raises StorageError at once if ``folder`` is not empty and ``overwrite`` is not set, if it is
    a file, if it cannot be written, or if another run is writing into it.
    """
    with _claimed(folder) as claim:
        if not overwrite and claim.holds_anything():
            raise StorageError(
                f"folder {claim.folder} is not empty; "
                "name another one or pass overwrite=True (--overwrite)"
            )
        yield from claim.fill(replaced=None)


@contextmanager
def changed_folder(folder: str | Path, replaced: Iterable[str]) -> Iterator[Path]:
    """A folder to write into, whose files join those of ``folder`` when the block succeeds.

    The files called ``replaced`` and those of the same names go. Otherwise as `result_folder`.
    """
    with _claimed(folder) as claim:
        yield from claim.fill(replaced=tuple(replaced))


def check_result_folder(folder: str | Path, overwrite: bool = False) -> None:
    """Raise StorageError if `result_folder` would refuse ``folder``: to ask before long work."""
    with contextlib.suppress(_NothingToDo), result_folder(folder, overwrite):
        raise _NothingToDo


class _NothingToDo(Exception):
    """Leaves a claimed folder as it is."""


def finish_swap(folder: Path) -> None:
    """Go on with renames in ``folder`` that were cut short; to be called before it is read."""
    if (folder / HIDDEN / _JOURNAL).exists():
        with _claimed(folder, patience=_PATIENCE):
            pass


class _Journal(msgspec.Struct):
    """Names of the files that go, and of those that take their place, the run file last."""

    old: list[str]
    new: list[str]


@dataclass
class _Claim:
    """A result folder that belongs to this process."""

    folder: Path
    is_done: bool = False

    @property
    def hidden(self) -> Path:
        return self.folder / HIDDEN

    @property
    def new(self) -> Path:
        return self.hidden / _NEW

    @property
    def old(self) -> Path:
        return self.hidden / _OLD

    @property
    def journal(self) -> Path:
        return self.hidden / _JOURNAL

    def clear(self) -> None:
        """Remove what is no result, unless its renames are still to be made."""
        if self.journal.exists():
            return
        with contextlib.suppress(OSError):  # it does no harm where it is
            for entry in self.hidden.iterdir():
                if entry.name == UNFINISHED:
                    continue
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                elif entry.name != _LOCK:
                    entry.unlink()

    def holds_anything(self) -> bool:
        """Whether there is anything in the folder but what belongs to the claim."""
        return any(entry.name != HIDDEN for entry in self.folder.iterdir())

    def fill(self, replaced: tuple[str, ...] | None) -> Iterator[Path]:
        """Yield the folder to write into, then put what stands there into its place."""
        had_results = (self.folder / RUN_FILE).exists()
        self.new.mkdir()
        try:
            yield self.new
            with _signals_wait():
                self.swap(result_files(self.folder) if replaced is None else replaced)
        except KeyboardInterrupt as stop:
            stop.args = stop.args or (self._as_it_is(had_results),)
            raise

    def _as_it_is(self, had_results: bool) -> str:
        if self.is_done:
            return f"the results in {self.folder} are the new ones, and whole"
        if had_results:
            return f"the results in {self.folder} are as they were"
        return f"nothing was written to {self.folder}"

    def swap(self, replaced: Iterable[str]) -> None:
        """Put the new files into the place of those ``replaced``, all or none."""
        new = sorted((file.name for file in self.new.iterdir()), key=lambda name: name == RUN_FILE)
        for name in {*replaced, *new}:
            if (self.folder / name).is_dir() and not (self.folder / name).is_symlink():
                self._keep_new(f"{self.folder / name} is a folder, and results have such a file")
        for name in new:
            sync(self.new / name)
        sync(self.new)
        old = [name for name in {*replaced, *new} if os.path.lexists(self.folder / name)]
        self.follow(_Journal(old, new))

    def follow(self, journal: _Journal) -> None:
        """Make the renames that are not made yet; undo all if one of them fails."""
        try:
            self._rename(journal)
            self.is_done = True
        except BaseException as error:
            self._undo(journal)
            if isinstance(error, OSError):
                self._keep_new(str(cannot_be_written(self.folder, error)), error)
            raise
        with contextlib.suppress(OSError):  # with nothing left to do, it does no harm
            self.journal.unlink()

    def _rename(self, journal: _Journal) -> None:
        if not self.journal.exists():
            write_json(self.journal, msgspec.to_builtins(journal))
            sync(self.hidden)
        self.old.mkdir(exist_ok=True)
        if all((self.new / name).exists() for name in journal.new):
            # None of the new files has left: what stands in the folder are old ones.
            for name in journal.old:
                if os.path.lexists(self.folder / name):
                    (self.folder / name).replace(self.old / name)
        for name in journal.new:
            if (self.new / name).exists():
                (self.new / name).replace(self.folder / name)
        sync(self.folder)

    def _undo(self, journal: _Journal) -> None:
        """Put every file back where it was. What cannot be, the next claim tries again."""
        try:
            for name in journal.new:
                if not (self.new / name).exists():
                    (self.folder / name).replace(self.new / name)
            for name in journal.old:
                if os.path.lexists(self.old / name):
                    (self.old / name).replace(self.folder / name)
            self.journal.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"{self.folder} cannot be written any more ({error.strerror or error}), and is "
                f"half changed: its old results stand in {self.old}, the new ones in {self.new}; "
                "when it can be written, run any command of headroles on it to go on"
            ) from error

    def _keep_new(self, reason: str, error: OSError | None = None) -> None:
        """Keep the new results beside the old ones, and raise StorageError for the ``reason``."""
        kept = self.folder / _KEPT
        number = 2
        while os.path.lexists(kept):
            kept, number = self.folder / f"{_KEPT}-{number}", number + 1
        self.new.rename(kept)
        raise StorageError(
            f"{reason}; the old results are as they were, and the new ones stand whole in {kept}"
        ) from error


@contextmanager
def _claimed(folder: str | Path, patience: float = 0.0) -> Iterator[_Claim]:
    """The folder, made if there is none, for this process alone."""
    claim = _Claim(Path(folder).absolute())
    try:
        made = _make_folders(claim.folder)
        try:
            with _locked(claim, patience):
                if claim.journal.exists():
                    form = check_record(claim.hidden, read_json(claim.journal), _Journal)
                    claim.follow(form)
                claim.clear()  # what a run left that was killed
                try:
                    yield claim
                finally:
                    claim.clear()
        finally:
            for place in made:  # those that are still empty
                with contextlib.suppress(OSError):
                    place.rmdir()
    except OSError as error:
        raise cannot_be_written(claim.folder, error) from error


def _make_folders(folder: Path) -> list[Path]:
    """Make ``folder`` and its parents; those that were not there, the innermost first."""
    missing = []
    for place in (folder, *folder.parents):
        if place.exists():
            if not place.is_dir():
                raise StorageError(f"{place} is a file; name a folder for the results")
            break
        missing.append(place)
    folder.mkdir(parents=True, exist_ok=True)
    return missing


@contextmanager
def _locked(claim: _Claim, patience: float) -> Iterator[None]:
    from filelock import FileLock, Timeout

    claim.hidden.mkdir(exist_ok=True)
    lock = FileLock(claim.hidden / _LOCK, timeout=patience)
    try:
        lock.acquire()
    except Timeout:
        raise StorageError(
            f"another run is writing into {claim.folder}; wait for it, or name another folder"
        ) from None
    try:
        yield
    finally:
        # While the lock is held: who comes now finds it gone, and makes a new one.
        with contextlib.suppress(OSError):
            (claim.hidden / _LOCK).unlink()
            claim.hidden.rmdir()
        lock.release()


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Signals that end a run are heeded when the block is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    kinds = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    before: dict[int, Any] = {kind: signal.getsignal(kind) for kind in kinds}
    replaced = [kind for kind, handler in before.items() if handler is not None]
    for kind in replaced:
        signal.signal(kind, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        for kind in replaced:
            signal.signal(kind, before[kind])
    for number in waiting:
        signal.raise_signal(number)


_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
