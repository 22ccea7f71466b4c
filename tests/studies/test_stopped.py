"""What may be asked of scores that stopped early: every study that reads scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headroles import (
    HeadScores,
    assign_roles,
    compare_roles,
    find_best_heads,
    plan_examples,
    replicate_roles,
)
from headroles import describe_heads as describe
from headroles.errors import UsageError
from headroles.record import ScoresRecord
from headroles.results.shown import as_text
from headroles.roles import OFFSETS, Role
from headroles.studies.heads import HeadColumns, hypotheses_of
from headroles.studies.stopped import warn_of_stopped
from headroles.testing.options import TestOptions
from tests.conftest import make_scores
from tests.inference.conftest import betting_test

N = 60


def stopped(
    of: str = "corpus",
    sentences: int = 70,
    name: str = "a",
    seed: int = 0,
    score: str = "excess",
    roles: tuple[str, ...] = ("local",),
) -> HeadScores:
    """Excess of four heads, two with the role, after so many of 200 sentences."""
    means = np.array([[0.6, 0.05], [0.5, 0.02]])
    rng = np.random.default_rng(ord(name))
    values = rng.beta(20 * means, 20 * (1 - means), (N, 2, 2))
    unit = {"corpus": "example", "text": "document"}[of]
    scores = make_scores(
        np.repeat(values[..., None], len(roles), axis=-1),
        roles,
        [f"{name}-{k // 3}" for k in range(N)],
        score=score,
        stopped={
            "until": 0.5,
            "until_of": of,
            "shuffle_seed": seed,
            "unit": unit,
            "units": 100,
            "sentences": sentences,
            "of_sentences": 200,
            "decided": 0.6,
        },
    )
    return replace(
        scores,
        bounds=np.broadcast_to(np.array([0, 1], dtype=np.float32), (N, len(roles), 2)),
        digests=tuple(f"{name}-{k}" for k in range(N)),
    )


def hits(sentences: int = 70) -> HeadScores:
    """First choices of an arc, with what offsets would hit."""
    role = "syntactic:obj:to_governor"
    scores = stopped(sentences=sentences, score="hit", roles=(role,))
    shares = np.random.default_rng(0).random((N, 1, len(OFFSETS))).astype(np.float32)
    return replace(scores, offset_shares=shares)


def quantities(sentences: int = 70) -> HeadScores:
    scores = stopped(sentences=sentences)
    return replace(scores, roles=(Role("confidence", is_described=True),))


REFUSED: list[tuple[Callable[..., Any], Callable[[int], HeadScores], str]] = [
    (lambda scores: compare_roles(scores, scores), lambda n: stopped(sentences=n), "paired tests"),
    (plan_examples, lambda n: stopped(sentences=n), "a plan takes"),
    (
        lambda scores: assign_roles(scores, interval="fcr"),
        lambda n: stopped(sentences=n),
        "intervals fcr take",
    ),
    (
        lambda scores: assign_roles(scores, preset="published"),
        lambda n: stopped(sentences=n, score="bias"),
        "the published tests take",
    ),
    (assign_roles, hits, "the best fixed offsets, which are found in the scores, take"),
]


@pytest.mark.parametrize(("study", "make", "what"), REFUSED, ids=[what for *_, what in REFUSED])
def test_studies_of_a_fixed_number_of_examples_are_refused(
    study: Callable[..., Any], make: Callable[[int], HeadScores], what: str
) -> None:
    with pytest.raises(UsageError, match=f"after 70 of 200 sentences.*{what}.*whole corpus"):
        study(make(70))
    study(make(200))  # that came to the end of its corpus


@pytest.mark.parametrize(("study", "make"), [(find_best_heads, hits), (describe, quantities)])
def test_intervals_are_called_rough(
    study: Callable[..., Any], make: Callable[..., HeadScores]
) -> None:
    assert study(make()).warnings == tuple(warn_of_stopped(make().record))
    assert "they are rough" in study(make()).warnings[0]
    assert study(make(200)).warnings == ()


@pytest.mark.parametrize("of", ["corpus", "text"])
def test_role_tables_are_by_betting_with_rough_intervals(of: str) -> None:
    table = assign_roles(stopped(of))
    assert table.tests.test == "betting"
    assert (table.frame["answer"] == table.frame["certified"]).all()
    assert "Scoring stopped after 70 of 200 sentences" in repr(table)
    assert "and are rough" in as_text(table.details())
    assert "and are rough" not in as_text(assign_roles(stopped(of, 200)).details())
    assert assign_roles(stopped(of), threshold=0.3).tests.test == "betting"


def test_scores_without_a_random_order_are_none_of_these() -> None:
    assert not ScoresRecord().stopped_early
    assert stopped().record.stopped_early
    assert not stopped(sentences=200).record.stopped_early
    plain = replace(stopped(), record=ScoresRecord())
    assert assign_roles(plain).tests.test == "t"


@pytest.mark.parametrize("of", ["corpus", "text"])
def test_replication_bets_on_the_random_order(of: str) -> None:
    sets = [stopped(of, name="a", seed=0), stopped(of, name="b", seed=1)]
    frame = replicate_roles(sets, ["a", "b"], correction="none").frame
    found = []
    for one in sets:
        tested = hypotheses_of(one, HeadColumns.of(one), TestOptions())
        assert tested.bounds is not None
        n_population = 100 if of == "corpus" else None
        bet = betting_test(
            tested.sample, tested.threshold, tested.bounds, n_population=n_population
        )
        found.append(bet.log_e)
    both = frame[frame["at_least"] == 1]
    np.testing.assert_allclose(both["log_e"], np.sum(found, axis=0))


@pytest.mark.parametrize(
    ("of", "seeds", "independent"),
    [("corpus", (0, 1), True), ("corpus", (3, 3), False), ("text", (3, 3), True)],
)
def test_orders_of_one_seed_are_not_independent(
    of: str, seeds: tuple[int, int], independent: bool
) -> None:
    """Corpora of one size would have been read in the very same order."""
    sets = [stopped(of, name=name, seed=seed) for name, seed in zip("ab", seeds, strict=True)]
    table = replicate_roles(sets, ["a", "b"])
    assert table.asked.independent is independent
    assert ("shuffle_seed of a random order" in repr(table)) is not independent
