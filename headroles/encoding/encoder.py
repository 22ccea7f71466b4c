"""ExampleEncoder: word pieces of the words of examples, by the model's tokenizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headroles.arrays import IntArray
from headroles.corpus import ROOT, Example, Skipped
from headroles.encoding.encoded import SPECIAL, EncodedExample
from headroles.errors import TokenizerError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MOST_UNKNOWN = 0.5
"""Largest share of unknown word pieces in text that a model is measured on."""

TOO_LONG = "examples longer than the model takes"
NO_PIECES = "examples without word pieces"


def refuse_unknown(n_unknown: int, n_pieces: int, text: str) -> None:
    """Raise TokenizerError if most pieces of ``text`` are unknown: losses would mean nothing."""
    if n_unknown > MOST_UNKNOWN * n_pieces:
        raise TokenizerError(
            f"{n_unknown / n_pieces:.0%} of the word pieces of {text} are unknown to the "
            "tokenizer; pass the `tokenizer` that the model was trained with, or text "
            "of the kind that it knows"
        )


class Cut(NamedTuple):
    """Word pieces of one example; ``words`` are counted from 0 in each segment."""

    input_ids: IntArray
    token_type_ids: IntArray | None
    segments: IntArray
    words: IntArray


class ExampleEncoder:
    """Encoder of examples as word pieces for one model.

    Words are passed to the tokenizer as words, and it reports the word of each piece: no word is
    looked up by its surface form, and no example is truncated.

    ``counts`` covers encoded examples, not skipped ones: ``pieces`` and ``words``,
    ``unknown_pieces``, which are the tokenizer's unknown token, ``words_without_known_piece``, and
    among these ``words_without_pieces``, such as zero-width spaces.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_tokens: int,
        with_token_types: bool = True,
    ) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._with_token_types = with_token_types
        self._unknown = tokenizer.unk_token_id
        self.counts: Counter[str] = Counter()

    def encode(self, examples: Iterable[Example], skipped: Skipped) -> list[EncodedExample]:
        """Encode ``examples`` in order; skip and count those that are too long or have no pieces.

        A pair in which only one sentence has pieces is encoded: its words have the roles of any
        sentence, but no ``block`` score, which needs two sentences.
        """
        examples = list(examples)
        encoded: dict[int, EncodedExample] = {}
        for n_segments in (1, 2):
            chosen = [k for k, one in enumerate(examples) if len(one.sentences) == n_segments]
            for k, cut in zip(chosen, self._cut([examples[k] for k in chosen]), strict=True):
                if len(cut.input_ids) > self._max_tokens:
                    skipped[TOO_LONG] += 1
                elif (cut.segments == SPECIAL).all():
                    skipped[NO_PIECES] += 1
                else:
                    encoded[k] = self._encoded(examples[k], cut)
        return [encoded[k] for k in sorted(encoded)]

    def _encoded(self, example: Example, cut: Cut) -> EncodedExample:
        input_ids, type_ids, segments, word_ids = cut
        starts, sizes = _spans(example, segments, word_ids)
        # the words of the second sentence are numbered after those of the first
        words = np.where(segments == 1, word_ids + len(example.sentences[0].words), word_ids)
        self._count(input_ids, words, sizes)
        return EncodedExample(
            id=example.id,
            document=example.document,
            input_ids=input_ids,
            token_type_ids=type_ids,
            segments=segments,
            words=words,
            starts=starts,
            sizes=sizes,
            governors=_all_governors(example),
            relations=sum((sentence.relations for sentence in example.sentences), ()),
            sentences=example.sentences,
        )

    def _cut(self, examples: list[Example]) -> Iterator[Cut]:
        """Cut examples that have the same number of sentences."""
        if not examples:
            return
        columns = zip(*(example.sentences for example in examples), strict=True)
        words = [[list(sentence.words) for sentence in column] for column in columns]
        batch = self._tokenizer(
            *words,
            is_split_into_words=True,
            truncation=False,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=self._with_token_types,
            verbose=False,
        )
        type_ids = batch.get("token_type_ids")
        for k in range(len(examples)):
            yield Cut(
                np.asarray(batch["input_ids"][k], dtype=np.int64),
                None if type_ids is None else np.asarray(type_ids[k], np.int64),
                _as_array(batch.sequence_ids(k), SPECIAL),
                _as_array(batch.word_ids(k), -1),
            )

    def _count(self, input_ids: IntArray, words_of: IntArray, sizes: IntArray) -> None:
        pieces = words_of >= 0
        known = pieces if self._unknown is None else pieces & (input_ids != self._unknown)
        n_pieces, n_words = int(pieces.sum()), len(sizes)
        self.counts["pieces"] += n_pieces
        self.counts["unknown_pieces"] += n_pieces - int(known.sum())
        self.counts["words"] += n_words
        self.counts["words_without_known_piece"] += n_words - len(np.unique(words_of[known]))
        self.counts["words_without_pieces"] += int((sizes == 0).sum())


def _all_governors(example: Example) -> IntArray:
    """Return the governor of each word of the example (W,), numbered through the example."""
    first = len(example.sentences[0].words)
    tables = [np.asarray(sentence.governors, dtype=np.int64) for sentence in example.sentences]
    tables[1:] = [np.where(table == ROOT, ROOT, table + first) for table in tables[1:]]
    return np.concatenate(tables)


def _as_array(values: list[int | None], missing: int) -> IntArray:
    return np.asarray([missing if value is None else value for value in values], dtype=np.int64)


def _spans(example: Example, segments: IntArray, word_ids: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first piece and the number of pieces (W,) of every word of the example."""
    starts, sizes = [], []
    for segment, sentence in enumerate(example.sentences):
        in_segment = segments == segment
        words = word_ids[in_segment]
        if (np.diff(words) < 0).any():
            raise TokenizerError(
                "the tokenizer does not keep the order of the words; use another tokenizer"
            )
        n_pieces = np.bincount(words, minlength=len(sentence.words))
        starts.append(in_segment.argmax() + np.cumsum(n_pieces) - n_pieces)
        sizes.append(n_pieces)
    return np.concatenate(starts), np.concatenate(sizes)
