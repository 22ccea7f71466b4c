"""McNemar's test against that of statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar

from headroles.inference import mcnemar_test


def test_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(2)
    reference = rng.random((40, 1)) < 0.7
    right = reference ^ (rng.random((40, 5)) < np.array([0.02, 0.1, 0.2, 0.3, 0.5]))
    expected = []
    for column in right.T:
        table = [[(column & reference[:, 0]).sum(), (column & ~reference[:, 0]).sum()]]
        table.append([(~column & reference[:, 0]).sum(), (~column & ~reference[:, 0]).sum()])
        expected.append(float(mcnemar(table, exact=True).pvalue))
    assert mcnemar_test(right.astype(int) - reference) == pytest.approx(expected)


def test_without_a_difference() -> None:
    answers = np.array([[True], [False], [True]])
    assert mcnemar_test(0 * answers) == pytest.approx([1])
