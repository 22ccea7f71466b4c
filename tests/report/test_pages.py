"""Pages and the map of all heads say what results say, escape all of it and load nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import headroles as hr
from headroles import HeadScores, Role, RoleComparison, RoleTable, assign_roles, read_attention
from headroles.drawing.page import HeadMap, Sentences, plain_page
from headroles.errors import StorageError, UsageError
from headroles.models.loading import encoder
from headroles.report.pages import make_report, write_report
from headroles.results.shown import WIDE, Grid, Pointer, Title, Verbatim
from headroles.results.stored import save_together
from headroles.studies.classification.figures import LEGEND, role_map
from headroles.studies.comparison.figures import comparison_map
from headroles.studies.inspection.examples import quote
from headroles.studies.inspection.origin import ExampleOptions, OriginOptions
from tests.conftest import changed, make_scores, write_treebank
from tests.report.conftest import parts_of

EVIL = '<script>alert("1")</script>'


class Outline(HTMLParser):
    """The ids of a page, what it refers to, and the types of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.refers: list[str] = []
        self.scripts: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append(dict(attrs).get("type"))
        for name, value in attrs:
            self.ids += [value or ""] if name == "id" else []
            if name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
                self.refers.append(value or "")


@pytest.fixture
def folder(scores: HeadScores, table: RoleTable, tmp_path: Path) -> Path:
    return save_together(tmp_path / "out", [scores, table])


def test_heads_that_are_gone_do_not_count(scores: HeadScores, tmp_path: Path) -> None:
    values = scores.values.copy()
    values[:, 0, 1] = np.nan
    made = assign_roles(changed(replace(scores, values=values), model={"removed_heads": [[0, 1]]}))
    page = make_report(made.save(tmp_path / "out"))
    assert parts_of(page, Grid)[0].columns[0] == "Target of the 5 heads"
    assert [text for text in parts_of(page, str) if "ntestable" in text] == [
        "Untestable: fewer than two examples (5); the head was removed from the model (3)."
    ]


def test_the_answer_is_made_from_the_numbers(folder: Path, table: RoleTable) -> None:
    page = make_report(folder)
    own = table.where("local", only_assigned=True).frame
    assert len(page.answer) == 3
    assert page.answer[0] == "0 of the 6 heads attend to grammatical partners; 0 are undecided."
    assert "Distance was not controlled" in page.answer[1]
    assert page.answer[2].startswith(f"In addition, heads attend: {len(own)} to neighbouring ")
    (summary,) = (one for one in table.summarize() if isinstance(one, Grid))
    assert parts_of(page, Grid)[0].rows == summary.rows
    first = own.loc[own["mean"].idxmax()]
    row = next(row for row in summary.rows if row[0] == "neighbouring words")
    assert row[1] == str(len(own))
    assert row[4:] == (f"{first['layer']}-{first['head']}", f"{first['mean']:.1f}")


def test_the_origin_has_no_empty_values(scores: HeadScores, tmp_path: Path) -> None:
    for reaches, shown in (([None, None], ""), ([None, 8], "reaches: -, 8")):
        made = assign_roles(changed(scores, model={"reaches": reaches}))
        page = make_report(made.save(tmp_path / str(reaches[1])))
        (section,) = (one for one in page.sections if one.title == "How it was made")
        (grid,) = (part for part in section.parts if isinstance(part, Grid))
        assert "None" not in str(grid.rows)
        assert shown in str(grid.rows)
        assert ("reaches" in str(grid.rows)) == bool(shown)


def test_results_are_there_to_copy(folder: Path, table: RoleTable) -> None:
    page = make_report(folder)
    (section,) = (one for one in page.sections if one.title == "How to report this")
    text = str(section.parts[-1])
    answers = table.frame[table.frame["role"] == "local"]["answer"].value_counts()
    undecided = answers.get("undecided", 0)
    assert f"{answers['yes']} of 6 heads attended to neighbouring words ({undecided} und" in text
    assert "No head passed the test for grammatical partners." in text


def test_nobody_has_a_role(scores: HeadScores, tmp_path: Path) -> None:
    table = assign_roles(scores, threshold=100)
    folder = save_together(tmp_path / "none", [scores, table])
    page = make_report(folder)
    assert page.answer[2] == "No head passed the test for another role."
    assert not {"Wide", "Controls"} & {*table.in_full().splitlines()}  # which would be empty
    assert "<svg" in page.to_html()
    assert not parts_of(page, Sentences)
    with pytest.raises(UsageError, match="no place for a sentence of yours; leave it out"):
        make_report(folder, tokens="Cats eat bones")


