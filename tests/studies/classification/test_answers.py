"""The answers of a role table, and their summary in a few lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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
    assert [(one.role, one.head) for one in answers.only_position] == [(SUBJECT, (0, 0))]
    assert [(one.role, one.heads) for one in answers.found] == [("local", ((0, 0),))]
    assert answers.controls_distance
    rows = strongest_rows(table, (SUBJECT,))
    assert rows[["layer", "head", "is_only_position"]].values.tolist() == [[0, 3, False]]


def test_a_head_that_only_looks_at_a_place_is_not_named_as_the_strongest(table: RoleTable) -> None:
    shown = as_text(summarized(table))
    best, positional = (
        next(line for line in shown.splitlines() if line.startswith(start))
        for start in ("subject -> its verb", "Not counted: 0-0")
    )
    assert "0-3" in best
    assert "subject -> its verb 12." in positional


def test_without_contrasts_it_is_said_that_distance_was_not_controlled(table: RoleTable) -> None:
    alone = table.where(role=[SUBJECT])
    assert not find_answers(alone).controls_distance
    summary = " ".join(as_text(summarized(alone)).split())
    assert "These rows leave out how far heads go beyond distance" in summary
    values = np.full((60, 1, 4, 1), 9, dtype=np.float32) + np.arange(60).reshape(-1, 1, 1, 1) / 60
    never = assign_roles(make_scores(values, (SUBJECT,)))
    assert "Score with beyond_offset" in " ".join(as_text(summarized(never)).split())


@pytest.mark.parametrize("more", [{}, {"roles": "all"}, {"score": "hit"}, {"score": "excess"}])
def test_the_summary_fits_on_a_screen(bert_folder: Path, more: dict[str, str]) -> None:
    made = classify_heads(bert_folder, read_conllu(sample_treebank()), **more)
    lines = as_text(one for one in made.shown() if not isinstance(one, Warned)).splitlines()
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
    assert whole.heads_with("nsubj") == whole.heads_with(SUBJECT)
    assert find_answers(part).n_heads == find_answers(whole).n_heads == 12
    shown = " ".join(as_text(summarized(part)).split())
    assert "Score with beyond_offset" not in shown
    assert len(draw_role(part, "nsubj").get_yticks()) == 3


def test_tab_completion_shows_names_for_people(table: RoleTable) -> None:
    names = set(dir(table))
    assert names >= {"frame", "where", "heads_with", "save", "export", "warnings"}
    assert not names & {"remedy", "form", "kind", "shown", "stem", "read_files"}


def test_heads_that_may_only_look_at_a_place_are_marked_wherever_they_are_handed_out(
    table: RoleTable,
) -> None:
    for part in (table, table.where(role=SUBJECT), table.where(only_assigned=True)):
        own = part.view("assigned").query("role == @SUBJECT")
        answers = dict(zip(own["head"], own["beyond_distance"], strict=True))
        assert answers == {0: "undecided", 1: "yes", 3: "yes"}
    assert set(table.assigned.query("role == 'local'")["beyond_distance"]) == {""}
    assert r"beyond \\ distance" in table.export("latex", "assigned").decode()
    marks = {
        one.get_label(): {int(x) for x, _ in np.asarray(one.get_offsets())}
        for one in draw_role(table, SUBJECT).collections[1:]
    }
    assert marks["yes, not shown beyond distance"] == {0}
    assert marks.get("yes, certified", set()) | marks.get("yes", set()) == {1, 3}
