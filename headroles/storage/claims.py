"""Claims: result folders that belong to one process, which fills them whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from headroles.errors import HeadRolesError, StorageError
from headroles.interrupts import completed, described_when_interrupted, signals_wait
from headroles.storage.files import cannot_be_written
from headroles.storage.names import HIDDEN
from headroles.storage.parts import Parts
from headroles.storage.run_file import RUN_FILE, result_files
from headroles.storage.swaps import Swap

PARTS = "parts"
_LOCK = "lock"


@dataclass
class Claim:
    """Claim of this process to a result folder."""

    folder: Path
    had_results: bool = False

    @property
    def hidden(self) -> Path:
        """Hidden folder for files that are not results."""
        return self.folder / HIDDEN

    @property
    def parts(self) -> Parts:
        """Parts of an unfinished run."""
        return Parts(self.hidden / PARTS)

    @cached_property
    def swap(self) -> Swap:
        """Renames that put results into place."""
        return Swap(self.folder, self.hidden)

    def finish(self) -> None:
        """Finish renames that were interrupted, if any."""
        if self.swap.is_begun:
            self._end(self.swap.resume())

    def _end(self, ends_parts: bool) -> None:
        if ends_parts:
            self.parts.remove()
        self.swap.end()

    def clear(self) -> None:
        """Remove files that are neither results nor parts of a run; renames to be finished stay."""
        if self.swap.is_begun:
            return
        if not self.parts.count:
            self.parts.remove()
        with contextlib.suppress(OSError):  # an empty folder that stays does no harm
            for entry in self.hidden.iterdir():
                if entry.name == PARTS:
                    continue
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                elif entry.name != _LOCK:
                    entry.unlink()

    def holds_anything(self) -> bool:
        """Tell whether the folder holds anything that does not belong to the claim."""
        return any(entry.name != HIDDEN for entry in self.folder.iterdir())

    def keep_parts(self, resume: bool | None) -> None:
        """Keep or remove the parts of an unfinished run, as ``resume`` says."""
        if resume is False:
            self.parts.remove()
        elif resume is None and self.parts.count:
            raise StorageError(
                f"{self.folder} holds {self.parts.describe()} of an unfinished run; to continue "
                "it, run the same command with --resume, to start anew with --no-resume"
            )

    def fill(self, replaced: tuple[str, ...] | None) -> Iterator[Path]:
        """Yield the folder to write into, then move its files into place."""
        self.had_results = (self.folder / RUN_FILE).exists()
        self.swap.new.mkdir()
        try:
            with described_when_interrupted(self.describe):
                yield self.swap.new
                with signals_wait():
                    is_whole = replaced is None  # all results are replaced, not only some files
                    old = self._results() if is_whole else replaced
                    self._end(self.swap.put(old or (), ends_parts=is_whole))
            completed(self.describe())
        except KeyboardInterrupt as stop:
            stop.args = stop.args or (self.describe(),)
            raise

    def describe(self) -> str:
        """Describe the state of the folder if the run ended now."""
        if self.swap.is_done:
            return f"the results in {self.folder} are the new ones, and complete"
        if self.swap.is_begun:
            return f"the results in {self.folder} are being replaced; the next command finishes it"
        old = f"the results in {self.folder} are unchanged" if self.had_results else ""
        if self.parts.count:
            new = f"{self.parts.describe()} of the new ones" if old else self.parts.describe()
            return (
                f"{old + ', and ' if old else ''}{new} of the work "
                f"{'is' if self.parts.count == 1 else 'are'} saved in {self.folder}; "
                "to continue, run the same command with --resume"
            )
        return old or f"nothing was written to {self.folder}"

    def noted(self, error: HeadRolesError) -> HeadRolesError:
        """Add a note to the error that says which parts are saved, if any."""
        if self.parts.count:
            error.add_note(self.describe())
        return error

    def _results(self) -> list[str]:
        """List paths of result files that the new ones replace."""
        new = self.swap.new
        within = [place.relative_to(new) for place in new.rglob("*") if place.is_dir()]
        return [
            (place / name).as_posix()
            for place in (*within, Path())
            if place == Path() or not (self.folder / place).is_symlink()  # `Swap` rejects links
            for name in result_files(self.folder / place)
        ]


@contextmanager
def claimed(folder: str | Path, patience: float = 0.0) -> Iterator[Claim]:
    """Claim the folder for this process alone; create it if necessary."""
    claim = Claim(Path(folder).absolute())
    try:
        made = _make_folders(claim.folder)
        try:
            refuse_foreign(claim.hidden)
            with _locked(claim, patience):
                claim.finish()
                claim.clear()  # remove the remains of a killed run
                try:
                    yield claim
                finally:
                    claim.clear()
        finally:
            for place in made:  # remove new folders that are still empty
                with contextlib.suppress(OSError):
                    place.rmdir()
    except OSError as error:
        raise cannot_be_written(claim.folder, error) from error


def _make_folders(folder: Path) -> list[Path]:
    """Make ``folder`` and its parents; return those that were missing, the innermost first."""
    missing = []
    for place in (folder, *folder.parents):
        if place.exists():
            if not place.is_dir():
                raise StorageError(f"{place} is a file; name a folder for the results")
            break
        if place.is_symlink():
            raise StorageError(
                f"{place} is a symbolic link to {place.readlink()}, which does not exist; make "
                "that folder, or name another one for the results"
            )
        missing.append(place)
    folder.mkdir(parents=True, exist_ok=True)
    return missing


@contextmanager
def _locked(claim: Claim, patience: float) -> Iterator[None]:
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
        # remove it while the lock is held: the next process makes a new one
        with contextlib.suppress(OSError):
            (claim.hidden / _LOCK).unlink()
            claim.hidden.rmdir()
        lock.release()


_FILES, _FOLDERS = ("lock", "swap.json"), ("new", "old", "parts")


def refuse_foreign(hidden: Path) -> None:
    """Raise StorageError for links, devices and the like in the folder ``hidden`` or instead of it.

    The same holds for a folder in place of a file of headroles, and a file in place of a folder. A
    folder from someone else may hold links to files of the person who opens it.
    """
    for place, is_folder in _entries(hidden):
        mode = _mode(place)
        if mode is None or (stat.S_ISDIR if is_folder else stat.S_ISREG)(mode):
            continue
        raise StorageError(
            f"{place} is {_described(mode)}, which headroles does not make there; nothing was "
            "followed or changed. Remove it, and run the command again"
        )


def _entries(hidden: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the hidden folder and all its entries, each with whether it has to be a folder."""
    yield hidden, True
    for folder, folders, files in os.walk(hidden):
        is_top = Path(folder) == hidden
        for name in (*folders, *files):
            expected = name in folders
            if is_top and name in (*_FILES, *_FOLDERS):
                expected = name in _FOLDERS
            yield Path(folder, name), expected


def _mode(place: Path) -> int | None:
    """Return the mode of a path itself, not of a link's target; None if it does not exist."""
    try:
        return place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _described(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a file" if stat.S_ISREG(mode) else "a device, a pipe or the like"
