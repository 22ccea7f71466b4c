"""Files that appear whole or not at all: JSON, Parquet and text, and folders of them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1

SCORES_FILE = "scores.parquet"
EXAMPLES_FILE = "examples.parquet"
RUN_FILE = "run.json"
ROLES_CSV = "roles.csv"
ROLES_FILE = "roles.parquet"
SHIFTS_CSV = "shifts.csv"
SHIFTS_FILE = "shifts.parquet"
RESULT_FILES = (
    SCORES_FILE,
    EXAMPLES_FILE,
    RUN_FILE,
    ROLES_CSV,
    ROLES_FILE,
    SHIFTS_CSV,
    SHIFTS_FILE,
)


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
    for name in RESULT_FILES:  # none of an earlier run may pass for a result of this one
        (folder / name).unlink(missing_ok=True)
    # Nothing can be read without the run file: it comes last.
    for file in sorted(staging.iterdir(), key=lambda file: file.name == RUN_FILE):
        file.replace(folder / file.name)


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
    """Read a JSON object of this schema. Raises StorageError if there is none."""
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StorageError(
            f"there is no {file.name} in {file.parent}; name a folder that headroles wrote"
        ) from error
    except (OSError, ValueError) as error:
        raise StorageError(f"{file} cannot be read: {error}; score again") from error
    if not isinstance(content, dict):
        raise StorageError(f"{file} holds no JSON object; name a folder that headroles wrote")
    if content.get("schema") != SCHEMA_VERSION:
        raise StorageError(
            f"{file} has schema {content.get('schema')}, this version reads {SCHEMA_VERSION}; "
            "score again, or use the version of headroles that wrote it"
        )
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
        raise StorageError(
            f"there is no {file.name} in {file.parent}; name a folder that headroles wrote"
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{file} cannot be read: {error}; score again") from error
