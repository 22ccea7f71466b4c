"""What one head does: all its roles beside those of all heads, with sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headroles import HeadProfile, assign_roles, describe_heads
from headroles.errors import UsageError
from headroles.results.shown import Grid
from tests.commands import run_well
from tests.conftest import make_scores

OBJECT, ADJECTIVE = "syntactic:obj:to_governor", "syntactic:amod:to_governor"
ROLES = (
    *("local", OBJECT, f"{OBJECT}:beyond_offset", ADJECTIVE, f"{ADJECTIVE}:beyond_offset"),
    "delimiter",
)


@pytest.fixture(scope="module")
def profile() -> HeadProfile:
    """Head 0-1 has both relations: with the smaller mean it goes farther beyond distance."""
    means = np.array([[[5, 9, 1, 1, 0, 1], [4, 9, 2, 6, 4, 1], [1, 1, 0, 5, 3, 9]]])
    values = np.random.default_rng(0).normal(means[None], 0.5, size=(60, *means.shape))
    scores = make_scores(values.astype(np.float32), ROLES)
    made = describe_heads(scores, (0, 1))
    assert isinstance(made, HeadProfile)
    table = assign_roles(scores).frame
    rows = table[table["head"] == 1].set_index("role")
    columns = ["mean", "ci_low", "beyond_distance", "answer"]
    found = made.frame.set_index("role")
    assert found[columns].equals(rows.loc[found.index, columns])
    return made


def test_roles_are_sorted_by_what_is_beyond_distance(profile: HeadProfile) -> None:
    frame = profile.frame
    assert frame["role"].tolist() == [ADJECTIVE, OBJECT, "local", "delimiter"]
    assert frame["answer"].tolist() == ["yes", "yes", "yes", "no"]
    assert frame["rank"].tolist()[:3] == [1, 1, 2]


def test_the_screen_says_what_the_head_does(profile: HeadProfile) -> None:
    first, grid, other = profile.shown[:3]
    assert first == "Head 0-1 of a model has 3 of 4 roles; 0 are undecided."
    assert isinstance(grid, Grid)
    assert [row[0] for row in grid.rows] == [
        "adjective -> its noun",
        "object -> its verb",
        "neighbouring words",
        "special tokens",
    ]
    assert str(other).startswith("Its strongest other use: neighbouring words (4.")


def test_roles_are_tested_as_asked() -> None:
    values = np.random.default_rng(0).normal(4, 0.1, size=(60, 1, 2, 1)).astype(np.float32)
    scores = make_scores(values, ["local"])
    assert describe_heads(scores, (0, 1)).frame["answer"].tolist() == ["yes"]
    assert describe_heads(scores, (0, 1), threshold=5).frame["answer"].tolist() == ["no"]
    with pytest.raises(UsageError, match="tests are of the roles of one head; name it"):
        describe_heads(scores, threshold=5)


def test_a_head_that_the_model_lacks_is_refused() -> None:
    scores = make_scores(np.ones((12, 2, 3, 1)), ["local"])
    with pytest.raises(UsageError, match=r"no head 2-0; the model has layers 0 to 1 of 3 heads"):
        describe_heads(scores, (2, 0))


def test_it_is_a_command_with_sentences(bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run_well("score", bert_folder, sample, "--roles", "punctuation", "--out", folder)
    shown = run_well("describe", folder, "--head", "1-2", "--out", tmp_path / "head").output
    assert "Head 1-2 of tiny-bert has " in shown
    assert HeadProfile.load(tmp_path / "head").facts["head"] == 2
