"""Runs of a model over the examples of a task: losses, predictions, and derivatives by gates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headroles.errors import ModelError
from headroles.models import LoadedEncoder, Model, load_config, load_encoder
from headroles.models.gates import (
    Ablation,
    GateGradients,
    HeadSites,
    LayerOutputs,
    MeanOutputs,
    gated,
)
from headroles.models.loading import weight_digest
from headroles.models.options import MEAN, ZERO
from headroles.passes import Arrays, Forms, KeptBatches, Progress, shown_in_notebooks
from headroles.provenance import new_provenance
from headroles.tasks.batches import IGNORED, Batch, Batches
from headroles.tasks.metrics import measure, metrics_of
from headroles.tasks.options import CLASSIFICATION, MASKED_LM, REGRESSION, TaskOptions
from headroles.tasks.outcomes import Derivatives, FloatArray, Outcomes
from headroles.tasks.reading import Task, read_task
from headroles.tasks.targets import find_targets, objective_of

OnPass = Callable[[int], None]
_REFERENCE_BATCHES = 16


class TaskRun:
    """A model with the examples of a task, which can run under any gates."""

    def __init__(self, encoder: LoadedEncoder, task: Task, options: TaskOptions) -> None:
        self.encoder, self.task, self.options = encoder, task, options
        config = encoder.model.config
        self.objective = objective_of(options.objective, config)
        self.targets = find_targets(task, self.objective, config, tuple(options.labels or ()))
        self.shape = self.sites.n_layers, self.sites.n_heads
        """Numbers of layers and of heads in each, including removed ones."""
        self.metrics = metrics_of(self.objective, config.num_labels or 0)
        made = Batches(encoder, task, self.objective, self.targets, options)
        self.passes, self.n_cut = made.passes()
        self.batches = self.passes.batches()
        self.batch_tokens = self.passes.budget.tokens
        self.kept = KeptBatches()

    def over(self, file: str | Path, options: TaskOptions) -> TaskRun:
        """Return a run of the same model over another file; raises errors as `read_task`."""
        task = read_task(file, options, labelled=self.objective != MASKED_LM)
        return TaskRun(self.encoder, task, options)

    @property
    def named(self) -> str:
        """The number of examples and their file, for people."""
        return f"{len(self.task)} examples of {Path(self.task.file).name}"

    @property
    def sites(self) -> HeadSites:
        """Sites of the heads that the model has at present."""
        return HeadSites.of(self.encoder.model)

    def groups(self, n_examples: int) -> list[list[Batch]]:
        """Divide all examples into groups of similar length, each with its batches."""
        lengths, batches = self.passes.lengths, self.passes.budget.batches
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        groups = [order[start : start + n_examples] for start in range(0, len(order), n_examples)]
        return [
            [
                self.passes.make([own[place] for place in places])
                for places in batches([lengths[row] for row in own])
            ]
            for own in groups
        ]

    def provenance(self, options: TaskOptions) -> dict[str, Any]:
        """Return the provenance of results of this run."""
        record = new_provenance(
            model={**self.encoder.description, **self.sites.description},
            corpus=self.task.describe(),
            options={
                **options.record(),
                "device": self.encoder.device.type,
                "batch_tokens": self.batch_tokens,
            },
        )
        return {
            **record,
            "task": {
                "objective": self.objective,
                "metrics": list(self.metrics),
                "examples": len(self.task),
                "cut": self.n_cut,
            },
            "layers": self.shape[0],
            "heads": self.shape[1],
        }

    def measure(self, outcomes: Outcomes, setting: int = 0) -> dict[str, float]:
        """Return the mean loss and the metrics of one setting."""
        columns = (outcomes.predictions[:, setting], self.targets, outcomes.losses[:, setting])
        return measure(*columns, self.metrics)

    def outcomes(self, gates: Tensor, ablation: str = ZERO) -> Outcomes:
        """Return the outcomes of all examples under each of ``gates`` (S, layers, heads).

        Layers below the first gate that is not open run once for all settings.
        """
        first = [_first_changed(setting) for setting in gates]
        made = self._ablation(ablation) if any(layer is not None for layer in first) else Ablation()
        sites = self.sites

        def compute(batch: Batch, on_pass: OnPass) -> Arrays:
            layer_outputs = LayerOutputs(sites)
            own = replace(made, attention_mask=batch.inputs["attention_mask"])
            with torch.inference_mode():
                with layer_outputs.kept():
                    whole = self._read(batch)
                read: list[tuple[FloatArray, FloatArray]] = []
                for setting, layer in zip(gates, first, strict=True):
                    on_pass(len(read))
                    if layer is None:
                        read.append(whole)
                        continue
                    with gated(sites, setting, own), layer_outputs.reused_below(layer):
                        read.append(self._read(batch))
            losses, predictions = (np.stack(one, axis=1) for one in zip(*read, strict=True))
            return {"losses": losses, "predictions": predictions}

        each = np.float64, (len(gates),)
        forms = {"losses": each, "predictions": each}
        found = self._over_batches(compute, [ablation], gates, forms, len(gates))
        return Outcomes(found["losses"], found["predictions"])

    def derivatives(self, gates: Tensor | None = None) -> Derivatives:
        """Return the derivatives of every example's loss, from one forward and one backward pass.

        They are taken at ``gates`` (layers, heads), by default open.
        """
        sites = self.sites
        gradients = GateGradients(sites)
        at = torch.ones(self.shape) if gates is None else gates

        def compute(batch: Batch, _: OnPass) -> Arrays:
            with ExitStack() as stack:
                stack.enter_context(without_gradients(self.encoder.model))
                stack.enter_context(gradients.of_pass())
                if gates is not None:
                    stack.enter_context(gated(sites, gates))
                losses, predictions = self.losses_of(batch)
                found = gradients.of_loss(losses.sum()).float()
            real = batch.inputs["attention_mask"]
            return {
                "by_gate": found.sum(1).cpu().numpy(),
                "by_token": (found.abs() * real[..., None, None]).sum(1).cpu().numpy(),
                "tokens": real.sum(1).cpu().numpy(),
                "losses": losses.detach().double().cpu().numpy(),
                "predictions": predictions.detach().double().cpu().numpy(),
            }

        found = self._over_batches(compute, ["derivatives"], at, self._forms_of_derivatives())
        if not np.isfinite(found["by_gate"]).all():
            raise ModelError(
                "derivatives of the loss are not finite; run the model in float32 "
                f"(it ran in {self.encoder.model.dtype})"
            )
        return Derivatives(**found)

    def _forms_of_derivatives(self) -> Forms:
        by_head, one = (np.float32, self.shape), (np.float64, ())
        return {
            "by_gate": by_head,
            "by_token": by_head,
            "tokens": (np.int64, ()),
            "losses": one,
            "predictions": one,
        }

    def _over_batches(
        self,
        compute: Callable[[Batch, OnPass], Arrays],
        what: list[str],
        gates: Tensor,
        forms: Forms,
        n_passes: int = 1,
    ) -> Arrays:
        """Compute arrays of ``forms`` for every batch; join them in the order of the examples.

        Saved batches are not computed again. ``compute`` reports how many of its ``n_passes`` over
        a batch are done.
        """
        name = self._name_of(what, gates)
        found: Arrays = {
            column: np.empty((len(self.task), *shape), kind)
            for column, (kind, shape) in forms.items()
        }
        with shown_in_notebooks(self.options, "passes") as options:
            tell = Progress(options.on_progress, len(self.batches) * n_passes)
            for number, batch in enumerate(self.batches):
                make = partial(self._computed, batch, compute, tell, number * n_passes, n_passes)
                own = self.kept.get(f"{name}-{number + 1}", make, forms, len(batch.rows))
                tell((number + 1) * n_passes)
                for column, values in own.items():
                    found[column][batch.rows] = values
        return found

    def _computed(
        self,
        batch: Batch,
        compute: Callable[[Batch, OnPass], Arrays],
        tell: Progress,
        before: int,
        n_passes: int,
    ) -> Arrays:
        """Compute the arrays of a batch, all at once or in parts."""
        parts: list[Arrays] = []
        n_rows = len(batch.rows)

        def read(one: Batch) -> Arrays:
            done = sum(len(part["losses"]) for part in parts) * n_passes
            return compute(one, lambda n: tell(before + (done + n * len(one.rows)) / n_rows))

        for _, arrays in self.passes.run([batch], read):
            parts.append(arrays)
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _name_of(self, what: list[str], gates: Tensor) -> str:
        """Return a name for the results of these examples at these gates, unique to them."""
        if self.kept.parts is None:
            return ""
        weights = weight_digest(self.encoder.model)  # weights may have been tuned since loading
        said = [*what, weights, self.task.digest, self.task.lines, self.batch_tokens]
        return hashlib.sha256(repr([*said, gates.tolist()]).encode()).hexdigest()[:32]

    def _ablation(self, kind: str) -> Ablation:
        if kind != MEAN:
            return Ablation(kind)
        means = MeanOutputs(self.sites)
        some = self.batches[:: max(1, len(self.batches) // _REFERENCE_BATCHES)]
        with torch.inference_mode():
            for _, sums in self.passes.run(some, lambda batch: means.read(batch.inputs)):
                means.add(*sums)
        return Ablation(kind, means=means.means)

    def _read(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        losses, predictions = self.losses_of(batch)
        return losses.double().cpu().numpy(), predictions.double().cpu().numpy()

    def losses_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss and the prediction of every example, each (batch,)."""
        return self.losses_from(self.encoder.model(**batch.inputs).logits, batch.targets)

    def losses_from(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same from the model's output for a batch with these targets."""
        logits = logits.float()
        if self.objective == REGRESSION:
            said = logits.squeeze(-1)
            return (said - targets) ** 2, said
        if self.objective == CLASSIFICATION:
            losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
            return losses, logits.argmax(-1)
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), targets, reduction="none", ignore_index=IGNORED
        )
        masked = (targets != IGNORED).sum(1)
        return losses.sum(1) / masked, torch.full_like(losses[:, 0], torch.nan)


def open_run(model: Model, file: str | Path, options: TaskOptions) -> TaskRun:
    """Load a model and the examples of a task file.

    Raises:
        CorpusError, UsageError: as `read_task`; labels that the model does not know.
        ModelError: as `load_encoder`; no head that was trained for the objective.
    """
    config = load_config(str(model), options) if isinstance(model, str | Path) else model.config
    masked = objective_of(options.objective, config) == MASKED_LM
    task = read_task(file, options, labelled=not masked)
    head = MASKED_LM if masked else CLASSIFICATION
    return TaskRun(load_encoder(model, options, head), task, options)


def _first_changed(gates: Tensor) -> int | None:
    """Return the first layer with a gate that is not open; None if all are open."""
    changed = (gates != 1).any(-1).nonzero()
    return int(changed[0]) if len(changed) else None


@contextmanager
def without_gradients(model: torch.nn.Module | Any) -> Iterator[None]:
    """Turn off gradients of weights within the block; those of gates remain."""
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    for parameter, _ in before:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter, had in before:
            parameter.requires_grad_(had)
