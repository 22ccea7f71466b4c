"""Translations under gates: BLEU and chrF against sacrebleu, texts against plain transformers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sacrebleu
import torch
import transformers as hf
from tokenizers import normalizers

import headroles as hr
from headroles.errors import TokenizerError, UsageError
from headroles.models.loading.saved_models import PrunedModel
from headroles.studies.removals import without_each
from headroles.tasks.options import GenerateOptions, RunOptions
from headroles.tasks.running import TaskRun, open_run
from headroles.tasks.translating import make_scorers, translate
from tests.commands import run as run_command
from tests.commands import run_well
from tests.conftest import make_tokenizer
from tests.models.test_tokenizers import marian
from tests.rounding import near
from tests.studies.alignment.test_align import write
from tests.tasks.test_writing import PAIRS, hooked, make_translator, read
from tests.tasks.test_writing import folder as folder
from tests.tasks.test_writing import pairs as pairs
from tests.tasks.test_writing import translator as translator

SHORT = {"generate": True, "longest_translation": 7}
TARGETS = [target for _, target in PAIRS]


def plain_texts(model: hf.PreTrainedModel, beams: int = 1) -> list[str]:
    """The translation of every source alone, by ``generate`` of transformers."""
    tokenizer, config, usual = make_tokenizer(), model.config, model.generation_config
    pad = usual.pad_token_id
    unwritten = [] if pad in (usual.eos_token_id, usual.forced_eos_token_id) else [pad]
    is_wrapped = config.model_type == "mbart"  # its targets begin with their last piece
    first = tokenizer.sep_token_id if is_wrapped else config.decoder_start_token_id
    texts = []
    for source, _ in PAIRS:
        written = model.generate(
            **tokenizer(source, return_tensors="pt", return_token_type_ids=False),
            decoder_input_ids=torch.tensor([[first, tokenizer.cls_token_id]]),
            max_new_tokens=7,
            num_beams=beams,
            do_sample=False,
            decoder_start_token_id=first,
            suppress_tokens=unwritten or None,
        )
        texts.append(tokenizer.decode(written[0, 2:], skip_special_tokens=True))
    return texts


def scores_of(texts: list[str], **options: Any) -> dict[str, float]:
    return {
        "bleu": sacrebleu.corpus_bleu(texts, [TARGETS], **options).score,
        "chrf": sacrebleu.corpus_chrf(texts, [TARGETS]).score,
    }


def test_scores_are_those_of_plain_translations(folder: Path, pairs: Path) -> None:
    run, model = open_run(folder, pairs, RunOptions(batch_tokens=40)), read(folder)
    beams = 3 if model.config.model_type in ("bart", "t5") else 1
    names = run.sites.rows
    gone = [(names.first("decoder"), 1), (names.first("cross") + 1, 1), (1, 2)]
    gates = without_each([(), gone], run.shape)
    found = translate(run, gates, GenerateOptions(beams=beams, **SHORT))
    whole = plain_texts(model, beams)
    with (
        hooked(model, "decoder", 0, 1, lambda *_: 0),
        hooked(model, "cross", 1, 1, lambda *_: 0),
        hooked(model, "encoder", 1, 2, lambda *_: 0),
    ):
        without = plain_texts(model, beams)
    assert whole != without
    for name, values in found.measures().items():
        assert values.tolist() == near([scores_of(texts)[name] for texts in (whole, without)])
    assert found.pieces.shape == (len(PAIRS), 2)
    assert 6 <= found.pieces.max() <= 7  # Marian forces an end that is padding here
    assert "tok:13a" in found.signatures()["bleu"]


def test_counts_of_sentences_add_up() -> None:
    """To the corpus, to any part of it, and to pseudo-values of the jackknife."""
    rng = np.random.default_rng(0)
    words = "the cat sat on a mat , and dogs see it .".split()
    targets = [" ".join(rng.choice(words, 9)) for _ in range(70)]
    texts = [" ".join(rng.permutation(text.split())[:7]).upper() for text in targets]
    options = GenerateOptions(generate=True, bleu_tokens="char", ignore_case=True)
    scorers = make_scorers(options)
    for name, corpus in (("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf)):
        counts = scorers[name].count_all(texts, targets)
        for rows in (slice(None), slice(3, 20), slice(5, 6)):
            how: dict[str, Any] = {"tokenize": "char"} if name == "bleu" else {}
            lowered = [text.lower() for text in texts[rows]]
            expected = corpus(lowered, [targets[rows]], **how).score
            assert scorers[name].score(counts[rows].sum(0)) == pytest.approx(expected)


def test_jackknife_of_translations_is_that_of_parts(translator: Path, pairs: Path) -> None:
    run = open_run(translator, pairs, RunOptions())
    found = translate(run, without_each([()], run.shape), GenerateOptions(**SHORT))
    texts, n = plain_texts(read(translator)), len(PAIRS)
    order = np.random.default_rng(0).permutation(n)
    for name, values in found.units().items():
        whole, expected = scores_of(texts)[name], []
        for group in range(n):
            rest = [place for place in range(n) if order[place] != group]
            of_metric = {"bleu": sacrebleu.corpus_bleu, "chrf": sacrebleu.corpus_chrf}[name]
            part = of_metric([texts[k] for k in rest], [[TARGETS[k] for k in rest]]).score
            expected.append(n * whole - (n - 1) * part)
        assert values[:, 0].tolist() == near(expected, 1e-9)


@pytest.fixture(scope="module")
def opened(translator: Path, pairs: Path) -> TaskRun:
    return open_run(translator, pairs, RunOptions())


def bleu_without(run: TaskRun, heads: Any) -> list[float]:
    gates = without_each([(), heads], run.shape)
    return translate(run, gates, GenerateOptions(**SHORT)).measures()["bleu"].tolist()


def test_removals_have_translations(
    translator: Path, pairs: Path, opened: TaskRun, tmp_path: Path
) -> None:
    found = hr.ablate_heads(translator, pairs, sets="single,kinds", **SHORT)
    rows = found.view("translations")
    assert rows["removed"].tolist() == ["nothing", "encoder", "decoder", "cross"] * 2
    cross = [(row, head) for row in (5, 6) for head in (0, 1)]
    of_bleu = rows[rows["measure"] == "bleu"].set_index("removed")
    assert of_bleu.loc[["nothing", "cross"], "value"].tolist() == near(bleu_without(opened, cross))
    change = of_bleu.loc["cross", "value"] - of_bleu.loc["nothing", "value"]
    assert of_bleu.loc["cross", "change"] == near(change)
    folder = found.save(tmp_path / "ablations")
    assert hr.load(folder) == found
    assert "decoder ran one by one" in found.in_full()
    assert found.facts["translations"]["signatures"]["chrf"].startswith("nrefs:1|case:mixed")
    run_well("report", folder)


def test_pruned_models_translate_as_with_closed_gates(
    translator: Path, pairs: Path, opened: TaskRun, tmp_path: Path
) -> None:
    """Layers that have lost all heads among them."""
    pruning = hr.prune_heads(
        translator, tmp_path / "small", test=pairs, order="top", keep=8, **SHORT
    )
    before, after = bleu_without(opened, pruning.removed)
    rows = pruning.view("translations")
    assert rows["value"].tolist()[:2] == near([before, after])
    smaller = open_run(tmp_path / "small", pairs, RunOptions(attention="encoder"))
    assert bleu_without(smaller, ())[0] == near(after)
    assert hr.load(tmp_path / "small") == pruning


def test_curves_are_translated_at_their_ends(
    translator: Path, pairs: Path, opened: TaskRun
) -> None:
    options = {"orders": "random,top", "shares": "0.2,0.5", **SHORT}
    curves = hr.find_pruning_curves(translator, pairs, **options)
    rows = curves.view("translations")
    assert rows["removed"].tolist()[:3] == ["nothing", "50%, random", "50%, top"]
    points = [point for point in curves.facts["points"] if point["share"] == 0.5]
    for order, value in (("random", rows["value"][1]), ("top", rows["value"][2])):
        first = next(point["removed"] for point in points if point["order"] == order)
        assert value == near(bleu_without(opened, first)[1])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("ablate MODEL pairs.tsv --out x --sets single --generate", "add one of these to --sets"),
        ("ablate MODEL pairs.tsv --out x --beams 2", "pass --generate"),
        (
            "ablate MODEL pairs.tsv --out x --sets kinds --ablation uniform --generate",
            "zero and mean",
        ),
        ("prune MODEL --order top --keep 8 --out x --generate", "name one with --test"),
        (
            "ablate BERT labels.tsv --out x --sets layers --generate",
            "the objective is classification",
        ),
    ],
)
def test_translations_that_cannot_be_written(
    command: str, message: str, translator: Path, pairs: Path, classifier: Path, labelled: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    places = {"MODEL": translator, "pairs.tsv": pairs, "BERT": classifier, "labels.tsv": labelled}
    words = [str(places.get(word, word)) for word in command.split()]
    done = run_command(*(str(tmp_path / word) if word == "x" else word for word in words))
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.output.split())


def test_without_sacrebleu_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch, translator: Path, pairs: Path
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    with pytest.raises(UsageError, match=r"pip install 'headroles\[translation\]'"):
        hr.ablate_heads(translator, pairs, sets="kinds", **SHORT)


def test_the_tokenizer_of_targets_is_saved(tmp_path: Path) -> None:
    """Marian's tokenizer of sources and targets, beside a model that transformers reads."""
    for name in ("pieces", "model"):
        (tmp_path / name).mkdir()
    marian(tmp_path / "pieces").save_pretrained(tmp_path / "model")
    make_translator("marian").save_pretrained(tmp_path / "model")
    options = {"order": "random", "keep": 8, "written_as": "zeroed"}
    hr.prune_heads(tmp_path / "model", tmp_path / "zeroed", **options)
    before, after = (
        hf.MarianTokenizer.from_pretrained(tmp_path / name) for name in ("model", "zeroed")
    )
    text = "the dog in the house"
    assert after(text_target=text)["input_ids"] == before(text_target=text)["input_ids"]
    assert after(text)["input_ids"] == before(text)["input_ids"]