def test_nothing_is_loaded_and_ids_are_unique(folder: Path) -> None:
    text = make_report(folder).to_html()
    found = Outline(text)
    assert all(one.startswith(("#", "data:")) for one in found.refers)
    assert found.refers
    assert len(found.ids) == len(set(found.ids))
    assert {one[1:] for one in found.refers if one.startswith("#")} <= set(found.ids)
    assert found.scripts == ["application/json", None]
    assert not re.search(r"@import|url\((?!#)", text)


def test_names_are_text(scores: HeadScores, tmp_path: Path) -> None:
    roles = (Role(EVIL), *scores.roles[1:])
    bad = changed(
        replace(scores, roles=roles),
        model={"model": EVIL},
        command=["headroles", EVIL],
        corpus={"skipped": {EVIL: 3}},
    )
    folder = save_together(tmp_path / "bad", [bad, assign_roles(bad)])
    text = make_report(folder).to_html()
    assert Outline(text).scripts == ["application/json", None]
    assert EVIL not in text
    assert text.count("&lt;script&gt;") > 5


def test_certified_changes_are_counted(shifts: RoleComparison, tmp_path: Path) -> None:
    page = make_report(shifts.save(tmp_path / "shifts"))
    assert "certified" not in " ".join(page.answer).lower()  # scores by hand have no bounds
    first = shifts.frame[shifts.frame["checkpoint"] == shifts.checkpoints[0]]
    frame = first.assign(certified=first["change"], checkpoint=shifts.checkpoints[-1])
    page = make_report(replace(shifts, frame=frame).save(tmp_path / "certified"))
    n = (frame["change"] == "changed").sum()
    assert n > 0
    assert page.answer[1].startswith(f"{n} of {len(frame)} means (6 heads x {len(frame) // 6} ")
    assert "that all models read." in page.answer[-1]  # the page begins with what changed
    assert f"; {n} of {n} are certified to differ from 0." in " ".join(page.answer)


def test_a_link_in_the_place_of_the_report_is_not_followed(
    table: RoleTable, tmp_path: Path
) -> None:
    folder, victim = tmp_path / "results", tmp_path / "thesis.html"
    table.save(folder)
    victim.write_text("three years")
    (folder / "report.html").symlink_to(victim)
    with pytest.raises(StorageError, match=r"report\.html is no plain file, and links are not"):
        write_report(folder)
    assert victim.read_text() == "three years"
    assert (folder / "report.html").is_symlink()
    assert write_report(folder, tmp_path / "mine.html").is_file()


def test_what_goes_beyond_position_is_told_by_how_far(tmp_path: Path) -> None:
    role, beyond = "syntactic:any:to_governor", "syntactic:any:to_governor:beyond_offset"
    means = np.array([[[9.0, 0.0], [5.0, 2.0], [4.0, 0.9], [1.0, 3.0]]])
    rng = np.random.default_rng(0)
    values = rng.normal(means[None], 0.3, size=(60, *means.shape)).astype(np.float32)
    table = assign_roles(make_scores(values, (role, beyond)))
    page = make_report(table.save(tmp_path / "out"))
    positional = "because position may explain them: 0-0 (word -> its governor, 9.0)"
    assert any(positional in one for one in parts_of(page, str))
    assert page.answer[0].startswith("2 of the 4 heads attend to grammatical partners, more than")
    assert "The clearest is 0-1, word \u2192 its governor: 5.0 x uniform" in page.answer[0]
    heads, best = parts_of(page, Grid)[:2]
    assert heads.rows[0][:4] == ("grammatical partners", "2", "0", "0-1 0-2")
    assert best.rows[0][:2] == ("word -> its governor", "0-1")


