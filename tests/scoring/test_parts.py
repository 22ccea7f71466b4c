"""Interrupted and resumed, shared, or merged, scoring gives the bits of one undisturbed run."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from headroles import read_conllu
from headroles.errors import StorageError, UsageError
from headroles.scoring.options import CorpusPart, ScoreOptions
from headroles.scoring.parts import ALONE, Sharing, Team, TeamError, merge_scores
from headroles.scoring.run import open_scoring
from headroles.scoring.run_notes import warnings_of_run
from headroles.scoring.scores import HeadScores, is_rounded
from headroles.scoring.shares import Share, deal
from headroles.scoring.windows import Window, WindowScorer
from headroles.storage import Parts, decode_arrays, decode_notes, encode_arrays
from tests.conftest import make_bert

FILES = ("scores.parquet", "examples.parquet")
WINDOW = 16  # of 79 examples, of which some are too long: five windows
HALF = "float16"


@pytest.fixture(autouse=True)
def _windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headroles.scoring.run.WINDOW_EXAMPLES", WINDOW)


def assist(*given: Any) -> None:
    """Score the windows of another process than the first."""
    with open_scoring(*given) as run:
        run.assist()


class Scoring:
    """One model over the sample, scored into folders."""

    def __init__(self, sample: Path, tokenizer: Any, place: Path) -> None:
        self.sample, self.tokenizer, self.place = sample, tokenizer, place
        self.model = make_bert(max_position_embeddings=90)
        self.numbers = itertools.count()

    def options(self, **asked: Any) -> ScoreOptions:
        return ScoreOptions(tokenizer=self.tokenizer, **asked)

    def run(self, sharing: Sharing = ALONE, **asked: Any) -> Path:
        folder = self.place / f"run-{next(self.numbers)}"
        folder.mkdir()
        corpus = read_conllu(self.sample)
        with open_scoring(self.model, corpus, self.options(**asked), sharing=sharing) as run:
            run.write(folder)
        return folder

    def part(self, number: int, of: int = 2, **asked: Any) -> Path:
        return self.run(Sharing(corpus_part=CorpusPart(number, of)), **asked)

    def merged(self, *folders: Path) -> Path:
        place = self.place / f"merged-{next(self.numbers)}"
        place.mkdir()
        merge_scores(folders, place)
        return place


@pytest.fixture
def scoring(sample: Path, tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> Scoring:
    return Scoring(sample, tokenizer, tmp_path)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path / "hidden" / "parts")


def content(folder: Path) -> dict[str, Any]:
    """All that a folder holds but the circumstances of the run."""
    files = {file.name: file.read_bytes() for file in folder.glob("*.parquet")}
    run = json.loads((folder / "run.json").read_text())
    record = run["scores"]
    del record["created"], record["command"]
    return {**files, **record, "holds": run["holds"]}


@contextmanager
def watched(before: Callable[[], None]) -> Iterator[None]:
    """Call ``before`` each time the scores of a window are fetched."""
    real = WindowScorer.launch

    def launch(scorer: WindowScorer, examples: Any, *given: Any) -> Callable[[], HeadScores]:
        fetch = real(scorer, examples, *given)

        def watched_fetch() -> HeadScores:
            if examples:
                before()
            return fetch()

        return watched_fetch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WindowScorer, "launch", launch)
        yield


@contextmanager
def stopped_after(
    windows: int, end: BaseException | type[BaseException] = KeyboardInterrupt
) -> Iterator[None]:
    """Ends the scoring of the next window but so many."""
    count = itertools.count()

    def stop() -> None:
        if next(count) == windows:
            raise end

    with watched(stop):
        yield


def cut_short(windows: int, run: Callable[..., Path], *given: Any, **asked: Any) -> None:
    """A run that is interrupted after so many windows of its own."""
    with stopped_after(windows), pytest.raises(KeyboardInterrupt):
        run(*given, **asked)


@pytest.mark.parametrize("asked", [{"score": "hit"}, {"precision": HALF}])
def test_resumed_and_merged_are_one_run_to_the_bit(
    scoring: Scoring, parts: Parts, asked: dict[str, Any]
) -> None:
    expected = content(scoring.run(**asked))
    assert sum(expected["corpus"]["skipped"].values()) > 0
    for windows in (1, 2):
        cut_short(windows, scoring.run, Sharing(parts), **asked)
    assert parts.count == 3
    with stopped_after(2):  # and there are two windows left
        assert content(scoring.run(Sharing(parts), **asked)) == expected
    found = content(scoring.merged(*(scoring.part(number, 3, **asked) for number in (3, 1, 2))))
    assert found == expected


def test_parts_of_other_settings_are_refused(
    scoring: Scoring, parts: Parts, tmp_path: Path
) -> None:
    """Files are among them by their content, not by their names."""
    first, moved, other = (tmp_path / f"{name}.txt" for name in "abc")
    for file, count in ((first, 2), (moved, 2), (other, 3)):
        file.write_text(f"the\t{count}\n", "utf-8")
    asked = {"roles": ["rare", "local"]}
    cut_short(1, scoring.run, Sharing(parts), **asked, frequencies=str(first))
    for change, message in (
        ({"window": 3}, "options window was 2 and is 3"),
        ({"frequencies": str(other)}, "roles rare meaning frequencies was "),
    ):
        with pytest.raises(StorageError, match=message):
            scoring.run(Sharing(parts), **{**asked, "frequencies": str(moved), **change})
    found, expected = (
        HeadScores.load(scoring.run(sharing, **asked, frequencies=str(moved)))
        for sharing in (Sharing(parts), ALONE)
    )
    np.testing.assert_array_equal(found.values, expected.values)
    parts.remove()
    cut_short(1, scoring.run, Sharing(parts))
    text = scoring.sample.read_text("utf-8")
    same, scoring.sample = scoring.sample, tmp_path / "other.conllu"
    scoring.sample.write_text(text.replace("\tPUNCT\t", "\tX\t"), "utf-8")
    with pytest.raises(StorageError, match="corpus digest was "):  # tags are no part of `digest`
        scoring.run(Sharing(parts))
    scoring.sample, scoring.model = same, make_bert(seed=1)
    with pytest.raises(StorageError, match="model weights_sha256 was "):
        scoring.run(Sharing(parts))


@pytest.mark.parametrize("newdoc", ["# newdoc", "# olddoc"], ids=["documents", "no documents"])
def test_a_corpus_may_lie_elsewhere(scoring: Scoring, parts: Parts, newdoc: str) -> None:
    text = scoring.sample.read_text("utf-8").replace("# newdoc", newdoc)
    places = [scoring.place / name / "c.conllu" for name in "ab"]
    for place in places:
        place.parent.mkdir()
        place.write_text(text, "utf-8")
    scoring.sample = places[0]
    expected = content(scoring.run())
    cut_short(2, scoring.run, Sharing(parts))
    of_first = scoring.part(1)
    scoring.sample = places[1]
    resumed, merged = scoring.run(Sharing(parts)), scoring.merged(of_first, scoring.part(2))
    for found in map(content, (resumed, merged)):
        assert [found[file] == expected[file] for file in FILES] == [True, True]
        assert found["corpus"]["undivided"] == expected["corpus"]["undivided"]
    assert (expected["corpus"]["undivided"] > 0) == (newdoc == "# olddoc")


def barrier(count: int) -> Any:
    """The state that `accelerate` gives a process, for threads."""
    return SimpleNamespace(wait_for_everyone=threading.Barrier(count, timeout=60).wait)


class TestTeam:
    def test_two_give_the_bits_of_one(self, scoring: Scoring, parts: Parts) -> None:
        expected = content(scoring.run())
        state, both_work = barrier(2), threading.Barrier(2)
        scored: Counter[str] = Counter()

        def count() -> None:
            name = threading.current_thread().name
            if not scored[name]:
                both_work.wait(60)
            scored[name] += 1

        # hooks are put into a model: threads cannot share one
        model, corpus = make_bert(max_position_embeddings=90), read_conllu(scoring.sample)
        given = (model, corpus, scoring.options(), Sharing(parts, Team(1, 2, state)))
        helper = threading.Thread(target=assist, args=given)
        with watched(count):
            helper.start()
            found = content(scoring.run(Sharing(parts, Team(0, 2, state))))
            helper.join()
        assert found == expected
        assert sum(scored.values()) == 5
        assert min(scored.values()) >= 1

    def test_a_process_that_would_score_otherwise_or_has_ended(
        self, scoring: Scoring, parts: Parts
    ) -> None:
        failures = []

        def wait() -> None:
            sharing = Sharing(parts, Team(1, 2, barrier(1)))
            corpus = read_conllu(scoring.sample)
            try:
                assist(make_bert(seed=1), corpus, scoring.options(), sharing)
            except StorageError as error:
                failures.append(str(error))
            raise RuntimeError("Connection closed by peer")

        state = SimpleNamespace(wait_for_everyone=wait)
        with pytest.raises(TeamError, match="another of the 2 processes of this run has ended"):
            scoring.run(Sharing(parts, Team(0, 2, state)))
        assert "has other settings than the first one: model " in failures[0]


class TestDividedWindows:
    """A corpus of a single window of many batches."""

    asked: ClassVar[dict[str, Any]] = {"batch_tokens": 150}

    @pytest.fixture(autouse=True)
    def _one_window(self, _windows: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headroles.scoring.run.WINDOW_EXAMPLES", 1024)

    @pytest.mark.parametrize("n_parts", [2, 3, 7])
    def test_parts_have_as_much_work_each_and_merge_to_one_run(
        self, scoring: Scoring, n_parts: int
    ) -> None:
        folders = [scoring.part(k + 1, n_parts, **self.asked) for k in range(n_parts)]
        assert content(scoring.merged(*folders[::-1])) == content(scoring.run(**self.asked))
        tokens = [int(HeadScores.load(folder).lengths.sum()) for folder in folders]
        assert max(tokens) - min(tokens) < 2 * self.asked["batch_tokens"]

    def test_processes_of_a_part_share_its_batches(self, scoring: Scoring, parts: Parts) -> None:
        expected = content(scoring.part(2, 2, **self.asked))
        part, corpus = CorpusPart(2, 2), read_conllu(scoring.sample)
        state = barrier(2)
        model = make_bert(max_position_embeddings=90)
        given = (model, corpus, scoring.options(**self.asked))
        helper = threading.Thread(
            target=assist, args=(*given, Sharing(parts, Team(1, 2, state), part))
        )
        helper.start()
        found = content(scoring.run(Sharing(parts, Team(0, 2, state), part), **self.asked))
        helper.join()
        assert found == expected
        assert parts.count == 2


@given(st.integers(0, 12), st.integers(1, 4), st.integers(1, 4), st.data())
def test_every_batch_is_dealt_out_once(n: int, n_parts: int, count: int, data: Any) -> None:
    """First to parts, then to the processes of each part."""
    batches = {k: [[j] for j in range(data.draw(st.integers(0, 9)))] for k in range(n)}
    windows = [Share(Window(k, 0, [])) for k in range(n)]
    found: Counter[tuple[int, int]] = Counter()
    names: Counter[str] = Counter()
    for _, taken in deal(iter(windows), n_parts):
        of_parts = [share for share in taken if share]
        assert sum(share.is_first for share in of_parts) == 1
        for part in of_parts:
            ((_, of_processes),) = deal(iter([part]), count)
            for share in filter(None, of_processes):
                number = share.window.number
                names[share.name] += 1
                found.update((number, j) for j in share.places(batches[number]))
    assert found == Counter((k, j) for k in batches for j in range(len(batches[k])))
    assert not names or max(names.values()) == 1


def test_only_the_last_windows_are_divided() -> None:
    windows = [Share(Window(k, 0, [])) for k in range(5)]
    dealt = [[share and share.name for share in taken] for _, taken in deal(iter(windows), 2)]
    assert dealt == [["0", None], [None, "1"], ["2", None], [None, "3"], ["4-1of2", "4-2of2"]]
    assert [one.name for _, (one,) in deal(iter(windows), 1) if one] == ["0", "1", "2", "3", "4"]


def test_a_window_is_read_back_as_it_was(scoring: Scoring) -> None:
    options, corpus = scoring.options(score="hit"), read_conllu(scoring.sample)
    with open_scoring(scoring.model, corpus, options) as run:
        block = next(run.blocks())
    assert block.record.corpus.pieces is not None
    none = block.select(np.arange(0))
    assert none.decoded(block.encoded()) == block
    assert none.decoded(none.encoded()) == none


def test_half_precision_rounds_and_says_so(scoring: Scoring, tmp_path: Path) -> None:
    folders = [scoring.run(**asked) for asked in ({}, {"precision": HALF})]
    whole, half = map(HeadScores.load, folders)
    np.testing.assert_array_equal(half.values, whole.values.astype(np.float16).astype(np.float32))
    np.testing.assert_allclose(half.values, whole.values, rtol=1 / 2048, atol=3e-8)
    assert half.bounds is not None
    there, bounds = ~np.isnan(half.values), half.bounds[:, None, None]
    assert ((bounds[..., 0] <= half.values) & (half.values <= bounds[..., 1]))[there].all()
    assert (is_rounded(half.record), is_rounded(whole.record)) == (True, False)
    large, small = ((folder / FILES[0]).stat().st_size for folder in folders)
    assert small < 0.7 * large
    again = HeadScores.load(half.save(tmp_path / "again"))
    np.testing.assert_array_equal(again.values, half.values)


@pytest.mark.parametrize(
    "forged",
    [
        {"counts": np.ones((3, 1), np.int64)},
        {"counts": np.ones(2, np.int64)},
        {"values": np.zeros((2, 3, 4, 2), np.float32)},
        {"values": np.zeros((2, 3, 4, 1), np.float64)},
        {"lengths": np.zeros(1, np.int64)},
        {"bounds": None},
        {"other": np.zeros(2)},
        {"ids": ["a"]},
    ],
)
def test_a_window_of_another_form_is_refused(forged: dict[str, Any]) -> None:
    whole = HeadScores.by_hand(np.zeros((2, 3, 4, 1)), ["local"], bounds=(0, 1))
    content = whole.encoded()
    assert whole.decoded(content) == whole
    arrays, notes = decode_arrays(content), decode_notes(content)
    for name, one in forged.items():
        (notes if isinstance(one, list) else arrays)[name] = one
    arrays = {name: one for name, one in arrays.items() if one is not None}
    with pytest.raises(ValueError, match="instead of"):
        whole.decoded(encode_arrays(arrays, notes))


class TestMerging:
    def test_a_part_says_what_it_is_and_all_parts_are_of_one_run(self, scoring: Scoring) -> None:
        first, second = scoring.part(1), scoring.part(2)
        half, other_half = map(HeadScores.load, (second, first))
        assert min(half.n_examples, other_half.n_examples) > 0
        (warning,) = (one for one in warnings_of_run(half.record) if "part" in one)
        assert warning.startswith("this is part 2 of 2 of the corpus; headroles merge")
        other = scoring.part(2, window=3)
        again = [other_half.save(scoring.place / "again"), second]
        for folders, error, message in (
            ([first, other], UsageError, "not parts of one run: options window was 2 and is 3"),
            ([first], UsageError, "of 2 parts of the corpus 2 is missing"),
            ([first, first], UsageError, "both hold part 1"),
            ([scoring.run()], UsageError, "holds scores of a whole corpus"),
            (again, StorageError, "does not hold its windows one by one"),
        ):
            with pytest.raises(error, match=message):
                scoring.merged(*folders)
        with pytest.raises(UsageError, match="part 99 of 99 is empty because the corpus is too"):
            scoring.part(99, 99)

    @pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"num_attention_heads": 2}])
    def test_weights_that_are_used_otherwise(
        self, scoring: Scoring, change: dict[str, Any]
    ) -> None:
        first, model = scoring.part(1), scoring.model
        config = model.config.__class__(**{**model.config.to_dict(), **change})
        scoring.model = model.__class__(config).eval()
        scoring.model.load_state_dict(model.state_dict())
        with pytest.raises(UsageError, match="not parts of one run: model config_sha256 was"):
            scoring.merged(first, scoring.part(2))

    @pytest.mark.parametrize("given", ["3/2", "0/2", "1", "1/2/3", "a/b", "-1/2"])
    def test_parts_that_cannot_be(self, given: str) -> None:
        with pytest.raises(UsageError, match="write 2/8"):
            CorpusPart.accept(given)
