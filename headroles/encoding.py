"""Encoding of examples as word pieces, by the model's tokenizer or by a given alignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from headroles.arrays import IntArray
from headroles.corpus import ROOT, Example, Sentence, Skipped
from headroles.errors import TokenizerError, is_panic, lacks_memory
from headroles.reach import TARGET
from headroles.word_starts import joined_words, lone_spaces
from headroles.wording import as_given, in_one_line

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Alignment: TypeAlias = Sequence[int | None]
"""For each piece of a sentence, the number of its word from 0; None for a special token."""
TOO_LONG, NO_PIECES = "examples longer than the model takes", "examples without word pieces"
UNKNOWN_PIECE = 1
"""Input id of pieces of which only the words are known."""
SPECIAL = -1
"""Segment of a special token, which the tokenizer added: a classifier token or a separator."""


@dataclass(frozen=True, slots=True)
class EncodedExample:
    """One input of the model, with n tokens, W words and their dependency tree.

    Of the tokens (n,): ``segments`` is 0 or 1 for pieces of the first or second sentence,
    ``SPECIAL`` otherwise; ``words`` is the number of the token's word within the example, -1 for
    special tokens.

    Of the words (W,): ``starts`` is the first piece and ``sizes`` the number of pieces, which are
    adjacent; ``governors`` is the number of the governor, -1 for roots; ``relations`` is the label
    of the arc to it. ``sentences`` are the source of the example, for other annotations of words;
    the digest ignores them.
    """

    id: str
    document: str
    input_ids: IntArray
    token_type_ids: IntArray | None
    segments: IntArray
    words: IntArray
    starts: IntArray
    sizes: IntArray
    governors: IntArray
    relations: tuple[str, ...]
    sentences: tuple[Sentence, ...] = ()
    n_source: int | None = None
    """Number of tokens of the source, if those of a target follow; None for one sequence."""

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def has_text(self) -> bool:
        """Whether the text of its pieces is known, so that equal ids are equal tokens."""
        return bool((self.input_ids[self.words >= 0] != UNKNOWN_PIECE).any())

    def part(self, sequence: int) -> EncodedExample:
        """Return the source or the target of a pair by itself, and a single sequence as it is."""
        if self.n_source is None:
            return self
        n_words = len(self.sentences[0].words)
        tokens, words, before = slice(self.n_source), slice(n_words), np.array([0, 0])
        if sequence == TARGET:
            tokens, words = slice(self.n_source, None), slice(n_words, None)
            before = np.array([self.n_source, n_words])
        numbers, governors = self.words[tokens], self.governors[words]
        return replace(
            self,
            input_ids=self.input_ids[tokens],
            segments=np.where(self.segments[tokens] == SPECIAL, SPECIAL, 0),
            words=np.where(numbers < 0, -1, numbers - before[1]),
            starts=self.starts[words] - before[0],
            sizes=self.sizes[words],
            governors=np.where(governors == ROOT, ROOT, governors - before[1]),
            relations=self.relations[words],
            sentences=(self.sentences[sequence],),
            n_source=None,
        )

    @property
    def digest(self) -> str:
        """Digest of 16 hexadecimal digits by which examples with one id are compared.

        It covers the input of the model, its words, and their tree with its relations.
        """
        type_ids = self.token_type_ids
        types = np.zeros_like(self.segments) if type_ids is None else type_ids
        content = blake2b(digest_size=8)
        for array in (self.input_ids, types, self.segments, self.words, self.governors):
            # the length comes first, so that different splits into arrays give different digests
            content.update(np.concatenate([[array.size], array]).astype("<i8").tobytes())
        content.update("\n".join(self.relations).encode())
        return content.hexdigest()


def pad(rows: Sequence[IntArray], filler: int) -> IntArray:
    """Stack ``rows`` as (B, N), padding each with ``filler`` to the longest."""
    padded = np.full((len(rows), max(len(row) for row in rows)), filler, dtype=np.int64)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded


DECODER_INPUTS = "decoder_"
"""Beginning of the names of inputs of the decoder in an encoder-decoder."""
PAIR_MASK = "pair_mask"
"""Mask (B, N) of the tokens of both sequences, side by side, which no model takes."""


def collate(examples: Sequence[EncodedExample], pad_id: int) -> dict[str, IntArray]:
    """Build the inputs of the model, padded at the end to the longest example.

    Of a source and a target there are inputs of the encoder and of the decoder, and a `PAIR_MASK`.
    """
    inputs = _padded([example.input_ids[: example.n_source] for example in examples], pad_id)
    if targets := [example.input_ids[n:] for example in examples if (n := example.n_source)]:
        of_decoder = _padded(targets, pad_id)
        inputs |= {f"{DECODER_INPUTS}{name}": array for name, array in of_decoder.items()}
        inputs[PAIR_MASK] = pad([np.ones(len(example), np.int64) for example in examples], 0)
    type_ids = [ids for example in examples if (ids := example.token_type_ids) is not None]
    if len(type_ids) == len(examples):
        inputs["token_type_ids"] = pad(type_ids, 0)
    return inputs


def _padded(rows: Sequence[IntArray], pad_id: int) -> dict[str, IntArray]:
    mask = pad([np.ones(len(row), np.int64) for row in rows], 0)
    return {"input_ids": pad(rows, pad_id), "attention_mask": mask}


def check_known_pieces(n_unknown: int, n_pieces: int, text: str) -> None:
    """Raise TokenizerError if most pieces of ``text`` are unknown: losses would mean nothing."""
    if 2 * n_unknown > n_pieces:
        raise TokenizerError(
            f"{n_unknown / n_pieces:.0%} of the word pieces of {text} are unknown to the "
            "tokenizer; pass the `tokenizer` that the model was trained with, or text "
            "of the kind that it knows"
        )


def check_embedded(
    ids: Iterable[int], n_embeddings: int | None, tokenizer: PreTrainedTokenizerBase, text: str
) -> None:
    """Raise TokenizerError if ``text`` has a piece that the model has no embedding for.

    Without a number of embeddings, nothing is checked.
    """
    highest = max(ids, default=0)
    if n_embeddings is not None and highest >= n_embeddings:
        raise TokenizerError(
            f"{text} has the piece {tokenizer.convert_ids_to_tokens(highest)!r}, number {highest} "
            f"of the tokenizer {tokenizer.name_or_path}, and the model has embeddings for "
            f"{n_embeddings}: give the tokenizer that came with the model, remove the piece from "
            "its files, or give the model an embedding for it with "
            "model.resize_token_embeddings(len(tokenizer)), and train that"
        )


@contextmanager
def tokenizer_failures(finding: str) -> Iterator[None]:
    """Raise TokenizerError with the ``finding`` for whatever a tokenizer raises in the block.

    The tokenizers library raises Exception itself for defects of tokenizer.json, or panics.
    """
    try:
        yield
    except TokenizerError:
        raise
    except BaseException as error:
        if lacks_memory(error) or not (isinstance(error, Exception) or is_panic(error)):
            raise
        reason = in_one_line(error)
        remedy = "check its files, or give another with `tokenizer`"
        if "unk" in reason.lower():
            remedy = (
                "name an unknown token of its vocabulary in tokenizer.json (unk_token, or unk_id), "
                "or give another tokenizer with `tokenizer`"
            )
        raise TokenizerError(f"{finding} ({reason}); {remedy}") from error


class Cut(NamedTuple):
    """Word pieces of one example; ``words`` are counted from 0 in each segment."""

    input_ids: IntArray
    token_type_ids: IntArray | None
    segments: IntArray
    words: IntArray


class ExampleEncoder:
    """Encoder of examples as word pieces for one model.

    Words are passed to the tokenizer as words, and it reports the word of each piece. A tokenizer
    in Python only does not: each word is cut by itself, and its pieces are counted. No word is
    looked up by its surface form, and no example is truncated. A word that no space precedes in the
    text (`Sentence.spaces`) is cut without one, and the first as the tokenizer begins a text.
    A piece beyond the number of embeddings, if that is known, is refused.

    ``counts`` covers encoded examples, not skipped ones: ``pieces`` and ``words``,
    ``unknown_pieces``, which are the tokenizer's unknown token, ``lone_spaces``, which are marks of
    a space alone, ``words_without_known_piece``, and among these ``words_without_pieces``, such as
    zero-width spaces.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_tokens: int,
        with_token_types: bool = True,
        n_embeddings: int | None = None,
    ) -> None:
        self._tokenizer, self._max_tokens = tokenizer, max_tokens
        self._n_embeddings = n_embeddings
        self._with_token_types, self._unknown = with_token_types, tokenizer.unk_token_id
        self._joined = joined_words(tokenizer)
        self._spaces = [] if self._joined is None else lone_spaces(tokenizer)
        self.counts: Counter[str] = Counter()

    def encode(self, examples: Iterable[Example], skipped: Skipped) -> list[EncodedExample]:
        """Encode ``examples`` in order; skip and count those that are too long or have no pieces.

        A pair in which only one sentence has pieces is encoded: its words have the roles of any
        sentence, but no ``block`` score, which needs two sentences.
        """
        examples = list(examples)
        encoded: dict[int, EncodedExample] = {}
        for n in (1, 2):
            chosen = [k for k, example in enumerate(examples) if len(example.sentences) == n]
            for k, cut in zip(chosen, self.cut([examples[k] for k in chosen]), strict=True):
                if (one := self.kept(examples[k], cut, skipped)) is not None:
                    encoded[k] = one
        return [encoded[k] for k in sorted(encoded)]

    def kept(self, example: Example, cut: Cut, skipped: Skipped) -> EncodedExample | None:
        """Return an example that fits; None for others, whose reason is counted."""
        if len(cut.input_ids) > self._max_tokens:
            skipped[TOO_LONG] += 1
        elif (cut.segments == SPECIAL).all():
            skipped[NO_PIECES] += 1
        else:
            self._check_embedded(example, cut)
            return self._encoded(example, cut)
        return None

    def _check_embedded(self, example: Example, cut: Cut) -> None:
        ids = [int(cut.input_ids.max())]
        check_embedded(ids, self._n_embeddings, self._tokenizer, repr(example.id))

    def _encoded(self, example: Example, cut: Cut) -> EncodedExample:
        input_ids, type_ids, segments, word_ids = cut
        spans = []
        for segment, sentence in enumerate(example.sentences):
            in_segment = segments == segment
            n_pieces = np.bincount(word_ids[in_segment], minlength=len(sentence.words))
            spans.append((in_segment.argmax() + np.cumsum(n_pieces) - n_pieces, n_pieces))
        starts, sizes = map(np.concatenate, zip(*spans, strict=True))
        # the words of the second sentence are numbered after those of the first
        first = len(example.sentences[0].words)
        words = np.where(segments == 1, word_ids + first, word_ids)
        governors = [np.asarray(sentence.governors, np.int64) for sentence in example.sentences]
        governors[1:] = [np.where(second == ROOT, ROOT, second + first) for second in governors[1:]]
        pieces = words >= 0
        known_pieces = pieces if self._unknown is None else pieces & (input_ids != self._unknown)
        self.counts.update(
            pieces=int(pieces.sum()),
            unknown_pieces=int(pieces.sum() - known_pieces.sum()),
            lone_spaces=sum(int((input_ids[pieces] == space).sum()) for space in self._spaces),
            words=len(sizes),
            words_without_known_piece=len(sizes) - len(np.unique(words[known_pieces])),
            words_without_pieces=int((sizes == 0).sum()),
        )
        return EncodedExample(
            id=example.id,
            document=example.document,
            input_ids=input_ids,
            token_type_ids=type_ids,
            segments=segments,
            words=words,
            starts=starts,
            sizes=sizes,
            governors=np.concatenate(governors),
            relations=sum((sentence.relations for sentence in example.sentences), ()),
            sentences=example.sentences,
        )

    def cut(self, examples: list[Example]) -> Iterator[Cut]:
        """Cut examples that have the same number of sentences."""
        if not examples or not self._tokenizer.is_fast:
            yield from self._cut_by_words(examples)
            return
        batch = self._pieces_of(examples)
        type_ids = batch.get("token_type_ids")
        for k, example in enumerate(examples):
            cut = Cut(
                np.asarray(batch["input_ids"][k], dtype=np.int64),
                None if type_ids is None else np.asarray(type_ids[k], np.int64),
                _as_array(batch.sequence_ids(k), SPECIAL),
                _as_array(batch.word_ids(k), -1),
            )
            _check_order(cut)
            yield self._as_written(cut, example)

    def _pieces_of(self, examples: list[Example]) -> Any:
        """Cut examples by the tokenizer. Raises TokenizerError, which names one that it fails for.

        It may fail for a word that it does not know, and not for others.
        """
        columns = zip(*(example.sentences for example in examples), strict=True)
        words = [[list(sentence.words) for sentence in column] for column in columns]
        tokenizer = self._tokenizer
        try:
            with tokenizer_failures(
                f"the tokenizer {tokenizer.name_or_path} cannot encode {examples[0].id!r}"
            ):
                self._remember_joined(examples)
                return tokenizer(
                    *words,
                    is_split_into_words=True,
                    truncation=False,
                    padding=False,
                    return_attention_mask=False,
                    return_token_type_ids=self._with_token_types,
                    verbose=False,
                )
        except TokenizerError:
            for example in examples if len(examples) > 1 else ():
                self._pieces_of([example])
            raise

    def _remember_joined(self, examples: list[Example]) -> None:
        """Cut the words that no space precedes at once, which is faster than for each sentence."""
        if self._joined is None:
            return
        sentences = [sentence for example in examples for sentence in example.sentences]
        self._joined.pieces_of(
            sentence.words[place]
            for sentence in sentences
            if sentence.spaces
            for place in self._joined.places(sentence.spaces)
        )

    def _as_written(self, cut: Cut, example: Example) -> Cut:
        """Replace the pieces of the words that no space precedes in the text."""
        for segment, sentence in enumerate(example.sentences):
            if pieces := self._joined_pieces(sentence):
                cut = _with_pieces(cut, segment, pieces, len(sentence.words))
        return cut

    def _joined_pieces(self, sentence: Sentence) -> dict[int, list[int]]:
        """Return the pieces of the words that no space precedes, by the place of the word."""
        if self._joined is None or not sentence.spaces:
            return {}
        words = {place: sentence.words[place] for place in self._joined.places(sentence.spaces)}
        with tokenizer_failures(
            f"the tokenizer {self._tokenizer.name_or_path} cannot encode {sentence.id!r}"
        ):
            pieces = self._joined.pieces_of(words.values())
        return {place: pieces[word] for place, word in words.items()}

    def _cut_by_words(self, examples: list[Example]) -> list[Cut]:
        """Cut each word by itself.

        Raises TokenizerError for a tokenizer that cuts most of the examples otherwise as a text.
        """
        cuts: list[Cut] = []
        differ: list[Example] = []
        for example in examples:
            with tokenizer_failures(
                f"the tokenizer {self._tokenizer.name_or_path} cannot encode {example.id!r}"
            ):
                pieces = [list(map(self._ids_of, sentence.words)) for sentence in example.sentences]
                whole = [self._ids_of(" ".join(sentence.words)) for sentence in example.sentences]
            parts = [list(chain.from_iterable(by_word)) for by_word in pieces]
            if parts != whole:
                differ.append(example)
            for by_word, sentence in zip(pieces, example.sentences, strict=True):
                for place, ids in self._joined_pieces(sentence).items():
                    by_word[place] = ids
            parts = [list(chain.from_iterable(by_word)) for by_word in pieces]
            # numbers below 0 in place of pieces show which are of which sentence, and which special
            marks = ([~k] * len(part) for k, part in enumerate(parts))
            layout = np.array(self._tokenizer.build_inputs_with_special_tokens(*marks))
            segments, words = np.where(layout < 0, ~layout, SPECIAL), np.full(len(layout), -1)
            layout[layout < 0] = list(chain.from_iterable(parts))
            for k, by_word in enumerate(pieces):
                words[segments == k] = np.repeat(np.arange(len(by_word)), list(map(len, by_word)))
            type_ids = None
            if self._with_token_types:
                type_ids = np.array(self._tokenizer.create_token_type_ids_from_sequences(*parts))
            cuts.append(Cut(layout, type_ids, segments, words))
        if 2 * len(differ) > len(examples):
            raise TokenizerError(
                f"{type(self._tokenizer).__name__} cuts {len(differ)} of {len(examples)} examples "
                f"otherwise as a text than word by word, as {differ[0].id!r}: pieces reach over "
                "several words, or stand for spaces, and belong to no word; give a model with a "
                "tokenizer.json"
            )
        return cuts

    def _ids_of(self, text: str) -> list[int]:
        ids = self._tokenizer.convert_tokens_to_ids(self._tokenizer.tokenize(text))
        return cast("list[int]", ids)


