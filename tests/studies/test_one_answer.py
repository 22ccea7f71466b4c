"""One sense of "has the role": all faces of a table, and studies, name the same heads."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headroles import HeadScores, RoleTable, assign_roles, compare_roles, replicate_roles
from headroles.roles import contrast_of
from headroles.studies.claims.measured import Measured
from headroles.studies.classification.figures import draw_heads, draw_role, role_map
from tests.conftest import flat, make_scores

ARC, BACK = "syntactic:nsubj:to_governor", "syntactic:nsubj:to_dependent"
ROLES = ("local", ARC, contrast_of(ARC), BACK, contrast_of(BACK))
Heads = frozenset[tuple[int, int]]


def faces(table: RoleTable, role: str) -> Iterator[tuple[str, Heads]]:
    """Yield each way to see which heads have a role, with these heads."""
    yield "answer", frozenset(pairs(table.frame[table.frame["answer"] == "yes"], role))
    yield "heads_with", frozenset(table.heads_with(role))
    having = table.where(role, only_assigned=True)
    yield "where", frozenset(pairs(having.frame, role))
    yield "heads", frozenset(pairs(table.view("heads"), role))
    wide = table.view("wide")
    yield "wide", frozenset(zip(wide["layer"][wide[role]], wide["head"][wide[role]], strict=True))
    rows = csv.DictReader(io.StringIO(having.export("csv").decode()))
    yield "CSV", frozenset((int(own["layer"]), int(own["head"])) for own in rows)
    listed = json.loads(having.export("json"))["rows"]
    yield "JSON", frozenset((own["layer"], own["head"]) for own in listed if own["role"] == role)
    listed = [own for own in table.to_json()["rows"] if own["role"] == role and own["assigned"]]
    yield "--json", frozenset((own["layer"], own["head"]) for own in listed)
    latex = having.export("latex").decode()
    cells = re.findall(r"^(\d+)-(\d+) &", latex, flags=re.MULTILINE)
    yield "LaTeX", frozenset((int(layer), int(head)) for layer, head in cells)
    content = role_map(table)
    having = [sign for sign, _, look in content.legend if look == "full"]
    marked = content.frame[content.frame["mark"].isin(having)]
    yield "map", frozenset(pairs(marked, role))
    drawn = draw_role(table, role).collections[1:]
    marks = [
        one for own in drawn if str(own.get_label()).startswith("yes") for one in own.get_paths()
    ]
    centres = [(np.ptp(one.vertices, axis=0) / 2 + one.vertices.min(axis=0)) for one in marks]
    yield "figure", frozenset((round(float(y)), round(float(x))) for x, y in centres)
    assert table.answers().loc[role, "yes"] == len(listed)
    assert table.colocation().loc[role, role] == len(listed)


def pairs(frame: Any, role: str) -> Iterator[tuple[int, int]]:
    rows = frame[frame["role"] == role]
    return zip(rows["layer"].tolist(), rows["head"].tolist(), strict=True)


@pytest.fixture(scope="module")
def scores() -> HeadScores:
    """Heads of an arc role: with it, positional, without, undecided of mean, and of contrast."""
    means, beyond = [[5, 5, 1, 3, 5, 5]], [[3, 0, 3, 3, 0.5, 2]]
    values = np.stack([np.full((1, 6), 4.0), means, beyond, np.ones((1, 6)), beyond], axis=-1)
    noise = np.random.default_rng(0).normal(0, 0.25, (40, *values.shape))
    noise[:, 0, 3, 1] += 3 - (values + noise)[:, 0, 3, 1].mean()  # exactly at the threshold
    noise[:, 0, 4, 2] += 0.5 - (values + noise)[:, 0, 4, 2].mean()
    made = make_scores(values + noise, ROLES)
    low = [0 if contrast_of(role) in ROLES or role == "local" else -20 for role in ROLES]
    bounds = np.stack([low, np.full(len(ROLES), 20)], axis=-1).astype(np.float32)
    digests = tuple(f"{example:016x}" for example in range(40))
    return replace(made, bounds=np.broadcast_to(bounds, (40, *bounds.shape)), digests=digests)


def test_every_face_names_the_same_heads(scores: HeadScores) -> None:
    table = assign_roles(scores)
    arc = table.frame[table.frame["role"] == ARC]
    words = ["yes", "positional", "no", "undecided", "undecided", "yes"]
    assert arc["answer"].tolist() == words
    for role in table.roles:
        found = dict(faces(table, role))
        assert len(set(found.values())) == 1, found
    # The group is what the summary counts, and a positional head is named as not counted.
    for name in ("syntactic", "nsubj", "subject"):
        assert table.heads_with(name) == [(0, 0), (0, 5)]
    assert re.search(r"syntactic partners 2 .*0-0 0-5", flat(table))
    assert "Positional, not counted: 0-1 (subject -> its verb 5.0): as much" in flat(table)
    maps = [np.asarray(ax.collections[0].get_array()).ravel() for ax in draw_heads(table).axes]
    assert sum(maps).tolist() == table.frame.groupby("head")["assigned"].sum().tolist()


def test_studies_read_the_same_answer(scores: HeadScores) -> None:
    table = assign_roles(scores)
    frame = compare_roles(scores, scores).frame
    assert frame["answer_before"].tolist() == table.frame["answer"].tolist()
    assert set(frame["status"]) <= {"kept", "absent", "undecided"}
    sets = [replace(scores, digests=tuple(f"{name}{k}" for k in range(40))) for name in "ab"]
    found = replicate_roles(sets, ["a", "b"]).heads()
    certified = table.frame["certified"] == "yes"
    assert certified.any()
    for name in ("a", "b"):
        shown = found["shown_in"].str.contains(name).groupby(found["role"]).sum()
        assert shown.to_dict() == certified.groupby(table.frame["role"]).sum().to_dict()
    measured: Any = SimpleNamespace(roles=table)
    for role in ("local", "syntactic"):
        has = Measured.has(measured, role)
        assert list(zip(*np.nonzero(has), strict=True)) == table.heads_with(role)
