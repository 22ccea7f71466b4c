"""Result folders that tests of storage make, and what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headroles.storage import digests_of, result_folder, write_run


def everything(folder: Path) -> dict[str, Any]:
    """All that is in a folder, without following links."""
    found: dict[str, Any] = {}
    for place in sorted(folder.rglob("*")):
        name = str(place.relative_to(folder))
        if place.is_symlink():
            found[name] = place.readlink()
        else:
            found[name] = place.read_bytes() if place.is_file() else None
    return found


def make_result(folder: Path, run: str, files: Sequence[str]) -> None:
    """Write a kind of results for each of ``files``, all of a run."""
    for name in files:
        (folder / name).write_text(run)
    write_run(folder, {"run": run}, {name: digests_of(folder, [name]) for name in files})


def replace(folder: Path, resume: bool | None = False) -> None:
    """Replace the results in a folder by one of a new run."""
    with result_folder(folder, overwrite=True, resume=resume) as staging:
        make_result(staging, "new", ["roles.csv"])
