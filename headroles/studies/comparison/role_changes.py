"""Changes of roles between two score sets, and sentences about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from headroles.results.shown import Grid, Shown
from headroles.roles import BIAS, in_words, is_arc
from headroles.studies.classification.answers import split_roles
from headroles.studies.classification.summary import NOT_CONTROLLED, about_level
from headroles.studies.comparison.answers import is_certified, role_status
from headroles.testing.answers import UNDECIDED, YES
from headroles.wording import head_name, listed

if TYPE_CHECKING:
    from headroles.studies.comparison.result import RoleShifts, ShiftsRecord

SYNTACTIC = "syntactic partners"
_KEY = ["checkpoint", "layer", "head"]
_COUNTED = ("before", "kept", "lost", "gained", "after", "open")
_MOST_NAMED = 4


def find_role_changes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the change of each role of each head, no role counted in two ways.

    Columns ``checkpoint, layer, head, role, group, before, after, status``. ``group`` is the
    role in words; all roles of arcs are one group. Pooled roles are left out if the table has their
    parts.
    """
    others, arcs = split_roles(list(frame["role"].unique()))
    rows = frame[frame["role"].isin([*others, *arcs])].reset_index(drop=True)
    changes = rows[[*_KEY, "role"]].copy()
    changes["group"] = [SYNTACTIC if is_arc(role) else in_words(role) for role in rows["role"]]
    for end in ("before", "after"):
        changes[end] = rows[f"answer_{end}"]
    changes["status"] = role_status(changes["before"], changes["after"])
    return changes


def summarized(shifts: RoleShifts) -> Iterator[Shown]:
    """Count and name roles kept, lost and gained, and means that moved beyond the margin."""
    changes, last = find_role_changes(shifts.frame), shifts.checkpoints[-1]
    yield "\n".join(_about_sides(shifts))
    of_last = changes[changes["checkpoint"] == last]
    if len(shifts.checkpoints) > 1:
        yield _grid("All roles, before to", changes.groupby("checkpoint", sort=False))
    to = f", before to {last}" if len(shifts.checkpoints) > 1 else ""
    outcome = find_outcome(shifts, last)
    yield _about_roles(outcome)
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
    yield from _about_means(outcome, shifts)


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
    yield about_level(record.tests, record.score, shifts.has_rivals)
    if dropped := describe_dropped(record):
        yield f"Dropped: {dropped}."


def describe_dropped(record: ShiftsRecord) -> str:
    """Name the examples and roles that not all score sets have; empty if all have all."""
    parts = []
    for name, n_examples in record.dropped_examples.items():
        roles = record.dropped_roles.get(name, [])
        found = [f"{n_examples} examples"] if n_examples else []
        found += [f"{len(roles)} roles ({listed(roles)})"] if roles else []
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


@dataclass(frozen=True)
class Outcome:
    """The outcome of one checkpoint: heads by lost and gained roles, and means by change.

    ``layers`` are those with means that changed, and ``largest`` is the row of the largest change.
    Contrasts, and pooled roles whose parts are tested, do not count.
    """

    heads_lost: int
    heads_gained: int
    means: int
    changed: int
    equivalent: int
    certified: int
    layers: list[int]
    largest: dict[str, Any] | None


def find_outcome(shifts: RoleShifts, checkpoint: str) -> Outcome:
    """Count the heads that lost and gained roles, and the means that moved beyond the margin."""
    roles = find_role_changes(shifts.frame[shifts.frame["checkpoint"] == checkpoint])
    lost, gained = (
        len(roles.loc[roles["status"] == status, ["layer", "head"]].drop_duplicates())
        for status in ("lost", "gained")
    )
    others, arcs = split_roles(shifts.roles)
    of_checkpoint = shifts.frame[shifts.frame["checkpoint"] == checkpoint]
    means = of_checkpoint[of_checkpoint["role"].isin([*others, *arcs])]
    changed = means[means["changed"]].sort_values("difference", key=abs, ascending=False)
    largest = changed[["layer", "head", "role", "difference"]].head(1).to_dict("records")
    return Outcome(
        heads_lost=lost,
        heads_gained=gained,
        means=len(means),
        changed=len(changed),
        equivalent=int(means["equivalent"].sum()),
        certified=int(is_certified(changed).sum()),
        layers=sorted(map(int, changed["layer"].unique())),
        largest={str(k): v for k, v in largest[0].items()} if largest else None,
    )


def _about_roles(found: Outcome) -> str:
    if not found.heads_lost + found.heads_gained:
        return "No head was shown to lose or gain a role."
    heads = "1 head" if found.heads_lost == 1 else f"{found.heads_lost} heads"
    return f"{heads} lost a role, {found.heads_gained} gained one."


def _about_means(found: Outcome, shifts: RoleShifts) -> Iterator[str]:
    """Count means by their change, and name layers and the largest change."""
    margin, score = shifts.record.tests.margin, shifts.record.score
    layers = ""
    if found.layers:
        named = ", ".join(map(str, found.layers))
        layers = f" (layer{'s' * (len(found.layers) > 1)} {named})"
    yield (
        f"Of {found.means} mean scores, {found.changed} moved by more than {margin:g}{layers}, "
        f"{found.equivalent} by less; the others are undecided."
    )
    if shifts.knows_bounds and found.changed:
        yield f"Certified to differ from 0: {found.certified} of the {found.changed}."
    if row := found.largest:
        unit = " times uniform attention" if score == BIAS.name else ""
        head, role = head_name((row["layer"], row["head"])), in_words(row["role"])
        yield f"Largest: {head} {role} ({row['difference']:+.2g}{unit})."
