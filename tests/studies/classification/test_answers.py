"""The answers of a role table, and their summary in a few lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from headroles import RoleTable, assign_roles, classify_heads, read_conllu, sample_treebank
from headroles.results.shown import Warned, as_text
from headroles.studies.classification.answers import find_answers, strongest_rows
from headroles.studies.classification.figures import draw_role
from headroles.studies.classification.summary import summarized
from tests.conftest import make_scores

SUBJECT = "syntactic:nsubj:to_governor"
BEYOND = f"{SUBJECT}:beyond_offset"


@pytest.fixture
def table() -> RoleTable:
    """Head 0-0 has the largest mean by its position alone; 0-3 goes farthest beyond position."""
    means = np.array([[[12.0, 0.0, 9.0], [5.0, 2.0, 1.0], [1.0, 0.5, 1.0], [9.0, 4.0, 1.0]]])
    rng = np.random.default_rng(0)
    values = rng.normal(means[None], 0.5, size=(60, *means.shape)).astype(np.float32)
    return assign_roles(make_scores(values, (SUBJECT, BEYOND, "local")))


def test_heads_of_arcs_are_ranked_beyond_position(table: RoleTable) -> None:
    answers = find_answers(table)
    assert answers.syntactic == ((0, 1), (0, 3))
    assert [(one.role, one.head) for one in answers.arcs] == [(SUBJECT, (0, 3))]
    assert [(one.role, one.head) for one in answers.positional] == [(SUBJECT, (0, 0))]
    assert [(one.role, one.heads) for one in answers.found] == [("local", ((0, 0),))]
    assert answers.controls_distance
    assert strongest_rows(table, (SUBJECT,))[["layer", "head"]].values.tolist() == [[0, 3]]


def test_a_head_that_only_looks_at_a_place_is_not_named_as_the_strongest(table: RoleTable) -> None:
    shown = as_text(summarized(table))
    best, positional = (
        next(line for line in shown.splitlines() if line.startswith(start))
        for start in ("subject -> its verb", "Positional, not counted: 0-0")
    )
    assert "0-3" in best
    assert "subject -> its verb 12." in positional


def test_without_contrasts_it_is_said_that_distance_was_not_controlled() -> None:
    values = np.full((60, 1, 4, 1), 9, dtype=np.float32) + np.arange(60).reshape(-1, 1, 1, 1) / 60
    never = assign_roles(make_scores(values, (SUBJECT,)))
    assert not find_answers(never).controls_distance
    assert "Score with beyond_offset" in " ".join(as_text(summarized(never)).split())


@pytest.mark.parametrize("more", [{}, {"roles": "all"}, {"score": "hit"}, {"score": "excess"}])
def test_the_summary_fits_on_a_screen(bert_folder: Path, more: dict[str, str]) -> None:
    made = classify_heads(bert_folder, read_conllu(sample_treebank()), **more)
    lines = as_text(one for one in made.summarize() if not isinstance(one, Warned)).splitlines()
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 100


def test_a_part_of_a_table_says_nothing_about_the_rest(bert_folder: Path) -> None:
    whole = classify_heads(bert_folder, read_conllu(sample_treebank()), threshold=1.05).roles
    assert whole.warnings
    assert whole.where(role="*") is whole
    part = whole.where(role="subject -> its verb", layer=1)
    assert part.roles == (SUBJECT,)
    assert part.warnings == ()
    assert whole.where(role="nsubj").roles == (SUBJECT, SUBJECT.replace("governor", "dependent"))
    assert find_answers(part).n_heads == find_answers(whole).n_heads == 12
    shown = " ".join(as_text(summarized(part)).split())
    assert "Score with beyond_offset" not in shown
    assert len(draw_role(part, "nsubj").get_yticks()) == 3


def test_tab_completion_shows_names_for_people(table: RoleTable) -> None:
    names = set(dir(table))
    assert names >= {"frame", "where", "heads_with", "save", "export", "warnings"}
    assert not names & {"remedy", "form", "kind", "shown", "stem", "read_files"}


def test_every_reader_names_the_same_heads(table: RoleTable) -> None:
    """Head 0-0 is positional, and no reader hands it out; the summary counts 0-1 and 0-3."""
    expected = [(0, 1), (0, 3)]
    assert list(find_answers(table).syntactic) == expected
    for name in ("syntactic", "nsubj", "subject", SUBJECT):
        assert table.heads_with(name) == expected
    for part in (table.where(only_assigned=True), table.where("syntactic", only_assigned=True)):
        own = part.frame[part.frame["role"] == SUBJECT]
        assert [*zip(own["layer"], own["head"], strict=True)] == expected
    lines = table.where(SUBJECT).export("latex", "assigned").decode().splitlines()
    assert {line.split(" & ")[0].strip() for line in lines if " & " in line} >= {"0-1", "0-3"}
    assert not any(line.strip().startswith("0-0") for line in lines)
    marks = {
        one.get_label(): {int(x) for x, _ in np.asarray(one.get_offsets())}
        for one in draw_role(table, SUBJECT).collections[1:]
    }
    assert marks["positional"] == {0}
    assert marks.get("yes, certified", set()) | marks.get("yes", set()) == {1, 3}
    assert [one["head"] for one in table.to_json()["assigned"] if one["role"] == SUBJECT] == [1, 3]


def test_both_tests_have_to_show_a_role() -> None:
    """One p-value, the larger of both; a note says which of the two is open."""
    means = np.array([[[9.0, 4.0], [9.0, 0.5], [3.0, 4.0], [3.0, 0.5], [1.0, 4.0], [9.0, 0.0]]])
    rng = np.random.default_rng(2)
    values = rng.normal(means[None], 1.0, size=(60, *means.shape)).astype(np.float32)
    scores = make_scores(values, (SUBJECT, BEYOND))
    frame = assign_roles(scores, distance_margin=0.5).frame
    assert frame["role"].tolist() == [SUBJECT] * 6
    answers = ["yes", "undecided", "undecided", "undecided", "no", "positional"]
    assert frame["answer"].tolist() == answers
    notes = ["", "open: contrast", "open: mean", "open: mean and contrast", "", ""]
    assert frame["note"].tolist() == notes
    p_values: list[np.ndarray] = []
    for column, mean, limit in ((0, "mean", 3.0), (1, "beyond_distance", 0.5)):
        own = values[:, 0, :, column].astype(float)
        assert frame[mean].tolist() == pytest.approx(own.mean(axis=0).tolist())
        found = stats.ttest_1samp(own, limit, alternative="greater").pvalue
        p_values.append(found)
    assert frame["p_beyond"].to_numpy() == pytest.approx(p_values[1])
    assert frame["p_value"].to_numpy() == pytest.approx(np.maximum(*p_values))
    assert set(assign_roles(scores, distance_margin=0.1).frame["answer"][1:2]) == {"yes"}


@pytest.mark.parametrize("strong", ["to_governor", "to_dependent"])
def test_one_role_is_the_direction_in_which_the_table_is_stronger(strong: str) -> None:
    roles = [f"syntactic:obj:{way}" for way in ("to_governor", "to_dependent")]
    means = [[[5.0, 7.0] if strong == "to_dependent" else [7.0, 5.0]] * 2]
    values = np.random.default_rng(0).normal(np.array([means])[0], 0.5, size=(60, 1, 2, 2))
    table = assign_roles(make_scores(values.astype(np.float32), roles))
    expected = "verb -> its object" if strong == "to_dependent" else "object -> its verb"
    assert expected in draw_role(table, "obj").get_title()
    assert table.where("obj").roles == tuple(roles)
