"""The folder ``.headroles`` in a result folder, for what is not a result, or not yet.

A folder from someone else may hold one too, so it is checked before anything in it is used: links
may lead to files of the person who opens it, and a lock may be a second name of such a file.
"""

from __future__ import annotations

import stat
from itertools import chain
from pathlib import Path

from filelock import SoftFileLock

from headroles.errors import StorageError

HIDDEN = ".headroles"
NEW = "new"
"""Folder in it that a run writes into."""
REPLACED, ADDED = "done", "added"
"""Folders in it of complete results: all that a run made, or those that a run changed."""
PLACED = "placed"
"""Folder in it of results whose files have their names."""
PARTS = "parts"
"""Folder in it of unfinished work."""
LOCK, DRAFT = "lock", "draft"
"""Files in it: the claim of the run that writes, and a result on its way to its name."""
_FOLDERS, _FILES = (NEW, REPLACED, ADDED, PLACED, PARTS), (LOCK, DRAFT)


def check_hidden_folder(hidden: Path) -> None:
    """Raise StorageError for anything in the folder ``hidden`` that headroles does not make there.

    These are links, pipes and devices, also instead of the folder; a file in place of a folder or
    a folder in place of a file; and a lock that has another name elsewhere, or content. Only where
    the file system has no locks, a lock names the process that holds it.
    """
    for place in chain([hidden], hidden.rglob("*")):
        if kind := _foreign_kind(place, hidden):
            raise StorageError(
                f"{place} is {kind}, which headroles does not make there; nothing was "
                "followed or changed. Remove it, and run the command again"
            )


def _foreign_kind(place: Path, hidden: Path) -> str:
    """Say what is at ``place`` that headroles does not make there; empty for what it makes."""
    try:
        found = place.lstat()
    except FileNotFoundError:  # there is none, or another run has just removed it
        return ""
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    is_on_top = place.parent == hidden
    if stat.S_ISDIR(found.st_mode):
        return "a folder" if is_on_top and place.name in _FILES else ""
    is_folder = place == hidden or (is_on_top and place.name in _FOLDERS)
    if is_folder or not stat.S_ISREG(found.st_mode):
        return "a file, a pipe or the like"
    if is_on_top and place.name == LOCK:
        if found.st_nlink > 1:
            return "a second name of another file"
        is_claim = not found.st_size or SoftFileLock(place).pid is not None
        return "" if is_claim else "a file with content"
    return ""