def _check_order(cut: Cut) -> None:
    for segment in (0, 1):
        if (np.diff(cut.words[cut.segments == segment]) < 0).any():
            raise TokenizerError(
                "the tokenizer does not keep the order of the words; use another tokenizer"
            )


def _with_pieces(cut: Cut, segment: int, pieces: Mapping[int, list[int]], n_words: int) -> Cut:
    """Give some words of a segment other pieces, by the numbers of the words."""
    places = np.flatnonzero(cut.segments == segment)
    if not len(places):
        return cut
    first, end = places[0], places[-1] + 1
    ids = cut.input_ids[first:end].tolist()
    starts = np.searchsorted(cut.words[first:end], range(n_words + 1)).tolist()
    by_word = [pieces.get(k, ids[starts[k] : starts[k + 1]]) for k in range(n_words)]
    sizes = list(map(len, by_word))

    def with_inner(column: IntArray, inner: Any) -> IntArray:
        return np.concatenate([column[:first], np.asarray(inner, np.int64), column[end:]])

    def with_same(column: IntArray) -> IntArray:
        return with_inner(column, np.full(sum(sizes), column[first]))

    return Cut(
        with_inner(cut.input_ids, list(chain.from_iterable(by_word))),
        None if cut.token_type_ids is None else with_same(cut.token_type_ids),
        with_same(cut.segments),
        with_inner(cut.words, np.repeat(np.arange(n_words), sizes)),
    )


