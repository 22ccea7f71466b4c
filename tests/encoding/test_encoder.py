"""Word pieces with their segments and words, the arcs between them, and their digest."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import BatchEncoding, PreTrainedTokenizerFast

from headroles.corpus import ROOT, Example, Sentence
from headroles.encoding import NO_PIECES, SPECIAL, TOO_LONG, EncodedExample, ExampleEncoder
from headroles.errors import TokenizerError
from headroles.roles import PaddedBatch
from headroles.roles.syntactic import Arcs
from tests.conftest import make_tokenizer

S = SPECIAL
TOKENIZER = make_tokenizer()


def sentence(
    text: str, name: str = "s", arcs: dict[int, tuple[int, str]] | None = None
) -> Sentence:
    """Words of ``text``; ``arcs`` maps dependents to (governor, relation); all others are roots."""
    words = tuple(text.split(" "))
    ends = [(arcs or {}).get(k, (ROOT, "root")) for k in range(len(words))]
    return Sentence(name, "doc", 0, words, *zip(*ends, strict=True))


def example(*texts: str, arcs: dict[int, tuple[int, str]] | None = None) -> Example:
    """Sentences a, b, ... of these texts, all with the same arcs."""
    return Example(tuple(map(sentence, texts, "abc", [arcs] * len(texts))))


def encode(
    *examples: Example, tokenizer: PreTrainedTokenizerFast = TOKENIZER, max_tokens: int = 512
) -> tuple[list[EncodedExample], Counter[str]]:
    skipped: Counter[str] = Counter()
    return ExampleEncoder(tokenizer, max_tokens).encode(examples, skipped), skipped


def arcs_of(
    encoded: EncodedExample,
    relations: tuple[str, ...] = ("nsubj", "obj"),
    keep_subtypes: bool = False,
) -> tuple[list[list[int]], int]:
    """First piece and number of pieces of dependent and governor, and label; how many were lost."""
    table = Arcs(relations, keep_subtypes)(PaddedBatch([encoded]))
    return np.column_stack([table.first, table.second, table.labels]).tolist(), table.n_lost


def pieces(encoded: EncodedExample) -> str:
    return " ".join(TOKENIZER.convert_ids_to_tokens(encoded.input_ids.tolist()))


def test_one_sentence() -> None:
    (encoded,), skipped = encode(example("The cat is in"))
    assert pieces(encoded) == "[CLS] the c ##a ##t is in [SEP]"
    assert encoded.segments.tolist() == [S, 0, 0, 0, 0, 0, 0, S]
    assert encoded.token_type_ids.tolist() == [0] * 8
    assert (encoded.id, encoded.document, len(encoded)) == ("a", "doc", 8)
    assert encoded.words.tolist() == [-1, 0, 1, 1, 1, 2, 3, -1]
    assert (encoded.starts.tolist(), encoded.sizes.tolist()) == ([1, 2, 5, 6], [1, 3, 1, 1])
    assert not skipped


@pytest.mark.parametrize("spaced", ["26 000", "à  côté", "the cat in"])
def test_a_form_with_spaces_is_one_word(spaced: str) -> None:
    words = ("the", spaced, "is")
    one = Sentence("s", "doc", 0, words, (1, ROOT, 1), ("det", "root", "dep"))
    (encoded,), skipped = encode(Example((one,)))
    n_inside = sum(map(len, map(TOKENIZER.tokenize, spaced.split())))
    assert encoded.sizes.tolist() == [1, n_inside, 1]
    assert encoded.words.tolist() == [-1, 0, *[1] * n_inside, 2, -1]
    assert not skipped


def test_two_sentences() -> None:
    (encoded,), _ = encode(example("the cat", "it was"))
    assert pieces(encoded) == "[CLS] the c ##a ##t [SEP] it was [SEP]"
    assert encoded.segments.tolist() == [S, 0, 0, 0, 0, S, 1, 1, S]
    assert encoded.token_type_ids.tolist() == [0] * 6 + [1] * 3
    assert encoded.id == "a+b"


@pytest.mark.parametrize("word", ["[SEP]", "[CLS]", "[PAD]", "a[SEP]b"])
def test_words_that_read_like_special_tokens_are_words(word: str) -> None:
    (encoded,), skipped = encode(example(f"{word} is", arcs={0: (1, "nsubj")}))
    assert encoded.segments.tolist() == [S, *[0] * (len(encoded) - 2), S]
    assert arcs_of(encoded) == ([[1, len(encoded) - 3, len(encoded) - 2, 1, 0]], 0)
    assert not skipped


def test_arcs_by_hand() -> None:
    # 0 [CLS]  1-3 cat  4-6 eat  7-9 mice  10 [SEP]  11 it  12-13 is  14-16 fun  17 [SEP]
    first = sentence("cat eat mice", arcs={0: (1, "nsubj"), 2: (1, "obj")})
    second = sentence("it is? fun", arcs={0: (2, "nsubj"), 1: (2, "cop")})
    (encoded,), _ = encode(Example((first, second)))
    expected = "[CLS] c ##a ##t e ##a ##t m ##i ##c ##e [SEP] it is ? f ##u ##n [SEP]"
    assert pieces(encoded) == expected
    expected_arcs = [[1, 3, 4, 3, 1], [7, 4, 4, 3, 0], [12, 1, 15, 3, 1]]
    assert arcs_of(encoded, ("obj", "nsubj")) == (expected_arcs, 0)


@pytest.mark.parametrize(
    ("keep_subtypes", "relations", "expected"),
    [
        (False, ("nsubj",), [(1, 0), (2, 0)]),
        (False, ("nsubj", "nsubj:pass"), [(1, 0), (2, 0)]),
        (False, ("nsubj:pass",), []),
        (True, ("nsubj",), [(1, 0)]),
        (True, ("nsubj", "nsubj:pass"), [(1, 0), (2, 1)]),
        (True, ("nsubj:pass",), [(2, 0)]),
    ],
)
def test_subtypes(
    keep_subtypes: bool, relations: tuple[str, ...], expected: list[tuple[int, int]]
) -> None:
    arcs = {0: (2, "nsubj"), 1: (2, "nsubj:pass")}
    (encoded,), _ = encode(example("it that is", arcs=arcs))
    found, _ = arcs_of(encoded, relations, keep_subtypes)
    assert [(row[0], row[4]) for row in found] == expected


@pytest.mark.parametrize("nothing", ["\u200b", "\x07", "\u200b\ufeff"])
@pytest.mark.parametrize(
    ("place", "arcs"),
    [(0, {0: (1, "nsubj"), 2: (1, "obj")}), (1, {1: (0, "nsubj"), 2: (0, "obj")})],
)
def test_words_without_pieces_lose_their_arcs(
    nothing: str, place: int, arcs: dict[int, tuple[int, str]]
) -> None:
    words = ["the", "it"]
    words.insert(place, nothing)
    (encoded,), _ = encode(example(" ".join(words), arcs=arcs))
    assert len(encoded) == 4
    assert arcs_of(encoded) == ([[2, 1, 1, 1, 1]], 1)


@given(
    st.lists(
        st.lists(st.text("ab\u200b .", min_size=1, max_size=4), min_size=1, max_size=5),
        min_size=1,
        max_size=2,
    )
)
def test_arcs_speak_of_the_pieces_of_their_words(texts: list[list[str]]) -> None:
    """Every word of a chain, encoded alone, has the pieces that its arc says it has."""
    sentences = [
        Sentence("s", "d", 0, tuple(words), (*range(-1, n - 1),), ("nsubj",) * n)
        for words in texts
        for n in [len(words)]
    ]
    alone = [
        [TOKENIZER([[word]], is_split_into_words=True)["input_ids"][0][1:-1] for word in words]
        for words in texts
    ]
    found, skipped = encode(Example(tuple(sentences)))
    if not any(map(any, alone)):
        assert (found, skipped) == ([], {NO_PIECES: 1})
        return
    (encoded,) = found
    chains = [(words[k], words[k - 1]) for words in alone for k in range(1, len(words))]
    expected = [(own, governor) for own, governor in chains if own and governor]
    arcs, n_lost = arcs_of(encoded)
    ends = [
        (encoded.input_ids[a : a + n].tolist(), encoded.input_ids[b : b + m].tolist())
        for a, n, b, m, _ in arcs
    ]
    assert ends == expected
    assert n_lost == len(chains) - len(expected)


def test_examples_without_pieces_or_too_long_are_counted_and_the_others_keep_their_order() -> None:
    """Without pieces, heads could only attend to special tokens."""
    texts = ["the", "the of and", "it is", "the of and to", "a"]
    examples = [Example((sentence(text, name=text),)) for text in texts]
    encoded, skipped = encode(*examples, max_tokens=4)
    assert [example.id for example in encoded] == ["the", "it is", "a"]
    assert [len(example) for example in encoded] == [3, 4, 3]
    assert skipped == {TOO_LONG: 2}
    nothing, it, long = "\u200b \u200b", "it", "the it " * 8 + "the it"
    texts = ((nothing,), (it,), (nothing, nothing), (nothing, it), (long,))
    encoded, skipped = encode(*(example(*those) for those in texts))
    assert [len(one) for one in encoded] == [3, 4, 20]
    assert skipped == {NO_PIECES: 2}


def test_examples_do_not_depend_on_those_around_them() -> None:
    alone = example("the cat is", arcs={1: (2, "nsubj")})
    (one,), _ = encode(alone)
    (_, again), _ = encode(example("a much longer one . . ."), alone)
    assert np.array_equal(one.input_ids, again.input_ids)
    assert arcs_of(one) == arcs_of(again) == ([[2, 3, 5, 1, 0]], 0)
    assert one.digest == again.digest


def test_nothing_is_truncated_or_padded_whatever_the_tokenizer_is_set_to() -> None:
    tokenizer = make_tokenizer()
    tokenizer.backend_tokenizer.enable_truncation(8)
    tokenizer.backend_tokenizer.enable_padding(length=16)
    tokenizer.model_max_length = 4
    examples = [example(" ".join(["the"] * n)) for n in (10, 1)]
    encoded, skipped = encode(*examples, tokenizer=tokenizer)
    assert [len(example) for example in encoded] == [12, 3]
    assert not skipped


def test_tokenizers_that_change_the_order_of_words_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(BatchEncoding, "word_ids", lambda *_: [None, 1, 1, 1, 0, None])
    with pytest.raises(TokenizerError, match="does not keep the order of the words"):
        encode(example("the cat"))


COUNTS = ("pieces", "unknown_pieces", "words", "words_without_known_piece", "words_without_pieces")


def test_unknown_pieces_and_words_without_a_known_one_are_counted() -> None:
    # 猫 is unknown and a word; "it猫" has a known piece; a zero-width space has no piece at all
    encoder = ExampleEncoder(make_tokenizer(), 512)
    encoder.encode([example("the 猫 it猫 \u200b")], Counter())
    assert [encoder.counts[name] for name in COUNTS] == [4, 2, 4, 2, 1]
    pair = example("the 猫", "猫 it is")
    encoder.encode([pair], Counter())
    encoder.encode([pair, example("it")], Counter())
    assert [encoder.counts[name] for name in COUNTS] == [4 + 11, 2 + 4, 4 + 11, 2 + 4, 1]


EXAMPLE = EncodedExample(
    id="a+b",
    document="d",
    input_ids=np.array([2, 7, 8, 3, 9, 3]),
    token_type_ids=np.array([0, 0, 0, 0, 1, 1]),
    segments=np.array([SPECIAL, 0, 0, SPECIAL, 1, SPECIAL]),
    words=np.array([-1, 0, 1, -1, 2, -1]),
    starts=np.array([1, 2, 4]),
    sizes=np.array([1, 1, 1]),
    governors=np.array([1, -1, -1]),
    relations=("nsubj", "root", "root"),
)


@pytest.mark.parametrize(
    ("field", "place", "value"),
    [
        *(("input_ids", 1, 6), ("token_type_ids", 4, 0), ("segments", 4, 0)),
        *(("words", 2, 0), ("governors", 2, 1), ("relations", 0, "obj")),
    ],
)
def test_input_words_and_tree_are_noticed(field: str, place: int, value: int | str) -> None:
    other = list(getattr(EXAMPLE, field))
    other[place] = value
    changed = tuple(other) if field == "relations" else np.array(other)
    assert replace(EXAMPLE, **{field: changed}).digest != EXAMPLE.digest


def test_names_and_token_types_of_one_segment_are_no_content() -> None:
    # Stored digests are compared with those of other machines: this one must never change.
    assert EXAMPLE.digest == "78cc090dfea9faf9"
    assert replace(EXAMPLE, id="x", document="y").digest == EXAMPLE.digest
    bare = replace(EXAMPLE, token_type_ids=None)
    zeros = replace(EXAMPLE, token_type_ids=np.zeros(6, dtype=np.int64))
    assert bare.digest == zeros.digest != EXAMPLE.digest
    # Arrays do not run into each other: the last number of one moves to the next.
    governors = np.concatenate([EXAMPLE.words[-1:], EXAMPLE.governors])
    moved = replace(EXAMPLE, words=EXAMPLE.words[:-1], governors=governors)
    assert moved.digest != EXAMPLE.digest
