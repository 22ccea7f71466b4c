"""Attention that a user's function computes, or that was saved: checked, and read like a model's.

Weights and code of the model are unknown here, so everything that needs them is rejected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from headroles.arrays import IntArray
from headroles.encoding import pad
from headroles.errors import HeadRolesError, ModelError, ModelSupportError, UsageError
from headroles.memory import lacks_memory
from headroles.models.attention.reporting import check_not_causal
from headroles.models.reports import AllRead, Pass
from headroles.wording import with_type

OWN = "own"
"""Model type of attention that no transformers model computes."""
Pieces: TypeAlias = dict[str, IntArray]
OwnFunction: TypeAlias = Callable[[Pieces], Any]
"""Function from the pieces of a batch to its attention (batch, layers, heads, query, key), or to an
iterable over layers of (batch, heads, query, key). Pieces are ``input_ids``, ``attention_mask``
and, if the tokenizer makes them, ``token_type_ids``, each (batch, pieces), padded at the end.
"""
_ATTENTION, _LAYER = 5, 4  # dimensions
_TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 2e-2}
_FINE = 1e-3
"""Tolerance for sums of rows, and for weights with and without padding, in other precisions."""
_TRIAL = (["The", "old", "dog", "sleeps", "in", "the", "sun", "."], ["It", "rains", "."])


@dataclass(frozen=True, eq=False)
class OwnAttention:
    """Replacement of a model; ``attend`` gets the names of examples beside their pieces.

    ``source`` is its name in messages. ``digest`` identifies its outputs.
    """

    attend: Callable[[Pieces, Sequence[str]], Any]
    source: str
    device: torch.device
    n_layers: int = 0
    n_heads: int = 0
    digest: str = ""
    dtype = torch.float32

    def run(self, inputs: Mapping[str, Tensor], this_pass: Pass) -> None:
        """Pass the layers of one batch to a pass, as `reporting.run_pass` does with a model's."""
        pieces = {name: values.cpu().numpy() for name, values in inputs.items()}
        try:
            for weights in self.layers(pieces, this_pass.names):
                this_pass.next_layer(weights.to(self.device))
        except AllRead:
            return
        raise ModelError(
            f"{self.source} gives {this_pass.layers_read} layers for {_batch(this_pass.names)}, "
            f"and gave {self.n_layers} before; it must give all of them for every batch"
        )

    def layers(self, pieces: Pieces, names: Sequence[str]) -> Iterator[Tensor]:
        """Yield the checked weights (batch, heads, query, key) of each layer; 0 at padding.

        Raises ModelError, with the name of the example, for values that are not attention.
        """
        try:
            for layer, weights in enumerate(self._steps(pieces, names)):
                yield self._checked(weights, layer, pieces["attention_mask"], names)
        except HeadRolesError:
            raise
        except Exception as error:  # of the user's function
            if lacks_memory(error):
                raise
            raise self._located(error, pieces, names) from error

    def _steps(self, pieces: Pieces, names: Sequence[str]) -> Iterator[Tensor]:
        """Yield the layers as the function returns them."""
        given = self.attend(dict(pieces), names)
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

    def _located(self, error: Exception, pieces: Pieces, names: Sequence[str]) -> ModelError:
        """Return the error of a batch, located at the first example that alone also fails."""
        where = _batch(names)
        for row, name in enumerate(names if len(names) > 1 else ()):
            try:
                for _ in self._steps(_alone(pieces, row), [name]):
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

    def _checked(self, given: Tensor, layer: int, mask: IntArray, names: Sequence[str]) -> Tensor:
        real = torch.from_numpy(mask).bool().to(given.device)
        n, width = real.shape
        heads = self.n_heads or (given.shape[1] if given.dim() == _LAYER else 0)
        if given.shape != (n, heads, width, width) or not heads:
            needed = f"(batch, heads, query, key) = ({n}, {heads or 'heads'}, {width}, {width})"
            raise self._misshapen(given, f"in layer {layer} {needed}", names)
        weights = given.float().where(real[:, None, :, None] & real[:, None, None, :], 0)
        sums, tolerance = weights.sum(-1), _TOLERANCE.get(given.dtype, _FINE)
        is_row = (sums - 1).abs() <= tolerance  # false for NaN
        wrong = (~is_row | (weights < 0).any(-1)) & real[:, None]
        if wrong.any():
            row, head, query = wrong.nonzero()[0].tolist()
            raise ModelError(
                f"{self.source} gives no attention for {names[row]!r}: in layer {layer}, head "
                f"{head}, the weights of piece {query} "
                f"{_finding(weights[row, head, query], sums[row, head, query])}; each row must be "
                "0 or more and sum to 1 over the pieces that are no padding"
            )
        return weights


