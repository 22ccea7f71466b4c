"""``headroles export``: views, formats, parts of tables, and files that must not be replaced."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from headroles import HeadScores, RoleComparison, RoleTable, assign_roles, compare_roles
from headroles.results.formats import ENDINGS, FORMATS
from headroles.results.stored import save_together
from tests.commands import names, run, run_well
from tests.conftest import make_scores


def some_scores(seed: int = 0) -> HeadScores:
    values = np.random.default_rng(seed).normal([2.0, 4.0], 0.5, (30, 2, 3, 2))
    scores = make_scores(values, ["local", "block"], [f"d{k}" for k in range(30)])
    return replace(scores, digests=scores.ids)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scores = some_scores()
    folder = tmp_path_factory.mktemp("results") / "roles"
    return save_together(folder, [scores, assign_roles(scores)])


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shifts = compare_roles(some_scores(), some_scores(1))
    return shifts.save(tmp_path_factory.mktemp("results") / "shifts")


def table(*arguments: object) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(run_well("export", *arguments).stdout_bytes))


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(
    ("kind", "view"), [(kind, one) for kind in (RoleTable, RoleComparison) for one in kind.views]
)
def test_every_view_in_every_format(
    folder: Path, compared: Path, tmp_path: Path, kind: Any, view: str, fmt: str
) -> None:
    place = folder if kind is RoleTable else compared
    expected = kind.load(place).export(fmt, view)
    arguments = ("export", place, "--format", fmt, "--view", view)
    assert run_well(*arguments).stdout_bytes == expected
    assert run_well(*arguments, "--out", tmp_path / "table").stdout == ""
    assert (tmp_path / "table").read_bytes() == expected
    assert names(tmp_path) == {"table"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_ending_chooses_the_format(folder: Path, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"table{ending}"
    assert run("export", folder, "--out", file).exit_code == 0
    assert file.read_bytes() == run("export", folder, "--format", ENDINGS[ending]).stdout_bytes


def test_parts_of_the_table(folder: Path) -> None:
    whole = table(folder)
    assert set(table(folder, "--role", "block")["role"]) == {"block"}
    assert set(table(folder, "--layer", "1")["layer"]) == {1}
    assigned = table(folder, "--only-assigned")
    assert assigned["assigned"].all()
    assert 0 < len(assigned) == whole["assigned"].sum() < len(whole)
    answers = table(folder, "--view", "answers", "--role", "block", "--layer", "0,1")
    assert answers["role"].tolist() == ["block"]
    assert table(folder, "--view", "answers", "--only-assigned")["yes"].sum() == len(assigned)
    both = table(folder, "--view", "colocation", "--only-assigned").set_index("role")
    assert both.to_dict() == {"block": {"block": assigned["role"].eq("block").sum()}}
    wide = table(folder, "--view", "wide", "--role", "local")
    assert list(wide.columns) == ["layer", "head", "local"]


@pytest.mark.parametrize("name", ["scores.parquet", "roles.csv", "run.json"])
def test_results_are_not_replaced(folder: Path, name: str) -> None:
    before = (folder / name).read_bytes()
    result = run("export", folder, "--format", "csv", "--out", folder / name)
    assert result.exit_code in (1, 2)
    assert (folder / name).read_bytes() == before
    if name == "roles.csv":
        assert "is a file of the results in" in result.stderr
    beside = folder / "table.csv"
    assert run("export", folder, "--out", beside).exit_code == 0
    beside.unlink()


def test_links_are_written_through(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.json"
    target.write_text("old")
    (tmp_path / "link.json").symlink_to(target)
    assert run("export", folder, "--out", tmp_path / "link.json").exit_code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads(target.read_text())["rows"]


def test_a_relation_selects_both_directions(tmp_path: Path) -> None:
    subject, verb = (f"syntactic:nsubj:{way}" for way in ("to_governor", "to_dependent"))
    roles = [subject, verb, f"{subject}:beyond_offset", f"{verb}:beyond_offset", "local"]
    means = np.array([[[9.0, 9.0, -1.0, 5.0, 9.0]] * 2])
    values = np.random.default_rng(0).normal(means, 0.5, (30, 1, 2, 5))
    assign_roles(make_scores(values, roles)).save(tmp_path)
    assert set(table(tmp_path, "--role", "nsubj")["role"]) == {subject, verb}
    assigned = table(tmp_path, "--view", "assigned", "--role", "nsubj")
    assert assigned["role"].tolist() == [verb, verb]
    assert table(tmp_path, "--view", "answers", "--role", "local", "--layer", "0").shape == (1, 6)
