"""One p-value of several, and tests of different kinds corrected together."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from headroles.testing.evidence import PValues, corrected_together, find_p_values, in_at_least
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import CorrectionOptions


def p_values(*single: float) -> PValues:
    nothing = np.full(len(single), np.nan)
    return PValues(nothing, np.array(single), np.array(single), nothing, nothing)


def test_in_at_least_is_the_partial_conjunction_of_bonferroni() -> None:
    found = p_values(0.01, 0.3, 0.02, np.nan)
    assert in_at_least(found, 1).single[0] == pytest.approx(0.04)
    assert in_at_least(found, 2).single[0] == pytest.approx(0.06)
    assert in_at_least(found, 4).single[0] == 1  # what was not tested is no evidence
    assert np.isnan(in_at_least(p_values(np.nan), 1).single[0])


def test_bounds_count_where_nothing_varies() -> None:
    tested = find_p_values(
        Hypotheses.of(np.ones((30, 1)), 0.5, size=1), CorrectionOptions(), "greater"
    )
    assert np.isnan(tested.single[0])
    assert in_at_least(tested, 1).single[0] == pytest.approx((1 / 1.5) ** 30)


def test_tests_of_different_kinds_are_corrected_together() -> None:
    single = [0.01, 0.04, 0.03, 0.2]
    parts = [p_values(single[0], single[1]), p_values(single[2]), p_values(np.nan, single[3])]
    found = corrected_together(parts, CorrectionOptions())
    oracle = multipletests([0.01, 0.04, 0.03, 0.2], method="fdr_bh")[1]
    assert found.adjusted[[0, 1, 2, 4]] == pytest.approx(oracle)
    assert np.isnan(found.adjusted[3])
