"""Heads that make up for removed ones: a model fine-tuned without them, and with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from headroles.models.remaining_heads import Head
from headroles.models.tuning import weights_of_heads
from headroles.results.shown import Grid, Shown
from headroles.studies.importance.estimators import values_of
from headroles.studies.importance.measures import LESS, MORE
from headroles.studies.importance.options import ABSOLUTE
from headroles.tasks.running import TaskRun
from headroles.testing.answers import answers
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.intervals import find_intervals
from headroles.testing.options import TestOptions

FloatArray = NDArray[np.float64]
_COLUMNS = (
    *"layer head weight_change importance importance_change excess_change".split(),
    *"ci_low ci_high p_value p_adjusted answer".split(),
)


@dataclass(frozen=True)
class HeadState:
    """A fine-tuned model, head by head.

    ``weights`` of each head in one row of numbers; ``importances`` (examples, layers, heads) are
    absolute derivatives of the loss by gates.
    """

    weights: Mapping[Head, Tensor]
    importances: FloatArray


@dataclass(frozen=True)
class Compensation:
    """Differences of the remaining heads from those of the whole model fine-tuned alike.

    ``frame`` has a row for each head that is left. ``weight_change`` is
    the Euclidean length of the difference of its weights, divided by that of its weights in the
    whole model. ``importance`` is that in the whole model, ``importance_change`` by how much it is
    larger in the other (`find_importance`, absolute); ``excess_change`` is that less the mean over
    all heads that are left, with its interval. If what was lost is made up for evenly, it is 0 for
    all: ``answer`` says which heads take up more or less, by t-tests over examples corrected over
    heads (Benjamini and Hochberg).
    """

    frame: pd.DataFrame

    def shown(self) -> Iterator[Shown]:
        """Say how evenly the heads changed; tabulate the means of layers."""
        frame = self.frame
        weights, change = frame["weight_change"], frame["importance_change"].mean()
        n_more, n_less = (int((frame["answer"] == answer).sum()) for answer in (MORE, LESS))
        yield (
            f"Compared with the whole model fine-tuned alike, weights of heads differ by "
            f"{weights.mean():.1%} ({weights.min():.1%} to {weights.max():.1%}), and importance by "
            f"{change:+.4f} on average: by more than that in {n_more} of {len(frame)} heads, by "
            f"less in {n_less} (false discovery rate 0.05)."
        )
        means = frame.groupby("layer")[["weight_change", "importance_change"]].mean()
        columns = ("layer", *(str(layer) for layer in means.index))
        yield Grid(
            columns,
            (
                ("weights differ by", *(f"{value:.1%}" for value in means["weight_change"])),
                ("importance by", *(f"{value:+.4f}" for value in means["importance_change"])),
            ),
        )


def state_of(run: TaskRun, gates: Tensor) -> HeadState:
    """Return a model as it is, its importances found under ``gates`` (layers, heads)."""
    values = values_of(run.derivatives(gates=gates), ABSOLUTE)
    return HeadState(weights_of_heads(run.sites), values.reshape(-1, *run.shape))


def find_compensation(whole: HeadState, masked: HeadState, removed: Sequence[Head]) -> Compensation:
    """Compare the remaining heads, fine-tuned without ``removed``, with those of the whole."""
    heads = [head for head in whole.weights if head not in removed]
    layers, numbers = (list(axis) for axis in zip(*heads, strict=True))
    before, after = (state.importances[:, layers, numbers] for state in (whole, masked))
    changes = after - before
    frame = pd.DataFrame(
        {
            "layer": layers,
            "head": numbers,
            "weight_change": [
                float((masked.weights[head] - own).norm() / own.norm())
                for head in heads
                for own in [whole.weights[head]]
            ],
            "importance": before.mean(0),
            "importance_change": changes.mean(0),
            **_test(changes - changes.mean(1, keepdims=True), np.sqrt((before**2).mean())),
        }
    )
    return Compensation(frame[list(_COLUMNS)])


def _test(excess: FloatArray, size: float) -> dict[str, Any]:
    """Test whether means of (examples, heads) differ from 0; ``size`` is that of the terms."""
    hypotheses = Hypotheses.of(excess, 0.0, size=size)
    asked = TestOptions(clusters="none")
    p_values = find_p_values(hypotheses, asked, "two-sided")
    intervals = find_intervals(hypotheses, asked)
    return {
        "excess_change": hypotheses.moments.mean,
        "ci_low": intervals.ci_low,
        "ci_high": intervals.ci_high,
        "p_value": p_values.single,
        "p_adjusted": p_values.adjusted,
        "answer": answers(p_values.shows(asked.alpha), p_values.direction, (MORE, LESS)),
    }
