"""Fine-tuning of a model with some of its heads masked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headroles.errors import UsageError
from headroles.formats import to_records
from headroles.models.heads.gates import gated
from headroles.models.heads.remaining import Head
from headroles.models.heads.tuning import TuningRecipe, n_updates_of, train_weights
from headroles.models.loading.saved_models import RecordedTuning
from headroles.passes.loop import gradients_of_mean
from headroles.passes.options import Progress
from headroles.results.shown import Shown
from headroles.studies.importance.removals import present_heads, without
from headroles.studies.pruning.compensation import Compensation, find_compensation, state_of
from headroles.tasks.batches import TaskBatch
from headroles.tasks.running import TaskRun

if TYPE_CHECKING:
    from headroles.studies.pruning.options import PruneOptions


@dataclass(frozen=True)
class Tuning:
    """Outcome of fine-tuning.

    ``masked`` and ``whole`` are the mean loss and the metrics of the test: without the heads before
    fine-tuning, and with all heads after the same fine-tuning. Both are empty without a test,
    ``whole`` also without ``compensation``.
    """

    examples: int
    updates: int
    update_examples: int
    masked: dict[str, float]
    whole: dict[str, float]
    compensation: Compensation | None = None

    def summarize(self) -> Iterator[Shown]:
        """Describe the fine-tuning and the compensation."""
        yield (
            f"Fine-tuned on {self.examples} examples with the heads masked, {self.updates} updates "
            f"of {self.update_examples}."
        )
        if self.compensation is not None:
            yield from self.compensation.summarize()

    def to_json(self) -> RecordedTuning:
        """Return the result for scripts and for files."""
        facts: RecordedTuning = {
            "examples": self.examples,
            "updates": self.updates,
            "update_examples": self.update_examples,
            "masked": self.masked,
        }
        if self.compensation is not None:
            facts["whole"] = self.whole
            facts["compensation"] = to_records(self.compensation.frame)
        return facts


def fine_tune(
    run: TaskRun, tested: TaskRun | None, removed: Sequence[Head], options: PruneOptions
) -> Tuning:
    """Fine-tune the model of ``run`` on its examples with the heads of ``removed`` masked.

    The masked heads stay in the model; removing them does not change its outputs. With
    ``compensation`` the whole model is fine-tuned first, in the same way, from the same weights and
    seed; importances are compared on ``tested``, by default on the examples of fine-tuning.

    Raises UsageError without accelerate, and for compensation without a remaining head; ModelError
    for weights that are not finite.
    """
    if options.compensation and not set(present_heads(run)) - set(removed):
        raise UsageError(
            "all heads are removed, and none could compensate; leave `compensation` out"
        )
    network = run.encoder.model
    gates, all_open = without(removed, run.shape), torch.ones(run.shape)
    recipe = TuningRecipe(options.epochs, options.learning_rate, options.seed)
    groups = run.groups(options.update_examples)
    n_updates = n_updates_of(recipe, len(groups))
    updates = count(1)
    progress = Progress(options.on_progress, n_updates * (1 + options.compensation))
    train = partial(_train, run, groups, recipe, lambda: progress(next(updates)))
    masked = measure_under(tested, gates)
    whole: dict[str, float] = {}
    found: Compensation | None = None
    if options.compensation:
        start, judged = deepcopy(network.state_dict()), tested or run
        train(all_open)
        whole, unmasked = measure_under(tested, all_open), state_of(judged, all_open)
        network.load_state_dict(start)
        train(gates)
        found = find_compensation(unmasked, state_of(judged, gates), removed)
    else:
        train(gates)
    return Tuning(len(run.task), n_updates, options.update_examples, masked, whole, found)


def measure_under(run: TaskRun | None, gates: Tensor) -> dict[str, float]:
    """Return the mean loss and the metrics under gates (layers, heads); empty without a run."""
    return {} if run is None else run.measure(run.outcomes(gates[None]))


def _train(
    run: TaskRun,
    groups: Sequence[Sequence[TaskBatch]],
    recipe: TuningRecipe,
    on_update: Callable[[], None],
    gates: Tensor,
) -> None:
    def gradients_of(
        number: int, weights: Sequence[Tensor]
    ) -> tuple[Tensor, Sequence[Tensor | None]]:
        found = gradients_of_mean(
            run.passes, groups[number], lambda batch: run.losses_of(batch)[0], weights
        )
        on_update()
        return found

    with gated(run.sites, gates):
        train_weights(run.encoder.model, len(groups), gradients_of, recipe)
