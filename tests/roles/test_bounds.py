"""What scores lie between, whatever the attention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroles.encoding import EncodedExample
from headroles.roles import SCORES, bounds_of
from tests.roles.examples import (
    HAND_SEGMENTS,
    ROLES,
    examples,
    make_example,
    random_attention,
    readout_of,
    roles_of,
    score_of,
)
from tests.rounding import tolerance


def extreme_attention(n: int, seed: int, heads: int = 6) -> NDArray[np.float64]:
    """(1, heads, n, n): every row gives all it has to one key."""
    keys = np.random.default_rng(seed).integers(0, n, (1, heads, n))
    return np.eye(n)[keys]


@pytest.mark.parametrize("score", SCORES)
@given(example=examples(), seed=st.integers(0, 2**32 - 1), reach=st.sampled_from([None, 2, 5]))
@settings(max_examples=40, deadline=None)
def test_no_score_leaves_its_bounds_of_all_layers(
    score: str, example: EncodedExample, seed: int, reach: int | None
) -> None:
    n = len(example)
    readouts = [readout_of([example], score, of) for of in dict.fromkeys((reach, 3))]
    low, high = np.moveaxis(bounds_of(readouts).astype(float), -1, 0)
    for attention in (
        random_attention(n, seed, reach=reach),
        *([extreme_attention(n, seed)] if reach is None else []),
    ):
        values = score_of(attention, [example], score, reach)
        there = ~np.isnan(values[0, 0])
        assert not np.isnan(low[0, there]).any()
        slack = tolerance() * (np.abs(low) + np.abs(high))
        assert (values[..., there] >= (low - slack)[:, None, there]).all()
        assert (values[..., there] <= (high + slack)[:, None, there]).all()


@pytest.mark.parametrize("score", SCORES)
def test_attention_that_stays_in_the_sieve_reaches_the_bound(score: str) -> None:
    """Seven tokens, all attention to the classifier, then none."""
    example = make_example(HAND_SEGMENTS)
    ids = [role.id for role in roles_of(score)]
    low, high = readout_of([example], score).bounds[0, ids.index("delimiter:cls")]
    attention = np.zeros((1, 2, 7, 7))
    attention[:, 0, :, 0] = attention[:, 1, :, 1] = 1
    values = score_of(attention, [example], score)[0, :, ids.index("delimiter:cls")]
    assert values == pytest.approx([high, low])
    expected = {"bias": (0, 7), "excess": (-1 / 6, 1), "hit": (0, 1)}
    assert (low, high) == pytest.approx(expected[score])


@pytest.mark.parametrize(("preset", "most"), [("default", 3.5), ("published", 3.5 * np.log(7))])
def test_entropy_makes_the_bound_of_block_larger(preset: str, most: float) -> None:
    """Four rows look for two keys, three rows for two: n / |S| is 7 / 2 in each."""
    bounds = readout_of([make_example(HAND_SEGMENTS)], preset=preset).bounds[0]
    assert bounds[ROLES.index("block:ratio")] == pytest.approx([0, most])


def test_contrasts_are_bounded_by_both_sieves() -> None:
    """One arc between words of one piece in five words: 8 keys, of which one is looked for."""
    example = make_example([-1, 0, 0, 0, 0, 0, -1, -1][:7], None, [1, -1, -1, -1, -1], {0: "r0"})
    bounds = readout_of([example]).bounds[0]
    assert bounds[ROLES.index("syntactic:r0:to_governor")] == pytest.approx([0, 7])
    assert bounds[ROLES.index("syntactic:r0:to_governor:beyond_offset")] == pytest.approx([-7, 7])
