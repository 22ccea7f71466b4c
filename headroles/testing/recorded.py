"""What records say of tests: level, units, correction and test, as options have them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from headroles.record import Piece
from headroles.testing.catalogue import TESTS

Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
"""A level of tests, or another share between 0 and 1."""


class RecordedCorrection(Piece, frozen=True, kw_only=True):
    """The level of tests, and how they were corrected."""

    alpha: Share
    correction: str


class RecordedUnits(Piece, frozen=True, kw_only=True):
    """At which level was tested, and over which units."""

    alpha: Share
    clusters: str


class RecordedLevel(RecordedUnits, frozen=True, kw_only=True):
    """How was tested against a threshold."""

    correction: str
    family: str
    threshold: float
    offset_margin: float = 0


class RecordedTests(RecordedLevel, frozen=True, kw_only=True):
    """How was tested against a threshold, and by which test."""

    resamples: int
    seed: int
    test: str

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise ValueError(f"unknown test {self.test!r}")
