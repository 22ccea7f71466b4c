"""``run.json``: what a result folder says of itself, and whether its files are what was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from headroles.errors import StorageError
from headroles.storage.files import encode_json, missing, read_json, write_json
from headroles.storage.names import is_result_name

FORMAT = 2
"""Of result folders. A folder of another format is refused, and never converted."""
RUN_FILE = "run.json"
REPORT_FILE = "report.html"
"""What the page about results is called in their folder, if nobody says otherwise."""
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
"""A number of things, as a run file can say it."""


@dataclass(frozen=True)
class Run:
    """What a result folder says of itself: where it came from, and what it holds.

    ``files`` are the names of the files of each kind of result, with their SHA-256.
    """

    provenance: dict[str, Any]
    files: dict[str, dict[str, str]]


def write_run(
    folder: Path, provenance: Mapping[str, Any], files: Mapping[str, Mapping[str, str]]
) -> None:
    """Write what a result folder says of itself; ``files`` are those of `Run`.

    The digest in it is that of all else: a run file that was changed is not believed.
    """
    content = {"format": FORMAT, "holds": files, **provenance}
    write_json(folder / RUN_FILE, {**content, "digest": _digest_of_content(content)})


def read_run(folder: Path) -> Run:
    """What ``folder`` says of itself. Raises StorageError if that cannot be had."""
    file = folder / RUN_FILE
    content = read_json(file)
    found = content.get("format", content.get("schema"))
    if found != FORMAT:
        raise StorageError(
            f"{file} has format {found!s:.20}, this version reads {FORMAT}; "
            "score again, or use the version of headroles that wrote it"
        )
    if content.pop("digest", None) != _digest_of_content(content):
        raise StorageError(f"{file} is not what headroles wrote: it was changed; score again")
    del content["format"]
    files = content.pop("holds", None)
    if not _are_files(files):
        raise StorageError(f"{file} does not say what the folder holds; score again")
    return Run(content, files)


def check_record(folder: Path, provenance: Mapping[str, Any], form: type[S]) -> S:
    """What ``folder`` says of itself in the form that it must have.

    Raises StorageError, naming what differs, where it has not.
    """
    try:
        return msgspec.convert(provenance, form)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise StorageError(
            f"{folder / RUN_FILE} is not of the form that this version writes ({error}); "
            "score again"
        ) from error


def _are_files(files: Any) -> bool:
    return isinstance(files, dict) and all(
        isinstance(own, dict)
        and all(is_result_name(name) and isinstance(own[name], str) for name in own)
        for own in files.values()
    )


def kinds_in(folder: Path) -> tuple[str, ...]:
    """The kinds of results that ``folder`` says it holds; none if it says nothing."""
    content = _content_at_least(folder)
    if content.get("format") == FORMAT:
        return tuple(content["holds"]) if _are_files(content.get("holds")) else ()
    return ("scores",) if "scores" in content else ()  # as format 1 counted them


def result_files(folder: Path) -> list[str]:
    """Names of the files that the results in ``folder`` consist of; none that it did not write."""
    content = _content_at_least(folder)
    if not content:
        return [RUN_FILE] if (folder / RUN_FILE).exists() else []
    held: Any = content.get("holds")
    names: Iterable[str] = ()
    if content.get("format") == FORMAT and _are_files(held):
        names = [name for own in held.values() for name in own]
    elif "schema" in content:
        names = _FILES_OF_FORMAT_1
    return [RUN_FILE, *(name for name in names if (folder / name).exists())]


def _content_at_least(folder: Path) -> dict[str, Any]:
    """What stands in the run file, whatever it is worth; nothing if it cannot be read."""
    try:
        return read_json(folder / RUN_FILE)
    except StorageError:
        return {}


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of each of these files."""
    return {name: _digest(folder / name) for name in names}


def check_files(folder: Path, digests: Mapping[str, str]) -> None:
    """Raise StorageError if any of these files is missing, or is not what was written."""
    for name, digest in digests.items():
        file = folder / name
        try:
            found = _digest(file)
        except FileNotFoundError as error:
            raise missing(file) from error
        except OSError as error:
            raise StorageError(f"{file} cannot be read: {error}; score again") from error
        if found != digest:
            raise StorageError(
                f"{file} is not what headroles wrote: it was changed, or is of another run than "
                f"{RUN_FILE} beside it; make the results again"
            )


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_of_content(content: Mapping[str, Any]) -> str:
    # As it is read back: tuples are lists there, and numbers as keys are text.
    plain = json.loads(encode_json(content))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def has_old_report(folder: Path) -> bool:
    """Whether the page about results in ``folder`` was made before these were written."""
    report, run = folder / REPORT_FILE, folder / RUN_FILE
    return report.is_file() and run.is_file() and report.stat().st_mtime < run.stat().st_mtime
