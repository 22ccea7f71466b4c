"""Tokenizers: loading them, checks of their fit, and their treatment of word beginnings."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import nn
from transformers import (
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from headroles.arrays import IntArray
from headroles.corpus import Example, Sentence, words_alone
from headroles.encoding import ExampleEncoder, check_embedded, collate, tokenizer_failures
from headroles.errors import TokenizerError
from headroles.models.families import quiet_transformers
from headroles.models.loading.folders import local_folder, says_no_casing
from headroles.models.loading.rebuilt import as_in_file
from headroles.models.options import ModelOptions
from headroles.word_starts import with_prefix_space
from headroles.wording import as_given, listed, shortened

_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "spiece.model"),
    *("spm.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
"""Files that a tokenizer can be made from. Without any of them it would be an empty one."""
_SAMPLE = "The old dog's kennel, 1.5 km off: naïve Straße, ÉTÉ, 犬が吠える!"
_SPARE_SHARE, _SPARE_NUMBER = 0.1, 128
"""Share and number of embeddings without a piece that models may have, to round their sizes."""


def load_tokenizer(
    source: str | Path | PreTrainedTokenizerBase, options: ModelOptions
) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder or hub id, as its file has it; return a loaded one.

    Raises TokenizerError if there is none.
    """
    return read_tokenizer(source, options)[0]


def read_tokenizer(
    source: str | Path | PreTrainedTokenizerBase, options: ModelOptions
) -> tuple[PreTrainedTokenizerBase, list[str]]:
    """Load a tokenizer as `load_tokenizer` does, with warnings about it."""
    if isinstance(source, PreTrainedTokenizerBase):
        return source, []
    if source is not None and not isinstance(source, str | Path):
        raise TokenizerError(
            f"{as_given(source)} is no tokenizer; give a folder, a hub id, or a loaded tokenizer"
        )
    if not source:
        raise TokenizerError("the model does not know its tokenizer; pass tokenizer=... with it")
    folder = local_folder(source)
    source = folder or source
    if folder is not None and not any((folder / file).is_file() for file in _FILES):
        raise TokenizerError(
            f"{source} holds no tokenizer; give one with `tokenizer`, or save it there with "
            "tokenizer.save_pretrained"
        )
    with tokenizer_failures(f"the tokenizer of {source} cannot be loaded"), quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(
            source, trust_remote_code=options.trust_remote_code, revision=options.revision
        )
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise TokenizerError(
            f"the tokenizer_class in the files of {source} is {type(tokenizer).__name__}, no "
            "tokenizer of text; correct it in tokenizer_config.json, or give another folder "
            "with `tokenizer`"
        )
    with (
        tokenizer_failures(f"the tokenizer of {source} cannot encode a text"),
        quiet_transformers(),
    ):
        return as_in_file(tokenizer, source, options)


