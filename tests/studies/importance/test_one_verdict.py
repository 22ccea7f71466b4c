"""The same losses have the same p-value and the same answer in every study."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from headroles.studies.importance import ablate, by_task
from headroles.studies.importance.ablate import AblateOptions, Removal
from headroles.studies.pruning import pruning_curves
from headroles.studies.pruning.prune import find_compensation
from headroles.studies.pruning.pruning_curves import CurveOptions
from headroles.tasks.outcomes import Outcomes
from headroles.testing.options import CorrectionOptions

N = 300


def verdicts(whole: NDArray[np.float64], without: NDArray[np.float64]) -> dict[str, Any]:
    """Of every study the single p-value and the answer, to losses (examples,) of two settings."""
    losses = np.stack([whole, without], axis=1)
    outcomes = Outcomes(losses, np.full_like(losses, np.nan), np.zeros(len(whole)))
    removals = [Removal("single", "0-0", ((0, 0),))]
    settings = np.repeat([0, 1], 5).reshape(2, 5, 1)
    asked = CurveOptions(orders="bottom,top", against="bottom", shares="0.5")
    rows = pd.DataFrame({"set": ["single"], "removed": ["0-0"], "n_removed": [1]})
    tasks: Any = {name: SimpleNamespace(outcomes=outcomes, frame=rows) for name in "ab"}
    # of two heads, one gains what the other loses: the mean change is 0
    weights = dict.fromkeys(((0, 0), (0, 1)), torch.ones(1))
    before, after = (
        (weights, np.stack(columns, axis=1)[:, None])
        for columns in ((whole, whole), (without, 2 * whole - without))
    )
    curves, _ = pruning_curves.make_table(settings, [1], outcomes, [], asked)
    found = {
        "ablate": ablate.make_table(removals, outcomes, False, AblateOptions())[0],
        "pruning-curves": curves[curves["order"] == "top"],
        "by-task": by_task.make_table(tasks, [("single", "0-0")], "loss", CorrectionOptions())[0],
        "compensation": find_compensation(before, after, []),
    }
    return {study: frame.iloc[0] for study, frame in found.items()}


RNG = np.random.Generator(np.random.MT19937(3))
AROUND_HALF = RNG.gamma(2, 0.25, N)
CHANGES = {
    # losses near 0.5 whose sums were added in another order: p = 8e-9 by a plain t
    "drift": (AROUND_HALF, 2e-8 + RNG.normal(0, 6e-8, N), False),
    # losses of 1e-6 that grow by three times as much: small is not rounding
    "small losses": (1e-6 * RNG.gamma(9, 1 / 9, N), 3e-6 * RNG.gamma(9, 1 / 9, N), True),
}
for size in (1e-6, 0.5, 40.0):  # at any size a millionth is rounding, a thousandth is not
    losses = size * (1 + RNG.uniform(-0.1, 0.1, N))
    CHANGES[f"a millionth of {size}"] = losses, 1e-6 * size * RNG.gamma(4, 1 / 4, N), False
    CHANGES[f"a thousandth of {size}"] = losses, 1e-3 * size * RNG.gamma(4, 1 / 4, N), True


@pytest.mark.parametrize("case", CHANGES)
def test_what_is_rounding_is_a_share_of_the_losses_in_every_study(case: str) -> None:
    whole, change, is_found = CHANGES[case]
    expected = stats.ttest_1samp(change, 0).pvalue
    assert expected < 1e-4  # a test that knows no rounding finds all of them
    for study, found in verdicts(whole, whole + change).items():
        if is_found:
            assert np.log(found["p_value"]) == pytest.approx(np.log(expected), rel=1e-6), study
            assert found["answer"] in {"worse", "more"}, study
        else:
            assert np.isnan(found["p_value"]), study
            assert found["answer"] == "undecided", study
            assert found.get("note", "degenerate").startswith("degenerate"), study