class Targets(NamedTuple):
    """How the inputs of a decoder are made from the pieces of a target.

    They are one place later than its outputs: first comes ``start``, or, if that is None, the last
    piece. A word has the rows of the steps that read its pieces, or with ``by_output`` those of the
    steps that write them, one place earlier.
    """

    start: int | None
    by_output: bool


NO_TARGET = "sentences without a translation"


class PairEncoder(ExampleEncoder):
    """Encoder of pairs of sentences as the source and the target of an encoder-decoder."""

    def __init__(self, source: ExampleEncoder, target: ExampleEncoder, targets: Targets) -> None:
        self._source, self._target, self._targets = source, target, targets
        self.counts = target.counts = source.counts

    def encode(self, examples: Iterable[Example], skipped: Skipped) -> list[EncodedExample]:
        """Encode pairs in order; skip and count single sentences, and pairs that do not fit."""
        examples = list(examples)
        pairs = [example for example in examples if len(example.sentences) > 1]
        if len(pairs) < len(examples):
            skipped[NO_TARGET] += len(examples) - len(pairs)
        sources, targets = (
            [Example((example.sentences[place],)) for example in pairs] for place in (0, 1)
        )
        of_sources, of_targets = self._source.cut(sources), self._target.cut(targets)
        encoded = []
        for k, (of_source, of_target) in enumerate(zip(of_sources, of_targets, strict=True)):
            source = self._source.kept(sources[k], of_source, skipped)
            target = source and self._target.kept(targets[k], of_target, skipped)
            if source is not None and target is not None:
                encoded.append(self._as_pair(pairs[k], source, target))
        return encoded

    def _as_pair(
        self, example: Example, source: EncodedExample, target: EncodedExample
    ) -> EncodedExample:
        """Put the inputs of the decoder after those of the encoder."""
        n, n_words = len(source), len(source.starts)
        start = target.input_ids[-1] if self._targets.start is None else self._targets.start
        words = np.where(target.words < 0, -1, target.words + n_words)
        segments = np.where(target.words < 0, SPECIAL, 1)
        starts = target.starts + n
        if not self._targets.by_output:
            words, segments, starts = np.roll(words, 1), np.roll(segments, 1), starts + 1
            words[0], segments[0] = -1, SPECIAL
        governors = np.where(target.governors == ROOT, ROOT, target.governors + n_words)
        return EncodedExample(
            id=example.id,
            document=example.document,
            input_ids=np.concatenate([source.input_ids, [start], target.input_ids[:-1]]),
            token_type_ids=None,
            segments=np.concatenate([source.segments, segments]),
            words=np.concatenate([source.words, words]),
            starts=np.concatenate([source.starts, starts]),
            sizes=np.concatenate([source.sizes, target.sizes]),
            governors=np.concatenate([source.governors, governors]),
            relations=source.relations + target.relations,
            sentences=example.sentences,
            n_source=n,
        )


