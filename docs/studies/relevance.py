"""Relevance of heads beside estimators of importance: which predicts the loss without a head?

python -m docs.studies.relevance MODEL TASK [--examples 200] [--splits 200]

Voita et al. (2019) rank heads by layer-wise relevance propagation. Relevance is propagated here by
the rules of AttnLRP (Achtibat et al. 2024), which are a gradient with changed backward passes: the
deviation in a layer norm is a constant, an activation f(x) is x times the constant f(x) / x, and a
product of two activations gives each half. The relevance of a head is the derivative of the loss by
the gate of the head, with these rules. Prints rank correlations over heads with the rise of the
mean loss without each head and with the size of the change, as `removed estimators` does: on the
same examples, and in brackets on other ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from docs.studies.removed import RISE, SIZE, correlation, halves
from docs.studies.simulations import markdown
from headroles.arrays import FloatArray
from headroles.models.attention.interface import attention_of_kind
from headroles.studies.importance.importance import ESTIMATORS, values_of
from headroles.studies.removals import without_each
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import TaskRun, open_run

RULES = "headroles_relevance"
ACTIVATIONS = (
    "GELUActivation",
    "GELU",
    "SiLU",
    "SiLUActivation",
    "ReLU",
    "NewGELUActivation",
    "Tanh",
)
RELEVANCE = ("relevance", "size of relevance")


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("task", type=Path)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--splits", type=int, default=200)
    given = parser.parse_args()
    torch.set_num_threads(1)
    run = open_run(given.model, given.task, TaskOptions(examples=given.examples))
    estimates, changes = estimates_of(run), changes_of(run)
    rows = [row_of(name, values, changes, given.splits) for name, values in estimates.items()]
    print(markdown(rows))


def estimates_of(run: TaskRun) -> dict[str, FloatArray]:
    """Return (examples, heads) of every estimator, and of relevance."""
    derivatives = run.derivatives()
    estimates = {name: values_of(derivatives, name) for name in ESTIMATORS}
    with relevance_rules(run.encoder.model):
        relevant = values_of(run.derivatives(), "signed")
    estimates |= dict(zip(RELEVANCE, (relevant, np.abs(relevant)), strict=True))
    return {name: values.reshape(len(values), -1) for name, values in estimates.items()}


def changes_of(run: TaskRun) -> dict[str, FloatArray]:
    """Return the changes (examples, heads) of the loss without each head, and their sizes."""
    sets = [[], *([head] for head in run.heads)]
    losses = run.outcomes(without_each(sets, run.shape)).losses
    changes = losses[:, 1:] - losses[:, :1]
    return {RISE: changes, SIZE: np.abs(changes)}


def row_of(
    name: str, values: FloatArray, changes: dict[str, FloatArray], n_splits: int
) -> dict[str, object]:
    """Correlate an estimator with the rise and the size of the change, in brackets elsewhere."""
    row: dict[str, object] = {"estimator": name}
    for target, those in changes.items():
        across = [
            correlation(values[one], those[other]) for one, other in halves(len(those), n_splits)
        ]
        row[target] = f"{correlation(values, those):.2f} ({np.mean(across):.2f})"
    return row


# The rules. Each leaves what is computed as it is, and changes what is passed back.


@contextmanager
def relevance_rules(model: PreTrainedModel) -> Iterator[None]:
    """Pass relevance back through attention, layer norms and activations of a model."""
    AttentionInterface.register(RULES, attend)
    AttentionMaskInterface.register(RULES, eager_mask)
    before = []
    for module in model.modules():
        rule: Any = None
        if isinstance(module, nn.LayerNorm):
            rule = normalise
        elif type(module).__name__ in ACTIVATIONS:
            rule = activated(module.forward)
        if rule is not None:
            before.append((module, module.forward))
            module.forward = rule.__get__(module)
    try:
        with attention_of_kind(model, RULES):
            yield
    finally:
        for module, forward in before:
            module.forward = forward


def normalise(self: nn.LayerNorm, inputs: Tensor) -> Tensor:
    """Normalise, with a deviation that is a constant."""
    centred = inputs - inputs.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + self.eps).sqrt().detach()
    outputs = centred / deviation * self.weight
    return outputs if self.bias is None else outputs + self.bias


def activated(function: Callable[[Tensor], Tensor]) -> Callable[[nn.Module, Tensor], Tensor]:
    """Return the rule of an activation: the input times a constant."""

    def rule(self: nn.Module, inputs: Tensor) -> Tensor:
        outputs = function(inputs).detach()
        # where the input is 0, the constant is the slope there, which no output needs
        shares = torch.where(inputs == 0, 0.5, outputs / inputs.where(inputs != 0, 1)).detach()
        return inputs * shares

    return rule


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attend, where each of two factors passes half of the relevance of their product."""
    scores = half(query) @ half(key).transpose(2, 3) * (scaling or query.shape[-1] ** -0.5)
    if attention_mask is not None:
        scores = scores + attention_mask
    mixed = half(scores.softmax(-1)) @ half(value)
    return mixed.transpose(1, 2).contiguous(), None


def half(values: Tensor) -> Tensor:
    """Return the same values, which pass back half of what reaches them."""
    return values / 2 + (values / 2).detach()


if __name__ == "__main__":
    main()
