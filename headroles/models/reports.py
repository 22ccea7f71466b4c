"""Forward passes whose attention weights are reported, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass

from torch import Tensor
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError

OnLayer = Callable[[int, Tensor], None]
"""Function called with the layer, from 0, and its weights (batch, heads, query, key). Rows of real
queries sum to 1 over real keys; rows of padding are undefined.
"""


class AllRead(Exception):
    """Exception that ends a forward pass after the last values that are read from it."""


@dataclass
class Pass:
    """Forward pass in progress; ``n_layers`` is None in a trial run, which counts the layers."""

    on_layer: OnLayer
    n_layers: int | None
    layers_read: int = 0
    names: Sequence[str] = ()
    """Names of the examples of the batch, if needed."""

    def next_layer(self, weights: Tensor) -> None:
        """Pass on the weights of the next layer; stop the forward pass after the last one."""
        self.on_layer(self.layers_read, weights)
        self.layers_read += 1
        if self.layers_read == self.n_layers:
            raise AllRead


current_pass: ContextVar[Pass | None] = ContextVar("headroles_pass", default=None)


def run_pass(model: PreTrainedModel, inputs: Mapping[str, Tensor], this_pass: Pass) -> None:
    """Run a model whose attention reports, up to its last attention weights."""
    token = current_pass.set(this_pass)
    try:
        with suppress(AllRead):
            model(**inputs)
    finally:
        current_pass.reset(token)


def report_weights(weights: Tensor) -> None:
    """Pass the weights of the next layer to the current pass, if there is one."""
    this_pass = current_pass.get()
    if this_pass is not None:
        this_pass.next_layer(weights)


def check_not_causal(layer: int, weights: Tensor, source: str) -> None:
    """Raise ModelSupportError if no token of a layer attends to a later one, as in decoders."""
    if weights.numel() and weights.shape[-1] > 1 and not weights.triu(1).any():
        raise ModelSupportError(
            f"{source}: tokens attend to earlier tokens alone (layer {layer}); headroles scores "
            "encoders"
        )
