"""Commands and kinds of results are listed once, and everything reads the list."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest

import headroles.studies
from headroles.cli.app import COMMANDS, find_function, make_command
from headroles.registry import RESULTS, result_type
from headroles.results.result import Result, describe, figure_function
from tests.conftest import make_scores

PACKAGE = Path(headroles.__file__).parent
RECIPE = PACKAGE.parent / "CONTRIBUTING.md"


@pytest.mark.parametrize("kind", RESULTS)
def test_every_kind_of_results_is_there(kind: str) -> None:
    result = result_type(kind)
    assert issubclass(result, Result)
    assert result.kind == kind
    assert not result.page or inspect.signature(resolve_name(result.page))
    for name in result.figures:
        draw = figure_function(result, name)
        assert draw.__name__.startswith("draw_")
        assert describe(draw).endswith(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_function_whose_text_begins_with_its_help(name: str) -> None:
    text = str(inspect.getdoc(find_function(name)))
    assert text.startswith(COMMANDS[name].help)
    assert make_command(name).name == name


def test_every_kind_of_table_is_declared() -> None:
    for one in pkgutil.walk_packages(headroles.studies.__path__, "headroles.studies."):
        importlib.import_module(one.name)
    found, kinds = Result.__subclasses__(), set()
    while found:
        one = found.pop()
        found += one.__subclasses__()
        if one.__module__.startswith("headroles.") and hasattr(one, "kind"):
            kinds.add(one.kind)
    assert kinds == {*RESULTS}


def blocks() -> list[str]:
    """The code of the recipe for a study: its file, its line, public names."""
    section = RECIPE.read_text(encoding="utf-8").partition("## How to add a study\n")[2]
    return re.findall(r"```py\n(.*?)```", section.partition("\n## ")[0], re.S)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which the recipe was followed by the letter."""
    folder = tmp_path_factory.mktemp("recipe")
    shutil.copytree(PACKAGE, folder / "headroles", ignore=shutil.ignore_patterns("__pycache__"))
    *modules, declaration, names = blocks()
    for module in modules:
        place = folder / module.splitlines()[0].removeprefix("# ")
        assert not place.exists()
        place.parent.mkdir(exist_ok=True)
        place.write_text(module)
    registry = folder / "headroles" / "registry.py"
    before, title, after = registry.read_text().partition('    Command("show"')
    registry.write_text(f"{before}    {declaration.strip()},\n{title}{after}")
    public = folder / "headroles" / "__init__.pyi"
    public.write_text(names + public.read_text())
    return folder


def test_a_study_made_by_the_recipe_is_everywhere(package: Path, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(1, 0.3, size=(6, 2, 3, 2))
    scored = make_scores(values, ["local", "delimiter"]).save(tmp_path / "scored")

    def run(*arguments: str | Path) -> str:
        environment = {**os.environ, "PYTHONPATH": str(package)}
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            cwd=package,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    commands = run("-m", "headroles", "--help")
    assert re.search(r"redundancy .*\n +ranges +Find the lowest and the highest mean", commands)
    assert "--layer" in run("-m", "headroles", "ranges", "--help")
    out = tmp_path / "ranges"
    printed = run("-m", "headroles", "ranges", scored, "--layer", "1", "--out", out, "--json")
    made = json.loads(printed)
    assert (made["options"], len(made["rows"])) == ({"layer": 1}, 2)
    assert "heads differ most in" in run("-m", "headroles", "show", out)
    full = run("-m", "headroles", "show", out, "--full")
    assert {"local", "delimiter"} <= set(full.split())
    exported = run("-m", "headroles", "export", out, "--format", "csv")
    assert exported.startswith("role,lowest,highest\n")
    run("-m", "headroles", "report", out)
    page = (out / "report.html").read_text()
    assert "How far apart are the heads of a layer?" in page
    assert "Draw the ranges of all roles." in page
    run("-m", "headroles", "figure", out, "--kind", "ranges", "--out", tmp_path / "f.svg")
    content = json.loads((out / "run.json").read_text())
    assert content["sources"]["scores"]["scores"] > 0
    code = f"""
import sys, headroles as hr
light = {{"pandas", "torch"}} & set(sys.modules)
found = hr.load({str(out)!r})
again = hr.find_ranges(hr.HeadScores.load({str(scored)!r}), layer=1)
shown = found._repr_html_()
print(light, type(found) is hr.ScoreRanges, found.frame.equals(again.frame), "<table" in shown)
print("<img" in shown, found.options.layer, found.plot().get_figure() is not None)
"""
    assert run("-c", code).split() == "set() True True True True 1 True".split()
