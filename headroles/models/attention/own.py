"""Attention that a function computes: a user's own, saved arrays, or what a model returns.

Every batch is checked. Weights and code behind a user's function are unknown here, so everything
that needs them is rejected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles.arrays import IntArray
from headroles.encoding import pad
from headroles.errors import HeadRolesError, ModelError, ModelSupportError, UsageError
from headroles.memory import lacks_memory
from headroles.models.attention.reporting import (
    Run,
    attention_of_kind,
    check_not_causal,
    convolutions_without_padding,
    reads_tokens_alone,
    trial_inputs,
)
from headroles.models.families import Family
from headroles.models.reports import AllRead, Pass
from headroles.wording import with_type

OWN = "own"
"""Model type of attention that no transformers model computes."""
Inputs: TypeAlias = Mapping[str, Tensor]
OwnFunction: TypeAlias = Callable[[dict[str, IntArray]], Any]
"""Function from the pieces of a batch to its attention (batch, layers, heads, query, key), or to an
iterable over layers of (batch, heads, query, key). Pieces are ``input_ids``, ``attention_mask``
and, if the tokenizer makes them, ``token_type_ids``, each (batch, pieces), padded at the end.
"""
_ATTENTION, _LAYER = 5, 4  # dimensions
_TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 2e-2}
_FINE = 1e-3
"""Tolerance for sums of rows, and for weights with and without padding, in other precisions; the
padding of models may change less.
"""
_TRIAL = (["The", "old", "dog", "sleeps", "in", "the", "sun", "."], ["It", "rains", "."])


@dataclass(frozen=True, eq=False)
class OwnAttention:
    """Attention by a function of inputs and names of examples, to be read in place of a model's.

    ``source`` is its name in messages. ``digest`` identifies its outputs.
    """

    attend: Callable[[Inputs, Sequence[str]], Any]
    source: str
    device: torch.device
    heads: tuple[int, ...] = ()
    """Number of heads of each layer; empty before the trial."""
    digest: str = ""
    dtype = torch.float32

    def run(self, inputs: Inputs, this_pass: Pass) -> None:
        """Pass the layers of one batch to a pass, as `reports.run_pass` does with a model's."""
        try:
            for weights in self.layers(inputs, this_pass.names):
                this_pass.next_layer(weights.to(self.device))
        except AllRead:
            return
        raise ModelError(
            f"{self.source} gives {this_pass.layers_read} layers for {_batch(this_pass.names)}, "
            f"and gave {len(self.heads)} before; it must give all of them for every batch"
        )

    def layers(self, inputs: Inputs, names: Sequence[str] = ()) -> Iterator[Tensor]:
        """Yield the checked weights (batch, heads, query, key) of each layer; 0 at padding.

        Raises ModelError, with the name of the example, for values that are not attention.
        """
        try:
            for layer, weights in enumerate(self._steps(inputs, names)):
                yield self._checked(weights, layer, inputs["attention_mask"], names)
        except HeadRolesError:
            raise
        except Exception as error:  # of the user's function
            if lacks_memory(error):
                raise
            raise self._located(error, inputs, names) from error

    def check_alone(
        self, inputs: Inputs, names: Sequence[str] = (), tolerance: float = _FINE
    ) -> None:
        """Raise ModelSupportError if the second of two sequences has other weights alone."""
        n = int(inputs["attention_mask"][1].sum())
        together, alone = list(self.layers(inputs, names)), self.layers(_row(inputs, 1), names[1:])
        for layer, (weights, others) in enumerate(zip(together, alone, strict=False)):
            if not torch.allclose(weights[1:, :, :n, :n], others, rtol=0, atol=tolerance):
                raise ModelSupportError(
                    f"{self.source} gives other attention for {_batch(names[1:])} in layer {layer} "
                    "if another sentence is beside it, or in a second call; mask the padding of "
                    "the batch (attention_mask is 0), and run the model in evaluation mode"
                )

    def _steps(self, inputs: Inputs, names: Sequence[str]) -> Iterator[Tensor]:
        """Yield the layers as the function returns them."""
        given = self.attend(inputs, names)
        if hasattr(given, "shape"):
            attention = _as_tensor(given)
            if attention.dim() != _ATTENTION:
                raise self._misshapen(attention, "(batch, layers, heads, query, key)", names)
            given = attention.unbind(1)
        if not isinstance(given, Iterable):
            raise ModelError(
                f"{self.source} gives a value of type {type(given).__name__} for {_batch(names)}; "
                "it must give arrays, or an iterable over the layers"
            )
        yield from map(_as_tensor, given)

    def _located(self, error: Exception, inputs: Inputs, names: Sequence[str]) -> ModelError:
        """Return the error of a batch, located at the first example that alone also fails."""
        where = _batch(names)
        for row, name in enumerate(names if len(names) > 1 else ()):
            try:
                for _ in self._steps(_row(inputs, row), [name]):
                    pass
            except Exception as own:
                error, where = own, repr(name)
                break
        return ModelError(f"{self.source} raised an error for {where} ({with_type(error)})")

    def _misshapen(self, weights: Tensor, needed: str, names: Sequence[str]) -> ModelError:
        return ModelError(
            f"{self.source} gives an array of shape {tuple(weights.shape)} for {_batch(names)}; "
            f"{needed} is needed"
        )

    def _checked(self, given: Tensor, layer: int, mask: Tensor, names: Sequence[str]) -> Tensor:
        real = mask.bool().to(given.device)
        n, width = real.shape
        heads = self.heads[layer] if layer < len(self.heads) else given.shape[1:2].numel()
        if given.dim() != _LAYER or given.shape != (n, heads, width, width):
            needed = f"(batch, heads, query, key) = ({n}, {heads}, {width}, {width})"
            raise self._misshapen(given, f"in layer {layer} {needed}", names)
        weights = given.float().where(real[:, None, :, None] & real[:, None, None, :], 0)
        sums, tolerance = weights.sum(-1), _TOLERANCE.get(given.dtype, _FINE)
        is_row = (sums - 1).abs() <= tolerance  # false for NaN
        wrong = (~is_row | (weights < 0).any(-1)) & real[:, None]
        if wrong.any():
            row, head, query = wrong.nonzero()[0].tolist()
            raise ModelError(
                f"{self.source} gives no attention for {_batch(names[row : row + 1])}: in layer "
                f"{layer}, head {head}, the weights of piece {query} "
                f"{_finding(weights[row, head, query], sums[row, head, query])}; each row must be "
                "0 or more and sum to 1 over the pieces that are no padding"
            )
        return weights


