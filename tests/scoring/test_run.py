"""Scoring end to end: against the slow reference and planted attention, and its invariants."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles import HeadScores, read_conllu, score_heads
from headroles.corpus import make_examples, prepared
from headroles.encoding import ExampleEncoder
from headroles.errors import CorpusError, ModelError
from headroles.models.attention.reader import AttentionReader, open_reader
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions
from headroles.passes.loop import Budget
from headroles.reach import EVERYTHING, Reach
from headroles.roles import SCORES, RoleOptions, choose_roles
from headroles.roles.contrasts import (
    ARCS_LEFT_OUT,
    COUNTED_ARCS,
    COUNTED_PAIRS,
    PAIRS_WITHOUT_CONTROLS,
)
from headroles.scoring import windows
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import ScoringRun, open_scoring
from headroles.scoring.windows import Window, WindowScorer, windows_of
from tests import noise
from tests.conftest import CAT, conllu_sentence, make_bert, role_ids
from tests.models.decoders import DECODERS, make_decoder
from tests.noise import with_noise
from tests.reference import (
    Asked,
    attention_of,
    cut,
    largest_difference,
    reference_positions,
    reference_scores,
)
from tests.rounding import WEIGHTS, assert_same_sums, sizes_of, sizes_of_scores

PARTS = tuple(f"{name}/{part}" for name in ("nsubj", "obj") for part in ("content", "function"))
RELATIONS = (*PARTS, "amod", "advmod")
Run: TypeAlias = Callable[..., HeadScores]


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    return make_bert()


@pytest.fixture(scope="module")
def run(model: PreTrainedModel, sample: Path, tokenizer: PreTrainedTokenizerBase) -> Run:
    """Function that scores the sample by the model, unless another corpus or model is given."""

    def score(corpus: Path = sample, by: PreTrainedModel = model, **options: Any) -> HeadScores:
        asked = {"tokenizer": tokenizer, "controls": "none", **options}
        return score_heads(by, read_conllu(corpus), **asked)

    return score


@pytest.fixture(scope="module")
def scores(run: Run) -> HeadScores:
    return run()


@pytest.mark.numbers
@pytest.mark.parametrize(
    ("pairing", "score"), [("adjacent", "bias"), ("none", "bias"), ("adjacent", "excess")]
)
def test_equals_the_slow_reference(
    run: Run, sample: Path, tokenizer: PreTrainedTokenizerBase, pairing: str, score: str
) -> None:
    scores = run(pairing=pairing, score=score)
    with prepared(read_conllu(sample)) as corpus:
        examples = list(make_examples(corpus, pairing))
    assert scores.ids == tuple(example.id for example in examples)
    eager = make_bert()
    eager.set_attn_implementation("eager")
    sizes = sizes_of_scores(scores)
    for example, found, size in zip(examples[:25], scores.values, sizes, strict=False):
        tokens, ids = cut(example, tokenizer)
        attention = attention_of(eager, tokens, ids, token_types=True)
        expected = reference_scores(attention, tokens, RELATIONS, Asked(score))
        assert set(scores.role_ids) == {role for role in expected if "to_earlier" not in role}
        assert largest_difference(found, scores.role_ids, expected, size, WEIGHTS) <= 1


@pytest.mark.numbers
@pytest.mark.parametrize("score", ["bias", "excess", "hit"])
@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen3"])
def test_decoders_equal_the_slow_reference(
    run: Run, sample: Path, tokenizer: PreTrainedTokenizerBase, kind: str, score: str
) -> None:
    """Of all keys, of grouped keys, of a window: rows are those of the keys in view."""
    model = make_decoder(kind)
    scores = run(by=model, score=score, roles="local,delimiter,block,syntactic,position,self")
    with prepared(read_conllu(sample)) as corpus:
        examples = list(make_examples(corpus, "adjacent"))
    model.set_attn_implementation("eager")
    sizes = sizes_of_scores(scores)
    for example, found, size in zip(examples[:15], scores.values, sizes, strict=False):
        tokens, ids = cut(example, tokenizer)
        attention = attention_of(model, tokens, ids, token_types=False)
        for layer, reach in enumerate(DECODERS[kind][1]):
            asked = Asked(score, reach)
            expected = reference_scores(attention[layer], tokens, RELATIONS, asked)
            expected |= reference_positions(attention[layer], tokens, (-1, 0, 1), asked)
            assert set(scores.role_ids) == set(expected)
            excess = largest_difference(
                found[layer], scores.role_ids, expected, size[layer], WEIGHTS
            )
            assert excess <= 1


def assert_same(one: HeadScores, other: HeadScores) -> None:
    assert (one.ids, one.roles, one.score) == (other.ids, other.roles, other.score)
    np.testing.assert_array_equal(one.counts, other.counts)
    assert_same_sums(one.values, other.values, sizes_of_scores(one), WEIGHTS)


@pytest.mark.numbers
@pytest.mark.parametrize("batch_tokens", [1, 100, 100_000])
def test_batches_do_not_matter(scores: HeadScores, run: Run, batch_tokens: int) -> None:
    assert_same(scores, run(batch_tokens=batch_tokens))


@pytest.mark.parametrize("limit", [{"WINDOW_EXAMPLES": 1}, {"WINDOW_BYTES": 9000}])
def test_windows_do_not_matter(
    scores: HeadScores,
    model: PreTrainedModel,
    sample: Path,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: dict[str, int],
) -> None:
    """Few examples at a time, written as they come, read back: the same as one pass."""
    for name, value in limit.items():
        monkeypatch.setattr(f"headroles.scoring.run.{name}", value)
    options = ScoreOptions(tokenizer=tokenizer, controls="none")
    with open_scoring(model, read_conllu(sample), options) as scoring:
        scoring.write(tmp_path)
    assert pq.ParquetFile(tmp_path / "scores.parquet").num_row_groups > 5
    assert_same(scores, HeadScores.load(tmp_path))


def test_windows_that_are_scored_are_let_go(
    model: PreTrainedModel,
    sample: Path,
    tokenizer: PreTrainedTokenizerBase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that memory does not grow with the corpus: two windows wait, and one is cut ahead."""
    monkeypatch.setattr("headroles.scoring.run.WINDOW_EXAMPLES", 2)
    options = ScoreOptions(tokenizer=tokenizer, controls="none")
    gc.freeze()  # what there was before is not looked through
    with open_scoring(model, read_conllu(sample), options) as scoring:
        numbers = [sum(type(one) is Window for one in gc.get_objects()) for _ in scoring.blocks()]
    gc.unfreeze()
    assert len(numbers) > 10
    assert max(numbers) <= 5


