"""The sentences behind a number, in which a head has extreme or typical scores of a role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
import pandas as pd
from msgspec import structs

from headroles import storage
from headroles.arrays import IntArray
from headroles.errors import HeadRolesError, StorageError, UsageError
from headroles.formats import to_records
from headroles.options import takes
from headroles.record import Record, Recorded, ScoresRecord
from headroles.results.result import Result
from headroles.results.shown import Shown, Verbatim, Warned
from headroles.roles import find_role, in_words
from headroles.scoring.scores import HeadScores
from headroles.studies.inspection.options import (
    LARGEST,
    MEDIAN,
    SMALLEST,
    AttentionOptions,
    ExampleOptions,
    SentenceOptions,
)
from headroles.studies.inspection.sentences import FoundAgain, MarkedExample, find_again
from headroles.wording import shortened

if TYPE_CHECKING:
    from headroles.studies.inspection.attention import WordAttention

Given = tuple[int, int, float, bool]
"""Query, key, weight, whether the role has this arc."""
_LEAST = 0.1
"""Smaller weights are not listed, except those of the role."""
_OWN, _OTHERS = 8, 4
"""Numbers of arcs of the role, and of other arcs, to list for a sentence."""


def weights_again(
    again: FoundAgain, options: AttentionOptions
) -> tuple[Sequence[Sequence[WordAttention] | None], tuple[str, ...]]:
    """Return attention in the sentences, from a model on this machine, and reasons for none."""
    if not again.asked:
        return (), ()
    from headroles.studies.inspection.attention import attention_of_heads  # which loads torch

    recorded = str(again.scores.record.model.model)
    try:
        if options.model is None and not Path(recorded).is_dir():
            raise UsageError(f"{recorded} is no folder here; pass `model`")
        return attention_of_heads(again, options), ()
    except HeadRolesError as error:
        return [None] * len(again.asked), (f"Weights are not shown: {error}.",)


def largest_weights(seen: WordAttention, marked: MarkedExample) -> Iterator[Given]:
    """Yield the largest weights: of the role, then elsewhere; the largest of all without arcs."""
    weights = seen.weights
    is_word = seen.words >= 0
    large = weights >= _LEAST
    if marked.pairs:
        between = large & np.outer(is_word, is_word) & ~np.eye(len(seen), dtype=bool)
        groups = [(seen.sieve, _OWN), (between & ~seen.sieve, _OTHERS)]
    else:
        groups = [(large, _OWN)]
    for chosen, most in groups:
        places = np.argwhere(chosen)
        order = np.argsort(-weights[chosen], kind="stable")[:most]
        for query, key in places[order].tolist():
            yield query, key, float(weights[query, key]), bool(seen.sieve[query, key])


def in_text(seen: WordAttention, marked: MarkedExample) -> str:
    """Write the largest weights of a sentence as ``word -> word 0.62``, those of the role first."""
    listed: dict[bool, list[str]] = {True: [], False: []}
    for query, key, weight, is_own in largest_weights(seen, marked):
        listed[is_own].append(f"{seen.labels[query]} -> {seen.labels[key]} {weight:.2f}")
    own, others = (", ".join(listed[is_own]) for is_own in (True, False))
    return f"{own}; elsewhere {others}" if own and others else own or others


WORDS_FILE = "sentences-words.json"
_KINDS = {
    LARGEST: "the largest {} scores",
    SMALLEST: "the smallest {} scores",
    MEDIAN: "the {} scores nearest the median",
}


class ExamplesOf(Recorded, frozen=True, kw_only=True):
    """Request for examples: head, role, number, and which of them.

    ``no_weights`` is the reason for missing weights.
    """

    layer: int
    head: int
    role: str
    n: int
    which: str
    example: str | None = None
    no_weights: str = ""


class ExamplesRecord(ScoresRecord, frozen=True, kw_only=True):
    """Record of examples: their scores and the request."""

    examples_of: ExamplesOf


@dataclass(frozen=True, repr=False, eq=False)
class Examples(Result):
    """Examples of a head and a role, one row each, the most extreme or typical first.

    ``count`` is the number of arcs, words or tokens behind the ``score``. In ``text`` the words of
    the sieve stand in brackets. ``words`` lists pairs of words of the role, and ``gives`` the
    weights of the head, those of the role first; it is empty without a model. ``marked`` has the
    marks of every row as numbers of words.

    With ``examples`` as `find_examples` returns them:

    >>> examples.frame.columns.tolist()[:4]
    ['example', 'document', 'score', 'count']
    """

    record: ExamplesRecord
    marked: tuple[MarkedExample, ...] = ()

    kind: ClassVar[str] = "examples"
    stem: ClassVar[str] = "sentences"
    remedy: ClassVar[str] = "find them with: headroles examples DIR --out EXAMPLES"
    columns: ClassVar[tuple[str, ...]] = tuple(
        "example document score count text words gives".split()
    )

    def summarize(self) -> Iterator[Shown]:
        """Show each example with its score, and with the weights that the head gives in it."""
        asked, score = self.record.examples_of, self.record.score
        scores = f"a {score} score" if asked.example else _KINDS[asked.which].format(score)
        role = asked.role
        named = role if in_words(role) == role else f"{in_words(role)} ({role})"
        yield f"Head {asked.layer}-{asked.head}, {named}: {scores}."
        yield self._legend()
        for row in self.frame.to_dict("records"):
            arcs = row["gives"] or row["words"]
            below = f"\n          {arcs}" if arcs else ""
            yield Verbatim(
                f"{row['score']:8.3f}  {row['text']}  ({shortened(row['example'], 60)}){below}"
            )
        if reason := asked.no_weights:
            yield Warned(reason)

    def _legend(self) -> str:
        """Explain brackets and arrows."""
        marked = "Words that the role looks for are in brackets. " * any(
            one.keys for one in self.marked
        )
        if self.frame["gives"].any():
            return f"{marked}a -> b 0.62: of its attention, the head gives 0.62 from a to b."
        return (
            f"{marked}a -> b: the role looks from a for b." if self.frame["words"].any() else marked
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts, with the words and their numbers."""
        records = zip(to_records(self.frame), self.marked, strict=True)
        examples = [{**record, "marked": asdict(marked)} for record, marked in records]
        return {"of": storage.plain(self.record.examples_of), "examples": examples}

    def write_files(self, folder: Path) -> list[str]:
        """Write the table, and the words with their marks."""
        names = super().write_files(folder)
        storage.write_json(folder / WORDS_FILE, {"examples": [asdict(one) for one in self.marked]})
        return [*names, WORDS_FILE]

    @classmethod
    def read_files(cls, folder: Path, record: Record) -> Examples:
        """Read the table, and the words with their marks."""
        table = super().read_files(folder, record)
        file = folder / WORDS_FILE
        try:
            found = storage.read_json(file)["examples"]
            return replace(table, marked=msgspec.convert(found, tuple[MarkedExample, ...]))
        except (KeyError, UnicodeError, msgspec.ValidationError) as error:
            raise StorageError(f"{file} is not what headroles wrote ({error!r})") from error


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
    >>> found = find_examples(scores, (0, 0), "punctuation", n=1)
    >>> found.marked[0].words[found.marked[0].keys[-1]], found.frame["text"][0][-3:]
    ('.', '[.]')
    """
    again = find_again(scores, [(head, find_role(role, scores.role_ids), options)])
    (found,) = examples_of(again)
    if not (options.weights and len(found)):
        return found
    (weights,), why_not = weights_again(again, options)
    if weights is None:
        asked = structs.replace(found.record.examples_of, no_weights=" ".join(why_not))
        return replace(found, record=structs.replace(found.record, examples_of=asked))
    gives = [in_text(*one) for one in zip(weights, found.marked, strict=True)]
    return replace(found, frame=found.frame.assign(gives=gives))


def examples_of(again: FoundAgain) -> list[Examples]:
    """Return the examples for each of ``again.asked``, without weights."""
    return [
        _table(again.scores, *one)
        for one in zip(again.asked, again.chosen, again.marked, strict=True)
    ]


def _table(
    scores: HeadScores,
    asked: tuple[tuple[int, int], str, ExampleOptions],
    chosen: IntArray,
    marked: tuple[MarkedExample, ...],
) -> Examples:
    head, role, options = asked
    values, place = scores.of_head(head, role), scores.role_ids.index(role)
    rows = [
        {
            "example": scores.ids[row],
            "document": scores.documents[row],
            "score": float(values[row]),
            "count": int(scores.counts[row, place]),
            "text": words.text,
            "words": words.arrows,
            "gives": "",
        }
        for row, words in zip(chosen, marked, strict=True)
    ]
    given = options.as_group(ExampleOptions).record()
    examples_of = ExamplesOf(layer=head[0], head=head[1], role=role, **given)
    frame = pd.DataFrame(rows, columns=list(Examples.columns))
    record = ExamplesRecord.extending(scores.record, examples_of=examples_of)
    return Examples(frame, record, marked)
