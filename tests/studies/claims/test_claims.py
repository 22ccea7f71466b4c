"""Claims on tiny models: all of them, null models, several models, bad input, and one's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from msgspec import structs

import headroles as hr
from headroles.errors import UsageError
from headroles.models.loading.encoder import load_encoder
from headroles.studies.claims.claims import CLAIMS, ClaimTable
from headroles.studies.claims.finding import NotTestable
from headroles.studies.claims.measured import ClaimOptions, ClaimTask
from headroles.studies.controls import change_of_weights, with_noise
from tests.commands import run, run_well
from tests.conftest import make_bert, make_tokenizer
from tests.rounding import tolerance
from tests.tasks.conftest import SENTENCES, make_task_model, save, write_labelled

claims, combine_claims = hr.test_claims, hr.combine_claims


def reasons(table: ClaimTable) -> dict[str, str]:
    lacking = table.frame[table.frame["verdict"] == "not testable"]
    return lacking.set_index("claim")["note"].to_dict()


@pytest.fixture(autouse=True, scope="module")
def few_sentences_for_controls() -> Iterator[None]:
    """Copies with other weights or shuffled heads read a part of the corpus, as of a large one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headroles.studies.claims.measured.CONTROL_SENTENCES", 80)
        yield


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A model with random weights, and the same with noise, as if it were fine-tuned."""
    place, model = tmp_path_factory.mktemp("models"), make_bert(0, 4)
    named = (("before", model), ("after", with_noise(model, 0.2, 9)))
    return [save(one, place / name) for name, one in named]


@pytest.fixture(scope="module")
def table(folders: list[Path], sample: Path) -> ClaimTable:
    """All claims about a model with random weights: a null model."""
    return claims(folders[0], sample, folders[1])


def test_everything_that_can_be_tested_is_beside_its_control(table: ClaimTable) -> None:
    assert list(table.frame["claim"]) == list(CLAIMS)
    rows = table.frame.set_index("claim")
    assert set(reasons(table)) <= {
        *("prunable-share", "tasks-agree", "several-roles-middle", "positional-confident"),
        *("separator-heads-late", "classifier-heads-early", "separators-spread"),
        *("norms-align-layers", "input-aligns", "penultimate-aligns"),
        *("special-tokens-across", "cross-heads-needed"),
    }
    tested = rows[rows["verdict"] != "not testable"]
    assert tested[["control", "effect"]].notna().all(axis=None)
    assert rows["verdict"]["last-layers-move"] == "described"
    assert rows["verdict"]["separators-middle"] == "contradicted"
    assert not (rows["verdict"] == "shown").any()
    first, *lines = repr(table).splitlines()
    assert first.startswith(f"{len(CLAIMS)} claims about ")
    assert any("contradicted" in line and "separators-middle" in line for line in lines)
    assert all(claim.statement[:60] in table.in_full() for claim in CLAIMS.values())


def test_the_same_seed_gives_the_same_rows(
    table: ClaimTable, folders: list[Path], sample: Path
) -> None:
    chosen = ("special-tokens-little", "single-heads")
    again = claims(folders[0], sample, claims=chosen).frame
    assert list(again["claim"]) == list(chosen)
    numbers = ["effect", "control", "ci_low", "ci_high", "n", "p_shown", "p_contradicted"]
    once = table.frame.set_index("claim").loc[[*chosen], numbers]
    assert once.equals(again.set_index("claim")[numbers])


def test_a_second_model_must_be_a_fine_tuned_copy(
    folders: list[Path], sample: Path, tmp_path: Path
) -> None:
    model = make_bert(0, 4)
    assert change_of_weights(model, with_noise(model, 0.1, 1)) == pytest.approx(0.1, rel=0.05)
    for name, other in (("same", model), ("other", make_bert(1, 4)), ("deep", make_bert(0, 3))):
        after = save(other, tmp_path / name)
        said = reasons(claims(folders[0], sample, after, claims="last-layers-move"))
        assert "give a fine-tuned copy" in said["last-layers-move"]


def test_no_trees_and_no_pairs_are_told_and_the_rest_goes_on(bert_folder: Path) -> None:
    """Of a corpus whose arcs have no relation that claims speak of."""
    sentences = ["the cat sat on the mat with that dog", "it is for the best at this of all"]
    # from every word on, so that no text stands there twice
    words = [(2 * one.split())[k : k + 9] for one in sentences for k in range(8)]
    corpus = hr.make_corpus(
        [(one, [-1, *[0] * (len(one) - 1)], ["root", *["dep"] * (len(one) - 1)]) for one in words]
    )
    table = claims(bert_folder, corpus, pairing="none")
    assert "no relation" in reasons(table)["single-heads"]
    rows = table.frame.set_index("claim")["verdict"]
    assert rows["separators-middle"] == "contradicted"
    assert rows["positional-heads"] != "not testable"


def inputs() -> Any:
    return make_tokenizer()([text for text, _ in SENTENCES], padding=True, return_tensors="pt")


def test_probabilities_of_right_answers(tmp_path: Path) -> None:
    model = make_task_model()
    task = write_labelled(tmp_path / "task.tsv", SENTENCES)
    opened = ClaimTask(str(save(model, tmp_path / "model")), task, ClaimOptions())
    right = [(row, int(label == "good")) for row, (_, label) in enumerate(SENTENCES)]
    with torch.inference_mode():
        whole = model(**inputs()).logits.softmax(-1)
        model.bert.encoder.layer[1].attention.output.dense.register_forward_pre_hook(
            lambda _, args: (args[0].index_fill(-1, torch.arange(16, 24), 0), *args[1:])
        )
        falls = whole - model(**inputs()).logits.softmax(-1)
    expected = [falls[place].item() for place in right]
    assert opened.falls([[(1, 2)]])[:, 0] == pytest.approx(np.array(expected), abs=tolerance())


def test_claims_of_removal_need_a_model_that_needs_its_heads(tmp_path: Path, sample: Path) -> None:
    folder = save(make_task_model(), tmp_path / "model")
    task = write_labelled(tmp_path / "task.tsv", SENTENCES * 10)
    said = reasons(claims(folder, sample, task=task, claims="prunable-share"))
    assert "not shown to beat the majority class" in said["prunable-share"]
    model = load_encoder(str(folder), None, "classification").model
    with torch.inference_mode():
        answers = model(**inputs()).logits.argmax(-1).tolist()
    texts = [text for text, _ in SENTENCES]
    rows = [(text, ["bad", "good"][one]) for text, one in zip(texts, answers, strict=True)] * 30
    opened = ClaimTask(str(folder), write_labelled(tmp_path / "own.tsv", rows), ClaimOptions())
    if len(set(answers)) == 2:
        with pytest.raises(NotTestable, match="does not need its heads"):
            opened.refuse_useless(0.9, 0.05)
        untrained = opened.untrained(0)
        assert untrained.run.encoder.model.bert.pooler.dense.weight.equal(
            opened.run.encoder.model.bert.pooler.dense.weight
        )
    regression = make_task_model(id2label={0: "LABEL_0"}, label2id={"LABEL_0": 0})
    numbers = write_labelled(tmp_path / "numbers.tsv", [(text, "1") for text in texts])
    table = claims(save(regression, tmp_path / "r"), sample, task=numbers, claims="prunable-share")
    assert "need a task with classes" in reasons(table)["prunable-share"]


def several(table: ClaimTable, effects: list[float]) -> list[ClaimTable]:
    found = []
    for place, effect in enumerate(effects):
        frame = table.frame.copy()
        trends = frame["verdict"] == "described"
        frame.loc[trends, "effect"], frame.loc[trends, "control"] = effect, 0.0
        scored = table.record.sources["scores"]
        model = structs.replace(scored.model, weights_sha256=str(place))
        sources = {"scores": structs.replace(scored, model=model)}
        record = structs.replace(table.record, sources=sources)
        found.append(replace(table, frame=frame, record=record))
    return found


def test_trends_are_tested_over_models(table: ClaimTable, tmp_path: Path) -> None:
    effects = [0.9, 0.8, 0.7, 0.95]
    tables = several(table, effects)
    over = combine_claims(tables, list("abcd")).frame.set_index("claim")
    row = over.loc["last-layers-move"]
    assert (row["verdict"], row["n"], row["unit"]) == ("shown", 4, "models")
    assert row["effect"] == pytest.approx(np.mean(effects))
    assert over.loc["separators-middle", "verdict"] == "contradicted"
    assert over.loc["separators-middle", "note"] == "shown in 0, contradicted in 4"
    mixed = combine_claims(several(table, [0.9, -0.8, 0.1, 0.3]), list("abcd")).frame
    assert mixed.set_index("claim").loc["last-layers-move", "verdict"] == "undecided"
    strict = combine_claims(tables, list("abcd"), alpha=1e-6).frame.set_index("claim")
    assert strict.loc["last-layers-move", "verdict"] == "undecided"
    with pytest.raises(UsageError, match="too few"):
        combine_claims(tables[:2], ["a", "b"])
    with pytest.raises(UsageError, match="same model"):
        combine_claims([*tables[:2], tables[0]], ["a", "b", "c"])
    stored = [str(one.save(tmp_path / f"table-{place}")) for place, one in enumerate(tables)]
    printed = run_well("combine-claims", *stored, "--out", str(tmp_path / "over")).stdout
    assert "19 claims about 4 models (table-0, table-1, table-2, and 1 more): 1 shown" in printed


OWN = '''
from headroles.studies.claims.finding import mean_beyond

def separators_seen(measured):
    """Separators get attention."""
    return mean_beyond(measured.of_tokens("separators", "weights")[:, 0], 0.01, None)

def broken(measured):
    return 1 / 0

def wrong(measured):
    return 3
'''


def test_claims_of_ones_own(
    tmp_path: Path, folders: list[Path], sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_claims_of_tests.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    names = [f"own_claims_of_tests:{one}" for one in ("separators_seen", "broken", "wrong")]
    table = claims(folders[0], sample, claims=names)
    assert table.frame["statement"][0] == "Separators get attention."
    assert table.frame["verdict"][0] != "not testable"
    assert "ZeroDivisionError" in reasons(table)[names[1]]
    assert "returned int" in reasons(table)[names[2]]


def test_the_command(folders: list[Path], sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("claims", folders[0], sample, "--out", out, "--claims", "single-heads", "--report")
    assert done.exit_code == 0, done.output
    assert "contradicted" in done.output
    assert CLAIMS["single-heads"].statement in (out / "report.html").read_text("utf-8")
