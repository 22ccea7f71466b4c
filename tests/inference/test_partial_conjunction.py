"""Evidence for at least u of k, by going through all subsets, and its level."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from headroles.errors import StatisticsError
from headroles.inference import partial_conjunction


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("at_least", [1, 2, 3, 4])
def test_it_is_the_least_over_all_sets_of_true_nulls(at_least: int, independent: bool) -> None:
    """Under the null some 4 - u + 1 are true: the evidence against each such choice."""
    e = np.random.default_rng(0).lognormal(0, 3, (4, 30))
    against = []
    for chosen in combinations(range(4), 4 - at_least + 1):
        own = e[list(chosen)]
        against.append(own.prod(axis=0) if independent else own.mean(axis=0))
    found = partial_conjunction(np.log(e), at_least, independent)
    np.testing.assert_allclose(np.exp(found), np.min(against, axis=0))


def test_what_was_not_tested_is_no_evidence() -> None:
    log_e = np.array([[np.nan, 2.0], [3.0, 1.0]])
    assert partial_conjunction(log_e, 2, independent=True).tolist() == [0, 1]


def test_expectation_under_the_null() -> None:
    """Two of three nulls are true, E = 1 on average; the third has all evidence there could be."""
    rng = np.random.default_rng(1)
    null = np.log(2 * rng.random((2, 100_000)))
    log_e = np.concatenate([null, np.full((1, 100_000), 50.0)])
    for independent in (False, True):
        e = np.exp(partial_conjunction(log_e, 2, independent))
        assert e.mean() <= 1 + 4 * e.std() / np.sqrt(100_000)
        assert (e >= 20).mean() <= 0.05


@pytest.mark.parametrize("at_least", [0, 3])
def test_more_than_there_are(at_least: int) -> None:
    with pytest.raises(StatisticsError, match=f"at_least is {at_least}; give a number from 1 to 2"):
        partial_conjunction(np.zeros((2, 3)), at_least, independent=True)


def test_one_dimension() -> None:
    with pytest.raises(StatisticsError, match="1 dimensions"):
        partial_conjunction([0.0, 1.0], 1, independent=True)
