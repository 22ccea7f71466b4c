"""Changes of roles between two score sets, and sentences about them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from headroles.results.shown import Grid, Shown
from headroles.roles import BIAS, contrast_of, in_words
from headroles.studies.classification.answers import is_arc, split_roles
from headroles.studies.classification.summary import (
    NOT_CONTROLLED,
    about_level,
    in_words_of_score,
    is_times_entropy,
)
from headroles.studies.comparison.answers import is_certified, role_status
from headroles.testing.answers import NO, UNDECIDED, UNTESTABLE, YES
from headroles.wording import head_name, listed

if TYPE_CHECKING:
    from headroles.studies.comparison.result import RoleShifts, ShiftsRecord

SYNTACTIC = "syntactic partners"
_KEY = ["checkpoint", "layer", "head"]
_COUNTED = ("before", "kept", "lost", "gained", "after", "open")
_MOST_NAMED = 4


def find_role_changes(frame: pd.DataFrame, score: str = "") -> pd.DataFrame:
    """Return the change of each role of each head, no role counted in two ways.

    Columns ``checkpoint, layer, head, role, group, before, after, status``. A role of arcs needs
    its tested contrast too: yes if both are yes, no if one is no. ``group`` is the role in words,
    as `in_words_of_score`; all roles of arcs are one group. Pooled roles are left out if the table
    has their parts.
    """
    others, arcs = split_roles(list(frame["role"].unique()))
    rows = frame[frame["role"].isin([*others, *arcs])].reset_index(drop=True)
    contrasts = frame.set_index([*_KEY, "role"])
    of_contrast = pd.MultiIndex.from_frame(rows[_KEY].assign(role=rows["role"].map(contrast_of)))
    changes = rows[[*_KEY, "role"]].copy()
    changes["group"] = [
        SYNTACTIC if is_arc(role) else in_words_of_score(role, score) for role in rows["role"]
    ]
    for end in ("before", "after"):
        other = contrasts[f"answer_{end}"].reindex(of_contrast).fillna(YES).to_numpy()
        changes[end] = _both(rows[f"answer_{end}"], pd.Series(other))
    changes["status"] = role_status(changes["before"], changes["after"])
    return changes


def _both(one: pd.Series[str], other: pd.Series[str]) -> pd.Series[str]:
    """Return the answer to both: yes if both are yes, no if one is no."""
    found = one.where(one != YES, other)
    found = found.mask((other == NO) & (found != UNTESTABLE), NO)
    return found.mask((other == UNTESTABLE) & (found != NO), UNTESTABLE)


def summarized(shifts: RoleShifts) -> Iterator[Shown]:
    """Count and name roles kept, lost and gained, and name the head that moved most."""
    changes, last = find_role_changes(shifts.frame, shifts.record.score), shifts.checkpoints[-1]
    yield "\n".join(_about_sides(shifts))
    of_last = changes[changes["checkpoint"] == last]
    if len(shifts.checkpoints) > 1:
        yield _grid("All roles, before to", changes.groupby("checkpoint", sort=False))
    to = f", before to {last}" if len(shifts.checkpoints) > 1 else ""
    yield _outcome(of_last["status"])
    yield _grid(f"Roles of heads{to}", of_last.groupby("group", sort=False))
    is_open = (of_last["status"] == UNDECIDED) & (of_last[["before", "after"]] == YES).any(axis=1)
    if is_open.any():
        yield "Open: shown on one side only; the change itself is not shown."
    for status in ("lost", "gained"):
        if (rows := of_last[of_last["status"] == status]).size:
            yield f"{status.capitalize()}: {_named(rows)}."
    ever = of_last[(of_last["before"] == YES) | (of_last["after"] == YES)]
    if lacking := set(of_last["group"]) - set(ever["group"]):
        yield f"No head has, before or after: {'; '.join(sorted(lacking))}."
    if not shifts.controls_distance and (changes["group"] == SYNTACTIC).any():
        yield NOT_CONTROLLED.replace("some of these", "some syntactic")
    yield from _farthest(shifts)


def _outcome(status: pd.Series[str]) -> str:
    lost, gained = (int((status == name).sum()) for name in ("lost", "gained"))
    if not lost + gained:
        return "No role was shown to be lost or gained."
    return f"{lost} {'role was' if lost == 1 else 'roles were'} lost, {gained} gained."


def _about_sides(shifts: RoleShifts) -> Iterator[str]:
    record = shifts.record
    names = [one.name for one in record.models.values()]
    over = listed([file.rpartition("/")[2] for file in record.files])
    units = f" of {record.n_clusters} documents" * (record.clustered_by != "none")
    yield f"{names[0]} -> {', '.join(names[1:])}{f' over {over}' if over else ''}:"
    yield (
        f"{record.examples} examples{units} that all models read. Heads are named layer-head, "
        "counted from 0."
    )
    yield about_level(record.tests, record.score, shifts.has_rivals, shifts.roles)
    if dropped := describe_dropped(record):
        yield f"Dropped: {dropped}."


def describe_dropped(record: ShiftsRecord) -> str:
    """Name the examples and roles that not all score sets have; empty if all have all."""
    parts = []
    for name, n_examples in record.dropped_examples.items():
        roles = record.dropped_roles.get(name, [])
        found = [f"{n_examples} examples"] if n_examples else []
        found += [f"the roles {', '.join(roles)}"] if roles else []
        if found:
            parts.append(f"of {name} {' and '.join(found)}")
    return "; ".join(parts)


def _grid(title: str, groups: Any) -> Grid:
    """Count roles by group; arcs come first."""
    rows = [
        (_group_name(str(name), own), *_counts(own))
        for name, own in groups
        if ((own["before"] == YES) | (own["after"] == YES)).any()
    ]
    rows.sort(key=lambda row: not row[0].startswith(SYNTACTIC))
    return Grid((title, *_COUNTED), tuple(rows))


def _group_name(name: str, changes: pd.DataFrame) -> str:
    """Name a group, with the number of its relations; a head with several counts for each."""
    relations = changes["role"].nunique()
    return f"{name}, by relation ({relations})" if name == SYNTACTIC and relations > 1 else name


def _counts(changes: pd.DataFrame) -> Iterator[str]:
    """Count changes, in the order of ``_COUNTED``."""
    had, has, status = changes["before"] == YES, changes["after"] == YES, changes["status"]
    by_status = (status == name for name in ("kept", "lost", "gained"))
    for found in (had, *by_status, has, (status == UNDECIDED) & (had | has)):
        yield str(int(found.sum()))


def _named(changes: pd.DataFrame) -> str:
    """Name heads with their roles, those of arcs first."""
    ordered = changes.sort_values("group", key=lambda own: own != SYNTACTIC, kind="stable")
    named = [
        f"{head_name((row['layer'], row['head']))} {in_words(row['role'])}"
        for row in ordered.to_dict("records")
    ]
    more = len(named) - _MOST_NAMED
    return "; ".join(named[:_MOST_NAMED]) + f"; and {more} more" * (more > 0)


def _farthest(shifts: RoleShifts) -> Iterator[str]:
    """Count means that changed by more than is trivial, and name the head that moved most."""
    last = shifts.checkpoints[-1]
    rows = shifts.frame[shifts.frame["checkpoint"] == last]
    others, arcs = split_roles(shifts.roles)
    own, margin = rows[rows["role"].isin([*others, *arcs])], shifts.record.tests.margin
    changed = own[own["change"] == "changed"]
    n_small = int(own["change"].isin(["trivial", "equivalent"]).sum())
    score = shifts.record.score
    certified = changed[is_certified(changed)].sort_values("difference", key=abs, ascending=False)
    largest = "".join(
        f", the largest {_of_head(row, 'difference', score)}"
        for row in certified.head(1).to_dict("records")
    )
    sure = f" ({len(certified)} certified{largest})" * shifts.knows_bounds
    yield (
        f"Of {len(own)} tests of mean scores, {len(changed)} show a change{sure}, "
        f"{n_small} show that it is less than {margin:g}."
    )
    moved = shifts.moved()
    for row in moved[moved["checkpoint"] == last].nlargest(1, "effect_size").to_dict("records"):
        if row["effect_size"] > 0:
            yield f"Moved most, by effect size: {_of_head(row, 'role_difference', score)}."


def _of_head(row: dict[Hashable, Any], by: str, score: str) -> str:
    role, unit = row["role"], " times uniform attention" if score == BIAS.name else ""
    unit += " x entropy" * is_times_entropy(role, score)
    return f"{head_name((row['layer'], row['head']))} {in_words(role)} ({row[by]:+.2g}{unit})"
