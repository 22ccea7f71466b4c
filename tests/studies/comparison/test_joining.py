"""Joining score sets: what belongs together, what is refused and with which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headroles import HeadScores, Role
from headroles.errors import UsageError
from headroles.record import Record
from headroles.roles import SCORES
from headroles.studies.comparison.joining import join_scores
from tests.conftest import changed
from tests.rounding import tolerance
from tests.studies.comparison.made import make_scores, random_scores, reordered, shifted


@pytest.fixture
def before() -> HeadScores:
    return random_scores(documents=4)


def join(before: HeadScores, after: HeadScores, on_mismatch: str = "error") -> dict[str, Any]:
    return join_scores({"before": before, "after": after}, on_mismatch).sets


def with_options(scores: HeadScores, **options: Any) -> HeadScores:
    return changed(scores, options={**scores.record.options, **options})


def test_the_order_of_examples_does_not_matter(before: HeadScores) -> None:
    after = shifted(before, 1.0)
    rows = np.random.default_rng(0).permutation(before.n_examples)
    joined = join(before, reordered(after, rows))
    np.testing.assert_array_equal(joined["before"].values, before.values)
    np.testing.assert_array_equal(joined["after"].values, after.values)
    assert joined["after"].ids == joined["before"].ids == before.ids
    np.testing.assert_array_equal(joined["after"].counts, before.counts)


def test_documents_are_called_as_before(before: HeadScores) -> None:
    """Names of documents are after those of files, which may differ between machines."""
    moved = replace(before, documents=tuple(f"/elsewhere/{name}" for name in before.documents))
    assert join(before, moved)["after"].documents == before.documents


def test_the_order_of_roles_does_not_matter(before: HeadScores) -> None:
    turned = replace(
        before,
        roles=before.roles[::-1],
        values=before.values[..., ::-1],
        counts=before.counts[:, ::-1],
    )
    joined = join(before, turned)["after"]
    assert joined.roles == before.roles
    np.testing.assert_array_equal(joined.values, before.values)


def with_meaning(scores: HeadScores, role: str, **meaning: Any) -> HeadScores:
    """The same scores of a role that means something else."""
    changed = [
        replace(own, meaning={**own.meaning, **meaning}) if own.id == role else own
        for own in scores.roles
    ]
    return replace(scores, roles=tuple(changed))


@pytest.mark.parametrize("on_mismatch", ["error", "intersect"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: random_scores(layers=3), "'after' differ in their number of layers: 2 and 3"),
        (lambda _: random_scores(heads=4), "'after' differ in their number of heads: 3 and 4"),
        (
            lambda own: changed(own, model={"reaches": [None, 64]}),
            r"layers reaches: \[None, None\] and \[None, 64\]",
        ),
        (
            lambda own: replace(own, score=SCORES["excess"]),
            "kind of score: 'bias' and 'excess'; score both alike",
        ),
        (
            lambda own: with_options(own, pairing="none"),
            "pairing of sentences: adjacent and none; score both alike",
        ),
        (
            lambda own: changed(own, corpus={"scheme": "CLEAR"}),
            "label scheme of their corpus: UD and CLEAR",
        ),
        (
            lambda own: with_meaning(own, "local", window=3),
            "window of local: 2 and 3; score both alike",
        ),
        (
            lambda own: with_meaning(own, "local", published_edge=True),
            "published_edge of local: False and True; score",
        ),
        (
            lambda own: with_meaning(own, "syntactic:any:to_governor", keep_subtypes=True),
            "keep_subtypes of syntactic:any:to_governor: False and True",
        ),
    ],
)
def test_scores_that_mean_something_else_are_refused(
    before: HeadScores, change: Any, message: str, on_mismatch: str
) -> None:
    with pytest.raises(UsageError, match=message):
        join(before, change(before), on_mismatch)


class TestOtherRoles:
    def test_relations_are_refused_or_intersected(self) -> None:
        """What pools other relations goes; the relations that both have stay."""
        values = np.random.default_rng(0).normal(3, 1, (10, 2, 3, 4))
        nsubj, obj, amod = (f"syntactic:{name}:to_governor" for name in ("nsubj", "obj", "amod"))
        before = with_meaning(
            make_scores(values, ("local", "syntactic:any:to_governor", nsubj, obj)),
            "syntactic:any:to_governor",
            relations=["nsubj", "obj"],
        )
        after = with_meaning(
            make_scores(values, ("local", "syntactic:any:to_governor", nsubj, amod)),
            "syntactic:any:to_governor",
            relations=["nsubj", "amod"],
        )
        with pytest.raises(UsageError, match=r"relations: \['nsubj', 'obj'\] and \['nsubj', 'am"):
            join(before, after)
        joined = join_scores({"before": before, "after": after}, "intersect")
        both = ("local", nsubj)
        assert joined.sets["after"].role_ids == joined.sets["before"].role_ids == both
        assert joined.dropped_roles == {
            "before": ["syntactic:any:to_governor", obj],
            "after": ["syntactic:any:to_governor", amod],
        }
        assert joined.dropped_examples == {"before": 0, "after": 0}
        np.testing.assert_array_equal(joined.sets["after"].values, values[..., [0, 2]].astype("f4"))

    def test_contrasts_are_refused_or_intersected(self) -> None:
        values = np.random.default_rng(0).normal(3, 1, (10, 2, 3, 2))
        before = make_scores(values[..., :1], ("syntactic:any:to_governor",))
        after = make_scores(
            values, ("syntactic:any:to_governor", "syntactic:any:to_governor:beyond_offset")
        )
        with pytest.raises(
            UsageError, match="roles: none besides and syntactic:any:to_governor:beyond_offset; sc"
        ):
            join(before, after)
        assert join(before, after, "intersect")["after"].role_ids == ("syntactic:any:to_governor",)

    def test_roles_of_ones_own_are_compared_by_what_they_mean(self) -> None:
        values = np.random.default_rng(0).normal(3, 1, (10, 2, 3, 1))
        sides = [
            replace(make_scores(values, ("mine",)), roles=(Role("mine", meaning={"depth": depth}),))
            for depth in (1, 2)
        ]
        with pytest.raises(UsageError, match="depth of mine: 1 and 2"):
            join(*sides)
        assert join(sides[0], sides[0])["after"].role_ids == ("mine",)

    def test_no_role_in_common(self) -> None:
        values = np.ones((4, 1, 1, 1))
        before, after = make_scores(values, ("local",)), make_scores(values, ("block",))
        with pytest.raises(UsageError, match="differ in their roles: local and block"):
            join(before, after)
        with pytest.raises(UsageError, match="no role in common"):
            join(before, after, "intersect")


class TestOtherExamples:
    def test_missing_examples_are_named(self, before: HeadScores) -> None:
        fewer = reordered(before, [row for row in range(40) if row not in (7, 9)])
        message = r"2 of the 40 of 'before' have no match, first 'e7' \('after' lacks it\)"
        with pytest.raises(UsageError, match=message):
            join(before, fewer)
        with pytest.raises(UsageError, match=r"2 of the 40 of 'after' .* \('before' lacks it\)"):
            join(fewer, before)

    def test_other_tokens_or_trees_are_named(self, before: HeadScores) -> None:
        for digest in ("aaaaaaaa" + before.digests[5][8:], before.digests[5][:8] + "aaaaaaaa"):
            digests = (*before.digests[:5], digest, *before.digests[6:])
            other = replace(before, digests=digests)
            why = r"its tokens, its tree or its labels differ"
            message = rf"1 of the 40 .* first 'e5' \({why}\); .*intersect"
            with pytest.raises(UsageError, match=message):
                join(before, other)

    def test_intersection_keeps_what_both_have(self, before: HeadScores) -> None:
        after = reordered(shifted(before, 1.0), list(range(35, 9, -1)))
        after = replace(after, digests=("0" * 16, *after.digests[1:]))  # that of e35
        joined = join_scores({"before": before, "after": after}, "intersect")
        assert joined.sets["before"].ids == tuple(f"e{k}" for k in range(10, 35))
        assert joined.dropped_examples == {"before": 15, "after": 1}
        difference = joined.sets["after"].values - joined.sets["before"].values
        np.testing.assert_allclose(difference[..., 0], 1.0, atol=tolerance(before.values))
        np.testing.assert_array_equal(joined.sets["before"].values, before.values[10:35])

    def test_three_sets_keep_what_all_have(self, before: HeadScores) -> None:
        named = {
            "before": before,
            "1": reordered(before, list(range(10, 40))),
            "2": reordered(before, list(range(30))),
        }
        with pytest.raises(UsageError, match=r"'before' have no match, first 'e0' \('1' lacks it"):
            join_scores(named)
        joined = join_scores(named, "intersect")
        assert {scores.ids for scores in joined.sets.values()} == {before.ids[10:30]}
        assert joined.dropped_examples == {"before": 20, "1": 10, "2": 10}

    @pytest.mark.parametrize("on_mismatch", ["error", "intersect"])
    def test_no_example_in_common(self, before: HeadScores, on_mismatch: str) -> None:
        other = replace(before, ids=tuple(f"other {name}" for name in before.ids))
        with pytest.raises(UsageError, match=r"no example in common.*score the same corpus"):
            join(before, other, on_mismatch)

    @pytest.mark.parametrize("on_mismatch", ["error", "intersect"])
    def test_scores_without_digests_are_refused(self, before: HeadScores, on_mismatch: str) -> None:
        with pytest.raises(UsageError, match=r"'after' do not name .*; score again"):
            join(before, replace(before, digests=()), on_mismatch)


def test_scores_made_without_options_join() -> None:
    """Both made by hand: nothing is known, so nothing differs."""
    before = replace(random_scores(), record=Record())
    assert join(before, before)["after"].roles == before.roles
