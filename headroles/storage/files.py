"""Files that appear whole or not at all: bytes, JSON, Parquet tables."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headroles.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

PathLike = str | os.PathLike[str]


@contextmanager
def written(place: Path) -> Iterator[None]:
    """Raise StorageError in place of an OSError of the block, which writes ``place``."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{place} cannot be written: {error.strerror or error}") from error


@contextmanager
def read_from(file: Path, *errors: type[Exception]) -> Iterator[None]:
    """Raise StorageError for errors of the block, which reads a file of a result folder.

    Such errors are OSError and ``errors``, which damaged content raises.
    """
    kinds: tuple[type[Exception], ...] = (OSError, *errors)
    try:
        yield
    except FileNotFoundError as error:
        raise StorageError(
            f"there is no {file.name} in {file.parent}; name a folder that headroles wrote"
        ) from error
    except kinds as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"{file} cannot be read: {reason}; score again") from error


def check_name(place: Path) -> None:
    """Raise StorageError for a path that is not UTF-8: Parquet and weights cannot be there.

    So for one with a null byte, which no system has.
    """
    if "\0" in str(place):
        raise StorageError(f"{str(place)!r} has a null byte; name another folder")
    try:
        str(place).encode("utf-8")
    except UnicodeEncodeError as error:
        raise StorageError(
            f"the name of {place} is not UTF-8, which the files in it need; rename the folder"
        ) from error


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes ``file`` only if the block succeeds.

    A link stays a link, and its target is replaced. The new file gets the permissions of the
    earlier one, if any, else those that the system gives to new files.
    """
    with written(file):
        file = Path(os.path.realpath(file)) if file.is_symlink() else file
        draft = file.with_name(f".{file.name[:40]}-{secrets.token_hex(4)}")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            yield draft
            keep_permissions(file, draft)
            sync(draft)
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)


def keep_permissions(old: Path, new: Path) -> None:
    """Give a file the permissions of the file that it will replace, if any."""
    if old.is_file() and not old.is_symlink():
        new.chmod(stat.S_IMODE(old.stat().st_mode))


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file with ``content``; a device or a pipe is written to directly."""
    if is_special(file):
        with written(file):
            file.write_bytes(content)
        return
    with whole_file(file) as draft:
        draft.write_bytes(content)


def exists(place: str | Path) -> bool:
    """Tell whether a name is one of a file or folder; false for names that no system has.

    Such are those that are too long, and those with a null byte.
    """
    return os.path.exists(place)  # noqa: PTH110  Path.exists raises errors for them


def is_file(place: str | Path) -> bool:
    """Tell as `exists` does whether a name is one of a file."""
    return os.path.isfile(place)  # noqa: PTH113


def is_folder(place: str | Path) -> bool:
    """Tell as `exists` does whether a name is one of a folder."""
    return os.path.isdir(place)  # noqa: PTH112


def is_special(file: Path) -> bool:
    """Tell whether ``file`` exists and is neither a regular file nor a folder."""
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def check_regular(file: Path) -> None:
    """Raise OSError for a pipe, a device or the like, which may block or never end.

    Call it before a library opens a file that someone else may have put there. Missing files and
    folders pass: opening them fails by itself.
    """
    if is_special(file):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", str(file))


def open_regular(file: Path) -> BufferedReader:
    """Open a regular file to read its bytes. Raises OSError as `check_regular` and ``open`` do."""
    check_regular(file)
    return file.open("rb")


def read_whole(file: Path) -> bytes:
    """Read the bytes of a file. Raises StorageError if it cannot be read."""
    with read_from(file), open_regular(file) as stream:
        return stream.read()


def sync(place: Path) -> None:
    """Flush a file, or the names in a folder, to the disk, so that they outlive a crash."""
    try:
        handle = os.open(place, os.O_RDONLY)
    except PermissionError:  # Windows cannot open folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def encode_json(content: Any) -> bytes:
    """Encode ``content`` as indented JSON in UTF-8, file names of any bytes included.

    NaN and infinity, which JSON lacks, become null.
    """
    text = json.dumps(plain(content), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")  # JSON reads such escapes of lone surrogates


def plain(content: Any) -> Any:
    """Return ``content`` as JSON has it: structs as objects, tuples as lists, NaN as None."""
    if isinstance(content, msgspec.Struct):
        leaves_out = content.__struct_config__.omit_defaults
        values = ((field, getattr(content, field.name)) for field in _fields_of(type(content)))
        return {
            field.encode_name: plain(value)
            for field, value in values
            if not (leaves_out and value in (field.default, [], {}))
        }
    if isinstance(content, Mapping):
        return {name: plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    if isinstance(content, str):
        return str(content)  # of a subclass too
    if isinstance(content, float):
        return float(content) if math.isfinite(content) else None  # of NumPy too
    return content


_fields_of = cache(msgspec.structs.fields)  # which evaluates the annotations of a class


def read_json(file: Path) -> dict[str, Any]:
    """Read a JSON object. Raises StorageError if there is none, or one that is nested too deep."""
    with read_from(file, ValueError, RecursionError):
        with open_regular(file) as stream:
            text = stream.read().decode("utf-8")
        content = json.loads(text, parse_constant=_refuse_constant)
        _check_depth(content)
    if not isinstance(content, dict):
        raise StorageError(f"{file} is not a JSON object; name a folder that headroles wrote")
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_depth(content: Any, levels: int = 50) -> None:
    if not levels:
        raise ValueError("its lists and objects are nested too deep")
    if isinstance(content, dict | list):
        for inner in content.values() if isinstance(content, dict) else content:
            _check_depth(inner, levels - 1)


# Parquet tables.


class TableWriter:
    """Writer that appends tables of one schema to a Parquet file, each as a row group.

    Columns ``of_measurements`` hold numbers that hardly ever repeat. Their first bytes are stored
    side by side, then their second bytes, and so on, which compresses well because they are
    similar.
    """

    def __init__(self, file: Path, of_measurements: Sequence[str] = ()) -> None:
        self._file = file
        self._of_measurements = of_measurements
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Append ``table``."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            plain_columns = [
                name for name in table.schema.names if name not in self._of_measurements
            ]
            self._writer = pq.ParquetWriter(
                self._file,
                table.schema,
                compression="zstd",
                use_dictionary=plain_columns if self._of_measurements else True,
                column_encoding=dict.fromkeys(self._of_measurements, "BYTE_STREAM_SPLIT") or None,
            )
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        pa.default_memory_pool().release_unused()

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


def read_table(file: Path) -> pa.Table:
    """Read a Parquet file. Raises StorageError if it is missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with read_from(file, pa.ArrowException):
        check_regular(file)
        table = pq.ParquetFile(file).read()
        table.validate(full=True)  # text that is not UTF-8, for one
    return table


def read_row_groups(file: Path) -> Iterator[pa.Table]:
    """Yield the tables that `TableWriter` appended to a file; raises errors as `read_table`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with read_from(file, pa.ArrowException):
        check_regular(file)
        stored = pq.ParquetFile(file)
        for number in range(stored.num_row_groups):
            table = stored.read_row_group(number)
            table.validate(full=True)
            yield table
