"""Score sets made by hand, to compare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headroles.scoring.scores import HeadScores
from tests import conftest

ROLES = ("local", "block", "syntactic:any:to_governor")


def make_scores(
    values: np.ndarray, roles: Any = ROLES, documents: int = 1, score: str = "bias", **options: Any
) -> HeadScores:
    """``values`` (examples, layers, heads, roles) of examples in so many documents."""
    n = len(values)
    made = conftest.make_scores(
        values,
        roles,
        [f"d{k % documents}" for k in range(n)],
        score,
        options={"pairing": "adjacent", **options},
        corpus={"scheme": "UD"},
        model={"reaches": [None] * values.shape[1]},
    )
    return replace(made, digests=tuple(f"{k:08x}{k + 1000:08x}" for k in range(n)))


def random_scores(
    seed: int = 0, n: int = 40, layers: int = 2, heads: int = 3, **options: Any
) -> HeadScores:
    """Means above and below the threshold of 3; ``block`` is in every other example only."""
    rng = np.random.default_rng(seed)
    means = rng.normal(3, 1.5, (layers, heads, len(ROLES)))
    values = rng.normal(means, 1, (n, *means.shape))
    values[::2, ..., 1] = np.nan
    return make_scores(values, **options)


def shifted(scores: HeadScores, by: Any, noise: float = 0.0, seed: int = 1) -> HeadScores:
    """``scores`` with ``by`` added, and random differences of their own."""
    noisy = np.random.default_rng(seed).normal(0, noise, scores.values.shape)
    return replace(scores, values=(scores.values + by + noisy).astype(np.float32))
