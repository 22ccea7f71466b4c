"""Scores that stopped early: valid uses, refused ones, and cautions.

Where to stop was decided by looking at the scores. Of what is made from them:

* betting, and so role tables by betting, certified answers and replication, may be looked at as
  often as one likes, and is valid;
* sentences of examples claim nothing;
* intervals take the number of examples as given: those of t come with a caution, others are
  refused;
* comparisons and plans, tests by anything but betting, the published preset, and thresholds that
  are found in the scores themselves are refused.

A run that came to the end of its corpus has the scores that it would have had without stopping, and
no restriction; betting stays, as the order is still random.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

from headroles.errors import UsageError
from headroles.record import ScoresRecord
from headroles.testing.catalogue import BETTING, BY_T, T
from headroles.testing.options import TestOptions, UnitOptions


class Provided(Protocol):
    """Scores, or what stands for them, with what they were computed from."""

    @property
    def record(self) -> ScoresRecord:
        """The record of the run."""


DOCUMENT: Final = "document"
EXAMPLE: Final = "example"
"""Units of a random order."""


def refuse_stopped(scores: Provided, what: str) -> None:
    """Raise UsageError for ``what`` is to be done with scores that stopped early."""
    stopped = scores.record.stopped
    if stopped is not None and scores.record.stopped_early:
        raise UsageError(
            f"scoring stopped after {stopped.sentences} of {stopped.of_sentences} sentences, "
            f"when enough was decided, and {what} a number of examples that does not depend on the "
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


def stopped_tests(scores: Provided, asked: TestOptions) -> TestOptions:
    """Return the tests asked for; by betting if scores came in random order.

    Raises UsageError for what is not valid of scores that stopped early.
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


def drawn_units(scores: Provided, options: UnitOptions) -> str | None:
    """Return the unit of the random order, ``DOCUMENT`` or ``EXAMPLE``; None if there was none.

    Raises UsageError for ``options`` that take something else as independent.
    """
    stopped = scores.record.stopped
    drawn = None if stopped is None else stopped.unit
    if drawn and options.clusters == {DOCUMENT: "none", EXAMPLE: "document"}[drawn]:
        raise UsageError(
            f"scoring stopped early in a random order of {drawn}s, and tests must take these as "
            "independent; leave clusters (--clusters) out"
        )
    return drawn
