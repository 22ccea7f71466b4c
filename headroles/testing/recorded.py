"""Options of tests in records: level, units, correction and test."""

from __future__ import annotations

from typing import Annotated

import msgspec

from headroles.record import Recorded
from headroles.testing.catalogue import TESTS

Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
"""A level of tests, or another share between 0 and 1."""


class RecordedLevel(Recorded, frozen=True, kw_only=True):
    """Level, units and correction of tests against a threshold."""

    alpha: Share
    clusters: str
    correction: str
    threshold: float
    offset_margin: float = 0
    distance_margin: float | None = None


class RecordedTests(RecordedLevel, frozen=True, kw_only=True):
    """Options of tests against a threshold, with the test itself."""

    test: str

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise ValueError(f"unknown test {self.test!r}")
