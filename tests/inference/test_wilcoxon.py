"""Signed ranks against scipy, column by column."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headroles.inference import DEGENERATE, OK, UNTESTABLE, wilcoxon_signed_rank

ALTERNATIVES = ("greater", "less", "two-sided")


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [5, 10, 14, 50, 51, 200])
@pytest.mark.parametrize("decimals", [0, 12])
def test_equals_scipy_column_by_column(n: int, alternative: str, decimals: int) -> None:
    rng = np.random.default_rng(n)
    data = np.round(rng.normal(3.3, 2, size=(n, 6)), decimals)  # 0: ties and zeros
    data[:2, 2:4] = np.nan
    result = wilcoxon_signed_rank(data, 3, alternative)
    for test in range(6):
        if result.status[test] == OK:
            column = data[~np.isnan(data[:, test]), test] - 3
            expected = stats.wilcoxon(column, alternative=alternative)
            assert result.p_value[test] == pytest.approx(expected.pvalue, rel=1e-10)


def test_statistic_and_effect_size() -> None:
    result = wilcoxon_signed_rank([[4.0], [1.0], [6.0], [3.0], [np.nan]], 3)
    assert (result.n[0], result.n_nonzero[0]) == (4, 3)
    assert result.statistic[0] == 1 + 3
    assert result.effect_size[0] == pytest.approx((1 + 3 - 2) / 6)


def test_one_tied_column_does_not_change_the_others() -> None:
    data = np.random.default_rng(0).normal(3.5, 1, size=(20, 3))
    alone = wilcoxon_signed_rank(data[:, :1], 3).p_value[0]
    data[:, 1] = np.round(data[:, 1])
    assert wilcoxon_signed_rank(data, 3).p_value[0] == alone


def test_nothing_to_test(hopeless: NDArray[np.float64]) -> None:
    result = wilcoxon_signed_rank(hopeless, 3)
    assert result.status.tolist() == [UNTESTABLE, UNTESTABLE, DEGENERATE, OK]
    assert np.isnan(result.p_value[:3]).all()
    assert result.p_value[3] == stats.wilcoxon(hopeless[:, 3] - 3, alternative="greater").pvalue
    assert wilcoxon_signed_rank(np.zeros((0, 2)), 3).status.tolist() == [UNTESTABLE] * 2
