"""Joining score sets: what belongs together, what is refused and with which words."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from headroles import HeadScores, Role, compare_roles
from headroles.errors import UsageError
from headroles.record import Record
from headroles.roles import SCORES
from headroles.studies.comparison.joining import join_scores
from tests.conftest import changed
from tests.rounding import tolerance
from tests.studies.comparison.made import make_scores, random_scores, shifted

ANY = "syntactic:any:to_governor"


@pytest.fixture
def before() -> HeadScores:
    return random_scores(documents=4)


def join(
    before: HeadScores, after: HeadScores, on_mismatch: str = "error"
) -> dict[str, HeadScores]:
    return join_scores({"before": before, "after": after}, on_mismatch)


def test_the_first_set_gives_orders_and_names(before: HeadScores) -> None:
    """Names of documents are after those of files, which may differ between machines."""
    after = shifted(before, 1.0)
    rows = np.random.default_rng(0).permutation(before.n_examples)
    turned = replace(
        after,
        roles=after.roles[::-1],
        values=after.values[..., ::-1],
        counts=after.counts[:, ::-1],
        documents=tuple(f"/elsewhere/{name}" for name in after.documents),
    ).select(rows)
    for other, expected in ((turned, after), (before, before)):
        joined = join(before, other)
        np.testing.assert_array_equal(joined["before"].values, before.values)
        np.testing.assert_array_equal(joined["after"].values, expected.values)
        np.testing.assert_array_equal(joined["after"].counts, expected.counts)
        for name in ("ids", "documents", "roles"):
            assert [getattr(side, name) for side in joined.values()] == [getattr(before, name)] * 2
    by_hand = replace(before, record=Record())  # nothing is known, so nothing differs
    assert join(by_hand, by_hand)["after"].roles == before.roles


def meaning(scores: HeadScores, role: str, **meaning: Any) -> HeadScores:
    """The same scores of a role that means something else."""
    changed = [
        replace(own, meaning={**own.meaning, **meaning}) if own.id == role else own
        for own in scores.roles
    ]
    return replace(scores, roles=tuple(changed))


def digest(scores: HeadScores, at: int, digest: str) -> HeadScores:
    return replace(scores, digests=(*scores.digests[:at], digest, *scores.digests[at + 1 :]))


ALIKE = [  # differences that are cured by scoring both alike
    (partial(changed, model={"reaches": [None, 64]}), r"reaches: \[None, None\] and \[None, 64\]"),
    (partial(replace, score=SCORES["excess"]), "their kind of score: 'bias' and 'excess'"),
    (partial(changed, options={"pairing": "none"}), "pairing of sentences: adjacent and none"),
    (partial(changed, corpus={"scheme": "CLEAR"}), "label scheme of their corpus: UD and CLEAR"),
    (partial(meaning, role="local", window=3), "the window of local: 2 and 3"),
    (
        partial(meaning, role="local", published_edge=True),
        "published_edge of local: False and True",
    ),
    (partial(meaning, role=ANY, keep_subtypes=True), f"keep_subtypes of {ANY}: False and True"),
]
REFUSED = [
    *((change, f"'after' differ in .*{message}; score both alike$") for change, message in ALIKE),
    (lambda _: random_scores(layers=3), "'after' differ in their number of layers: 2 and 3"),
    (lambda _: random_scores(heads=4), "'after' differ in their number of heads: 3 and 4"),
    (
        partial(replace, ids=tuple(map(str, range(40)))),
        r"no example in common.*score the same corpus",
    ),
    (partial(replace, digests=()), r"'after' do not name .*; score again"),
]
DIFFER = r"1 of the 40 .* first 'e5' \(its tokens, its tree or its labels differ\); .*intersect"
REFUSED_UNLESS_INTERSECTED = [
    (
        lambda own: own.select(np.delete(np.arange(40), [7, 9])),
        r"2 of the 40 of 'before' have no match, first 'e7' \('after' lacks it\)",
    ),
    (lambda own: digest(own, 5, "aaaaaaaa" + own.digests[5][8:]), DIFFER),
    (lambda own: digest(own, 5, own.digests[5][:8] + "aaaaaaaa"), DIFFER),
]


def test_examples_that_differ_by_their_spaces_are_explained(before: HeadScores) -> None:
    """Of tokenizers that see no spaces, examples are the same, and are compared."""
    after = changed(before, corpus={"spacing": "text"})
    assert join(before, after)["after"].n_examples == before.n_examples
    said = "the words of after have the spaces of the text, .*: score all with the same spacing$"
    one, every = digest(after, 5, "a" * 16), replace(after, digests=("a" * 16,) * 40)
    for other in (one, every):
        with pytest.raises(UsageError, match=said):
            join(before, other)


@pytest.mark.parametrize(
    ("change", "message", "on_mismatch"),
    [
        *[(*case, how) for how in ("error", "intersect") for case in REFUSED],
        *[(*case, "error") for case in REFUSED_UNLESS_INTERSECTED],
    ],
)
def test_other_scores_are_refused(
    before: HeadScores, change: Any, message: str, on_mismatch: str
) -> None:
    with pytest.raises(UsageError, match=message):
        join(before, change(before), on_mismatch)


VALUES = np.random.default_rng(0).normal(3, 1, (10, 2, 3, 4))


def test_relations_are_refused_or_intersected() -> None:
    """What pools other relations goes; the relations that both have stay."""
    nsubj, *others = (f"syntactic:{name}:to_governor" for name in ("nsubj", "obj", "amod"))
    before, after = (
        meaning(make_scores(VALUES, ("local", ANY, nsubj, other)), ANY, relations=["nsubj", name])
        for name, other in zip(("obj", "amod"), others, strict=True)
    )
    with pytest.raises(UsageError, match=r"relations: \['nsubj', 'obj'\] and \['nsubj', 'am"):
        join(before, after)
    joined = join(before, after, "intersect")
    assert [side.role_ids for side in joined.values()] == [("local", nsubj)] * 2
    facts = compare_roles(before, after, on_mismatch="intersect").facts
    assert facts["dropped_roles"] == {"before": [ANY, others[0]], "after": [ANY, others[1]]}
    assert facts["dropped_examples"] == {"before": 0, "after": 0}
    np.testing.assert_array_equal(joined["after"].values, VALUES[..., [0, 2]].astype("f4"))


def test_other_roles_are_refused_or_intersected() -> None:
    contrast = f"{ANY}:beyond_offset"
    without, with_contrast, local, block = (
        make_scores(VALUES[..., : len(roles)], roles)
        for roles in ((ANY,), (ANY, contrast), ("local",), ("block",))
    )
    with pytest.raises(UsageError, match=f"roles: none besides and {contrast}; sc"):
        join(without, with_contrast)
    assert join(without, with_contrast, "intersect")["after"].role_ids == (ANY,)
    with pytest.raises(UsageError, match="differ in their roles: local and block"):
        join(local, block)
    with pytest.raises(UsageError, match="no role in common"):
        join(local, block, "intersect")
    # Roles of one's own are compared by what they mean.
    one, other = (replace(local, roles=(Role("mine", meaning={"depth": k}),)) for k in (1, 2))
    with pytest.raises(UsageError, match="depth of mine: 1 and 2"):
        join(one, other)
    assert join(one, one)["after"].role_ids == ("mine",)


def test_intersection_keeps_what_all_have(before: HeadScores) -> None:
    after = digest(shifted(before, 1.0).select(np.arange(35, 9, -1)), 0, "0" * 16)  # that of e35
    joined = join(before, after, "intersect")
    assert joined["before"].ids == tuple(f"e{k}" for k in range(10, 35))
    assert [side.n_examples for side in joined.values()] == [25, 25]
    difference = joined["after"].values - joined["before"].values
    np.testing.assert_allclose(difference[..., 0], 1.0, atol=tolerance(before.values))
    np.testing.assert_array_equal(joined["before"].values, before.values[10:35])
    named = {"1": before.select(np.arange(10, 40)), "2": before.select(np.arange(30))}
    named = {"before": before, **named}
    with pytest.raises(UsageError, match=r"'before' have no match, first 'e0' \('1' lacks it"):
        join_scores(named)
    with pytest.raises(UsageError, match=r"10 of the 40 of 'after' .* \('before' lacks it\)"):
        join(named["1"], before)
    joined = join_scores(named, "intersect")
    assert {scores.ids for scores in joined.values()} == {before.ids[10:30]}
    shifts = compare_roles(*named.values(), on_mismatch="intersect")
    expected = {"dropped_examples": {"before": 20, "1": 10, "2": 10}, "examples": 20}
    expected |= {"dropped_roles": {name: [] for name in named}, "threshold": 3.0, "margin": 0.5}
    assert shifts.facts.items() >= {**expected, "n_clusters": 4, "clustered_by": "document"}.items()
    assert list(shifts.record.sources) == list(named)
    assert set(shifts.frame.n) == {20, 10}
    assert any("fewer than 20 documents" in warning for warning in shifts.warnings)
