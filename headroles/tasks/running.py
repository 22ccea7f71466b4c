"""A model over the examples of a task: losses, predictions, and derivatives by gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.errors import ModelError
from headroles.models import LoadedEncoder, Model, load_config, load_encoder
from headroles.models.ablations import MEAN, ZERO
from headroles.models.gates import (
    Ablation,
    GateGradients,
    HeadSites,
    LayerOutputs,
    MeanOutputs,
    gated,
)
from headroles.provenance import new_provenance
from headroles.tasks.metrics import measure, metrics_of
from headroles.tasks.options import CLASSIFICATION, MASKED_LM, REGRESSION, TaskOptions
from headroles.tasks.reading import Task, read_task
from headroles.tasks.targets import find_targets, objective_of

FloatArray = NDArray[np.float64]
OnBatch = Callable[[int, int], None]
_REFERENCE_BATCHES = 16
IGNORED = -100


@dataclass(frozen=True)
class Outcomes:
    """What came of examples under S settings of gates.

    ``losses`` and ``predictions`` are (examples, S); predictions are classes or numbers, NaN for
    masked language models.
    """

    losses: FloatArray
    predictions: FloatArray


@dataclass(frozen=True)
class Derivatives:
    """Of each example's loss by the gate of each head.

    ``by_gate`` and ``by_token`` are (examples, layers, heads): the derivative, and the sum over
    the tokens of the absolute values of what each token gives to it. ``tokens`` (examples,).
    """

    by_gate: NDArray[np.float32]
    by_token: NDArray[np.float32]
    tokens: NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Examples run together: their places in the task, and the inputs of the model."""

    rows: list[int]
    inputs: dict[str, Tensor]
    targets: Tensor