def of_cats() -> Any:
    """A tokenizer of targets that does not know a dog from a cat, as that of sources does."""
    tokenizer = make_tokenizer()
    backend = tokenizer.backend_tokenizer
    backend.normalizer = normalizers.Sequence(
        [normalizers.BertNormalizer(lowercase=True), normalizers.Replace("dog", "cat")]
    )
    return tokenizer


@pytest.mark.parametrize("task", [True, False])
def test_another_tokenizer_of_targets_is_saved_with_a_smaller_model(
    translator: Path, pairs: Path, tmp_path: Path, task: bool
) -> None:
    of_cats().save_pretrained(tmp_path / "cats")
    hr.prune_heads(
        translator,
        tmp_path / "small",
        task=pairs if task else None,
        attention="cross",
        order="random",
        keep=3,
        target_tokenizer=tmp_path / "cats",
    )
    hr.prune_heads(tmp_path / "small", tmp_path / "smaller", order="random", keep=8)
    pair = hr.read_bitext(write(tmp_path, [("a cat", "the dog is in the cat", "0-1")]))
    for name in ("small", "smaller"):
        folder = tmp_path / name
        found, named, other = (
            hr.align_words(folder, pair, links_of="0-0", **options)
            for options in (
                {},
                {"target_tokenizer": tmp_path / "cats"},
                {"target_tokenizer": translator},
            )
        )
        pd.testing.assert_frame_equal(found.frame, named.frame)
        assert not found.frame.equals(other.frame)
        assert found.record.model.target_tokenizer == str(folder)
        targets = PrunedModel.load(folder).target_tokenizer
        assert targets is not None
        assert targets("the dog")["input_ids"] == make_tokenizer()("the cat")["input_ids"]


def test_a_tokenizer_of_targets_in_python_is_not_saved(translator: Path, tmp_path: Path) -> None:
    (tmp_path / "pieces").mkdir()
    marian(tmp_path / "pieces").save_pretrained(tmp_path / "targets")
    numbers = make_tokenizer().get_vocab()
    (tmp_path / "targets" / "vocab.json").write_text(
        json.dumps({**numbers, "</s>": 3, "<unk>": 1, "<pad>": 0}), "utf-8"
    )
    options = {"order": "random", "keep": 8, "target_tokenizer": tmp_path / "targets"}
    pruning = hr.prune_heads(translator, tmp_path / "small", **options)
    shown = " ".join(str(pruning).split())
    assert "is not saved with the model: pass it as target_tokenizer" in shown
    assert not [*(tmp_path / "small").glob("target-*")]


def test_tokenizers_of_targets_that_are_missing_are_named(translator: Path, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="holds no tokenizer; give one with target_tokenizer"):
        hr.prune_heads(
            translator, tmp_path / "x", keep=1, order="random", target_tokenizer=tmp_path
        )
