"""Replacement of old files by new ones through renames: all of them, or none.

A journal lists the renames. If one fails, all are undone; if the machine stops between them, the
next process that opens the folder continues.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headroles.errors import StorageError
from headroles.storage.files import cannot_be_written, keep_permissions, sync, write_json
from headroles.storage.names import is_result_path
from headroles.storage.run_file import RUN_FILE

_NEW, _OLD, _JOURNAL = "new", "old", "swap.json"
_SPARE = "new-results"


class _Journal(msgspec.Struct):
    """Paths of the files to remove, and of the files that replace them, the run file last.

    ``ends_parts`` means that the new files complete an unfinished run, whose parts can go.
    """

    old: list[str]
    new: list[str]
    ends_parts: bool = False


@dataclass
class Swap:
    """Files of ``folder`` that change together, by way of its sub-folder ``hidden``."""

    folder: Path
    hidden: Path
    is_done: bool = False

    @property
    def new(self) -> Path:
        """Place of the new files before the renames."""
        return self.hidden / _NEW

    @property
    def old(self) -> Path:
        """Place of the old files after the renames."""
        return self.hidden / _OLD

    @property
    def is_begun(self) -> bool:
        """Whether some renames are still to be made, or are not known to be made."""
        return os.path.lexists(self._journal)

    @property
    def _journal(self) -> Path:
        return self.hidden / _JOURNAL

    def put(self, replaced: Iterable[str], ends_parts: bool) -> bool:
        """Replace the files ``replaced`` by the new ones, all or none; see `resume`.

        Raises StorageError if that fails, and leaves the old files unchanged.
        """
        files = [file for file in self.new.rglob("*") if not file.is_dir()]
        names = (file.relative_to(self.new).as_posix() for file in files)
        new = sorted(names, key=lambda name: name == RUN_FILE)
        for name in {*replaced, *new}:
            if (reason := self._hindrance(name)) is not None:
                self._keep_new(reason)
            if (self.new / name).exists():
                keep_permissions(self.folder / name, self.new / name)
        for place in {*files, *(file.parent for file in files), self.new}:
            sync(place)
        old = [name for name in {*replaced, *new} if os.path.lexists(self.folder / name)]
        return self._follow(_Journal(old, new, ends_parts))

    def resume(self) -> bool:
        """Make the remaining renames, and tell whether they end an unfinished run.

        Call `end` once everything else is done.
        """
        try:
            journal = msgspec.json.decode(self._journal.read_bytes(), type=_Journal)
            self._check(journal)
        except (StorageError, msgspec.DecodeError, OSError, ValueError, RecursionError) as error:
            raise StorageError(
                f"a run ended while it replaced results in {self.folder}, and its list of renames "
                f"cannot be used ({error}); copy the files that you need from {self.old} "
                f"and {self.new}, remove {self.hidden}, and run the command again"
            ) from error
        return self._follow(journal)

    def _check(self, journal: _Journal) -> None:
        """Raise StorageError for a journal that no run of headroles in this folder wrote."""
        for name in (*journal.old, *journal.new):
            if (reason := self._hindrance(name)) is not None:
                raise StorageError(reason)
        for name in journal.new:
            if not any((place / name).is_file() for place in (self.new, self.folder)):
                raise StorageError(f"{name} no longer exists")

    def _hindrance(self, name: str) -> str | None:
        """Explain why a result file cannot be put at, or taken from, a path; None if it can."""
        place = self.folder / name
        if not is_result_path(name):
            return f"{place} does not have the name of a result file"
        if place.is_dir() and not place.is_symlink():
            return f"{place} is a folder, but results have a file of that name"
        within = place.parent
        if within != self.folder and within.is_symlink():
            return f"{within} is a symbolic link, which headroles does not follow"
        if within.exists() and not within.is_dir():
            return f"{within} is a file, but results have a folder of that name"
        return None

    def end(self) -> None:
        """Delete the journal of renames, which are done."""
        with contextlib.suppress(OSError):  # a journal without work left does no harm
            self._journal.unlink()

    def _follow(self, journal: _Journal) -> bool:
        try:
            self._rename(journal)
            self.is_done = True
        except BaseException as error:
            self._undo(journal)
            if isinstance(error, OSError):
                self._keep_new(str(cannot_be_written(self.folder, error)), error)
            raise
        return journal.ends_parts

    def _rename(self, journal: _Journal) -> None:
        if not self._journal.exists():
            write_json(self._journal, msgspec.to_builtins(journal))
            sync(self.hidden)
        self.old.mkdir(exist_ok=True)
        if all((self.new / name).exists() for name in journal.new):
            # no new file has been moved yet: the files in the folder are old ones
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
        """Move every file back. The next claim retries moves that fail."""
        try:
            for name in journal.new:
                if not (self.new / name).exists():
                    _move(self.folder / name, self.new / name)
            for name in journal.old:
                if os.path.lexists(self.old / name):
                    _move(self.old / name, self.folder / name)
            for name in journal.new:
                with contextlib.suppress(OSError):  # remove sub-folders made for the new files
                    (self.folder / name).parent.rmdir()
            self._journal.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"{self.folder} can no longer be written ({error.strerror or error}), and is half "
                f"changed: its old results are in {self.old}, the new ones in {self.new}; "
                "once it can be written, run any command of headroles on it to continue"
            ) from error

    def _keep_new(self, reason: str, error: OSError | None = None) -> None:
        """Save the new results beside the old ones, and raise StorageError with the ``reason``."""
        beside, number = self.folder / _SPARE, 2
        while os.path.lexists(beside):
            beside, number = self.folder / f"{_SPARE}-{number}", number + 1
        self.new.rename(beside)
        raise StorageError(
            f"{reason}; the old results are unchanged, and the new ones are complete in {beside}"
        ) from error


def _move(file: Path, to: Path) -> None:
    """Rename a file; make its new folder if necessary."""
    to.parent.mkdir(parents=True, exist_ok=True)
    file.replace(to)
