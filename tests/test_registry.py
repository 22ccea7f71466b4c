"""Commands and kinds of results are listed once, and everything reads the list."""

from __future__ import annotations

import importlib
import inspect
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
from typer.testing import CliRunner

import headroles.studies
from headroles.cli.app import COMMANDS, app, find_function, make_command
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


def test_the_list_begins_with_the_commands_that_people_need_first() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    listed = re.findall(r"^  ([a-z]+(?:-[a-z]+)?)  ", shown, re.M)
    assert listed == [*COMMANDS]
    assert re.findall(r"^(\w.*):$", shown, re.M)[1] == "Start here"
    assert listed[:5] == ["demo", "classify", "examples", "compare", "report"]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which the recipe was followed by the letter."""
    folder = tmp_path_factory.mktemp("recipe")
    shutil.copytree(PACKAGE, folder / "headroles", ignore=shutil.ignore_patterns("__pycache__"))
    section = RECIPE.read_text(encoding="utf-8").partition("## How to add a study\n")[2]
    code = re.findall(r"```py\n(.*?)```", section.partition("\n## ")[0], re.S)
    *modules, declaration, names = code  # of the study, its line in the registry, public names
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


USE = """
import json
import sys
from pathlib import Path
import headroles as hr
light = {"pandas", "torch"} & set(sys.modules)
from typer.testing import CliRunner
from headroles.cli import app

def run(*arguments):
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == 0, done.output
    return done.stdout

scored, out = sys.argv[1:]
commands = run("--help")
assert commands.index("redundancy") < commands.index("ranges") < commands.index("show")
assert "Find the lowest and the highest mean" in commands
assert "--layer" in run("ranges", "--help")
made = json.loads(run("ranges", scored, "--layer", "1", "--out", out, "--json"))
assert (made["options"], len(made["rows"])) == ({"layer": 1}, 2)
assert "heads differ most in" in run("show", out)
assert {"local", "delimiter"} <= set(run("show", out, "--full").split())
assert run("export", out, "--format", "csv").startswith("role,lowest,highest\\n")
run("report", out)
page = Path(out, "report.html").read_text()
assert "How far apart are the heads of a layer?" in page
assert "Draw the ranges of all roles." in page
run("figure", out, "--kind", "ranges", "--out", f"{out}.svg")
content = json.loads(Path(out, "run.json").read_text())["ranges"]
assert content["sources"]["scores"]["facts"]["scores"] > 0
found = hr.load(out)
again = hr.find_ranges(hr.HeadScores.load(scored), layer=1)
shown = found._repr_html_()
assert "<table" in shown and "<img" in shown
assert type(found) is hr.ScoreRanges and found.frame.equals(again.frame)
assert found.options.layer == 1 and found.plot().get_figure() is not None
assert not light
"""


def test_a_study_made_by_the_recipe_is_everywhere(package: Path, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(1, 0.3, size=(6, 2, 3, 2))
    scored = make_scores(values, ["local", "delimiter"]).save(tmp_path / "scored")
    done = subprocess.run(
        [sys.executable, "-c", USE, str(scored), str(tmp_path / "ranges")],
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=package,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
