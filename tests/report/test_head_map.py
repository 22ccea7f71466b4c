"""The data of the map of all heads: the numbers of the results, within its budget, as text."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from headroles import RoleComparison, RoleTable
from headroles.drawing.page import HeadMap
from headroles.studies.classification.figures import LEGEND, role_map
from headroles.studies.comparison.figures import comparison_map
from tests.report.test_pages import EVIL


def texts(column: dict) -> list[str]:
    return [column["texts"][k] for k in column["at"]]


def views_of(head_map: HeadMap) -> list[dict]:
    return json.loads(head_map.to_json())["views"]


def frame_of(views: list[str], shape: tuple[int, int]) -> pd.DataFrame:
    heads = [(view, *place) for view in views for place in np.ndindex(shape)]
    frame = pd.DataFrame(heads, columns=["view", "layer", "head"])
    about = dict.fromkeys(("words", "group", "unit", "mark"), frame["view"])
    value = np.random.default_rng(0).normal(5, 2, len(frame))
    return frame.assign(**about, line=3.0, value=value, low=value - 1, high=value + 1)


def test_a_role_is_as_in_the_table(table: RoleTable) -> None:
    views = {view["words"]: view for view in views_of(role_map(table))}
    assert len(views) == len(table.roles)
    view = views["special tokens"]
    rows = table.frame[table.frame["role"] == "delimiter"].sort_values(["layer", "head"])
    assert view["values"] == pytest.approx(rows["mean"].tolist(), rel=0.005)
    facts = {name: columns for name, *columns in view["facts"]}
    assert facts["interval"][0] == pytest.approx(rows["ci_low"].tolist(), rel=0.005)
    assert facts["interval"][1] == pytest.approx(rows["ci_high"].tolist(), rel=0.005)
    assert texts(facts["answer"][0]) == rows["answer"].tolist()
    full = {sign for sign, _, look in LEGEND if look == "full"}
    assert [mark in full for mark in texts(view["marks"])] == (rows["answer"] == "yes").tolist()


def test_a_comparison_has_before_and_after(shifts: RoleComparison) -> None:
    views = views_of(comparison_map(shifts))
    assert len(views) == 3 * len(shifts.checkpoints)
    first = shifts.checkpoints[0]
    view = next(one for one in views if one["words"] == f"special tokens, to {first}")
    rows = shifts.frame[
        (shifts.frame["role"] == "delimiter") & (shifts.frame["checkpoint"] == first)
    ].sort_values(["layer", "head"])
    facts = {name: columns for name, *columns in view["facts"]}
    for name in ("before", "after"):
        assert facts[name][0] == pytest.approx(rows[f"mean_{name}"].tolist(), rel=0.005)
    assert view["values"] == pytest.approx(rows["difference"].tolist(), rel=0.005)


def test_large_maps_stay_below_two_megabytes() -> None:
    frame = frame_of([f"role {k}" for k in range(300)], (24, 16))
    made = HeadMap("title", "mean", frame, {"interval": ("low", "high")}, LEGEND, 1)
    views = views_of(made)
    assert len(made.to_json()) < 1.8e6
    assert [view["words"] for view in views] == [f"role {k}" for k in range(len(views))]
    assert 100 < len(views) < 300


def test_words_end_no_element() -> None:
    made = HeadMap(EVIL, "mean", frame_of([EVIL], (1, 1)), {}, ((EVIL, EVIL, "full"),))
    assert "<" not in made.to_json()
    assert views_of(made)[0]["words"] == EVIL