def _as_array(values: Alignment, missing: int) -> IntArray:
    return np.asarray([missing if value is None else value for value in values], dtype=np.int64)


def words_of_pieces(name: str, alignment: Any) -> list[int | None]:
    """Return the alignment of a sentence as numbers of Python.

    ``alignment`` is one, or the encoding of a tokenizer, which knows it. Raises TokenizerError
    that ``name``s the sentence for what numbers no words.
    """
    remedy = "give the number of its word, from 0, for each piece, and None for special tokens"
    if callable(getattr(alignment, "word_ids", None)):
        with tokenizer_failures(f"the encoding of {name!r} does not know its words"):
            alignment = alignment.word_ids(0)
    if isinstance(alignment, str | bytes) or not isinstance(alignment, Iterable):
        raise TokenizerError(f"the alignment of {name!r} is {as_given(alignment)}; {remedy}")
    if hasattr(alignment, "tolist"):
        alignment = alignment.tolist()
    numbers = list(alignment) if isinstance(alignment, Iterable) else [alignment]
    words = [None if number is None else _whole(number) for number in numbers]
    for number, word in zip(numbers, words, strict=True):
        if word is None and number is not None:
            raise TokenizerError(f"the alignment of {name!r} holds {as_given(number)}; {remedy}")
    return words


