"""What two computations of the same numbers may differ by: the one bound, for all tests.

It follows from the size and the number of the terms (`headroles.arrays`). Where numbers are
differences, their size is that of what they are differences of; `sizes_of_scores` finds it.

Tolerances of tests that no model runs in are of three other kinds. Two computations in double
precision agree to 1e-6 or better, whatever p-values and searches for a root make of their rounding.
Shares of simulations have a few standard errors. Numbers that were worked out by hand, or printed
in a paper, have as many digits as were written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray

from headroles import HeadScores
from headroles.arrays import MODEL_TERMS, rounding_bound

SUMS = float(rounding_bound(1, MODEL_TERMS))
"""Relative error of what was summed in float32."""
LARGEST_LOGIT, WIDTH = 60, 32
"""Of the small models of the tests: logits of attention, and hidden states."""
WEIGHTS = float(rounding_bound(LARGEST_LOGIT, 2 * WIDTH))
"""Relative error of attention weights that a small model computes in another order: the absolute
error of their logits, which are products of queries and keys, sums over hidden states both."""
DOUBLE = WEIGHTS * float(np.finfo(np.float64).eps / np.finfo(np.float32).eps)
"""The same for models in double precision."""


def tolerance(size: ArrayLike = 1.0, of: float = SUMS) -> Any:
    """How far numbers of this ``size`` may be apart; an array's largest number is its size."""
    return of * largest(size)


def largest(values: Any) -> float:
    """The largest number of an array, whatever its sign."""
    return float(np.nanmax(np.abs(_numbers(values))))


def largest_excess(
    found: ArrayLike, expected: ArrayLike, size: ArrayLike | None = None, of: float = SUMS
) -> float:
    """The largest difference in units of its tolerance: above 1 it is more than rounding.

    Every number has a ``size`` of its own, by default itself. NaN must stand in the same places.
    """
    one, other = (np.asarray(_numbers(values), dtype=np.float64) for values in (found, expected))
    assert one.shape == other.shape
    there = ~np.isnan(one)
    np.testing.assert_array_equal(there, ~np.isnan(other))
    own = np.maximum(np.abs(one), np.abs(other)) if size is None else np.asarray(_numbers(size))
    bound = of * np.broadcast_to(own, one.shape)[there]
    difference = np.abs(one - other)[there]
    return float((difference / np.maximum(bound, np.finfo(np.float32).tiny)).max(initial=0))


def assert_same_sums(
    found: ArrayLike, expected: ArrayLike, size: ArrayLike | None = None, of: float = SUMS
) -> None:
    """Nothing but rounding is between both."""
    excess = largest_excess(found, expected, size, of)
    assert excess <= 1, f"the largest difference is {excess:.3g} times what rounding explains"


def assert_same_outputs(found: torch.Tensor, expected: torch.Tensor, of: float = WEIGHTS) -> None:
    """The same for what a model puts out: every number has the size of the largest."""
    assert_same_sums(found, expected, largest(expected), of)


def near(expected: Any, of: float = WEIGHTS) -> Any:
    """The same for losses, which are differences of logits, whose size is 1 at least."""
    return pytest.approx(expected, abs=max(1.0, largest(expected)) * of)


def sizes_of(
    values: NDArray[np.floating],
    role_ids: Sequence[str],
    counts: NDArray[np.integer],
    lows: NDArray[np.floating] | None,
) -> NDArray[np.float64]:
    """How large the sums behind scores (examples, ..., roles) are, of ``counts`` (examples, roles).

    A score is what a sieve gets, plus a constant that is its least (``lows``). A contrast takes
    what controls get from what arcs get: at most what all arcs of the role without it get.
    """
    between = (slice(None), *[None] * (values.ndim - 2))
    least = np.zeros(counts.shape) if lows is None else np.nan_to_num(lows)
    sizes = np.abs(np.nan_to_num(values.astype(np.float64))) + 2 * np.abs(least)[between]
    ids = list(role_ids)
    for place, role in enumerate(ids):
        plain = re.sub(r":(beyond_offset|near|near:back|between)$", "", role)
        if plain != role and plain in ids:
            base = ids.index(plain)
            share = np.maximum(counts[:, base], 1) / np.maximum(counts[:, place], 1)
            difference = np.abs(np.nan_to_num(values[..., place].astype(np.float64)))
            sizes[..., place] = 2 * sizes[..., base] * share[between] + difference
        elif role.startswith(("block", "entropy")):  # p ln p is off by as much as p is
            sizes[..., place] += 1
    return sizes


def sizes_of_scores(scores: HeadScores) -> NDArray[np.float64]:
    """The same for all scores of a table."""
    lows = None if scores.bounds is None else scores.bounds[..., 0]
    return sizes_of(scores.values, scores.role_ids, scores.counts, lows)


def _numbers(values: Any) -> Any:
    return values.detach().cpu().double().numpy() if isinstance(values, torch.Tensor) else values