def _finding(weights: Tensor, total: Tensor) -> str:
    if not torch.isfinite(weights).all():
        return "hold NaN or infinity"
    if (weights < 0).any():
        return f"are {float(weights.min()):.3g} at least"
    advice = ", as where a sink that is no token takes a part: divide rows by their sums"
    return f"sum to {float(total):.4g}{advice if total < 1 else ''}"


def _batch(names: Sequence[str]) -> str:
    others = f" and the {len(names) - 1} others of its batch" if len(names) > 1 else ""
    return f"{names[0]!r}{others}" if names else "a batch"


def _as_tensor(given: Any) -> Tensor:
    if isinstance(given, Tensor):
        return given.detach()
    array = np.asarray(given)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _row(inputs: Inputs, row: int) -> dict[str, Tensor]:
    """Return one example of a batch without its padding."""
    n = int(inputs["attention_mask"][row].sum())
    return {name: values[row : row + 1, :n] for name, values in inputs.items()}


def function_attention(
    function: OwnFunction,
    tokenizer: PreTrainedTokenizerBase,
    with_token_types: bool,
    device: torch.device,
) -> OwnAttention:
    """Make attention from a function, whose layers and heads two trial sentences show.

    Raises ModelError if it returns no attention, and ModelSupportError if the attention of a
    sentence depends on others in its batch.
    """

    def attend(inputs: Inputs, names: Sequence[str]) -> Any:
        return function({name: values.cpu().numpy() for name, values in inputs.items()})

    batch = tokenizer(
        list(_TRIAL),
        is_split_into_words=True,
        return_token_type_ids=with_token_types,
        verbose=False,
    )
    columns = {"input_ids": batch["input_ids"]}
    columns["attention_mask"] = [[1] * len(row) for row in batch["input_ids"]]
    if "token_type_ids" in batch:
        columns["token_type_ids"] = batch["token_type_ids"]
    fillers = {"input_ids": tokenizer.pad_token_id or 0}
    inputs = {
        name: torch.from_numpy(pad([np.array(row) for row in rows], fillers.get(name, 0)))
        for name, rows in columns.items()
    }
    names = [" ".join(words) for words in _TRIAL]
    own = OwnAttention(attend, f"the function {name_of(function)}", device)
    tried = tried_out(own, inputs, names)
    tried.check_alone(inputs, names)
    return tried


