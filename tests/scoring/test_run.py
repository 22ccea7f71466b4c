"""Scoring end to end on a small model: against the slow reference, and its invariants."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles import HeadScores, read_conllu, score_heads
from headroles.corpus import make_examples, prepared
from headroles.errors import CorpusError, ModelError
from headroles.roles.contrasts import ARCS, ARCS_LEFT_OUT, PAIRS, PAIRS_WITHOUT_CONTROLS
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import open_scoring
from headroles.scoring.windows import windows_of
from tests import noise
from tests.conftest import CAT, conllu_sentence, make_bert, role_ids
from tests.reference import Asked, attention_of, cut, largest_difference, reference_scores
from tests.rounding import WEIGHTS, assert_same_sums, sizes_of_scores

RELATIONS = ("nsubj", "obj", "amod", "advmod")
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
    for k, example in enumerate(examples[:25]):
        tokens, ids = cut(example, tokenizer)
        attention = attention_of(eager, tokens, ids, token_types=True)
        expected = reference_scores(attention, tokens, RELATIONS, Asked(score))
        found = scores.values[k]
        assert set(scores.role_ids) == set(expected)
        assert largest_difference(found, scores.role_ids, expected, sizes[k], WEIGHTS) <= 1


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


def test_windows_of_long_examples_have_fewer(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a window of a slow model takes a minute, whatever the length of examples."""
    monkeypatch.setattr("headroles.scoring.windows.WINDOW_WORDS", 60)
    with prepared(read_conllu(sample)) as corpus:
        windows = list(windows_of(corpus, "adjacent"))
        examples = list(make_examples(corpus, "adjacent"))
    for window in windows:
        n_words = sum(len(one.words) for each in window.examples for one in each.sentences)
        assert n_words <= 60 or len(window.examples) == 1
    assert len(windows) > 10
    assert [one for window in windows for one in window.examples] == examples
    assert [window.number for window in windows] == list(range(len(windows)))
    assert [window.first for window in windows][-1] + windows[
        -1
    ].n_sentences == corpus.record.sentences


def test_arcs_without_controls_leave_and_are_counted(run: Run, tmp_path: Path) -> None:
    """A sentence of two words has no pair but its arc; a sentence beside it lends none."""
    short = conllu_sentence([("it", 2, "nsubj"), ("was", 0, "root")], "short", "a")
    long = [("of", 3, "case"), ("the", 3, "det"), ("it", 4, "nsubj"), ("was", 0, "root")]
    file = tmp_path / "short.conllu"
    file.write_text(short + conllu_sentence(long, "long", "b"), "utf-8")
    both = run(file)
    contrast = both.role_ids.index("syntactic:nsubj:to_governor:beyond_offset")
    assert both.counts[:, contrast].tolist() == [0, 1]
    assert np.isnan(both.values[0, ..., contrast]).all()
    assert np.isfinite(both.values[1, ..., contrast]).all()
    controls = both.facts.controls
    assert (controls[ARCS], controls[ARCS_LEFT_OUT]) == (4, 2)
    assert (controls[PAIRS], controls[PAIRS_WITHOUT_CONTROLS]) == (4, 2)


@pytest.mark.parametrize("measure", ["weights", "norms"])
def test_noise_of_machines_is_rounding_and_more_is_not(run: Run, measure: str) -> None:
    """Attention times 1 + 3e-7 is the same to every test; attention times 1 + 1e-3 is not."""
    plain = run(measure=measure)
    with noise.added(noise.MACHINES):
        assert_same(plain, run(measure=measure))
    with noise.added(noise.MISTAKE), pytest.raises(AssertionError, match="what rounding explains"):
        assert_same(plain, run(measure=measure))


class TestRelations:
    def test_subtypes_kept(self, run: Run) -> None:
        kept = run(relations=["nsubj:pass"], keep_subtypes=True)
        role = kept.role_ids.index("syntactic:nsubj:pass:to_governor")
        assert 0 < (kept.counts[:, role] > 0).sum() < kept.n_examples

    @pytest.mark.parametrize(
        ("relation", "message"),
        [
            ("nsub", "no relation 'nsub'; did you mean 'nsubj'?"),
            ("nsubj:pass", "subtypes are folded; pass keep_subtypes=True"),
            ("root", "no relation 'root'"),
        ],
    )
    def test_absent(self, sample: Path, relation: str, message: str) -> None:
        with pytest.raises(CorpusError, match=message.replace("?", r"\?")):
            score_heads("no-model-is-loaded", read_conllu(sample), relations=[relation])

    def test_absent_defaults_are_left_out_and_named(self, run: Run, treebank: Path) -> None:
        scores = run(treebank)
        assert scores.role_ids == role_ids(["nsubj", "obj", "amod"])
        assert scores.facts.absent_relations == ["advmod"]


class TestRecord:
    def test_tells_what_was_done(self, scores: HeadScores) -> None:
        record = scores.record
        assert record.corpus.examples == scores.n_examples == 79
        assert record.corpus.sentences == 140
        assert record.options["relations"] == list(RELATIONS)
        assert record.model.family == "BERT"
        assert record.model.read_through == "attention interface"
        assert {"torch", "transformers", "python"} <= record.versions.keys()

    def test_counts_what_was_skipped(self, run: Run) -> None:
        short = make_bert(max_position_embeddings=90)
        scores = run(by=short)
        (reason, count), *others = scores.record.corpus.skipped.items()
        assert not others
        assert reason == "examples longer than the model takes"
        assert scores.n_examples + count == 79
        assert scores.lengths.max() <= 90


def test_progress_ends_at_all_sentences(run: Run) -> None:
    calls: list[tuple[int, int]] = []
    run(on_progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1] == (140, 140)


class TestOutOfMemory:
    def test_batches_are_halved(
        self, scores: HeadScores, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from headroles.scoring import windows as scoring

        real, refused = scoring.read_scores, Counter[int]()

        def limited(attention: Any, readout: Any) -> Any:
            if len(attention) > 5:
                refused[len(attention)] += 1
                raise torch.OutOfMemoryError
            return real(attention, readout)

        monkeypatch.setattr(scoring, "read_scores", limited)
        assert_same(scores, run())
        assert refused


def test_attention_that_is_not_finite_is_an_error_not_a_gap(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headroles.scoring import windows as scoring

    real = scoring.read_scores
    monkeypatch.setattr(scoring, "read_scores", lambda *given: real(*given) * float("nan"))
    with pytest.raises(ModelError, match=r"attention of layer 0 is not finite for example"):
        run()


def test_examples_of_the_same_name_are_refused(run: Run, tmp_path: Path) -> None:
    sentences = [("a", "d1"), ("b", None), ("a+b", "d2")]
    file = tmp_path / "plus.conllu"
    file.write_text("".join(conllu_sentence(CAT, name, doc) for name, doc in sentences), "utf-8")
    with pytest.raises(CorpusError, match=r"two examples would have the id 'a\+b'"):
        run(file, relations=["nsubj"])


def test_notebooks_show_progress_of_their_own(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run()
    assert "sentences" not in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    run()
    assert "sentences" in capsys.readouterr().err
