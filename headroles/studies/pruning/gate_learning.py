"""Learnt gates of heads, saved now and then so that learning can resume."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor

from headroles.errors import ModelError
from headroles.models.heads import hard_concrete
from headroles.models.heads.gates import gated
from headroles.models.heads.remaining import Head
from headroles.passes.loop import gradients_of_mean
from headroles.storage import OpenParts
from headroles.studies.importance.removals import without
from headroles.studies.pruning.gate_options import TRAINED, GateOptions
from headroles.tasks.batches import TaskBatch
from headroles.tasks.running import TaskRun, without_gradients

START = 3.0
"""Log alpha of every gate at the start: the gate is exactly 1 at 90 % of the draws."""
SHARE_OF_DESCENT = 2 / 3
"""Share of the updates over which the expected number of open gates falls."""

OnUpdate = Callable[[int], None]
"""Function called with the number of updates done."""


@dataclass(frozen=True)
class LearntGates:
    """Gates that one seed learnt: ``log_alpha`` of ``heads``.

    ``kept`` are the heads with the largest log alpha; ``n_open`` is the number of heads that the
    rule of Voita et al. (2019) keeps; ``loss`` is the mean over the task with ``kept`` alone.
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
    """Learn gates of ``heads`` over a task so that ``options.n_kept`` heads remain.

    The loss decides which gates open more than others; after every update one number shifts all
    log alpha to `expected_open` gates, so that no penalty needs a weight. Heads are kept by the
    largest log alpha, ties by layer and number. Progress is saved in ``parts`` now and then, and
    resumes from there.

    Raises ModelError for a loss that is not finite.
    """
    device = run.encoder.device
    log_alpha = torch.full((len(heads),), START, device=device, requires_grad=True)
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(options.updates, len(heads), generator=generator)
    targets = expected_open(len(heads), options)
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
            gates = place(hard_concrete.gates(log_alpha, uniform.to(device)), heads, run.shape)
            adam.zero_grad()
            _set_gradients(run, batches, gates, weights)
            adam.step()
            with torch.no_grad():
                log_alpha += hard_concrete.shift_to(log_alpha, target)
            learning.count_update()
            on_update(learning.done)
    return _summary(run, log_alpha.detach().cpu(), heads, options.n_kept, seed)


def expected_open(n_heads: int, options: GateOptions) -> list[float]:
    """Return the expected number of open gates after each update: linear, then constant."""
    start = n_heads * float(hard_concrete.p_nonzero(torch.tensor(START)))
    n_down = max(1, round(options.updates * SHARE_OF_DESCENT))
    # Of few heads, more may be kept than are expected to be open at the start.
    down = np.linspace(max(start, options.n_kept), options.n_kept, n_down + 1)[1:]
    return [*down.tolist(), *[float(options.n_kept)] * (options.updates - n_down)]


def place(values: Tensor, heads: Sequence[Head], shape: tuple[int, int]) -> Tensor:
    """Return ``values`` at the places of ``heads`` (layers, heads), else 1; with gradients."""
    layers, numbers = (
        torch.tensor(axis, device=values.device) for axis in zip(*heads, strict=True)
    )
    gates = torch.ones(shape, device=values.device, dtype=values.dtype)
    return gates.index_put((layers, numbers), values)


def _set_gradients(
    run: TaskRun, batches: Sequence[TaskBatch], gates: Tensor, weights: Sequence[Tensor]
) -> None:
    """Put the gradients of the mean loss into ``weights``, and into the leaves of ``gates``."""
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


def _groups(run: TaskRun, n_examples: int, seed: int) -> Iterator[list[TaskBatch]]:
    """Yield groups of examples without end, in a new order after each pass over all of them."""
    rng, groups = np.random.default_rng(seed), run.groups(n_examples)
    while True:
        for number in rng.permutation(len(groups)):
            yield groups[number]


def _summary(
    run: TaskRun,
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
        int(hard_concrete.is_open(log_alpha).sum()),
        loss,
    )


SECONDS_BETWEEN = 20.0
"""Seconds of learning that an interrupted run may lose."""
_DONE = "updates"


class Learning:
    """Numbers that ``adam`` updates, loaded from ``parts`` if they were saved under ``name``.

    ``done`` counts their updates, out of ``n_updates``. The state of ``adam`` is saved with them:
    resumed updates are the same to the bit if the caller draws the same random numbers. Without
    ``parts`` nothing is saved.
    """

    def __init__(
        self, adam: torch.optim.Adam, n_updates: int, parts: OpenParts | None, name: str
    ) -> None:
        """Load a state. Raises StorageError for a state that is unreadable or of other numbers."""
        self.done = 0
        self._adam, self._n_updates, self._parts, self._name = adam, n_updates, parts, name
        self._numbers: list[Tensor] = [
            one for group in adam.param_groups for one in group["params"]
        ]
        if parts is not None and name in parts:
            parts.read(name, lambda content: self._take_up(load(content)))
        self._kept_at = time.monotonic()

    def count_update(self) -> None:
        """Count an update; save all now and then, and after the last one."""
        self.done += 1
        is_last = self.done == self._n_updates
        if self._parts is None:
            return
        if is_last or time.monotonic() - self._kept_at >= SECONDS_BETWEEN:
            self._parts.write(self._name, save(self._state(with_adam=not is_last)))
            self._kept_at = time.monotonic()

    def _state(self, with_adam: bool) -> dict[str, Tensor]:
        found = {_DONE: torch.tensor(self.done)}
        for number, values in enumerate(self._numbers):
            found[f"{number}"] = values.detach().contiguous()
            if with_adam:
                of_adam = self._adam.state[values].items()
                found |= {f"{number} {name}": one.contiguous() for name, one in of_adam}
        return found

    def _take_up(self, state: dict[str, Tensor]) -> None:
        self.done = int(state.pop(_DONE))
        with torch.no_grad():
            for number, values in enumerate(self._numbers):
                values.copy_(state.pop(f"{number}"))
        of_adam: dict[int, dict[str, Tensor]] = {}
        for key, one in state.items():
            place, name = key.split()
            of_adam.setdefault(int(place), {})[name] = one
        groups = self._adam.state_dict()["param_groups"]
        self._adam.load_state_dict({"state": of_adam, "param_groups": groups})
