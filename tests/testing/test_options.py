"""Options of tests: what they may be, and what goes together."""

from __future__ import annotations

from typing import Any

import pytest

from headroles.errors import UsageError
from headroles.inference import CORRECTIONS
from headroles.testing.options import TEST_CORRECTIONS, TestOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha is 0.0; it must lie between 0 and 0.5"),
        ({"alpha": 0.5}, "alpha is 0.5"),
        ({"test": "z"}, "the test is 'z'; it must be one of t, wilcoxon, sign_flip, bootstrap_t"),
        ({"correction": "sidak"}, "the correction is 'sidak'"),
        ({"family": "layer"}, "the family is 'layer'; it must be one of all, role"),
        ({"clusters": "genre"}, "clusters is 'genre'; it must be one of auto, document, none"),
        ({"interval": "wald"}, "the interval is 'wald'"),
        ({"resamples": 0}, "the number of resamples is 0"),
        ({"seed": -1}, "the seed is -1"),
        ({"correction": "max_t"}, "pass test='sign_flip'"),
        ({"correction": "max_t", "test": "bootstrap_t"}, "pass test='sign_flip'"),
        ({"test": "wilcoxon"}, "pass clusters='none'"),
        ({"test": "wilcoxon", "clusters": "document"}, "pass clusters='none'"),
        ({"interval": "simultaneous", "resamples": 18}, "18 resamples are too few"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TestOptions(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"test": "wilcoxon", "clusters": "none"},
        {"test": "sign_flip", "correction": "max_t"},
        {"interval": "simultaneous", "resamples": 19},
        {"alpha": 0.499},
    ],
)
def test_options_that_can(options: dict[str, Any]) -> None:
    TestOptions(**options)


def test_corrections_are_those_of_p_values_and_max_t() -> None:
    assert set(TEST_CORRECTIONS) == {*CORRECTIONS, "max_t"}
