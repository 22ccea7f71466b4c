"""Attention as others store it: tensors and arrays of every type, outputs of models, padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from headroles.encoding import Alignment
from headroles.errors import UsageError

_ATTENTION = 4  # dimensions: layers, heads, query, key
_WIDEST = 8  # bytes of a number that PyTorch has


def as_tensor(values: Any) -> Tensor:
    """Return numbers of any library and type as a tensor without gradient, where they lie.

    Raises TypeError for what holds no real numbers, and ValueError for lists of unequal lengths.
    """
    if isinstance(values, Tensor):
        tensor = values.detach()
        tensor = tensor if tensor.layout == torch.strided else tensor.to_dense()
        if tensor.is_complex():
            raise TypeError("it holds complex numbers")
        return tensor
    array = np.asarray(values)
    if array.dtype.name == "bfloat16":  # of JAX, which NumPy calls no number
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    if array.dtype.kind not in "fiub":
        raise TypeError(f"it holds values of type {array.dtype}")
    kind = array.dtype.newbyteorder("=") if array.dtype.itemsize <= _WIDEST else np.dtype("f8")
    array = array.astype(kind, copy=not array.flags.writeable)
    return torch.from_numpy(array)


def attentions_of(output: Any) -> Any:
    """Return the attentions of the outputs of a model of transformers; other values themselves."""
    if not hasattr(output, "attentions"):
        return output
    if output.attentions is None:
        raise TypeError("it has no attentions: call the model with output_attentions=True")
    return output.attentions


def as_weights(array: Any) -> Tensor:
    """Return the attention of a sentence (layers, heads, query, key) on the CPU.

    It may be a sequence of layers, and a batch of one sentence: ``outputs.attentions`` as it is, or
    stacked. Raises TypeError and ValueError for what holds no numbers.
    """
    array = attentions_of(array)
    is_sequence = isinstance(array, list | tuple)
    if is_sequence and array and all(hasattr(layer, "shape") for layer in array):
        weights = torch.stack([as_tensor(layer).cpu() for layer in array])
    else:
        weights = as_tensor(array).cpu()
    if weights.dim() == _ATTENTION + 1 and 1 in weights.shape[:2]:
        weights = weights.squeeze(0 if weights.shape[0] == 1 else 1)
    return weights


def sentences_of_batch(words: Any, n: int) -> Any:
    """Return the attention of each of ``n`` sentences, if ``words`` has it layer by layer.

    Other values are returned as they are. Raises UsageError if layers and sentences are as many.
    """
    layers = attentions_of(words)
    is_by_layer = (
        isinstance(layers, tuple)
        and all(isinstance(layer, Tensor) and layer.dim() == _ATTENTION for layer in layers)
        and {len(layer) for layer in layers} == {n}
    )
    if not is_by_layer:
        return layers
    if len(layers) == n > 1:
        raise UsageError(
            f"the arrays are {n} tensors of {n} entries each, which may be layers or sentences; "
            "give a list with one (layers, heads, query, key) for each sentence"
        )
    return [torch.stack([layer[row] for layer in layers]) for row in range(n)]


def real_pieces(weights: Tensor, words: Alignment) -> slice:
    """Return the place of the pieces that are no padding, by the words of all pieces.

    Padding is at an end, of no word, and no piece of the sentence attends to it in any layer or
    head. A special token beside the words is part of the sentence also if it alone attends to
    itself.
    """
    n, of_words = len(words), [k for k, word in enumerate(words) if word is not None]
    if weights.dim() != _ATTENTION or weights.shape[-2:] != (n, n) or not of_words:
        return slice(0, n)
    attended = (weights > 0).flatten(0, 1).any(0).numpy()  # false for NaN
    first, last = of_words[0], of_words[-1]
    real = np.zeros(n, dtype=bool)
    real[first : last + 1] = True
    for beside in (first - 1, last + 1):
        if 0 <= beside < n:
            real[beside] = attended[beside, beside]
    while (reached := real | attended[real].any(0)).sum() > real.sum():
        real = reached
    places = np.flatnonzero(real)
    return slice(int(places[0]), int(places[-1]) + 1)


def cut_to(weights: Tensor, n: int) -> Tensor:
    """Return the weights among ``n`` pieces, if all others are padding at one end.

    Weights of which that is not so are returned as they are.
    """
    width = weights.shape[-1] if weights.dim() == _ATTENTION else n
    for start in (0, width - n) if width > n else ():
        rows = weights[..., start : start + n, :]
        inside = rows[..., start : start + n]
        beyond = (rows > 0).sum() > (inside > 0).sum()
        if not beyond and (inside > 0).any(-1).all():
            return inside
    return weights


def pieces_alone(weights: Tensor) -> int:
    """Count the pieces whose rows have any weight, to tell them from rows of padding."""
    if weights.dim() != _ATTENTION:
        return weights.shape[-1:].numel()
    with_weight = (weights > 0).flatten(0, 1).any(0).any(-1)
    return int(with_weight.sum()) or weights.shape[-1]
