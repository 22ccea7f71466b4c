"""Attention that was computed elsewhere and saved, one array for each sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from headroles.encoding import Alignment
from headroles.errors import ModelError, UsageError
from headroles.models.attention.own import Inputs, OwnAttention, tried_out
from headroles.storage import check_regular
from headroles.wording import in_one_line, listed

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

    arrays: Mapping[str, Any] | str | Path
    alignment: Mapping[str, Alignment] | PreTrainedTokenizerBase | str | Path | None = None

    @property
    def name(self) -> str:
        """Name of its source, for messages."""
        return str(self.arrays) if isinstance(self.arrays, str | Path) else "saved attention"


def saved_attention(saved: SavedAttention, device: torch.device) -> OwnAttention:
    """Open saved arrays as attention.

    Raises ModelError for a file without arrays, and UsageError for what cannot hold any.
    """
    source = f"the file {saved.name}" if saved.name != "saved attention" else saved.name
    names, array_of, digest = _opened(saved.arrays)
    if not names:
        raise ModelError(f"{source} holds no arrays; save one for each sentence")

    def array(name: str) -> torch.Tensor:
        if name not in names:
            raise ModelError(
                f"{source} has no array for {name!r} (it has {listed(names)}); name each array "
                "as its sentence"
            )
        try:
            found = array_of(name)
            return found if isinstance(found, torch.Tensor) else torch.from_numpy(np.array(found))
        except Exception as error:  # a damaged file, objects, texts
            raise ModelError(
                f"the array for {name!r} in {source} cannot be read ({in_one_line(error)}); save "
                "it again as an array of numbers"
            ) from error

    first = array(names[0])
    layers, heads, n_pieces = (*first.shape, 0, 0, 0)[:3]
    mask = torch.ones((1, n_pieces), dtype=torch.long)

    def attend(inputs: Inputs, names: Sequence[str]) -> torch.Tensor:
        found, width = list(map(array, names)), inputs["attention_mask"].shape[1]
        padded = found[0].new_zeros((len(found), layers, heads, width, width))
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        for row, (weights, n) in enumerate(zip(found, lengths, strict=True)):
            if weights.shape != (layers, heads, n, n) or not weights.numel():
                raise ModelError(
                    f"{source} has an array of shape {tuple(weights.shape)} for {names[row]!r}; "
                    f"(layers, heads, query, key) must be {(layers, heads, n, n)}, by the first "
                    "array and the pieces of the sentence"
                )
            padded[row, :, :, :n, :n] = weights
        return padded

    own = OwnAttention(attend, source, device, digest=f"{digest} {_digest(saved.alignment)}")
    return tried_out(own, {"attention_mask": mask}, names[:1])


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


def _digest(alignment: Any) -> str:
    if not isinstance(alignment, Mapping):
        return ""
    listing = str([(name, list(numbers)) for name, numbers in alignment.items()])
    return hashlib.sha256(listing.encode()).hexdigest()


def stand_in_tokenizer() -> PreTrainedTokenizerBase:
    """Make a placeholder tokenizer, for use with an alignment."""
    backend = Tokenizer(WordLevel({"[special]": 0, "[piece]": 1}, unk_token="[piece]"))  # noqa: S106
    return cast(
        PreTrainedTokenizerBase, cast(Any, PreTrainedTokenizerFast)(tokenizer_object=backend)
    )
