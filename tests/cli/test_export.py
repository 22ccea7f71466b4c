"""``headroles export``: formats, parts of tables, and files that are not to be replaced."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner

from headroles import RoleTable, assign_roles
from headroles.cli.app import app
from headroles.formats import ENDINGS
from headroles.results.stored import save_together
from tests.conftest import make_scores


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = np.random.default_rng(0).normal([2.0, 4.0], 0.5, (30, 2, 3, 2))
    scores = make_scores(values, ["local", "block"], [f"d{k}" for k in range(30)])
    folder = tmp_path_factory.mktemp("results") / "roles"
    return save_together(folder, [scores, assign_roles(scores)])


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def table(*arguments: object) -> pd.DataFrame:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return pd.read_csv(io.BytesIO(result.stdout_bytes))


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_ending_chooses_the_format(folder: Path, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"table{ending}"
    assert run(folder, "--out", file).exit_code == 0
    assert file.read_bytes() == run(folder, "--format", ENDINGS[ending]).stdout_bytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "{}/r.xlsx"), "{}/r.xlsx ends in no known format (known: "),
        (("--out", "{}/r.html", "--format", "csv"), "ends as html does, and --format says csv"),
        (("--role", "locla"), "there is no role 'locla'; did you mean 'local'?"),
        (("--layer", "2"), "there is no layer '2'; there is: 0, 1"),
        (("--layer", "a"), "there is no layer 'a'; there is: 0, 1"),
        (("--format", "xls"), "the format is 'xls'; it must be one of csv"),
    ],
)
def test_what_cannot_be_meant(
    folder: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run(folder, *(argument.format(tmp_path) for argument in arguments))
    assert result.exit_code == 2
    assert message.format(tmp_path) in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_parts_of_the_table(folder: Path) -> None:
    whole = table(folder)
    assert set(table(folder, "--role", "block")["role"]) == {"block"}
    assert set(table(folder, "--layer", "1")["layer"]) == {1}
    assigned = table(folder, "--only-assigned")
    assert assigned["assigned"].all()
    assert 0 < len(assigned) == whole["assigned"].sum() < len(whole)
    counts = table(folder, "--view", "counts", "--role", "block", "--layer", "0,1")
    assert counts["role"].tolist() == ["block"]
    counts = table(folder, "--view", "counts", "--only-assigned")
    assert counts["total"].sum() == len(assigned)
    both = table(folder, "--view", "colocation", "--only-assigned").set_index("role")
    assert both.to_dict() == {"block": {"block": assigned["role"].eq("block").sum()}}
    wide = table(folder, "--view", "wide", "--role", "local")
    assert list(wide.columns) == ["layer", "head", "local"]


@pytest.mark.parametrize("name", ["scores.parquet", "roles.csv", "run.json"])
def test_results_are_not_replaced(folder: Path, name: str) -> None:
    before = (folder / name).read_bytes()
    result = run(folder, "--format", "csv", "--out", folder / name)
    assert result.exit_code in (1, 2)
    assert (folder / name).read_bytes() == before
    if name == "roles.csv":
        assert "is a file of the results in" in result.stderr
    beside = folder / "table.csv"
    assert run(folder, "--out", beside).exit_code == 0
    beside.unlink()


def test_links_are_written_through(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.json"
    target.write_text("old")
    (tmp_path / "link.json").symlink_to(target)
    assert run(folder, "--out", tmp_path / "link.json").exit_code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads(target.read_text())["rows"]


def test_devices_are_written_to(folder: Path) -> None:
    assert run(folder, "--out", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_a_full_disk_is_named(folder: Path) -> None:
    result = run(folder, "--out", "/dev/full")
    assert result.exit_code == 1
    assert "/dev/full cannot be written: No space left on device" in result.stderr


def test_a_relation_selects_both_directions_and_a_choice_without_rows_is_refused(
    tmp_path: Path,
) -> None:
    subject, verb = (f"syntactic:nsubj:{way}" for way in ("to_governor", "to_dependent"))
    roles = [subject, verb, f"{subject}:beyond_offset", f"{verb}:beyond_offset", "local"]
    means = np.array([[[9.0, 9.0, -1.0, 5.0, 9.0]] * 2])
    values = np.random.default_rng(0).normal(means, 0.5, (30, 1, 2, 5))
    assign_roles(make_scores(values, roles)).save(tmp_path)
    assert set(table(tmp_path, "--role", "nsubj")["role"]) == {subject, verb}
    beyond = table(tmp_path, "--view", "beyond_position", "--role", "nsubj,local")
    assert beyond["role"].tolist() == [verb, verb]
    for choice in (("local",), (subject, "--layer", "0")):
        refused = run(tmp_path, "--view", "beyond_position", "--role", *choice)
        assert refused.exit_code == 2
        assert "the view beyond_position has no rows of this choice" in refused.stderr
        assert f"its roles: {verb}" in refused.stderr
    assert table(tmp_path, "--view", "counts", "--role", "local", "--layer", "0").shape == (1, 3)


def test_of_python(folder: Path) -> None:
    roles = RoleTable.load(folder)
    assert roles == RoleTable.load(folder)
    assert roles != roles.where(role="local")
    assert roles.where(layer=[0]).view("counts").columns.tolist() == [0, "total"]
