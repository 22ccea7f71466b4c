"""Words as they stand in the text: what tokenizers make of words that no space precedes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram
from transformers import PreTrainedTokenizerFast

from headroles.corpus import Example, Sentence
from headroles.encoding import EncodedExample, ExampleEncoder
from headroles.errors import CorpusError
from headroles.models.loading.tokenizers import encode as cut_words
from headroles.models.loading.tokenizers import fit_to_words
from headroles.word_starts import joined_words
from tests.conftest import make_tokenizer
from tests.models.test_tokenizers import byte_level, m2m, marian, of_syllables

LETTERS = "abcdehist犬が吠.,'"
VOCABULARY = ["<unk>", "</s>", "▁", *LETTERS, *(f"▁{letter}" for letter in LETTERS), "▁the", "the"]


def sentence(words: list[str], spaces: list[bool] | None = None, name: str = "s") -> Sentence:
    tree = (-1, *[0] * (len(words) - 1)), ("dep",) * len(words)
    return Sentence(name, "", 0, tuple(words), *tree, spaces=tuple(spaces or ()))


def encoded(tokenizer: Any, *sentences: Sentence) -> EncodedExample:
    fitted = fit_to_words(tokenizer)
    (result,) = ExampleEncoder(fitted, 512).encode([Example(sentences)], Counter())
    return result


def pieces_of(tokenizer: Any, result: EncodedExample) -> list[str]:
    """Return the pieces of each word, with bars between words."""
    tokens = tokenizer.convert_ids_to_tokens(result.input_ids.tolist())
    return [
        " ".join(tokens[start : start + size])
        for start, size in zip(result.starts, result.sizes, strict=True)
    ]


def sentence_piece(scheme: str, *, splits: bool = False) -> PreTrainedTokenizerFast:
    """A tokenizer in the manner of T5 and XLM-R (splits), Marian, or without a prefix (Gemma)."""
    backend = Tokenizer(Unigram([(piece, -float(k)) for k, piece in enumerate(VOCABULARY)], 0))
    if scheme == "llama":
        steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        backend.normalizer = normalizers.Sequence(steps)
    elif scheme == "gemma":
        backend.normalizer = normalizers.Replace(" ", "▁")
    else:
        space = pre_tokenizers.Metaspace(prepend_scheme=scheme)
        steps = [pre_tokenizers.WhitespaceSplit(), space] if splits else [space]
        backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
    backend.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", eos_token="</s>")


SEEING = {
    "t5": lambda: sentence_piece("always", splits=True),
    "marian": lambda: sentence_piece("always"),
    "first": lambda: sentence_piece("first"),
    "never": lambda: sentence_piece("never"),
    "llama": lambda: sentence_piece("llama"),
    "gemma": lambda: sentence_piece("gemma"),
    "roberta": lambda: byte_level("bare"),
    "llama 3": lambda: byte_level("split"),
    "byte-level with a prefix": lambda: byte_level("bare", add_prefix_space=True),
}
"""Tokenizers that see spaces, none of which has a piece that reaches over two words."""
TEXTS = st.lists(st.tuples(st.text("abcdehist", min_size=1, max_size=5), st.booleans()), min_size=1)


@pytest.mark.parametrize("kind", SEEING)
@settings(max_examples=30, deadline=None)
@given(both=st.tuples(TEXTS, TEXTS))
def test_pieces_are_those_of_the_text(kind: str, both: Any) -> None:
    """Characters of the vocabulary are pieces of their own, so that no piece crosses words."""
    tokenizer = SEEING[kind]()
    sentences = [
        sentence([word for word, _ in words], [space for _, space in words]) for words in both
    ]
    texts = [
        "".join(word + " " * space for word, space in [*words[:-1], (words[-1][0], False)])
        for words in both
    ]
    one, pair = encoded(tokenizer, sentences[0]), encoded(tokenizer, *sentences)
    assert one.input_ids.tolist() == tokenizer(texts[0])["input_ids"]
    assert pair.input_ids.tolist() == tokenizer(*texts)["input_ids"]
    words = [word for part in both for word, _ in part]
    spelled = [re.sub("[ ▁Ġ]", "", pieces) for pieces in pieces_of(tokenizer, pair)]
    assert spelled == words


@pytest.mark.parametrize("kind", SEEING)
def test_without_known_spaces_every_word_is_cut_after_a_space(kind: str) -> None:
    tokenizer = SEEING[kind]()
    words = ["the", "deb", "the"]
    cut = pieces_of(tokenizer, encoded(tokenizer, sentence(words)))
    assert cut[0] == cut[2]
    assert all(pieces.startswith(("▁", "Ġ")) for pieces in cut)
    spaced = pieces_of(tokenizer, encoded(tokenizer, sentence(words, [True] * 3)))
    assert spaced[1:] == cut[1:]


def test_chinese_words_have_no_marks_of_spaces() -> None:
    tokenizer = SEEING["marian"]()
    words = ["犬", "が", "吠", "."]
    expected = {None: ["▁ 犬", "▁ が", "▁ 吠", "▁ ."], False: ["▁ 犬", "が", "吠", "."]}
    for space, pieces in expected.items():
        spaces = None if space is None else [space] * 4
        assert pieces_of(tokenizer, encoded(tokenizer, sentence(words, spaces))) == pieces
    inputs, alignment = cut_words(tokenizer, words, spaces=[False] * 4)
    assert tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist())[:3] == ["▁", "犬", "が"]
    assert alignment == [0, 0, 1, 2, 3, None]
    assert cut_words(tokenizer, words, spaces=())[1] == cut_words(tokenizer, words)[1]
    with pytest.raises(CorpusError, match=r"spaces is .*; give true or false for each of the 4"):
        cut_words(tokenizer, words, spaces=[True])


def test_wordpiece_sees_no_spaces() -> None:
    """Whatever spaces the text has, examples are those without any known, to the bit."""
    tokenizer = make_tokenizer()
    assert joined_words(tokenizer) is None
    words = ["the", "do", "n't", "dogs", "."]
    for spaces in ([True, False, True, False, True], [False] * 5, [True] * 5):
        pair = [encoded(tokenizer, *(sentence(words, s),) * 2) for s in (spaces, None)]
        assert pair[0].digest == pair[1].digest


def test_words_without_pieces_and_special_tokens_keep_their_places() -> None:
    tokenizer = SEEING["marian"]()
    words = ["the", "\u200b", "</s>", "deb"]
    cut = encoded(tokenizer, sentence(words, [False] * 4), sentence(["a", "b"], [False] * 2))
    assert cut.words[cut.words >= 0].tolist() == sorted(cut.words[cut.words >= 0])
    assert cut.sizes.tolist()[1:3] == [1, 1]
    assert pieces_of(tokenizer, cut)[2] == "</s>"
    assert len(cut.sizes) == 6


@pytest.mark.parametrize("make", [marian, m2m])
def test_tokenizers_in_python_cut_words_without_a_space(make: Any, tmp_path: Path) -> None:
    tokenizer = make(tmp_path)
    words = ["dog", "dog", "s", "dog", "ƿ", "ƿ"]
    cut = pieces_of(
        tokenizer, encoded(tokenizer, sentence(words, [True, False, False, True] + [False] * 2))
    )
    assert cut[:4] == ["▁dog", "▁dog", "s", "dog"]
    assert "▁" in cut[4]
    assert cut[5] == "<unk>"


def test_syllables_of_phobert_see_no_spaces(tmp_path: Path) -> None:
    assert joined_words(of_syllables("PhobertTokenizer")(tmp_path)) is None


def test_pieces_of_words_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    joined = joined_words(SEEING["marian"]())
    assert joined is not None
    cut = joined._cut
    monkeypatch.setattr(joined, "_cut", lambda words: asked.append(words) or cut(words))
    for words in (["a", "b", "a"], ["b", "c"], ["a"]):
        assert set(joined.pieces_of(words)) >= set(words)
    assert asked == [["a", "b"], ["c"]]
