"""Tokenizers that a class of transformers rebuilds otherwise than their file has them.

Classes such as BertTokenizer take the vocabulary from tokenizer.json, and make the steps around it
anew: a file with other steps is cut otherwise than the model has learned.
"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any, cast

from huggingface_hub import try_to_load_from_cache
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from headroles.models.options import ModelOptions
from headroles.wording import listed

_FILE = "tokenizer.json"
_TEXTS = ("The old dog's kennel, 1.5 km off: naïve Straße, ÉTÉ, 犬が吠える!", "ÉTÉ")
_MOST_WORDS = 2_000
"""Number of pieces of the vocabulary whose words are compared, spread over all of it."""


def as_in_file(
    tokenizer: PreTrainedTokenizerBase, source: str | Path, options: ModelOptions
) -> tuple[PreTrainedTokenizerBase, list[str]]:
    """Return ``tokenizer`` if it cuts text as tokenizer.json does; else the file, and a warning.

    Where their steps differ, they cut a text, and words of the file's own vocabulary, whatever its
    language.
    """
    of_transformers = type(tokenizer).__module__.startswith("transformers.models.")
    if not (tokenizer.is_fast and of_transformers and (file := _file_of(source, options))):
        return tokenizer, []
    if _steps_in(file.read_bytes()) == _steps_in(tokenizer.backend_tokenizer.to_str()):
        return tokenizer, []
    written = cast(Any, PreTrainedTokenizerFast).from_pretrained(
        source,
        revision=options.revision,
        model_input_names=tokenizer.model_input_names,
        model_max_length=tokenizer.model_max_length,
        padding_side=tokenizer.padding_side,
        **tokenizer.special_tokens_map,
    )
    texts = _texts_of(written)
    rebuilt, right = _ids(tokenizer, texts), _ids(written, texts)
    differ = [k for k in range(len(texts)) if rebuilt[k] != right[k]]
    if not differ:
        return tokenizer, []
    shortest = min(differ, key=lambda k: len(right[k]))
    cuts = [
        listed(one.convert_ids_to_tokens(ids[shortest]))
        for one, ids in ((tokenizer, rebuilt), (written, right))
    ]
    return written, [
        f"{type(tokenizer).__name__} of transformers cuts {texts[shortest]!r} as {cuts[0]}, and "
        f"{_FILE} of {source} as {cuts[1]}: the file was read as it stands; if the model has "
        "learned from other pieces, give its tokenizer"
    ]


def _file_of(source: str | Path, options: ModelOptions) -> Path | None:
    """Return the file of a tokenizer in a folder, or in the copy of a model of the hub, if any."""
    if Path(source).is_dir():
        file = Path(source) / _FILE
        return file if file.is_file() else None
    copy = try_to_load_from_cache(str(source), _FILE, revision=options.revision)
    return Path(copy) if isinstance(copy, str) else None


def _steps_in(content: bytes | str) -> dict[str, Any]:
    """Return the steps of a tokenizer by name, without truncation and padding: none is used."""
    steps: dict[str, Any] = json.loads(content)
    return {name: step for name, step in steps.items() if name not in ("truncation", "padding")}


def _texts_of(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return texts that a tokenizer should know, in small letters and in capitals."""
    pieces = sorted(tokenizer.get_vocab())[:: len(tokenizer) // _MOST_WORDS + 1]
    words = [piece.replace("▁", " ").replace("Ġ", " ").strip() for piece in pieces]
    return [*_TEXTS, *filter(None, chain.from_iterable((word, word.title()) for word in words))]


def _ids(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[list[int]]:
    cut = tokenizer(texts, truncation=False, padding=False, verbose=False)
    return cast("list[list[int]]", cut["input_ids"])
