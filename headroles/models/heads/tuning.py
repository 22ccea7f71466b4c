"""Fine-tuning of weights, and the weights of every head."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from transformers import PreTrainedModel, get_linear_schedule_with_warmup

from headroles.errors import ModelError
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.remaining import Head

GradientsOf: TypeAlias = Callable[[int, Sequence[Tensor]], tuple[Tensor, Sequence[Tensor | None]]]
"""Function from the number of an update's group and the weights to the loss and its gradients."""

_WARM_UP = 0.1
_LONGEST_GRADIENT = 1.0


@dataclass(frozen=True)
class TuningRecipe:
    """Recipe of training: AdamW, with a rate that rises over a tenth of the updates, then falls."""

    epochs: float
    learning_rate: float
    seed: int


def n_updates_of(recipe: TuningRecipe, n_groups: int) -> int:
    """Return the number of updates that `train_weights` makes."""
    return math.ceil(recipe.epochs * n_groups)


def weights_of_heads(sites: HeadSites) -> dict[Head, Tensor]:
    """Return all weights of every remaining head in a row: queries, keys, values and outputs.

    Keys and values that several heads share count for each of them. Queries and keys of low rank,
    which are not maps of single heads, are excluded.
    """
    found: dict[Head, Tensor] = {}
    for number, layer in enumerate(sites.layers):
        n_heads = len(layer.heads)
        if not n_heads:
            continue
        maps = (layer.query, layer.key, layer.value)
        parts = [one.weight for one in maps if one is not None] + [layer.output_weight]
        flat = [
            part.detach().flatten(1).repeat_interleave(n_heads // len(part), 0) for part in parts
        ]
        rows = torch.cat(flat, dim=1)
        found |= {(number, head): row for head, row in zip(layer.heads, rows, strict=True)}
    return found


def train_weights(
    model: PreTrainedModel,
    n_groups: int,
    gradients_of: GradientsOf,
    recipe: TuningRecipe,
) -> None:
    """Train all weights of ``model`` on groups of examples, in a new order every epoch.

    Each update uses the gradients of one group, whose number ``gradients_of`` gets, as the Trainer
    of transformers does. Dropout is on meanwhile. The program's random state is restored
    afterwards.

    Raises ModelError for weights that are not finite afterwards.
    """
    n_updates = n_updates_of(recipe, n_groups)
    weights = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=recipe.learning_rate, weight_decay=0, fused=True)
    schedule: Any = get_linear_schedule_with_warmup
    rates = schedule(optimizer, int(_WARM_UP * n_updates), n_updates)
    generator = torch.Generator()
    model.train()
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        for update in range(n_updates):
            epoch, place = divmod(update, n_groups)
            if place == 0:
                torch.empty((), dtype=torch.int64).random_()  # which a DataLoader draws
                generator.manual_seed(recipe.seed + epoch)
                order = torch.randperm(n_groups, generator=generator).tolist()
            _, gradients = gradients_of(order[place], weights)
            for one, gradient in zip(weights, gradients, strict=True):
                one.grad = gradient
            torch.nn.utils.clip_grad_norm_(weights, _LONGEST_GRADIENT)
            optimizer.step()
            rates.step()
    model.zero_grad()
    model.eval()  # type: ignore[no-untyped-call]
    if not all(torch.isfinite(one).all() for one in model.parameters()):
        raise ModelError(
            "weights are not finite after fine-tuning; lower the learning rate "
            f"({recipe.learning_rate:g}), and run the model in float32 (it ran in {model.dtype})"
        )
