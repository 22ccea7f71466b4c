"""The sentences behind a number: those where a head has the largest or smallest score of a role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pandas as pd

from headroles.corpus import NEWDOC, Example, make_examples, prepared, read_conllu
from headroles.encoding import SPECIAL, EncodedExample
from headroles.errors import CorpusError, UsageError
from headroles.formats import to_records
from headroles.options import fields_of, takes
from headroles.results import Result, Shown
from headroles.roles import Batch, Role, RoleOptions, choose_roles, marked_words
from headroles.scoring import HeadScores
from headroles.studies.forms import ExamplesForm
from headroles.studies.options import ExampleOptions

COLUMNS = ("example", "document", "score", "count", "text", "words")


@dataclass(frozen=True, repr=False, eq=False)
class Examples(Result):
    """Examples of a head and a role, the strongest or the weakest first, one row each.

    ``count`` is the number of arcs, words or tokens behind the ``score``. In ``text`` the words of
    the sieve stand in brackets; ``words`` tells for pairs of words which look for which.
    """

    kind: ClassVar[str] = "examples"
    form: ClassVar[type[msgspec.Struct]] = ExamplesForm
    stem: ClassVar[str] = "sentences"
    cure: ClassVar[str] = "find them with: headroles examples DIR --out EXAMPLES"
    columns: ClassVar[tuple[str, ...]] = COLUMNS

    def shown(self) -> Iterator[Shown]:
        """Each example with its score."""
        asked = self.provenance["examples_of"]
        order = "smallest" if asked["weakest"] else "largest"
        yield (
            f"head {asked['layer']}-{asked['head']}, {asked['role']}: "
            f"the {order} {self.provenance['score']} scores"
        )
        for row in self.frame.to_dict("records"):
            pairs = f"\n          {row['words']}" if row["words"] else ""
            yield f"{row['score']:8.3f}  {row['text']}  ({row['example']}){pairs}"

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {"of": self.provenance["examples_of"], "examples": to_records(self.frame)}


@takes(ExampleOptions)
def find_examples(
    scores: HeadScores, head: tuple[int, int], role: str, options: ExampleOptions
) -> Examples:
    """The examples in which a head, as (layer, head), has the largest scores of a role.

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
    return examples(scores, head, role, options)


def examples(
    scores: HeadScores, head: tuple[int, int], role: str, options: ExampleOptions
) -> Examples:
    """`find_examples` for callers that have their options together."""
    return examples_of_heads(scores, [(head, role)], options)[0]


def examples_of_heads(
    scores: HeadScores, asked: Sequence[tuple[tuple[int, int], str]], options: ExampleOptions
) -> list[Examples]:
    """`examples` of several heads and roles, for which the treebank is read once."""
    chosen = [_choose(_column(scores, head, role), options) for head, role in asked]
    wanted = {scores.ids[row] for rows in chosen for row in rows}
    found, sieves = _read_again(scores, wanted)
    return [
        _examples_of(scores, head, role, rows, found, sieves[role], options)
        for (head, role), rows in zip(asked, chosen, strict=True)
    ]


def _choose(values: Any, options: ExampleOptions) -> Any:
    """The examples with the largest or smallest values, by their place."""
    there = np.flatnonzero(~np.isnan(values))
    order = there[np.argsort(values[there] if options.weakest else -values[there], kind="stable")]
    return order[: options.n]


def _examples_of(
    scores: HeadScores,
    head: tuple[int, int],
    role: str,
    chosen: Any,
    found: dict[str, Example],
    sieve_of: Role,
    options: ExampleOptions,
) -> Examples:
    """The ``chosen`` examples, with the words of the sieve marked."""
    values = _column(scores, head, role)
    rows = []
    for row in chosen:
        text, words = _mark(found[scores.ids[row]], sieve_of)
        rows.append(
            {
                "example": scores.ids[row],
                "document": scores.documents[row],
                "score": float(values[row]),
                "count": int(scores.counts[row, scores.role_ids.index(role)]),
                "text": text,
                "words": words,
            }
        )
    asked = {"layer": head[0], "head": head[1], "role": role, **options.record()}
    own = {"score": scores.score.name, "examples_of": asked}
    return Examples(pd.DataFrame(rows, columns=list(COLUMNS)), {**scores.provenance, **own})


def _column(scores: HeadScores, head: tuple[int, int], role: str) -> Any:
    for what, place, n in zip(("layer", "head"), head, scores.values.shape[1:3], strict=True):
        if not 0 <= place < n:
            raise UsageError(f"the {what} is {place}; it must be 0 to {n - 1}")
    if role not in scores.role_ids:
        raise UsageError(f"the role is {role!r}; it must be one of {', '.join(scores.role_ids)}")
    return scores.values[:, head[0], head[1], scores.role_ids.index(role)]


def _read_again(scores: HeadScores, ids: set[str]) -> tuple[dict[str, Example], dict[str, Role]]:
    """The examples of these ids, and the roles with their sieves, by id."""
    corpus, recorded = (scores.provenance.get(name, {}) for name in ("corpus", "options"))
    if corpus.get("format") != "conllu":
        raise UsageError(
            "the sentences are read again from the treebank that was scored, and these scores are "
            "of parsed text or made by hand; score a treebank"
        )
    own = {one.name for one in fields_of(RoleOptions)}
    options = RoleOptions(**{name: value for name, value in recorded.items() if name in own})
    source = read_conllu(
        [Path(file) for file in corpus["files"]],
        on_bad_sentence="skip",
        documents=corpus.get("documents_by", NEWDOC),
    )
    with prepared(source) as ready:
        if ready.digest != corpus["digest"]:
            raise CorpusError(
                f"{', '.join(corpus['files'])} is not what was scored: its sentences differ; "
                "score again"
            )
        made = make_examples(ready, recorded.get("pairing", "adjacent"))
        found = {example.id: example for example in made if example.id in ids}
        relations = tuple(recorded.get("relations") or ())
        roles = choose_roles(options, relations, scores.score, ready)
    return found, {role.id: role for role in roles}


def _mark(example: Example, role: Role) -> tuple[str, str]:
    """The text with the words of the sieve in brackets, and its pairs of words."""
    words = [word for sentence in example.sentences for word in sentence.words]
    keys, pairs = marked_words(role, Batch([_word_by_word(example)]))
    text = " ".join(f"[{word}]" if k in keys else word for k, word in enumerate(words))
    return text, ", ".join(f"{words[one]} -> {words[other]}" for one, other in pairs)


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
