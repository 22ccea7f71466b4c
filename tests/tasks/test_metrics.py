"""Metrics against another library's formulas, done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headroles.tasks.outcomes import METRICS

rng = np.random.default_rng(5)
TARGET = rng.integers(0, 2, 60).astype(float)
PREDICTED = np.where(rng.random(60) < 0.7, TARGET, 1 - TARGET)


def test_of_two_classes() -> None:
    tp, fp, fn, tn = (
        int(((p == PREDICTED) & (t == TARGET)).sum()) for p, t in ((1, 1), (1, 0), (0, 1), (0, 0))
    )
    assert METRICS["accuracy"](PREDICTED, TARGET) == pytest.approx((tp + tn) / 60)
    assert METRICS["f1"](PREDICTED, TARGET) == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert METRICS["matthews"](PREDICTED, TARGET) == pytest.approx(
        stats.pearsonr(PREDICTED, TARGET).statistic
    )


def test_of_three_classes() -> None:
    target = rng.integers(0, 3, 90).astype(float)
    predicted = np.where(rng.random(90) < 0.6, target, rng.integers(0, 3, 90))
    confusion = np.array(
        [[((predicted == p) & (target == t)).sum() for p in range(3)] for t in range(3)]
    )
    right, total = np.trace(confusion), confusion.sum()
    said, there = confusion.sum(0), confusion.sum(1)
    expected = (right * total - said @ there) / np.sqrt(
        float(total**2 - said @ said) * float(total**2 - there @ there)
    )
    assert METRICS["matthews"](predicted, target) == pytest.approx(expected)


def test_without_variance() -> None:
    ones = np.ones(4)
    assert METRICS["matthews"](ones, np.array([0.0, 1, 0, 1])) == 0
    assert METRICS["f1"](0 * ones, 0 * ones) == 0
    assert METRICS["spearman"](ones, np.arange(4.0)) == 0
