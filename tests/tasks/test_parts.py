"""What is kept of batches, and what they are told apart by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headroles.errors import StorageError
from headroles.storage import Parts
from headroles.tasks import KeptBatches, TaskOptions, open_run


def refuse() -> dict[str, np.ndarray]:
    raise AssertionError("computed again")


def kept_in(folder: Path) -> KeptBatches:
    return KeptBatches(Parts(folder / "hidden" / "parts").open({"study": "x"}))


def test_what_was_kept_is_not_computed_again(tmp_path: Path) -> None:
    made = {"losses": np.arange(6.0).reshape(2, 3).T, "tokens": np.array([1, 2])}
    assert kept_in(tmp_path).get("one", lambda: made) is made
    found = kept_in(tmp_path).get("one", refuse)
    assert np.array_equal(found["losses"], made["losses"])
    assert found["tokens"].dtype == made["tokens"].dtype
    with pytest.raises(AssertionError):  # nothing is kept of what failed
        kept_in(tmp_path).get("other", refuse)
    assert Parts(tmp_path / "hidden" / "parts").count == 1


def test_nothing_is_kept_without_a_place() -> None:
    kept = KeptBatches()
    assert kept.get("one", lambda: {"a": np.ones(1)}) == {"a": np.ones(1)}
    with pytest.raises(AssertionError):
        kept.get("one", refuse)


def test_what_is_no_array_is_named(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    assert kept.parts is not None
    kept.parts.write("one", b"no arrays")
    with pytest.raises(StorageError, match=r"part one in .* cannot be read"):
        kept.get("one", refuse)


def test_batches_are_told_apart(classifier: Path, labelled: Path, tmp_path: Path) -> None:
    """By gates, ablation, what is computed and the size of batches."""
    whole, other = torch.ones(1, 3, 4), torch.ones(1, 3, 4)
    other[0, 1, 2] = 0
    plain = open_run(classifier, labelled, TaskOptions(batch_size=3))
    run = open_run(classifier, labelled, TaskOptions(batch_size=3))
    run.kept, parts = kept_in(tmp_path), Parts(tmp_path / "hidden" / "parts")
    for _ in range(2):
        for gates, ablation in ((whole, "zero"), (other, "zero"), (other, "uniform")):
            expected = plain.outcomes(gates, ablation)
            found = run.outcomes(gates, ablation)
            assert np.array_equal(found.losses, expected.losses)
            assert np.array_equal(found.predictions, expected.predictions)
        expected = plain.derivatives()
        found = run.derivatives()
        assert np.array_equal(found.by_gate, expected.by_gate)
        assert np.array_equal(found.losses, expected.losses)
        assert parts.count == 4 * 3
    larger = open_run(classifier, labelled, TaskOptions(batch_size=8))
    larger.kept = run.kept
    larger.outcomes(whole)
    assert parts.count == 4 * 3 + 1
