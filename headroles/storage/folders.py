"""Result folders: claimed by one run at a time, and changed as a whole or not at all.

While a run works, what it writes stands in the hidden folder ``.headroles`` of its result folder.
At the end it takes the place of earlier results by renames, which a journal lists: if one fails,
all are undone; if the machine stops between them, whoever opens the folder next goes on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headroles.errors import HeadRolesError, StorageError
from headroles.interrupts import signals_wait, told_when_interrupted
from headroles.storage.files import cannot_be_written, read_json, sync, write_json
from headroles.storage.parts import Parts
from headroles.storage.run import RUN_FILE, check_record, result_files

HIDDEN = ".headroles"
_LOCK, _NEW, _OLD, _JOURNAL, _PARTS = "lock", "new", "old", "swap.json", "parts"
_KEPT = "new-results"
_PATIENCE = 10.0
"""Seconds to wait for the renames of another process: they take a moment."""


@contextmanager
def result_folder(
    folder: str | Path, overwrite: bool = False, resume: bool | None = None
) -> Iterator[Path]:
    """A folder to write results into, which become those of ``folder`` when the block succeeds.

    In folders within it there may be results too; they take their place together with the others.
    ``folder`` belongs to this run until then. If the block fails or is interrupted, it is as it
    was before, but for the parts that the block kept in `parts_beside`. With ``overwrite``, the
    results that it held are replaced; other files in it stay. New results that cannot take their
    place are kept beside the old ones. Parts of an unfinished run are left to the block with
    ``resume``, and removed if it is False.

    Raises StorageError at once if ``folder`` is not empty and ``overwrite`` is not set, if it
    holds an unfinished run and ``resume`` is None, if it is a file, if it cannot be written, or if
    another run is writing into it.
    """
    with _claimed(folder) as claim:
        claim.take_up(resume)
        if not overwrite and claim.holds_anything():
            raise StorageError(
                f"folder {claim.folder} is not empty; "
                "name another one or pass overwrite=True (--overwrite)"
            )
        try:
            yield from claim.fill(replaced=None)
        except OSError as error:
            raise claim.noted(cannot_be_written(claim.folder, error)) from error
        except HeadRolesError as error:
            claim.noted(error)
            raise


def parts_beside(staging: Path) -> Parts:
    """Where work into the folder that `result_folder` gave can keep what is done of it."""
    return Parts(staging.parent / _PARTS)


@contextmanager
def changed_folder(folder: str | Path, replaced: Iterable[str]) -> Iterator[Path]:
    """A folder to write into, whose files join those of ``folder`` when the block succeeds.

    The files called ``replaced`` and those of the same names go. Otherwise as `result_folder`.
    """
    with _claimed(folder) as claim:
        yield from claim.fill(replaced=tuple(replaced))


def check_result_folder(
    folder: str | Path, overwrite: bool = False, resume: bool | None = None
) -> None:
    """Raise StorageError if `result_folder` would refuse ``folder``: to ask before long work."""
    with contextlib.suppress(_NothingToDo), result_folder(folder, overwrite, resume):
        raise _NothingToDo


def parts_in(folder: str | Path) -> Parts:
    """Where another process that fills ``folder`` keeps the parts of its work."""
    return Parts(Path(folder).absolute() / HIDDEN / _PARTS)


class _NothingToDo(Exception):
    """Leaves a claimed folder as it is."""


def finish_swap(folder: Path) -> None:
    """Go on with renames in ``folder`` that were cut short; to be called before it is read.

    They may be those of the folder that it is in.
    """
    for place in (folder.absolute().parent, folder):
        if (place / HIDDEN / _JOURNAL).exists():
            with _claimed(place, patience=_PATIENCE):
                pass


class _Journal(msgspec.Struct):
    """Paths of the files that go, and of those that take their place, the run file last.

    With ``ends_parts`` the new files are what the parts of an unfinished run were for.
    """

    old: list[str]
    new: list[str]
    ends_parts: bool = False


@dataclass
class _Claim:
    """A result folder that belongs to this process."""

    folder: Path
    is_done: bool = False
    had_results: bool = False

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

    @property
    def parts(self) -> Parts:
        return Parts(self.hidden / _PARTS)

    def clear(self) -> None:
        """Remove what is no result, nor part of one, unless its renames are still to be made."""
        if self.journal.exists():
            return
        if not self.parts.count:
            self.parts.remove()
        with contextlib.suppress(OSError):  # it does no harm where it is
            for entry in self.hidden.iterdir():
                if entry.name == _PARTS:
                    continue
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                elif entry.name != _LOCK:
                    entry.unlink()

    def holds_anything(self) -> bool:
        """Whether there is anything in the folder but what belongs to the claim."""
        return any(entry.name != HIDDEN for entry in self.folder.iterdir())

    def take_up(self, resume: bool | None) -> None:
        """Leave parts of an unfinished run where they are, or remove them, as ``resume`` says."""
        if resume is False:
            self.parts.remove()
        elif resume is None and self.parts.count:
            raise StorageError(
                f"{self.folder} holds {self.parts.describe()} of an unfinished run; to go on with "
                "it run the same command with --resume, to start anew with --no-resume"
            )

    def fill(self, replaced: tuple[str, ...] | None) -> Iterator[Path]:
        """Yield the folder to write into, then put what stands there into its place."""
        self.had_results = (self.folder / RUN_FILE).exists()
        self.new.mkdir()
        try:
            with told_when_interrupted(self.as_it_is):
                yield self.new
            with signals_wait():
                self.swap(self._results() if replaced is None else replaced, replaced is None)
        except KeyboardInterrupt as stop:
            stop.args = stop.args or (self.as_it_is(),)
            raise

    def as_it_is(self) -> str:
        """What the folder holds if the run ends here, for people."""
        if self.is_done:
            return f"the results in {self.folder} are the new ones, and whole"
        if self.journal.exists():
            return f"the results in {self.folder} are being replaced; the next command finishes it"
        told = f"the results in {self.folder} are as they were" if self.had_results else ""
        if self.parts.count:
            kept = f"{self.parts.describe()} of the new ones" if told else self.parts.describe()
            return (
                f"{told + ', and ' if told else ''}{kept} of the work "
                f"{'is' if self.parts.count == 1 else 'are'} kept in {self.folder}; "
                "to go on, run the same command with --resume"
            )
        return told or f"nothing was written to {self.folder}"

    def noted(self, error: HeadRolesError) -> HeadRolesError:
        """The error with a note that says which parts are kept, if any are."""
        if self.parts.count:
            error.add_note(self.as_it_is())
        return error

    def swap(self, replaced: Iterable[str], ends_parts: bool) -> None:
        """Put the new files into the place of those ``replaced``, all or none."""
        files = [file for file in self.new.rglob("*") if not file.is_dir()]
        names = (file.relative_to(self.new).as_posix() for file in files)
        new = sorted(names, key=lambda name: name == RUN_FILE)
        for name in {*replaced, *new}:
            if (self.folder / name).is_dir() and not (self.folder / name).is_symlink():
                self._keep_new(f"{self.folder / name} is a folder, and results have such a file")
            within = (self.folder / name).parent
            if within.exists() and not within.is_dir():
                self._keep_new(f"{within} is a file, and results have such a folder")
        for place in {*files, *(file.parent for file in files), self.new}:
            sync(place)
        old = [name for name in {*replaced, *new} if os.path.lexists(self.folder / name)]
        self.follow(_Journal(old, new, ends_parts))

    def _results(self) -> list[str]:
        """Paths of the files of the results that the new ones replace."""
        within = [place.relative_to(self.new) for place in self.new.rglob("*") if place.is_dir()]
        return [
            (place / name).as_posix()
            for place in (*within, Path())
            for name in result_files(self.folder / place)
        ]

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
        if journal.ends_parts:
            self.parts.remove()
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
                    _move(self.folder / name, self.old / name)
        for name in journal.new:
            if (self.new / name).exists():
                _move(self.new / name, self.folder / name)
        for place in {(self.folder / name).parent for name in journal.new}:
            sync(place)
        sync(self.folder)

    def _undo(self, journal: _Journal) -> None:
        """Put every file back where it was. What cannot be, the next claim tries again."""
        try:
            for name in journal.new:
                if not (self.new / name).exists():
                    _move(self.folder / name, self.new / name)
            for name in journal.old:
                if os.path.lexists(self.old / name):
                    _move(self.old / name, self.folder / name)
            for name in journal.new:
                with contextlib.suppress(OSError):  # the folders within that were made for it
                    (self.folder / name).parent.rmdir()
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


def _move(file: Path, to: Path) -> None:
    """Rename a file, into a folder that is made if there is none."""
    to.parent.mkdir(parents=True, exist_ok=True)
    file.replace(to)


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
