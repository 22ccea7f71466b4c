"""Which sentences are behind a number? Scores and their treebank -> Examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from headroles import storage
from headroles.drawing.head_map import Quoted
from headroles.errors import CorpusError, HeadRolesError, UsageError
from headroles.options import Options, takes
from headroles.record import Record
from headroles.results.columns import TEXT, Column
from headroles.results.result import Result
from headroles.results.shown import Shown, Verbatim, Warned
from headroles.roles import in_words, is_own
from headroles.scoring.scores import HeadScores
from headroles.studies.inspection.attention import (
    LARGEST,
    MEDIAN,
    SMALLEST,
    AttentionOptions,
    ExampleOptions,
    ExamplesAgain,
    MarkedExample,
    Wanted,
    WordAttention,
    attention_in,
    mark,
    not_imported,
    read_again,
)
from headroles.wording import shortened

_LEAST = 0.1
"""Smaller weights are not listed, except those of the role."""
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
    is empty without a model.

    With ``examples`` as `find_examples` returns them:

    >>> examples.frame.columns.tolist()[:4]
    ['example', 'document', 'score', 'count']
    """

    kind: ClassVar[str] = "examples"
    remedy: ClassVar[str] = "find them with: headroles examples DIR --out EXAMPLES"
    question: ClassVar[str] = "Which sentences are behind the number?"
    options_type: ClassVar[type[Options]] = ExampleOptions
    columns: ClassVar[tuple[str, ...]] = tuple(
        "example document score count text keys words gives".split()
    )
    own: ClassVar[Mapping[str, Column]] = {"keys": Column(TEXT)}

    def summarize(self) -> Iterator[Shown]:
        """Show each example with its score, and with the weights that the head gives in it."""
        facts, options, role = self.facts, self.options, self.facts["role"]
        scores = "a {} score" if options.example else _KINDS[options.which]
        named = role if in_words(role) == role else f"{in_words(role)} ({role})"
        head = f"{facts['layer']}-{facts['head']}"
        yield f"Head {head}, {named}: {scores.format(facts['score'])}."
        yield self._legend()
        for row in self.frame.to_dict("records"):
            arcs = row["gives"] or row["words"]
            below = f"\n          {arcs}" if arcs else ""
            yield Verbatim(
                f"{row['score']:8.3f}  {row['text']}  ({shortened(row['example'], 60)}){below}"
            )
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
    (again,) = read_again(scores, [(head, role, options)])
    rows, name = again.rows, again.role.id
    marked = [mark(example, again.role) for example in again.examples]
    (weights,), warnings = _weights_again(scores, [again], options if options.weights else None)
    frame = pd.DataFrame(
        {
            "example": [scores.ids[row] for row in rows],
            "document": [scores.documents[row] for row in rows],
            "score": scores.of_head(again.head, name)[rows].astype(np.float64),
            "count": scores.counts[rows, scores.role_ids.index(name)],
            "text": [_with_brackets(one) for one in marked],
            "keys": [" ".join(map(str, one.keys)) for one in marked],
            "words": [
                ", ".join(f"{one.words[query]} -> {one.words[key]}" for query, key in one.pairs)
                for one in marked
            ],
            "gives": list(map(_in_text, weights, marked)) or [""] * len(rows),
        }
    )
    layer, number = again.head
    facts = {"score": scores.score.name, "layer": layer, "head": number, "role": name}
    choice = options.as_group(ExampleOptions)
    return Examples(frame, Record.of_scores("examples", scores.record, choice, warnings, **facts))


def _with_brackets(marked: MarkedExample) -> str:
    """Return the sentence with the words of the sieve in brackets."""
    words = enumerate(marked.words)
    return " ".join(f"[{word}]" if k in marked.keys else word for k, word in words)


def _weights_again(
    scores: HeadScores, again: Sequence[ExamplesAgain], options: AttentionOptions | None
) -> tuple[Sequence[Sequence[WordAttention]], tuple[str, ...]]:
    """Return attention in the sentences, from a model on this machine, and the reason for none."""
    if options is None or not any(one.rows for one in again):
        return [()] * len(again), ()
    recorded = str(scores.record.model.model)
    try:
        if options.model is None and not Path(recorded).is_dir():
            raise UsageError(f"{recorded} is no folder here; pass `model`")
        return attention_in(scores, again, options), ()
    except HeadRolesError as error:
        return [()] * len(again), (f"Weights are not shown: {error}.",)


def _largest_weights(
    seen: WordAttention, marked: MarkedExample
) -> Iterator[tuple[int, int, float, bool]]:
    """Yield query, key and weight of the largest weights, and whether the role has this arc.

    Those of the role come first, then those elsewhere; without arcs, the largest of all.
    """
    weights, is_word = seen.weights, seen.words >= 0
    is_large = weights >= _LEAST
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
    it has moved.
    """
    may_run = {name for one in imported for name in (one, f"{one}:back")}
    closed = {
        role
        for _, role, _ in wanted
        if is_own(role) and role.removesuffix(":beyond_offset") not in may_run
    }
    wanted_now = [
        (head, role, options.as_group(ExampleOptions, roles=imported or None))
        for head, role, options in wanted
        if role not in closed
    ]
    try:
        if HeadScores.kind not in storage.kinds_in(folder):
            raise CorpusError("the scores are not in the folder")
        scores = HeadScores.load(folder)
        again = read_again(scores, wanted_now)
    except HeadRolesError as error:
        return [()] * len(wanted), (f"The sentences cannot be shown: {error}.",)
    weights, why_not = _weights_again(scores, again, AttentionOptions(model=model))
    quoted = iter(
        tuple(_quoted(scores, one, options.which, seen))
        for one, (_, _, options), seen in zip(again, wanted_now, weights, strict=True)
    )
    found = [() if role in closed else next(quoted) for _, role, _ in wanted]
    closed_by = sorted(
        f"Sentences of {role} are not shown: {not_imported(role)}." for role in closed
    )
    return found, (*closed_by, *why_not)


def _quoted(
    scores: HeadScores, again: ExamplesAgain, which: str, weights: Sequence[WordAttention]
) -> Iterator[Quoted]:
    of_head = scores.of_head(again.head, again.role.id)
    for k, (row, example) in enumerate(zip(again.rows, again.examples, strict=True)):
        marked = mark(example, again.role)
        text = f"{of_head[row]:.3g}" + ", typical" * (which == MEDIAN)
        if not weights:
            arcs = tuple((query, key, np.nan, True) for query, key in marked.pairs)
            yield Quoted(text, marked.words, marked.keys, arcs)
        else:
            seen = weights[k]
            keys = tuple(np.flatnonzero(np.isin(seen.words, marked.keys)).tolist())
            yield Quoted(text, seen.labels, keys, tuple(_largest_weights(seen, marked)))
