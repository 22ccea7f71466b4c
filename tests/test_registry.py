"""Commands and kinds of results are listed once, and everything reads the list."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ForwardRef

import numpy as np
import pytest
from typer.testing import CliRunner

import headroles as hr
import headroles.studies
from headroles import registry
from headroles.cli.app import COMMANDS, app, find_function, make_command
from headroles.cli.studies import make_function
from headroles.options import Options, fields_of, takes
from headroles.registry import ENTRY_POINT, RESULTS, Command, result_type
from headroles.results.result import Result
from headroles.results.showing import describe, figure_function
from headroles.roles import RoleOptions, choice
from headroles.roles.choice import ROLE_GROUPS, only_for
from tests.conftest import make_scores

PACKAGE = Path(headroles.__file__).parent
RECIPE = PACKAGE.parent / "CONTRIBUTING.md"
EXAMPLE = PACKAGE.parent / "docs" / "example-package"
"""A package of somebody else, with a study over role tables."""


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


@pytest.mark.parametrize("kind", RESULTS)
def test_types_of_facts_are_found_in_their_module(kind: str) -> None:
    """Python 3.14 looks nowhere else for the names in annotations, those of parents too."""
    facts = result_type(kind).facts_type
    texts = [
        annotation.__forward_arg__
        for annotation in facts.__annotations__.values()
        if isinstance(annotation, ForwardRef)
    ]
    for text in texts:
        eval(text, vars(sys.modules[facts.__module__]))


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
    public = folder / "headroles" / "public_names.py"
    before, first, after = public.read_text().partition("HEADROLES = {\n")
    public.write_text(f"{before}{first}    {names.strip()}\n{after}")
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


@pytest.fixture(scope="module")
def package_with_role(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which the recipe for roles was followed by the letter."""
    folder = tmp_path_factory.mktemp("role")
    shutil.copytree(PACKAGE, folder / "headroles", ignore=shutil.ignore_patterns("__pycache__"))
    section = RECIPE.read_text(encoding="utf-8").partition("## How to add a role\n")[2]
    module, line = re.findall(r"```py\n(.*?)```", section.partition("\n## ")[0], re.S)
    place = folder / module.splitlines()[0].removeprefix("# ")
    assert not place.exists()
    place.write_text(module)
    choice = folder / "headroles" / "roles" / "choice.py"
    text = choice.read_text()
    for before, after in (
        (
            "from headroles.roles import aligned, catalogue, ",
            "from headroles.roles import aligned, catalogue, initial, ",
        ),
        ('    "confidence": ', f'{line}    "confidence": '),
        ("class RoleOptions(", "class RoleOptions(initial.InitialOptions, "),
    ):
        assert text.count(before) == 1
        text = text.replace(before, after)
    choice.write_text(text)
    return folder


USE_OF_ROLE = """
import sys
from typer.testing import CliRunner
from headroles import HeadScores, RoleTable
from headroles.cli import app

def run(code, *arguments):
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == code, done.output + done.stderr
    return " ".join((done.stdout if code == 0 else done.stderr).split())

model, corpus, out = sys.argv[1:]
scoring = ("classify", model, corpus, "--out", out)
assert "aligned, initial, confidence" in run(0, "score", "--help")
assert "--initial-words" in run(0, "classify", "--help")
refused = run(2, *scoring, "--roles", "local", "--initial-words", "2")
assert "(--initial-words) has no effect without the role initial" in refused
assert "did you mean 'initial'" in run(2, *scoring, "--roles", "initil")
named = ("--roles", "local,initial", "--initial-words", "2", "--threshold", "0.01")
printed = run(0, *scoring, *named)
assert "the first words of the sentence" in printed, printed
table = RoleTable.load(out)
assert table.roles == ("local", "initial")
assert len(table.heads_with("the first words of the sentence")) == 12
assert len(table.where(role="initial").frame) == 12
assert "the first words of the sentence" in table.export("latex").decode()
role = HeadScores.load(out).roles[1]
assert (role.unit, role.kind, role.meaning) == ("words", "tokens", {"initial_words": 2})
assert "[" in run(0, "examples", out, "--head", "0-0", "--role", "initial", "--no-weights")
"""


