"""Scores that stopped early: valid uses, refused ones, and cautions.

The scores themselves decided where scoring stopped, so the number of examples depends on them:

* betting is valid, however often one looks at the scores; so are role tables by betting, certified
  answers and replication;
* sentences of examples claim nothing;
* intervals assume a fixed number of examples: those of t come with a warning, others are refused;
* comparisons, plans, tests other than betting, the published preset, and thresholds that are found
  in the scores are refused.

A run that reached the end of its corpus has the same scores as without stopping, and no
restriction; tests are still by betting, as the order is random.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from headroles.errors import UsageError
from headroles.record import ScoresRecord
from headroles.testing.catalogue import BETTING, BY_T, T
from headroles.testing.options import TestOptions, UnitOptions

if TYPE_CHECKING:
    from headroles.scoring.scores import HeadScores


DOCUMENT: Final = "document"
EXAMPLE: Final = "example"
"""Units of a random order."""


def refuse_stopped(scores: HeadScores, use: str) -> None:
    """Raise UsageError if scoring stopped early; ``use`` names the use and its verb."""
    stopped = scores.record.stopped
    if stopped is not None and scores.record.stopped_early:
        raise UsageError(
            f"scoring stopped after {stopped.sentences} of {stopped.of_sentences} sentences, "
            f"when enough was decided, and {use} a number of examples that does not depend on the "
            "scores; score the whole corpus, without until (--until)"
        )


def warn_of_stopped(record: ScoresRecord) -> list[str]:
    """Warn of intervals by t if scoring stopped early."""
    if not record.stopped_early:
        return []
    return [
        "scoring stopped when enough was decided, and intervals assume a fixed "
        "number of examples: they are rough"
    ]


def stopped_tests(scores: HeadScores, asked: TestOptions) -> TestOptions:
    """Return the tests asked for; by betting if scores came in random order.

    Raises UsageError for tests or intervals that are not valid if scoring stopped early.
    """
    if scores.record.stopped is None:
        return asked
    if asked.test not in (T, BETTING):
        raise UsageError(
            "scoring stopped when enough was decided, which only tests by betting allow; "
            "leave out test (--test), or score the whole corpus"
        )
    if asked.interval != BY_T:
        refuse_stopped(scores, f"intervals {asked.interval} take")
    return replace(asked, test=BETTING)


def drawn_units(scores: HeadScores, options: UnitOptions) -> str | None:
    """Return the unit of the random order, ``DOCUMENT`` or ``EXAMPLE``; None if there was none.

    Raises UsageError for ``options`` that take other units as independent.
    """
    stopped = scores.record.stopped
    drawn = None if stopped is None else stopped.unit
    if drawn and options.clusters == {DOCUMENT: "none", EXAMPLE: "document"}[drawn]:
        raise UsageError(
            f"scoring stopped early in a random order of {drawn}s, and tests must take these as "
            "independent; leave clusters (--clusters) out"
        )
    return drawn
