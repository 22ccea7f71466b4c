"""What a role is: a job that a head may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from headroles.record import RecordedRole
from headroles.role_names import ARCS as ARCS
from headroles.role_names import TOKENS as TOKENS
from headroles.role_names import Kind, contrast_of, kind_of
from headroles.roles.score import Score
from headroles.storage import plain

if TYPE_CHECKING:
    from headroles.corpus import Sentence
    from headroles.roles.sieve import Sieve

SENTENCE_PAIRS = "pairs of sentences of one document that follow one another"


class OnlyFor(NamedTuple):
    """Mark of an option that has no effect without the roles of a group."""

    group: str


@dataclass(frozen=True)
class Context:
    """Setting that roles are made for: the scored relations, a score, and the corpus.

    ``sentences`` can be iterated any number of times. In a model that ``is_causal`` words see
    earlier ones alone; attention that ``is_across`` is from targets to their sources.
    """

    relations: tuple[str, ...]
    score: Score
    sentences: Iterable[Sentence] = ()
    is_causal: bool = False
    is_across: bool = False


@dataclass(frozen=True)
class Role:
    """A job that a head may have: for each query, a sieve of keys to look at.

    Args:
        id: the name in tables, such as ``syntactic:nsubj:to_governor``.
        unit: the unit of counts behind scores, ``TOKENS`` or ``ARCS``.
        thresholds: by score, the mean that a head has to exceed, if it is not the score's own.
        baseline: the value that a mean is compared with instead of any threshold; None if there is
            none.
        meaning: further facts that define the role, such as the width of a window. Roles with one
            id but different meanings are different roles.
        parent: the id of the role that this contrast or control belongs to.
        contrast: what a contrast excludes, such as ``beyond_offset``.
        control: where the pairs of a control come from, such as ``other_trees``.
        measure_of: the id of the role that this measure describes; a measure is never tested.
        is_described: whether it is a quantity that describes heads: estimated, never tested.
        words: what a head with the role does, for people; the id if there are none.
        relation: the relation of a role of arcs, ``any`` for all relations together.
        names: other names by which people mean the role, such as its relation.
        function: the ``MODULE:FUNCTION`` that makes a role of a user.
        in_window: how the role changes in a layer that sees only a window, as the end of a
            sentence.
        needs: the property that an example needs to have a score, in words:
            ``SENTENCE_PAIRS``, or another that some corpora lack.
        sieve: how the sieve is found; None for a role that was read from a file.

    >>> Role("syntactic:nsubj:to_governor", ARCS).is_tested
    True
    """

    id: str
    unit: str = TOKENS
    thresholds: Mapping[str, float] = field(default_factory=dict, hash=False)
    baseline: float | None = None
    meaning: Mapping[str, Any] = field(default_factory=dict, hash=False)
    parent: str = ""
    contrast: str = ""
    control: str = ""
    measure_of: str = ""
    is_described: bool = False
    words: str = field(default="", compare=False)
    relation: str = field(default="", compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)
    function: str = field(default="", compare=False)
    in_window: str = field(default="", compare=False)
    needs: str = field(default="", compare=False)
    sieve: Sieve | None = field(default=None, compare=False, repr=False)

    @property
    def names_with_it(self) -> tuple[str, ...]:
        """Ids that stand for this role where roles are named: its own, and that of its role."""
        return tuple(filter(None, (self.id, self.parent, self.measure_of)))

    @property
    def is_tested(self) -> bool:
        """Whether this is a role, and no measure, contrast or control of one, and no quantity."""
        return not (self.parent or self.measure_of or self.is_described)

    @property
    def kind(self) -> Kind:
        """Whether the role is of tokens, of pairs of words, or of arcs, which have a relation."""
        return kind_of(self.unit, self.relation)

    def without_control(self) -> Role:
        """Return the role, or the contrast, in whose place a control can be tested."""
        name = contrast_of(self.parent, self.contrast)
        parent = self.parent if self.contrast else ""
        return replace(self, id=name, parent=parent, control="")

    def threshold(self, score: Score, asked: float | None = None) -> float:
        """Return the number that a head's mean is compared with; ``asked`` is the user's."""
        if self.baseline is not None:
            return self.baseline
        return self.thresholds.get(score.name, score.threshold) if asked is None else asked

    def to_record(self) -> RecordedRole:
        """Return the role as a record has it, without its sieve."""
        values = {name: getattr(self, name) for name in RecordedRole.__struct_fields__}
        return RecordedRole(**plain({**values, "words": self.words or self.id}))

    @classmethod
    def from_record(cls, record: RecordedRole) -> Role:
        """Rebuild a role from `to_record`, without its sieve."""
        return cls(**{**structs.asdict(record), "names": tuple(record.names)})
