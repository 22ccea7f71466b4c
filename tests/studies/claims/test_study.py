"""Claims on tiny models: all of them, bad input, and one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import headroles as hr
from headroles.corpus import Corpus
from headroles.errors import UsageError
from headroles.results.stored import load
from headroles.studies.claims import CLAIMS, ClaimOptions, ClaimTable, Finding, Measured
from headroles.studies.claims.published.pande_2021 import role_trend
from headroles.studies.claims.registry import own_claim
from headroles.studies.claims.study import claim_frame, find
from headroles.studies.claims.task_probabilities import TaskProbabilities
from tests.commands import run
from tests.conftest import make_bert, make_tokenizer
from tests.rounding import tolerance
from tests.tasks.conftest import SENTENCES, make_task_model, save, write_labelled

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
    counts = table.frame["verdict"].value_counts()
    first, *lines = repr(table).splitlines()
    assert first.startswith(f"Of {len(CLAIMS)} claims, {counts.get('shown', 0)} ")
    assert first.endswith(f"{counts['not testable']} cannot be tested with the given input.")
    (row,) = [line for line in lines if line.strip().startswith("separators-middle")]
    assert "contradicted" in row
    assert "share of attention to separators ..." in row
    assert "a task with task" not in repr(table)
    for claim, why in said.items():
        assert f"{claim}: {CLAIMS[claim].statement}"[:60] in table.in_full()
        assert why[:40] in table.in_full()


def test_the_same_options_give_the_same_table(bert_folder: Path, sample: Path) -> None:
    chosen = ("layers-alike", "undecided-few", "special-tokens-little")
    once, again = (claims(bert_folder, sample, claims=chosen) for _ in range(2))
    assert once.frame.equals(again.frame)
    assert list(once.frame["claim"]) == list(chosen)


def without_relations() -> Corpus:
    """A corpus whose arcs have no relation that claims speak of."""
    sentences = ["the cat sat on the mat with that dog", "it is for the best at this of all"] * 8
    words = [one.split() for one in sentences]
    return hr.make_corpus(
        [(one, [-1, *[0] * (len(one) - 1)], ["root", *["dep"] * (len(one) - 1)]) for one in words]
    )


def test_two_layers_and_no_trees_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    table = claims(folder_of(tmp_path, 2), without_relations())
    said = reasons(table)
    assert "no relation" in said["syntactic-heads"]
    assert "role syntactic" in said["local-and-syntactic"]
    for one in ("separator-heads-late", "classifier-heads-early", "several-roles-middle"):
        assert "2 layers" in said[one] or "no head" in said[one]
    assert verdicts(table)["separators-middle"] == "contradicted"


def block_heads(measured: Measured) -> Finding:
    """Block heads sit in late layers."""
    return role_trend(measured, "block")


def test_a_corpus_without_pairs_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    options = ClaimOptions(pairing="none")
    measured = Measured(str(folder_of(tmp_path, 3)), without_relations(), options)
    every = [own_claim("block-heads", block_heads), *CLAIMS.values()]
    frame = claim_frame(every, [find(one, measured) for one in every], options)
    rows = frame.set_index("claim")
    assert rows.loc["block-heads", "note"].endswith("role block; it needs pairs of sentences")
    for one in ("separators-middle", "layers-alike", "positional-heads", "special-tokens-little"):
        assert rows.loc[one, "verdict"] != "not testable"


def test_tasks(tmp_path: Path, sample: Path) -> None:
    model = save(make_task_model(), tmp_path / "task-model")
    task = write_labelled(tmp_path / "task.tsv", SENTENCES)
    chosen = ("many-can-go", "one-head-a-layer", "prunable-share", "bottom-as-top", "tasks-agree")
    table = claims(model, sample, task=[task, task], claims=chosen)
    assert verdicts(table)["many-can-go"] != "not testable"
    row = table.frame.set_index("claim").loc["tasks-agree"]
    assert np.isnan(row["effect"]) or row["effect"] == pytest.approx(1)


def test_probabilities_of_right_answers(tmp_path: Path) -> None:
    model = make_task_model()
    task = write_labelled(tmp_path / "task.tsv", SENTENCES)
    folder = str(save(model, tmp_path / "task-model"))
    opened = TaskProbabilities.open(folder, task, ClaimOptions())
    inputs = make_tokenizer()([text for text, _ in SENTENCES], padding=True, return_tensors="pt")
    with torch.inference_mode():
        found = model(**inputs).logits.softmax(-1)
    right = [found[row, int(label == "good")].item() for row, (_, label) in enumerate(SENTENCES)]
    assert opened.without([[]])[:, 0] == pytest.approx(right, abs=tolerance())
    without = opened.without([[(1, 2)]])
    assert opened.falls([[(1, 2)]]) == pytest.approx(np.array(right)[:, None] - without)
    assert opened.one_by_one[:, 6:7] == pytest.approx(opened.falls([[(1, 2)]]))


@pytest.mark.parametrize(
    ("classes", "rows", "said"),
    [
        (2, [row for row in SENTENCES if row[1] == "good"], "two classes"),
        (1, [(text, str(number)) for number, (text, _) in enumerate(SENTENCES)], "no probability"),
    ],
)
def test_tasks_of_one_class_or_of_numbers_are_told(
    tmp_path: Path, sample: Path, classes: int, rows: list[tuple[str, str]], said: str
) -> None:
    names = dict(enumerate(["bad", "good"][:classes]))
    labels = {name: number for number, name in names.items()}
    model = save(make_task_model(id2label=names, label2id=labels), tmp_path / "model")
    task = write_labelled(tmp_path / "task.tsv", rows)
    table = claims(model, sample, task=task, claims=("many-can-go", "layers-alike"))
    assert said in reasons(table)["many-can-go"]
    assert verdicts(table)["layers-alike"] != "not testable"


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
    listed = run("claims", "--list")
    assert listed.exit_code == 0
    assert all(f"{name}: " in listed.output for name in CLAIMS)
    out = tmp_path / "out"
    asked = ["claims", str(bert_folder), str(sample), "--out", str(out), "--report"]
    done = run(*asked, "--claims", "separators-middle,layers-alike")
    assert done.exit_code == 0, done.output
    assert "contradicted" in done.output
    page = (out / "report.html").read_text("utf-8")
    assert "Which claims of papers hold for this model?" in page
    assert CLAIMS["layers-alike"].statement in page
