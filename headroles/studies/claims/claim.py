"""A claim of a paper, what testing it finds, and why it cannot be tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headroles.errors import HeadRolesError
from headroles.testing.evidence import PValues

if TYPE_CHECKING:
    from headroles.studies.claims.measured import Measured

CORPUS, TREES, SECOND_MODEL, TASK, TWO_TASKS, WEIGHTS = NEEDS = (
    "a corpus",
    "a treebank",
    "a second model",
    "a task",
    "two tasks",
    "weights alone",
)
"""What claims need beside the model."""


class NotTestable(HeadRolesError):
    """A claim that cannot be tested with what was given; the message is the reason."""


@dataclass(frozen=True)
class Finding:
    """What testing a claim gives.

    ``effect`` is in the claim's own unit, ``low`` and ``high`` the ends of its interval, NaN where
    there is none. ``shown`` and ``contradicted`` are one p-value each: of what the claim says, and
    of its opposite. ``n`` is the number of what is random, of which ``unit`` has the name.
    """

    effect: float
    low: float
    high: float
    shown: PValues
    contradicted: PValues
    n: int
    unit: str
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """A statement of a paper about a model, and how it is tested.

    Args:
        id: what tables and ``--claims`` call it.
        source: the paper, and its part where that is known.
        statement: what it says, in a sentence.
        published: the published figure, in the unit of ``effect``.
        needs: one of ``NEEDS``.
        effect: what is measured, with its unit.
        rule: what is random, what the null hypothesis is and what contradicts the claim.
        test: from what was measured to a `Finding`. It raises `NotTestable` with the reason.
    """

    id: str
    source: str
    statement: str
    published: str
    needs: str
    effect: str
    rule: str
    test: Callable[[Measured], Finding]


def reversed_finding(found: Finding) -> Finding:
    """The finding of the opposite claim, with the effect as it is."""
    return replace(found, shown=found.contradicted, contradicted=found.shown)


NOTHING = PValues(*(np.full(1, np.nan) for _ in range(5)))
"""The p-value of what was not tested."""
