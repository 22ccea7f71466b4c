"""Examples -> word pieces, with what each token is: special, of which segment, of which word."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import normalizers
from tokenizers.pre_tokenizers import ByteLevel, Sequence
from transformers import PreTrainedTokenizerBase

from headroles.corpus import ROOT, Example, Sentence, Skipped, fold_subtype
from headroles.errors import TokenizerError
from headroles.tokens import SPECIAL, EncodedExample, IntArray

TOO_LONG = "examples longer than the model takes"
PIECELESS_ARCS = "arcs of words without pieces"


class ExampleEncoder:
    """Turns examples into word pieces for one model.

    Words go to the tokenizer as words, and it tells which piece belongs to which word: nothing
    is looked up by its surface form, nothing is ever truncated. ``relations`` are the labels
    whose arcs are kept; they are matched without their subtypes unless ``keep_subtypes``.

    Raises TokenizerError for a tokenizer that cannot tell which piece belongs to which word.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_tokens: int,
        relations: tuple[str, ...] = (),
        keep_subtypes: bool = False,
        with_token_types: bool = True,
    ) -> None:
        if not tokenizer.is_fast:
            raise TokenizerError(
                f"{type(tokenizer).__name__} is a slow tokenizer and cannot tell which piece "
                "belongs to which word; give a model folder with a tokenizer.json"
            )
        self._tokenizer = with_prefix_space(tokenizer)
        self._max_tokens = max_tokens
        self._relation_index = {relation: index for index, relation in enumerate(relations)}
        self._keep_subtypes = keep_subtypes
        self._with_token_types = with_token_types

    def encode(self, examples: Iterable[Example], skipped: Skipped) -> list[EncodedExample]:
        """``examples`` in their order, without those that are too long; these are counted."""
        examples = list(examples)
        encoded: list[EncodedExample | None] = [None] * len(examples)
        for n_segments in (1, 2):
            chosen = [
                k for k, example in enumerate(examples) if len(example.sentences) == n_segments
            ]
            outcomes = self._encode_alike([examples[k] for k in chosen], skipped)
            for k, outcome in zip(chosen, outcomes, strict=True):
                encoded[k] = outcome
        return [example for example in encoded if example is not None]

    def _encode_alike(
        self, examples: list[Example], skipped: Skipped
    ) -> Iterator[EncodedExample | None]:
        """Encode examples of one and the same number of sentences."""
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
        for k, example in enumerate(examples):
            input_ids = np.asarray(batch["input_ids"][k], dtype=np.int64)
            if len(input_ids) > self._max_tokens:
                skipped[TOO_LONG] += 1
                yield None
                continue
            segments = _as_array(batch.sequence_ids(k), SPECIAL)
            word_ids = _as_array(batch.word_ids(k), -1)
            arcs = self._arcs(example, segments, word_ids)
            whole = (arcs[:, 1] > 0) & (arcs[:, 3] > 0)
            if not whole.all():
                skipped[PIECELESS_ARCS] += int((~whole).sum())
            yield EncodedExample(
                id=example.id,
                document=example.document,
                input_ids=input_ids,
                token_type_ids=None if type_ids is None else np.asarray(type_ids[k], np.int64),
                segments=segments,
                arcs=arcs[whole],
                words=_number_words(example, segments, word_ids),
                governors=_all_governors(example),
            )

    def _arcs(self, example: Example, segments: IntArray, word_ids: IntArray) -> IntArray:
        """Arcs of the chosen relations as in `EncodedExample`, words without pieces included."""
        tables = []
        for segment, sentence in enumerate(example.sentences):
            pieces = _pieces_of_words(word_ids, segments == segment, len(sentence.words))
            arcs = self._chosen_arcs(sentence)
            tables.append(np.column_stack([pieces[arcs[:, 0]], pieces[arcs[:, 1]], arcs[:, 2]]))
        return np.concatenate(tables)

    def _chosen_arcs(self, sentence: Sentence) -> IntArray:
        """(dependent, governor, index of the relation) per arc whose relation was chosen."""
        arcs = []
        for dependent, governor in enumerate(sentence.governors):
            relation = sentence.relations[dependent]
            if not self._keep_subtypes:
                relation = fold_subtype(relation)
            if governor != ROOT and relation in self._relation_index:
                arcs.append((dependent, governor, self._relation_index[relation]))
        return np.asarray(arcs, dtype=np.int64).reshape(-1, 3)


def _number_words(example: Example, segments: IntArray, word_ids: IntArray) -> IntArray:
    """(n,): word of each token, those of the second sentence counted on from the first."""
    in_second = segments == 1
    return np.where(in_second, word_ids + len(example.sentences[0].words), word_ids)


def _all_governors(example: Example) -> IntArray:
    """(words,): governor of each word of the example, counted as in `_number_words`."""
    first = len(example.sentences[0].words)
    tables = [np.asarray(sentence.governors, dtype=np.int64) for sentence in example.sentences]
    tables[1:] = [np.where(table == ROOT, ROOT, table + first) for table in tables[1:]]
    return np.concatenate(tables)


def _as_array(values: list[int | None], missing: int) -> IntArray:
    return np.asarray([missing if value is None else value for value in values], dtype=np.int64)


def _pieces_of_words(word_ids: IntArray, in_segment: NDArray[np.bool_], n_words: int) -> IntArray:
    """(words, 2): first piece and number of pieces of every word of one segment."""
    own = word_ids[in_segment]
    if (np.diff(own) < 0).any():
        raise TokenizerError(
            "the tokenizer does not keep the order of the words; it cannot be used"
        )
    counts = np.bincount(own, minlength=n_words)
    first = (int(in_segment.argmax()) if len(own) else 0) + np.cumsum(counts) - counts
    return np.column_stack([first, counts])


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