def test_windows_of_long_examples_have_fewer(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a window of a slow model takes a minute, whatever the length of examples."""
    monkeypatch.setattr("headroles.scoring.windows.WINDOW_WORDS", 60)
    with prepared(read_conllu(sample)) as corpus:
        made = list(windows_of(corpus, "adjacent"))
        examples = list(make_examples(corpus, "adjacent"))
    for window in made:
        n_words = sum(len(one.words) for each in window.examples for one in each.sentences)
        assert n_words <= 60 or len(window.examples) == 1
    assert len(made) > 10
    assert [one for window in made for one in window.examples] == examples
    assert [window.number for window in made] == list(range(len(made)))
    assert made[-1].first + made[-1].n_sentences == corpus.record.sentences


def test_arcs_without_controls_leave_and_are_counted(run: Run, tmp_path: Path) -> None:
    """A sentence of two words has no pair but its arc; a sentence beside it lends none."""
    short = conllu_sentence([("it", 2, "nsubj"), ("was", 0, "root")], "short", "a")
    long = [("of", 3, "case"), ("the", 3, "det"), ("it", 4, "nsubj"), ("was", 0, "root")]
    file = tmp_path / "short.conllu"
    file.write_text(short + conllu_sentence(long, "long", "b"), "utf-8")
    both = run(file)
    contrast = both.role_ids.index("syntactic:nsubj/function:to_governor:beyond_offset")
    assert both.counts[:, contrast].tolist() == [0, 1]
    assert np.isnan(both.values[0, ..., contrast]).all()
    assert np.isfinite(both.values[1, ..., contrast]).all()
    controls = both.facts.controls
    assert (controls[COUNTED_ARCS], controls[ARCS_LEFT_OUT]) == (4, 2)
    assert (controls[COUNTED_PAIRS], controls[PAIRS_WITHOUT_CONTROLS]) == (4, 2)


@pytest.mark.parametrize("measure", ["weights", "norms"])
def test_noise_of_machines_is_rounding_and_more_is_not(run: Run, measure: str) -> None:
    """Attention times 1 + 3e-7 is the same to every test; attention times 1 + 1e-3 is not."""
    plain = run(measure=measure)
    with noise.added(noise.MACHINES):
        assert_same(plain, run(measure=measure))
    with noise.added(noise.MISTAKE), pytest.raises(AssertionError, match="what rounding explains"):
        assert_same(plain, run(measure=measure))


def test_subtypes_kept(run: Run) -> None:
    kept = run(relations=["nsubj:pass"], keep_subtypes=True)
    role = kept.role_ids.index("syntactic:nsubj:pass:to_governor")
    assert 0 < (kept.counts[:, role] > 0).sum() < kept.n_examples


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("nsub", r"no relation 'nsub'; did you mean 'nsubj'\?"),
        ("nsubj:pass", "subtypes are folded; pass keep_subtypes=True"),
        ("root", "no relation 'root'"),
    ],
)
def test_absent_relations_are_refused(sample: Path, relation: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        score_heads("no-model-is-loaded", read_conllu(sample), relations=[relation])


def test_absent_default_relations_are_left_out_and_named(run: Run, treebank: Path) -> None:
    scores = run(treebank)
    assert scores.role_ids == role_ids(["nsubj/function", "obj/function", "amod"])
    assert scores.facts.absent_relations == ["advmod"]


def test_the_record_says_what_was_done_and_skipped(scores: HeadScores, run: Run) -> None:
    record = scores.record
    assert record.corpus.examples == scores.n_examples == 79
    assert record.corpus.sentences == 140
    assert record.options["relations"] == list(RELATIONS)
    assert record.model.family == "BERT"
    assert record.model.read_through == "attention interface"
    assert {"torch", "transformers", "python"} <= record.versions.keys()
    some = run(by=make_bert(max_position_embeddings=90))
    left = 79 - some.n_examples
    assert some.record.corpus.skipped == {"examples longer than the model takes": left}
    assert left > 0
    assert some.lengths.max() <= 90


def test_progress_ends_at_all_sentences_and_notebooks_show_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[tuple[int, int]] = []
    run(on_progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1] == (140, 140)
    run()
    assert "sentences" not in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    run()
    assert "sentences" in capsys.readouterr().err


def test_batches_are_halved_where_memory_runs_out(
    scores: HeadScores, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = windows.read_scores, Counter[int]()

    def limited(attention: Any, readout: Any) -> Any:
        if len(attention) > 5:
            refused[len(attention)] += 1
            raise torch.OutOfMemoryError
        return real(attention, readout)

    monkeypatch.setattr(windows, "read_scores", limited)
    assert_same(scores, run())
    assert refused


def test_attention_that_is_not_finite_is_an_error_not_a_gap(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = windows.read_scores
    monkeypatch.setattr(windows, "read_scores", lambda *given: real(*given) * float("nan"))
    with pytest.raises(ModelError, match=r"attention of layer 0 is not finite for example"):
        run()


def test_examples_of_the_same_name_are_refused(run: Run, tmp_path: Path) -> None:
    given = [("a", "d1"), ("b", None), ("a+b", "d2")]
    file = tmp_path / "plus.conllu"
    file.write_text("".join(conllu_sentence(CAT, *names) for names in given), "utf-8")
    with pytest.raises(CorpusError, match=r"two examples would have the id 'a\+b'"):
        run(file, relations=["nsubj"])


HEADS = 2
REACHES = (EVERYTHING, Reach(3, 3), EVERYTHING)


def planted(input_ids: list[int], layer: int) -> NDArray[np.float64]:
    """(heads, n, n): random rows for an input and a layer, over the keys within reach."""
    n, reach = len(input_ids), REACHES[layer]
    seed = [layer, *input_ids]
    raw = np.exp(2 * np.random.default_rng(seed).normal(size=(HEADS, n, n)))
    raw *= Asked(reach=reach).visible(n)
    return raw / raw.sum(axis=-1, keepdims=True)


def read_planted(
    reader: AttentionReader,
    inputs: Mapping[str, Tensor],
    on_layer: Callable[[int, Tensor], None],
    names: Sequence[str],
) -> None:
    """Read in place of a model; rows of padding hold arbitrary numbers."""
    batch, width = inputs["input_ids"].shape
    for layer in range(len(REACHES)):
        attention = torch.rand(batch, HEADS, width, width)
        for row, n in enumerate(inputs["attention_mask"].sum(dim=1).tolist()):
            own = planted(inputs["input_ids"][row, :n].tolist(), layer)
            attention[row, :, :n] = 0
            attention[row, :, :n, :n] = torch.from_numpy(own)
        on_layer(layer, with_noise(attention))


def write_treebank(path: Path) -> None:
    """Short sentences with random trees, so that many arcs have no control."""
    rng = np.random.default_rng(1)
    forms = ["the", "it", "was", "an", "cat"]
    sentences = []
    for k in range(80):
        n = int(rng.integers(2, 8))
        order = rng.permutation(n) + 1
        words = [("", 0, "root")] * n
        for place, word in enumerate(order):
            governor = int(order[rng.integers(0, place)]) if place else 0
            relation = str(rng.choice(["nsubj", "obj", "punct"])) if place else "root"
            words[word - 1] = (str(rng.choice(forms)), governor, relation)
        sentences.append(conllu_sentence(words, f"s{k}", f"d{k // 8}"))
    path.write_text("".join(sentences), "utf-8")


@pytest.mark.numbers
@pytest.mark.parametrize(("score", "batch_tokens"), [("bias", 30), ("excess", 400)])
def test_contrasts_equal_their_definition(
    tmp_path: Path,
    tokenizer: PreTrainedTokenizerBase,
    monkeypatch: pytest.MonkeyPatch,
    batch_tokens: int,
    score: str,
) -> None:
    write_treebank(tmp_path / "short.conllu")
    options = ScoreOptions(
        relations=("nsubj", "obj"), batch_tokens=batch_tokens, score=score, controls="none"
    )
    loading = ModelOptions(tokenizer=tokenizer, device="cpu")
    encoder = load_encoder(make_bert(layers=len(REACHES), heads=HEADS), loading)
    monkeypatch.setattr(AttentionReader, "read", read_planted)
    with prepared(read_conllu(tmp_path / "short.conllu")) as corpus:
        examples = list(make_examples(corpus, "adjacent"))
        with open_reader(encoder.stack) as reader:
            run = ScoringRun(encoder, replace(reader, reaches=REACHES), corpus, options)
            blocks = list(run.blocks())
    values = np.concatenate([block.values for block in blocks])
    roles, n_long = [role.id for role in run.roles], 0
    counts = np.concatenate([block.counts for block in blocks])
    lows = np.concatenate([block.bounds[..., 0] for block in blocks])
    sizes = sizes_of(values, roles, counts, lows)
    for own, size, example in zip(values, sizes, examples, strict=True):
        tokens, ids = cut(example, tokenizer)
        n_long += len(tokens.words) > len(tokens.governors) + 4
        for layer, reach in enumerate(REACHES):
            asked = (("nsubj", "obj"), Asked(score, reach))
            expected = reference_scores(planted(ids, layer), tokens, *asked)
            assert largest_difference(own[layer], roles, expected, size[layer]) <= 1
    assert n_long > 10
    controls = run.make_record().facts["controls"]
    assert 20 < controls[ARCS_LEFT_OUT] < controls[COUNTED_ARCS] / 2


@pytest.mark.parametrize(
    ("score", "measure"), [("bias", "weights"), ("excess", "norms"), ("hit", "weights")]
)
def test_nothing_is_asked_of_the_device_before_the_scores_are_fetched(
    sample: Path, tokenizer: PreTrainedTokenizerBase, score: str, measure: str
) -> None:
    encoder = load_encoder(make_bert(), ModelOptions(tokenizer=tokenizer, device="cpu"))
    cutter = ExampleEncoder(tokenizer, encoder.max_tokens, encoder.takes_token_types)
    with prepared(read_conllu(sample)) as corpus, open_reader(encoder.stack, measure) as reader:
        groups = "all" if score == "bias" else None  # which only weights and masses have
        roles = choose_roles(RoleOptions(roles=groups), ("nsubj", "obj"), SCORES[score], corpus)
        examples = cutter.encode(list(make_examples(corpus, "adjacent"))[:12], Counter())
        scorer = WindowScorer(encoder, reader, roles, SCORES[score], Budget(200))
        parts = Budget(200).batches([len(example) for example in examples])
        batches = [scorer.prepare(examples, indices) for indices in parts]
        encoder.model.to("meta")  # where nothing has a value, and asking for one fails
        read = [scorer.read(batch) for batch in batches]
    assert len(read) > 1
    for batch, values in zip(batches, read, strict=True):
        assert values.shape[:-1] == (len(batch.indices), reader.n_layers, reader.n_heads)
        assert values.device.type == "meta"
