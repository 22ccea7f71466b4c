"""Which sentences are behind a number? Scores and their treebank -> Examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from headroles.corpus import Example, Skipped
from headroles.drawing.page import Quoted
from headroles.encoding import SPECIAL, AlignedEncoder, Cut, EncodedExample
from headroles.errors import HeadRolesError, UsageError
from headroles.options import Options, takes
from headroles.results.columns import NUMBER, TEXT, Column
from headroles.results.result import Result
from headroles.results.shown import Shown, Verbatim, Warned
from headroles.roles import PaddedBatch, in_words, is_own
from headroles.scoring.scores import HeadScores
from headroles.studies.inspection.again import (
    LARGEST,
    MEDIAN,
    SMALLEST,
    TYPED,
    AgainOptions,
    Chosen,
    ExampleOptions,
    Wanted,
    load_again,
    not_imported,
    read_examples,
)
from headroles.studies.inspection.attention import (
    LEAST,
    AttentionOptions,
    WordAttention,
    attention_in,
)
from headroles.wording import shortened

_OF_ROLE, _OTHERS = 8, 4
"""Numbers of arcs of the role, and of other arcs, to list for a sentence."""
_KINDS = {
    LARGEST: "the largest {} scores",
    SMALLEST: "the smallest {} scores",
    MEDIAN: "the {} scores nearest the median",
}


@dataclass(frozen=True, kw_only=True)
class SentenceOptions(AttentionOptions):
    """Options of the choice of examples, and of the weights shown in them."""

    title: ClassVar[str] = "Output"

    weights: bool = True
    """Show the weights that the head gives; this loads the model."""


@dataclass(frozen=True, repr=False, eq=False)
class Examples(Result):
    """Examples of a head and a role, one row each, the most extreme or typical first.

    ``count`` is the number of arcs, words or tokens behind the ``score``. In ``text`` the words of
    the sieve stand in brackets; ``keys`` are their numbers among all words, from 0. ``words`` lists
    pairs of words of the role, and ``gives`` the weights of the head, those of the role first; it
    is empty without a model. A sentence of the user's own has no ``score``.

    With ``examples`` as `find_examples` returns them:

    >>> examples.frame.columns.tolist()[:4]
    ['example', 'document', 'score', 'count']
    """

    kind: ClassVar[str] = "examples"
    question: ClassVar[str] = "Which sentences are behind the number?"
    options_type: ClassVar[type[Options]] = ExampleOptions
    columns: ClassVar[tuple[str, ...]] = tuple(
        "example document score count text keys words gives".split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "keys": Column(TEXT),
        "score": Column(NUMBER, gaps=True),
    }

    def summarize(self) -> Iterator[Shown]:
        """Show each example with its score, and with the weights that the head gives in it."""
        facts, options, role = self.facts, self.options, self.facts["role"]
        given = options.example or options.text or options.tokens
        scores = "a {} score" if given else _KINDS[options.which]
        named = role if in_words(role) == role else f"{in_words(role)} ({role})"
        head = f"{facts['layer']}-{facts['head']}"
        yield f"Head {head}, {named}: {scores.format(facts['score'])}."
        yield self._legend()
        for row in self.frame.to_dict("records"):
            arcs = row["gives"] or row["words"]
            below = f"\n          {arcs}" if arcs else ""
            score = "" if np.isnan(row["score"]) else f"{row['score']:.3f}"
            yield Verbatim(f"{score:>8}  {row['text']}  ({shortened(row['example'], 60)}){below}")
        yield from map(Warned, self.record.warnings)

    def _legend(self) -> str:
        """Explain brackets and arrows."""
        keys, words, gives = (self.frame[name].any() for name in ("keys", "words", "gives"))
        marked = "Words that the role looks for are in brackets. " * bool(keys)
        if gives:
            return f"{marked}a -> b 0.62: word a gives word b 0.62 of its attention."
        return f"{marked}a -> b: the role looks from a for b." if words else marked


@takes(SentenceOptions)
def find_examples(
    scores: HeadScores, head: tuple[int, int], role: str, options: SentenceOptions
) -> Examples:
    """Return the examples in which a head has typical scores of a role, or extreme ones.

    Words come from the files that were scored, and weights from the model, if it is in a folder of
    this machine or passed as ``model``.

    Args:
        scores: from `score_heads`, of a treebank.
        head: layer and head, from 0.
        role: its id, its words (``subject -> its verb``), or a relation such as ``nsubj``.
        options: keyword arguments, described below.

    Raises:
        UsageError: a head that was removed, a head or role that the scores do not have, or scores
            of parsed text.
        CorpusError: the treebank is missing or has changed.

    With ``model`` an encoder with random weights:

    >>> from headroles import find_examples, read_conllu, sample_treebank, score_heads
    >>> treebank = read_conllu(sample_treebank())
    >>> scores = score_heads(model, treebank, roles="punctuation", pairing="none")
    >>> find_examples(scores, (0, 0), "punctuation", n=1).frame["text"][0][-3:]
    '[.]'
    """
    (chosen,) = read_examples(scores, [(head, role, options)], options)
    seen, reasons = _attention_or_reasons(scores, chosen if options.weights else [], options)
    rows = [_row(scores, *shown) for shown in zip_longest(chosen, seen)]
    layer, number = map(int, head)
    name = scores.role_of(head, role)
    facts = {"score": scores.score.name, "layer": layer, "head": number, "role": name}
    return Examples.made(
        pd.DataFrame(rows, columns=list(Examples.columns)),
        options.as_group(ExampleOptions),
        facts=facts,
        warnings=list(reasons),
        sources={"scores": scores.record},
    )


def _row(scores: HeadScores, shown: Chosen, seen: WordAttention | None) -> dict[str, Any]:
    """Return the row of an example, with the attention in it if the model was read."""
    example, row = shown.example, shown.row
    words, keys, pairs = _marked(shown)
    count, document = len(pairs) or len(keys), example.document
    if row != TYPED:
        count = scores.counts[row, scores.role_ids.index(shown.role.id)]
        document = scores.documents[row]
    gives: dict[bool, list[str]] = {True: [], False: []}
    if seen is not None:
        for query, key, weight, is_of_role in _largest_weights(seen, bool(pairs)):
            gives[is_of_role].append(f"{seen.labels[query]} -> {seen.labels[key]} {weight:.2f}")
    return {
        "example": example.id,
        "document": document,
        "score": shown.score,
        "count": count,
        "text": " ".join(f"[{word}]" if k in keys else word for k, word in enumerate(words)),
        "keys": " ".join(map(str, keys)),
        "words": ", ".join(f"{words[query]} -> {words[key]}" for query, key in pairs),
        "gives": "; elsewhere ".join(", ".join(part) for part in gives.values() if part),
    }


def _marked(shown: Chosen) -> tuple[list[str], list[int], list[tuple[int, int]]]:
    """Return the words of an example, and those of the role, numbered from 0.

    These are the words in its sieve, in ascending order, and its pairs (query, key). Both are empty
    for sieves of places or of special tokens.
    """
    words = [word for sentence in shown.example.sentences for word in sentence.words]
    assert shown.role.sieve is not None
    cut = _WordByWord({}).encode([shown.example], Counter())
    keys, pairs = shown.role.sieve.words(PaddedBatch(cut))
    return words, sorted(keys), pairs


class _WordByWord(AlignedEncoder):
    """Encoder of examples of any length whose words are one token each."""

    def encode(self, examples: Iterable[Example], skipped: Skipped) -> list[EncodedExample]:
        """Encode examples, with special tokens around their sentences."""
        encoded = []
        for example in examples:
            segments, words = [SPECIAL], [-1]
            for segment, sentence in enumerate(example.sentences):
                segments += [segment] * len(sentence.words) + [SPECIAL]
                words += [*range(len(sentence.words)), -1]
            cut = Cut(np.zeros(len(words), np.int64), None, np.array(segments), np.array(words))
            encoded.append(self._encoded(example, cut))
        return encoded


def _attention_or_reasons(
    scores: HeadScores, chosen: Sequence[Chosen], options: AgainOptions
) -> tuple[list[WordAttention], tuple[str, ...]]:
    """Return the attention in examples, by the model in a folder of this machine or that is given.

    Without it return none, and the reason.
    """
    if not chosen:
        return [], ()
    try:
        recorded = str(scores.record.model.model)
        if options.model is None and not Path(recorded).is_dir():
            raise UsageError(f"{recorded} is no folder here; pass `model`")
        return attention_in(scores, chosen, load_again(scores, options)), ()
    except HeadRolesError as error:
        return [], (f"Weights are not shown: {error}.",)


def _largest_weights(
    seen: WordAttention, has_pairs: bool
) -> Iterator[tuple[int, int, float, bool]]:
    """Yield query, key and weight of the largest weights, and whether the role has this arc.

    Of a role with pairs of words, its arcs come first, then those elsewhere; else the largest of
    all.
    """
    weights, is_word = seen.weights, seen.words >= 0
    is_large = weights >= LEAST
    groups = [(is_large, _OF_ROLE)]
    if has_pairs:
        between = is_large & np.outer(is_word, is_word) & ~np.eye(len(seen), dtype=bool)
        groups = [(seen.sieve, _OF_ROLE), (between & ~seen.sieve, _OTHERS)]
    for chosen, most in groups:
        order = np.argsort(-weights[chosen], kind="stable")[:most]
        for query, key in np.argwhere(chosen)[order].tolist():
            yield query, key, float(weights[query, key]), bool(seen.sieve[query, key])


# Sentences on pages of results


def quote(
    folder: Path, wanted: Sequence[Wanted], imported: Sequence[str] = (), model: str | None = None
) -> tuple[list[list[Quoted]], tuple[str, ...]]:
    """Return sentences of the scores in a folder for each of ``wanted``, and reasons for none.

    ``imported`` are roles of users that may be imported; ``model`` is the model that was scored, if
    it has moved. Raises HeadRolesError for a sentence of the user's own that cannot be read.
    """
    may_run = {name for role in imported for name in (role, f"{role}:back")}
    closed = {
        role
        for _, role, _ in wanted
        if is_own(role) and role.removesuffix(":beyond_offset") not in may_run
    }
    options = AgainOptions(roles=imported or None, model=model)
    why_not = [
        f"Sentences of {role} are not shown: {not_imported(role)}." for role in sorted(closed)
    ]
    allowed = [k for k, (_, role, _) in enumerate(wanted) if role not in closed]
    given = [k for k in allowed if wanted[k][2].is_given]
    read: dict[int, list[Chosen]] = {}
    try:
        scores = HeadScores.load(folder)
        for of_kind in (given, [k for k in allowed if k not in given]):
            examples = read_examples(scores, [wanted[k] for k in of_kind], options)
            read |= zip(of_kind, examples, strict=True)
    except HeadRolesError as error:
        if len(read) < len(given):
            raise
        why_not.append(f"The sentences cannot be shown: {error}.")
    scored = [(k, shown) for k in read if k not in given for shown in read[k]]
    every = scored + [(k, shown) for k in read if k in given for shown in read[k]]
    seen: list[WordAttention] = []
    if every:
        seen, reasons = _attention_or_reasons(scores, [shown for _, shown in every], options)
        why_not += reasons
        if reasons and given:  # without the user's own, which may be too long, there may be some
            seen, _ = _attention_or_reasons(scores, [shown for _, shown in scored], options)
    quoted: list[list[Quoted]] = [[] for _ in wanted]
    for (k, shown), attention in zip_longest(every, seen):  # none for those at the end
        quoted[k].append(_quoted(shown, attention, wanted[k][2].which))
    return quoted, tuple(dict.fromkeys(why_not))


def _quoted(shown: Chosen, seen: WordAttention | None, which: str) -> Quoted:
    words, keys, pairs = _marked(shown)
    score = f"{shown.score:.3g}" + ", typical" * (which == MEDIAN)
    score = "yours" if shown.row == TYPED else score
    if seen is None:
        arcs = tuple((query, key, np.nan, True) for query, key in pairs)
        return Quoted(score, tuple(words), tuple(keys), arcs)
    units = np.flatnonzero(np.isin(seen.words, keys)).tolist()
    return Quoted(score, seen.labels, tuple(units), tuple(_largest_weights(seen, bool(pairs))))
