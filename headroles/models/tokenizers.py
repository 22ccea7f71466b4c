"""Tokenizers from the inside: which can be used, and how they treat the beginning of a word."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

from tokenizers import normalizers
from tokenizers.pre_tokenizers import ByteLevel, Sequence
from torch import nn
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from headroles import storage
from headroles.errors import TokenizerError
from headroles.models.folders import TOKENIZER_FILES, says_no_casing
from headroles.models.hub import where_to_look
from headroles.models.options import ModelOptions
from headroles.models.quiet import quiet_transformers
from headroles.wording import in_one_line

_SPARE_SHARE, _SPARE_NUMBER = 0.1, 128
"""Embeddings that no piece has, as a share and as a number: models have no more of them, put there
to make sizes round."""


def load_tokenizer(
    source: str | Path | PreTrainedTokenizerBase, options: ModelOptions
) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder or hub id, as it stands there; a loaded one is given back.

    Raises TokenizerError where there is none.
    """
    if isinstance(source, PreTrainedTokenizerBase):
        return source
    if not source:
        raise TokenizerError("the model does not know its tokenizer; pass tokenizer=... with it")
    folder = Path(source)
    if folder.is_dir():
        storage.finish_swap(folder)
    if folder.is_dir() and not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise TokenizerError(
            f"{source} holds no tokenizer; give one with --tokenizer, or save it there with "
            "tokenizer.save_pretrained"
        )
    try:
        with quiet_transformers():
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
                source,
                trust_remote_code=options.trust_remote_code,
                **where_to_look(source, options),
            )
    except Exception as error:  # the tokenizers library raises bare Exception for broken files
        raise TokenizerError(
            f"the tokenizer of {source} cannot be loaded ({in_one_line(error)}); give a folder "
            "with a tokenizer.json, for example with --tokenizer"
        ) from error
    return tokenizer


def fit_to_words(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """``tokenizer``, or a copy of it that takes every word for the beginning of one.

    Raises TokenizerError for one that cannot tell which piece belongs to which word.
    """
    if not tokenizer.is_fast:
        raise TokenizerError(
            f"{type(tokenizer).__name__} is a slow tokenizer and cannot tell which piece "
            "belongs to which word; give a model folder with a tokenizer.json"
        )
    fitted = with_prefix_space(tokenizer)
    _try_out(fitted)
    return fitted


def _try_out(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise TokenizerError where two sentences of words cannot be encoded at all."""
    try:
        tokenizer(["a", "b"], ["c"], is_split_into_words=True, verbose=False)
    except BaseException as error:  # a defect of tokenizer.json ends in a panic, no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise TokenizerError(
            f"the tokenizer {tokenizer.name_or_path} cannot encode a pair of sentences "
            f"({in_one_line(error)}); check its tokenizer.json"
        ) from error


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


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """A digest of how a text becomes the inputs of a model; files of other names have the same.

    Truncation and padding are left out: every call sets its own.
    """
    if tokenizer.is_fast:
        backend = json.loads(tokenizer.backend_tokenizer.to_str())
        backend |= {"truncation": None, "padding": None}
    else:
        backend = {"class": type(tokenizer).__name__, "vocabulary": tokenizer.get_vocab()}
    beside = [tokenizer.special_tokens_map, tokenizer.model_input_names, tokenizer.padding_side]
    content = json.dumps([backend, *beside], sort_keys=True, default=str)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def limit_of(tokenizer: PreTrainedTokenizerBase) -> int:
    """Most tokens of an input that the tokenizer is told of; a huge number for no limit.

    Raises TokenizerError for what is no number above 0.
    """
    limit = tokenizer.model_max_length
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 1:
        raise TokenizerError(
            f"model_max_length of the tokenizer {tokenizer.name_or_path} is {limit!r:.40}; it must "
            "be a number above 0: check tokenizer_config.json"
        )
    return int(min(limit, _NO_LIMIT))


_NO_LIMIT = 10**30


def refuse_other_vocabulary(
    tokenizer: PreTrainedTokenizerBase, network: PreTrainedModel, name: str
) -> None:
    """Raise TokenizerError for a tokenizer with more pieces than the model has embeddings for."""
    n_embeddings = _n_embeddings(network)
    n_pieces = tokenizer.vocab_size  # without what was added later, and may never be used
    if n_pieces > n_embeddings:
        raise TokenizerError(
            f"the tokenizer {tokenizer.name_or_path} knows {n_pieces} pieces, and {name} has "
            f"embeddings for {n_embeddings}: it belongs to another model; give the one that "
            "came with the model"
        )


def refuse_unknown_specials(
    tokenizer: PreTrainedTokenizerBase, network: PreTrainedModel, name: str
) -> None:
    """Raise TokenizerError for a special token in use that the model has no embedding for.

    transformers gives special tokens that it does not find in the vocabulary numbers of their own,
    or looks for the number of the unknown token in their place, without end if that has none.
    """
    n_embeddings = _n_embeddings(network)
    for kind in ("pad_token", "unk_token", "cls_token", "sep_token"):
        token = getattr(tokenizer, kind)
        try:
            number = getattr(tokenizer, f"{kind}_id")
        except RecursionError:
            raise TokenizerError(
                f"the unk_token {tokenizer.unk_token!r} of the tokenizer {tokenizer.name_or_path} "
                "is not in its vocabulary; correct unk_token in tokenizer_config.json or "
                "special_tokens_map.json"
            ) from None
        if number is not None and number >= n_embeddings:
            raise TokenizerError(
                f"the {kind} {token!r} of the tokenizer {tokenizer.name_or_path} has number "
                f"{number}, and {name} has embeddings for {n_embeddings} pieces; correct {kind} in "
                "tokenizer_config.json or special_tokens_map.json"
            )


def doubts_about(
    tokenizer: PreTrainedTokenizerBase,
    network: PreTrainedModel,
    source: str | Path | PreTrainedTokenizerBase,
) -> Iterator[str]:
    """What to know of a tokenizer that may not be the right one."""
    n_pieces, n_embeddings = len(tokenizer), _n_embeddings(network)
    if n_embeddings - n_pieces > max(_SPARE_NUMBER, _SPARE_SHARE * n_embeddings):
        yield (
            f"the tokenizer knows {n_pieces} pieces, and the model has embeddings for "
            f"{n_embeddings}: check that they belong together"
        )
    if isinstance(source, str | Path) and says_no_casing(Path(source)):
        kept = "keeps" if not getattr(tokenizer, "do_lower_case", True) else "drops"
        yield (
            f"vocab.txt in {source} has capitals, and nothing beside it says whether they count: "
            f"the tokenizer {kept} them; if that is wrong, write "
            f'{{"do_lower_case": {str(kept == "keeps").lower()}}} to tokenizer_config.json there'
        )


def _n_embeddings(network: PreTrainedModel) -> int:
    return len(cast(nn.Embedding, network.get_input_embeddings()).weight)
