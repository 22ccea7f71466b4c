"""Finding corpus files and reading their lines, with errors that name the file."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from headroles import storage
from headroles.corpus.sentence import CorpusSource
from headroles.errors import CorpusError
from headroles.role_names import is_relation
from headroles.storage import PathLike as PathLike
from headroles.wording import has_halves, listed, printable

STANDARD_INPUT = "-"
HUB_PREFIX = "hf:"
"""Begins the name of a data set on the hub of Hugging Face: hf:NAME or hf:NAME:SPLIT."""
COMPRESSED = (".gz", ".bz2", ".xz")
_MOST_IGNORED = 20
"""Number of ignored files of a folder that a record names."""

_PACKINGS: dict[bytes, Any] = {
    rb"\x1f\x8b\x08": gzip.open,
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": bz2.open,
    rb"\xfd7zXZ\x00": lzma.open,
}
"""Patterns of the first bytes of compressed files: standard input has no name."""


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus, compressed or not.

    ``shown`` is its name in messages; ``name`` is unique in the corpus, and begins the ids of
    sentences without one.
    """

    path: Path
    shown: str
    name: str

    def __str__(self) -> str:
        return self.shown

    def lines(self) -> Iterator[str]:
        """Yield the lines as UTF-8 without line ends; a byte-order mark is ignored.

        Raises CorpusError that names the line if it is not UTF-8, cannot be read or is empty.
        """
        number = 0
        try:
            # split bytes, at \n only: in text, characters such as U+2028 would end lines too
            with _open(self.path) as stream:
                for number, raw in enumerate(stream, start=1):
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                    yield line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{self}, line {number}: byte {error.object[error.start]:#04x} at column "
                f"{error.start + 1} is not UTF-8; convert the file to UTF-8"
            ) from error
        except ValueError as error:  # a name with a null byte
            raise _unreadable(repr(str(self.path)), error) from error
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno:
                raise _unreadable(self, error) from error
            raise CorpusError(
                f"{self} is compressed, and damaged after line {number} ({error}); get it again"
            ) from error
        if not number:
            raise CorpusError(f"{self} is empty")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of any text file as `CorpusFile.lines` does."""
    return CorpusFile(path, str(path), path.stem).lines()


def _open(path: Path) -> IO[bytes]:
    check_not_special(path)
    with path.open("rb") as stream:
        beginning = stream.read(10)
    unpack = next((_PACKINGS[mark] for mark in _PACKINGS if re.match(mark, beginning)), open)
    unpacked: IO[bytes] = unpack(path, "rb")
    return unpacked


def _unreadable(path: object, error: OSError | ValueError) -> CorpusError:
    return CorpusError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")


def find_files(
    paths: PathLike | Iterable[PathLike], *suffixes: str
) -> tuple[list[CorpusFile], CorpusSource]:
    """Find files; folders are replaced by their files with one of ``suffixes``, sorted.

    Files may be compressed, as ``.gz``, ``.bz2`` or ``.xz``; ``-`` is standard input, which is read
    at once. Also returns the part of the record of a corpus about its files and folders.

    Raises CorpusError for a path that does not exist, a folder without such a file, a file given
    twice, or no path at all.
    """
    file_paths: list[Path] = []
    folders: list[dict[str, Any]] = []
    for path in map(Path, [paths] if isinstance(paths, str | os.PathLike) else paths):
        try:
            is_whole = _is_input(path) or is_dataset(path)
            if is_whole or not stat.S_ISDIR(path.stat().st_mode):
                file_paths.append(path)
            else:
                folders.append(_look_into(path, suffixes, file_paths))
        except FileNotFoundError:
            advice = f"give a file or a folder of {suffixes[0]} files"
            if is_relation(str(path)):
                advice = f"separate relations with commas: `relations='nsubj,{path}'`"
            raise CorpusError(f"{path} does not exist; {advice}") from None
        except CorpusError:
            raise
        except (OSError, ValueError) as error:  # a folder without permission, a name of no file
            raise _unreadable(path, error) from error
    if not file_paths:
        raise CorpusError("no corpus was given; give at least one file or folder")
    files = [
        _standard_input() if _is_input(path) else CorpusFile(path, printable(path), name)
        for path, name in _unique_names(file_paths).items()
    ]
    # control characters stay in records, so that the file is found again; halves cannot
    names = [
        str(file if _is_input(path) or has_halves(str(path)) else path)
        for path, file in zip(file_paths, files, strict=True)
    ]
    return files, {"files": names, **({"folders": folders} if folders else {})}


def _is_input(path: Path) -> bool:
    return str(path) == STANDARD_INPUT


def is_dataset(path: PathLike) -> bool:
    """Tell whether a path names a data set of Hugging Face: on the hub, or saved in a folder."""
    names = ("dataset_dict.json", "dataset_info.json")
    return str(path).startswith(HUB_PREFIX) or any(
        os.path.exists(Path(path) / name)  # noqa: PTH110  false for names that are too long
        for name in names
    )


def check_not_special(path: Path) -> None:
    """Raise CorpusError for a pipe, a device or the like, which may block or never end."""
    if storage.is_special(path):
        raise CorpusError(
            f"{path} is a pipe or a device, not a regular file; copy it to a file, or give a "
            "corpus as - (standard input)"
        )


def kind_of(path: PathLike) -> str:
    """Return the extension that names the content of a file, in lower case, without compression."""
    return _uncompressed(Path(path)).suffix.lower()


def _uncompressed(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


def _look_into(folder: Path, suffixes: Sequence[str], file_paths: list[Path]) -> dict[str, Any]:
    """Add the files of a folder to ``file_paths``; return the part of a record about the folder."""
    inside = sorted(folder.iterdir())
    taken = [file for file in inside if kind_of(file) in suffixes and file.is_file()]
    ignored = [path for path in inside if not (path in taken or path.name.startswith("."))]
    inner = [path for path in ignored if path.is_dir()]
    if not taken:
        holding = [path for path in inner if {*map(kind_of, path.iterdir())} & {*suffixes}]
        advice = f"its folders do: {listed(holding)}" if holding else "name the files themselves"
        if (folder / "config.json").is_file():
            advice = "it holds a model; give the model first, then the corpus"
        raise CorpusError(f"folder {folder} holds no {suffixes[0]} file; {advice}")
    file_paths += taken
    return {
        "folder": printable(folder),
        "taken": len(taken),
        "left": [
            printable(path.name + ("/" if path in inner else ""))
            for path in ignored[:_MOST_IGNORED]
        ],
        "n_left": len(ignored),
    }


def _standard_input() -> CorpusFile:
    """Copy standard input to a file: it can be read only once, a corpus is read repeatedly.

    The copy is removed together with the object that is returned.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix="headroles-")
        file = CorpusFile(Path(name), "standard input", "stdin")
        weakref.finalize(file, file.path.unlink, missing_ok=True)
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
    except OSError as error:
        raise CorpusError(
            f"standard input cannot be copied to a file: {error.strerror or error}"
        ) from error
    return file


def _unique_names(paths: Sequence[Path]) -> dict[Path, str]:
    """Name files by their stems, with as many parent folders as make the names unique.

    Raises CorpusError for a file that is given twice.
    """
    names: dict[Path, tuple[str, ...]] = {}
    for path in paths:
        whole = path.resolve()
        if whole in names:
            raise CorpusError(f"{path} was given twice; give every file once")
        names[whole] = (*whole.parts[:-1], _uncompressed(path).stem)
    ends = Counter(name[-k:] for name in names.values() for k in range(1, len(name) + 1))
    stems = {}
    for path, name in zip(paths, names.values(), strict=True):
        lengths = (k for k in range(1, len(name)) if ends[name[-k:]] == 1)
        stems[path] = printable("/".join(name[-next(lengths, len(name)) :]))
    return stems
