"""A format of corpora that is added by the recipe is read by every function and command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headroles

PACKAGE = Path(headroles.__file__).parent
RECIPE = PACKAGE.parent / "CONTRIBUTING.md"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package in which the recipe was followed by the letter."""
    folder = tmp_path / "recipe"
    shutil.copytree(PACKAGE, folder / "headroles", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE.parent / "data", folder / "data")
    section = RECIPE.read_text(encoding="utf-8").partition("## How to add a format of corpora\n")[2]
    code = re.findall(r"```py\n(.*?)```", section.partition("\n## ")[0], re.S)
    module, entry, name, import_ = code
    place = folder / module.splitlines()[0].removeprefix("# ")
    assert not place.exists()
    place.write_text(module, encoding="utf-8")
    opening = folder / "headroles" / "corpus" / "opening.py"
    text = opening.read_text(encoding="utf-8")
    before, start, after = text.partition("FORMATS = (\n    CONLLU,\n")
    first, line, rest = before.partition("from headroles.corpus.arcs")
    assert start
    assert line
    before = f"{first}{import_}{line}{rest}"
    opening.write_text(f"{before}{start}    {entry.strip()},\n{after}", encoding="utf-8")
    public = folder / "headroles" / "public_names.py"
    before, start, after = public.read_text(encoding="utf-8").partition("HEADROLES = {\n")
    public.write_text(f"{before}{start}    {name.strip()}\n{after}", encoding="utf-8")
    return folder


USE = """
import sys
from pathlib import Path
import headroles as hr
import spacy
from spacy.tokens import Doc, DocBin
from headroles.corpus import as_corpus
from headroles.errors import CorpusError
from typer.testing import CliRunner
from headroles.cli import app

def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])

model, folder = sys.argv[1], Path(sys.argv[2])
vocab = spacy.blank("en").vocab
dogs = Doc(vocab, ["dogs", "bark"], heads=[1, 1], deps=["nsubj", "root"], sent_starts=[True, False])
cats = Doc(vocab, ["a", "cat", "sleeps"], heads=[1, 2, 2], deps=["det", "nsubj", "root"])
file = folder / "pets.spacy"
DocBin(docs=[dogs, cats] * 4).to_disk(file)

first, second, *_ = as_corpus(file)
assert first == next(iter(hr.read_docbin(file)))
assert (first.words, first.governors) == (("dogs", "bark"), (1, -1))
assert first.relations == ("nsubj", "root")
assert (first.document, second.document, second.position) == ("pets-1", "pets-2", 0)

out = folder / "scores"
made = run("score", model, file, "--relations", "nsubj", "--pairing", "none", "--out", out)
assert made.exit_code == 0, made.output
assert hr.HeadScores.load(out).record.corpus.format == "docbin"
shown = run("examples", out, "--head", "0-0", "--role", "syntactic:nsubj:to_governor")
assert shown.exit_code == 0, shown.output
assert "dogs" in shown.output or "cat" in shown.output
refused = run("score", model, file, "--parser", "en_core_web_sm", "--out", folder / "other")
assert "a treebank is parsed already" in refused.output
refused = run("score", model, file, "--documents", "sent_id", "--out", folder / "other")
assert "--documents applies to treebanks" in refused.output.replace("treebanks,", "treebanks")
(folder / "torn.spacy").write_bytes(file.read_bytes()[:40])
try:
    [*hr.read_docbin(folder / "torn.spacy")]
except CorpusError as error:
    assert "torn.spacy is no DocBin of spaCy" in str(error)
else:
    raise AssertionError
"""


def test_a_format_made_by_the_recipe_is_read_everywhere(
    package: Path, bert_folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip("spacy")
    done = subprocess.run(
        [sys.executable, "-c", USE, str(bert_folder), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=package,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
