"""A claim of a paper, the finding of its test, and the reason why it cannot be tested."""

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
"""Inputs that claims need beside the model."""


class NotTestable(HeadRolesError):
    """A claim that cannot be tested with the input; the message is the reason."""


@dataclass(frozen=True)
class Finding:
    """Result of the test of a claim.

    ``effect`` is in the unit of the claim; ``low`` and ``high`` end its interval (or are NaN).
    ``shown`` and ``contradicted`` are one p-value each: of the claim, and of its opposite. ``n``
    is the number of random units, and ``unit`` their name.
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
    """A statement of a paper about a model, and its test.

    Args:
        id: its name in tables and in ``--claims``.
        source: the paper, and its section if known.
        statement: the claim in a sentence.
        published: the published figure, in the unit of ``effect``.
        needs: one of ``NEEDS``.
        effect: the measured quantity, with its unit.
        rule: the random units, the null hypothesis, and the finding that contradicts the claim.
        test: returns a `Finding`, or raises `NotTestable` with the reason.
    """

    id: str
    source: str
    statement: str
    published: str
    needs: str
    effect: str
    rule: str
    test: Callable[[Measured], Finding]


def claim(
    *, source: str, statement: str, published: str, needs: str, effect: str, rule: str
) -> Callable[[Callable[[Measured], Finding]], Claim]:
    """Make the decorated test a published `Claim`; its id is the name of the function."""

    def claim_of(test: Callable[[Measured], Finding]) -> Claim:
        name = test.__name__.replace("_", "-")
        return Claim(name, source, statement, published, needs, effect, rule, test)

    return claim_of


def reversed_finding(found: Finding) -> Finding:
    """Return the finding of the opposite claim, with the same effect."""
    return replace(found, shown=found.contradicted, contradicted=found.shown)


NOTHING = PValues(*(np.full(1, np.nan) for _ in range(5)))
"""The p-value of a claim that was not tested."""
