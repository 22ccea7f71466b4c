"""Parts of long work: saved if a run is interrupted, and resumed by a run of the same settings.

They are in a folder named by the digest of the settings. Each begins with a digest over the
settings, its own name and its content, so that a part that was damaged, renamed or made with other
settings is rejected.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from safetensors import SafetensorError

from headroles.errors import StorageError
from headroles.storage.files import encode_json, open_regular, read_json, write_bytes, written
from headroles.wording import shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray


_NOTES = "notes"
_SETTINGS = "plan.json"
_PREFIX = "part-"
_DIGEST_BYTES, _NAME_LENGTH = 16, 16
_MOST_DIFFERENCES = 4
_LONGEST_VALUE = 40

T = TypeVar("T")


@dataclass(frozen=True)
class Parts:
    """Place where a run saves its finished parts and its settings."""

    place: Path

    @property
    def count(self) -> int:
        """Number of saved parts, with any settings."""
        return sum(1 for _ in self.place.glob(f"*/{_PREFIX}*"))

    def open(self, settings: Mapping[str, Any], is_first: bool = True) -> OpenParts:
        """Open the parts of a run with these settings, and save the settings.

        Processes that are not the first save none. Raises StorageError, naming the differences,
        if there are parts with other settings, or if those of the first process are others.
        """
        encoded = encode_json(settings)
        digest = _digest(encoded)
        opened = OpenParts(self.place / digest.hex()[:_NAME_LENGTH], digest)
        if self.count or not is_first:
            try:
                saved = read_json(self.place / _SETTINGS)
            except StorageError as error:
                raise StorageError(
                    f"the settings of the unfinished run saved in {self.place} cannot be read; run "
                    "the command with --no-resume to start anew"
                ) from error
            other = differences(saved, json.loads(encoded))  # tuples are lists then
            if other and is_first:
                raise StorageError(
                    f"the unfinished run saved in {self.place} has other settings: {other}; run it "
                    "with its first options, or run the command with --no-resume to start anew"
                )
            if other:
                raise StorageError(
                    f"this process has other settings than the first one: {other}; "
                    "give all processes the same command, packages and model"
                )
        if is_first:
            with written(opened.folder):
                opened.folder.mkdir(parents=True, exist_ok=True)
            write_bytes(self.place / _SETTINGS, encoded)
        return opened

    def remove(self) -> None:
        """Remove all parts, then the settings."""
        for folder in self.place.glob("*/"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.place, ignore_errors=True)


@dataclass(frozen=True)
class OpenParts:
    """Parts of one run by their names, or numbers from 0; each is saved whole or not at all."""

    folder: Path
    settings_digest: bytes

    def __contains__(self, name: int | str) -> bool:
        return self._file(name).exists()

    def read(self, name: int | str, decode: Callable[[bytes], T]) -> T:
        """Read and decode a part. Raises StorageError if it was changed, or cannot be read."""
        file = self._file(name)
        try:
            with open_regular(file) as stream:
                digest, content = stream.read(_DIGEST_BYTES), stream.read()
            if digest != self._digest_of(name, content):
                raise ValueError("it is damaged, or belongs to another run or version")
            return decode(content)
        except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
            raise StorageError(
                f"{file} cannot be read ({error}); remove it and run the command with --resume, "
                "or with --no-resume to start anew"
            ) from error

    def write(self, name: int | str, content: bytes) -> None:
        """Save a part, replacing an earlier one. Raises StorageError if it cannot be written."""
        write_bytes(self._file(name), self._digest_of(name, content) + content)

    def _digest_of(self, name: int | str, content: bytes) -> bytes:
        return _digest(content, key=_digest(str(name).encode(), key=self.settings_digest))

    def _file(self, name: int | str) -> Path:
        return self.folder / f"{_PREFIX}{name}"


def _digest(content: bytes, key: bytes = b"") -> bytes:
    return hashlib.blake2b(content, key=key, digest_size=_DIGEST_BYTES).digest()


def differences(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> str:
    """Describe the differences of two settings by name; empty if they are equal."""
    before, after = dict(_flat(earlier)), dict(_flat(later))
    names = [name for name in {**before, **after} if before.get(name, ...) != after.get(name, ...)]
    shown = [
        f"{name} was {_shown(before, name)} and is {_shown(after, name)}"
        for name in names[:_MOST_DIFFERENCES]
    ]
    more = [f"and {len(names) - len(shown)} more"] if len(names) > len(shown) else []
    return ", ".join([*shown, *more])


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", value


def _shown(settings: Mapping[str, Any], name: str) -> str:
    has_value = name in settings
    return shortened(json.dumps(settings[name]), _LONGEST_VALUE) if has_value else "missing"


def encode_arrays(arrays: Mapping[str, NDArray[Any]], notes: Any = None) -> bytes:
    """Encode arrays of any layout, and ``notes`` that JSON can hold, as bytes of safetensors."""
    import numpy as np
    from safetensors.numpy import save

    # save() writes the memory of an array as it is, so strides must be removed first
    dense = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(dense, metadata={_NOTES: json.dumps(notes)})


def decode_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Decode the arrays of `encode_arrays`. Raises SafetensorError for other bytes."""
    from safetensors.numpy import load

    return load(content)


def decode_notes(content: bytes) -> Any:
    """Decode the notes of `encode_arrays`. Raises ValueError or KeyError for other bytes."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return json.loads(header["__metadata__"][_NOTES])
