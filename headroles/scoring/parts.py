"""Scores of windows, kept one by one while a run goes on, so that the next run can take them up."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from headroles.errors import StorageError
from headroles.scoring.blocks import Counts, Part, ScoreBlock
from headroles.storage import OpenParts, decode_arrays, encode_arrays

_RECORD = "record"
"""What a part holds beside arrays, as JSON in an array of bytes."""


@dataclass(frozen=True)
class KeptWindows:
    """What became of windows, by their numbers; nothing is kept without ``parts``."""

    parts: OpenParts | None

    def find(self, number: int) -> Part | None:
        """What became of a window, if that is kept."""
        return self.read(number) if self.parts is not None and number in self.parts else None

    def write(self, number: int, part: Part) -> None:
        """Keep what became of a window."""
        if self.parts is not None:
            self.parts.write(number, pack(part))

    def read(self, number: int) -> Part:
        """What became of a window. Raises StorageError where that is not kept."""
        if self.parts is None:
            raise StorageError("no parts are kept")
        return self.parts.decode(number, unpack)


def pack(part: Part) -> bytes:
    """A part as bytes: the arrays of its block, and all else as JSON beside them."""
    arrays: dict[str, Any] = {}
    lists: dict[str, Any] = {}
    for one in fields(ScoreBlock) if part.block is not None else ():
        value = getattr(part.block, one.name)
        if isinstance(value, np.ndarray):
            arrays[one.name] = value
        elif value is not None:
            lists[one.name] = value
    record = {"counts": part.counts.record(), "block": lists if part.block is not None else None}
    arrays[_RECORD] = np.frombuffer(json.dumps(record).encode(), dtype=np.uint8)
    return encode_arrays(arrays)


def unpack(content: bytes) -> Part:
    """Return the part that `pack` made these bytes from. Raises ValueError for another form."""
    arrays: dict[str, Any] = decode_arrays(content)
    record = json.loads(arrays.pop(_RECORD).tobytes())
    counts = Counts.from_record(record["counts"])
    if record["block"] is None:
        return Part(None, counts)
    block = ScoreBlock(**record["block"], **arrays)
    block.check()
    return Part(block, counts)
