"""Score sets made by hand, to compare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles.record import Record, RecordedCorpus, RecordedModel
from headroles.roles import SCORES
from headroles.scoring.scores import HeadScores
from tests.conftest import make_roles

ROLES = ("local", "block", "syntactic:any:to_governor")
OPTIONS = {"pairing": "adjacent"}


def make_scores(
    values: NDArray[Any],
    roles: tuple[str, ...] = ROLES,
    documents: int = 1,
    score: str = "bias",
    **options: Any,
) -> HeadScores:
    """``values`` (examples, layers, heads, roles) of examples in so many documents."""
    n = len(values)
    return HeadScores(
        ids=tuple(f"e{k}" for k in range(n)),
        documents=tuple(f"d{k % documents}" for k in range(n)),
        lengths=np.full(n, 20),
        roles=make_roles(roles),
        values=values.astype(np.float32),
        counts=np.isfinite(values).any(axis=(1, 2)).astype(np.int64) * 5,
        score=SCORES[score],
        record=Record(
            options={**OPTIONS, **options},
            corpus=RecordedCorpus(scheme="UD"),
            model=RecordedModel(reaches=[None] * values.shape[1]),
        ),
        digests=tuple(f"{k:08x}{k + 1000:08x}" for k in range(n)),
    )


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


def reordered(scores: HeadScores, rows: list[int] | NDArray[np.int64]) -> HeadScores:
    """The examples at ``rows`` only, in this order."""
    return replace(
        scores,
        ids=tuple(scores.ids[row] for row in rows),
        documents=tuple(scores.documents[row] for row in rows),
        lengths=scores.lengths[rows],
        values=scores.values[rows],
        counts=scores.counts[rows],
        digests=tuple(scores.digests[row] for row in rows),
    )
