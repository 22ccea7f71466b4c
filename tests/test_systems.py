"""What holds on Windows, as far as Linux shows it: encodings, ends of lines, names of files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headroles as hr
from headroles.models.loading.saved_models import PrunedModel
from headroles.registry import RESULTS, result_type
from headroles.results.stored import Stored
from headroles.storage import HIDDEN, REPORT_FILE, RUN_FILE, hidden

ROOT = Path(__file__).parents[1]
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "123")}
COMMANDS = """
import sys, warnings
warnings.filterwarnings("error", category=EncodingWarning, module=r"headroles(\\.|$)")
from headroles.cli import app, console
console.prepare_output()
model, corpus, folder = sys.argv[1:]
for line in (
    ["classify", model, corpus, "--out", folder, "--report", "--roles", "syntactic,local"],
    ["assign", folder],
    ["show", folder, "--full"],
    ["examples", folder, "--head", "0-0", "--role", "nsubj"],
    ["export", folder, "--format", "csv"],
    ["figure", folder, "--out", f"{folder}/roles.svg"],
    ["claims", "--help"],
):
    try:
        app(line)
    except SystemExit as end:
        assert end.code in (0, None), line
"""


def fits_windows(name: str) -> bool:
    """Whether Windows has files of this name."""
    stem = name.partition(".")[0].lower()
    return not (re.search(r'[<>:"/\\|?\x00-\x1f]|[ .]$', name) or stem in _RESERVED)


def test_the_encoding_of_the_system_does_not_matter(
    bert_folder: Path, treebank: Path, tmp_path: Path
) -> None:
    """No file is opened in it, and what a terminal cannot show is escaped."""
    corpus = tmp_path / "中文.conllu"
    corpus.write_text(treebank.read_text("utf-8").replace("dog", "狗"), "utf-8", newline="\r\n")
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    command = [sys.executable, "-X", "warn_default_encoding", "-c", COMMANDS]
    arguments = [str(bert_folder), str(corpus), str(tmp_path / "结果")]
    done = subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr.decode("cp1252")
    assert r"\u72d7" in done.stdout.decode("cp1252")
    assert "中文.conllu" in (tmp_path / "结果" / REPORT_FILE).read_text("utf-8")


ROWS = "1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_\n\n"
TREE = f"# sent_id = s\n{ROWS}"
ARCS = '{"tokens": ["A", "C"], "arcs": [[0, 1, "contact"]]}\n'


@pytest.mark.parametrize(("name", "text"), [("a.conllu", TREE), ("a.jsonl", ARCS)])
def test_ends_of_lines_do_not_matter(name: str, text: str, tmp_path: Path) -> None:
    corpora = []
    for end in ("\n", "\r\n"):
        (tmp_path / name).write_text(2 * text, "utf-8", newline=end)
        is_tree = name.endswith("conllu")
        file = tmp_path / name
        corpora.append([*(hr.read_conllu(file, ids="place") if is_tree else hr.read_arcs(file))])
    assert corpora[0] == corpora[1]
    assert len(corpora[0]) == 2


def test_names_of_files_are_names_on_every_system() -> None:
    """Also where two names that differ in case alone are one."""
    kinds: list[type[Stored]] = [*map(result_type, RESULTS), hr.HeadScores, PrunedModel]
    written = {name for kind in kinds for name in kind.file_names()} | {RUN_FILE, REPORT_FILE}
    in_hidden = {HIDDEN, hidden.NEW, hidden.REPLACED, hidden.ADDED, hidden.PLACED, hidden.PARTS}
    for names in (written, in_hidden):
        assert all(fits_windows(name.replace("*", "x")) for name in names)
        assert len({name.lower() for name in names}) == len(names)


def test_the_files_of_the_project_can_be_checked_out_on_every_system() -> None:
    places = [
        place.relative_to(ROOT)
        for folder in ("headroles", "tests", "docs", "data", "benchmarks", "notebooks", ".github")
        for place in (ROOT / folder).rglob("*")
        if "__pycache__" not in place.parts
    ]
    assert len(places) > 300
    assert [place for place in places if not fits_windows(place.name)] == []
    assert len({str(place).lower() for place in places}) == len(places)
