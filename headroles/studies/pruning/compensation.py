"""Compensation of removed heads: a model fine-tuned without them, and with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from headroles.arrays import FloatArray
from headroles.models.heads.remaining import Head
from headroles.models.heads.tuning import weights_of_heads
from headroles.results.shown import Grid, Shown
from headroles.studies.importance.importance import ABSOLUTE, values_of
from headroles.studies.importance.removals import LESS, MORE
from headroles.tasks.running import TaskRun
from headroles.testing.answers import answers
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions

_COLUMNS = (
    *"layer head weight_change importance importance_change excess_change".split(),
    *"ci_low ci_high p_value p_adjusted answer".split(),
)


@dataclass(frozen=True)
class HeadState:
    """Weights of each head of a fine-tuned model, as a vector, and importances of heads.

    ``importances`` (examples, layers, heads) are absolute derivatives of the loss by gates.
    """

    weights: Mapping[Head, Tensor]
    importances: FloatArray


@dataclass(frozen=True)
class Compensation:
    """Differences of the remaining heads from the whole model, fine-tuned in the same way.

    ``frame`` has a row for each remaining head. ``weight_change`` is the Euclidean length of the
    difference of its weights, divided by the length of its weights in the whole model.
    ``importance`` (`find_importance`, absolute) is in the whole model, ``importance_change`` the
    difference of the smaller model; ``excess_change`` is this difference less its mean over all
    remaining heads, with its interval. It is 0 for all heads if they compensate evenly: ``answer``
    says which heads compensate more or less, by t-tests over examples corrected over heads
    (Benjamini and Hochberg).
    """

    frame: pd.DataFrame

    def summarize(self) -> Iterator[Shown]:
        """Compare changes of heads with the mean change; tabulate the means of layers."""
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
        rows = (
            ("weights differ by", *(f"{value:.1%}" for value in means["weight_change"])),
            ("importance by", *(f"{value:+.4f}" for value in means["importance_change"])),
        )
        yield Grid(("layer", *map(str, means.index)), rows)


def state_of(run: TaskRun, gates: Tensor) -> HeadState:
    """Return weights and importances of a model, the importances at ``gates`` (layers, heads)."""
    values = values_of(run.derivatives(gates=gates), ABSOLUTE)
    return HeadState(weights_of_heads(run.sites), values.reshape(-1, *run.shape))


def find_compensation(whole: HeadState, masked: HeadState, removed: Sequence[Head]) -> Compensation:
    """Compare the remaining heads, fine-tuned without ``removed``, with the whole model."""
    heads = [head for head in whole.weights if head not in removed]
    layers, numbers = (list(axis) for axis in zip(*heads, strict=True))
    before, after = (state.importances[:, layers, numbers] for state in (whole, masked))
    changes = after - before
    frame = pd.DataFrame(
        {
            "layer": layers,
            "head": numbers,
            "weight_change": [
                float(
                    (masked.weights[head] - whole.weights[head]).norm() / whole.weights[head].norm()
                )
                for head in heads
            ],
            "importance": before.mean(0),
            "importance_change": changes.mean(0),
            **_test(changes - changes.mean(1, keepdims=True), np.sqrt((before**2).mean())),
        }
    )
    return Compensation(frame[list(_COLUMNS)])


def _test(excess: FloatArray, size: float) -> dict[str, Any]:
    """Test whether means of (examples, heads) differ from 0; ``size`` is the size of the terms."""
    hypotheses = Hypotheses.of(excess, 0.0, size=size)
    asked = TestOptions(clusters="none")
    p_values = find_p_values(hypotheses, asked, "two-sided")
    intervals = hypotheses.intervals(asked.alpha)
    return {
        "excess_change": hypotheses.moments.mean,
        "ci_low": intervals.ci_low,
        "ci_high": intervals.ci_high,
        "p_value": p_values.single,
        "p_adjusted": p_values.adjusted,
        "answer": answers(p_values.shows(asked.alpha), p_values.direction, (MORE, LESS)),
    }