def test_a_role_made_by_the_recipe_is_everywhere(
    package_with_role: Path, bert_folder: Path, sample: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", USE_OF_ROLE, str(bert_folder), str(sample), str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(package_with_role)},
        cwd=package_with_role,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_option_of_a_role_is_marked_with_its_group() -> None:
    """The options of roles in general are those of naming them."""
    unmarked = {field.name for field in fields_of(RoleOptions) if not only_for(field)}
    assert unmarked == {"roles", "preset", "beyond_offset", "classes"}
    assert {only_for(field) for field in fields_of(RoleOptions)} - {""} <= {*ROLE_GROUPS}


# Studies of other packages


def install(project: Path, site: Path) -> None:
    """Put a package of modules, and what its pyproject.toml says of it, where Python looks."""
    described = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = site / f"{described['name'].replace('-', '_')}-{described['version']}.dist-info"
    about.mkdir()
    names = f"Name: {described['name']}\nVersion: {described['version']}\n"
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\n{names}", encoding="utf-8")
    lines: list[str] = []
    for group, points in described["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    for module in project.glob("*.py"):
        shutil.copy(module, site)


USE_OF_OTHERS = """
import json
import sys
from pathlib import Path
import headroles as hr
from typer.testing import CliRunner
from headroles.cli import app

def run(*arguments):
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())

table, out, model, treebank = sys.argv[1:]
commands = run("--help")
assert "Studies of other packages: overlap A study of the package headroles-overlap." in commands
assert "Did you mean 'overlap'?" in CliRunner().invoke(app, ["overlaps"]).output
assert "headroles_overlap" not in sys.modules
help = run("overlap", "--help")
assert "FIRST and SECOND are folders that classify or assign wrote." in help
assert "SECOND Folder of results: role table." in help and "--least <int>" in help
made = json.loads(run("overlap", table, table, "--least", "0", "--out", out, "--json"))
assert [(row["role"], row["first"] == row["both"]) for row in made["rows"]] == [
    ("local", True), ("delimiter", True)
]
assert "heads have a role in both tables" in run("show", out)
assert run("export", out, "--format", "csv").startswith("role,first,second,both")
run("report", out)
assert "Do two tables give a role to the same heads?" in Path(out, "report.html").read_text()
run("figure", out, "--kind", "overlap", "--out", f"{out}.svg")
assert type(hr.load(out)).__name__ == "Overlap"
assert hr.load(out).options.least == 0
run("score", model, treebank, "--roles", "next-comma", "--out", f"{out}-roles")
roles = hr.HeadScores.load(f"{out}-roles").roles
assert "headroles_overlap:find_next_commas" in [role.id for role in roles]
"""


def test_a_study_and_a_role_of_another_package_are_everywhere(
    tmp_path: Path, bert_folder: Path, sample: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install(EXAMPLE, site)
    values = np.random.default_rng(0).normal(4, 0.3, size=(6, 2, 3, 2))
    scored = make_scores(values, ["local", "delimiter"], [f"d{k}" for k in range(6)])
    table = hr.assign_roles(scored).save(tmp_path / "table")
    arguments = [str(one) for one in (table, tmp_path / "overlap", bert_folder, sample)]
    done = subprocess.run(
        [sys.executable, "-c", USE_OF_OTHERS, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(PACKAGE.parent)))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Entry points of studies: names and places."""
    points: dict[str, str] = {}

    def find(group: str) -> list[importlib.metadata.EntryPoint]:
        return [importlib.metadata.EntryPoint(*point, group) for point in points.items()]

    monkeypatch.setattr(importlib.metadata, "entry_points", find)
    registry.all_commands.cache_clear()
    yield points
    registry.all_commands.cache_clear()


def test_a_study_with_the_name_of_another_command_is_ignored_with_a_warning(
    declared: dict[str, str],
) -> None:
    declared["classify"] = "elsewhere:classify"
    with pytest.warns(UserWarning, match=r"study classify of the package elsewhere is ignored"):
        found = registry.all_commands()
    assert found == COMMANDS


@takes(Options)
def boil(teapot: int, options: Options) -> hr.RoleTable:
    """Boil water."""
    raise NotImplementedError


@pytest.mark.parametrize("package", ["", "kitchen"])
def test_a_study_with_an_unknown_subject_fails_when_its_command_is_made(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Command, "load", lambda self: boil)
    with pytest.raises(TypeError, match=r"no command can read `teapot`, .*ARGUMENTS"):
        make_function(Command("boil", "studies.boil:boil", "Boil water.", package=package))


def test_a_study_whose_results_are_of_another_kind_is_refused(
    declared: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    declared["boil"] = "kitchen:boil"
    monkeypatch.setattr(Command, "load", lambda self: boil)
    with pytest.raises(TypeError, match="study boil of the package kitchen returns no results of"):
        result_type("boil")


def test_a_table_is_a_subject_of_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    @takes(Options)
    def weigh(one: hr.RoleTable, other: hr.HeadScores, options: Options) -> hr.RoleTable:
        """Weigh both."""
        raise NotImplementedError

    monkeypatch.setattr(Command, "load", lambda self: weigh)
    command: Any = inspect.signature(make_function(Command("weigh", "studies.weigh:weigh", "W.")))
    shown = {
        name: one.annotation.__metadata__[0]
        for name, one in command.parameters.items()
        if name in ("one", "other")
    }
    assert [(one.metavar, one.help) for one in shown.values()] == [
        ("ONE", "Folder of results: role table."),
        ("OTHER", "Folder of results: scores."),
    ]


def test_entry_points_have_the_name_that_contributors_read() -> None:
    described = (EXAMPLE / "pyproject.toml").read_text()
    assert f'[project.entry-points."{ENTRY_POINT}"]' in described
    assert f'[project.entry-points."{choice.ENTRY_POINT}"]' in described
    assert f"`{ENTRY_POINT}`" in RECIPE.read_text(encoding="utf-8")
