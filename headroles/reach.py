"""How far the attention of a layer reaches: every query sees one span of keys."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Reach(NamedTuple):
    """Keys that each query can attend to, by their places before and after it.

    Without limits a query sees all tokens, as in most encoders. In a layer with a window of w to
    either side it sees those of (w, w), in a decoder itself and earlier ones, (None, 0).
    """

    back: int | None = None
    """Most places before the query; None without a limit."""
    ahead: int | None = None
    """Most places after it; None without a limit."""

    @property
    def is_limited(self) -> bool:
        """Whether some queries cannot see all tokens."""
        return self != EVERYTHING

    @property
    def as_recorded(self) -> Reach | int | None:
        """The reach in a record: of as many places to either side their number, None without a
        limit.
        """
        return self.back if self.back == self.ahead else self

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
        back, ahead = (math.inf if limit is None else limit for limit in self)
        return (distances >= -back) & (distances <= ahead)


EVERYTHING = Reach()


def window_to_either_side(width: int | None) -> Reach:
    """Return the reach of a layer that sees ``width`` places before and after; None: all."""
    return Reach(width, width)


def window_of_decoder(width: int | None) -> Reach:
    """Return the reach of a layer whose tokens see ``width`` places up to their own; None: all."""
    return Reach(None if width is None else width - 1, 0)
