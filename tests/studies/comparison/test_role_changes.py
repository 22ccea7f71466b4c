"""What became of roles, counted once: against plain loops, and in words."""

from __future__ import annotations

import numpy as np
import pytest

from headroles import RoleComparison, compare_roles
from headroles.roles import contrast_of
from headroles.studies.comparison.compare import find_role_changes
from tests.studies.comparison.made import make_scores, random_scores

ARC = "syntactic:nsubj:to_governor"
ROLES = ("local", ARC, contrast_of(ARC))


@pytest.fixture(scope="module")
def shifts() -> RoleComparison:
    """Heads that have an arc role before or after, with and without its contrast."""
    rng = np.random.default_rng(5)
    shape = (60, 4, 12, len(ROLES))
    ends = []
    for _ in range(2):
        means = rng.choice([2.0, 3.0, 4.0], size=shape[1:])
        means[..., 2] = rng.choice([-1.0, 0.0, 1.0], size=shape[1:3])
        ends.append(means + rng.normal(scale=0.3, size=shape))
    return compare_roles(*(make_scores(values.astype(np.float32), ROLES) for values in ends))


def test_as_plain_loops_count(shifts: RoleComparison) -> None:
    answers = shifts.frame.set_index(["layer", "head", "role"])
    changes = find_role_changes(shifts.frame)
    assert sorted(changes["role"].unique()) == sorted(["local", ARC])
    seen = set()
    for row in changes.itertuples():
        ends = []
        for end in ("before", "after"):
            ends.append(answers.loc[(row.layer, row.head, row.role), f"answer_{end}"])
        assert (row.before, row.after) == tuple(ends)
        ends = ["no" if one == "positional" else one for one in ends]
        told = {("yes", "yes"): "kept", ("yes", "no"): "lost", ("no", "yes"): "gained"}
        expected = told.get(tuple(ends), "absent" if set(ends) == {"no"} else "undecided")
        assert row.status == expected
        seen.add(row.status)
    assert seen >= {"kept", "lost", "gained", "absent", "undecided"}


def test_summary_names_heads_and_counts_once(shifts: RoleComparison) -> None:
    changes = find_role_changes(shifts.frame)
    arcs = changes[changes["role"] == ARC]
    lines = repr(shifts).splitlines()
    row = next(line for line in lines if line.startswith("  syntactic partners")).split()[-6:]
    assert row[1:4] == [str((arcs["status"] == name).sum()) for name in ("kept", "lost", "gained")]
    first = arcs[arcs["status"] == "lost"].iloc[0]
    told = next(line for line in lines if line.startswith("Lost: "))
    assert f"{first['layer']}-{first['head']} subject -> its verb" in told
    heads = changes.groupby(["layer", "head"])["status"].agg(set)
    lost, gained = (sum(name in own for own in heads) for name in ("lost", "gained"))
    assert f"{lost} heads lost a role, {gained} gained one." in lines
    means = shifts.frame[shifts.frame["role"].isin(["local", ARC])]
    shown = " ".join(" ".join(lines).split())
    n_changed = means["changed"].sum()
    assert n_changed > 0
    assert f"Of 96 mean scores, {n_changed} moved by more than 0.5 (layers 0, 1" in shown
    row = means.loc[means["difference"].abs().idxmax()]
    assert f"Largest: {row['layer']}-{row['head']} " in shown
    assert all(len(line) <= 100 for line in lines)
    assert len(lines) <= 20


def test_says_where_distance_was_not_controlled(shifts: RoleComparison) -> None:
    assert "Score with beyond_offset" not in repr(shifts)
    arcs = make_scores(random_scores(documents=6).values, ("local", "block", ARC))
    shown = " ".join(repr(compare_roles(arcs, arcs)).split())
    assert "No head was shown to lose or gain a role." in shown
    assert "Lost: " not in shown
    assert "Score with beyond_offset" in shown
