"""Quantities of heads: means and intervals, and that they are no roles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from headroles import HeadScores, Role, assign_roles, describe_heads
from headroles.errors import UsageError
from tests.conftest import make_scores

VALUES = np.random.default_rng(0).random((12, 1, 2, 2))


def described() -> HeadScores:
    scores = make_scores(VALUES, ["local", "entropy"])
    return replace(scores, roles=(scores.roles[0], Role("entropy", is_described=True)))


def test_means_and_intervals() -> None:
    frame = describe_heads(described(), clusters="none").frame
    assert frame["role"].tolist() == ["entropy"] * 2
    own = VALUES[:, 0, 1, 1].astype(np.float32).astype(float)
    low, high = t.interval(0.95, 11, own.mean(), own.std(ddof=1) / np.sqrt(12))
    assert frame["mean"][1] == pytest.approx(own.mean())
    assert (frame["ci_low"][1], frame["ci_high"][1]) == pytest.approx((low, high))


def test_quantities_are_not_tested() -> None:
    assert assign_roles(described()).roles == ("local",)
    alone = make_scores(VALUES[..., 1:], ["x"])
    alone = replace(alone, roles=(Role("entropy", is_described=True),))
    with pytest.raises(UsageError, match="no role to test"):
        assign_roles(alone)
    with pytest.raises(UsageError, match="no quantity that describes heads; score again with"):
        describe_heads(make_scores(VALUES, ["local", "syntactic:any:to_governor"]))
