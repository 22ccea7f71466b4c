"""Gates learnt with a task: which heads stay open when only so many may."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from headroles.errors import ModelError
from headroles.models.gates import gated
from headroles.models.hard_concrete import HardConcrete
from headroles.models.kept_heads import Head
from headroles.passes import gradients_of_mean
from headroles.storage import OpenParts
from headroles.studies.removal.gate_options import TRAINED, GateOptions
from headroles.studies.removal.learning import Learning
from headroles.studies.removal.orders import without
from headroles.tasks import TaskRun
from headroles.tasks.batches import Batch
from headroles.tasks.running import without_gradients

START = 3.0
"""The log alpha of every gate at first: at 90 % of the draws it is exactly 1."""
SHARE_OF_DESCENT = 2 / 3
"""Of the updates, those over which the expected number of open gates comes down."""

OnUpdate = Callable[[int], None]
"""Called with the updates done."""


@dataclass(frozen=True)
class LearntGates:
    """What one seed came to.

    ``log_alpha`` of ``heads``; ``kept`` are the heads of the largest; ``n_open`` is how many the
    rule of Voita et al. (2019) would keep; ``loss`` is the mean over the task with ``kept`` alone.
    """

    seed: int
    heads: tuple[Head, ...]
    log_alpha: tuple[float, ...]
    kept: tuple[Head, ...]
    n_open: int
    loss: float


def learn_gates(
    run: TaskRun,
    heads: Sequence[Head],
    options: GateOptions,
    seed: int,
    on_update: OnUpdate = lambda done: None,
    parts: OpenParts | None = None,
) -> LearntGates:
    """Gates of ``heads``, learnt over the examples of a task so that ``options.n_kept`` are left.

    The loss decides which heads do better than others, and after every update all log alpha are
    shifted by one number, so that as many open gates are expected as are to be open by then: there
    is no penalty whose weight would have to be found. Heads are kept by the largest log alpha, ties
    by layer and number. What is learnt is kept in ``parts`` now and then, and gone on with.

    Raises ModelError for a loss that is not finite.
    """
    gate, device = HardConcrete(), run.encoder.device
    log_alpha = torch.full((len(heads),), START, device=device, requires_grad=True)
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(options.updates, len(heads), generator=generator)
    targets = expected_open(gate, len(heads), options)
    updates = zip(_groups(run, options.update_examples, seed), targets, draws, strict=False)
    with ExitStack() as stack:
        learnt = [{"params": [log_alpha], "lr": options.gate_rate}]
        weights: list[Tensor] = []
        if options.weights == TRAINED:
            weights = [one for one in run.encoder.model.parameters() if one.requires_grad]
            learnt.append({"params": weights, "lr": options.weight_rate})
        else:
            stack.enter_context(without_gradients(run.encoder.model))
        adam = torch.optim.Adam(learnt)
        learning = Learning(adam, options.updates, parts, f"gates-{seed}")
        for batches, target, uniform in islice(updates, learning.done, None):
            gates = place(gate.gates(log_alpha, uniform.to(device)), heads, run.shape)
            adam.zero_grad()
            _set_gradients(run, batches, gates, weights)
            adam.step()
            with torch.no_grad():
                log_alpha += gate.shift_to(log_alpha, target)
            learning.count_update()
            on_update(learning.done)
    return _summary(run, gate, log_alpha.detach().cpu(), heads, options.n_kept, seed)


def expected_open(gate: HardConcrete, n_heads: int, options: GateOptions) -> list[float]:
    """How many open gates are expected after each update: down in a line, then as many as kept."""
    start = n_heads * float(gate.p_nonzero(torch.tensor(START)))
    n_down = max(1, round(options.updates * SHARE_OF_DESCENT))
    # A number of gates that is open at first may be below what is kept of a few heads.
    down = np.linspace(max(start, options.n_kept), options.n_kept, n_down + 1)[1:]
    return [*down.tolist(), *[float(options.n_kept)] * (options.updates - n_down)]


def place(values: Tensor, heads: Sequence[Head], shape: tuple[int, int]) -> Tensor:
    """(layers, heads): ``values`` at the places of ``heads``, 1 elsewhere; with gradients."""
    layers, numbers = (
        torch.tensor(axis, device=values.device) for axis in zip(*heads, strict=True)
    )
    gates = torch.ones(shape, device=values.device, dtype=values.dtype)
    return gates.index_put((layers, numbers), values)


def _set_gradients(
    run: TaskRun, batches: Sequence[Batch], gates: Tensor, weights: Sequence[Tensor]
) -> None:
    """Put the gradients of the mean loss into ``weights``, and into what ``gates`` come from."""
    placed = gates.detach().requires_grad_()
    with gated(run.sites, placed):
        loss, (of_gates, *of_weights) = gradients_of_mean(
            run.passes, batches, lambda batch: run.losses_of(batch)[0], [placed, *weights]
        )
    if not torch.isfinite(loss):
        raise ModelError(
            "the loss is not finite while gates are learnt; lower the learning rates, and run the "
            f"model in float32 (it ran in {run.encoder.model.dtype})"
        )
    gates.backward(of_gates)  # type: ignore[no-untyped-call]
    for one, gradient in zip(weights, of_weights, strict=True):
        one.grad = gradient


def _groups(run: TaskRun, n_examples: int, seed: int) -> Iterator[list[Batch]]:
    """Groups of examples without end, all of them in a new order before any comes again."""
    rng, groups = np.random.default_rng(seed), run.groups(n_examples)
    while True:
        for number in rng.permutation(len(groups)):
            yield groups[number]


def _summary(
    run: TaskRun,
    gate: HardConcrete,
    log_alpha: Tensor,
    heads: Sequence[Head],
    keep: int,
    seed: int,
) -> LearntGates:
    order = torch.argsort(log_alpha, descending=True, stable=True).tolist()
    kept = {heads[number] for number in order[:keep]}
    gates = without([head for head in heads if head not in kept], run.shape)
    loss = float(run.outcomes(gates[None]).losses.mean())
    return LearntGates(
        seed,
        tuple(heads),
        tuple(log_alpha.tolist()),
        tuple(sorted(kept)),
        int(gate.is_open(log_alpha).sum()),
        loss,
    )