def _finding(weights: Tensor, total: Tensor) -> str:
    if not torch.isfinite(weights).all():
        return "hold NaN or infinity"
    if (weights < 0).any():
        return f"are {float(weights.min()):.3g} at least"
    return f"sum to {float(total):.4g}"


def _batch(names: Sequence[str]) -> str:
    others = f" and the {len(names) - 1} others of its batch" if len(names) > 1 else ""
    return f"{names[0]!r}{others}" if names else "a batch"


def _as_tensor(given: Any) -> Tensor:
    if isinstance(given, Tensor):
        return given.detach()
    array = np.asarray(given)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _alone(pieces: Pieces, row: int) -> Pieces:
    """Return one example of a batch without its padding."""
    n = int(pieces["attention_mask"][row].sum())
    return {name: values[row : row + 1, :n] for name, values in pieces.items()}


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
    own = OwnAttention(
        lambda pieces, names: function(pieces), f"the function {name_of(function)}", device
    )
    batch = tokenizer(
        list(_TRIAL),
        is_split_into_words=True,
        return_token_type_ids=with_token_types,
        verbose=False,
    )
    ids = [np.array(row) for row in batch["input_ids"]]
    pieces = {
        "input_ids": pad(ids, tokenizer.pad_token_id or 0),
        "attention_mask": pad([np.ones_like(row) for row in ids], 0),
    }
    if "token_type_ids" in batch:
        pieces["token_type_ids"] = pad([np.array(row) for row in batch["token_type_ids"]], 0)
    names = [" ".join(words) for words in _TRIAL]
    tried = tried_out(own, pieces, names)
    together, n = list(tried.layers(pieces, names)), len(ids[1])
    alone = tried.layers(_alone(pieces, 1), names[1:])
    for layer, (weights, others) in enumerate(zip(together, alone, strict=False)):
        tolerance = _TOLERANCE.get(weights.dtype, _FINE)
        if not torch.allclose(weights[1:, :, :n, :n], others, rtol=0, atol=tolerance):
            raise ModelSupportError(
                f"{own.source} gives other attention for {names[1]!r} in layer {layer} if another "
                "sentence is beside it, or in a second call; mask the padding of the batch "
                "(attention_mask is 0), and run the model in evaluation mode"
            )
    return tried


def tried_out(own: OwnAttention, pieces: Pieces, names: Sequence[str]) -> OwnAttention:
    """Return ``own`` with its layers and heads counted, and its digest; errors as of `layers`."""
    digest = hashlib.sha256(own.digest.encode())
    heads: list[int] = []
    for layer, weights in enumerate(own.layers(pieces, names)):
        heads.append(weights.shape[1])
        digest.update(weights.cpu().contiguous().numpy().tobytes())
        check_not_causal(layer, weights, own.source)
    if len(set(heads)) != 1:
        raise ModelError(
            f"{own.source} gives layers with {heads} heads for {_batch(names)}; it must give one "
            "layer or more, with as many heads in each"
        )
    return replace(own, n_layers=len(heads), n_heads=heads[0], digest=digest.hexdigest())


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
