"""The sentences behind a number: those where a head has extreme or typical scores of a role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles import storage
from headroles.corpus import Example
from headroles.encoding import SPECIAL, EncodedExample
from headroles.errors import StorageError, UsageError
from headroles.formats import to_records
from headroles.options import takes
from headroles.results import Result, Shown
from headroles.roles import Batch, Role, is_own, marked_words
from headroles.scoring import HeadScores
from headroles.studies.forms import ExamplesForm
from headroles.studies.options import LARGEST, MEDIAN, SMALLEST, ExampleOptions
from headroles.studies.rereading import not_imported, read_again
from headroles.wording import shortened

COLUMNS = ("example", "document", "score", "count", "text", "words")
WORDS_FILE = "sentences-words.json"
_KINDS = {
    LARGEST: "the largest {} scores",
    SMALLEST: "the smallest {} scores",
    MEDIAN: "the {} scores nearest the median",
}


@dataclass(frozen=True)
class MarkedExample:
    """The words of an example, and those that a role is about, numbered from 0.

    ``keys`` are the words in its sieve, in ascending order; ``pairs`` are (query, key): which word
    looks for which. Both are empty where the sieve is one of places, or of special tokens.
    """

    words: tuple[str, ...]
    keys: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def parts(self) -> tuple[tuple[bool, str], ...]:
        """The sentence in parts, whose words are in the sieve or not."""
        places = groupby(range(len(self.words)), set(self.keys).__contains__)
        return tuple(
            (is_key, " ".join(self.words[place] for place in part)) for is_key, part in places
        )

    @property
    def text(self) -> str:
        """The sentence with the words of the sieve in brackets."""
        keys = set(self.keys)
        return " ".join(f"[{word}]" if k in keys else word for k, word in enumerate(self.words))

    @property
    def arrows(self) -> str:
        """The pairs as text."""
        return ", ".join(f"{self.words[one]} -> {self.words[other]}" for one, other in self.pairs)


@dataclass(frozen=True, repr=False, eq=False)
class Examples(Result):
    """Examples of a head and a role, one row each, those first that are most what was asked for.

    ``count`` is the number of arcs, words or tokens behind the ``score``. In ``text`` the words of
    the sieve stand in brackets; ``words`` tells for pairs of words which look for which. ``marked``
    has the same of every row as numbers of words.
    """

    marked: tuple[MarkedExample, ...] = ()

    kind: ClassVar[str] = "examples"
    form: ClassVar[type[msgspec.Struct]] = ExamplesForm
    stem: ClassVar[str] = "sentences"
    cure: ClassVar[str] = "find them with: headroles examples DIR --out EXAMPLES"
    columns: ClassVar[tuple[str, ...]] = COLUMNS

    def shown(self) -> Iterator[Shown]:
        """Each example with its score."""
        asked, score = self.provenance["examples_of"], self.provenance["score"]
        scores = (
            f"a {score} score" if asked.get("example") else _KINDS[asked["which"]].format(score)
        )
        yield f"head {asked['layer']}-{asked['head']}, {asked['role']}: {scores}"
        for row in self.frame.to_dict("records"):
            pairs = f"\n          {row['words']}" if row["words"] else ""
            yield f"{row['score']:8.3f}  {row['text']}  ({row['example']}){pairs}"

    def facts(self) -> dict[str, Any]:
        """The same for scripts, with words and their numbers apart."""
        records = zip(to_records(self.frame), self.marked, strict=True)
        examples = [{**record, "marked": asdict(marked)} for record, marked in records]
        return {"of": self.provenance["examples_of"], "examples": examples}

    def write_files(self, folder: Path) -> list[str]:
        """The table, and the words with their marks."""
        names = super().write_files(folder)
        storage.write_json(folder / WORDS_FILE, {"examples": [asdict(one) for one in self.marked]})
        return [*names, WORDS_FILE]

    @classmethod
    def read_files(cls, folder: Path, provenance: dict[str, Any]) -> Examples:
        """The table, and the words with their marks."""
        table = super().read_files(folder, provenance)
        file = folder / WORDS_FILE
        try:
            found = storage.read_json(file)["examples"]
            return cls(table.frame, provenance, msgspec.convert(found, tuple[MarkedExample, ...]))
        except (KeyError, msgspec.ValidationError) as error:
            raise StorageError(f"{file} is not what headroles wrote ({error!r})") from error


@takes(ExampleOptions)
def find_examples(
    scores: HeadScores, head: tuple[int, int], role: str, options: ExampleOptions
) -> Examples:
    """The examples in which a head, as (layer, head), has the largest scores of a role, or others.

    Their words are read again from the files that were scored.

    Args:
        scores: from `score_heads`, of a treebank.
        head: layer and head, from 0.
        role: its id.
        options: keyword arguments, described below.

    Raises:
        UsageError: a head or role that the scores do not have, or scores of parsed text.
        CorpusError: the treebank is not there any more, or is another one now.
    """
    return find_again(scores, [(head, role, options)]).examples()[0]


@dataclass(frozen=True, eq=False)
class FoundAgain:
    """Examples that were asked for by head, role and options, read again from the treebank.

    ``chosen`` are, for each of ``asked``, places among all examples of ``scores``; ``found`` are
    the examples by id, ``roles`` the roles with their sieves by id.
    """

    scores: HeadScores
    asked: Sequence[tuple[tuple[int, int], str, ExampleOptions]]
    chosen: list[NDArray[np.int64]]
    found: dict[str, Example]
    roles: dict[str, Role]

    def examples(self) -> list[Examples]:
        """Return a table for each of ``asked``."""
        return [
            _examples_of(
                self.scores, head, role, rows, self.found, sieve_among(self.roles, role), options
            )
            for (head, role, options), rows in zip(self.asked, self.chosen, strict=True)
        ]


def find_again(
    scores: HeadScores, asked: Sequence[tuple[tuple[int, int], str, ExampleOptions]]
) -> FoundAgain:
    """Read the examples of several heads and roles again, for which one treebank is read once."""
    chosen = [choose_examples(scores, *one) for one in asked]
    ids = {scores.ids[row] for rows in chosen for row in rows}
    first = asked[0][2] if asked else ExampleOptions()
    found, roles = read_again(scores, ids, first.corpus, first.roles or ())
    return FoundAgain(scores, asked, chosen, found, roles)


def sieve_among(roles: dict[str, Role], role: str) -> Role:
    """The role with its sieve. Raises UsageError for one that was not made again."""
    if role in roles:
        return roles[role]
    if is_own(role):
        raise UsageError(not_imported(role))
    raise UsageError(f"the options that these scores record make no role {role!r}; score again")


def choose_examples(
    scores: HeadScores, head: tuple[int, int], role: str, options: ExampleOptions
) -> NDArray[np.int64]:
    """Places of the examples that were asked for, among all of ``scores``.

    Raises UsageError for a head or role that the scores do not have, and an example without score.
    """
    values = scores.of_head(head, role)
    if options.example is not None:
        found = [k for k, name in enumerate(scores.ids) if name == options.example]
        if not found or np.isnan(values[found[0]]):
            raise UsageError(
                f"head {head[0]}-{head[1]} has no score of {role} in an example "
                f"{shortened(options.example)!r}; it must be one of column example of: headroles "
                "examples"
            )
        return np.array(found)
    there = np.flatnonzero(~np.isnan(values))
    return there[np.argsort(_distances(values[there], options.which), kind="stable")][: options.n]


def _distances(values: NDArray[np.float32], which: str) -> NDArray[np.float32]:
    """How far values, one or more, are from those that were asked for, in any unit."""
    if which == MEDIAN and len(values):
        return np.asarray(np.abs(values - np.median(values)))
    return values if which == SMALLEST else -values


def _examples_of(
    scores: HeadScores,
    head: tuple[int, int],
    role: str,
    chosen: NDArray[np.int64],
    found: dict[str, Example],
    sieve_of: Role,
    options: ExampleOptions,
) -> Examples:
    """The ``chosen`` examples, with the words of the sieve marked."""
    values, place = scores.of_head(head, role), scores.role_ids.index(role)
    marked = tuple(_mark(found[scores.ids[row]], sieve_of) for row in chosen)
    rows = [
        {
            "example": scores.ids[row],
            "document": scores.documents[row],
            "score": float(values[row]),
            "count": int(scores.counts[row, place]),
            "text": words.text,
            "words": words.arrows,
        }
        for row, words in zip(chosen, marked, strict=True)
    ]
    asked = {"layer": head[0], "head": head[1], "role": role, **options.record()}
    own = {"score": scores.score.name, "examples_of": asked}
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return Examples(frame, {**scores.provenance, **own}, marked)


def _mark(example: Example, role: Role) -> MarkedExample:
    """The words of an example, and those that the role is about."""
    words = tuple(word for sentence in example.sentences for word in sentence.words)
    keys, pairs = marked_words(role, Batch([_word_by_word(example)]))
    return MarkedExample(words, tuple(sorted(keys)), tuple(pairs))


def _word_by_word(example: Example) -> EncodedExample:
    """The example as if every word were one token, with special tokens around sentences."""
    segments: list[int] = [SPECIAL]
    governors: list[int] = []
    relations: list[str] = []
    for segment, sentence in enumerate(example.sentences):
        before = len(governors)
        governors += [own if own < 0 else before + own for own in sentence.governors]
        relations += sentence.relations
        segments += [segment] * len(sentence.words) + [SPECIAL]
    table = np.array(segments)
    return EncodedExample(
        id=example.id,
        document=example.document,
        input_ids=np.zeros(len(table), dtype=np.int64),
        token_type_ids=None,
        segments=table,
        words=np.where(table == SPECIAL, -1, np.cumsum(table != SPECIAL) - 1),
        starts=np.flatnonzero(table != SPECIAL),
        sizes=np.ones(len(governors), dtype=np.int64),
        governors=np.array(governors, dtype=np.int64),
        relations=tuple(relations),
        sentences=example.sentences,
    )
