"""Claims on tiny models: all of them, bad input, and one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import headroles as hr
from headroles.cli import app
from headroles.errors import UsageError
from headroles.results.stored import load
from headroles.studies.claims import CLAIMS, ClaimTable
from tests.conftest import make_bert, make_tokenizer
from tests.tasks.conftest import SENTENCES, make_task_model, save

claims = hr.test_claims


def folder_of(tmp_path: Path, layers: int, seed: int = 0) -> Path:
    folder = tmp_path / f"model-{layers}-{seed}"
    make_bert(seed, layers).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def verdicts(table: ClaimTable) -> dict[str, str]:
    return dict(zip(table.frame["claim"], table.frame["verdict"], strict=True))


def reasons(table: ClaimTable) -> dict[str, str]:
    rows = table.reasons()
    return dict(zip(rows["claim"], rows["note"], strict=True))


def test_everything_that_can_be_tested_is(tmp_path: Path, sample: Path) -> None:
    model, after = folder_of(tmp_path, 4), folder_of(tmp_path, 4, 1)
    table = claims(model, sample, after)
    assert list(table.frame["claim"]) == list(CLAIMS)
    said = reasons(table)
    assert {one for one, why in said.items() if "a task with task" in why} == {
        "specialised-last",
        "many-can-go",
        "one-head-a-layer",
        "prunable-share",
        "middle-layers-matter",
        "bottom-as-top",
        "tasks-agree",
    }
    assert verdicts(table)["last-layers-move"] != "not testable"
    assert verdicts(table)["separators-middle"] == "contradicted"
    table.save(tmp_path / "out")
    assert load(tmp_path / "out") == table
    tested = table.frame[table.frame["verdict"] != "not testable"]
    assert (tested["p_shown_adjusted"] >= tested["p_shown"] - 1e-12).all()
    assert "claims on" in repr(table)


def test_the_same_options_give_the_same_table(bert_folder: Path, sample: Path) -> None:
    chosen = ("layers-alike", "undecided-few", "special-tokens-little")
    once, again = (claims(bert_folder, sample, claims=chosen) for _ in range(2))
    assert once.frame.equals(again.frame)
    assert list(once.frame["claim"]) == list(chosen)


def test_two_layers_and_no_trees_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    sentences = ["the cat sat on the mat with that dog", "it is for the best at this of all"] * 8
    triples = [(one.split(), [-1, *[0] * (len(one.split()) - 1)], []) for one in sentences]
    triples = [(words, heads, ["root", *["dep"] * (len(words) - 1)]) for words, heads, _ in triples]
    table = claims(folder_of(tmp_path, 2), hr.make_corpus(triples))
    said = reasons(table)
    assert "no relation" in said["syntactic-heads"]
    assert "role syntactic" in said["local-and-syntactic"]
    for one in ("separator-heads-late", "classifier-heads-early", "several-roles-middle"):
        assert "2 layers" in said[one] or "no head" in said[one]
    assert verdicts(table)["separators-middle"] == "contradicted"


def test_tasks(tmp_path: Path, sample: Path) -> None:
    model = save(make_task_model(), tmp_path / "task-model")
    rows = [f"{sentence}\t{label}\n" for sentence, label in SENTENCES]
    task, one_class = tmp_path / "task.tsv", tmp_path / "one.tsv"
    task.write_text("sentence\tlabel\n" + "".join(rows))
    label = SENTENCES[0][1]
    one_class.write_text(
        "sentence\tlabel\n" + "".join(row for row in rows if row.endswith(f"\t{label}\n"))
    )
    chosen = ("many-can-go", "one-head-a-layer", "prunable-share", "bottom-as-top", "tasks-agree")
    table = claims(model, sample, task=[task, task], claims=chosen)
    assert verdicts(table)["many-can-go"] != "not testable"
    row = table.frame.set_index("claim").loc["tasks-agree"]
    assert np.isnan(row["effect"]) or row["effect"] == pytest.approx(1)
    said = reasons(claims(model, sample, task=one_class, claims=chosen[:1]))
    assert "two classes" in said["many-can-go"]


OWN = '''
import numpy as np
from headroles.studies.claims import trend

def local_early(measured):
    """Local heads sit in early layers."""
    shares = measured.answers.share_by_layer("local")
    return trend(shares, -np.arange(len(shares)), alpha=measured.alpha)

def broken(measured):
    return 1 / 0

def wrong(measured):
    return 3
'''


def test_claims_of_ones_own(tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_claims_of_tests.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    names = [f"own_claims_of_tests:{one}" for one in ("local_early", "broken", "wrong")]
    table = claims(folder_of(tmp_path, 4), sample, claims=names)
    assert table.frame["statement"][0] == "Local heads sit in early layers."
    assert table.frame["verdict"][0] != "not testable"
    assert "ZeroDivisionError" in reasons(table)[names[1]]
    assert "returned int" in reasons(table)[names[2]]


def test_unknown_claims_are_refused(bert_folder: Path, sample: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'layers-alike'"):
        claims(bert_folder, sample, claims="layer-alike")
    with pytest.raises(UsageError, match="cannot be loaded"):
        claims(bert_folder, sample, claims="nowhere:nothing")


def test_the_command(bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["claims", "--list"])
    assert listed.exit_code == 0
    assert all(f"{name}: " in listed.output for name in CLAIMS)
    out = tmp_path / "out"
    asked = ["claims", str(bert_folder), str(sample), "--out", str(out), "--report"]
    done = CliRunner().invoke(app, [*asked, "--claims", "separators-middle,layers-alike"])
    assert done.exit_code == 0, done.output
    assert "contradicted" in done.output
    page = (out / "report.html").read_text("utf-8")
    assert "Which claims of papers hold for this model?" in page
    assert CLAIMS["layers-alike"].statement in page
