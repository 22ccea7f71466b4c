"""Contrasts with pairs at the same offset: planted heads and rounding.

Which pairs are controls, `tests.reference` defines, and every test of scores compares with that.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroles.encoding import EncodedExample
from tests.roles.examples import (
    RELATIONS,
    ROLES,
    S,
    examples,
    make_example,
    score_of,
    sizes_in,
    tokens_of,
)
from tests.rounding import tolerance

FIRST = next(place for place, role in enumerate(ROLES) if role.endswith(":beyond_offset"))
CONTRASTS = ROLES[FIRST:]


def contrasts_of(
    attention: NDArray[np.floating], batch: list[EncodedExample], score: str = "bias"
) -> NDArray[np.float64]:
    """(batch, heads, contrasts), NaN where there is none."""
    return score_of(attention, batch, score)[..., -len(CONTRASTS) :]


def profile(n: int, seed: int) -> NDArray[np.float64]:
    """(n, n): attention that depends on the offset alone."""
    by_offset = np.random.default_rng(seed).random(2 * n)
    attention: NDArray[np.float64] = by_offset[np.subtract.outer(range(n), range(n)) + n] / n
    return attention


@given(examples(), st.integers(0, 2**16))
@settings(deadline=None, max_examples=40)
def test_attention_by_offset_alone_scores_zero(example: EncodedExample, seed: int) -> None:
    """A head that looks at positions and not at words has no contrast, not even of rounding."""
    values = contrasts_of(profile(len(example), seed)[None, None], [example])
    assert set(values[~np.isnan(values)].tolist()) <= {0.0}


@given(examples(min_words=5), st.integers(0, 2**16))
@settings(deadline=None, max_examples=40)
def test_attention_along_arcs_scores_above_zero(example: EncodedExample, seed: int) -> None:
    """A head that looks at governors, and else by offset, differs from one that does not."""
    n = len(example)
    attention = profile(n, seed)
    for _, dependent, governor in tokens_of(example).arcs(RELATIONS):
        attention[np.ix_(dependent, governor)] += 0.5
    values = score_of(attention[None, None], [example])
    sizes = sizes_in(values, [example])[0, 0, FIRST:]
    for role, value, size in zip(CONTRASTS, values[0, 0, FIRST:], sizes, strict=True):
        if not np.isnan(value):
            expected = 0.0 if "to_dependent" in role else 0.5 * n
            assert value == pytest.approx(expected, abs=tolerance(size))


@pytest.mark.parametrize("score", ["bias", "excess"])
def test_what_is_only_rounding_is_zero(score: str) -> None:
    """Contrasts below the bound of what arcs and controls get are 0; those above stay."""
    # w0 -> w1 and controls at +1: (1, 2), (2, 3); w1 -> w0, and controls at -1
    example = make_example([S, 0, 0, 0, 0, S], governors=[1, -1, -1, -1], relations={0: "r0"})
    attention = np.full((1, 2, 6, 6), 1 / 6)
    bound = 2 * tolerance()
    attention[0, 0, 1, 2] *= 1 + bound / 2
    attention[0, 1, 1, 2] *= 1 + 4 * bound
    found = contrasts_of(attention, [example], score)[0, :, 0]
    assert found[0] == 0
    assert found[1] == pytest.approx(4 * bound * (1 if score == "bias" else 1 / 5), rel=0.1)
