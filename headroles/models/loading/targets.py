"""Tokenizers of the targets of an encoder-decoder, and the inputs of its decoder."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from transformers import FSMTTokenizer, PreTrainedTokenizerBase

from headroles.encoding import Targets
from headroles.errors import ModelError, UsageError
from headroles.models.heads.stack import Stack
from headroles.models.loading.tokenizers import (
    check_tokenizer,
    fit_to_words,
    load_tokenizer,
    tokenizer_digest,
)
from headroles.models.options import ModelOptions, TargetOptions

_WRAPS = ("mbart", "plbart")
"""Models whose decoders begin with the last piece of the target, its language."""


@dataclass(frozen=True)
class TargetTokenizer:
    """The tokenizer of targets, and how the inputs of the decoder are made from its pieces."""

    tokenizer: PreTrainedTokenizerBase
    targets: Targets

    @property
    def identity(self) -> dict[str, Any]:
        """Digests of everything that the inputs of the decoder depend on."""
        return {"digest": tokenizer_digest(self.tokenizer), **self.targets._asdict()}


def with_languages(
    tokenizer: PreTrainedTokenizerBase, options: TargetOptions
) -> PreTrainedTokenizerBase:
    """Return a tokenizer for the languages of the options, or the tokenizer itself.

    Raises UsageError for a language that it does not know.
    """
    languages = {"src_lang": options.source_language, "tgt_lang": options.target_language}
    codes = {name: code for name, code in languages.items() if code is not None}
    if not codes:
        return tokenizer
    tokenizer = copy.deepcopy(tokenizer)
    for name, code in codes.items():
        try:
            if not hasattr(tokenizer, name):
                raise KeyError
            setattr(tokenizer, name, code)
        except (KeyError, ValueError, TypeError) as error:
            raise UsageError(
                f"the tokenizer {tokenizer.name_or_path} knows no language {code!r}; give a code "
                "of its languages, or omit `source_language` and `target_language`"
            ) from error
    return tokenizer


def target_of(
    stack: Stack,
    tokenizer: PreTrainedTokenizerBase,
    options: ModelOptions,
    of: TargetOptions,
    fit: Callable[[PreTrainedTokenizerBase], PreTrainedTokenizerBase],
) -> TargetTokenizer:
    """Return the tokenizer of the targets of a model: its own for targets, or that of ``of``.

    ``fit`` makes it one of words, or of texts.

    Raises ModelError for a model that names no first token of targets, UsageError for a tokenizer
    of several languages without that of targets, and TokenizerError as `load_encoder`.
    """
    target = _tokenizer_of_targets(tokenizer, options, of)
    check_tokenizer(target, stack.whole, str(target.name_or_path))
    config: Any = stack.whole.config
    start = None if config.model_type in _WRAPS else config.decoder_start_token_id
    if start is None and config.model_type not in _WRAPS:
        raise ModelError(
            "the configuration has no decoder_start_token_id, with which targets begin; add it to "
            "config.json"
        )
    return TargetTokenizer(
        fit(target), Targets(cast("int | None", start), of.target_rows == "output")
    )


def target_of_own(
    tokenizer: PreTrainedTokenizerBase, options: ModelOptions, of: TargetOptions
) -> TargetTokenizer:
    """Return the tokenizer of the targets of attention of the user's own.

    Inputs of the decoder begin with the first special token that the tokenizer has of those that
    begin a text, are padding, classify a text, or end it.
    """
    target = _tokenizer_of_targets(tokenizer, options, of)
    names = ("bos", "pad", "cls", "eos")
    token_ids = (getattr(target, f"{name}_token_id", None) for name in names)
    start = next((number for number in token_ids if number is not None), 0)
    return TargetTokenizer(fit_to_words(target), Targets(start, of.target_rows == "output"))


def _tokenizer_of_targets(
    tokenizer: PreTrainedTokenizerBase, options: ModelOptions, of: TargetOptions
) -> PreTrainedTokenizerBase:
    if of.target_tokenizer is not None:
        target = load_tokenizer(of.target_tokenizer, options)
    else:
        target = copy.deepcopy(tokenizer)
        if isinstance(target, FSMTTokenizer):  # it reads texts by the vocabulary of sources
            target.encoder = {piece: number for number, piece in target.decoder.items()}
            target.src_lang = target.tgt_lang
        if hasattr(target, "tgt_lang") and target.tgt_lang is None:
            raise UsageError(
                f"the tokenizer {tokenizer.name_or_path} is one of several languages; pass "
                "`source_language` and `target_language`"
            )
        switch: Any = getattr(target, "_switch_to_target_mode", None)
        if switch is not None:
            switch()
    return target
