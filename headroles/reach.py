"""How far the attention of a layer reaches: every query sees one span of keys."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

SOURCE, TARGET = 0, 1
"""Numbers of sequences; a model of one sequence reads a source."""


class Reach(NamedTuple):
    """Keys that each query can attend to, by their places before and after it.

    Without limits a query sees all tokens, as in most encoders. In a layer with a window of w to
    either side it sees those of (w, w), in a decoder itself and earlier ones, (None, 0).

    An encoder-decoder reads two sequences, a source and a target: its decoder has queries and keys
    in the target, and cross-attention queries in the target and keys in the source.
    """

    back: int | None = None
    """Most places before the query; None without a limit."""
    ahead: int | None = None
    """Most places after it; None without a limit."""
    queries: int = SOURCE
    keys: int = SOURCE

    @property
    def is_across(self) -> bool:
        """Whether queries and keys are tokens of two sequences."""
        return self.queries != self.keys

    @property
    def is_limited(self) -> bool:
        """Whether some queries cannot see all keys."""
        return (self.back, self.ahead) != (None, None)

    @property
    def as_recorded(self) -> Reach | int | None:
        """The reach in a record: of as many places to either side their number, None without a
        limit.
        """
        is_plain = self.back == self.ahead and self.queries == self.keys == SOURCE
        return self.back if is_plain else self

    @classmethod
    def from_record(cls, recorded: Reach | int | None) -> Reach:
        """Return a reach of `as_recorded`."""
        return recorded if isinstance(recorded, Reach) else cls(recorded, recorded)

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key, as in decoders."""
        return self.ahead == 0

    def sees(self, distances: Any) -> Any:
        """Tell which keys are within reach, by ``distances``, places of keys less those of queries.

        These are an array or a tensor, and so is the answer.
        """
        back, ahead = (math.inf if limit is None else limit for limit in self[:2])
        return (distances >= -back) & (distances <= ahead)


EVERYTHING = Reach()
ACROSS = Reach(queries=TARGET, keys=SOURCE)


def window_to_either_side(width: int | None) -> Reach:
    """Return the reach of a layer that sees ``width`` places before and after; None: all."""
    return Reach(width, width)


def window_of_decoder(width: int | None, sequence: int = SOURCE) -> Reach:
    """Return the reach of a layer whose tokens see ``width`` places up to their own; None: all."""
    return Reach(None if width is None else width - 1, 0, sequence, sequence)
