"""Gradients of a mean over examples that run in several batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from headroles.passes.loop import B, Passes


def gradients_of_mean(
    passes: Passes[B],
    batches: Sequence[B],
    losses_of: Callable[[B], Tensor],
    leaves: Sequence[Tensor],
) -> tuple[Tensor, list[Tensor | None]]:
    """Return the mean loss of all examples, and its gradient by each of ``leaves``.

    Each batch counts by its number of examples: up to rounding, the result is that of one large
    batch. The gradient is None for a leaf that the losses do not depend on. Raises ModelError as
    `Passes.run`.
    """
    n_examples = sum(len(batch.rows) for batch in batches)

    def read(batch: B) -> tuple[Tensor, Sequence[Tensor | None]]:
        loss = losses_of(batch).mean() * (len(batch.rows) / n_examples)
        return loss.detach(), torch.autograd.grad(loss, leaves, allow_unused=True)

    parts = passes.run(batches, read)
    _, (total, gradients) = next(parts)
    sums = list(gradients)
    for _, (loss, found) in parts:
        total = total + loss
        sums = [_sum(one, other) for one, other in zip(sums, found, strict=True)]
    return total, sums


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return other if one is None else one if other is None else one + other