def _whole(number: Any) -> int | None:
    """Return a whole number as one of Python; None for other values."""
    try:
        whole = None if isinstance(number, str | bytes) else int(number)
        return whole if whole == number else None
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


class AlignedEncoder(ExampleEncoder):
    """Encoder of sentences by the ``alignment`` of each id.

    Pieces get the input id `UNKNOWN_PIECE` and special tokens 0, since their text is unknown.
    """

    def __init__(self, alignment: Mapping[str, Alignment]) -> None:
        self._alignment = alignment
        self._max_tokens = 10**30  # it was read whole
        self._unknown, self._spaces = None, []
        self.counts = Counter()

    def cut(self, examples: list[Example]) -> Iterator[Cut]:
        """Cut sentences as the alignment says."""
        for example in examples:
            words = self._words_of(example)
            is_piece = words >= 0
            ids = is_piece.astype(np.int64) * UNKNOWN_PIECE
            yield Cut(ids, None, np.where(is_piece, 0, SPECIAL), words)

    def _check_embedded(self, example: Example, cut: Cut) -> None:
        pass  # which piece it is is unknown

    def _words_of(self, example: Example) -> IntArray:
        """Return the word of each piece. Raises TokenizerError if pieces and words do not fit."""
        if len(example.sentences) > 1:
            raise TokenizerError(
                f"the alignment is of single sentences, but {example.id!r} is a pair; pass "
                'pairing="none", or a tokenizer as the alignment'
            )
        if example.id not in self._alignment:
            raise TokenizerError(f"the alignment has no sentence {example.id!r}; add its pieces")
        alignment = self._alignment[example.id]
        n_words = len(example.sentences[0].words)
        for number in alignment:
            if number is not None and not 0 <= number < n_words:
                raise TokenizerError(
                    f"the alignment of {example.id!r} names the word {number!r}; use 0 to "
                    f"{n_words - 1} for words and None for special tokens"
                )
        words = _as_array(alignment, -1)
        pieces = np.flatnonzero(words >= 0)
        if (np.diff(pieces) > 1).any() or (np.diff(words[pieces]) < 0).any():
            raise TokenizerError(
                f"the alignment of {example.id!r} has words out of order, or a special token "
                "between words; list the pieces in the order of the words"
            )
        return words
