"""In how many score sets a head has a role, from scores made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headroles import HeadScores, replicate_roles
from headroles.errors import UsageError
from headroles.inference import partial_conjunction
from headroles.studies.evidence import STEPS, RoleHypotheses
from headroles.testing.options import TestOptions
from tests.conftest import flat, make_scores
from tests.inference.conftest import betting_test

ROLE = "syntactic:nsubj:to_governor"


def set_of(
    means: Any, name: str, roles: tuple[str, ...] = ("local",), model: str = "m", seed: int = 0
) -> HeadScores:
    """Excess over 120 examples, for ``means`` (layers, heads) the same in all ``roles``."""
    table = np.asarray(means, dtype=float)
    rng = np.random.default_rng([seed, len(name), ord(name[0])])
    values = rng.beta(20 * table, 20 * (1 - table), (120, *table.shape))[..., None]
    of_roles, facts = np.repeat(values, len(roles), axis=-1), {"weights_sha256": model}
    scores = make_scores(of_roles, roles, score="excess", corpus={"digest": name}, model=facts)
    bounds = np.broadcast_to(np.array([-0.5, 1], dtype=np.float32), (120, len(roles), 2))
    return replace(scores, bounds=bounds, digests=tuple(f"{name}-{k}" for k in range(120)))


STRONG, WEAK = 0.5, 0.02
NAMES = ["a", "b", "c"]


@pytest.fixture
def sets() -> list[HeadScores]:
    """Two layers of two heads that have the role in 3, 2, 1 and 0 of three corpora."""
    has = [[[1, 1], [1, 0]], [[1, 1], [0, 0]], [[1, 0], [0, 0]]]
    return [
        set_of(np.where(means, STRONG, WEAK), name) for means, name in zip(has, NAMES, strict=True)
    ]


def test_heads_farthest_beyond_distance_come_first() -> None:
    """Head 0-0 has the larger mean, 0-1 goes farther beyond distance; 0-2 is positional."""
    arc = "syntactic:nsubj:to_governor"
    roles = (arc, f"{arc}:beyond_offset")
    means = {roles[0]: [[0.8, 0.5, 0.9]], roles[1]: [[0.2, 0.4, 0.02]]}
    sets = []
    for seed, name in enumerate(NAMES[:2]):
        parts = [set_of(means[role], name, (role,), seed=seed) for role in roles]
        values = np.concatenate([one.values for one in parts], axis=-1)
        both = set_of(means[arc], name, roles, seed=seed)
        sets.append(replace(both, values=values))
    table = replicate_roles(sets, NAMES[:2])
    found = table.everywhere()
    assert found["head"].tolist() == [1, 0]
    by_set = np.array([one.values.mean(axis=0)[0] for one in sets])  # (sets, heads, roles)
    np.testing.assert_allclose(found["mean"], by_set[:, 1::-1, 0].min(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found["beyond_distance"], by_set[:, 1::-1, 1].min(axis=0), rtol=1e-6)
    at_least_one = table.frame[(table.frame["at_least"] == 1) & (table.frame["role"] == arc)]
    np.testing.assert_allclose(at_least_one["mean"], by_set[:, :, 0].max(axis=0), rtol=1e-6)
    row = next(line for line in repr(table).splitlines() if "subject -> its verb" in line)
    assert row.split()[4:8] == ["2", "0-0", "0-1", "0-1"]
    none = replicate_roles([replace(one, values=one.values * [1, 0]) for one in sets], NAMES[:2])
    assert "No head is shown to have a role in both corpora." in repr(none)


def test_heads_have_the_role_in_as_many_sets_as_they_were_made_with(
    sets: list[HeadScores],
) -> None:
    table = replicate_roles(sets, NAMES)
    assert table.heads()["at_least"].tolist() == [3, 2, 1, 0]
    assert table.to_json()["facts"]["names"] == NAMES
    level = "A head has a role if its mean attention exceeds 0.1 in excess score"
    assert f"3 corpora: a, b, c. {level}" in flat(table)
    assert table.heads()["shown_in"].tolist() == ["a, b, c", "a, b", "a", ""]
    by_itself = replicate_roles(sets, NAMES, correction="none").heads()["shown_in"]
    for name, one in zip(NAMES, sets, strict=True):
        tested = RoleHypotheses.from_scores(one, TestOptions()).means
        shown = tested.betting.above >= -np.log(0.05)
        assert by_itself.str.contains(name).tolist() == shown.tolist()


def test_a_row_is_the_partial_conjunction_of_its_sets(sets: list[HeadScores]) -> None:
    frame = replicate_roles(sets, NAMES, correction="none").frame
    log_e = []
    for one in sets:
        tested = RoleHypotheses.from_scores(one, TestOptions()).means
        assert tested.bounds is not None
        assert not tested.is_clustered
        values = tested.sample.values
        log_e.append(betting_test(values, tested.threshold, tested.bounds).log_e)
    for u in (1, 2, 3):
        rows = frame[frame["at_least"] == u]
        np.testing.assert_allclose(rows["log_e"], partial_conjunction(log_e, u, True))
        np.testing.assert_allclose(rows["p_adjusted"], np.exp(-np.maximum(rows["log_e"], 0)))


def test_sets_that_share_examples_are_averaged(sets: list[HeadScores]) -> None:
    shared = [replace(one, digests=sets[0].digests) for one in sets]
    table = replicate_roles(shared, NAMES, over="checkpoints")
    assert "The sets share examples" in flat(table)
    apart = replicate_roles(sets, NAMES).frame
    assert (table.frame["log_e"] <= apart["log_e"])[apart["log_e"] > 5].all()
    unknown = [replace(one, digests=()) for one in sets]
    assert replicate_roles(unknown, NAMES).facts["independent"] is False
    assert replicate_roles(sets, NAMES).facts["independent"] is True


def test_heads_of_seeds_are_counted_by_layer(sets: list[HeadScores]) -> None:
    """Models of seeds may differ in size; layers that one lacks do not count.

    Single heads, which do not correspond, have no answers.
    """
    sets[2] = set_of([[STRONG], [WEAK], [STRONG]], "c", model="deeper")
    counts = replicate_roles(sets, NAMES, over="seeds")
    layers = counts.layers()
    assert layers["with_role"].tolist() == [2, 1, 2, 0, 1, 0, 1]
    assert layers["heads"].tolist() == [2] * 4 + [1] * 3
    row = next(line for line in repr(counts).splitlines() if "neighbouring words" in line)
    assert row.split()[2:] == ["1-2", "0-1", "1"]
    assert counts.frame[["mean", "beyond_distance", "log_e", "p_adjusted"]].isna().all(axis=None)
    assert not counts.frame["replicated"].any()
    assert counts.heads().empty


@pytest.mark.parametrize("counted", [True, False])
def test_a_role_that_one_set_lacks_is_tested_in_the_others(
    sets: list[HeadScores], counted: bool
) -> None:
    more = [
        set_of(np.full((2, 2), STRONG), name, ("local", "delimiter"), seed=1) for name in ("d", "e")
    ]
    lacking = sets[0]
    if counted:  # it was scored, and found in no example
        both = set_of(np.full((2, 2), STRONG), "a", ("local", "delimiter"))
        lacking = replace(both, values=both.values.copy(), counts=both.counts.copy())
        lacking.values[..., 1], lacking.counts[:, 1] = np.nan, 0
    table = replicate_roles([lacking, *more], ["a", "d", "e"])
    assert table.warnings == ("a has no example of these roles: delimiter",)
    rows = table.frame[table.frame["role"] == "delimiter"]
    assert set(rows["sets"]) == {2}
    assert set(rows["shown_in"]) == {"d, e"}
    assert rows.groupby("at_least")["replicated"].all().to_dict() == {1: True, 2: True, 3: False}
    # An empty set is no evidence, for or against.
    alone = replicate_roles(more, ["d", "e"]).frame.query("role == 'delimiter'")
    np.testing.assert_allclose(rows.query("at_least < 3")["log_e"], alone["log_e"])


def test_roles_that_no_two_sets_have_are_left_out(sets: list[HeadScores]) -> None:
    more = set_of(np.full((2, 2), STRONG), "d", ("local", "delimiter"))
    table = replicate_roles([more, *sets], ["d", *NAMES])
    assert "roles that fewer than two sets have" in table.warnings[0]
    assert table.warnings[0].endswith("skipped: delimiter")


OTHER = set_of(np.full((2, 2), 0.5), "b", model="other")
DEEPER = set_of(np.full((3, 2), 0.5), "b", model="other")
BIAS = make_scores(np.ones((5, 2, 2, 1)), ("local",))
CHECKPOINTS = {"over": "checkpoints"}


@pytest.mark.parametrize(
    ("second", "options", "message"),
    [
        (None, {"names": ["a", "b, c"]}, "the name 'b, c' has a comma"),
        (replace(OTHER, bounds=None), CHECKPOINTS, "betting needs the bounds"),
        (OTHER, {}, "b and a are of different models; pass over='checkpoints'"),
        (DEEPER, CHECKPOINTS, "b has 3 layers x 2 heads and a 2 x 2: they are no check"),
        (BIAS, {}, "b has bias scores and a excess scores"),
        (set_of(np.full((2, 2), 0.5), "b", ("delimiter",)), {}, "no role is in two of the score"),
    ],
)
def test_what_does_not_go_together(
    sets: list[HeadScores], second: HeadScores | None, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        replicate_roles([sets[0], second or sets[1]], **{"names": NAMES[:2], **options})


CONTRASTS = [f"{ROLE}:{name}" for name in ("beyond_offset", "near", "near:back", "between")]


@pytest.mark.parametrize(
    ("means", "shown"),
    [
        ((4, 4, 4, 4), [True, True, True]),
        ((4, 4, 4, 0), [True, True, False]),
        ((4, 4, 0, 4), [True, False, False]),
        ((0, 4, 4, 4), [False, False, False]),
    ],
)
def test_a_step_replicates_with_all_steps_before_it(
    means: tuple[int, ...], shown: list[bool]
) -> None:
    rng = np.random.default_rng(0)
    sets = []
    for _ in range(2):
        values = np.clip(rng.normal(np.array([9, *means, 9]), 0.3, (80, 1, 1, 6)), -10, 10)
        values[..., -1] = abs(values[..., -1])
        ids = [ROLE, *CONTRASTS, "local"]
        sets.append(HeadScores.by_hand(values, ids, bounds=(-12, 12)))
    found = []
    for step in STEPS:
        table = replicate_roles(sets, ["a", "b"], beyond=step).heads()
        assert set(table["role"]) == ({ROLE, "local"} if step == "distance" else {ROLE})
        found.append(table.set_index("role").at_least[ROLE] == 2)
    assert found == shown


def test_steps_of_roles_that_have_none_are_refused(sets: list[HeadScores]) -> None:
    with pytest.raises(UsageError, match="no role of these scores has evidence up to class"):
        replicate_roles(sets, ["a", "b", "c"], beyond="class")


def test_bias_scores_have_no_bounds_below_0() -> None:
    with pytest.raises(UsageError, match=r"begin at -1, and bias scores are 0 or more; .*\(0, 5\)"):
        HeadScores.by_hand(np.ones((3, 1, 1, 1)), ["local"], bounds=(-1, 5))
