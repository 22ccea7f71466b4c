"""One sense of "has the role": all faces of a table, and studies, name the same heads."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from headroles import HeadScores, RoleTable, assign_roles, compare_roles, replicate_roles
from headroles.roles import contrast_of
from headroles.studies.claims.measured import Measured
from headroles.studies.classification.figures import draw_heads, draw_role, role_map
from tests.conftest import flat, make_scores
from tests.report.conftest import marked

ARC, BACK = "syntactic:nsubj:to_governor", "syntactic:nsubj:to_dependent"
ROLES = ("local", ARC, contrast_of(ARC), BACK, contrast_of(BACK))


def pairs(frame: pd.DataFrame, role: str) -> set[tuple[int, int]]:
    rows = frame[frame["role"] == role]
    return set(zip(rows["layer"], rows["head"], strict=True))


def faces(table: RoleTable, role: str) -> dict[str, set[tuple[int, int]]]:
    """The heads with a role, by each way to see them."""
    having, wide, content = (
        table.where(role, only_assigned=True),
        table.view("wide"),
        role_map(table),
    )
    stored = [one for one in json.loads(having.export("json"))["rows"] if one["role"] == role]
    listed = [one for one in table.to_json()["rows"] if one["role"] == role and one["assigned"]]
    cells = re.findall(r"^(\d+)-(\d+) &", having.export("latex").decode(), flags=re.MULTILINE)
    full = [sign for sign, _, look in content.legend if look == "full"]
    drawn = marked(draw_role(table, role)).items()
    assert table.answers().loc[role, "yes"] == table.colocation().loc[role, role] == len(listed)
    return {
        "answer": pairs(table.frame[table.frame["answer"] == "yes"], role),
        "heads_with": {*table.heads_with(role)},
        "where": pairs(having.frame, role),
        "heads": pairs(table.view("heads"), role),
        "wide": set(zip(wide["layer"][wide[role]], wide["head"][wide[role]], strict=True)),
        "CSV": pairs(pd.read_csv(io.BytesIO(having.export("csv"))), role),
        "JSON": {(one["layer"], one["head"]) for one in stored},
        "--json": {(one["layer"], one["head"]) for one in listed},
        "LaTeX": {(int(layer), int(head)) for layer, head in cells},
        "map": pairs(content.frame[content.frame["mark"].isin(full)], role),
        "figure": {head for name, heads in drawn if name.startswith("yes") for head in heads},
    }


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
        found = faces(table, role)
        assert all(heads == found["answer"] for heads in found.values()), found
    # The group is what the summary counts, and a positional head is named as not counted.
    for name in ("syntactic", "nsubj", "subject"):
        assert table.heads_with(name) == [(0, 0), (0, 5)]
    assert re.search(r"grammatical partners 2 2 0-0 0-5", flat(table))
    assert "position may explain them: 0-1 (subject -> its verb, 5.0)." in flat(table)
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
