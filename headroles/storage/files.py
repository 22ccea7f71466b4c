"""Files that appear whole or not at all, and JSON."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headroles.errors import StorageError


def cannot_be_written(place: Path, error: OSError) -> StorageError:
    """The error for a file or folder that the system does not let be written."""
    return StorageError(f"{place} cannot be written: {error.strerror or error}")


def missing(file: Path) -> StorageError:
    """The error for a file that a result folder should have."""
    return StorageError(
        f"there is no {file.name} in {file.parent}; name a folder that headroles wrote"
    )


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """A path to write to, which becomes ``file`` only when the block succeeds.

    A link stays a link: what it leads to is replaced.
    """
    try:
        file = file.resolve() if file.is_symlink() else file
        handle, name = tempfile.mkstemp(prefix=f".{file.name[:40]}-", dir=file.parent)
        os.close(handle)
    except (OSError, RuntimeError) as error:
        raise cannot_be_written(file, error if isinstance(error, OSError) else OSError()) from error
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o644)
        sync(draft)
        draft.replace(file)
    except OSError as error:
        raise cannot_be_written(file, error) from error
    finally:
        draft.unlink(missing_ok=True)


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file of ``content``; what is no file, such as a device or a pipe, is written to."""
    if is_special(file):
        try:
            file.write_bytes(content)
        except OSError as error:
            raise cannot_be_written(file, error) from error
        return
    with whole_file(file) as draft:
        draft.write_bytes(content)


def is_special(file: Path) -> bool:
    """Whether there is something at ``file`` that is neither a file nor a folder."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def sync(place: Path) -> None:
    """Have the system put a file, or the names in a folder, where they outlive a crash."""
    try:
        handle = os.open(place, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
        raise missing(file) from error
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(f"{file} cannot be read: {error}; score again") from error
    if not isinstance(content, dict):
        raise StorageError(f"{file} holds no JSON object; name a folder that headroles wrote")
    return content
