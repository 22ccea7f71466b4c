"""Files that appear whole or not at all: JSON, Parquet and text, and folders of them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 2
"""Of result folders. A folder of another format is refused, and never converted."""
RUN_FILE = "run.json"
_FILES_OF_FORMAT_1 = (
    "scores.parquet",
    "examples.parquet",
    "roles.csv",
    "roles.parquet",
    "shifts.csv",
    "shifts.parquet",
)


@dataclass(frozen=True)
class Run:
    """What a result folder says of itself: where it came from, and what it holds.

    ``files`` are the names of the files of each kind of result, with their SHA-256.
    """

    provenance: dict[str, Any]
    files: dict[str, dict[str, str]]


@contextmanager
def result_folder(folder: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write results into, which becomes ``folder`` only when the block succeeds.

    Until then the files stand in a hidden folder, which is removed if the block fails or is
    interrupted. With ``overwrite``, the results that ``folder`` held are replaced; other files in
    it stay.

    Raises StorageError at once if ``folder`` is not empty and ``overwrite`` is not set, if it is
    a file, or if it cannot be written.
    """
    folder = Path(folder).absolute()
    staging = _new_staging(folder, overwrite)
    try:
        yield staging
        staging.chmod(0o755)
        _move_into(staging, folder)
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def added_to(folder: Path) -> Iterator[Path]:
    """A folder to write into, whose files replace those of ``folder`` when the block succeeds."""
    staging = _new_staging(folder.absolute(), overwrite=True)
    try:
        yield staging
        _replace_files(staging, folder)
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def check_result_folder(folder: str | Path, overwrite: bool = False) -> None:
    """Raise StorageError if `result_folder` would refuse ``folder``: to ask before long work."""
    shutil.rmtree(_new_staging(Path(folder).absolute(), overwrite), ignore_errors=True)


def _new_staging(folder: Path, overwrite: bool) -> Path:
    """An empty hidden folder on the file system of ``folder``: in it, or as near as there is."""
    try:
        if folder.exists() and not folder.is_dir():
            raise StorageError(f"{folder} is a file; name a folder for the results")
        if folder.is_dir() and any(folder.iterdir()) and not overwrite:
            raise StorageError(
                f"folder {folder} is not empty; "
                "name another one or pass overwrite=True (--overwrite)"
            )
        place = next(place for place in (folder, *folder.parents) if place.exists())
        return Path(tempfile.mkdtemp(prefix=".headroles-", dir=place))
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror or error}") from error


def _move_into(staging: Path, folder: Path) -> None:
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging.rename(folder)
        return
    for name in _result_files(folder):  # none of an earlier run may pass for a result of this one
        (folder / name).unlink(missing_ok=True)
    _replace_files(staging, folder)


def _replace_files(staging: Path, folder: Path) -> None:
    # Nothing can be read without the run file: it comes last.
    for file in sorted(staging.iterdir(), key=lambda file: file.name == RUN_FILE):
        file.replace(folder / file.name)


def kinds_in(folder: Path) -> tuple[str, ...]:
    """The kinds of results that ``folder`` says it holds; none if it says nothing."""
    try:
        content = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        if content.get("format") == FORMAT:
            return tuple(content["holds"])
        return ("scores",) if "scores" in content else ()  # as format 1 counted them
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return ()


def _result_files(folder: Path) -> list[str]:
    """Names of the files that the results in ``folder`` consist of; none that it did not write."""
    try:
        content = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        if content.get("format") == FORMAT:
            held = (name for own in content["holds"].values() for name in own)
            return [RUN_FILE, *(name for name in held if Path(name).name == name)]
        is_earlier = "schema" in content
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        is_earlier = False
    return [RUN_FILE, *_FILES_OF_FORMAT_1] if is_earlier else [RUN_FILE]


def write_run(
    folder: Path, provenance: Mapping[str, Any], files: Mapping[str, Mapping[str, str]]
) -> None:
    """Write what a result folder says of itself; ``files`` are those of `Run`."""
    write_json(folder / RUN_FILE, {"format": FORMAT, "holds": files, **provenance})


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of each of these files."""
    return {name: _digest(folder / name) for name in names}


def read_run(folder: Path) -> Run:
    """What ``folder`` says of itself. Raises StorageError if that cannot be had."""
    content = read_json(folder / RUN_FILE)
    found = content.pop("format", content.get("schema"))
    if found != FORMAT:
        raise StorageError(
            f"{folder / RUN_FILE} has format {found}, this version reads {FORMAT}; "
            "score again, or use the version of headroles that wrote it"
        )
    files = content.pop("holds", None)
    if not isinstance(files, dict) or not all(isinstance(own, dict) for own in files.values()):
        raise StorageError(f"{folder / RUN_FILE} does not say what the folder holds; score again")
    return Run(content, files)


def check_files(folder: Path, digests: Mapping[str, str]) -> None:
    """Raise StorageError if any of these files is missing, or is not what was written."""
    for name, digest in digests.items():
        file = folder / name
        try:
            found = _digest(file)
        except FileNotFoundError as error:
            raise _missing(file) from error
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


def _missing(file: Path) -> StorageError:
    return StorageError(
        f"there is no {file.name} in {file.parent}; name a folder that headroles wrote"
    )


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """A path to write to, which becomes ``file`` only when the block succeeds."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
        os.close(handle)
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror or error}") from error
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o644)
        draft.replace(file)
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file of ``content``."""
    with whole_file(file) as draft:
        draft.write_bytes(content)


def write_json(file: Path, content: Any) -> None:
    """Write ``content`` as indented JSON."""
    write_bytes(file, encode_json(content))


def encode_json(content: Any) -> bytes:
    """``content`` as indented JSON in UTF-8, whatever bytes the file names in it were made of."""
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    return text.encode("utf-8", "backslashreplace")  # what UTF-8 lacks, JSON escapes like this


def read_json(file: Path) -> dict[str, Any]:
    """Read a JSON object. Raises StorageError if there is none."""
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise _missing(file) from error
    except (OSError, ValueError) as error:
        raise StorageError(f"{file} cannot be read: {error}; score again") from error
    if not isinstance(content, dict):
        raise StorageError(f"{file} holds no JSON object; name a folder that headroles wrote")
    return content


class TableWriter:
    """Appends tables of one schema to a Parquet file, each as a row group of its own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Append ``table``."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, table.schema, compression="zstd")
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        pa.default_memory_pool().release_unused()

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


def read_table(file: Path) -> pa.Table:
    """Read a Parquet file. Raises StorageError if there is none or it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(file)
    except FileNotFoundError as error:
        raise _missing(file) from error
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{file} cannot be read: {error}; score again") from error
