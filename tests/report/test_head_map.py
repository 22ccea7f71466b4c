"""The data of the map of all heads: the numbers of the results, within its budget, as text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headroles import (
    HeadScores,
    RoleComparison,
    RoleTable,
    classify_heads,
    read_attention,
    read_conllu,
)
from headroles.drawing.head_map import HeadMap, Quoted, View
from headroles.report.pages import make_report
from headroles.studies.classification.page import LEGEND, role_map
from headroles.studies.comparison.figures import comparison_map
from headroles.studies.inspection.again import ExampleOptions
from headroles.studies.inspection.examples import quote
from tests.report.test_pages import EVIL


def record(head_map: HeadMap) -> dict:
    return json.loads(head_map.to_json())


def large_view(role: str = "r", shape: tuple[int, int] = (24, 16)) -> View:
    values = np.random.default_rng(0).normal(5, 2, shape)
    texts = np.full(shape, "undecided", dtype=object)
    facts = {"interval": (values - 1, values + 1), "answer": (texts,), "certified": (texts,)}
    return View(role, role, "group", values, np.full(shape, "?"), facts, "unit", line=3.0)


def test_a_role_is_told_as_it_is_in_the_table(table: RoleTable) -> None:
    found = record(role_map(table))
    view = next(one for one in found["views"] if one["name"] == "delimiter")
    rows = table.frame[table.frame["role"] == "delimiter"].sort_values(["layer", "head"])
    assert view["values"] == pytest.approx(rows["mean"].tolist(), rel=0.005)
    facts = {name: columns for name, *columns in view["facts"]}
    low, high = facts["interval"]
    assert low == pytest.approx(rows["ci_low"].tolist(), rel=0.005)
    assert high == pytest.approx(rows["ci_high"].tolist(), rel=0.005)
    (answers,) = facts["answer"]
    assert [answers["texts"][k] for k in answers["at"]] == rows["answer"].tolist()
    marks = [view["marks"]["texts"][k] for k in view["marks"]["at"]]
    signs = {sign for sign, _, is_found in LEGEND if is_found}
    assert [mark in signs for mark in marks] == (rows["answer"] == "yes").tolist()
    counts = next(one for one in found["views"] if one["summary"])
    assigned = table.frame.groupby(["layer", "head"])["assigned"].sum()
    assert counts["values"] == assigned.tolist()


def test_a_comparison_has_before_and_after(shifts: RoleComparison) -> None:
    found = record(comparison_map(shifts))
    assert len(found["views"]) == 3 * len(shifts.checkpoints)
    view = next(one for one in found["views"] if one["name"].startswith("delimiter"))
    rows = shifts.frame[
        (shifts.frame["role"] == "delimiter")
        & (shifts.frame["checkpoint"] == shifts.checkpoints[0])
    ].sort_values(["layer", "head"])
    before, after = view["arrow"]
    assert before == pytest.approx(rows["mean_before"].tolist(), rel=0.005)
    assert after == pytest.approx(rows["mean_after"].tolist(), rel=0.005)
    assert view["values"] == pytest.approx(rows["difference"].tolist(), rel=0.005)


def test_large_maps_stay_below_two_megabytes() -> None:
    words = tuple(f"word{k}" for k in range(60))
    quoted = {
        (layer, head): (("role", Quoted("1.0", words, (3,), ((1, 3, 0.5, True),))),) * 6
        for layer in range(24)
        for head in range(16)
    }
    views = tuple(large_view(f"role {k}") for k in range(300))
    made = HeadMap("title", "mean", views, (("?", "undecided", False),), quoted)
    text = made.to_json()
    found = json.loads(text)
    assert len(text) < 1.8e6
    assert found["left"] + len(found["views"]) == 300
    assert found["views"][0]["name"] == "role 0"
    assert 0 < len(found["quoted"]) < len(quoted)


def test_weights_beside_sentences_are_those_of_the_head(
    bert_folder: Path, treebank: Path, tmp_path: Path
) -> None:
    role = "syntactic:any:to_governor"
    result = classify_heads(
        bert_folder, read_conllu(treebank), threshold=0.001, beyond_offset=False
    )
    folder = result.save(tmp_path / "out")
    (found,), why_not = quote(folder, [((1, 2), role, ExampleOptions(n=2))])
    assert why_not == ()
    seen = read_attention(HeadScores.load(folder), (1, 2), role, n=2)
    assert len(found) == len(seen)
    for one, attention in zip(found, seen, strict=True):
        assert one.words == attention.labels
        own = {(query, key): weight for query, key, weight, is_own in one.arcs if is_own}
        sieve = set(map(tuple, np.argwhere(attention.sieve).tolist()))
        assert own
        assert set(own) <= sieve
        assert len(own) == min(len(sieve), 8)
        for (query, key), weight in own.items():
            assert weight == attention.weights[query, key]
        assert one.arcs_in_words[0][1].endswith(f" {one.arcs[0][2]:.2f}")


def test_without_the_model_arcs_have_no_weights(
    bert_folder: Path, treebank: Path, tmp_path: Path
) -> None:
    result = classify_heads(
        bert_folder, read_conllu(treebank), threshold=0.001, beyond_offset=False
    )
    folder = result.save(tmp_path / "out")
    asked = [((1, 2), "syntactic:any:to_governor", ExampleOptions(n=1))]
    ((one,),), why_not = quote(folder, asked, model=str(tmp_path / "gone"))
    assert why_not[0].startswith("Weights are not shown: ")
    assert all(" ← " in text and not text[-1].isdigit() for _, text in one.arcs_in_words)
    page = make_report(folder, model=str(tmp_path / "gone"))
    assert [text for one in page.sections for text in one.texts].count(why_not[0]) == 1


def test_words_end_no_element() -> None:
    made = HeadMap(EVIL, "mean", (large_view(EVIL, (1, 1)),), (("?", EVIL, False),))
    assert "<" not in made.to_json()
    assert record(made)["title"] == EVIL
