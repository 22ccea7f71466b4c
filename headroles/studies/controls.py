"""Controls: a corpus with permuted words; models with permuted weights, moved heads, or noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from headroles.corpus import Corpus, Sentence, Skipped
from headroles.models.heads.shuffling import shuffle_heads

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_OF_TREE = "deps"
"""The annotation that belongs to the tree rather than to the words."""


def with_permuted_words(corpus: Corpus, seed: int) -> Corpus:
    """Return the corpus with the words of each sentence in random order.

    A tree keeps its shape and labels, a word its annotations: an arc joins other words at the same
    two places. The order depends on the seed and the sentence alone.
    """

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for sentence in corpus.read(skipped):
            text = "\0".join([sentence.document, sentence.id, *sentence.words])
            rng = np.random.default_rng([seed, *text.encode()])
            order = rng.permutation(len(sentence.words)).tolist()
            columns = {
                name: column if name == _OF_TREE else tuple(column[place] for place in order)
                for name, column in sentence.annotations.items()
            }
            words = tuple(sentence.words[place] for place in order)
            yield replace(sentence, words=words, annotations=columns)

    return replace(corpus, read=read)


def with_permuted_weights(
    model: PreTrainedModel, seed: int, chosen: Callable[[str], bool] = bool
) -> PreTrainedModel:
    """Return a copy of the model with the entries of each weight matrix in random order.

    Matrices keep their sizes and distributions of weights; vectors (biases, layer norms) stay as
    they are. A matrix that several layers share is permuted once. ``chosen`` tells which matrices
    are permuted, by name; by default all.
    """

    def permute(weights: Tensor, generator: torch.Generator) -> Tensor:
        order = torch.randperm(weights.numel(), generator=generator).to(weights.device)
        return weights.flatten()[order].view_as(weights)

    return _changed(model, seed, permute, chosen)


def with_shuffled_heads(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """Return a copy of the model with all heads in random order over all layers.

    Each head is one of the model, in a layer that it was not trained for: what single heads do by
    themselves stays, what they learnt to do together goes. Raises ModelSupportError as
    `shuffle_heads`.
    """
    copy = deepcopy(model)
    shuffle_heads(copy, seed)
    return copy


def with_noise(model: PreTrainedModel, share: float, seed: int) -> PreTrainedModel:
    """Return a copy of the model with normal noise in each weight matrix.

    The root mean square of the noise is the same share of that of the matrix in all layers.
    """

    def add(weights: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.randn(weights.shape, generator=generator).to(weights)
        return weights + share * weights.square().mean().sqrt() * noise

    return _changed(model, seed, add)


def change_of_weights(model: PreTrainedModel, other: PreTrainedModel) -> float:
    """Return the root mean square of the change of weight matrices, as a share of the weights.

    Infinite for models of other parameters.
    """
    before, after = ({k: v.detach().cpu() for k, v in _matrices(m).items()} for m in (model, other))
    if {k: v.shape for k, v in before.items()} != {k: v.shape for k, v in after.items()}:
        return float("inf")
    moved = sum(float((v - after[k]).double().square().sum()) for k, v in before.items())
    return float(np.sqrt(moved / sum(float(v.double().square().sum()) for v in before.values())))


def _changed(
    model: PreTrainedModel,
    seed: int,
    make: Callable[[Tensor, torch.Generator], Tensor],
    chosen: Callable[[str], bool] = bool,
) -> PreTrainedModel:
    """Return a copy of the model with new values in the chosen weight matrices."""
    copy = deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weights in _matrices(copy).items():
            if chosen(name):
                weights.copy_(make(weights, generator))
    return copy


def _matrices(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return the weight matrices of a model, in the order of their names."""
    module: Any = model
    matrices = {name: values for name, values in module.named_parameters() if values.ndim > 1}
    return dict(sorted(matrices.items()))
