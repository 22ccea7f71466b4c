"""Fine-tuning of weights by the Trainer of transformers, and the weights of every head."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils.import_utils import is_accelerate_available

from headroles.errors import ModelError, UsageError
from headroles.models.families import quiet_transformers
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.remaining import Head

GradientsOf: TypeAlias = Callable[[int, Sequence[Tensor]], tuple[Tensor, Sequence[Tensor | None]]]
"""Function from the number of an update's group and the weights to the loss and its gradients."""

_WARM_UP = 0.1


@dataclass(frozen=True)
class TuningRecipe:
    """Recipe of training: AdamW, with a rate that rises over a tenth of the updates, then falls."""

    epochs: float
    learning_rate: float
    seed: int


def check_trainer() -> None:
    """Raise UsageError if the Trainer cannot run."""
    if not is_accelerate_available():
        raise UsageError(
            "fine-tuning needs accelerate, which is not installed or too old; get it with: "
            "pip install 'accelerate>=1.14'"
        )


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

    Each update uses the gradients of one group, whose number ``gradients_of`` gets. Dropout is on
    meanwhile. The program's random state is restored afterwards.

    Raises:
        UsageError: without accelerate.
        ModelError: weights that are not finite afterwards.
    """
    check_trainer()
    device = model.device
    with TemporaryDirectory() as folder, quiet_transformers(), _restored_random_state():
        _make_trainer(model, n_groups, gradients_of, recipe, folder).train()
    model.to(device)  # type: ignore[arg-type]
    model.eval()  # type: ignore[no-untyped-call]
    if not all(torch.isfinite(weights).all() for weights in model.parameters()):
        raise ModelError(
            "weights are not finite after fine-tuning; lower the learning rate "
            f"({recipe.learning_rate:g}), and run the model in float32 (it ran in {model.dtype})"
        )


def _make_trainer(
    model: PreTrainedModel,
    n_groups: int,
    gradients_of: GradientsOf,
    recipe: TuningRecipe,
    folder: str,
) -> Any:
    from transformers import PrinterCallback, Trainer, TrainingArguments

    class ByGroups(Trainer):
        def training_step(self, model: Any, inputs: dict[str, Any], *_: Any) -> Tensor:
            model.train()
            weights = [one for one in model.parameters() if one.requires_grad]
            loss, gradients = gradients_of(inputs["group"], weights)
            for one, gradient in zip(weights, gradients, strict=True):
                one.grad = gradient
            return loss

        def floating_point_ops(self, inputs: Any) -> int:
            return 0

    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=recipe.epochs,
        learning_rate=recipe.learning_rate,
        per_device_train_batch_size=1,  # the items of the data set are groups
        warmup_steps=int(_WARM_UP * n_updates_of(recipe, n_groups)),
        seed=recipe.seed,
        use_cpu=model.device.type == "cpu",
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # hooks belong to this very model, not to copies
    trainer = ByGroups(
        model=model,
        args=arguments,
        train_dataset=list(range(n_groups)),
        data_collator=lambda items: {"group": items[0]},
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


@contextmanager
def _restored_random_state() -> Iterator[None]:
    """Restore the random state after the block, which may set seeds."""
    plain, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(plain)
        np.random.set_state(legacy)  # noqa: NPY002
