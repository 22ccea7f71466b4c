"""Which sentences are behind a number? Scores and their treebank -> Examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from msgspec import Meta

from headroles.corpus import BITEXT
from headroles.corpus.bitext import BETWEEN
from headroles.drawing.page import Quoted
from headroles.errors import HeadRolesError, UsageError
from headroles.models.options import ModelOptions
from headroles.options import fields_of, takes
from headroles.record import Recorded
from headroles.results.columns import NUMBER, TEXT, Column
from headroles.results.result import Result
from headroles.results.shown import Shown, Verbatim, Warned
from headroles.roles.choice import function_in
from headroles.roles.score import ScoreName
from headroles.scoring.scores import HeadScores
from headroles.storage import Count, kinds_in
from headroles.studies.inspection.attention import (
    LEAST,
    Arc,
    AttentionOptions,
    WordAttention,
    attention_in,
    draw_arcs,
    title_of,
)
from headroles.studies.inspection.origin import (
    LARGEST,
    MEDIAN,
    SMALLEST,
    TYPED,
    Chosen,
    ExampleOptions,
    Origin,
    OriginOptions,
    Wanted,
    not_imported,
)
from headroles.wording import head_name, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

    def check(self) -> None:
        """Reject options of the model where none is read."""
        super().check()
        for field in fields_of(ModelOptions):
            if not self.weights and getattr(self, field.name) != field.default:
                raise UsageError(f"`{field.name}` has no effect without weights; omit it")


class ExampleFacts(Recorded, frozen=True):
    """What examples are of; ``attention`` has words and arcs of the first, if a model was read."""

    score: ScoreName
    layer: Count
    head: Count
    role: str
    attention: tuple[Annotated[list[str], Meta(min_length=1)], list[Arc]] | None

    def __post_init__(self) -> None:
        words, arcs = self.attention or ([], [])
        if any(max(arc[:2]) >= len(words) for arc in arcs):
            raise ValueError("an arc to no word")


@dataclass(frozen=True, repr=False, eq=False)
class Examples(Result[ExampleOptions, ExampleFacts]):
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
    figures: ClassVar[Mapping[str, str]] = {"attention": "draw_example"}
    columns: ClassVar[tuple[str, ...]] = tuple(
        "example document score count text keys words gives".split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "keys": Column(TEXT),
        "score": Column(NUMBER, gaps=True),
    }

    def summarize(self) -> Iterator[Shown]:
        """Show each example with its score, and with the weights that the head gives in it."""
        facts, options, role = self.facts, self.options, self.facts.role
        own_choice = options.example or options.text or options.tokens
        scores = "a {} score" if own_choice else _KINDS[options.which]
        words = self.in_words(role)
        role_text = role if words == role else f"{words} ({role})"
        head = head_name((facts.layer, facts.head))
        yield f"Head {head}, {role_text}: {scores.format(facts.score)}."
        yield self._legend()
        is_typed = options.text is not None or options.tokens is not None
        if is_typed and self.known_roles([role])[0].relation and not self.frame["words"].any():
            yield "The sentence has no words that stand in this relation."
        for row in self.frame.to_dict("records"):
            arcs = row["gives"] or row["words"]
            below = f"\n          {arcs}" if arcs else ""
            score = "" if np.isnan(row["score"]) else f"{row['score']:.3f}"
            yield Verbatim(f"{score:>8}  {row['text']}  ({shortened(row['example'], 60)}){below}")
        yield from map(Warned, self.record.warnings)

    def _legend(self) -> str:
        """Explain brackets and arrows."""
        keys, words, gives = (self.frame[name].any() for name in ("keys", "words", "gives"))
        marked = "Words that the role looks for are in brackets. " if keys else ""
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
    origin = Origin(scores, options)
    (chosen,) = origin.examples([(head, role, options)])
    seen, reasons = _seen_or_reasons(origin, chosen if options.weights else [])
    rows = [_row(scores, *each) for each in zip_longest(chosen, seen)]
    layer, number = map(int, head)
    facts = ExampleFacts(
        score=scores.score.name,
        layer=layer,
        head=number,
        role=chosen[0].role.id if chosen else scores.role_of(head, role),
        attention=([*seen[0].labels], seen[0].drawn()) if seen else None,
    )
    return Examples.made(
        pd.DataFrame(rows, columns=list(Examples.columns)),
        options.as_group(ExampleOptions),
        facts=facts,
        warnings=reasons,
        sources={"scores": scores.record},
    )


def _seen_or_reasons(
    origin: Origin, chosen: Sequence[Chosen]
) -> tuple[list[WordAttention], list[str]]:
    """Return the attention in examples, by the model in a folder of this machine or that is given.

    Without it return none, and the reason.
    """
    if not chosen:
        return [], []
    try:
        recorded = str(origin.scores.record.model.model)
        if origin.options.model is None and not Path(recorded).is_dir():
            raise UsageError(f"{recorded} is no folder here; pass `model`")
        return attention_in(origin, chosen), []
    except HeadRolesError as error:
        return [], [f"Weights are not shown: {error}."]


def _largest(chosen: Chosen, seen: WordAttention | None) -> list[Arc]:
    """Return the largest weights; of a role with pairs of words its arcs, then those elsewhere."""
    _, pairs = chosen.marks
    if seen is None:
        return [(query, key, np.nan, True) for query, key in pairs]
    is_large, is_word = seen.weights >= LEAST, seen.words >= 0
    if not pairs:
        return seen.arcs(is_large)[:_OF_ROLE]
    between = is_large & np.outer(is_word, is_word) & ~np.eye(len(seen), dtype=bool)
    return seen.arcs(seen.sieve)[:_OF_ROLE] + seen.arcs(between & ~seen.sieve)[:_OTHERS]


def _row(scores: HeadScores, chosen: Chosen, seen: WordAttention | None) -> dict[str, Any]:
    """Return the row of an example, with the attention in it if the model was read."""
    row, example, words, (keys, pairs) = chosen.row, chosen.example, chosen.words, chosen.marks
    count, document = len(pairs) or len(keys), example.document
    if row != TYPED:
        count = scores.counts[row, scores.role_ids.index(chosen.role.id)]
        document = scores.documents[row]  # as the file was called
    texts = [f"[{word}]" if k in keys else word for k, word in enumerate(words)]
    if scores.record.corpus.format == BITEXT:
        texts.insert(len(example.sentences[0].words), BETWEEN)
    gives: dict[bool, list[str]] = {True: [], False: []}
    if seen is not None:
        for query, key, weight, is_of_role in _largest(chosen, seen):
            gives[is_of_role].append(f"{seen.labels[query]} -> {seen.labels[key]} {weight:.2f}")
    return {
        "example": example.id,
        "document": document,
        "score": chosen.score,
        "count": count,
        "text": " ".join(texts),
        "keys": " ".join(map(str, keys)),
        "words": ", ".join(f"{words[query]} -> {words[key]}" for query, key in pairs),
        "gives": "; elsewhere ".join(", ".join(part) for part in gives.values() if part),
    }


def draw_example(examples: Examples, ax: Axes | None = None) -> Axes:
    """Draw the attention in the first example.

    Raises UsageError for examples without weights.
    """
    facts = examples.facts
    if facts.attention is None:
        raise UsageError(
            "these examples have no weights; run headroles examples again with `model`, and "
            "without `weights=False`"
        )
    first = examples.frame.iloc[0]
    role = examples.in_words(facts.role)
    about = (facts.layer, facts.head), role, facts.score, first["score"], first["example"]
    words, arcs = facts.attention
    return draw_arcs(words, arcs, title_of(*about), ax)


# Sentences on pages of results


def quote(
    folder: Path, wanted: Sequence[Wanted], options: OriginOptions
) -> tuple[list[list[Quoted]], list[str]]:
    """Return sentences of the scores in a folder for each of ``wanted``, and reasons for none.

    Raises HeadRolesError for a sentence of the user's own that cannot be read.
    """
    imported = set(map(str, options.roles or ()))
    closed = {role for _, role, _ in wanted if function_in(role) not in {"", *imported}}
    why_not = [
        f"Sentences of {role} are not shown: {not_imported(function_in(role))}."
        for role in sorted(closed)
    ]
    quoted: list[list[Quoted]] = [[] for _ in wanted]
    origin = None
    for is_given in (True, False):  # apart: the model may not read a sentence of the user's own
        places = [
            k
            for k, (_, role, choice) in enumerate(wanted)
            if role not in closed and choice.is_given == is_given
        ]
        if not places:
            continue
        try:
            if HeadScores.kind not in kinds_in(folder):
                raise UsageError(
                    "their scores are not beside the table; report on a folder that classify wrote"
                )
            origin = origin or Origin(HeadScores.load(folder), options)
            examples = origin.examples([wanted[k] for k in places])
        except HeadRolesError as error:
            if is_given:
                raise
            why_not.append(f"The sentences cannot be shown: {error}.")
            continue
        chosen = [(k, shown) for k, some in zip(places, examples, strict=True) for shown in some]
        seen, reasons = _seen_or_reasons(origin, [shown for _, shown in chosen])
        why_not += reasons
        for (k, shown), attention in zip_longest(chosen, seen):
            quoted[k].append(_quoted(shown, attention, wanted[k][2].which))
    return quoted, list(dict.fromkeys(why_not))


def _quoted(chosen: Chosen, seen: WordAttention | None, which: str) -> Quoted:
    score = f"{chosen.score:.3g}" + (", typical" if which == MEDIAN else "")
    score = "yours" if chosen.row == TYPED else score
    words, (places, _) = chosen.words, chosen.marks
    if seen is not None:
        words, places = seen.labels, np.flatnonzero(np.isin(seen.words, places)).tolist()
    return Quoted(score, words, tuple(places), tuple(_largest(chosen, seen)))
