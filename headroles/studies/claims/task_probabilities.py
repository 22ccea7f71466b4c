"""A task -> probabilities of the right answers without heads, each set of heads run once.

Losses have no upper bound, and t-tests of means of such skewed values err too often. Probabilities
lie between 0 and 1, so that betting tests their means for any distribution.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from headroles.arrays import BoolArray, FloatArray
from headroles.models.loading import Model
from headroles.models.remaining_heads import Head
from headroles.studies.claims.claim import NotTestable
from headroles.studies.claims.options import ClaimOptions
from headroles.studies.importance.estimators import values_of
from headroles.studies.importance.options import ABSOLUTE
from headroles.studies.importance.removals import present_heads, sorted_by, without_each
from headroles.tasks.options import REGRESSION, TaskOptions
from headroles.tasks.running import TaskRun, open_run


@dataclass
class TaskProbabilities:
    """A model on a task. Heads are chosen on the examples in ``first`` (examples,)."""

    run: TaskRun

    @classmethod
    def open(cls, model: Model, task: str | Path, options: ClaimOptions) -> TaskProbabilities:
        """Open the model on the examples of a file; errors are those of `open_run`."""
        return cls(open_run(model, task, options.as_group(TaskOptions)))

    @property
    def shape(self) -> tuple[int, int]:
        """Layers, and heads of each."""
        return self.run.shape

    @cached_property
    def heads(self) -> list[Head]:
        """The heads that the model has."""
        return present_heads(self.run)

    @property
    def first(self) -> BoolArray:
        """Every other example (examples,)."""
        return np.asarray(np.arange(len(self.run.task)) % 2 == 0)

    def without(self, removed: Iterable[Iterable[Head]]) -> FloatArray:
        """Return probabilities of the right answer (examples, sets) without each set of heads.

        The exponential of minus the loss; of masked words the geometric mean.

        Raises NotTestable for a task whose answers are numbers.
        """
        if self.run.objective == REGRESSION:
            raise NotTestable(
                "an answer that is a number has no probability; pass a task with classes"
            )
        gates = without_each(removed, self.shape)
        return np.exp(-self.run.outcomes(gates).losses.astype(np.float64))

    def falls(self, removed: Iterable[Iterable[Head]]) -> FloatArray:
        """Return the fall of these probabilities (examples, sets) without each set of heads."""
        found = self.without([[], *removed])
        return found[:, :1] - found[:, 1:]

    @cached_property
    def one_by_one(self) -> FloatArray:
        """Falls (examples, present heads) without each head."""
        return self.falls([head] for head in self.heads)

    @cached_property
    def alone(self) -> dict[int, FloatArray]:
        """Falls (examples, heads) by layer, with each head as the only one of its layer."""
        of = {layer: [head for head in self.heads if head[0] == layer] for layer, _ in self.heads}
        sets = [[one for one in own if one != head] for own in of.values() for head in own]
        found = self.falls(sets)
        ends = np.cumsum([len(own) for own in of.values()])[:-1]
        return dict(zip(of, np.split(found, ends, axis=1), strict=True))

    @cached_property
    def importances(self) -> FloatArray:
        """Absolute derivatives (examples, layers * heads) of each loss by each gate."""
        values: Any = values_of(self.run.derivatives(), ABSOLUTE)
        present = np.zeros(self.shape, dtype=bool)
        present[tuple(zip(*self.heads, strict=True))] = True
        return np.where(present.ravel(), values, np.nan)

    def least_important(self, share: float) -> list[Head]:
        """Return a share of the heads: the least important ones on half of the examples."""
        means = self.importances[self.first].mean(axis=0).reshape(self.shape)
        return sorted_by(means, self.heads)[: round(share * len(self.heads))]
