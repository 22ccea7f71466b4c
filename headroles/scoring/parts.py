"""Scores saved window by window during a run, so that the next run can resume it."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from headroles.errors import StorageError
from headroles.scoring.blocks import Counts, Part, ScoreBlock
from headroles.storage import OpenParts, decode_arrays, encode_arrays

_RECORD = "record"
"""Name of the array of bytes that holds, as JSON, the rest of a part."""


@dataclass(frozen=True)
class KeptWindows:
    """Saved results of windows, by their numbers; without ``parts`` nothing is saved."""

    parts: OpenParts | None

    def find(self, number: int) -> Part | None:
        """Return the result of a window, None if it is not saved."""
        return self.read(number) if self.parts is not None and number in self.parts else None

    def write(self, number: int, part: Part) -> None:
        """Save the result of a window."""
        if self.parts is not None:
            self.parts.write(number, pack(part))

    def read(self, number: int) -> Part:
        """Return the result of a window. Raises StorageError if none is saved."""
        if self.parts is None:
            raise StorageError("this run saves no windows; score again")
        return self.parts.decode(number, unpack)


def pack(part: Part) -> bytes:
    """Encode a part as bytes: the arrays of its block, and the rest as JSON beside them."""
    arrays: dict[str, Any] = {}
    lists: dict[str, Any] = {}
    for one in fields(ScoreBlock) if part.block is not None else ():
        value = getattr(part.block, one.name)
        if isinstance(value, np.ndarray):
            arrays[one.name] = value
        elif value is not None:
            lists[one.name] = value
    block = lists if part.block is not None else None
    record = {"counts": part.counts.record(), "block": block, "arrays": sorted(arrays)}
    arrays[_RECORD] = np.frombuffer(json.dumps(record).encode(), dtype=np.uint8)
    return encode_arrays(arrays)


def unpack(content: bytes) -> Part:
    """Decode a part from the bytes that `pack` made. Raises ValueError for other bytes."""
    arrays: dict[str, Any] = decode_arrays(content)
    record = json.loads(arrays.pop(_RECORD).tobytes())
    named = record.get("arrays")
    if named is None:
        raise ValueError("another version of headroles wrote it")
    if sorted(arrays) != named:
        raise ValueError(f"it holds the arrays {sorted(arrays)} instead of {named}")
    counts = Counts.from_record(record["counts"])
    if record["block"] is None:
        return Part(None, counts)
    block = ScoreBlock(**record["block"], **arrays)
    block.check()
    return Part(block, counts)
