"""Blocks of scores: the scores of some of the examples; and windows of them, saved during a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from headroles.arrays import Float32Array, IntArray
from headroles.errors import StorageError
from headroles.roles import OFFSETS
from headroles.storage import OpenParts, decode_arrays, encode_arrays


@dataclass(frozen=True)
class ScoreBlock:
    """Scores of E examples.

    ``values`` (E, layers, heads, roles) is NaN where an example has no score for a role; ``counts``
    (E, roles) is the number of tokens (syntactic roles: arcs) behind a score. ``lengths`` (E,) is
    the number of tokens of each example. ``digests`` identify the content of examples; the list is
    empty if unknown. ``offset_shares`` are as in `HeadScores`. ``bounds`` (E, roles, 2) are the
    least and greatest possible scores, whatever the attention.
    """

    ids: list[str]
    documents: list[str]
    lengths: IntArray
    values: Float32Array
    counts: IntArray
    digests: list[str] = field(default_factory=list)
    offset_shares: Float32Array | None = None
    bounds: Float32Array | None = None

    @classmethod
    def joined(cls, blocks: Sequence[ScoreBlock]) -> ScoreBlock:
        """Join blocks; a field unknown in one block is unknown in the result."""
        if len(blocks) == 1:
            return blocks[0]
        joined: dict[str, Any] = {}
        for name in (one.name for one in fields(cls)):
            of_blocks = [getattr(block, name) for block in blocks]
            if any(one is None for one in of_blocks):
                joined[name] = None
            elif isinstance(of_blocks[0], list):
                joined[name] = [value for one in of_blocks for value in one]
            else:
                joined[name] = np.concatenate(of_blocks)
        if len(joined["digests"]) < len(joined["ids"]):
            joined["digests"] = []
        return cls(**joined)

    @property
    def n_scores(self) -> int:
        """Number of scores that are not missing."""
        # an example at a time saves memory
        return sum(int(np.count_nonzero(~np.isnan(values))) for values in self.values)

    def check(self) -> None:
        """Raise ValueError for arrays or lists that are not of the types and shapes named above."""
        n, n_roles = self.counts.shape
        known: dict[str, tuple[Any, type, tuple[int, ...]]] = {
            "values": (self.values, np.float32, (n, *self.values.shape[1:3], n_roles)),
            "counts": (self.counts, np.int64, (n, n_roles)),
            "lengths": (self.lengths, np.int64, (n,)),
            "offset_shares": (self.offset_shares, np.float32, (n, n_roles, len(OFFSETS))),
            "bounds": (self.bounds, np.float32, (n, n_roles, 2)),
        }
        for name, (array, kind, shape) in known.items():
            if array is not None and (array.dtype, array.shape) != (np.dtype(kind), shape):
                raise ValueError(f"{name} is {array.dtype} {array.shape}, not {shape}")
        if {len(self.ids), len(self.documents)} != {n} or len(self.digests) not in (0, n):
            raise ValueError(f"ids, documents or digests do not have {n} entries")

    def take(self, rows: slice) -> ScoreBlock:
        """Return some of the examples."""
        taken: dict[str, Any] = {
            name: None if values is None else values[rows] for name, values in vars(self).items()
        }
        return ScoreBlock(**taken)

    def rounded(self) -> ScoreBlock:
        """Return a copy with values and bounds rounded to float16, stored as float32.

        Rounding is monotonic, so rounded values still lie between rounded bounds.
        """
        values, bounds = (
            None if one is None else one.astype(np.float16).astype(np.float32)
            for one in (self.values, self.bounds)
        )
        assert values is not None
        return replace(self, values=values, bounds=bounds)


@dataclass
class Counts:
    """Counts of skipped examples and arcs, of controls, and of word pieces.

    ``skipped``, ``controls`` and ``pieces`` are the entries of the same names in a record.
    """

    skipped: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)
    pieces: Counter[str] = field(default_factory=Counter)

    def record(self) -> dict[str, dict[str, int]]:
        """Return the counts as a record has them."""
        return {name: dict(counted) for name, counted in vars(self).items()}

    @classmethod
    def from_record(cls, record: Mapping[str, Mapping[str, int]]) -> Counts:
        """Rebuild counts from `record`."""
        return cls(**{name: Counter(counted) for name, counted in record.items()})

    def add(self, other: Counts) -> None:
        """Add the counts of other examples."""
        self.skipped.update(other.skipped)
        self.controls.update(other.controls)
        self.pieces.update(other.pieces)


@dataclass(frozen=True)
class ScoredWindow:
    """Result for one window; ``block`` is None if all its examples were skipped."""

    block: ScoreBlock | None
    counts: Counts


_RECORD = "record"
"""Name of the array of bytes that holds, as JSON, the rest of a result."""


@dataclass(frozen=True)
class SavedWindows:
    """Saved results of windows, by their numbers; without ``parts`` nothing is saved."""

    parts: OpenParts | None

    def find(self, number: int) -> ScoredWindow | None:
        """Return the result of a window, None if it is not saved."""
        return self.read(number) if self.parts is not None and number in self.parts else None

    def write(self, number: int, scored: ScoredWindow) -> None:
        """Save the result of a window."""
        if self.parts is not None:
            self.parts.write(number, pack(scored))

    def read(self, number: int) -> ScoredWindow:
        """Return the result of a window. Raises StorageError if none is saved."""
        if self.parts is None:
            raise StorageError("this run saves no windows; score again")
        return self.parts.decode(number, unpack)


def pack(scored: ScoredWindow) -> bytes:
    """Encode a result as bytes: the arrays of its block, and the rest as JSON beside them."""
    arrays: dict[str, Any] = {}
    lists: dict[str, Any] = {}
    for one in fields(ScoreBlock) if scored.block is not None else ():
        value = getattr(scored.block, one.name)
        if isinstance(value, np.ndarray):
            arrays[one.name] = value
        elif value is not None:
            lists[one.name] = value
    block = lists if scored.block is not None else None
    record = {"counts": scored.counts.record(), "block": block, "arrays": sorted(arrays)}
    arrays[_RECORD] = np.frombuffer(json.dumps(record).encode(), dtype=np.uint8)
    return encode_arrays(arrays)


def unpack(content: bytes) -> ScoredWindow:
    """Decode a result from the bytes that `pack` made. Raises ValueError for other bytes."""
    arrays: dict[str, Any] = decode_arrays(content)
    record = json.loads(arrays.pop(_RECORD).tobytes())
    named = record.get("arrays")
    if named is None:
        raise ValueError("another version of headroles wrote it")
    if sorted(arrays) != named:
        raise ValueError(f"it holds the arrays {sorted(arrays)} instead of {named}")
    counts = Counts.from_record(record["counts"])
    if record["block"] is None:
        return ScoredWindow(None, counts)
    block = ScoreBlock(**record["block"], **arrays)
    block.check()
    return ScoredWindow(block, counts)
