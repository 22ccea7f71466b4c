"""Sentences behind a score, chosen by it, and read again from the treebank that was scored."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
from msgspec import Meta

from headroles.arrays import Float32Array, IntArray
from headroles.corpus import GIVEN, NEWDOC, Example, make_examples, prepared, read_conllu
from headroles.encoding import SPECIAL, EncodedExample
from headroles.errors import CorpusError, UsageError
from headroles.models.options import ModelOptions
from headroles.options import CIRCUMSTANCE, Convert, fields_of, split_names
from headroles.roles import PaddedBatch, Role, RoleOptions, choose_roles, is_own, marked_words
from headroles.scoring.scores import HeadScores
from headroles.studies.options import ImportOptions
from headroles.wording import head_name, listed, printable, shortened

LARGEST: Final = "largest"
MEDIAN: Final = "median"
SMALLEST: Final = "smallest"


def _paths(given: Any) -> tuple[Path, ...]:
    if isinstance(given, PathLike):
        return (Path(given),)
    return tuple(map(Path, split_names(given) if isinstance(given, str) else given))


@dataclass(frozen=True, kw_only=True)
class ExampleOptions(ImportOptions):
    """Options of the choice of examples."""

    title: ClassVar[str] = "Output"

    n: Annotated[int, Meta(ge=1)] = 5
    """Number of examples."""
    which: Literal["largest", "median", "smallest"] = "median"
    """Typical ones, with scores nearest the median, or those with the largest or smallest."""
    example: str | None = None
    """The example with this id, with any score, and no other."""
    corpus: Annotated[Sequence[Path] | None, Convert(_paths), CIRCUMSTANCE] = None
    """Treebank that was scored, files or folders, if it has moved."""

    def check(self) -> None:
        """Reject a choice among examples where one is named."""
        super().check()
        if self.example is not None and self.which != MEDIAN:
            raise UsageError("`example` names the one to show; leave `which` out")


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(ExampleOptions, ModelOptions):
    """Options of the choice of examples, and of the model that reads them."""

    title: ClassVar[str] = "Model"

    model: Annotated[Any, CIRCUMSTANCE] = None
    """Model that was scored, if it has moved.

    A folder, a hub id or, from Python, a loaded model in evaluation mode.
    """


Wanted = tuple[tuple[int, int], str, ExampleOptions]
"""Head, role, and which examples of them."""


def _read_again(
    scores: HeadScores,
    ids: Container[str],
    files: Sequence[Path] | None = None,
    imported: Sequence[str] = (),
) -> tuple[dict[str, Example], dict[str, Role]]:
    """Return the examples of these ids, and the roles with their sieves, by id.

    ``files`` are the treebank, by default in its place when it was scored. A role of a user is
    among the roles only if its ``MODULE:FUNCTION`` is ``imported``: scores may come from
    elsewhere, and the name that they record must not decide which code runs here.

    Raises UsageError for scores of parsed text or made by hand and for roles that were not scored,
    and CorpusError for a treebank that is missing or has changed.
    """
    corpus, recorded = scores.record.corpus, scores.record.options
    if corpus.format != "conllu":
        raise UsageError(
            "sentences come from the treebank that was scored, and these scores are of parsed text "
            "or made by hand; score a treebank"
        )
    known = {field.name for field in fields_of(RoleOptions)} - {"relations"}
    options = RoleOptions(**{name: value for name, value in recorded.items() if name in known})
    names = _without_own(options.roles, imported)
    if files is None:
        files = _where_they_were(corpus.files)
    source = read_conllu(
        files,
        on_bad_sentence="skip",
        documents=corpus.documents_by or NEWDOC,
        ids=corpus.ids_by or GIVEN,
    )
    with prepared(source) as ready:
        if ready.digest != corpus.digest:
            raise CorpusError(
                f"{', '.join(map(str, files))} has other sentences than when it was scored; name "
                "the file that was scored with `corpus`, or score again"
            )
        made = make_examples(ready, scores.record.pairing or "adjacent")
        examples = {example.id: example for example in made if example.id in ids}
        relations = tuple(recorded.get("relations") or ())
        roles: tuple[Role, ...] = ()
        if names != ():
            options = replace(options, roles=names)
            roles = choose_roles(options, relations, scores.score, ready)
    return examples, {role.id: role for role in roles}


def _without_own(recorded: Sequence[str] | None, imported: Sequence[str]) -> tuple[str, ...] | None:
    """Return the recorded names of roles; of users' roles only those ``imported``."""
    of_users = [name for name in recorded or () if is_own(name)]
    for name in imported:
        if name not in of_users:
            known = f"; name one of: {listed(of_users)}" if of_users else ""
            raise UsageError(f"{name!r} is no user's role that was scored{known}")
    if recorded is None:
        return None
    return tuple(name for name in recorded if name not in of_users or name in imported)


