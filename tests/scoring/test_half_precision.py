"""Scores in half precision say how far they lie from those in float32; auto takes the faster."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headroles import HeadScores, assign_roles, read_conllu, score_heads
from headroles.errors import StorageError, UsageError
from headroles.models.loading import load_encoder
from headroles.models.options import ModelOptions
from headroles.record import ChosenDtype
from headroles.scoring.half_precision import ERRORS, TRIAL_EXAMPLES, compare_precisions
from headroles.scoring.options import CorpusPart, ScoreOptions
from headroles.scoring.run import assist, open_scoring, score_to_folder
from headroles.scoring.run_notes import describe_run
from headroles.scoring.sharing import Sharing, Team
from headroles.storage import Parts
from tests.conftest import make_scores
from tests.scoring.half import in_seconds, native
from tests.scoring.test_parts import Barrier, stopped_after

ROLES = "local,punctuation"


def _scored(folder: Path, treebank: Path, **asked: Any) -> HeadScores:
    return score_heads(
        folder, read_conllu(treebank), **{"score": "excess", "device": "cpu", **asked}
    )


def test_differences_are_measured_and_told(bert_folder: Path, treebank: Path) -> None:
    full, half = (_scored(bert_folder, treebank, dtype=dtype) for dtype in ("float32", "bfloat16"))
    assert full.record.half_precision is full.record.chosen_dtype is None
    told = half.record.half_precision
    assert told is not None
    apart = np.abs(half.values - full.values)
    assert told.scores == pytest.approx(float(np.nanmax(apart)))
    assert told.examples == full.n_examples
    tables = [assign_roles(scores) for scores in (full, half)]
    means = tables[0].frame["mean"] - tables[1].frame["mean"]
    by_role = means.abs().groupby(tables[0].frame["role"]).max()
    assert {role: told.means[role] for role in by_role.index} == pytest.approx(
        by_role.to_dict(), rel=1e-4, abs=1e-7
    )
    assert "scores  in bfloat16: up to " in describe_run(half.record)
    [warning] = [one for one in tables[1].warnings if "bfloat16" in one]
    assert f"bfloat16 moved means of heads by up to {max(told.means.values()):.2g} in" in warning
    assert not any("float32" in one for one in tables[0].warnings)


def test_means_may_move_by_their_difference_and_some_standard_errors() -> None:
    rng = np.random.default_rng(0)
    full = make_scores(rng.normal(size=(9, 2, 3, 2)), ["local", "delimiter"])
    moved = full.values + rng.normal(0.1, 0.2, size=full.values.shape).astype(np.float32)
    moved[1:, 0, 0, 1] = np.nan  # one example has a score
    half = make_scores(moved, ["local", "delimiter"])
    told = compare_precisions(half.block, full.block, "bfloat16", full.roles)
    apart = (moved - full.values).astype(np.float64)
    expected = np.abs(apart.mean(0)) + ERRORS * apart.std(0, ddof=1) / np.sqrt(9)
    for place, role in enumerate(full.role_ids):
        found = np.array(told.moves[role], dtype=np.float64)
        known = ~np.isnan(found)
        np.testing.assert_allclose(found[known], expected[..., place][known], rtol=6e-3)
        assert known.all() == (role == "local")
    assert told.moves["delimiter"][0][0] is None


def test_a_model_that_was_loaded_before_is_taken_as_it_is(
    bert_folder: Path, treebank: Path
) -> None:
    encoder = load_encoder(bert_folder, ModelOptions(dtype="bfloat16"))
    for dtype in ("bfloat16", "auto"):
        scores = score_heads(
            encoder.model, read_conllu(treebank), tokenizer=encoder.tokenizer, dtype=dtype
        )
        assert scores.record.half_precision is scores.record.chosen_dtype is None
        assert scores.record.model.dtype == "bfloat16"


class TestAuto:
    @pytest.fixture(autouse=True)
    def _native(self, monkeypatch: pytest.MonkeyPatch) -> None:
        native(monkeypatch)

    @pytest.mark.parametrize(
        ("seconds", "dtype"), [((2.0, 1.0), "bfloat16"), ((1.0, 2.0), "float32")]
    )
    def test_the_faster_is_taken_with_its_own_scores(
        self,
        bert_folder: Path,
        treebank: Path,
        monkeypatch: pytest.MonkeyPatch,
        seconds: tuple[float, float],
        dtype: str,
    ) -> None:
        in_seconds(monkeypatch, *seconds)
        found = _scored(bert_folder, treebank, dtype="auto")
        expected = _scored(bert_folder, treebank, dtype=dtype)
        np.testing.assert_array_equal(found.values, expected.values)
        assert found.record.model == expected.record.model
        assert found.record.half_precision == expected.record.half_precision
        assert found.record.skipped == expected.record.skipped
        assert found.record.pieces == expected.record.pieces
        ratio = seconds[1] / seconds[0]
        assert found.record.chosen_dtype == ChosenDtype(dtype, True, found.n_examples, ratio)
        assert f"in {dtype}, chosen by auto: bfloat16 took {ratio:.2f} of" in describe_run(
            found.record
        )

    @pytest.mark.parametrize("asked", [{"precision": "float16"}, {"score": "hit"}])
    def test_scores_are_those_of_the_dtype_by_name(
        self,
        bert_folder: Path,
        sample: Path,
        monkeypatch: pytest.MonkeyPatch,
        asked: dict[str, Any],
    ) -> None:
        in_seconds(monkeypatch, 2, 1)
        found, expected = (
            _scored(bert_folder, sample, dtype=dtype, **asked) for dtype in ("auto", "bfloat16")
        )
        told = found.record.half_precision
        assert told is not None
        assert told.examples == TRIAL_EXAMPLES < found.n_examples
        np.testing.assert_array_equal(found.values, expected.values)

    def test_what_a_second_pass_takes_counts(
        self, bert_folder: Path, treebank: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        in_seconds(monkeypatch, 2, 1)
        asked = ScoreOptions(score="excess", dtype="auto")
        seen: list[HeadScores] = []

        def second_pass(first: HeadScores) -> float:
            seen.append(first)
            return 0.6

        with open_scoring(
            bert_folder, read_conllu(treebank), asked, second_pass=second_pass
        ) as run:
            scores = run.scores()
        half = _scored(bert_folder, treebank, dtype="bfloat16")
        np.testing.assert_array_equal(seen[0].values, half.values)
        assert seen[0].record.half_precision == half.record.half_precision
        n_examples = scores.n_examples
        expected = ChosenDtype("float32", True, n_examples, 0.5, 0.6)
        assert scores.record.chosen_dtype == expected
        assert scores.record.half_precision is None
        assert "would take about 0.60" in describe_run(scores.record)

    def test_the_record_comes_back(
        self, bert_folder: Path, treebank: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        in_seconds(monkeypatch, 2, 1)
        found = _scored(bert_folder, treebank, dtype="auto")
        found.save(tmp_path / "scores")
        assert HeadScores.load(tmp_path / "scores") == found

    def test_parts_would_choose_by_themselves(self, bert_folder: Path, treebank: Path) -> None:
        sharing = Sharing(corpus_part=CorpusPart(1, 2))
        asked = ScoreOptions(dtype="auto")
        with (
            pytest.raises(UsageError, match="each part of a corpus would choose a dtype"),
            open_scoring(bert_folder, read_conllu(treebank), asked, sharing=sharing),
        ):
            pass


def test_a_device_without_bfloat16_takes_float32(
    bert_folder: Path, treebank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native(monkeypatch, does=False)
    found = _scored(bert_folder, treebank, dtype="auto")
    assert found.record.model.dtype == "float32"
    assert found.record.chosen_dtype == ChosenDtype("float32", False)
    assert "this device does not multiply bfloat16 itself" in describe_run(found.record)


class TestUnfinished:
    """The choice of a run is made once: its saved windows are all of one dtype."""

    @pytest.fixture(autouse=True)
    def _windows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headroles.scoring.run.WINDOW_EXAMPLES", 16)
        native(monkeypatch)

    @pytest.fixture
    def run(self, bert_folder: Path, sample: Path, tmp_path: Path) -> Callable[..., HeadScores]:
        def scored(sharing: Sharing, dtype: str = "auto") -> HeadScores:
            folder = tmp_path / f"scores-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            asked = ScoreOptions(score="excess", roles=ROLES, dtype=dtype)
            with open_scoring(bert_folder, read_conllu(sample), asked, sharing=sharing) as run:
                score_to_folder(run, folder)
            return HeadScores.load(folder)

        return scored

    @pytest.mark.parametrize(
        ("seconds", "dtype"), [((2.0, 1.0), "bfloat16"), ((1.0, 2.0), "float32")]
    )
    def test_a_resumed_run_keeps_its_choice(
        self,
        run: Callable[..., HeadScores],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        seconds: tuple[float, float],
        dtype: str,
    ) -> None:
        sharing = Sharing(Parts(tmp_path / "parts"))
        in_seconds(monkeypatch, *seconds)
        with stopped_after(3), pytest.raises(KeyboardInterrupt):
            run(sharing)
        in_seconds(monkeypatch, *seconds[::-1])
        resumed = run(sharing)
        np.testing.assert_array_equal(resumed.values, run(Sharing(), dtype).values)
        chosen = resumed.record.chosen_dtype
        assert chosen is not None
        assert chosen.dtype == dtype == resumed.record.model.dtype

    def test_a_run_of_another_dtype_is_not_resumed(
        self, run: Callable[..., HeadScores], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        sharing = Sharing(Parts(tmp_path / "parts"))
        with stopped_after(3), pytest.raises(KeyboardInterrupt):
            run(sharing, "float16")
        in_seconds(monkeypatch, 2, 1)
        with pytest.raises(StorageError, match='dtype was "float16" and is "bfloat16"'):
            run(sharing)

    def test_other_processes_take_the_choice_of_the_first(
        self,
        run: Callable[..., HeadScores],
        monkeypatch: pytest.MonkeyPatch,
        bert_folder: Path,
        tmp_path: Path,
    ) -> None:
        in_seconds(monkeypatch, 2, 1)
        parts = Parts(tmp_path / "parts")
        barrier, asked = Barrier(2), ScoreOptions(score="excess", roles=ROLES, dtype="auto")
        loaded: list[str] = []

        def helping(model: Any, options: Any) -> Any:
            loaded.append(options.dtype)
            return load_encoder(model, options)

        helper = threading.Thread(
            target=assist, args=(bert_folder, asked, Sharing(parts, Team(1, 2, barrier)))
        )
        monkeypatch.setattr("headroles.scoring.run.load_encoder", helping)
        helper.start()
        found = run(Sharing(parts, Team(0, 2, barrier)))
        helper.join()
        assert loaded == ["bfloat16"]
        np.testing.assert_array_equal(found.values, run(Sharing(), "bfloat16").values)
