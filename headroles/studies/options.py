"""Options that several studies take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.errors import UsageError
from headroles.options import Option, Options, split_names
from headroles.roles import SCORES
from headroles.wording import shortened

_HEAD = re.compile(r"(\d{1,6})-(\d{1,6})")
POPULATIONS = CORPUS, _ = ("corpus", "text")


def read_head(named: str) -> tuple[int, int]:
    """Read layer and head from their name, as in ``4-0``. Raises UsageError for another name.

    >>> read_head("4-0")
    (4, 0)
    """
    found = _HEAD.fullmatch(named.strip())
    if found is None:
        raise UsageError(f"the head is {shortened(named)!r}; it must be layer-head, as in 3-11")
    return int(found[1]), int(found[2])


def usual(name: str) -> str:
    """Return the thresholds or margins of all scores, for people."""
    return ", ".join(f"{getattr(score, name):g} ({score.name})" for score in SCORES.values())


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions(Options):
    """Options of the thresholds of means."""

    title: ClassVar[str] = "Tests"

    threshold: Annotated[
        float | None,
        Option(
            f"Mean score to exceed; left out: {usual('threshold')}.",
            more="3 is the published one, three times as much attention as uniform. Contrasts are "
            "always compared with 0.",
            words="the threshold",
        ),
    ] = None
    offset_margin: Annotated[
        float,
        Option(
            "Share of hits that a head needs beyond the best fixed offset.",
            more="For first choices between words (score hit), unless a threshold is given; "
            "0.1 is the published one (Voita et al. 2019).",
            words="the margin beyond offsets",
            least=0,
        ),
    ] = 0.1


@dataclass(frozen=True, kw_only=True)
class ImportOptions(Options):
    """Options of imports that reading results needs."""

    title: ClassVar[str] = "Roles"

    roles: Annotated[
        Sequence[str] | None,
        Option(
            "Roles of users that may be imported again, as MODULE:FUNCTION.",
            more="Reading results imports no code unless it is named here.",
            convert=split_names,
            recorded=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ImportOptions):
    """Options of the sentences and weights of a page."""

    model: Annotated[
        str | None,
        Option(
            "Model that was scored, for weights beside sentences; if left out, the folder that "
            "was scored, if it is still there.",
            recorded=False,
        ),
    ] = None
