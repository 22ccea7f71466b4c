"""Names of saved batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from headroles.passes.saved_batches import SavedBatches
from headroles.storage import Parts
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import open_run


def kept_in(folder: Path) -> SavedBatches:
    return SavedBatches(Parts(folder / "hidden" / "parts").open({"study": "x"}))


def test_batches_serve_only_the_same_inputs(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    """Inputs are gates, ablation, the kind of numbers and the size of batches."""
    whole, other = torch.ones(1, 3, 4), torch.ones(1, 3, 4)
    other[0, 1, 2] = 0
    plain = open_run(classifier, labelled, TaskOptions(batch_tokens=45))
    run = open_run(classifier, labelled, TaskOptions(batch_tokens=45))
    run.saved, parts = kept_in(tmp_path), Parts(tmp_path / "hidden" / "parts")
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
    larger = open_run(classifier, labelled, TaskOptions(batch_tokens=512))
    larger.saved = run.saved
    larger.outcomes(whole)
    assert parts.count == 4 * 3 + 1
