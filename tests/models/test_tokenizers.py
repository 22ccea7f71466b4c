"""Tokenizers that tell a word's beginning by the space before it."""

from __future__ import annotations

from collections import Counter

import pytest
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from headroles.corpus import ROOT, Example, Sentence
from headroles.encoding import SPECIAL, EncodedExample, ExampleEncoder
from headroles.errors import TokenizerError, UsageError
from headroles.models.loading.tokenizers import encode as cut_words
from headroles.models.loading.tokenizers import fit_to_words, with_prefix_space
from tests.conftest import make_tokenizer

S = SPECIAL


def sentence(text: str) -> Sentence:
    words = tuple(text.split(" "))
    return Sentence("s", "d", 0, words, (ROOT,) * len(words), ("root",) * len(words))


def encode(example: Example, tokenizer: PreTrainedTokenizerFast) -> EncodedExample:
    (encoded,) = ExampleEncoder(tokenizer, 512).encode([example], Counter())
    return encoded


WORD_PATTERN = r"'t| ?\p{L}+| ?[^\s\p{L}]+|\s+"


def byte_level(kind: str, add_prefix_space: bool = False) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer in the manner of RoBERTa ("bare") or Llama 3 ("split")."""
    step = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=kind != "split")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {entry: k for k, entry in enumerate(["<s>", "</s>", "<unk>", *alphabet, "Ġd"])}
    backend = Tokenizer(BPE(vocabulary, [("Ġ", "d")], unk_token="<unk>"))
    backend.pre_tokenizer = step
    if kind == "split":
        split = pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="isolated")
        backend.pre_tokenizer = pre_tokenizers.Sequence([split, step])
    if kind == "normalized":
        backend.normalizer = normalizers.NFC()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 1)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", cls_token="<s>", sep_token="</s>"
    )


BYTE_LEVEL = ["bare", "split", "normalized"]


@pytest.mark.parametrize("kind", BYTE_LEVEL)
def test_words_are_cut_by_hand_as_they_are_scored(kind: str) -> None:
    """Called by itself, such a tokenizer takes all words for continuations of one another."""
    words, tokenizer = ["a", "dog", "don't"], byte_level(kind)
    pieces, alignment = cut_words(tokenizer, iter(words))
    expected = encode(Example((sentence("a dog don't"),)), fit_to_words(tokenizer))
    assert pieces["input_ids"].tolist() == [expected.input_ids.tolist()]
    assert alignment == [None if word < 0 else word for word in expected.words]
    by_itself = tokenizer(words, is_split_into_words=True)["input_ids"]
    assert by_itself != pieces["input_ids"][0].tolist()
    with pytest.raises(TokenizerError, match="no word pieces"):
        cut_words(make_tokenizer(), ["\u200b"])
    with pytest.raises(UsageError, match="the sentence is 'a dog'; give its words, in a list"):
        cut_words(make_tokenizer(), "a dog")


@pytest.mark.parametrize("kind", BYTE_LEVEL)
def test_words_of_byte_level_tokenizers_begin_with_a_space(kind: str) -> None:
    tokenizer = byte_level(kind)
    example = Example((sentence("do don't"), sentence("no")))
    encoded = encode(example, fit_to_words(tokenizer))
    assert tokenizer.convert_ids_to_tokens(encoded.input_ids.tolist()) == (
        "<s> Ġd o Ġd o n ' t </s> </s> Ġ n o </s>".split()
    )
    assert encoded.segments.tolist() == [S, *[0] * 7, S, S, 1, 1, 1, S]
    assert (encoded.starts.tolist(), encoded.sizes.tolist()) == ([1, 3, 10], [2, 5, 3])


@pytest.mark.parametrize("kind", BYTE_LEVEL)
def test_words_are_cut_as_in_running_text(kind: str) -> None:
    tokenizer = byte_level(kind)
    encoded = encode(Example((sentence("do don't é 1d"),)), with_prefix_space(tokenizer))
    assert encoded.input_ids.tolist() == tokenizer(" do don't é 1d")["input_ids"]


@pytest.mark.parametrize("kind", BYTE_LEVEL)
def test_the_tokenizer_given_stays_as_it_was(kind: str) -> None:
    tokenizer = byte_level(kind)
    before = tokenizer.backend_tokenizer.to_str()
    changed = with_prefix_space(tokenizer)
    assert changed is not tokenizer
    encode(Example((sentence("do don't"),)), changed)
    assert tokenizer.backend_tokenizer.to_str() == before


@pytest.mark.parametrize("kind", [*BYTE_LEVEL, "wordpiece"])
def test_tokenizers_that_need_no_space_are_used_as_they_are(kind: str) -> None:
    tokenizer = make_tokenizer() if kind == "wordpiece" else byte_level(kind, add_prefix_space=True)
    assert with_prefix_space(tokenizer) is tokenizer


@pytest.mark.parametrize("kind", BYTE_LEVEL)
def test_empty_words_get_no_piece(kind: str) -> None:
    empty = Sentence("s", "d", 0, ("", "do"), (1, ROOT), ("nsubj", "root"))
    encoded = encode(Example((empty,)), with_prefix_space(byte_level(kind)))
    assert encoded.segments.tolist() == [S, 0, 0, S]
    assert encoded.sizes.tolist() == [0, 2]
