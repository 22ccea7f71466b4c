"""Which answers half precision may have changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from headroles import HeadScores, RoleTable, assign_roles
from headroles.record import HalfPrecision, ScoresRecord
from headroles.results.shown import as_text
from tests.conftest import flat

Move = float | None


def _scores(
    means: list[float], moves: list[Move], n: int = 30, **asked: Any
) -> tuple[HeadScores, HalfPrecision]:
    """Scores of one role in one layer, of these means and a deviation of 1, half precision."""
    noise = np.random.default_rng(0).normal(size=(n, len(means)))
    noise = (noise - noise.mean(0)) / noise.std(0, ddof=1)
    values = (np.array(means) + noise)[:, None, :, None]
    half = HalfPrecision("bfloat16", n, 0.5, {"local": 0.25}, 3, {"local": [moves]}, **asked)
    scores = HeadScores.by_hand(values, ["local"])
    return scores_with(scores, half), half


def scores_with(scores: HeadScores, half: HalfPrecision) -> HeadScores:
    record = ScoresRecord(half_precision=half)
    return HeadScores.from_blocks([scores.block], scores.roles, scores.score, record)


def _near(table: RoleTable) -> list[int]:
    assert all(layer == 0 and role == "local" for layer, _, role in table.tests.near)
    return [head for _, head, _ in table.tests.near]


def _assign(scores: HeadScores, **asked: Any) -> RoleTable:
    return assign_roles(scores, threshold=0, **asked)


# with 30 examples of deviation 1, p is 0.05 at a mean of 0.310
LIMIT = 0.310


@pytest.mark.parametrize("side", [-1, 1])
def test_a_mean_that_may_cross_the_limit_of_significance_is_near(side: int) -> None:
    means = [side * one for one in (LIMIT - 0.02, LIMIT + 0.02, LIMIT - 0.06, LIMIT + 0.06, 0.0)]
    scores, _ = _scores(means, [0.04] * len(means))
    assert _near(_assign(scores, correction="none")) == [0, 1]  # not the mean at the threshold


def test_each_head_moves_as_far_as_it_was_seen_to() -> None:
    scores, _ = _scores([LIMIT + 0.02] * 3, [0.01, 0.03, 0.0])
    assert _near(_assign(scores, correction="none")) == [1]


def test_the_correction_moves_with_all_of_them() -> None:
    """Only the first two may move; as they lose their answers, the third loses its own."""
    scores, _ = _scores([LIMIT + 0.1, LIMIT + 0.1, LIMIT + 0.03, -1.0], [0.3, 0.3, 0.0, 0.0])
    table = _assign(scores, correction="fdr_bh")
    assert table.frame["answer"].tolist()[:3] == ["yes"] * 3
    assert _near(table) == [0, 1, 2]


def test_of_a_role_that_was_not_compared_all_answers_are_near() -> None:
    scores, _ = _scores([5.0, -5.0], [None, 0.01])
    assert _near(_assign(scores)) == [0]


def test_what_is_in_float32_moves_no_more() -> None:
    scores, _ = _scores([LIMIT + 0.02] * 2, [0.04] * 2, rescored=[(0, 1, "local")], changed=1)
    table = _assign(scores, correction="none")
    assert _near(table) == [0]
    assert table.frame["note"].tolist() == [
        "near: float32 may change the answer of bfloat16",
        "scored in float32",
    ]
    assert "1 of 2 answers are near enough to changing" in table.warnings[-1]
    text = as_text(list(table.details()))
    assert "float32 may change the answers of 0-0 local" in text
    assert "scored in float32: 0-1 local" in text
    assert "its scores are from a second pass" not in text


def test_a_second_pass_is_told_and_no_warning_left() -> None:
    scores, half = _scores([LIMIT + 0.02, 5.0], [0.04] * 2)
    rescored = structs.replace(half, rescored=[(0, 0, "local")], changed=1)
    table = _assign(scores_with(scores, rescored), correction="none")
    assert not any("bfloat16" in one for one in table.warnings)
    assert (
        "bfloat16 could have changed 1 of 2 answers; their scores are from a second pass in "
        "float32, which changed 1." in flat(table)
    )


def test_certified_answers_may_be_near_too() -> None:
    """Betting takes more evidence than t: its answer is the one that moves."""
    values = np.random.default_rng(0).uniform(0, 1, size=(40, 1, 1, 1))
    scores = HeadScores.by_hand(values, ["local"], bounds=(0, 1))
    limits = np.linspace(0.3, 0.5, 81)
    answers = [
        (table.frame["answer"][0], table.frame["certified"][0])
        for table in (assign_roles(scores, threshold=limit) for limit in limits)
    ]
    place = next(k for k, (given, certified) in enumerate(answers) if certified != "yes")
    assert answers[place] == ("yes", "undecided")
    half = HalfPrecision("bfloat16", 40, 0.1, {"local": 0.01}, 3, {"local": [[0.005]]})
    table = assign_roles(scores_with(scores, half), threshold=limits[place])
    assert _near(table) == [0]
    assert not _near(assign_roles(scores_with(scores, half), threshold=0.1))


def test_near_answers_are_those_of_any_float32_scores() -> None:
    """Whatever means are within the moves: answers that are not near stay."""
    rng = np.random.default_rng(1)
    means = rng.normal(0.4, 0.2, 60)
    moves = np.abs(rng.normal(0, 0.05, 60))
    scores, _ = _scores(means.tolist(), moves.tolist())
    table = _assign(scores)
    is_near = np.isin(np.arange(60), _near(table))
    assert 3 < is_near.sum() < 30
    changed = np.zeros(60, dtype=bool)
    for _ in range(40):
        other, _ = _scores((means + rng.uniform(-1, 1, 60) * moves).tolist(), moves.tolist())
        changed |= (_assign(other).frame["answer"] != table.frame["answer"]).to_numpy()
    assert changed.any()
    assert not (changed & ~is_near).any()


def test_the_table_comes_back(tmp_path: Path) -> None:
    scores, _ = _scores([LIMIT + 0.02, 5.0], [0.04, None], rescored=[(0, 1, "local")])
    table = _assign(scores, correction="none")
    table.save(tmp_path / "roles")
    again = RoleTable.load(tmp_path / "roles")
    assert again.tests.near == table.tests.near == [(0, 0, "local")]
    assert again.record.half_precision == table.record.half_precision
