"""Attention by a function in place of a model's: a user's own, or a reader of saved arrays.

Every batch is checked. Weights and code behind such attention are unknown, so everything that needs
them is rejected.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from headroles.arrays import IntArray
from headroles.corpus import ROOT, Example, Sentence
from headroles.encoding import Alignment, ExampleEncoder, collate
from headroles.errors import HeadRolesError, ModelError, ModelSupportError, UsageError
from headroles.memory import lacks_memory
from headroles.models.reports import AllRead, Pass, check_not_causal
from headroles.storage import check_regular
from headroles.wording import in_one_line, listed, with_type

OWN = "own"
"""Model type of attention that no transformers model computes."""
FORMATS = (".npz", ".safetensors")
Inputs: TypeAlias = Mapping[str, Tensor]
Attend: TypeAlias = Callable[[Inputs, Sequence[str]], Any]
"""Function from the inputs of a batch and the names of its examples to their attention."""
OwnFunction: TypeAlias = Callable[[dict[str, IntArray]], Any]
"""Function from the pieces of a batch to its attention (batch, layers, heads, query, key), or to an
iterable over layers of (batch, heads, query, key). Pieces are ``input_ids``, ``attention_mask``
and, if the tokenizer makes them, ``token_type_ids``, each (batch, pieces), padded at the end.
"""
_ATTENTION, _LAYER = 5, 4  # dimensions
TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 2e-2}
_FINE = 1e-3
"""Tolerance for sums of rows, and for weights with and without padding, in other precisions; the
padding of models may change less.
"""
_TRIAL = ("The old dog sleeps in the sun .", "It rains .")


@dataclass(frozen=True, eq=False)
class SavedAttention:
    """Attention of sentences, by their ids; use it in place of a model.

    Args:
        arrays: for each sentence weights (layers, heads, pieces, pieces), rows being queries, each
            with a sum of 1; a mapping, or an ``.npz`` or ``.safetensors`` file with an array named
            after each sentence.
        alignment: the word of each piece. For each sentence a list with the number of its word,
            from 0, for each piece, None for a special token (``word_ids`` of a fast tokenizer); or
            the tokenizer itself, loaded or as a folder or hub id.

    Arrays are read, and defective ones rejected with a ModelError, when they are scored.

    >>> uniform = np.full((1, 2, 4, 4), 1 / 4)  # one layer of two heads, four pieces
    >>> saved = SavedAttention({"s-1": uniform}, {"s-1": [None, 0, 1, None]})
    >>> saved.name
    'saved attention'
    """

    arrays: Mapping[str, Any] | str | Path
    alignment: Mapping[str, Alignment] | PreTrainedTokenizerBase | str | Path | None = None

    @property
    def name(self) -> str:
        """Name of its source, for messages."""
        return str(self.arrays) if isinstance(self.arrays, str | Path) else "saved attention"


@dataclass(frozen=True, eq=False)
class OwnAttention:
    """Attention by a function, to be read in place of a model's.

    ``source`` is its name in messages. ``digest`` identifies its outputs.
    """

    attend: Attend
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
        sums, tolerance = weights.sum(-1), TOLERANCE.get(given.dtype, _FINE)
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


def own_attention(
    given: OwnFunction | SavedAttention,
    tokenizer: PreTrainedTokenizerBase,
    with_token_types: bool,
    device: torch.device,
) -> OwnAttention:
    """Make attention from a function or saved arrays; a trial run counts its layers and heads.

    The trial runs the function on two sentences, and reads the first of saved arrays.

    Raises ModelError if they are no attention, ModelSupportError if the attention of a sentence
    depends on others in its batch, and UsageError for what cannot hold arrays.
    """
    if isinstance(given, SavedAttention):
        arrays = _SavedArrays.opened(given)
        names = arrays.names[:1]
        mask = torch.ones((1, arrays.read(names[0]).shape[-1:].numel()), dtype=torch.long)
        saved = OwnAttention(arrays, arrays.source, device, digest=arrays.digest)
        return _tried_out(saved, {"attention_mask": mask}, names)

    def attend(inputs: Inputs, names: Sequence[str]) -> Any:
        return given({name: values.cpu().numpy() for name, values in inputs.items()})

    words = [tuple(text.split()) for text in _TRIAL]
    sentences = [
        Sentence(name, "", 0, own, (ROOT,) * len(own), ("",) * len(own))
        for name, own in zip(_TRIAL, words, strict=True)
    ]
    encoder = ExampleEncoder(tokenizer, 10**9, with_token_types)
    trial = encoder.encode([Example((sentence,)) for sentence in sentences], Counter())
    columns = collate(trial, tokenizer.pad_token_id or 0)
    inputs = {name: torch.from_numpy(array) for name, array in columns.items()}
    own = _tried_out(OwnAttention(attend, f"the function {name_of(given)}", device), inputs, _TRIAL)
    own.check_alone(inputs, _TRIAL)
    return own


def _tried_out(own: OwnAttention, inputs: Inputs, names: Sequence[str]) -> OwnAttention:
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


@dataclass(frozen=True)
class _SavedArrays:
    """Saved arrays, which give attention as a function does, by the names of examples."""

    source: str
    names: list[str]
    get: Callable[[str], Any]
    digest: str

    @classmethod
    def opened(cls, saved: SavedAttention) -> _SavedArrays:
        source = f"the file {saved.name}" if saved.name != "saved attention" else saved.name
        names, get, digest = _opened(saved.arrays)
        if not names:
            raise ModelError(f"{source} holds no arrays; save one for each sentence")
        alignment = ""
        if isinstance(saved.alignment, Mapping):
            listing = str([(name, list(words)) for name, words in saved.alignment.items()])
            alignment = hashlib.sha256(listing.encode()).hexdigest()
        return cls(source, names, get, f"{digest} {alignment}")

    def read(self, name: str) -> Tensor:
        """Read the array of an example. Raises ModelError if it is missing or damaged."""
        if name not in self.names:
            raise ModelError(
                f"{self.source} has no array for {name!r} (it has {listed(self.names)}); name each "
                "array as its sentence"
            )
        try:
            found = self.get(name)
            return found if isinstance(found, Tensor) else torch.from_numpy(np.array(found))
        except Exception as error:  # a damaged file, objects, texts
            raise ModelError(
                f"the array for {name!r} in {self.source} cannot be read ({in_one_line(error)}); "
                "save it again as an array of numbers"
            ) from error

    def __call__(self, inputs: Inputs, names: Sequence[str]) -> Tensor:
        """Return the attention of a batch (batch, layers, heads, query, key)."""
        layers, heads = (*self.read(self.names[0]).shape, 0, 0)[:2]
        arrays, width = list(map(self.read, names)), inputs["attention_mask"].shape[1]
        padded = arrays[0].new_zeros((len(arrays), layers, heads, width, width))
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        for row, (weights, n) in enumerate(zip(arrays, lengths, strict=True)):
            if weights.shape != (layers, heads, n, n) or not weights.numel():
                raise ModelError(
                    f"{self.source} has an array of shape {tuple(weights.shape)} for "
                    f"{names[row]!r}; (layers, heads, query, key) must be {(layers, heads, n, n)}, "
                    "by the first array and the pieces of the sentence"
                )
            padded[row, :, :, :n, :n] = weights
        return padded


def _opened(arrays: Any) -> tuple[list[str], Callable[[str], Any], str]:
    """Return the names of the arrays, a function that reads one, and a digest of all of them."""
    if isinstance(arrays, Mapping):
        digest = hashlib.sha256()
        for name in arrays:
            values = np.ascontiguousarray(arrays[name])
            digest.update(f"{name}{values.shape}{values.dtype}".encode() + values.tobytes())
        return list(arrays), arrays.__getitem__, digest.hexdigest()
    if not isinstance(arrays, str | Path):
        raise UsageError(
            f"the arrays are a {type(arrays).__name__}; give a mapping from the ids of sentences, "
            "or the path of an .npz or .safetensors file"
        )
    file = Path(arrays)
    if file.suffix not in FORMATS:
        raise ModelError(
            f"{file} is no .npz or .safetensors file, and headroles opens no pickles; save the "
            "arrays with numpy.savez or safetensors"
        )
    try:
        check_regular(file)
        with file.open("rb") as content:
            of_file = hashlib.file_digest(content, "sha256").hexdigest()
        if file.suffix != ".npz":
            stored = cast(Any, safe_open)(file, framework="pt")
            return list(stored.keys()), stored.get_tensor, of_file
        opened = np.load(file, allow_pickle=False)
    except Exception as error:  # the file may hold anything
        raise ModelError(f"{file} cannot be read ({in_one_line(error)}); save it again") from error
    if not isinstance(opened, Mapping):
        raise ModelError(f"{file} is one array without a name; save the arrays with numpy.savez")
    return list(opened), opened.__getitem__, of_file


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
