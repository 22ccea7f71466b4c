"""Corrections for several tests are those of statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from headroles.inference import adjust_p_values


@pytest.mark.parametrize("n", [1, 2, 7, 600])
def test_holm_is_that_of_statsmodels(n: int) -> None:
    """To the bit, with equal p-values and with tests that were not made."""
    p_values = np.random.default_rng(n).random(n) ** 3
    p_values[n // 2 :] = p_values[n // 2 :].round(2)
    expected = multipletests(p_values, method="holm")[1]
    np.testing.assert_array_equal(adjust_p_values(p_values, "holm"), expected)
    with_gap = np.append(p_values, np.nan)
    np.testing.assert_array_equal(adjust_p_values(with_gap, "holm"), np.append(expected, np.nan))


def test_no_test_has_no_correction() -> None:
    assert np.isnan(adjust_p_values([np.nan], "holm")).all()
