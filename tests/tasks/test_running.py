"""Labelled text, metrics, and losses of single examples, against each of them alone."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from scipy import stats
from torch.nn.functional import cross_entropy

from headroles.errors import CorpusError, ModelError, StorageError, TokenizerError, UsageError
from headroles.models.heads.gates import HeadSites, gated
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads
from headroles.storage import Parts, encode_arrays
from headroles.tasks.options import TaskOptions
from headroles.tasks.outcomes import METRICS, Outcomes
from headroles.tasks.reading import read_task
from headroles.tasks.running import TaskRun, open_run
from tests.conftest import change_json, make_tokenizer
from tests.rounding import WEIGHTS, near, tolerance
from tests.tasks.conftest import SENTENCES, make_task_model, save, write_labelled

rng = np.random.default_rng(5)
TARGET = rng.integers(0, 2, 60).astype(float)
PREDICTED = np.where(rng.random(60) < 0.7, TARGET, 1 - TARGET)


def test_metrics_of_two_classes() -> None:
    tp, fp, fn = (((p == PREDICTED) & (t == TARGET)).sum() for p, t in ((1, 1), (1, 0), (0, 1)))
    assert METRICS["accuracy"](PREDICTED, TARGET) == pytest.approx(1 - (fp + fn) / 60)
    assert METRICS["f1"](PREDICTED, TARGET) == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert METRICS["matthews"](PREDICTED, TARGET) == pytest.approx(
        stats.pearsonr(PREDICTED, TARGET).statistic
    )


def test_metrics_of_three_classes() -> None:
    target = rng.integers(0, 3, 90).astype(float)
    predicted = np.where(rng.random(90) < 0.6, target, rng.integers(0, 3, 90))
    right, total = (predicted == target).sum(), 90
    said, there = (np.bincount(classes.astype(int)) for classes in (predicted, target))
    expected = (right * total - said @ there) / np.sqrt(
        float(total**2 - said @ said) * float(total**2 - there @ there)
    )
    assert METRICS["matthews"](predicted, target) == pytest.approx(expected)


def test_metrics_without_variance() -> None:
    ones = np.ones(4)
    assert METRICS["matthews"](ones, np.array([0.0, 1, 0, 1])) == 0
    assert METRICS["f1"](0 * ones, 0 * ones) == 0
    assert METRICS["spearman"](ones, np.arange(4.0)) == 0


FILES = {
    "SST-2": ("sentence\tlabel\ngood film \t1\nbad film \t0\n", {}, ("good film",), "1"),
    "RTE": (
        "index\tsentence1\tsentence2\tlabel\n0\ta b\tc\tentailment\n1\td\te\tnot_entailment\n",
        {},
        ("a b", "c"),
        "entailment",
    ),
    "MRPC": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tone "x"\ttwo\n0\t9\t1\ta\tb\n',
        {},
        ('one "x"', "two"),
        "1",
    ),
    "CoLA": (
        "gj04\t1\t\tThey left.\ngj04\t0\t*\tThey leaved.\n",
        {"text_columns": "3", "label_column": "1", "header": False},
        ("They left.",),
        "1",
    ),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "task.tsv"


@pytest.mark.parametrize("name", FILES)
def test_glue_as_it_is(name: str, file: Path) -> None:
    content, options, texts, label = FILES[name]
    file.write_text(content, encoding="utf-8")
    task = read_task(file, TaskOptions(**options))
    assert (len(task), task.texts[0], task.labels[0]) == (2, texts, label)
    assert task.lines == ((1, 2) if name == "CoLA" else (2, 3))


def test_plain_text_is_a_text_a_line(file: Path) -> None:
    file.write_text("One  text.\n\nAnother.\n")
    task = read_task(file, TaskOptions(), "masked_lm")
    assert task.texts == (("One text.",), ("Another.",))
    assert (task.lines, task.labels) == ((1, 3), ("", ""))


def test_some_examples_are_the_same_every_time(file: Path) -> None:
    file.write_text("text\tlabel\n" + "".join(f"t{k}\t{k % 2}\n" for k in range(50)))
    first, second, whole = (read_task(file, TaskOptions(examples=n)) for n in (7, 7, 99))
    assert first == second
    assert (len(first), len(whole)) == (7, 50)
    assert list(first.lines) == sorted(first.lines)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            "a\tb\n1\t2\n3\t4\n",
            {},
            r"no columns of .* are known to hold the text; .* text_columns \(it has: a, b",
        ),
        ("text\tb\n1\t2\n", {}, "are known to hold the label; name them with label_column"),
        ("text\tlabel\nx\t1\ny\n", {}, r"line 3: 1 columns instead of 2"),
        ("text\tlabel\nx\t1\n", {}, "holds 1 examples; two are the least"),
        ("text\tlabel\nx\t1\n", {"text_columns": "body"}, "no column 'body'; it has: text, label"),
        ("x\t1\ny\t2\n", {"text_columns": "7", "label_column": 1, "header": False}, "no column 7"),
        (
            "text\ttext\tlabel\nx\ty\t1\n",
            {},
            "has 2 columns 'text', numbers 0, 1; give the number of the one you mean",
        ),
        ("text\tlabel\tb\tlabel\nx\t1\ty\t2\n", {}, "2 columns 'label', numbers 1, 3"),
        ("x\t1\n", {"text_columns": "t", "label_column": 1, "header": False}, "to have no header"),
        ("text\tlabel\nx\t1\n", {"text_columns": "a,b,c"}, "3 text columns were given"),
    ],
)
def test_what_cannot_be_read(
    content: str, options: dict[str, object], message: str, file: Path
) -> None:
    file.write_text(content)
    with pytest.raises((CorpusError, UsageError), match=message):
        read_task(file, TaskOptions(**options))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="there is no file"):
        read_task(tmp_path / "none.tsv", TaskOptions())


OPTIONS, LARGE = TaskOptions(batch_tokens=45), TaskOptions(batch_tokens=512)


def settings(*heads: tuple[int, int]) -> torch.Tensor:
    gates = torch.ones(1, 3, 4)
    for layer, head in heads:
        gates[0, layer, head] = 0
    return gates


@torch.no_grad()
def alone(model: torch.nn.Module, text: str) -> torch.Tensor:
    return model(**make_tokenizer()(text, return_tensors="pt")).logits[0]


@pytest.fixture
def run(classifier: Path, labelled: Path) -> TaskRun:
    return open_run(classifier, labelled, OPTIONS)


def test_losses_are_those_of_each_example_alone(run: TaskRun, classifier: Path) -> None:
    """Derivatives come with the same losses."""
    model = hf.AutoModelForSequenceClassification.from_pretrained(classifier)
    gates = torch.cat([settings(), settings((1, 2)), settings((0, 1), (2, 3)), settings((2, 0))])
    found = run.outcomes(gates)
    for row, (text, label) in enumerate(SENTENCES):
        for place, setting in enumerate(gates):
            with gated(HeadSites(find_stack(model)), setting):
                logits = alone(model, text)
            loss = cross_entropy(logits, torch.tensor(["bad", "good"].index(label)))
            assert found.losses[row, place] == near(float(loss))
            assert found.predictions[row, place] == int(logits.argmax())
    right = (found.predictions == run.targets[:, None]).mean(0)
    assert found.measures(run.metrics)["accuracy"] == pytest.approx(right)
    assert run.measure(found)["accuracy"] == pytest.approx(right[0])
    for place, at in enumerate((None, gates[1])):
        slopes = run.derivatives(gates=at)
        assert slopes.losses == near(found.losses[:, place])
        assert np.array_equal(slopes.predictions, found.predictions[:, place])


def test_progress_ends_with_all_passes(classifier: Path, tmp_path: Path) -> None:
    """15 batches have 22 examples: 15 / 22 * 22 is less than 15."""
    reports: list[tuple[int, int]] = []
    options = TaskOptions(batch_tokens=12, on_progress=lambda *report: reports.append(report))
    rows = [("the cat", "good"), ("the cat", "bad")] * 7 + SENTENCES[:1] * 8
    run = open_run(classifier, write_labelled(tmp_path / "task.tsv", rows), options)
    assert (len(run.batches), len(run.task)) == (15, 22)
    run.outcomes_unmasked()
    assert reports[-1] == (15, 15)


@pytest.mark.parametrize("kind", ["Bert", "MPNet"])
@pytest.mark.parametrize("reads_all", [False, True])
def test_nothing_is_computed_for_tokens_that_are_not_read(
    reads_all: bool, kind: str, labelled: Path, tmp_path: Path
) -> None:
    model = make_task_model(getattr(hf, f"{kind}ForSequenceClassification"))
    run = open_run(save(model, tmp_path / "model"), labelled, OPTIONS)
    gates = torch.cat([settings(), settings((2, 1)), settings((1, 0)), settings((1, 0), (2, 2))])
    encoder = run.encoder.model.base_model.encoder
    if reads_all:

        def spread(module: torch.nn.Module, given: object, output: Any) -> None:
            output.last_hidden_state[:, 0] += output.last_hidden_state.mean(1)

        encoder.register_forward_hook(spread)
    tokens: list[int] = []
    last = encoder.layer[-1].intermediate.dense
    last.register_forward_pre_hook(lambda _, given: tokens.append(given[0].shape[1]))
    assert run.reads_first_tokens == (not reads_all)
    tokens.clear()
    found, slopes = run.outcomes(gates), run.derivatives()
    assert (max(tokens) == 1) == (not reads_all)
    run.reads_first_tokens = False
    whole, at_all = run.outcomes(gates), run.derivatives()
    assert found.losses == near(whole.losses)
    assert slopes.by_gate == near(at_all.by_gate, 10 * WEIGHTS)
    assert slopes.by_token == near(at_all.by_token, 10 * WEIGHTS)


@pytest.mark.parametrize("ablation", ["zero", "mean", "uniform"])
def test_passes_are_those_that_no_other_has_made(
    ablation: str, run: TaskRun, classifier: Path, labelled: Path
) -> None:
    """Outcomes depend on the heads, and not on other passes and batches."""
    removed = [[], [(0, 1)], [(1, 1), (2, 0)], [(1, 1), (2, 3)], [(1, 1)], [(2, 3)], [(2, 2)]]
    gates = torch.cat([settings(*heads) for heads in removed])
    assert run.reads_first_tokens  # tried out once
    calls: Counter[int] = Counter()
    for layer, site in enumerate(run.sites.layers):
        site.output.register_forward_hook(lambda *_, layer=layer: calls.update([layer]))
    found = run.outcomes(gates, ablation)
    if ablation == "zero":
        n_batches = len(run.batches)
        assert calls == {0: 2 * n_batches, 1: 3 * n_batches, 2: 7 * n_batches}
        assert run.n_passes(gates) == pytest.approx((2 + 3 + 7) / 3)
    for place, one in enumerate(gates):
        alone = run.outcomes(one[None], ablation)
        assert np.array_equal(found.losses[:, place], alone.losses[:, 0])
        assert not place or not np.allclose(found.losses[:, 0], found.losses[:, place])
    assert found.losses == near(
        open_run(classifier, labelled, LARGE).outcomes(gates, ablation).losses
    )


def test_losses_of_regression(regressor: Path, numbered: Path) -> None:
    run = open_run(regressor, numbered, OPTIONS)
    model = hf.AutoModelForSequenceClassification.from_pretrained(regressor)
    found = run.outcomes(settings())
    for row, (text, _) in enumerate(SENTENCES):
        said = float(alone(model, text))
        assert found.predictions[row, 0] == near(said)
        expected = (said - len(text) / 10) ** 2  # off by twice the root
        assert found.losses[row, 0] == near(expected, 2 * WEIGHTS)


@pytest.mark.parametrize("text", ["", " ", "\u200b"])
def test_texts_without_word_pieces_are_refused(text: str, classifier: Path, tmp_path: Path) -> None:
    """Their losses would be those of special tokens alone."""
    file = write_labelled(tmp_path / "task.tsv", [*SENTENCES[:3], (text, "good")])
    with pytest.raises(CorpusError, match=r"task.tsv, line 5: the text has no word piece"):
        open_run(classifier, file, OPTIONS)
    file.write_text("sentence1\tsentence2\tlabel\nthe cat\t\tgood\nthe dog\tit\tbad\n")
    assert len(open_run(classifier, file, OPTIONS).outcomes(settings()).losses) == 2


def test_losses_of_masked_words(masked_lm: Path, plain: Path) -> None:
    run = open_run(masked_lm, plain, OPTIONS)
    model = hf.AutoModelForMaskedLM.from_pretrained(masked_lm)
    found = run.outcomes(settings())
    assert found.losses == near(open_run(masked_lm, plain, LARGE).outcomes(settings()).losses)
    mask = make_tokenizer().mask_token_id
    for batch in run.batches:
        for row, ids, target in zip(
            batch.indices, batch.inputs["input_ids"], batch.targets, strict=True
        ):
            masked = target != -100
            assert masked.any()
            assert (ids[masked] == mask).all()
            whole = torch.where(masked, target, ids)
            text = make_tokenizer()(SENTENCES[row][0], return_tensors="pt")["input_ids"][0]
            assert torch.equal(whole[: len(text)], text)
            with torch.no_grad():
                logits = model(input_ids=ids[None, : len(text)]).logits[0]
            loss = cross_entropy(logits, target[: len(text)])
            assert found.losses[row, 0] == near(float(loss))


def test_masks_have_a_seed(masked_lm: Path, plain: Path) -> None:
    runs = (open_run(masked_lm, plain, TaskOptions(mask_seed=seed)) for seed in (0, 0, 1))
    first, same, other = (run.outcomes(settings()).losses for run in runs)
    assert np.array_equal(first, same)
    assert not np.allclose(first, other)


def test_derivatives_are_those_of_finite_differences(run: TaskRun) -> None:
    run.encoder.model.double()
    found = run.derivatives()
    # Errors of finite differences fall with the square of the step (0.03 at 1e-2, 3e-4 here); those
    # of losses, which are float32, grow with its inverse (1e-3 at 1e-4, 1e-4 here).
    step, error = 1e-3, 1e-3
    for head in ((0, 1), (1, 3), (2, 2)):
        sides = []
        for sign in (1, -1):
            gates = settings().double()
            gates[0][head] += sign * step
            sides.append(run.outcomes(gates).losses[:, 0])
        expected = (sides[0] - sides[1]) / (2 * step)
        assert found.by_gate[:, head[0], head[1]] == pytest.approx(expected, rel=0, abs=error)
    assert (found.by_token >= np.abs(found.by_gate) - tolerance(found.by_gate)).all()
    assert all(parameter.requires_grad for parameter in run.encoder.model.parameters())


def test_long_texts_are_cut_and_counted(classifier: Path, labelled: Path) -> None:
    run = open_run(classifier, labelled, TaskOptions(max_tokens=8))
    assert run.n_cut > 0
    assert run.record(run.options).task.cut == run.n_cut
    assert max(batch.inputs["input_ids"].shape[1] for batch in run.batches) == 8


class TestBadInput:
    @pytest.mark.parametrize(
        ("rows", "labels", "message"),
        [
            (["a good", "b ugly"], None, "line 3: .* label 'ugly'; it knows 0, 1, bad, good"),
            (["a 1", "b good"], None, "all 2 examples .* give examples of two classes"),
            (["語語cat 0", "語言 1"], None, "% of the word pieces of .* are unknown"),
            (["a Yes", "c no=way"], "yes", "is not a label with its class"),
            (["a Yes", "c no=way"], "yes=7", "the model has the classes 0 to 1"),
        ],
    )
    def test_examples_that_a_model_cannot_have(
        self, rows: list[str], labels: Any, message: str, classifier: Path, tmp_path: Path
    ) -> None:
        file = tmp_path / "x.tsv"
        file.write_text("\n".join(["text label", *rows]).replace(" ", "\t"), "utf-8")
        with pytest.raises((CorpusError, TokenizerError, UsageError), match=message):
            open_run(classifier, file, TaskOptions(labels=labels))

    @pytest.mark.parametrize("kind", ["pad_token", "mask_token"])
    def test_a_tokenizer_without_a_token_that_is_needed(
        self, masked_lm: Path, plain: Path, tmp_path: Path, kind: str
    ) -> None:
        folder = shutil.copytree(masked_lm, tmp_path / "model")
        change_json(folder / "tokenizer_config.json", **{kind: None})
        with pytest.raises(TokenizerError, match=rf"model has no {kind}, which .*; name one in"):
            open_run(folder, plain, TaskOptions(objective="masked_lm"))

    def test_tasks_of_another_kind_than_the_model(
        self, regressor: Path, numbered: Path, masked_lm: Path, labelled: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(UsageError, match="the objective is regression"):
            open_run(regressor, numbered, TaskOptions(labels={"good": 1}))
        with pytest.raises(CorpusError, match=r"line 2: the label is 'good'; .* needs numbers"):
            open_run(regressor, labelled, OPTIONS)
        with pytest.raises(ModelError, match="nothing trained on top of its encoder for class"):
            open_run(masked_lm, labelled, TaskOptions(objective="classification"))
        several = make_task_model(problem_type="multi_label_classification")
        with pytest.raises(UsageError, match="several labels"):
            open_run(save(several, tmp_path / "multi"), labelled, OPTIONS)


@pytest.mark.parametrize("labels", ["yes=1,no=way=0", {"YES": 1, "no=way": 0}])
def test_labels_are_given_classes(labels: object, classifier: Path, tmp_path: Path) -> None:
    file = write_labelled(tmp_path / "rte.tsv", [("a b", "Yes"), ("c", "no=way"), ("d", "yes")])
    assert open_run(classifier, file, TaskOptions(labels=labels)).targets.tolist() == [1, 0, 1]


@pytest.mark.parametrize("is_kept", [False, True])
def test_heads_that_are_removed_later_are_gone(
    is_kept: bool, labelled: Path, tmp_path: Path
) -> None:
    """Losses are those of the model as it is, also where those of before are kept."""
    run = open_run(save(make_task_model(), tmp_path / "model"), labelled, OPTIONS)
    if is_kept:
        run.parts = Parts(tmp_path / "parts").open({"study": "x"})
    gone = [(0, 1), (1, 0), (1, 2)]
    masked, whole = (run.outcomes(settings(*heads)).losses for heads in (gone, ()))
    remove_heads(run.encoder.model, gone)
    found = run.outcomes(settings()).losses
    assert found == near(masked)
    assert not np.allclose(found, whole)
    assert not run.derivatives().by_gate[:, 1, 2].any()
    assert run.shape == (3, 4)


def test_batches_serve_only_the_same_inputs(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    """Inputs are gates, ablation, the kind of numbers and the size of batches."""
    whole, other = settings(), settings((1, 2))
    plain, run = (open_run(classifier, labelled, OPTIONS) for _ in range(2))
    parts = Parts(tmp_path / "hidden" / "parts")
    run.parts = parts.open({"study": "x"})
    for _ in range(2):
        for gates, ablation in ((whole, "zero"), (other, "zero"), (other, "uniform")):
            expected, found = (one.outcomes(gates, ablation) for one in (plain, run))
            assert np.array_equal(found.losses, expected.losses)
            assert np.array_equal(found.predictions, expected.predictions)
        expected_too, found_too = (one.derivatives() for one in (plain, run))
        assert np.array_equal(found_too.by_gate, expected_too.by_gate)
        assert np.array_equal(found_too.losses, expected_too.losses)
        assert parts.count == 4 * 3
    larger = open_run(classifier, labelled, LARGE)
    larger.parts = run.parts
    larger.outcomes(whole)
    assert parts.count == 4 * 3 + 1
    zeros = np.zeros((100, 1))
    both = [{"losses": each, "predictions": each} for each in (zeros, zeros.astype(np.float32))]
    forged = (*both, {"losses": zeros}, {"losses": np.zeros(())})
    for content in (b"no arrays", *map(encode_arrays, forged)):
        for file in parts.place.glob("*/part-*"):
            run.parts.write(file.name.removeprefix("part-"), content)
        with pytest.raises(StorageError, match=r"part-.* cannot be read"):
            run.outcomes(whole)


@pytest.mark.parametrize("shape", [(), (3,), (3, 2, 1), (2, 3)])
def test_outcomes_of_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        Outcomes(np.zeros(shape), np.zeros((3, 2)), np.zeros(3))
