"""A role as a value: what is known of it wherever it goes, in scores, tables and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headroles.corpus import Sentence
    from headroles.roles.scores import Score
    from headroles.roles.sieve import Sieve

TOKENS, ARCS = "tokens", "arcs"
PAIRS = "pairs of sentences of one document that follow one another"


@dataclass(frozen=True)
class Context:
    """What roles are made for: the relations whose arcs are scored, a score, and the corpus.

    ``sentences`` may be gone through any number of times.
    """

    relations: tuple[str, ...]
    score: Score
    sentences: Iterable[Sentence] = ()


@dataclass(frozen=True)
class Role:
    """What a head may do: a sieve of keys for each query that it speaks of.

    Args:
        id: what tables call it, such as ``syntactic:nsubj:to_governor``.
        words: what a head with it looks at, for people.
        unit: what counts behind a score are counts of, ``TOKENS`` or ``ARCS``.
        thresholds: by score, the mean that a head has to exceed, where it is not that of the score.
        baseline: what a mean is compared with whatever threshold is asked for; None if the
            threshold decides.
        meaning: what else makes the role what it is, such as the width of a window. Two roles of
            one id with other meanings are two roles.
        measure_of: the id of a role that this is a measure of: described beside it, never tested.
        is_described: whether it is a quantity that describes heads: estimated, never tested.
        in_window: what it does to the role that a layer sees only a window, as the end of a
            sentence for people.
        needs: what it takes for an example to have a score, for people: ``PAIRS``, or what else
            some corpora lack.
        sieve: how its sieve is found; None for a role that was read from a file.
    """

    id: str
    words: str = field(default="", compare=False)
    unit: str = TOKENS
    thresholds: Mapping[str, float] = field(default_factory=dict, hash=False)
    baseline: float | None = None
    meaning: Mapping[str, Any] = field(default_factory=dict, hash=False)
    measure_of: str = ""
    is_described: bool = False
    in_window: str = field(default="", compare=False)
    needs: str = field(default="", compare=False)
    sieve: Sieve | None = field(default=None, compare=False, repr=False)

    @property
    def is_tested(self) -> bool:
        """Whether it is a role, and neither a measure of one nor a quantity."""
        return not self.measure_of and not self.is_described

    def threshold(self, score: Score, asked: float | None = None) -> float:
        """What the mean ``score`` of a head is compared with; ``asked`` is the user's threshold."""
        if self.baseline is not None:
            return self.baseline
        return self.thresholds.get(score.name, score.threshold) if asked is None else asked

    def to_record(self) -> dict[str, Any]:
        """The role as JSON, without its sieve and what it leaves at the default."""
        record = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "sieve"}
        return {
            name: value
            for name, value in record.items()
            if value is not False and value not in ("", None, {})
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Role:
        """The role that `to_record` was given, without its sieve. Raises TypeError for others."""
        return cls(**record)
