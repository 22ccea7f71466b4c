"""Checks of hidden folders for entries that headroles did not make, which it never follows.

A folder from someone else may contain links to files of the person who opens it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from headroles.errors import StorageError

_FILES, _FOLDERS = ("lock", "swap.json"), ("new", "old", "parts")


def refuse_foreign(hidden: Path) -> None:
    """Raise StorageError for links, devices and the like in the folder ``hidden`` or instead of it.

    The same holds for a folder in place of a file of headroles, and a file in place of a folder.
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
