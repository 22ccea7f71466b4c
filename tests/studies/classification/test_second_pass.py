"""`--dtype auto` scores near answers again in float32, whatever dtype it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headroles import Classification, assign_roles, classify_heads, read_conllu
from headroles.errors import UsageError
from headroles.models.attention import AttentionReader
from headroles.scoring.run_notes import facts_of_run
from tests.rounding import SUMS, largest_excess
from tests.scoring.half import in_seconds, native

ROLES = "local,punctuation,delimiter"
LAYERS = "headroles.studies.classification.second_pass.expected_layers"


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    native(monkeypatch)
    in_seconds(monkeypatch, 2, 1)


@pytest.fixture
def of_sample(bert_folder: Path, sample: Path) -> Any:
    def classified(dtype: str, **asked: Any) -> Classification:
        asked = {"score": "excess", "roles": ROLES, "clusters": "none", **asked}
        return classify_heads(bert_folder, read_conllu(sample), dtype=dtype, **asked)

    return classified


def _at_limit(full: Classification, layer: int) -> dict[str, Any]:
    """Options that put the answer of one head of a layer at the limit of significance."""
    frame = full.roles.frame
    place = int((frame["layer"] == layer).idxmax())
    head = frame.loc[place]
    threshold = float(head["mean"] - 2 * head["sd"] / head["n"] ** 0.5)
    asked = {"threshold": threshold, "correction": "none", "clusters": "none"}
    p_value = assign_roles(full.scores, **asked).frame["p_value"][place]
    return {"threshold": threshold, "correction": "none", "alpha": float(p_value)}


def test_near_answers_are_scored_again_and_are_those_of_float32(
    of_sample: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(LAYERS, lambda *given: 0)
    asked = _at_limit(of_sample("float32"), layer=1)
    full, half, auto = (of_sample(dtype, **asked) for dtype in ("float32", "bfloat16", "auto"))
    told = auto.scores.record.half_precision
    rescored = {(layer, head, role) for layer, head, role in told.rescored}
    assert rescored == set(half.roles.tests.near)
    assert rescored
    assert not auto.roles.tests.near
    changed = half.roles.frame["answer"] != full.roles.frame["answer"]
    assert told.changed == changed.sum()
    names = ["answer", "certified", "assigned"]
    assert auto.roles.frame[names].equals(full.roles.frame[names])
    for place, role in enumerate(auto.scores.role_ids):
        for layer, head in np.ndindex(3, 4):
            found, in_half, in_full = (
                one.scores.values[:, layer, head, place] for one in (auto, half, full)
            )
            if (layer, head, role) in rescored:
                # scored beside other roles, so that some processors round otherwise; a score is
                # a difference of attention, of uniform size 1
                assert largest_excess(found, in_full, size=1.0) <= 1
                assert np.nanmax(np.abs(found - in_half)) > SUMS
            else:
                np.testing.assert_array_equal(found, in_half)
    again = Classification.load(auto.save(tmp_path / "auto"))
    assert again.scores == auto.scores
    assert facts_of_run(again.scores.record)["half_precision"]["changed"] == told.changed


def test_the_second_pass_ends_after_the_last_layer_that_it_needs(
    of_sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LAYERS, lambda *given: 0)
    full = of_sample("float32")
    read: list[int] = []
    real = AttentionReader.first

    def first(reader: AttentionReader, n_layers: int) -> AttentionReader:
        read.append(n_layers)
        return real(reader, n_layers)

    monkeypatch.setattr(AttentionReader, "first", first)
    asked = _at_limit(full, layer=0)
    auto = of_sample("auto", **asked)
    rescored = auto.scores.record.half_precision.rescored
    assert read == [1 + max(layer for layer, _, _ in rescored)]
    answers = of_sample("float32", **asked).roles.frame["answer"]
    assert auto.roles.frame["answer"].equals(answers)


def test_without_near_answers_there_is_no_second_pass(of_sample: Any) -> None:
    auto = of_sample("auto", threshold=0.99)
    assert auto.scores.record.model.dtype == "bfloat16"
    assert auto.scores.record.chosen_dtype.second_pass == 0
    told = auto.scores.record.half_precision
    assert told.rescored == []
    answers = of_sample("float32", threshold=0.99).roles.frame["answer"]
    assert auto.roles.frame["answer"].equals(answers)


def test_a_second_pass_that_would_take_longer_is_not_begun(of_sample: Any) -> None:
    auto = of_sample("auto", **_at_limit(of_sample("float32"), layer=2))
    chosen = auto.scores.record.chosen_dtype
    assert (chosen.time, chosen.second_pass) == (0.5, 1)
    assert chosen.dtype == auto.scores.record.model.dtype == "float32"
    assert auto.scores.record.half_precision is None


def test_progress_goes_on_with_the_second_pass(
    of_sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LAYERS, lambda *given: 0)
    asked = _at_limit(of_sample("float32"), layer=1)
    seen: list[tuple[int, int]] = []
    of_sample("auto", on_progress=lambda done, total: seen.append((done, total)), **asked)
    done = [one for one, _ in seen]
    assert done == sorted(done)
    assert seen[-1][0] == seen[-1][1]
    assert max(total for _, total in seen) == 2 * min(total for _, total in seen)


def test_early_stopping_is_refused(of_sample: Any) -> None:
    with pytest.raises(UsageError, match="auto scores some heads again after that"):
        of_sample("auto", until=0.5)
