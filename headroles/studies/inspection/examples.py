"""Which sentences are behind a number? Scores and their treebank -> Examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from headroles import storage
from headroles.corpus import Example, Skipped
from headroles.drawing.page import Quoted
from headroles.encoding import SPECIAL, AlignedEncoder, Cut, EncodedExample
from headroles.errors import CorpusError, HeadRolesError, UsageError
from headroles.options import Options, takes
from headroles.results.columns import NUMBER, TEXT, Column
from headroles.results.result import Result
from headroles.results.shown import Shown, Verbatim, Warned
from headroles.roles import PaddedBatch, Role, in_words, is_own
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

if TYPE_CHECKING:
    from headroles.models.loading.encoder import LoadedEncoder

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
            return f"{marked}a -> b 0.62: of its attention, the head gives 0.62 from a to b."
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
    (shown,) = read_examples(scores, [(head, role, options)], options)
    name, place = shown.role.id, scores.role_ids.index(shown.role.id)
    marked = [mark(example, shown.role) for example in shown.examples]
    load = _loader(scores, options) if options.weights else None
    (weights,), warnings = _weights_again(scores, [shown], load)
    frame = pd.DataFrame(
        {
            "example": [example.id for example in shown.examples],
            "document": [
                example.document if row == TYPED else scores.documents[row]
                for row, example in zip(shown.rows, shown.examples, strict=True)
            ],
            "score": shown.scores(scores),
            "count": [
                len(pairs) or len(keys) if row == TYPED else scores.counts[row, place]
                for row, (_, keys, pairs) in zip(shown.rows, marked, strict=True)
            ],
            "text": [
                " ".join(f"[{word}]" if k in keys else word for k, word in enumerate(words))
                for words, keys, _ in marked
            ],
            "keys": [" ".join(map(str, keys)) for _, keys, _ in marked],
            "words": [
                ", ".join(f"{words[query]} -> {words[key]}" for query, key in pairs)
                for words, _, pairs in marked
            ],
            "gives": list(map(_in_text, weights, marked)) or [""] * len(marked),
        }
    )
    layer, number = shown.head
    facts = {"score": scores.score.name, "layer": layer, "head": number, "role": name}
    choice, sources = options.as_group(ExampleOptions), {"scores": scores.record}
    return Examples.made(frame, choice, facts=facts, warnings=list(warnings), sources=sources)


class MarkedExample(NamedTuple):
    """The words of an example, and those of a role, numbered from 0.

    ``keys`` are the words in its sieve, in ascending order; ``pairs`` are its (query, key). Both
    are empty for sieves of places or of special tokens.
    """

    words: tuple[str, ...]
    keys: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]


def mark(example: Example, role: Role) -> MarkedExample:
    """Return the words of an example, with those of the role marked."""
    words = tuple(word for sentence in example.sentences for word in sentence.words)
    assert role.sieve is not None
    keys, pairs = role.sieve.words(PaddedBatch(_WordByWord({}).encode([example], Counter())))
    return MarkedExample(words, tuple(sorted(keys)), tuple(pairs))


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


def _loader(scores: HeadScores, options: AgainOptions) -> Callable[[], LoadedEncoder]:
    """Return a function that loads the model that was scored, from this machine, only once."""

    @cache
    def load() -> LoadedEncoder:
        recorded = str(scores.record.model.model)
        if options.model is None and not Path(recorded).is_dir():
            raise UsageError(f"{recorded} is no folder here; pass `model`")
        return load_again(scores, options)

    return load


def _weights_again(
    scores: HeadScores, shown: Sequence[Chosen], load: Callable[[], LoadedEncoder] | None
) -> tuple[Sequence[Sequence[WordAttention]], tuple[str, ...]]:
    """Return attention in the sentences, and the reason for none."""
    if load is None or not any(chosen.rows for chosen in shown):
        return [()] * len(shown), ()
    try:
        return attention_in(scores, shown, load()), ()
    except HeadRolesError as error:
        return [()] * len(shown), (f"Weights are not shown: {error}.",)


def _largest_weights(
    seen: WordAttention, marked: MarkedExample
) -> Iterator[tuple[int, int, float, bool]]:
    """Yield query, key and weight of the largest weights, and whether the role has this arc.

    Those of the role come first, then those elsewhere; without arcs, the largest of all.
    """
    weights, is_word = seen.weights, seen.words >= 0
    is_large = weights >= LEAST
    if marked.pairs:
        between = is_large & np.outer(is_word, is_word) & ~np.eye(len(seen), dtype=bool)
        groups = [(seen.sieve, _OF_ROLE), (between & ~seen.sieve, _OTHERS)]
    else:
        groups = [(is_large, _OF_ROLE)]
    for chosen, most in groups:
        order = np.argsort(-weights[chosen], kind="stable")[:most]
        for query, key in np.argwhere(chosen)[order].tolist():
            yield query, key, float(weights[query, key]), bool(seen.sieve[query, key])


def _in_text(seen: WordAttention, marked: MarkedExample) -> str:
    """Write the largest weights of a sentence as ``word -> word 0.62``, those of the role first."""
    arcs: dict[bool, list[str]] = {True: [], False: []}
    for query, key, weight, is_of_role in _largest_weights(seen, marked):
        arcs[is_of_role].append(f"{seen.labels[query]} -> {seen.labels[key]} {weight:.2f}")
    return "; elsewhere ".join(", ".join(part) for part in arcs.values() if part)


# Sentences on pages of results


def quote(
    folder: Path, wanted: Sequence[Wanted], imported: Sequence[str] = (), model: str | None = None
) -> tuple[list[tuple[Quoted, ...]], tuple[str, ...]]:
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
    every: list[tuple[Quoted, ...]] = [()] * len(wanted)
    why_not = [
        f"Sentences of {role} are not shown: {not_imported(role)}." for role in sorted(closed)
    ]
    scores, load = None, None
    for is_given in (True, False):  # sentences of users are no part of the treebank
        places = [
            k
            for k, (_, role, choice) in enumerate(wanted)
            if choice.is_given == is_given and role not in closed
        ]
        try:
            if scores is None:
                if HeadScores.kind not in storage.kinds_in(folder):
                    raise CorpusError("the scores are not in the folder")
                scores = HeadScores.load(folder)
                load = _loader(scores, options)
            shown = read_examples(scores, [wanted[k] for k in places], options) if places else []
        except HeadRolesError as error:
            if is_given and places:
                raise
            why_not.append(f"The sentences cannot be shown: {error}.")
            continue
        weights, reasons = _weights_again(scores, shown, load)
        why_not += reasons
        for k, chosen, seen in zip(places, shown, weights, strict=True):
            every[k] = tuple(_quoted(scores, chosen, wanted[k][2].which, seen))
    return every, tuple(dict.fromkeys(why_not))


def _quoted(
    scores: HeadScores, shown: Chosen, which: str, weights: Sequence[WordAttention]
) -> Iterator[Quoted]:
    for k, score in enumerate(shown.scores(scores)):
        marked = mark(shown.examples[k], shown.role)
        text = f"{score:.3g}" + ", typical" * (which == MEDIAN)
        text = "yours" if np.isnan(score) else text
        if not weights:
            arcs = tuple((query, key, np.nan, True) for query, key in marked.pairs)
            yield Quoted(text, marked.words, marked.keys, arcs)
        else:
            seen = weights[k]
            keys = tuple(np.flatnonzero(np.isin(seen.words, marked.keys)).tolist())
            yield Quoted(text, seen.labels, keys, tuple(_largest_weights(seen, marked)))