def not_imported(role: str) -> str:
    """Return the reason why a user's role has no sentences, with advice."""
    name = printable(":".join(role.split(":")[:2]))
    return (
        f"{name} is a Python function, and reading results imports none by itself; if you trust "
        "it, name it with `roles`"
    )


def _where_they_were(files: Sequence[str]) -> list[Path]:
    """Return the files of a treebank. Raises CorpusError for one that is not there."""
    places = list(map(Path, files))
    for file in places:
        if not file.exists():
            here = " in this folder" * (not file.is_absolute())
            raise CorpusError(
                f"{file}, which was scored, does not exist{here}; name it with `corpus`"
            )
    return places


@dataclass(frozen=True)
class MarkedExample:
    """The words of an example, and those of a role, numbered from 0.

    ``keys`` are the words in its sieve, in ascending order; ``pairs`` are its (query, key). Both
    are empty for sieves of places or of special tokens.
    """

    words: tuple[str, ...]
    keys: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        """The sentence with the words of the sieve in brackets."""
        keys = set(self.keys)
        return " ".join(f"[{word}]" if k in keys else word for k, word in enumerate(self.words))

    @property
    def arrows(self) -> str:
        """The pairs as text."""
        return ", ".join(f"{self.words[query]} -> {self.words[key]}" for query, key in self.pairs)


@dataclass(frozen=True, eq=False)
class FoundAgain:
    """Examples by head, role and options, read again from the treebank.

    ``rows`` are, for each of ``wanted``, places among all examples of ``scores``; ``examples`` are
    all of them by id, ``roles`` the roles with their sieves by id.
    """

    scores: HeadScores
    wanted: Sequence[Wanted]
    rows: list[IntArray]
    examples: dict[str, Example]
    roles: dict[str, Role]

    @cached_property
    def marked(self) -> list[list[MarkedExample]]:
        """The words of the examples for each of ``wanted``, with those of its sieve marked."""
        return [
            [_mark(self.examples[self.scores.ids[row]], self.sieve(role)) for row in rows]
            for (_, role, _), rows in zip(self.wanted, self.rows, strict=True)
        ]

    def sieve(self, role: str) -> Role:
        """Return a role with its sieve. Raises UsageError for one that was not made again."""
        if role in self.roles:
            return self.roles[role]
        if is_own(role):
            raise UsageError(not_imported(role))
        raise UsageError(f"the recorded options make no role {role!r}; score again")


def find_again(scores: HeadScores, wanted: Sequence[Wanted]) -> FoundAgain:
    """Read the examples of several heads and roles again, in one pass over the treebank."""
    wanted = [(head, scores.role_of(head, role), options) for head, role, options in wanted]
    rows = [choose_examples(scores, *each) for each in wanted]
    wanted = [((int(layer), int(head)), role, options) for (layer, head), role, options in wanted]
    ids = {scores.ids[row] for of_head in rows for row in of_head}
    first = wanted[0][2] if wanted else ExampleOptions()
    examples, roles = _read_again(scores, ids, first.corpus, first.roles or ())
    return FoundAgain(scores, wanted, rows, examples, roles)


def choose_examples(
    scores: HeadScores, head: tuple[int, int], role: str, options: ExampleOptions
) -> IntArray:
    """Return places of the wanted examples among all of ``scores``.

    Raises UsageError for a head or role that the scores do not have, and an example without score.
    """
    values = scores.of_head(head, role)
    if list(head) in map(list, scores.record.removed_heads or ()):
        raise UsageError(
            f"head {head_name(head)} was removed from the model and has no scores; name another"
        )
    if options.example is not None:
        if options.example not in scores.ids or np.isnan(values[scores.ids.index(options.example)]):
            raise UsageError(
                f"head {head[0]}-{head[1]} has no score of {role} in an example "
                f"{shortened(options.example)!r}; name one from the column example of: headroles "
                "examples"
            )
        return np.array([scores.ids.index(options.example)])
    rows = np.flatnonzero(~np.isnan(values))
    return rows[np.argsort(_distances(values[rows], options.which), kind="stable")][: options.n]


def _distances(values: Float32Array, which: str) -> Float32Array:
    """Return keys to sort values by, the wanted ones first."""
    if which == MEDIAN and len(values):
        return np.asarray(np.abs(values - np.median(values)))
    return values if which == SMALLEST else -values


def _mark(example: Example, role: Role) -> MarkedExample:
    """Return the words of an example, with those of the role marked."""
    words = tuple(word for sentence in example.sentences for word in sentence.words)
    keys, pairs = marked_words(role, PaddedBatch([_word_by_word(example)]))
    return MarkedExample(words, tuple(sorted(keys)), tuple(pairs))


def _word_by_word(example: Example) -> EncodedExample:
    """Return the example as if every word were one token, with special tokens around sentences."""
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
