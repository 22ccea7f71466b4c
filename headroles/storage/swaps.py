"""New files take the place of old ones by renames: all of them, or none.

A journal lists the renames: if one fails, all are undone; if the machine stops between them,
whoever opens the folder next goes on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headroles.errors import StorageError
from headroles.storage.files import (
    cannot_be_written,
    keep_permissions,
    sync,
    write_json,
)
from headroles.storage.names import is_result_path
from headroles.storage.run import RUN_FILE

_NEW, _OLD, _JOURNAL = "new", "old", "swap.json"
_KEPT = "new-results"


class _Journal(msgspec.Struct):
    """Paths of the files that go, and of those that take their place, the run file last.

    With ``ends_parts`` the new files are what the parts of an unfinished run were for.
    """

    old: list[str]
    new: list[str]
    ends_parts: bool = False


@dataclass
class Swap:
    """Files of ``folder`` that change together, by way of its folder ``hidden``."""

    folder: Path
    hidden: Path
    is_done: bool = False

    @property
    def new(self) -> Path:
        """Where the new files stand until then."""
        return self.hidden / _NEW

    @property
    def old(self) -> Path:
        """Where the old files stand from then on."""
        return self.hidden / _OLD

    @property
    def is_begun(self) -> bool:
        """Whether there are renames that are not made yet, or not known to be."""
        return os.path.lexists(self._journal)

    @property
    def _journal(self) -> Path:
        return self.hidden / _JOURNAL

    def put(self, replaced: Iterable[str], ends_parts: bool) -> bool:
        """Put the new files into the place of those ``replaced``, all or none; see `go_on`.

        Raises StorageError if they cannot be put there, and leaves the old ones as they were.
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

    def go_on(self) -> bool:
        """Make the renames that are left. Returns whether they end an unfinished run.

        `end` is to be called when nothing else is left to do.
        """
        try:
            journal = msgspec.json.decode(self._journal.read_bytes(), type=_Journal)
            self._check(journal)
        except (StorageError, msgspec.DecodeError, OSError, ValueError, RecursionError) as error:
            raise StorageError(
                f"results in {self.folder} were being replaced when a run ended, and its list of "
                f"the files cannot be followed ({error}); take what you need out of {self.old} "
                f"and {self.new}, remove {self.hidden}, and run the command again"
            ) from error
        return self._follow(journal)

    def _check(self, journal: _Journal) -> None:
        """Raise StorageError for a journal that no run of headroles in this folder left."""
        for name in (*journal.old, *journal.new):
            if (reason := self._hindrance(name)) is not None:
                raise StorageError(reason)
        for name in journal.new:
            if not any((place / name).is_file() for place in (self.new, self.folder)):
                raise StorageError(f"there is no {name} any more")

    def _hindrance(self, name: str) -> str | None:
        """Why a file of results cannot be put at, or taken from, a path in the folder."""
        place = self.folder / name
        if not is_result_path(name):
            return f"{place} has a name that no file of results has"
        if place.is_dir() and not place.is_symlink():
            return f"{place} is a folder, and results have such a file"
        within = place.parent
        if within != self.folder and within.is_symlink():
            return f"{within} is a symbolic link, which headroles does not follow"
        if within.exists() and not within.is_dir():
            return f"{within} is a file, and results have such a folder"
        return None

    def end(self) -> None:
        """Forget the renames, which are made."""
        with contextlib.suppress(OSError):  # with nothing left to do, it does no harm
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
            self._journal.unlink(missing_ok=True)
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
