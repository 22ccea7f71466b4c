"""Finding corpus files and reading their lines, with errors that name the file."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import shutil
import sys
import tempfile
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike as OsPathLike
from pathlib import Path
from typing import IO, Any

from headroles.corpus.sentence import CorpusSource, FolderSource
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


@dataclass(frozen=True)
class FoundFiles:
    """Files of a corpus in order, and the part of its record about them and their folders."""

    files: tuple[CorpusFile, ...]
    source: CorpusSource


def find_files(paths: PathLike | Iterable[PathLike], *suffixes: str) -> FoundFiles:
    """Find files; folders are replaced by their files with one of ``suffixes``, sorted.

    Files may be compressed, as ``.gz``, ``.bz2`` or ``.xz``; ``-`` is standard input, which is read
    at once.

    Raises CorpusError for a path that does not exist, a folder without such a file, a file given
    twice, or no path at all.
    """
    if isinstance(paths, str | OsPathLike):
        paths = [paths]
    found: list[Path | CorpusFile] = []
    folders: list[FolderSource] = []
    for path in map(Path, paths):
        if str(path) == STANDARD_INPUT:
            if any(isinstance(one, CorpusFile) for one in found):
                raise CorpusError("- (standard input) was given twice; give it once")
            found.append(_standard_input())
        elif is_dataset(path):
            found.append(path)
        elif _asked(path, Path.is_dir):
            inside, folder = _look_into(path, suffixes)
            found += inside
            folders.append(folder)
        elif _asked(path, Path.exists):
            found.append(path)
        else:
            advice = f"give a file or a folder of {suffixes[0]} files"
            if is_relation(str(path)):
                both = f"nsubj,{path}"
                advice = f"separate relations with commas: relations='{both}' (--relations {both})"
            raise CorpusError(f"{path} does not exist; {advice}")
    if not found:
        raise CorpusError("no corpus was given; give at least one file or folder")
    paths_found = [one for one in found if isinstance(one, Path)]
    _refuse_repeats(paths_found)
    stems = _stems(paths_found)
    files = tuple(
        CorpusFile(one, printable(one), stems[one]) if isinstance(one, Path) else one
        for one in found
    )
    known: CorpusSource = {"folders": folders} if folders else {}
    return FoundFiles(files, {"files": list(map(str, files)), **known})


def is_dataset(path: PathLike) -> bool:
    """Tell whether a path names a data set of Hugging Face: on the hub, or saved in a folder."""
    folder = Path(path)
    return str(path).startswith(HUB_PREFIX) or any(
        _asked(folder / name, Path.exists) for name in ("dataset_dict.json", "dataset_info.json")
    )


def kind_of(path: PathLike) -> str:
    """Return the extension that names the content of a file, in lower case, without compression."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def _asked(path: Path, question: Callable[[Path], bool]) -> bool:
    """Ask the file system about a path. Raises CorpusError if it cannot answer."""
    try:
        return question(path)
    except OSError as error:  # a name that is too long, a folder without permission
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}") from error


def _look_into(path: Path, suffixes: Sequence[str]) -> tuple[list[Path], FolderSource]:
    """Return the files of a folder to read, and the part of a record about the folder."""
    try:
        inside = sorted(path.iterdir())
        taken = [file for file in inside if kind_of(file) in suffixes and file.is_file()]
        known = set(taken)
        left = [one for one in inside if one not in known and not one.name.startswith(".")]
        deeper = [one for one in left if one.is_dir()]
        if not taken:
            holding = [
                one for one in deeper if any(kind_of(file) in suffixes for file in one.iterdir())
            ]
            advice = (
                f"its folders do: {listed(holding)}" if holding else "name the files themselves"
            )
            if (path / "config.json").is_file():
                advice = "it holds a model; give the model first, then the corpus"
            raise CorpusError(f"folder {path} holds no {suffixes[0]} file; {advice}")
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}") from error
    names = [printable(f"{one.name}/" if one in deeper else one.name) for one in left[:_MOST_LEFT]]
    return taken, FolderSource(
        folder=printable(path), taken=len(taken), left=names, n_left=len(left)
    )


def _refuse_repeats(files: Sequence[Path]) -> None:
    seen: set[Path] = set()
    for file in files:
        if file.resolve() in seen:
            raise CorpusError(f"{file} was given twice; give every file once")
        seen.add(file.resolve())


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
    """Name files by their stems, with as many parent folders as make the names unique."""
    parts = {path: (*path.resolve().parts[:-1], _stem(path)) for path in paths}
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


def _stem(path: Path) -> str:
    return path.with_suffix("").stem if path.suffix.lower() in COMPRESSED else path.stem


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as stream:
        beginning = stream.read(10) if path.is_file() else b""
    for packing, opened in _PACKINGS:
        if packing.match(beginning):
            unpacked: IO[bytes] = opened(path, "rb")
            return unpacked
    return path.open("rb")
