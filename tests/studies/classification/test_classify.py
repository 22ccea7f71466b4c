"""Classification, and what studies take for scores."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import headroles as hr
from headroles import Classification, HeadScores, assign_roles
from headroles.errors import UsageError
from tests.conftest import make_scores


@pytest.fixture(scope="module")
def scores() -> HeadScores:
    values = np.random.default_rng(0).normal(3.2, 1, (30, 1, 2, 2))
    values[3, ..., 1] = np.nan
    return make_scores(values, ["local", "syntactic:any:to_governor"], [f"d{k}" for k in range(30)])


def test_comes_back_as_it_was_saved_and_stands_for_its_scores(
    scores: HeadScores, tmp_path: Path
) -> None:
    result = Classification(scores, assign_roles(scores))
    folder = result.save(tmp_path / "out")
    again = Classification.load(folder)
    assert (again.scores, again.roles.frame.equals(result.roles.frame)) == (scores, True)
    assert (repr(again), again.warnings) == (repr(result.roles), result.roles.warnings)
    assert again.scores != make_scores(scores.values + 1, scores.role_ids)
    for given in (result, folder, str(folder)):
        assert assign_roles(given).frame.equals(result.roles.frame)
    assert hr.power_analysis(result).frame.equals(hr.power_analysis(scores).frame)
    with pytest.raises(UsageError, match="the scores 'before' do not name their examples"):
        hr.compare_roles(result, folder)  # both were understood, and were made by hand


@pytest.mark.parametrize("given", [None, 3, {"scores": 1}])
def test_objects_without_scores_are_refused(given: object) -> None:
    with pytest.raises(UsageError, match="holds no scores; give what score_heads or classify"):
        assign_roles(given)


def test_unknown_roles_are_refused_with_the_nearest(scores: HeadScores) -> None:
    with pytest.raises(UsageError, match="no role 'sytactic'; did you mean 'syntactic'"):
        assign_roles(scores).heads_with("sytactic")
    with pytest.raises(UsageError, match="no role 'loca'; did you mean 'local'"):
        scores.column("loca")


def test_version() -> None:
    assert hr.__version__ == version("headroles")