@contextmanager
def returned_attention(base: PreTrainedModel, family: Family) -> Iterator[Run]:
    """Open the attentions that a model returns; restore the model afterwards.

    The weights of all layers of a batch are in memory at once. Raises ModelSupportError for a model
    that returns no attention weights, or weights that depend on the padding of a batch.
    """

    def attend(inputs: Inputs, names: Sequence[str]) -> Iterable[Tensor]:
        found: Any = getattr(base(**inputs, output_attentions=True), "attentions", None)
        if not found or not all(isinstance(layer, Tensor) for layer in found):
            raise ModelSupportError(
                f"{family.name} has no attention interface that can be read, and returns no "
                "attentions with output_attentions=True; run `headroles models` for the families "
                "that can be scored"
            )
        if family.returns_scores:
            return (torch.softmax(layer, dim=-1, dtype=torch.float32) for layer in found)
        return cast(Iterable[Tensor], found)

    def run(inputs: Inputs, this_pass: Pass) -> None:  # checks would wait for the device
        with suppress(AllRead):
            for weights in attend(inputs, ()):
                this_pass.next_layer(weights.detach())

    own = OwnAttention(attend, family.name, base.device)
    with ExitStack() as stack:
        stack.enter_context(attention_of_kind(base, "eager"))
        stack.enter_context(convolutions_without_padding(base, family))
        trial = trial_inputs(base, 2)
        ids, mask = trial["input_ids"], trial["attention_mask"]
        mask[1, ids.shape[1] // 2 + 1 :] = 0
        ids[mask == 0] = getattr(base.config, "pad_token_id", None) or 0
        with reads_tokens_alone(family):
            attend(trial, ())
        try:
            own.check_alone(trial, (), _TOLERANCE.get(base.dtype, 1e-4))
        except ModelError as error:
            raise ModelSupportError(str(error)) from error
        yield run


def tried_out(own: OwnAttention, inputs: Inputs, names: Sequence[str]) -> OwnAttention:
    """Return ``own`` with its layers and heads counted, and its digest; errors as of `layers`."""
    digest = hashlib.sha256(own.digest.encode())
    heads: list[int] = []
    for layer, weights in enumerate(own.layers(inputs, names)):
        heads.append(weights.shape[1])
        digest.update(weights.cpu().contiguous().numpy().tobytes())
        check_not_causal(layer, weights, own.source)
    if len(set(heads)) != 1 or not heads[0]:
        raise ModelError(
            f"{own.source} gives layers with {heads} heads for {_batch(names)}; it must give one "
            "layer or more, with as many heads in each"
        )
    return replace(own, heads=tuple(heads), digest=digest.hexdigest())


def lacks_weights(given: Any) -> UsageError:
    """Make the error for uses that need more than attention."""
    return UsageError(
        f"{given if isinstance(given, str) else name_of(given)} gives attention weights alone; "
        "norms, tasks, pruning and all that needs the model itself take a model of transformers"
    )


def name_of(function: Any) -> str:
    """Return the name of saved attention, or that of a function with its module."""
    if isinstance(getattr(function, "name", None), str):
        return str(function.name)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or '__main__'}:{name}"
