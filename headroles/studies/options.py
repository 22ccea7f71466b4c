"""Options that several studies take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from headroles.errors import UsageError
from headroles.options import CIRCUMSTANCE, Convert, Flag, Options
from headroles.roles.own import names_of_roles
from headroles.roles.score import Score
from headroles.wording import shortened

_HEAD = re.compile(r"(\d{1,6})-(\d{1,6})")


def read_head(named: str) -> tuple[int, int]:
    """Read layer and head from their name, as in ``4-0``. Raises UsageError for another name.

    >>> read_head("4-0")
    (4, 0)
    """
    match = _HEAD.fullmatch(named.strip())
    if match is None:
        raise UsageError(f"the head is {shortened(named)!r}; it must be layer-head, as in 3-11")
    return int(match[1]), int(match[2])


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions(Options):
    """Options of the thresholds of means."""

    title: ClassVar[str] = "Tests"

    threshold: float | None = None
    """Mean score to exceed; left out: 3 (bias), 0.1 (excess), 0.5 (hit).

    3 is the published one, three times as much attention as uniform.
    """
    offset_margin: Annotated[float, Meta(ge=0)] = 0.1
    """Share of hits that a head needs beyond the best fixed offset.

    For first choices between words (score hit), unless a threshold is given; 0.1 is the published
    one (Voita et al. 2019).
    """
    distance_margin: Annotated[float | None, Meta(ge=0)] = None
    """What roles of pairs of words need beyond distance; left out: 0.5 (bias), 0.025 (excess).

    A head has such a role if, beside its mean, the mean of its contrast is shown to exceed this
    margin: the attention that it gives to these pairs less that to other words at the same
    distance.
    """

    def margin_of(self, score: Score) -> float:
        """Return the margin that contrasts of this score have to exceed."""
        return score.margin if self.distance_margin is None else self.distance_margin

    def facts_about(self, score: Score) -> dict[str, Any]:
        """Return facts of a record: the score, and the threshold of roles without a special one."""
        threshold = score.threshold if self.threshold is None else self.threshold
        return {"score": score.name, "threshold": float(threshold)}


@dataclass(frozen=True, kw_only=True)
class ImportOptions(Options):
    """Options of imports that reading results needs."""

    title: ClassVar[str] = "Roles"

    roles: Annotated[Sequence[str] | None, Convert(names_of_roles), CIRCUMSTANCE] = None
    """Roles of users that may be imported again, as MODULE:FUNCTION.

    Reading results imports no code unless it is named here. In Python, functions themselves.
    """


def _words(given: Any) -> tuple[str, ...]:
    return tuple(given.split() if isinstance(given, str) else map(str, given))


@dataclass(frozen=True, kw_only=True)
class TypedOptions(Options):
    """Options of a sentence of the user's own."""

    title: ClassVar[str] = "Output"

    text: str | None = None
    """A sentence of yours, parsed by the pipeline of the run."""
    tokens: Annotated[Sequence[str] | None, Convert(_words)] = None
    """The words of a sentence of yours, with blanks between them; they have no tree."""
    parser: str | None = None
    """spaCy pipeline that parses `text`; left out: that of the run."""

    def check(self) -> None:
        """Reject two sentences, and a pipeline without text."""
        super().check()
        if self.text is not None and self.tokens is not None:
            raise UsageError("`text` names the one to show; leave `tokens` out")
        if self.parser is not None and self.text is None:
            raise UsageError("`parser` has no effect without `text`; omit it")

    @property
    def is_given(self) -> bool:
        """Whether there is a sentence of the user's own."""
        return self.text is not None or self.tokens is not None


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ImportOptions, TypedOptions):
    """Options of the sentences and weights of a page."""

    model: Annotated[str | None, CIRCUMSTANCE] = None
    """Model that was scored, for weights beside sentences; if left out, the folder that was scored,
    if it is still there."""


@dataclass(frozen=True, kw_only=True)
class FigureOptions(Options):
    """Options of a figure."""

    title: ClassVar[str] = "Output"

    kind: str | None = None
    """roles, heads, role, shared, head (of roles); heads, changes, trajectory (of
    comparisons); worth, curves, tasks, layers, tokens (of others); left out: the usual one."""
    role: str | None = None
    """Role, by id, words or relation; if left out, the one with the clearest head."""
    head: str | None = None
    """Head of the kind head, as LAYER-HEAD."""
    checkpoint: str | None = None
    """Checkpoint of a comparison."""
    estimator: str | None = None
    """Estimator of importance."""
    measure: str | None = None
    """Measure of curves and tasks."""
    heading: Annotated[str | None, Flag("--title")] = None
    """Title above the figure."""
    width: Annotated[float | None, Meta(gt=0)] = None
    """Width in inches; 3.3 is a usual column of a paper."""
