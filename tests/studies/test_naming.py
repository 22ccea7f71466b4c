"""Whatever way a role is named, it is scored and tested as with its group, contrasts and all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from headroles import (
    HeadScores,
    assign_roles,
    compare_roles,
    power_analysis,
    read_conllu,
    replicate_roles,
    score_heads,
)
from headroles.corpus import Sentence
from headroles.errors import UsageError
from headroles.roles import contrast_of
from tests.conftest import make_bert, make_tokenizer

AMOD = "syntactic:amod:to_dependent"
Scored = Callable[..., HeadScores]


def every_other(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Join every other word to its governor."""
    arcs = enumerate(sentence.governors)
    return ((k, governor) for k, governor in arcs if k % 2 and governor >= 0)


@pytest.fixture(scope="module")
def scored(sample: Path) -> Iterator[Scored]:
    """A function that scores roles; ``mine:every_other`` can be imported."""
    mine: Any = ModuleType("mine")
    mine.every_other = every_other
    model, tokenizer, corpus = make_bert(layers=2, heads=2), make_tokenizer(), read_conllu(sample)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "mine", mine)
        yield lambda roles, **options: score_heads(
            model, corpus, roles=roles, tokenizer=tokenizer, **options
        )


def rows_of(role: str, scores: HeadScores) -> pd.DataFrame:
    """The rows of a role among all that were tested, each test by itself."""
    frame = assign_roles(scores, correction="none", threshold=0.9).frame
    return frame[frame["role"] == role].reset_index(drop=True)


@pytest.mark.parametrize(
    ("role", "group", "named"),
    [
        (AMOD, "syntactic", AMOD),
        (AMOD, "syntactic", [AMOD, "local"]),
        (AMOD, "syntactic", "all"),
        (AMOD, "syntactic", None),
        ("same:back", "same", "same:back"),
        ("same", "same", ["position:-1", "same"]),
        ("mine:every_other", "mine:every_other", "local,mine:every_other"),
    ],
)
def test_a_role_is_the_same_by_every_name(
    role: str, group: str, named: Any, scored: Scored
) -> None:
    rows = rows_of(role, scored(group))
    assert len(rows) == 4
    assert rows[["beyond_distance", "mean_trees"]].notna().all(axis=None)
    pd.testing.assert_frame_equal(rows, rows_of(role, scored(named)))


def test_a_function_is_the_same_by_its_name(scored: Scored) -> None:
    named, itself = scored("mine:every_other"), scored([every_other])
    rows = [rows_of(scores.role_ids[0], scores) for scores in (named, itself)]
    pd.testing.assert_frame_equal(*(frame.drop(columns="role") for frame in rows))


def test_scores_of_a_role_that_lost_its_contrast_are_refused(scored: Scored) -> None:
    lost = scored(AMOD).select(roles=[AMOD])
    uses: list[Callable[[HeadScores], Any]] = [
        assign_roles,
        power_analysis,
        lambda scores: compare_roles(scores, scores),
        lambda scores: replicate_roles([scores, scores], ["a", "b"]),
    ]
    for use in uses:
        with pytest.raises(UsageError, match=f"without its contrast {contrast_of(AMOD)}, so that"):
            use(lost)
    without = scored(AMOD, beyond_offset=False)  # as the user wants it
    assert assign_roles(without).frame["beyond_distance"].isna().all()


@pytest.mark.parametrize(
    ("roles", "options", "message"),
    [
        (contrast_of(AMOD), {}, f"is the contrast of a role .*; name {AMOD}$"),
        ("same:back:beyond_offset", {}, "is the contrast of a role .*; name same:back$"),
        ("noun -> its adjective", {}, "pass roles='syntactic', with the relation amod among"),
        ("amod", {}, "pass roles='syntactic', with the relation amod among"),
        ("syntactic", {"relations": "none"}, "asks for syntactic, but no relation is scored"),
    ],
)
def test_other_names_are_refused_with_the_right_one(
    roles: str, options: dict[str, str], message: str, scored: Scored
) -> None:
    with pytest.raises(UsageError, match=message):
        scored(roles, **options)