@pytest.fixture(scope="module")
def classified(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with roles of a small treebank, all of which many heads have."""
    folder = tmp_path_factory.mktemp("classified")
    corpus = hr.read_conllu(write_treebank(folder))
    result = hr.classify_heads(bert_folder, corpus, threshold=0.001, beyond_offset=False)
    return result.save(folder / "out")


def test_weights_beside_sentences_are_those_of_the_head(classified: Path) -> None:
    role = "syntactic:any:to_governor"
    (found,), why_not = quote(classified, [((1, 2), role, ExampleOptions(n=2))], OriginOptions())
    assert why_not == []
    seen = read_attention(HeadScores.load(classified), (1, 2), role, n=2)
    assert len(found) == len(seen) == 2
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


def test_a_sentence_of_ones_own_is_on_the_page(
    classified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Mock(side_effect=encoder.load_encoder)
    monkeypatch.setattr(encoder, "load_encoder", load)
    given = parts_of(make_report(classified, tokens="Old cats eat"), Sentences)
    load.assert_called_once()
    has = RoleTable.load(classified).heads[["layer", "head"]].itertuples(index=False)
    assert {part.head for part in given} == {f"{layer}-{head}" for layer, head in has}
    for part in given[:4]:
        head = tuple(map(int, part.head.split("-")))
        role = part.title.partition(":")[0].replace("\u2192", "->")
        (seen,) = read_attention(HeadScores.load(classified), head, role, tokens="Old cats eat")
        first, *others = part.quoted
        assert (first.score, first.words) == ("yours", seen.labels)
        assert "yours" not in {one.score for one in others}
        for query, key, weight, _ in first.arcs:
            assert weight == seen.weights[query, key]
    long = make_report(classified, tokens="cat " * 600)  # the others keep their weights
    assert any("or more than the 512 that the model reads" in text for text in parts_of(long, str))
    first, *others = parts_of(long, Sentences)[0].quoted
    assert (first.score, first.words[0]) == ("yours", "cat")
    assert all(one.words[0] == "[CLS]" for one in others)


def test_only_titles_are_titles(table: RoleTable, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Title("By\x1b layer"), "no full stop", Verbatim("left = right"), "Yes?"]
    monkeypatch.setattr(RoleTable, "details", lambda self: iter(parts))
    html = plain_page(replace(table)).to_html()
    assert "<h3>By\\x1b layer</h3>" in html
    assert html.count("<h3>") == 1
    assert all(f">{part}</h3>" not in html and part in html for part in parts[1:])


def test_pages_and_full_texts_do_not_point_to_the_full_text(
    table: RoleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RoleTable, "summarize", lambda self: iter([Pointer("2 more."), "Yes."]))
    fresh = replace(table)  # the summary of the shared table may be made already
    page = plain_page(fresh)
    assert page.answer == ("Yes.",)
    assert not any("more" in text for text in parts_of(page, str))
    assert fresh.in_full().startswith("Yes.")


def test_details_fit_a_screen(shifts: RoleComparison) -> None:
    text = shifts.in_full()
    assert f"the whole table has {len(shifts.columns)}." in text
    assert max(map(len, text.splitlines())) <= WIDE
    assert len(text.splitlines()) > len(shifts)


def test_without_the_model_arcs_have_no_weights(classified: Path, tmp_path: Path) -> None:
    asked = [((1, 2), "syntactic:any:to_governor", ExampleOptions(n=1))]
    ((one,),), why_not = quote(classified, asked, OriginOptions(model=str(tmp_path / "gone")))
    assert why_not[0].startswith("Weights are not shown: ")
    assert all(" → " in text and not text[-1].isdigit() for _, text in one.arcs_in_words)
    page = make_report(classified, model=str(tmp_path / "gone"))
    assert parts_of(page, str).count(why_not[0]) == 1


def test_sentences_that_cannot_be_read_have_a_reason(classified: Path, tmp_path: Path) -> None:
    alone = RoleTable.load(classified).save(tmp_path / "alone")
    for folder, options, reason in (
        (alone, {}, "their scores are not beside the table; report on"),
        (classified, {"corpus": tmp_path / "gone.conllu"}, "gone.conllu"),
    ):
        page = make_report(folder, **options)
        (said,) = (text for text in parts_of(page, str) if text.startswith("The sentences cannot"))
        assert reason in said
        assert not parts_of(page, Sentences)


# The map of all heads.


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


def test_maps_stay_below_two_megabytes_and_escape_words() -> None:
    frame = frame_of([f"role {k}" for k in range(300)], (24, 16))
    made = HeadMap("title", "mean", frame, {"interval": ("low", "high")}, tuple(LEGEND.values()), 1)
    views = views_of(made)
    assert len(made.to_json()) < 1.8e6
    assert [view["words"] for view in views] == [f"role {k}" for k in range(len(views))]
    assert 100 < len(views) < 300
    # Words end no element.
    made = HeadMap(EVIL, "mean", frame_of([EVIL], (1, 1)), {}, ((EVIL, EVIL, "full"),))
    assert "<" not in made.to_json()
    assert views_of(made)[0]["words"] == EVIL
