"""Contents of result folders: written whole or not at all, and read back unchanged."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import msgspec

from headroles import storage
from headroles.errors import StorageError
from headroles.record import Record

MODEL_KINDS = ("pruned model", "collaborative model")
"""Kinds of results that are models. Tables never replace them, nor scores."""


class Stored(ABC):
    """Content of a result folder.

    ``kind`` is its name in a folder, in words for people, and ``hint`` advice about a folder
    without it. ``record`` describes its origin.
    """

    kind: ClassVar[str]
    hint: ClassVar[str]
    record: Record

    @classmethod
    @abstractmethod
    def file_names(cls) -> Sequence[str]:
        """Return the names of files that `write_files` may write; * stands for anything."""

    @abstractmethod
    def write_files(self, folder: Path) -> list[str]:
        """Write the files of the result into an existing folder; return their names."""

    @classmethod
    @abstractmethod
    def read_files(cls, folder: Path, record: Record) -> Self:
        """Read the files that `write_files` wrote. Raises StorageError if that fails."""

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the result into ``folder``, whole or not at all.

        Raises StorageError if the folder holds files already and ``overwrite`` is not set, and if
        it holds scores or a model, which take longer to make.
        """
        return save_together(folder, [self], overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a result that `save` wrote. Raises StorageError if that fails."""
        folder = storage.committed(Path(folder))
        return cls.read_files(folder, cls.read_record(folder))

    @classmethod
    def read_record(cls, folder: Path) -> Record:
        """Read the record in ``run.json``.

        Raises StorageError if a file is missing or was changed, or if the folder holds no result of
        this kind.
        """
        hint = cls.hint.format(folder=folder)
        if not os.path.lexists(folder / storage.RUN_FILE):
            raise StorageError(f"there is no {storage.RUN_FILE} in {folder}; {hint}")
        run = storage.read_run(folder)
        if cls.kind not in run.files:
            held = ", ".join(run.files) or "nothing"
            raise StorageError(f"{folder} holds no {cls.kind} (it holds: {held}); {hint}")
        storage.check_files(folder, run.files[cls.kind])
        try:
            return msgspec.convert(run.content.get(cls.kind), Record)
        except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
            said = str(error).replace("`", "'")  # which would mark an option
            raise StorageError(
                f"{folder / storage.RUN_FILE} does not have the form that this version writes "
                f"({said}); make the results again"
            ) from error


@dataclass(frozen=True)
class Claimed:
    """A folder that `new_folder` has claimed already, and that its caller commits."""

    folder: Path


def save_together(folder: str | Path, results: Sequence[Stored], overwrite: bool = False) -> Path:
    """Write results into a folder, each made from those before it, all of them or none.

    Raises StorageError as `new_folder` does.
    """
    with new_folder(folder, [type(result) for result in results], overwrite) as staging:
        write_together(staging, results)
    return Path(folder)


@contextmanager
def new_folder(
    folder: str | Path,
    kinds: Sequence[type[Stored]],
    overwrite: bool = False,
    resume: bool | None = None,
) -> Iterator[Path]:
    """Claim a folder for results of these ``kinds``, as `storage.result_folder` does.

    Open it before long work, so that a refusal comes early. Raises StorageError as that does, also
    for files of others that are in the way of these ``kinds``, and for a folder with scores or a
    model that are not of them.
    """
    saved = {kind.kind for kind in kinds}
    for held in storage.kinds_in(Path(folder)):
        is_costly = held == "scores" or (held in MODEL_KINDS and not saved & {*MODEL_KINDS})
        if is_costly and held not in saved:
            raise StorageError(
                f"{folder} holds {held}, which would be replaced; name another folder for the "
                f"{kinds[-1].kind}"
            )
    with storage.result_folder(folder, overwrite, resume, _names_of(kinds)) as staging:
        yield staging


def _names_of(kinds: Sequence[type[Stored]]) -> list[str]:
    """Return the names of files that results of these kinds may have."""
    return [name for kind in kinds for name in kind.file_names()]


def write_together(staging: Path, results: Sequence[Stored], beside: Path | None = None) -> None:
    """Write results with their records into a folder, ``beside`` those of another one."""
    records, files = storage.read_run(beside)[:2] if beside else ({}, {})
    for result in results:
        files[result.kind] = storage.digests_of(staging, result.write_files(staging))
        records[result.kind] = result.record
    storage.write_run(staging, records, files)


@contextmanager
def joined_folder(folder: str | Path, kinds: Sequence[type[Stored]]) -> Iterator[Path]:
    """Claim a folder for results of these ``kinds`` beside those that they are made from.

    Open it before long work, so that a refusal comes early.
    """
    with storage.changed_folder(folder, _names_of(kinds)) as staging:
        yield staging
