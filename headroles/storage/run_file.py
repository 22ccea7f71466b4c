"""The file ``run.json`` of a result folder, and checks that its files were not changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from headroles.errors import StorageError
from headroles.storage.files import (
    cannot_be_read,
    encode_json,
    missing,
    plain,
    read_json,
    write_json,
)
from headroles.storage.names import is_result_name

FORMAT = 3
"""Format of result folders. A folder of another format is rejected, never converted."""
RUN_FILE = "run.json"
REPORT_FILE = "report.html"
"""Default name of the report page in a result folder."""
_FILES_OF_FORMAT_1 = (
    "scores.parquet",
    "examples.parquet",
    "roles.csv",
    "roles.parquet",
    "shifts.csv",
    "shifts.parquet",
)

S = TypeVar("S", bound=msgspec.Struct)
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Number of items, as a run file can store it."""


@dataclass(frozen=True)
class Run:
    """Content of the run file of a result folder: the record, and the files that it holds.

    ``files`` are the names of the files of each kind of result, with their SHA-256.
    """

    content: dict[str, Any]
    files: dict[str, dict[str, str]]


def write_run(
    folder: Path,
    record: Mapping[str, Any] | msgspec.Struct,
    files: Mapping[str, Mapping[str, str]],
) -> None:
    """Write the run file of a result folder; ``files`` are those of `Run`.

    It includes a digest of its other content, which shows if the file was changed.
    """
    content = {"format": FORMAT, "holds": files, **plain(record)}
    write_json(folder / RUN_FILE, {**content, "digest": _digest_of_content(content)})


def read_run(folder: Path) -> Run:
    """Read the record of ``folder``. Raises StorageError if missing, changed or unreadable."""
    file = folder / RUN_FILE
    content = read_json(file)
    found = content.get("format", content.get("schema"))
    if found != FORMAT:
        raise StorageError(
            f"{file} has format {found!s:.20}, this version reads {FORMAT}; "
            "score again, or use the version of headroles that wrote it"
        )
    if content.pop("digest", None) != _digest_of_content(content):
        raise StorageError(f"{file} was changed after headroles wrote it; score again")
    del content["format"]
    files = content.pop("holds", None)
    if not _are_files(files):
        raise StorageError(f"{file} does not list the files of the folder; score again")
    return Run(content, files)


def read_record(folder: Path, content: Mapping[str, Any], form: type[S]) -> S:
    """Return the record of ``folder``, of which nothing may be missing, by the types of ``form``.

    Raises StorageError, naming the difference, if it does not have them.
    """
    try:
        for name in form.__struct_encode_fields__:
            if name not in content:
                raise msgspec.ValidationError(f"Object missing required field `{name}`")
        return msgspec.convert(content, form)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise StorageError(
            f"{folder / RUN_FILE} does not have the form that this version writes ({error}); "
            "score again"
        ) from error


def _are_files(files: Any) -> bool:
    return isinstance(files, dict) and all(
        isinstance(own, dict)
        and all(is_result_name(name) and isinstance(own[name], str) for name in own)
        for own in files.values()
    )


def kinds_in(folder: Path) -> tuple[str, ...]:
    """Return the kinds of results that ``folder`` holds by its record; empty without one."""
    content = _content_at_least(folder)
    if "format" in content:
        return tuple(content["holds"]) if _are_files(content.get("holds")) else ()
    return ("scores",) if "scores" in content else ()  # a count of scores in format 1


def result_files(folder: Path) -> list[str]:
    """List the files of the results in ``folder``, without files that headroles did not write."""
    content = _content_at_least(folder)
    if not content:
        return [RUN_FILE] if (folder / RUN_FILE).exists() else []
    held: Any = content.get("holds")
    names: Iterable[str] = ()
    if "format" in content and _are_files(held):
        names = [name for own in held.values() for name in own]
    elif "schema" in content:
        names = _FILES_OF_FORMAT_1
    return [RUN_FILE, *(name for name in names if (folder / name).exists())]


def _content_at_least(folder: Path) -> dict[str, Any]:
    """Read the run file without checks; empty if it cannot be read."""
    try:
        return read_json(folder / RUN_FILE)
    except StorageError:
        return {}


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each of these files."""
    return {name: _digest(folder / name) for name in names}


def check_files(folder: Path, digests: Mapping[str, str]) -> None:
    """Raise StorageError if any of these files is missing or was changed."""
    for name, digest in digests.items():
        file = folder / name
        try:
            found = _digest(file)
        except FileNotFoundError as error:
            raise missing(file) from error
        except OSError as error:
            raise cannot_be_read(file, error) from error
        if found != digest:
            raise StorageError(
                f"{file} was changed after headroles wrote it, or belongs to another run than "
                f"{RUN_FILE} beside it; make the results again"
            )


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_of_content(content: Mapping[str, Any]) -> str:
    # in the form that is read back: tuples become lists, and numbers as keys become text
    plain = json.loads(encode_json(content))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def has_old_report(folder: Path) -> bool:
    """Tell whether the report in ``folder`` is older than its results."""
    report, run = folder / REPORT_FILE, folder / RUN_FILE
    return report.is_file() and run.is_file() and report.stat().st_mtime < run.stat().st_mtime
