"""Syntactic heads: attention from a word to its governor, or to its dependents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from headroles.arrays import IntArray
from headroles.corpus import ROOT, Sentence, fold_subtype
from headroles.encoding import EncodedExample
from headroles.errors import UsageError
from headroles.options import PresetOptions
from headroles.role_names import contrast_of
from headroles.roles.arc_sources import BASIC, arcs_of
from headroles.roles.batch import PaddedBatch, placed_sentences
from headroles.roles.contrasts import BeyondOffset
from headroles.roles.first_choices import ATTENDING
from headroles.roles.links import BACK, FORTH, Links, LinkTable
from headroles.roles.relations import RelationOptions
from headroles.roles.role import ARCS, Context, Role

_WHOLE_ARCS = "arcs between words that have pieces, in examples that are not too long"


@dataclass(frozen=True, kw_only=True)
class SyntacticOptions(RelationOptions, PresetOptions):
    """Options that choose the syntactic roles."""

    beyond_offset: bool = True
    """Contrast syntactic roles with other words at the same offset."""
    columns: bool = False
    """With `score='hit'`, also test whether the governor is the word that attends most to its
    dependent.

    Adds the roles ...:from_governor: attention is read by columns, between words, as one of the
    two readings of Clark et al. (2019). The roles ...:to_governor read it by rows.
    """

    def check(self) -> None:
        """Turn contrasts off for the published preset, which has none."""
        super().check()
        if self.is_published:
            object.__setattr__(self, "beyond_offset", False)


def roles(options: SyntacticOptions, context: Context) -> Iterator[Role]:
    """Yield roles pooled over all relations and by relation, in both directions; then contrasts.

    First choices have no contrasts, since they are compared with the best fixed offset. Arcs from
    other sources than the tree have none either, since the tree does not say which words such arcs
    do not join.
    """
    if not context.relations:
        return
    if options.columns and not context.score.of_first_choice:
        raise UsageError("`columns` need first choices; pass `score='hit'`, or omit them")
    arcs = Arcs(context.relations, options.keep_subtypes, options.arcs)
    syntactic = [*_pooled(arcs), *_by_relation(arcs)]
    yield from syntactic
    if options.columns:
        forth = (role for role in syntactic if _links(role).direction == FORTH)
        yield from map(from_governor, forth)
    if options.beyond_offset and options.arcs == BASIC and not context.score.of_first_choice:
        yield from map(beyond_offset, syntactic)


def beyond_offset(role: Role) -> Role:
    """Return the contrast of a role with other words at the same offset."""
    links = _links(role)
    return replace(
        role,
        id=contrast_of(role.id),
        words=f"{role.words}, more than other words at the same offset",
        baseline=0.0,
        needs="other words at the offset of an arc",
        sieve=BeyondOffset(links.find, links.labels, links.direction),
    )


def from_governor(role: Role) -> Role:
    """Return a role to governors read by columns: the word that attends most to the dependent."""
    return replace(
        role,
        id=f"{role.id.removesuffix(':to_governor')}:from_governor",
        words=f"{role.words}, as the word that attends most to it",
        sieve=replace(_links(role), among=ATTENDING),
    )


def _links(role: Role) -> Links:
    assert isinstance(role.sieve, Links)
    return role.sieve


@dataclass(frozen=True)
class Arcs:
    """Finder of the arcs of some ``relations``: links from the dependent to its governor.

    Labels are places in ``relations``. Subtypes are ignored unless ``keep_subtypes``.
    """

    relations: tuple[str, ...]
    keep_subtypes: bool = False
    source: str = BASIC

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.relations)

    @property
    def meaning(self) -> dict[str, Any]:
        """Facts that distinguish these arcs from others with the same names."""
        own = {} if self.source == BASIC else {"arcs": self.source}
        return {"keep_subtypes": self.keep_subtypes, **own}

    def __call__(self, batch: PaddedBatch) -> LinkTable:
        """Find the arcs of all examples, word by word."""
        found = LinkTable.from_examples(batch, self._arcs, self.n_labels)
        return replace(found, in_tree=self.source == BASIC)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {relation: number for number, relation in enumerate(self.relations)}

    def _arcs(self, example: EncodedExample) -> IntArray:
        """Return dependent, governor and label (arcs, 3) of each arc."""
        if self.source != BASIC:
            return self._arcs_elsewhere(example)
        labels = np.array([self._number(label) for label in example.relations])
        dependents = np.flatnonzero((labels >= 0) & (example.governors != ROOT))
        return np.column_stack([dependents, example.governors[dependents], labels[dependents]])

    def _arcs_elsewhere(self, example: EncodedExample) -> IntArray:
        found = [
            (before + dependent, before + governor, label)
            for before, sentence in placed_sentences(example)
            for dependent, governor, label in self.of_sentence(sentence)
        ]
        return np.array(found, dtype=np.int64).reshape(-1, 3)

    def of_sentence(self, sentence: Sentence) -> list[tuple[int, int, int]]:
        """Return dependent, governor and label of each arc of a sentence."""
        numbered = [(arc, self._number(arc.label)) for arc in arcs_of(self.source, sentence)]
        return [(arc.dependent, arc.governor, label) for arc, label in numbered if label >= 0]

    def joined_in(self, sentence: Sentence) -> list[tuple[int, int]]:
        """Return the words that an arc of any relation joins."""
        return [(arc.dependent, arc.governor) for arc in arcs_of(self.source, sentence)]

    def _number(self, relation: str) -> int:
        name = relation if self.keep_subtypes else fold_subtype(relation)
        return self._numbers.get(name, -1)


def _pooled(arcs: Arcs) -> Iterator[Role]:
    listed = ", ".join(arcs.relations)
    meaning = {"relations": sorted(arcs.relations), **arcs.meaning}
    every = frozenset(range(len(arcs.relations)))
    for role, words, direction in (
        ("syntactic:any:to_governor", f"the governor of a word ({listed})", FORTH),
        ("syntactic:any:to_dependent", f"the dependents of a word ({listed})", BACK),
    ):
        links = Links(arcs, every, direction)
        yield Role(role, words, ARCS, meaning=meaning, needs=_WHOLE_ARCS, sieve=links)


def _by_relation(arcs: Arcs) -> Iterator[Role]:
    for number, relation in enumerate(arcs.relations):
        for name, direction in (("to_governor", FORTH), ("to_dependent", BACK)):
            role = f"syntactic:{relation}:{name}"
            words = f"{relation}: its governor" if direction == FORTH else f"its {relation}"
            links = Links(arcs, frozenset([number]), direction)
            yield Role(role, words, ARCS, meaning=arcs.meaning, needs=_WHOLE_ARCS, sieve=links)
