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
from os import PathLike as OsPathLike
from pathlib import Path
from typing import IO, Any

from headroles import storage
from headroles.corpus.sentence import CorpusSource
from headroles.errors import CorpusError
from headroles.role_names import is_relation
from headroles.wording import listed, printable

PathLike = str | OsPathLike[str]
STANDARD_INPUT = "-"
HUB_PREFIX = "hf:"
"""Begins the name of a data set on the hub of Hugging Face: hf:NAME or hf:NAME:SPLIT."""
COMPRESSED = (".gz", ".bz2", ".xz")
_MOST_LEFT = 20
"""Number of ignored files of a folder that a record names."""

# First bytes of compressed files; formats are found by content since standard input has no name.
_PACKINGS: tuple[tuple[re.Pattern[bytes], Any], ...] = (
    (re.compile(rb"\x1f\x8b\x08"), gzip.open),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), bz2.open),
    (re.compile(rb"\xfd7zXZ\x00"), lzma.open),
)


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus, compressed or not.

    ``shown`` is its name in messages; ``stem`` is unique in the corpus and names sentences without
    an id.
    """

    path: Path
    shown: str
    stem: str

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
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise CorpusError(
                f"{self} is compressed, and damaged after line {number} ({error}); get it again"
            ) from error
        except OSError as error:
            raise CorpusError(f"{self} cannot be read: {error.strerror or error}") from error
        if not number:
            raise CorpusError(f"{self} is empty")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of any text file as `CorpusFile.lines` does."""
    return CorpusFile(path, str(path), path.stem).lines()


def find_files(
    paths: PathLike | Iterable[PathLike], *suffixes: str
) -> tuple[tuple[CorpusFile, ...], CorpusSource]:
    """Find files; folders are replaced by their files with one of ``suffixes``, sorted.

    Files may be compressed, as ``.gz``, ``.bz2`` or ``.xz``; ``-`` is standard input, which is read
    at once. Also returns the part of the record of a corpus about its files and folders.

    Raises CorpusError for a path that does not exist, a folder without such a file, a file given
    twice, a pipe or a device, or no path at all.
    """
    if isinstance(paths, str | OsPathLike):
        paths = [paths]
    found: list[Path | CorpusFile] = []
    folders: list[dict[str, Any]] = []
    for path in map(Path, paths):
        try:
            if str(path) == STANDARD_INPUT:
                if any(isinstance(one, CorpusFile) for one in found):
                    raise CorpusError("- (standard input) was given twice; give it once")
                found.append(_standard_input())
            elif not is_dataset(path) and stat.S_ISDIR(path.stat().st_mode):
                inside, folder = _look_into(path, suffixes)
                found += inside
                folders.append(folder)
            else:
                refuse_special(path)
                found.append(path)
        except FileNotFoundError:
            raise CorpusError(f"{path} does not exist; {_advice(path, suffixes[0])}") from None
        except OSError as error:  # a name that is too long, a folder without permission
            raise CorpusError(f"{path} cannot be read: {error.strerror or error}") from error
    if not found:
        raise CorpusError("no corpus was given; give at least one file or folder")
    stems = _stems([one for one in found if isinstance(one, Path)])
    files = tuple(
        CorpusFile(one, printable(one), stems[one]) if isinstance(one, Path) else one
        for one in found
    )
    known: CorpusSource = {"folders": folders} if folders else {}
    return files, {"files": list(map(str, files)), **known}


def _advice(path: Path, suffix: str) -> str:
    if is_relation(str(path)):
        return f"separate relations with commas: `relations='nsubj,{path}'`"
    return f"give a file or a folder of {suffix} files"


def is_dataset(path: PathLike) -> bool:
    """Tell whether a path names a data set of Hugging Face: on the hub, or saved in a folder."""
    names = ("dataset_dict.json", "dataset_info.json")
    return str(path).startswith(HUB_PREFIX) or any(
        os.path.exists(Path(path) / name)  # noqa: PTH110  false for names that are too long
        for name in names
    )


def refuse_special(path: Path) -> None:
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


def _look_into(path: Path, suffixes: Sequence[str]) -> tuple[list[Path], dict[str, Any]]:
    """Return the files of a folder to read, and the part of a record about the folder."""
    inside = sorted(path.iterdir())
    taken = [file for file in inside if kind_of(file) in suffixes and file.is_file()]
    left = [one for one in inside if one not in {*taken} and not one.name.startswith(".")]
    deeper = [one for one in left if one.is_dir()]
    if not taken:
        holding = [
            one for one in deeper if any(kind_of(file) in suffixes for file in one.iterdir())
        ]
        advice = f"its folders do: {listed(holding)}" if holding else "name the files themselves"
        if (path / "config.json").is_file():
            advice = "it holds a model; give the model first, then the corpus"
        raise CorpusError(f"folder {path} holds no {suffixes[0]} file; {advice}")
    names = [printable(f"{one.name}/" if one in deeper else one.name) for one in left[:_MOST_LEFT]]
    shown = {"folder": printable(path), "taken": len(taken), "left": names, "n_left": len(left)}
    return taken, shown


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


def _stems(paths: Sequence[Path]) -> dict[Path, str]:
    """Name files by their stems, with as many parent folders as make the names unique.

    Raises CorpusError for a file that is given twice.
    """
    parts: dict[Path, tuple[str, ...]] = {}
    resolved: set[Path] = set()
    for path in paths:
        whole = path.resolve()
        if whole in resolved:
            raise CorpusError(f"{path} was given twice; give every file once")
        resolved.add(whole)
        parts[path] = (*whole.parts[:-1], _uncompressed(path).stem)
    depth = dict.fromkeys(paths, 1)
    while True:
        stems = {path: printable("/".join(parts[path][-depth[path] :])) for path in paths}
        counts = Counter(stems.values())
        alike = [
            path for path in paths if counts[stems[path]] > 1 and depth[path] < len(parts[path])
        ]
        if not alike:
            return stems
        for path in alike:
            depth[path] += 1


def _open(path: Path) -> IO[bytes]:
    refuse_special(path)
    with path.open("rb") as stream:
        beginning = stream.read(10)
    for packing, opened in _PACKINGS:
        if packing.match(beginning):
            unpacked: IO[bytes] = opened(path, "rb")
            return unpacked
    return path.open("rb")
