"""Attention that was computed elsewhere and saved, one array for each sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from headroles.encoding import Alignment
from headroles.errors import ModelError, UsageError
from headroles.models.attention.own import OwnAttention, Pieces, tried_out
from headroles.storage import check_regular
from headroles.wording import in_one_line, listed

Arrays: TypeAlias = Mapping[str, Any]
_MATRICES = 4  # (layers, heads, query, key)
FORMATS = (".npz", ".safetensors")


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

    arrays: Arrays | str | Path
    alignment: Mapping[str, Alignment] | PreTrainedTokenizerBase | str | Path | None = None

    @property
    def name(self) -> str:
        """Name of its source, for messages."""
        return str(self.arrays) if isinstance(self.arrays, str | Path) else "saved attention"


class _Tensors(Mapping[str, NDArray[Any]]):
    """Tensors of a safetensors file, each read on access."""

    def __init__(self, file: Path) -> None:
        opened: Any = safe_open
        self._stored = opened(file, framework="pt")
        self._names: list[str] = list(self._stored.keys())

    def __getitem__(self, name: str) -> Any:
        return self._stored.get_tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def saved_attention(saved: SavedAttention, device: torch.device) -> OwnAttention:
    """Open saved arrays as attention. Raises ModelError for a file without arrays."""
    source = f"the file {saved.name}" if saved.name != "saved attention" else saved.name
    arrays, digest = _opened(saved.arrays)
    if not arrays:
        raise ModelError(f"{source} holds no arrays; save one for each sentence")
    first = next(iter(arrays))
    trial = _array_of(arrays, first, source)
    if trial.dim() != _MATRICES or 0 in trial.shape or trial.shape[2] != trial.shape[3]:
        raise _misshapen(trial, ("layers", "heads", "pieces", "pieces"), first, source)
    layers, heads, n_pieces, _ = trial.shape

    def attend(pieces: Pieces, names: Sequence[str]) -> torch.Tensor:
        found = [_array_of(arrays, name, source) for name in names]
        width = pieces["attention_mask"].shape[1]
        padded = found[0].new_zeros((len(found), layers, heads, width, width))
        lengths = pieces["attention_mask"].sum(axis=1).tolist()
        for row, (weights, n) in enumerate(zip(found, lengths, strict=True)):
            if weights.shape != (layers, heads, n, n):
                raise _misshapen(weights, (layers, heads, n, n), names[row], source)
            padded[row, :, :, :n, :n] = weights
        return padded

    mask = np.ones((1, n_pieces), dtype=np.int64)
    own = OwnAttention(attend, source, device, digest=f"{digest} {_digest(saved.alignment)}")
    return tried_out(own, {"attention_mask": mask}, [first])


def _opened(arrays: Arrays | str | Path) -> tuple[Arrays, str]:
    """Return the arrays by name, and a digest of all of them."""
    if isinstance(arrays, Mapping):
        digest = hashlib.sha256()
        for name in arrays:
            values = np.ascontiguousarray(arrays[name])
            digest.update(f"{name}{values.shape}{values.dtype}".encode() + values.tobytes())
        return arrays, digest.hexdigest()
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
            digest_of_file = hashlib.file_digest(content, "sha256").hexdigest()
        opened = np.load(file, allow_pickle=False) if file.suffix == ".npz" else _Tensors(file)
    except Exception as error:  # the file may hold anything
        raise ModelError(f"{file} cannot be read ({in_one_line(error)}); save it again") from error
    if not isinstance(opened, Mapping):
        raise ModelError(f"{file} is one array without a name; save the arrays with numpy.savez")
    return opened, digest_of_file


def _misshapen(
    weights: torch.Tensor, needed: tuple[object, ...], name: str, source: str
) -> ModelError:
    return ModelError(
        f"{source} has an array of shape {tuple(weights.shape)} for {name!r}; (layers, heads, "
        f"query, key) must be ({', '.join(map(str, needed))}), by the first array and the pieces "
        "of the sentence"
    )


def _array_of(arrays: Arrays, name: str, source: str) -> torch.Tensor:
    """Return the attention of a sentence. Raises ModelError if it is missing or cannot be read."""
    if name not in arrays:
        raise ModelError(
            f"{source} has no array for {name!r} (it has {listed(list(arrays))}); name each array "
            "as its sentence"
        )
    try:
        found = arrays[name]
        return found if isinstance(found, torch.Tensor) else torch.from_numpy(np.array(found))
    except Exception as error:  # a damaged file, objects, texts
        raise ModelError(
            f"the array for {name!r} in {source} cannot be read ({in_one_line(error)}); save it "
            "again as an array of numbers"
        ) from error


def _digest(alignment: Any) -> str:
    if not isinstance(alignment, Mapping):
        return ""
    listing = str([(name, list(numbers)) for name, numbers in alignment.items()])
    return hashlib.sha256(listing.encode()).hexdigest()


def stand_in_tokenizer() -> PreTrainedTokenizerBase:
    """Make a placeholder tokenizer, for use with an alignment."""
    backend = Tokenizer(WordLevel({"[special]": 0, "[piece]": 1}, unk_token="[piece]"))  # noqa: S106
    make: Any = PreTrainedTokenizerFast
    tokenizer: PreTrainedTokenizerBase = make(tokenizer_object=backend)
    return tokenizer