def fit_to_words(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return ``tokenizer``, or a copy that treats every word as the beginning of one.

    Raises TokenizerError for one that cannot encode a sentence and a pair of sentences.
    """
    tokenizer = without_dropout(tokenizer)
    fitted = with_prefix_space(tokenizer) if tokenizer.is_fast else tokenizer
    sentence = _named_by_its_words(["a"])
    trial = [Example((sentence,)), Example((sentence, sentence))]
    with tokenizer_failures(
        f"the tokenizer {tokenizer.name_or_path} cannot encode a sentence and a pair of sentences "
        "word by word"
    ):
        ExampleEncoder(fitted, 10**9, False).encode(trial, Counter())
    return fitted


def without_dropout(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return ``tokenizer``, or a copy that cuts a text in the same way each time."""
    if not _dropout_of(tokenizer):
        return tokenizer
    tokenizer = copy.deepcopy(tokenizer)
    cast(Any, tokenizer.backend_tokenizer.model).dropout = None
    return tokenizer


def _dropout_of(tokenizer: PreTrainedTokenizerBase) -> float:
    """Return the share of merges that BPE leaves out at random."""
    if not tokenizer.is_fast:
        return 0.0
    return getattr(tokenizer.backend_tokenizer.model, "dropout", None) or 0.0


_fitted = functools.lru_cache(4)(
    lambda source: fit_to_words(load_tokenizer(source, ModelOptions()))
)


def encode(
    tokenizer: str | Path | PreTrainedTokenizerBase,
    words: Iterable[str],
    spaces: Iterable[bool] | None = None,
) -> tuple[dict[str, IntArray], list[int | None]]:
    """Cut the words of a sentence into pieces, as headroles does.

    A tokenizer called by hand may need a space before each word, and silently take all words for
    continuations of the first.

    Args:
        tokenizer: a folder, a hub id, or a loaded tokenizer.
        words: the words of a sentence.
        spaces: whether a space follows each word in the text, as in ``Doc(words=, spaces=)`` of
            spaCy and `Sentence.spaces`. Without it, or empty, every word is cut as after a space.

    Returns:
        The inputs of a model, arrays (1, pieces); and for each piece the place of its word, None
        for a special token: the alignment that `score_attention` takes.

    Raises UsageError for a text in place of words, CorpusError for a word that is no text, and
    TokenizerError as `fit_to_words`, and for words without any piece.

    With ``model`` the folder of an encoder:

    >>> from headroles import encode
    >>> encode(model, ["the", "of"])[1]
    [None, 0, 1, None]
    """
    sentence, fitted = _named_by_its_words(words, spaces), _fitted(tokenizer)
    has_types = "token_type_ids" in fitted.model_input_names
    cut = ExampleEncoder(fitted, 10**9, has_types).encode([Example((sentence,))], Counter())
    if not cut:
        raise TokenizerError("the words have no word pieces; give others")
    alignment = [None if word < 0 else word for word in cut[0].words.tolist()]
    return collate(cut, fitted.pad_token_id or 0), alignment


def _named_by_its_words(words: Iterable[str], spaces: Iterable[bool] | None = None) -> Sentence:
    """Return the sentence of these words, named by them in messages."""
    sentence = words_alone(words, spaces)
    return replace(sentence, id=shortened(" ".join(sentence.words)))


def stand_in_tokenizer() -> PreTrainedTokenizerBase:
    """Make a placeholder tokenizer, for use with an alignment."""
    backend = Tokenizer(WordLevel({"[special]": 0, "[piece]": 1}, unk_token="[piece]"))  # noqa: S106
    return cast(Any, PreTrainedTokenizerFast)(tokenizer_object=backend)  # type: ignore[no-any-return]


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a digest of how text becomes the inputs of a model, whatever its files are called.

    Truncation and padding are ignored, since every call sets its own.
    """
    if tokenizer.is_fast:
        backend = json.loads(tokenizer.backend_tokenizer.to_str())
        backend |= {"truncation": None, "padding": None}
    else:
        backend = {"class": type(tokenizer).__name__, "vocabulary": tokenizer.get_vocab()}
        backend["pieces"] = tokenizer.tokenize(_SAMPLE)  # by files and settings beside it
    beside = [tokenizer.special_tokens_map, tokenizer.model_input_names, tokenizer.padding_side]
    content = json.dumps([backend, *beside], sort_keys=True, default=str)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def limit_of(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the tokenizer's limit of tokens; a huge number without a limit.

    Raises TokenizerError for a limit that is not a number above 0.
    """
    limit = tokenizer.model_max_length
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 1:
        raise TokenizerError(
            f"model_max_length of the tokenizer {tokenizer.name_or_path} is {limit!r:.40}; it must "
            "be a number above 0: check tokenizer_config.json"
        )
    return int(min(limit, 10**30))


_OF_EVERY_TEXT = {
    "pad_token": "padding",
    "unk_token": "an unknown word",
    "cls_token": "the beginning of a text",
    "sep_token": "the end of a text",
}
"""Tokens that any text may have, and their place in it."""


def check_tokenizer(
    tokenizer: PreTrainedTokenizerBase, network: PreTrainedModel, name: str
) -> None:
    """Raise TokenizerError if the model has no embedding for a piece that any text may have.

    Unknown words are counted by the unknown token. Other pieces may be beyond the embeddings, as
    long as no text has them. transformers looks up the number of the unknown token for a special
    token that is not in the vocabulary, in an endless loop if that is missing too.
    """
    try:
        tokenizer.convert_tokens_to_ids(tokenizer.all_special_tokens)
    except RecursionError:
        raise TokenizerError(
            f"the unk_token {tokenizer.unk_token!r} of the tokenizer {tokenizer.name_or_path} is "
            "not in its vocabulary; correct unk_token in tokenizer_config.json or "
            "special_tokens_map.json"
        ) from None
    for token, place in _OF_EVERY_TEXT.items():
        number = getattr(tokenizer, f"{token}_id") or 0
        check_embedded([number], n_embeddings(network), tokenizer, f"{place} for {name}")
    _check_frame(tokenizer, network, name)


def _check_frame(tokenizer: PreTrainedTokenizerBase, network: PreTrainedModel, name: str) -> None:
    """Raise TokenizerError for numbers around every text that the model has no embeddings for.

    A post-processor in tokenizer.json has numbers of its own, beside those of the vocabulary.
    """
    if not tokenizer.is_fast:
        return
    with tokenizer_failures(f"the tokenizer {tokenizer.name_or_path} cannot encode an empty text"):
        backend = tokenizer.backend_tokenizer
        frames = [backend.encode(""), backend.encode("", "")]
    n_types = getattr(network.config, "type_vocab_size", None) or 0
    numbers = {"piece": ([frame.ids for frame in frames], n_embeddings(network))}
    if n_types > 1 and "token_type_ids" in tokenizer.model_input_names:
        numbers["segment"] = ([frame.type_ids for frame in frames], n_types)
    for kind, (ids, n_known) in numbers.items():
        highest = max(chain.from_iterable(ids), default=0)
        if highest >= n_known:
            raise TokenizerError(
                f"the tokenizer {tokenizer.name_or_path} adds the {kind} with number {highest} to "
                f"texts, and {name} has {kind} embeddings for {n_known}: give the tokenizer "
                "that came with the model, or correct post_processor in tokenizer.json"
            )


def doubts_about(
    tokenizer: PreTrainedTokenizerBase,
    network: PreTrainedModel,
    source: str | Path | PreTrainedTokenizerBase,
) -> Iterator[str]:
    """Yield warnings about a loaded tokenizer that may not belong to the model, or varies."""
    if dropout := _dropout_of(tokenizer):
        yield (
            f"the tokenizer would leave out {dropout:.0%} of its merges at random, and scores "
            "would differ at every run: its dropout was set to none"
        )
    n_pieces, n_known = len(tokenizer), n_embeddings(network)
    if n_known - n_pieces > max(_SPARE_NUMBER, _SPARE_SHARE * n_known):
        yield (
            f"the tokenizer knows {n_pieces} pieces, and the model has embeddings for "
            f"{n_known}: check that they belong together"
        )
    if beyond := [piece for piece, number in tokenizer.get_vocab().items() if number >= n_known]:
        yield (
            f"the model has embeddings for {n_known} pieces, and none for {listed(beyond)} of the "
            "tokenizer: a text that has such a piece is refused"
        )
    if not isinstance(source, str | Path) or not says_no_casing(Path(source)):
        return
    if tokenizer.tokenize("A") == tokenizer.tokenize("a"):
        yield (
            f"vocab.txt in {source} has capitals, and nothing beside it says whether they count: "
            'the tokenizer drops them; if that is wrong, write {"do_lower_case": false} to '
            "tokenizer_config.json there"
        )


def n_embeddings(network: PreTrainedModel) -> int:
    """Return the number of pieces that a model has embeddings for."""
    return len(cast(nn.Embedding, network.get_input_embeddings()).weight)
