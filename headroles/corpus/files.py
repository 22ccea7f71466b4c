"""Finding corpus files and reading their lines, with errors that name what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike as OsPathLike
from pathlib import Path

from headroles.errors import CorpusError

PathLike = str | OsPathLike[str]


def find_files(paths: PathLike | Iterable[PathLike], suffix: str) -> list[Path]:
    """Existing files, folders replaced by their files that end in ``suffix``, in sorted order.

    Raises CorpusError for a path that does not exist, a folder without such a file, a file
    given twice, or no path at all.
    """
    if isinstance(paths, str | OsPathLike):
        paths = [paths]
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(file for file in path.glob(f"*{suffix}") if file.is_file())
            if not inside:
                raise CorpusError(
                    f"folder {path} holds no {suffix} file; name the files themselves"
                )
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise CorpusError(f"{path} does not exist; give a file or a folder of {suffix} files")
    if not found:
        raise CorpusError("no corpus was given; name at least one file or folder")
    _refuse_repeats(found)
    return found


def _refuse_repeats(files: list[Path]) -> None:
    seen: set[Path] = set()
    for file in files:
        if file.resolve() in seen:
            raise CorpusError(f"{file} was given twice; name every file once")
        seen.add(file.resolve())


def read_lines(file: Path) -> Iterator[str]:
    """Lines of a UTF-8 file without their line ends; a byte-order mark is passed over.

    Raises CorpusError that names the line if the file is not UTF-8, cannot be read or is empty.
    """
    number = 0
    try:
        # Bytes are split first, at \n only: characters such as U+2028 do not end a line here.
        with file.open("rb") as stream:
            for number, raw in enumerate(stream, start=1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                yield line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{file}, line {number}: byte {error.object[error.start]:#04x} at column "
            f"{error.start + 1} is not UTF-8; convert the file to UTF-8"
        ) from error
    except OSError as error:
        raise CorpusError(f"{file} cannot be read: {error.strerror or error}") from error
    if not number:
        raise CorpusError(f"{file} is empty")
