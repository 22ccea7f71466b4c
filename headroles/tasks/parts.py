"""What is computed of a study, kept batch by batch until the study is done."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles import storage
from headroles.errors import StorageError

Arrays = dict[str, NDArray[Any]]
_PLAN = "plan.json"


@dataclass(frozen=True)
class Parts:
    """A folder with the arrays of batches that were computed, each file whole or not there.

    The folder belongs to one plan: the same study of the same model and examples, with the same
    options. What another plan left is refused, or dropped with ``replace``.
    """

    folder: Path
    replace: bool = False

    @classmethod
    def of(cls, given: Parts | str | Path) -> Parts:
        """From the name of a folder."""
        return given if isinstance(given, Parts) else cls(Path(given))

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Take up what this plan has left in the folder, or start.

        Raises StorageError, naming what differs, for what another plan left.
        """
        wanted = json.loads(storage.encode_json(plan))
        file = self.folder / _PLAN
        if file.exists():
            differing = next(_differing(storage.read_json(file), wanted), "")
            if not differing:
                return
            if not self.replace:
                raise StorageError(
                    f"{self.folder} keeps what another study left unfinished ({differing}); repeat "
                    "that one, name another folder for the results, or drop it with --overwrite"
                )
            self.drop()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"{self.folder} cannot be made: {error.strerror or error}"
            ) from error
        storage.write_json(file, wanted)

    def get(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays called ``name`` as they were kept, or as they are computed now and kept."""
        file = self.folder / f"{name}.npz"
        if not file.exists():
            arrays = compute()
            with storage.whole_file(file) as draft, draft.open("wb") as stream:
                np.savez(stream, allow_pickle=False, **arrays)
            return arrays
        try:
            with np.load(file, allow_pickle=False) as kept:
                return dict(kept)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise StorageError(f"{file} cannot be read: {error}; remove it") from error

    def __len__(self) -> int:
        """How many batches are kept."""
        return len(list(self.folder.glob("*.npz")))

    def drop(self) -> None:
        """Remove the folder: the study is done."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _differing(left: Any, wanted: Any, name: str = "") -> Iterator[str]:
    """What differs between two plans, in words."""
    if isinstance(left, dict) and isinstance(wanted, dict):
        for key in sorted({*left, *wanted}):
            yield from _differing(left.get(key), wanted.get(key), f"{name} {key}".strip())
    elif left != wanted:
        yield f"its {name} is {left!r}, not {wanted!r}"
