"""Tokenizers from the inside: which can be used, and how they treat the beginning of a word."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import count
from typing import Any

from tokenizers import normalizers
from tokenizers.pre_tokenizers import ByteLevel, Sequence
from transformers import PreTrainedTokenizerBase

from headroles.errors import TokenizerError


def fit_to_words(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """``tokenizer``, or a copy of it that takes every word for the beginning of one.

    Raises TokenizerError for one that cannot tell which piece belongs to which word.
    """
    if not tokenizer.is_fast:
        raise TokenizerError(
            f"{type(tokenizer).__name__} is a slow tokenizer and cannot tell which piece "
            "belongs to which word; give a model folder with a tokenizer.json"
        )
    return with_prefix_space(tokenizer)


def with_prefix_space(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """``tokenizer``, or a copy of it that puts a space before every word.

    Byte-level tokenizers (RoBERTa, ModernBERT) tell a word's beginning by the space before it;
    set to add none, they would take all words of a sentence for continuations, and say nothing.
    """
    if all(step.add_prefix_space for step in _byte_level_steps(tokenizer)):
        return tokenizer
    tokenizer = copy.deepcopy(tokenizer)
    backend = tokenizer.backend_tokenizer
    # Before any other step cuts the word: the byte-level step's own add_prefix_space would put
    # a space before every part that a step ahead of it has cut off, as in "Ġdon Ġ't".
    steps = [] if backend.normalizer is None else [backend.normalizer]
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Prepend(" ")])
    return tokenizer


def _byte_level_steps(tokenizer: PreTrainedTokenizerBase) -> list[ByteLevel]:
    step = tokenizer.backend_tokenizer.pre_tokenizer
    steps = _members(step) if isinstance(step, Sequence) else [step]
    return [step for step in steps if isinstance(step, ByteLevel)]


def _members(steps: Sequence) -> Iterator[Any]:
    """The steps of a pre-tokenizer sequence, which knows its members but not its length."""
    for index in count():
        try:
            yield steps[index]
        except IndexError:
            return
