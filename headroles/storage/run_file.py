"""The file ``run.json`` of a result folder, and checks that its files were not changed."""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeGuard

import msgspec

from headroles.errors import StorageError
from headroles.storage.files import (
    check_name,
    encode_json,
    exists,
    is_file,
    open_regular,
    plain,
    read_from,
    read_json,
    write_bytes,
)
from headroles.storage.hidden import ADDED, HIDDEN, REPLACED, check_hidden_folder

FORMAT = 4
"""Format of result folders. A folder of another format is rejected, never converted."""
RUN_FILE = "run.json"
_NAME = re.compile(r"[^./\\:][^/\\:]{0,98}")
REPORT_FILE = "report.html"
"""Default name of the report page in a result folder."""

Files = dict[str, dict[str, str]]
"""The SHA-256 of each file, by its name, of each kind of result."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Number of items, as a run file can store it."""


class Run(NamedTuple):
    """Content of the run file: the record, and the files, of each kind of result."""

    content: dict[str, Any]
    files: Files


def write_run(
    folder: Path, records: Mapping[str, Any], files: Mapping[str, Mapping[str, str]]
) -> None:
    """Write the run file of a result folder; ``records`` and ``files`` are as in `Run`.

    It includes a digest of its other content, which shows if the file was changed.
    """
    content = {"format": FORMAT, "holds": files, **plain(records)}
    content["digest"] = _digest_of_content(content)
    write_bytes(folder / RUN_FILE, encode_json(content))


def read_run(folder: Path, kinds: Collection[str] = ()) -> Run:
    """Read the record of ``folder``, of ``kinds`` as by `committed`.

    Raises StorageError if it is missing, changed or unreadable.
    """
    if is_file(folder):
        raise StorageError(f"{folder} is a file; name the folder that headroles wrote")
    file = committed(folder, kinds) / RUN_FILE
    content = read_json(file)
    if content.get("format") != FORMAT:
        raise StorageError(
            f"{file} has format {content.get('format')!s:.20}, this version reads {FORMAT}; "
            "score again, or use the version of headroles that wrote it"
        )
    if content.pop("digest", None) != _digest_of_content(content):
        raise StorageError(f"{file} was changed after headroles wrote it; score again")
    del content["format"]
    files = content.pop("holds", None)
    if not _are_files(files):
        raise StorageError(f"{file} does not list the files of the folder; score again")
    return Run(content, files)


def _are_files(files: Any) -> TypeGuard[Files]:
    """Tell whether names are those of files in the folder itself, and not hidden."""
    try:
        names = chain(*msgspec.convert(files, Files).values())
    except msgspec.ValidationError:
        return False
    return all(_NAME.fullmatch(name) and name.isprintable() for name in names)


def committed(folder: Path, kinds: Collection[str] = ()) -> Path:
    """Return where to read the results of ``folder``: in it, or where a killed run left them.

    With ``kinds``, what a killed run left counts only if its run file names one of them. Nothing is
    moved for that. Raises StorageError as `check_hidden_folder`, `check_name` and
    `check_in_the_way`.
    """
    check_name(folder)
    for name in (REPLACED, ADDED):
        waiting = folder / HIDDEN / name
        if os.path.lexists(waiting):
            check_hidden_folder(folder / HIDDEN)
            if kinds and _files_in(waiting).keys().isdisjoint(kinds):
                return folder
            check_in_the_way(folder, waiting, f"results that wait in {waiting}")
            return waiting
    return folder


def check_in_the_way(folder: Path, source: Path, whose: str) -> None:
    """Raise StorageError if a file in ``folder`` that is no result has the name of one in
    ``source``; the message says ``whose`` way it is in.

    Files of the same content are in nobody's way: a killed run may have moved them.
    """
    for file in source.iterdir():
        place = folder / file.name
        is_same = place.is_file() and file.is_file() and filecmp.cmp(place, file, False)
        if not is_same:
            check_free(place, whose)


def check_free(place: Path, whose: str) -> None:
    """Raise StorageError if there is anything at ``place`` but an unchanged file of results."""
    if os.path.lexists(place) and not is_own(place):
        raise StorageError(
            f"{place} is in the way of {whose}: headroles did not write it, or it was changed "
            "since; move it elsewhere"
        )


def is_own(file: Path) -> bool:
    """Tell whether headroles wrote ``file``, by the run file beside it, and nobody changed it.

    That a run file lists a name is not enough: it may be from someone else.
    """
    if file.name == RUN_FILE:
        try:
            content = read_json(file)
        except StorageError:
            return False
        return bool(content.pop("digest", None) == _digest_of_content(content))
    listed = chain(*(digests.items() for digests in _files_in(file.parent).values()))
    return file.is_file() and (file.name, _digest(file)) in listed


def kinds_in(folder: Path, kinds: Collection[str] = ()) -> tuple[str, ...]:
    """Return the kinds of results that ``folder`` holds by its record; empty without one.

    With ``kinds``, return those among them, as by `committed`.
    """
    held = _files_in(committed(folder, kinds))
    return tuple(kind for kind in held if not kinds or kind in kinds)


def result_files(folder: Path) -> list[str]:
    """List the files of the results in ``folder`` that its run file names, itself included."""
    return [RUN_FILE, *chain(*_files_in(folder).values())] if exists(folder / RUN_FILE) else []


def unchanged_files(folder: Path) -> set[str]:
    """Return the names of the files that the run file lists, without those that were changed."""
    return {name for name in chain(*_files_in(folder).values()) if is_own(folder / name)}


def _files_in(folder: Path) -> Files:
    """Read the files of each kind of result without checks; empty if they cannot be read."""
    try:
        files = read_json(folder / RUN_FILE).get("holds")
    except StorageError:
        return {}
    return files if _are_files(files) else {}


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each of these files."""
    return {name: _digest(folder / name) for name in names}


def check_files(folder: Path, digests: Mapping[str, str]) -> None:
    """Raise StorageError if any of these files is missing or was changed."""
    for name, digest in digests.items():
        with read_from(folder / name):
            actual = _digest(folder / name)
        if actual != digest:
            raise StorageError(
                f"{folder / name} was changed after headroles wrote it, or belongs to another run "
                f"than {RUN_FILE} beside it; make the results again"
            )


def _digest(file: Path) -> str:
    with open_regular(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_of_content(content: Mapping[str, Any]) -> str:
    # in the form that is read back: tuples become lists, and numbers as keys become text
    read_back = json.loads(encode_json(content))
    return hashlib.sha256(json.dumps(read_back, sort_keys=True).encode()).hexdigest()
