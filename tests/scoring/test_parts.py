"""Interrupted and resumed, or shared, scoring gives the bits of one undisturbed run."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles import read_conllu
from headroles.errors import StorageError
from headroles.scoring.block_scoring import BlockScorer
from headroles.scoring.merging import merge_scores
from headroles.scoring.options import CorpusPart, ScoreOptions
from headroles.scoring.run import assist, open_scoring, score_to_folder
from headroles.scoring.scores import Counts, HeadScores, ScoredWindow
from headroles.scoring.sharing import ALONE, Sharing, Team, TeamError, pack, unpack
from headroles.storage import Parts, decode_arrays, decode_notes, encode_arrays
from tests.conftest import make_bert

FILES = ("scores.parquet", "examples.parquet")
WINDOW = 16  # of 79 examples: five windows


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    return make_bert()


@pytest.fixture(autouse=True)
def _windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headroles.scoring.run.WINDOW_EXAMPLES", WINDOW)


class Scoring:
    """One model over the sample, scored into folders."""

    def __init__(self, model: Any, sample: Path, tokenizer: Any, place: Path) -> None:
        self.model, self.sample, self.tokenizer, self.place = model, sample, tokenizer, place
        self.numbers = itertools.count()

    def options(self, **asked: Any) -> ScoreOptions:
        return ScoreOptions(tokenizer=self.tokenizer, **asked)

    def run(self, sharing: Sharing = ALONE, **asked: Any) -> Path:
        folder = self.place / f"run-{next(self.numbers)}"
        folder.mkdir()
        corpus = read_conllu(self.sample)
        with open_scoring(self.model, corpus, self.options(**asked), sharing=sharing) as run:
            score_to_folder(run, folder)
        return folder


@pytest.fixture
def scoring(
    model: PreTrainedModel, sample: Path, tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> Scoring:
    return Scoring(model, sample, tokenizer, tmp_path)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path / "hidden" / "parts")


def content(folder: Path) -> dict[str, Any]:
    """All that a folder holds but the circumstances of the run."""
    files: dict[str, Any] = {
        file.name: file.read_bytes() for file in folder.iterdir() if file.suffix == ".parquet"
    }
    run = json.loads((folder / "run.json").read_text())
    return {**files, **{key: run[key] for key in run if key not in ("created", "digest")}}


@contextmanager
def stopped_after(windows: int, error: BaseException | None = None) -> Iterator[None]:
    """Ends the scoring of the next window but so many, by KeyboardInterrupt or another error."""
    count = itertools.count()
    real = BlockScorer.fetch

    def fetch(scorer: BlockScorer, launched: Any, counts: Counts) -> HeadScores:
        if launched and next(count) == windows:
            raise error or KeyboardInterrupt
        return real(scorer, launched, counts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockScorer, "fetch", fetch)
        yield


def cut_short(windows: int, run: Callable[..., Path], *given: Any, **asked: Any) -> None:
    """A run that is interrupted after so many windows of its own."""
    with stopped_after(windows), pytest.raises(KeyboardInterrupt):
        run(*given, **asked)


@pytest.mark.parametrize("asked", [{}, {"score": "hit"}, {"precision": "float16"}])
def test_resumed_is_uninterrupted_to_the_bit(
    scoring: Scoring, parts: Parts, asked: dict[str, Any]
) -> None:
    expected = content(scoring.run(**asked))
    for windows in (1, 2):
        cut_short(windows, scoring.run, Sharing(parts), **asked)
    assert parts.count == 3
    with stopped_after(2):  # and there are two windows left
        assert content(scoring.run(Sharing(parts), **asked)) == expected
    assert ("offsets.parquet" in expected) == (asked == {"score": "hit"})


def test_another_plan_is_refused(scoring: Scoring, parts: Parts) -> None:
    cut_short(1, scoring.run, Sharing(parts))
    with pytest.raises(StorageError, match="options window was 2 and is 3"):
        scoring.run(Sharing(parts), window=3)
    scoring.model = make_bert(seed=1)
    with pytest.raises(StorageError, match="model weights_sha256 was "):
        scoring.run(Sharing(parts))


def test_a_part_has_the_frequencies_of_its_file(
    scoring: Scoring, parts: Parts, tmp_path: Path
) -> None:
    """Not by the name of the file, which may be another."""
    first, moved, other = (tmp_path / f"{name}.txt" for name in "abc")
    for file, count in ((first, 2), (moved, 2), (other, 3)):
        file.write_text(f"the\t{count}\n", "utf-8")
    asked = {"roles": ["rare"]}
    cut_short(1, scoring.run, Sharing(parts), **asked, frequencies=str(first))
    with pytest.raises(StorageError, match="roles rare meaning frequencies was "):
        scoring.run(Sharing(parts), **asked, frequencies=str(other))
    found, expected = (
        HeadScores.load(scoring.run(sharing, **asked, frequencies=str(moved)))
        for sharing in (Sharing(parts), ALONE)
    )
    np.testing.assert_array_equal(found.values, expected.values)


def test_a_part_has_the_tags_and_documents_of_its_corpus(
    scoring: Scoring, parts: Parts, tmp_path: Path
) -> None:
    """The settings also cover content that the digest of a corpus ignores."""
    cut_short(1, scoring.run, Sharing(parts))
    text = scoring.sample.read_text("utf-8")
    scoring.sample = tmp_path / "other.conllu"
    scoring.sample.write_text(text.replace("\tPUNCT\t", "\tX\t"), "utf-8")
    with pytest.raises(StorageError, match="corpus digest was "):
        scoring.run(Sharing(parts))


@pytest.mark.parametrize("newdoc", ["# newdoc", "# olddoc"], ids=["documents", "no documents"])
def test_a_corpus_may_lie_elsewhere(scoring: Scoring, tmp_path: Path, newdoc: str) -> None:
    """Resumed runs and merged parts."""
    text = scoring.sample.read_text("utf-8").replace("# newdoc", newdoc)
    places = [tmp_path / name / "c.conllu" for name in "ab"]
    for place in places:
        place.parent.mkdir()
        place.write_text(text, "utf-8")
    scoring.sample = places[0]
    expected = content(scoring.run())
    parts = Parts(tmp_path / "parts")
    cut_short(2, scoring.run, Sharing(parts))
    of_first = scoring.run(Sharing(corpus_part=CorpusPart(1, 2)))
    scoring.sample = places[1]
    resumed = content(scoring.run(Sharing(parts)))
    (tmp_path / "merged").mkdir()
    merge_scores(
        [of_first, scoring.run(Sharing(corpus_part=CorpusPart(2, 2)))], tmp_path / "merged"
    )
    for found in (resumed, content(tmp_path / "merged")):
        assert [found[file] == expected[file] for file in FILES] == [True, True]
        assert found["corpus"]["undivided"] == expected["corpus"]["undivided"]
    assert (expected["corpus"]["undivided"] > 0) == (newdoc == "# olddoc")


class Barrier:
    """The state that `accelerate` gives a process, for threads."""

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count)

    def wait_for_everyone(self) -> None:
        self._barrier.wait(60)


class Broken:
    def wait_for_everyone(self) -> None:
        raise RuntimeError("Connection closed by peer")


class TestTeam:
    def test_two_give_the_bits_of_one(
        self, scoring: Scoring, parts: Parts, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = content(scoring.run())
        barrier = Barrier(2)
        scored: Counter[str] = Counter()
        real = BlockScorer.fetch
        both_work = threading.Barrier(2)

        def fetch(scorer: BlockScorer, launched: Any, counts: Counts) -> HeadScores:
            name = threading.current_thread().name
            if launched and not scored[name]:
                both_work.wait(60)
            scored[name] += bool(launched)
            return real(scorer, launched, counts)

        monkeypatch.setattr(BlockScorer, "fetch", fetch)
        helping = Sharing(parts, Team(1, 2, barrier))
        model = make_bert()  # hooks are put into it: threads cannot share one
        given = (model, read_conllu(scoring.sample), scoring.options(), helping)
        helper = threading.Thread(target=assist, args=given)
        helper.start()
        found = content(scoring.run(Sharing(parts, Team(0, 2, barrier))))
        helper.join()
        assert found == expected
        assert sum(scored.values()) == 5
        assert min(scored.values()) >= 1

    def test_one_that_would_score_otherwise_is_refused(
        self, scoring: Scoring, parts: Parts
    ) -> None:
        failures = []

        class After:
            def wait_for_everyone(self) -> None:
                sharing = Sharing(parts, Team(1, 2, Barrier(1)))
                corpus = read_conllu(scoring.sample)
                try:
                    assist(make_bert(seed=1), corpus, scoring.options(), sharing)
                except StorageError as error:
                    failures.append(str(error))
                raise RuntimeError("closed")

        with pytest.raises(TeamError):
            scoring.run(Sharing(parts, Team(0, 2, After())))
        assert "has other settings than the first one: model weights_sha256 was" in failures[0]

    def test_one_that_has_died_ends_the_run(self, scoring: Scoring, parts: Parts) -> None:
        with pytest.raises(TeamError, match="another of the 2 processes of this run has ended"):
            scoring.run(Sharing(parts, Team(0, 2, Broken())))


def test_a_part_is_read_back_as_it_was(scoring: Scoring) -> None:
    with open_scoring(
        scoring.model, read_conllu(scoring.sample), scoring.options(score="hit")
    ) as run:
        block = next(run.blocks())
    counts = Counts(Counter({"too long": 2}), Counter(), Counter(pieces=3))
    none = block.select(np.arange(0))
    assert unpack(pack(ScoredWindow(block, counts)), none) == (block, counts)
    assert unpack(pack(ScoredWindow(none, counts)), none) == (none, counts)


def test_half_precision_rounds_and_says_so(scoring: Scoring, tmp_path: Path) -> None:
    folders = [scoring.run(**asked) for asked in ({}, {"precision": HALF})]
    whole, half = map(HeadScores.load, folders)
    np.testing.assert_array_equal(half.values, whole.values.astype(np.float16).astype(np.float32))
    np.testing.assert_allclose(half.values, whole.values, rtol=1 / 2048, atol=3e-8)
    assert half.bounds is not None
    there = ~np.isnan(half.values)
    assert (half.bounds[:, None, None, :, 0] <= half.values)[there].all()
    assert (half.bounds[:, None, None, :, 1] >= half.values)[there].all()
    assert (half.record.rounded, whole.record.rounded) == (HALF, "")
    large, small = ((folder / FILES[0]).stat().st_size for folder in folders)
    assert small < 0.7 * large
    again = HeadScores.load(half.save(tmp_path / "again"))
    np.testing.assert_array_equal(again.values, half.values)


HALF = "float16"


@pytest.mark.parametrize(
    "forged",
    [
        {"counts": np.ones((3, 1), np.int64)},
        {"counts": np.ones(2, np.int64)},
        {"values": np.zeros((2, 3, 4, 2), np.float32)},
        {"values": np.zeros((2, 3, 4, 1), np.float64)},
        {"bounds": np.zeros((2, 2), np.float32)},
        {"lengths": np.zeros(1, np.int64)},
        {"bounds": None},
        {"other": np.zeros(2)},
        {"ids": ["a"]},
        {"digests": ["a", "b", "c"]},
    ],
)
def test_a_part_of_another_form_is_refused(forged: dict[str, Any]) -> None:
    whole = HeadScores.by_hand(np.zeros((2, 3, 4, 1)), ["local"], bounds=(0, 1))
    content = pack(ScoredWindow(whole, Counts()))
    assert unpack(content, whole).scores == whole
    arrays, notes = decode_arrays(content), decode_notes(content)
    for name, one in forged.items():
        (notes if isinstance(one, list) else arrays)[name] = one
    arrays = {name: one for name, one in arrays.items() if one is not None}
    with pytest.raises(ValueError, match="instead of"):
        unpack(encode_arrays(arrays, notes), whole)