class TaskRun:
    """A model with the examples of a task, ready to be run under any gates."""

    def __init__(self, encoder: LoadedEncoder, task: Task, options: TaskOptions) -> None:
        self.encoder, self.task, self.options = encoder, task, options
        config = encoder.model.config
        self.objective = objective_of(options.objective, config)
        self.targets = find_targets(task, self.objective, config)
        self.sites = HeadSites.of(encoder.model)
        self.metrics = metrics_of(self.objective, config.num_labels or 0)
        self.n_cut = 0
        self.batches = self._encode()

    def over(self, file: str | Path, options: TaskOptions) -> TaskRun:
        """The same model over the examples of another file; errors are those of `read_task`."""
        task = read_task(file, options, labelled=self.objective != MASKED_LM)
        return TaskRun(self.encoder, task, options)

    @property
    def shape(self) -> tuple[int, int]:
        """Layers, and heads of each, those that are gone included."""
        return self.sites.n_layers, self.sites.n_heads

    def provenance(self, options: TaskOptions) -> dict[str, Any]:
        """Where results of this run come from."""
        record = new_provenance(
            model=self.encoder.description,
            corpus=self.task.describe(),
            options={**options.record(), "device": self.encoder.device.type},
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
        """The mean loss and the metrics of one setting."""
        columns = (outcomes.predictions[:, setting], self.targets, outcomes.losses[:, setting])
        return measure(*columns, self.metrics)

    def outcomes(
        self, gates: Tensor, ablation: str = ZERO, on_batch: OnBatch | None = None
    ) -> Outcomes:
        """What comes of all examples under each of ``gates`` (S, layers, heads).

        Layers below the first gate that is not open are run once for all settings.
        """
        shape = (len(self.task), len(gates))
        losses, predictions = np.empty(shape), np.empty(shape)
        first = [_first_changed(setting) for setting in gates]
        made = self._ablation(ablation) if any(layer is not None for layer in first) else Ablation()
        layer_outputs = LayerOutputs(self.sites)
        with torch.inference_mode():
            for done, batch in enumerate(self.batches, start=1):
                made = replace(made, attention_mask=batch.inputs["attention_mask"], _values={})
                with layer_outputs.kept():
                    whole = self._read(batch)
                for place, (setting, layer) in enumerate(zip(gates, first, strict=True)):
                    read = whole
                    if layer is not None:
                        with gated(self.sites, setting, made), layer_outputs.reused_below(layer):
                            read = self._read(batch)
                    losses[batch.rows, place], predictions[batch.rows, place] = read
                if on_batch is not None:
                    on_batch(done, len(self.batches))
        return Outcomes(losses, predictions)

    def derivatives(
        self, on_batch: OnBatch | None = None, gates: Tensor | None = None
    ) -> Derivatives:
        """Those of every example's loss, from one pass forward and one back.

        ``gates`` (layers, heads) are those at which the derivatives are taken; open if None.
        """
        shape = (len(self.task), *self.shape)
        by_gate, by_token = np.empty((2, *shape), dtype=np.float32)
        tokens = np.empty(len(self.task), dtype=np.int64)
        gradients = GateGradients(self.sites)
        for done, batch in enumerate(self.batches, start=1):
            with ExitStack() as stack:
                stack.enter_context(without_gradients(self.encoder.model))
                stack.enter_context(gradients.of_pass())
                if gates is not None:
                    stack.enter_context(gated(self.sites, gates))
                losses, _ = self.losses_of(batch)
                found = gradients.of_loss(losses.sum()).float()
            real = batch.inputs["attention_mask"][..., None, None]
            by_gate[batch.rows] = found.sum(1).cpu().numpy()
            by_token[batch.rows] = (found.abs() * real).sum(1).cpu().numpy()
            tokens[batch.rows] = batch.inputs["attention_mask"].sum(1).cpu().numpy()
            if on_batch is not None:
                on_batch(done, len(self.batches))
        if not np.isfinite(by_gate).all():
            raise ModelError(
                "derivatives of the loss are not finite; run the model in float32 "
                f"(it ran in {self.encoder.model.dtype})"
            )
        return Derivatives(by_gate, by_token, tokens)

    def _ablation(self, kind: str) -> Ablation:
        if kind != MEAN:
            return Ablation(kind)
        means = MeanOutputs(self.sites)
        with torch.inference_mode():
            for batch in self.batches[:: max(1, len(self.batches) // _REFERENCE_BATCHES)]:
                with means.of_batch(batch.inputs["attention_mask"]):
                    self.encoder.model(**batch.inputs)
        return Ablation(kind, means=means.means)

    def _read(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        losses, predictions = self.losses_of(batch)
        return losses.double().cpu().numpy(), predictions.double().cpu().numpy()

    def losses_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(batch,) each: the loss of every example, and what the model says of it."""
        return self.losses_from(self.encoder.model(**batch.inputs).logits, batch.targets)

    def losses_from(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The same of what the model put out for a batch with these targets."""
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

    def _encode(self) -> list[Batch]:
        tokenizer = self.encoder.tokenizer
        limit = min(self.options.max_tokens or self.encoder.max_tokens, self.encoder.max_tokens)
        columns = [list(texts) for texts in zip(*self.task.texts, strict=True)]
        encoded = tokenizer(*columns, truncation=False, return_special_tokens_mask=True)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        self.n_cut = sum(length > limit for length in lengths)
        if self.n_cut:
            encoded = tokenizer(
                *columns, truncation=True, max_length=limit, return_special_tokens_mask=True
            )
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        size = self.options.batch_size
        starts = range(0, len(order), size)
        return [self._batch(encoded, order[start : start + size]) for start in starts]

    def _batch(self, encoded: Any, rows: list[int]) -> Batch:
        own = {name: [values[row] for row in rows] for name, values in encoded.items()}
        special = own.pop("special_tokens_mask")
        padded = self.encoder.tokenizer.pad(own, padding=True, return_tensors="pt")
        inputs = {name: values.to(self.encoder.device) for name, values in padded.items()}
        if self.objective == MASKED_LM:
            return Batch(rows, *self._mask(rows, inputs, special))
        kind = torch.float32 if self.objective == REGRESSION else torch.long
        targets = torch.tensor(self.targets[rows], dtype=kind, device=self.encoder.device)
        return Batch(rows, inputs, targets)

    def _mask(
        self, rows: Sequence[int], inputs: dict[str, Tensor], special: Sequence[Sequence[int]]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs with tokens masked, and these tokens; what is masked in an example is its own."""
        ids = inputs["input_ids"].clone()
        targets = torch.full_like(ids, IGNORED)
        for place, (row, marks) in enumerate(zip(rows, special, strict=True)):
            words = np.flatnonzero(np.asarray(marks) == 0)
            if not len(words):
                raise ModelError(
                    f"{self.task.file}, line {self.task.lines[row]} has no token to be masked"
                )
            drawn = np.random.default_rng([self.task.lines[row], 0]).random(len(words))
            chosen = drawn < self.options.masked_share
            chosen[drawn.argmin()] = True
            where = torch.from_numpy(words[chosen]).to(ids.device)
            targets[place, where] = ids[place, where]
            ids[place, where] = self.encoder.tokenizer.mask_token_id
        return {**inputs, "input_ids": ids}, targets


def open_run(model: Model, file: str | Path, options: TaskOptions) -> TaskRun:
    """A model and the examples of a task file.

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
    """The first layer that has a gate which is not open; None if all are."""
    changed = (gates != 1).any(-1).nonzero()
    return int(changed[0]) if len(changed) else None


@contextmanager
def without_gradients(model: torch.nn.Module | Any) -> Iterator[None]:
    """Within, weights have no gradients, only what gates are part of."""
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    for parameter, _ in before:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter, had in before:
            parameter.requires_grad_(had)
