"""Ratios of costs are compared with those of the last release; the benchmark measures them."""

from __future__ import annotations

import json

from benchmarks.speeds import FIGURES, processor, slower


def test_a_tenth_slower_fails() -> None:
    before = {"ablate": 30.0, "hit": 1.2, "gone": 1.0}
    assert slower({"ablate": 32.9, "hit": 1.0, "new": 9.0}, before) == []
    assert slower({"ablate": 33.1, "hit": 1.0}, before) == [
        "ablate takes 33.10 forward passes, 30.00 in the last release"
    ]


def test_figures_are_by_processor() -> None:
    figures = json.loads(FIGURES.read_text("utf-8"))
    assert "," in processor()
    assert all(ratio > 0 for of_one in figures.values() for ratio in of_one.values())
