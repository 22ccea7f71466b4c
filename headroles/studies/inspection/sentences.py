"""Sentences behind a score, chosen by it, and read again from the treebank that was scored."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from headroles.arrays import Float32Array, IntArray
from headroles.corpus import GIVEN, NEWDOC, Example, make_examples, prepared, read_conllu
from headroles.encoding import SPECIAL, EncodedExample
from headroles.errors import CorpusError, UsageError
from headroles.options import fields_of
from headroles.roles import PaddedBatch, Role, RoleOptions, choose_roles, is_own, marked_words
from headroles.scoring.scores import HeadScores
from headroles.studies.inspection.options import MEDIAN, SMALLEST, ExampleOptions
from headroles.wording import head_name, listed, printable, shortened, split_at


def read_again(
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
    own = {one.name for one in fields_of(RoleOptions)} - {"relations"}  # those found, below
    options = RoleOptions(**{name: value for name, value in recorded.items() if name in own})
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
        found = {example.id: example for example in made if example.id in ids}
        relations = tuple(recorded.get("relations") or ())
        roles: tuple[Role, ...] = ()
        if names != ():
            options = replace(options, roles=names)
            roles = choose_roles(options, relations, scores.score, ready)
    return found, {role.id: role for role in roles}


def _without_own(recorded: Sequence[str] | None, imported: Sequence[str]) -> tuple[str, ...] | None:
    """Return the recorded names of roles; of users' roles only those ``imported``."""
    own = [name for name in recorded or () if is_own(name)]
    for name in imported:
        if name not in own:
            known = f"; name one of: {listed(own)}" if own else ""
            raise UsageError(f"{name!r} is no user's role that was scored{known}")
    if recorded is None:
        return None
    return tuple(name for name in recorded if name not in own or name in imported)


def not_imported(role: str, flag: str = "`roles`") -> str:
    """Return the reason why a user's role has no sentences, with advice."""
    name = printable(":".join(role.split(":")[:2]))
    return (
        f"{name} is a Python function, and reading results imports none by itself; if you trust "
        f"it, name it with {flag}"
    )


def _where_they_were(files: Sequence[str]) -> list[Path]:
    """Return the files of a treebank. Raises CorpusError for one that is not there."""
    found = list(map(Path, files))
    for file in found:
        if not file.exists():
            here = " in this folder" * (not file.is_absolute())
            raise CorpusError(
                f"{file}, which was scored, does not exist{here}; name it with `corpus`"
            )
    return found


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
    def parts(self) -> tuple[tuple[bool, str], ...]:
        """The sentence in parts, whose words are in the sieve or not."""
        return split_at(self.words, self.keys)

    @property
    def text(self) -> str:
        """The sentence with the words of the sieve in brackets."""
        keys = set(self.keys)
        return " ".join(f"[{word}]" if k in keys else word for k, word in enumerate(self.words))

    @property
    def arrows(self) -> str:
        """The pairs as text."""
        return ", ".join(f"{self.words[one]} -> {self.words[other]}" for one, other in self.pairs)


@dataclass(frozen=True, eq=False)
class FoundAgain:
    """Examples by head, role and options, read again from the treebank.

    ``chosen`` are, for each of ``asked``, places among all examples of ``scores``; ``found`` are
    the examples by id, ``roles`` the roles with their sieves by id.
    """

    scores: HeadScores
    asked: Sequence[tuple[tuple[int, int], str, ExampleOptions]]
    chosen: list[IntArray]
    found: dict[str, Example]
    roles: dict[str, Role]

    @cached_property
    def marked(self) -> list[tuple[MarkedExample, ...]]:
        """The words of the examples for each of ``asked``, with those of its sieve marked."""
        return [
            tuple(
                _mark(self.found[self.scores.ids[row]], sieve_among(self.roles, role))
                for row in rows
            )
            for (_, role, _), rows in zip(self.asked, self.chosen, strict=True)
        ]


def find_again(
    scores: HeadScores, asked: Sequence[tuple[tuple[int, int], str, ExampleOptions]]
) -> FoundAgain:
    """Read the examples of several heads and roles again, in one pass over the treebank."""
    chosen = [choose_examples(scores, *one) for one in asked]
    asked = [((int(layer), int(head)), role, more) for (layer, head), role, more in asked]
    ids = {scores.ids[row] for rows in chosen for row in rows}
    first = asked[0][2] if asked else ExampleOptions()
    found, roles = read_again(scores, ids, first.corpus, first.roles or ())
    return FoundAgain(scores, asked, chosen, found, roles)


def sieve_among(roles: dict[str, Role], role: str) -> Role:
    """Return the role with its sieve. Raises UsageError for a role that was not made again."""
    if role in roles:
        return roles[role]
    if is_own(role):
        raise UsageError(not_imported(role))
    raise UsageError(f"the recorded options make no role {role!r}; score again")


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
        found = [k for k, name in enumerate(scores.ids) if name == options.example]
        if not found or np.isnan(values[found[0]]):
            raise UsageError(
                f"head {head[0]}-{head[1]} has no score of {role} in an example "
                f"{shortened(options.example)!r}; name one from the column example of: headroles "
                "examples"
            )
        return np.array(found)
    there = np.flatnonzero(~np.isnan(values))
    return there[np.argsort(_distances(values[there], options.which), kind="stable")][: options.n]


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
