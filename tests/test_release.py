"""A tag releases a version that the project has everywhere, and workflows are what GitHub reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import headroles as hr

ROOT = Path(__file__).parents[1]
CHECK = ".github/check_release.py"
READ = ("pyproject.toml", "CHANGELOG.md", "CITATION.cff", "headroles/public_names.py")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files that a release is checked by, for version 9.8.7."""
    for name in (*READ, "tests/public_names.txt", CHECK):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "9.8.7"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 9.8.7 (2030-01-31)\n\n- New.\n")
    (tmp_path / "CITATION.cff").write_text("title: headroles\nversion: 9.8.7\n")
    (tmp_path / "tests/public_names.txt").write_text("\n".join(hr.__all__))
    return tmp_path


def check(project: Path, tag: str = "v9.8.7") -> str:
    done = subprocess.run(
        [sys.executable, project / CHECK, tag], capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


def test_a_release_that_is_ready_passes(project: Path) -> None:
    assert check(project) == ""


def test_a_release_that_is_not_ready_is_refused_with_every_reason(project: Path) -> None:
    reasons = check(project, "v9.9.0").splitlines()
    assert [reason.split()[0] for reason in reasons] == [
        "pyproject.toml",
        "CHANGELOG.md",
        "CITATION.cff",
    ]
    (project / "CHANGELOG.md").write_text("## Unreleased\n\n## 9.8.7 (2030-01-31)\n")
    (project / "tests/public_names.txt").write_text("load")
    first, second = check(project).splitlines()
    assert first == "CHANGELOG.md still has a head '## Unreleased'; name the version in it."
    assert second.startswith("tests/public_names.txt lacks ")
    assert "HeadScores" in second


def test_the_changelog_begins_with_what_is_unreleased_or_with_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    heads = [line.split()[1] for line in lines if line.startswith("## ")]
    assert heads.count("Unreleased") <= 1
    assert next(head for head in heads[:2] if head != "Unreleased") == project["version"]


@pytest.mark.parametrize("name", ["tests", "release"])
def test_workflows_run_commands_that_there_are(name: str) -> None:
    """Their steps are targets of the Makefile, and files of the project."""
    file = ROOT / ".github" / "workflows" / f"{name}.yml"
    jobs = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"]
    targets = (ROOT / "Makefile").read_text(encoding="utf-8").partition(".PHONY: ")[2]
    steps = [step for job in jobs.values() for step in job["steps"]]
    commands = [step["run"].split() for step in steps if "run" in step]
    made = {command[1] for command in commands if command[0] == "make"}
    assert made
    assert made <= {*targets.partition("\n")[0].split()}
    scripts = [word for command in commands for word in command if word.endswith(".py")]
    assert all((ROOT / script).is_file() for script in scripts)
    assert {job for one in jobs.values() for job in [one.get("needs")] if job} <= {*jobs}
