"""Tokenizers of the targets of an encoder-decoder, and the inputs of its decoder."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from transformers import FSMTTokenizer, PreTrainedTokenizerBase

from headroles.encoding import Targets
from headroles.errors import ModelError, TokenizerError, UsageError
from headroles.models.heads.stack import Stack
from headroles.models.loading.folders import local_folder
from headroles.models.loading.tokenizers import (
    check_tokenizer,
    fit_to_words,
    load_tokenizer,
    tokenizer_digest,
)
from headroles.models.options import ModelOptions, TargetOptions
from headroles.wording import it_has

_WRAPS = ("mbart", "plbart")
"""Models whose decoders begin with the last piece of the target, its language."""
_CODE = re.compile(r"[a-z]{2,3}(_[A-Za-z]{2,4})?")
"""A piece that is the code of a language: de, de_DE, deu_Latn."""
SAVED = "target-"
"""Beginning of the names of files of a tokenizer of targets, beside a model and its tokenizer."""


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
            if not _knows_language(tokenizer, name, code):
                raise KeyError
            setattr(tokenizer, name, code)
        except (KeyError, ValueError, TypeError) as error:
            raise UsageError(
                f"the tokenizer {tokenizer.name_or_path} knows no language {code!r}, "
                f"{it_has(_languages_of(tokenizer, code))}; give a code of its languages, or omit "
                "`source_language` and `target_language`"
            ) from error
    return tokenizer


def _knows_language(tokenizer: PreTrainedTokenizerBase, name: str, code: str) -> bool:
    """Tell whether a tokenizer of languages has a piece for a code, as itself or in underscores."""
    beside = _languages_beside_pieces(tokenizer)
    if isinstance(tokenizer, FSMTTokenizer):  # no piece is a language
        return code in beside
    pieces = beside.union(tokenizer.get_vocab())
    return hasattr(tokenizer, name) and not pieces.isdisjoint({code, f"__{code}__"})


def _languages_beside_pieces(tokenizer: PreTrainedTokenizerBase) -> set[str]:
    """Return the languages that are not in the vocabulary: those of M2M-100, and two of FSMT."""
    if isinstance(tokenizer, FSMTTokenizer):
        return {tokenizer.src_lang, tokenizer.tgt_lang}
    return set(getattr(tokenizer, "lang_code_to_id", {}))


def _languages_of(tokenizer: PreTrainedTokenizerBase, code: str) -> list[str]:
    """Return the codes of the languages of a tokenizer, those most like ``code`` first."""
    languages = _languages_beside_pieces(tokenizer)
    for piece in tokenizer.all_special_tokens:
        name = piece.strip("_")
        if _CODE.fullmatch(name):
            languages.add(name)
    known = sorted(languages)
    near = get_close_matches(code, known, cutoff=0.5)
    return [*near, *(language for language in known if language not in near)]


def load_for_targets(
    source: str | Path, options: ModelOptions, given: Any
) -> PreTrainedTokenizerBase | None:
    """Load the ``given`` tokenizer of targets, or the one that is saved beside the model.

    None if targets are cut by the tokenizer of the model.
    """
    place = source if given is None else given
    folder = local_folder(place) if isinstance(place, str | Path) and place else None
    if folder is not None and any(folder.glob(f"{SAVED}*")):
        return _saved_in(folder, options)
    if given is None:
        return None
    try:
        return load_tokenizer(given, options)
    except TokenizerError as error:  # whose remedy is another option
        text = str(error.args[0]).replace("`tokenizer`", "`target_tokenizer`")
        raise TokenizerError(text) from error


def _saved_in(folder: Path, options: ModelOptions) -> PreTrainedTokenizerBase:
    """Load the tokenizer of targets that `save_for_targets` wrote into a folder."""
    with TemporaryDirectory() as place:
        for file in folder.glob(f"{SAVED}*"):
            shutil.copyfile(file, Path(place, file.name.removeprefix(SAVED)))
        tokenizer = load_tokenizer(place, options)
    tokenizer.name_or_path = str(folder)
    return tokenizer


def save_for_targets(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a tokenizer of targets into the folder of a model; none in Python only.

    Such a one reads its files again after it is loaded, by the names that they were saved by.
    """
    if tokenizer.is_fast:
        with TemporaryDirectory() as place:
            tokenizer.save_pretrained(place, save_jinja_files=False)
            for file in Path(place).iterdir():
                shutil.copyfile(file, folder / f"{SAVED}{file.name}")


