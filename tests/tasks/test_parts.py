"""What is kept of a study that was interrupted, and who may go on with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headroles.errors import StorageError
from headroles.tasks import Parts, TaskOptions, open_run

PLAN = {"study": "x", "options": {"ablation": "zero", "sets": ("single",)}, "n": 3}


def refuse() -> dict[str, np.ndarray]:
    raise AssertionError("computed again")


def test_what_was_kept_is_not_computed_again(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "parts")
    parts.begin(PLAN)
    made = {"losses": np.arange(6.0).reshape(2, 3), "tokens": np.array([1, 2])}
    assert parts.get("one", lambda: made) is made
    again = Parts.of(str(tmp_path / "parts"))
    again.begin(PLAN)
    found = again.get("one", refuse)
    assert np.array_equal(found["losses"], made["losses"])
    assert found["tokens"].dtype == made["tokens"].dtype
    assert len(again) == 1
    again.drop()
    assert not (tmp_path / "parts").exists()


def test_nothing_is_kept_of_what_failed(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.begin(PLAN)
    with pytest.raises(AssertionError):
        parts.get("one", refuse)
    assert len(parts) == 0


def test_another_plan_is_refused_by_name(tmp_path: Path) -> None:
    Parts(tmp_path).begin(PLAN)
    Parts(tmp_path).get("one", lambda: {"a": np.ones(1)})
    other = {**PLAN, "options": {"ablation": "mean", "sets": ("single",)}}
    with pytest.raises(StorageError, match=r"options ablation is 'zero', not 'mean'.*--overwrite"):
        Parts(tmp_path).begin(other)
    assert len(Parts(tmp_path)) == 1
    Parts(tmp_path, replace=True).begin(PLAN)
    assert len(Parts(tmp_path)) == 1
    Parts(tmp_path, replace=True).begin(other)
    assert len(Parts(tmp_path)) == 0


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(StorageError, match=r"one.npz cannot be read"):
        Parts(tmp_path).get("one", refuse)


def test_batches_are_told_apart(classifier: Path, labelled: Path, tmp_path: Path) -> None:
    """By gates, ablation, what is computed and the size of batches."""
    whole, other = torch.ones(1, 3, 4), torch.ones(1, 3, 4)
    other[0, 1, 2] = 0
    plain = open_run(classifier, labelled, TaskOptions(batch_size=3))
    kept = open_run(classifier, labelled, TaskOptions(batch_size=3))
    kept.parts = Parts(tmp_path)
    for _ in range(2):
        for gates, ablation in ((whole, "zero"), (other, "zero"), (other, "uniform")):
            expected = plain.outcomes(gates, ablation)
            found = kept.outcomes(gates, ablation)
            assert np.array_equal(found.losses, expected.losses)
            assert np.array_equal(found.predictions, expected.predictions)
        expected = plain.derivatives()
        found = kept.derivatives()
        assert np.array_equal(found.by_gate, expected.by_gate)
        assert np.array_equal(found.losses, expected.losses)
        assert len(kept.parts) == 4 * 3
    larger = open_run(classifier, labelled, TaskOptions(batch_size=8))
    larger.parts = kept.parts
    larger.outcomes(whole)
    assert len(kept.parts) == 4 * 3 + 1
