"""A task -> probabilities of the right answers without heads, of a model that needs its heads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from headroles.arrays import BoolArray, FloatArray
from headroles.models.heads.remaining import Head
from headroles.models.loading.encoder import Model
from headroles.studies.claims.finding import DIFFERENCES, NotTestable, mean_beyond
from headroles.studies.controls import with_permuted_weights
from headroles.studies.importance.importance import ABSOLUTE, values_of
from headroles.studies.importance.removals import present_heads, sorted_by, without_each
from headroles.tasks.options import CLASSIFICATION, TaskOptions
from headroles.tasks.running import TaskRun, open_run


@dataclass
class ClaimTask:
    """A model on a task with classes. Heads are chosen on the examples in ``first`` (examples,)."""

    run: TaskRun

    @classmethod
    def open(cls, model: Model, file: str | Path, options: TaskOptions) -> ClaimTask:
        """Open the model on the examples of a file; errors are those of `open_run`."""
        run = open_run(model, file, options)
        if run.objective != CLASSIFICATION:
            raise NotTestable("claims about removed heads need a task with classes")
        return cls(run)

    @cached_property
    def heads(self) -> list[Head]:
        """The heads that the model has."""
        return present_heads(self.run)

    @property
    def first(self) -> BoolArray:
        """Every other example (examples,)."""
        return np.asarray(np.arange(len(self.run.task)) % 2 == 0)

    def refuse_useless(self, margin: float, alpha: float) -> None:
        """Raise NotTestable for a model that does not need its heads for this task.

        It must be shown to be better than the majority class, and to lose more than the margin of
        the probability of right answers without any head.
        """
        outcomes = self.run.outcomes(without_each([[], self.heads], self.run.shape))
        classes = self.run.targets.astype(np.int64)
        is_right = outcomes.predictions[:, 0] == classes
        by_majority = classes == np.bincount(classes).argmax()
        better = mean_beyond(is_right * 1.0 - by_majority, 0.0, None, DIFFERENCES)
        if not better.shown.shows(alpha)[0]:
            raise NotTestable(
                f"the model is not shown to beat the majority class ({is_right.mean():.3f} right, "
                f"majority {by_majority.mean():.3f}); give one trained for the task"
            )
        right, without = np.exp(-outcomes.losses).T
        loss = mean_beyond(right - without, margin, None, DIFFERENCES)
        if not loss.shown.shows(alpha)[0]:
            raise NotTestable(
                f"without any head the probability of right answers falls by {loss.effect:.3f}, "
                f"not shown to be above the margin of {margin:g}: the model does not need its heads"
            )

    def falls(self, removed: Iterable[Iterable[Head]]) -> FloatArray:
        """Return the fall of the probability of the right answer (examples, sets) without heads."""
        outcomes = self.run.outcomes(without_each([[], *removed], self.run.shape))
        right = np.exp(-outcomes.losses)
        return np.asarray(right[:, :1] - right[:, 1:])

    @cached_property
    def one_by_one(self) -> FloatArray:
        """Mean falls (layers, heads) without each head, less the mean of its layer."""
        falls = np.full(self.run.shape, np.nan)
        places = tuple(zip(*self.heads, strict=True))
        falls[places] = self.falls([head] for head in self.heads).mean(axis=0)
        return np.asarray(np.nan_to_num(falls - np.nanmean(falls, axis=1, keepdims=True)))

    def least_important(self, share: float) -> list[Head]:
        """Return a share of the heads: the least important ones on half of the examples."""
        values = np.asarray(values_of(self.run.derivatives(), ABSOLUTE), dtype=np.float64)
        means = values[self.first].mean(axis=0).reshape(self.run.shape)
        return sorted_by(means, self.heads)[: round(share * len(self.heads))]

    def untrained(self, file: str | Path, options: TaskOptions, seed: int) -> ClaimTask:
        """Return the same encoder on a task with an untrained classifier: permuted weights."""
        network = self.run.encoder.model
        prefix = f"{network.base_model_prefix}."
        untrained = with_permuted_weights(network, seed, lambda name: not name.startswith(prefix))
        return ClaimTask.open(untrained, file, options)