def about_saved(tokenizer: PreTrainedTokenizerBase | None) -> list[str]:
    """Warn of a tokenizer of targets that `save_for_targets` does not write."""
    if tokenizer is None or tokenizer.is_fast:
        return []
    return [
        f"the tokenizer of targets, {tokenizer.name_or_path}, has no tokenizer.json and is not "
        "saved with the model: pass it as `target_tokenizer` there too"
    ]


def target_of(
    stack: Stack,
    tokenizer: PreTrainedTokenizerBase,
    own: PreTrainedTokenizerBase | None,
    of: TargetOptions,
    fit: Callable[[PreTrainedTokenizerBase], PreTrainedTokenizerBase],
) -> TargetTokenizer:
    """Return the tokenizer of the targets of a model: its ``own`` for targets, or ``tokenizer``.

    ``fit`` makes it one of words, or of texts.

    Raises ModelError for a model that names no first token of targets, UsageError for a tokenizer
    of several languages without that of targets, and TokenizerError as `load_encoder`.
    """
    if own is not None:
        check_numbers(own, tokenizer, stack.whole)
        tokenizer = with_languages(own, of) if hasattr(own, "tgt_lang") else own
    target = _in_target_mode(tokenizer)
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


def check_numbers(
    own: PreTrainedTokenizerBase, tokenizer: PreTrainedTokenizerBase, network: Any
) -> None:
    """Raise TokenizerError for a tokenizer of targets that is of another model.

    A model with one embedding for sources and targets numbers a piece alike in both.
    """
    sides = (network.get_encoder(), network.get_decoder())
    source, target = (getattr(side, "embed_tokens", None) for side in sides)
    if source is None or target is None or source.weight.data_ptr() != target.weight.data_ptr():
        return
    numbers, of_targets = tokenizer.get_vocab(), own.get_vocab()
    common = numbers.keys() & of_targets.keys()
    n_alike = sum(numbers[piece] == of_targets[piece] for piece in common)
    if 2 * n_alike <= len(common):
        raise TokenizerError(
            f"the tokenizer of targets, {own.name_or_path}, is of another model: of the "
            f"{len(common):,} pieces that it shares with {tokenizer.name_or_path} it numbers "
            f"{n_alike:,} alike, and the model has one list for both; pass the `target_tokenizer` "
            "that came with the model"
        )


def target_of_own(
    tokenizer: PreTrainedTokenizerBase, options: ModelOptions, of: TargetOptions
) -> TargetTokenizer:
    """Return the tokenizer of the targets of attention of the user's own.

    Inputs of the decoder begin with the first special token that the tokenizer has of those that
    begin a text, are padding, classify a text, or end it.
    """
    own = load_for_targets("", options, of.target_tokenizer)
    target = _in_target_mode(tokenizer if own is None else own)
    names = ("bos", "pad", "cls", "eos")
    token_ids = (getattr(target, f"{name}_token_id", None) for name in names)
    start = next((number for number in token_ids if number is not None), 0)
    return TargetTokenizer(fit_to_words(target), Targets(start, of.target_rows == "output"))


def _in_target_mode(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return a copy of a tokenizer that cuts targets, where it has ways of its own for these."""
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
        # else each text that it cuts makes it one of sources again
        cast(Any, target)._in_target_context_manager = True
    return target
