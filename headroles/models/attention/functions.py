"""Attention by a function in place of a model's: a user's own, or a reader of saved arrays.

Every batch is checked. Weights and code behind such attention are unknown, so everything that needs
them is rejected.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from headroles.arrays import IntArray
from headroles.corpus import ROOT, Example, Sentence
from headroles.encoding import (
    DECODER_INPUTS,
    PAIR_MASK,
    Alignment,
    ExampleEncoder,
    PairEncoder,
    Targets,
    collate,
    words_of_pieces,
)
from headroles.errors import HeadRolesError, ModelError, ModelSupportError, UsageError, lacks_memory
from headroles.models.attention.interface import Inputs, Pass
from headroles.models.attention.stored import (
    as_tensor,
    as_weights,
    attentions_of,
    cut_to,
    pieces_alone,
    real_pieces,
)
from headroles.models.options import CROSS, DECODER, ENCODER
from headroles.storage import check_regular
from headroles.wording import in_one_line, listed, with_type

FORMATS = (".npz", ".safetensors")
AttentionFunction: TypeAlias = Callable[[dict[str, IntArray]], Any]
"""Function from the pieces of a batch to its attention (batch, layers, heads, query, key), or to an
iterable over layers of (batch, heads, query, key). Pieces are ``input_ids``, ``attention_mask``
and, if the tokenizer makes them, ``token_type_ids``, each (batch, pieces), padded at the end; of a
bitext also ``decoder_input_ids`` and ``decoder_attention_mask``, the inputs of a decoder.
"""
_ATTENTION, _LAYER, _SAVED = 5, 4, 4  # dimensions
TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 2e-2}
_NO_LIMIT = 10**9
"""A number of tokens that no trial has."""
_FINE = 1e-3
"""Tolerance for sums of rows, and for weights with and without padding, in other precisions; the
padding of models may change less.
"""
_TRIAL = ("The old dog sleeps in the sun .", "It rains .")
_TARGETS_OF_TRIAL = ("An old dog sleeps .", "It rains")
"""Targets of a trial differ in length from their sources, so that queries are told from keys."""


@dataclass(frozen=True, eq=False)
class SavedAttention:
    """Attention of sentences, by their ids; use it in place of a model.

    Args:
        arrays: for each sentence weights (layers, heads, pieces, pieces), rows being queries, each
            with a sum of 1, or ``outputs.attentions`` as a model gives it; a mapping, or an
            ``.npz`` or ``.safetensors`` file with an array named after each sentence.
        alignment: the word of each piece. For each sentence a list with the number of its word,
            from 0, for each piece, None for a special token (``word_ids`` of a fast tokenizer); or
            the tokenizer itself, loaded or as a folder or hub id.

    Padding, which no piece of the sentence attends to, is cut off: arrays of a whole batch and its
    ``word_ids`` fit as they are. Arrays are read, and defective ones rejected with a ModelError,
    when they are scored.

    >>> uniform = np.full((1, 2, 4, 4), 1 / 4)  # one layer of two heads, four pieces
    >>> saved = SavedAttention({"s-1": uniform}, {"s-1": [None, 0, 1, None]})
    >>> saved.name
    'saved attention'
    """

    arrays: Mapping[str, Any] | str | Path
    alignment: Mapping[str, Any] | PreTrainedTokenizerBase | str | Path | None = None

    @property
    def name(self) -> str:
        """Name of its source, for messages."""
        return str(self.arrays) if isinstance(self.arrays, str | Path) else "saved attention"

    @property
    def digest(self) -> str:
        """Digest of all arrays and of the words of their pieces."""
        words = ""
        if self.words is not None:
            listing = str(list(self.words.items()))
            words = hashlib.sha256(listing.encode()).hexdigest()
        return f"{self._stored[2]} {words}"

    @cached_property
    def words(self) -> Mapping[str, Alignment] | None:
        """The word of each piece, padding included; None if a tokenizer says it.

        Raises TokenizerError for an entry that numbers no words.
        """
        if not isinstance(self.alignment, Mapping):
            return None
        return {
            name: words_of_pieces(name, alignment) for name, alignment in self.alignment.items()
        }

    def unpadded_words(self, name: str) -> Alignment | None:
        """Return the word of each piece of a sentence without padding; None if it has no entry."""
        words = (self.words or {}).get(name)
        return None if words is None else words[real_pieces(self.read(name), words)]

    @cached_property
    def _stored(self) -> tuple[list[str], Callable[[str], Any], str]:
        """Names of the arrays, a function that reads one, and a digest of all of them."""
        arrays = self.arrays
        if isinstance(arrays, Mapping):
            digest = hashlib.sha256()
            for name in arrays:
                values = self._weights(name, arrays.__getitem__)
                kind = str(values.dtype).removeprefix("torch.")
                digest.update(f"{name}{tuple(values.shape)}{kind}".encode())
                digest.update(values.contiguous().flatten().view(torch.uint8).numpy().tobytes())
            stored = list(arrays), arrays.__getitem__, digest.hexdigest()
        elif isinstance(arrays, str | Path):
            stored = _open_file(Path(arrays))
        else:
            raise UsageError(
                f"the arrays are a {type(arrays).__name__}; give a mapping from the ids of "
                "sentences, or the path of an .npz or .safetensors file"
            )
        if not stored[0]:
            raise ModelError(f"{self.name} holds no arrays; save one for each sentence")
        return stored

    def read(self, name: str | None = None) -> Tensor:
        """Read the array of an example, by default the first.

        Raises ModelError if it is missing or damaged.
        """
        names, get, _ = self._stored
        if name is not None and name not in names:
            raise ModelError(
                f"{self.name} has no array for {name!r} (it has {listed(names)}); name each "
                "array as its sentence"
            )
        weights = self._weights(name or names[0], get)
        return weights if weights.dtype in TOLERANCE else weights.float()

    def _weights(self, name: str, get: Callable[[str], Any]) -> Tensor:
        """Return the weights of an example in their own precision."""
        try:
            weights = as_weights(get(name))
            weights.data_ptr()  # which a tensor without numbers lacks
            if weights.dim() != _SAVED or not weights.numel():
                raise ValueError(
                    f"its shape is {tuple(weights.shape)}, and not (layers, heads, query, key)"
                )
        except Exception as error:  # a damaged file, objects, texts
            raise ModelError(
                f"the array for {name!r} in {self.name} cannot be read ({in_one_line(error)}); "
                "save it again as an array of numbers"
            ) from error
        return weights

    def attend(self, inputs: Inputs, names: Sequence[str], kind: str = ENCODER) -> Tensor:
        """Return the attention of a batch (batch, layers, heads, query, key), without padding."""
        first = self.read()
        layers, heads = (*first.shape, 0, 0)[:2]
        masks = masks_of(inputs, kind)
        sizes = zip(*(mask.sum(dim=1).tolist() for mask in masks), strict=True)
        widths = (mask.shape[1] for mask in masks)
        padded = first.new_zeros((len(names), layers, heads, *widths))
        for row, (name, (n, n_keys)) in enumerate(zip(names, sizes, strict=True)):
            weights = self._across(name, n, n_keys) if kind == CROSS else self._cut(name, n)
            if weights.shape != (layers, heads, n, n_keys) or not weights.numel():
                raise ModelError(
                    f"{self.name} has an array of shape {tuple(weights.shape)} for "
                    f"{name!r}; (layers, heads, query, key) must be {(layers, heads, n, n_keys)}, "
                    "by the first array and the pieces of the sentence"
                )
            if weights.dtype != first.dtype:
                raise ModelError(
                    f"{self.name} has numbers of type {weights.dtype} for {name!r} and "
                    f"{first.dtype} before; save all arrays in one precision"
                )
            padded[row, :, :, :n, :n_keys] = weights
        return padded

    def _across(self, name: str, n_queries: int, n_keys: int) -> Tensor:
        """Return the weights between a target and a source, without padding at their ends."""
        weights = self.read(name)
        is_padded = weights.shape[-2] >= n_queries and not weights[..., :n_queries, n_keys:].any()
        return weights[..., :n_queries, :n_keys] if is_padded else weights

    def _cut(self, name: str, n: int) -> Tensor:
        """Return the weights among the ``n`` pieces of a sentence, if all others are padding."""
        weights = self.read(name)
        if (words := (self.words or {}).get(name)) is not None:
            place = real_pieces(weights, words)
            if place.stop - place.start == n and weights.shape[-1] == len(words):
                return weights[..., place, place]
        return cut_to(weights, n)


class UnpaddedWords(Mapping[str, Alignment]):
    """The word of each piece of saved attention without padding, which its arrays tell.

    Each array is read when its sentence is asked for.
    """

    def __init__(self, saved: SavedAttention) -> None:
        self._saved = saved

    def __getitem__(self, name: str) -> Alignment:
        words = self._saved.unpadded_words(name)
        if words is None:
            raise KeyError(name)
        return words

    def __contains__(self, name: object) -> bool:
        return name in (self._saved.words or {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._saved.words or {})

    def __len__(self) -> int:
        return len(self._saved.words or {})


def _open_file(file: Path) -> tuple[list[str], Callable[[str], Any], str]:
    if file.suffix not in FORMATS:
        raise ModelError(
            f"{file} is no .npz or .safetensors file, and headroles opens no pickles; save the "
            "arrays with numpy.savez or safetensors"
        )
    try:
        check_regular(file)
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if file.suffix != ".npz":
            stored = cast(Any, safe_open)(file, framework="pt")
            return list(stored.keys()), stored.get_tensor, digest
        opened = np.load(file, allow_pickle=False)
    except Exception as error:  # the file may hold anything
        raise ModelError(f"{file} cannot be read ({in_one_line(error)}); save it again") from error
    if not isinstance(opened, Mapping):
        raise ModelError(f"{file} is one array without a name; save the arrays with numpy.savez")
    return list(opened), opened.__getitem__, digest


@dataclass(frozen=True, eq=False)
class FunctionAttention:
    """Attention by a function, to be read in place of a model's.

    ``attend`` makes it from the inputs of a batch and the names of its examples. ``source`` is its
    name in messages. ``heads`` are the numbers of heads of its layers, empty before the trial,
    which also finds whether it ``is_causal``: no token of any layer attends to a later one.
    ``digest`` identifies its outputs, and ``advice`` ends messages about errors that it raises. It
    is of a ``kind``, as that of a model.
    """

    attend: Callable[[Inputs, Sequence[str]], Any]
    source: str
    device: torch.device
    heads: tuple[int, ...] = ()
    is_causal: bool = False
    digest: str = ""
    advice: str = ""
    kind: str = ENCODER
    dtype = torch.float32

    def run(self, inputs: Inputs, this_pass: Pass) -> None:
        """Pass the layers of one batch to a pass."""
        for weights in self.layers(inputs, this_pass.names):
            this_pass.next_layer(weights.to(self.device))
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
                yield self._checked(weights, layer, inputs, names)
        except HeadRolesError:
            raise
        except Exception as error:  # of the user's function
            if lacks_memory(error):
                raise
            for row, name in enumerate(names if len(names) > 1 else ()):
                try:
                    for _ in self._steps(without_padding(inputs, row), [name]):
                        pass
                except HeadRolesError:
                    continue  # a check of a row alone says nothing about the user's error
                except Exception as alone:  # this example is named
                    error, names = alone, [name]
                    break
            raise ModelError(
                f"{self.source} raised an error for {_batch(names)} ({with_type(error)})"
                f"{self.advice}"
            ) from error

    def check_alone(
        self, inputs: Inputs, names: Sequence[str] = (), tolerance: float = _FINE
    ) -> None:
        """Raise ModelSupportError if the second of two sequences has other weights alone."""
        n_queries, n_keys = (int(mask[1].sum()) for mask in masks_of(inputs, self.kind))
        together = list(self.layers(inputs, names))
        one_by_one = self.layers(without_padding(inputs, 1), names[1:])
        for layer, (weights, weights_alone) in enumerate(zip(together, one_by_one, strict=False)):
            own = weights[1:, :, :n_queries, :n_keys]
            if not torch.allclose(own, weights_alone, rtol=0, atol=tolerance):
                raise ModelSupportError(
                    f"{self.source} gives other attention for {_batch(names[1:])} in layer {layer} "
                    "if another sentence is beside it, or in a second call; mask the padding of "
                    "the batch (attention_mask is 0), and run the model in evaluation mode"
                )

    def tried(self, inputs: Inputs, names: Sequence[str]) -> FunctionAttention:
        """Return this attention with layers and heads counted, and its digest.

        Raises errors as `layers`, and ModelError for layers of different sizes.
        """
        digest, heads = hashlib.sha256(self.digest.encode()), list[int]()
        causal = []
        for weights in self.layers(inputs, names):
            heads.append(weights.shape[1])
            causal.append(self.kind != CROSS and is_causal(weights))
            digest.update(weights.cpu().contiguous().numpy().tobytes())
        if len(set(heads)) != 1 or not heads[0]:
            raise ModelError(
                f"{self.source} gives layers with {heads} heads for {_batch(names)}; it must give "
                "one layer or more, with as many heads in each"
            )
        if self.kind == DECODER and not all(causal):
            raise ModelError(
                f"{self.source} gives {_batch(names)} attention to later pieces of the target; in "
                "a decoder each sees itself and earlier ones"
            )
        return replace(self, heads=tuple(heads), is_causal=all(causal), digest=digest.hexdigest())

    def _steps(self, inputs: Inputs, names: Sequence[str]) -> Iterator[Tensor]:
        """Yield the layers as the function returns them."""
        steps = attentions_of(self.attend(inputs, names))
        if hasattr(steps, "shape"):
            attention = as_tensor(steps)
            if attention.dim() != _ATTENTION:
                raise self._misshapen(attention, "(batch, layers, heads, query, key)", names)
            steps = attention.unbind(1)
        if not isinstance(steps, Iterable) or isinstance(steps, Mapping):
            raise ModelError(
                f"{self.source} gives a value of type {type(steps).__name__} for {_batch(names)}; "
                "it must give arrays, or an iterable over the layers"
            )
        yield from map(as_tensor, steps)

    def _misshapen(self, weights: Tensor, needed: str, names: Sequence[str]) -> ModelError:
        return ModelError(
            f"{self.source} gives an array of shape {tuple(weights.shape)} for {_batch(names)}; "
            f"{needed} is needed"
        )

    def _checked(
        self, reported: Tensor, layer: int, inputs: Inputs, names: Sequence[str]
    ) -> Tensor:
        real, seen = (mask.bool().to(reported.device) for mask in masks_of(inputs, self.kind))
        n, width = real.shape
        heads = self.heads[layer] if layer < len(self.heads) else reported.shape[1:2].numel()
        if reported.dim() != _LAYER or reported.shape != (n, heads, width, seen.shape[1]):
            needed = f"(batch, heads, query, key) = ({n}, {heads}, {width}, {seen.shape[1]})"
            raise self._misshapen(reported, f"in layer {layer} {needed}", names)
        weights = reported.float().where(real[:, None, :, None] & seen[:, None, None, :], 0)
        if self.is_causal and weights.triu(1).any():
            row = int(weights.triu(1).flatten(1).any(-1).nonzero()[0])
            raise ModelError(
                f"{self.source} gives {_batch(names[row : row + 1])} attention to later pieces (in "
                f"layer {layer}), and gave none before; all attention must be of one model"
            )
        sums, tolerance = weights.sum(-1), TOLERANCE.get(reported.dtype, _FINE)
        is_row = (sums - 1).abs() <= tolerance  # false for NaN
        wrong = (~is_row | (weights < 0).any(-1)) & real[:, None]
        if wrong.any():
            row, head, query = wrong.nonzero()[0].tolist()
            least, total = float(weights[row, head, query].min()), float(sums[row, head, query])
            finding = f"sum to {total:.4g}"
            if not np.isfinite(total):
                finding = "hold NaN or infinity"
            elif least < 0:
                finding = f"are {least:.3g} at least"
            elif total < 1:
                finding += ", as where a sink that is no token takes a part: divide rows by their "
                finding += "sums"
            raise ModelError(
                f"{self.source} gives no attention for {_batch(names[row : row + 1])}: in layer "
                f"{layer}, head {head}, the weights of piece {query} {finding}; each row must be "
                "0 or more and sum to 1 over the pieces that are no padding"
            )
        return weights


def masks_of(inputs: Inputs, kind: str) -> tuple[Tensor, Tensor]:
    """Return the masks (batch, tokens) of the queries and of the keys of a kind of attention."""
    source = inputs["attention_mask"]
    if kind == ENCODER:
        return source, source
    target = inputs[f"{DECODER_INPUTS}attention_mask"]
    return target, source if kind == CROSS else target


def is_causal(weights: Tensor) -> bool:
    """Tell whether no token of a layer attends to a later one, as in decoders."""
    return weights.numel() > 0 and weights.shape[-1] > 1 and not weights.triu(1).any()


def _batch(names: Sequence[str]) -> str:
    others = f" and the {len(names) - 1} others of its batch" if len(names) > 1 else ""
    return f"{names[0]!r}{others}" if names else "a batch"


def without_padding(inputs: Inputs, row: int) -> dict[str, Tensor]:
    """Return one example of a batch without its padding."""
    example = {}
    for name, values in inputs.items():
        sequence = DECODER_INPUTS * name.startswith(DECODER_INPUTS)
        n = int(inputs[f"{sequence}attention_mask"][row].sum())
        example[name] = values[row : row + 1, :n]
    return example


def make_attention(
    source_of_attention: AttentionFunction | SavedAttention,
    tokenizer: PreTrainedTokenizerBase,
    with_token_types: bool,
    device: torch.device,
    kind: str = ENCODER,
    target: tuple[PreTrainedTokenizerBase, Targets] | None = None,
) -> FunctionAttention:
    """Make attention of a ``kind`` from a function or saved arrays; a trial run counts its layers
    and heads.

    The trial runs the function on two sentences, or on two pairs with the tokenizer and the form of
    a ``target``, and reads the first of saved arrays that has several pieces.

    Raises ModelError if they are no attention, ModelSupportError if the attention of a sentence
    depends on others in its batch, and UsageError for what cannot hold arrays.
    """
    if isinstance(source_of_attention, SavedAttention):
        stored = source_of_attention._stored[0]
        # a single piece does not show whether tokens see later ones
        names = [
            next(
                (name for name in stored if source_of_attention.read(name).shape[-1] > 1), stored[0]
            )
        ]
        weights, aligned = (
            source_of_attention.read(names[0]),
            source_of_attention.unpadded_words(names[0]),
        )
        n_queries = pieces_alone(weights) if aligned is None else len(aligned)
        n_keys = weights.shape[-1] if kind == CROSS else n_queries
        attend_saved = partial(source_of_attention.attend, kind=kind)
        saved = FunctionAttention(
            attend_saved,
            source_of_attention.name,
            device,
            digest=source_of_attention.digest,
            kind=kind,
        )
        inputs = {"attention_mask": torch.ones((1, n_keys), dtype=torch.long)}
        if kind != ENCODER:
            inputs[f"{DECODER_INPUTS}attention_mask"] = torch.ones(1, n_queries, dtype=torch.long)
        return saved.tried(inputs, names)

    def attend(inputs: Inputs, names: Sequence[str]) -> Any:
        return source_of_attention({name: values.cpu().numpy() for name, values in inputs.items()})

    cut = ExampleEncoder(tokenizer, _NO_LIMIT, with_token_types)
    examples = [Example((_sentence(text),)) for text in _TRIAL]
    if target is not None:
        cut = PairEncoder(cut, ExampleEncoder(target[0], _NO_LIMIT, False), target[1])
        pairs = zip(_TRIAL, _TARGETS_OF_TRIAL, strict=True)
        examples = [Example(tuple(map(_sentence, pair))) for pair in pairs]
    columns = collate(cut.encode(examples, Counter()), tokenizer.pad_token_id or 0)
    columns.pop(PAIR_MASK, None)
    inputs = {name: torch.from_numpy(array) for name, array in columns.items()}
    advice = "; it must take a dictionary of arrays, the pieces of a batch, and return attention"
    source = f"the function {name_of(source_of_attention)}"
    function_attention = FunctionAttention(attend, source, device, advice=advice, kind=kind)
    function_attention = function_attention.tried(inputs, _TRIAL)
    function_attention.check_alone(inputs, _TRIAL)
    return function_attention


def _sentence(text: str) -> Sentence:
    """Return a sentence of the trial, without a tree."""
    words = tuple(text.split())
    return Sentence(text, "", 0, words, (ROOT,) * len(words), ("",) * len(words))


def lacks_weights(output: Any) -> UsageError:
    """Make the error for uses that need more than attention."""
    return UsageError(
        f"{output if isinstance(output, str) else name_of(output)} gives attention weights alone; "
        "norms, tasks, pruning and all that needs the model itself take a model of transformers"
    )


def name_of(function: Any) -> str:
    """Return the name of saved attention, or that of a function with its module."""
    if isinstance(getattr(function, "name", None), str):
        return str(function.name)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or '__main__'}:{name}"
