"""What became of a role, and what can be said of a difference: answers from several tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from headroles.testing import NO, UNTESTABLE, YES

STATUSES = ("kept", "gained", "lost", "absent", "undecided", "untestable")
CHANGES = {
    "changed": "changed",
    "trivial": "trivial",
    "equivalent": "equivalent",
    "open": "undecided",
}
"""Columns of counts by what is known of differences; roles have a column undecided already."""
CERTIFIED = "certified_changes"
"""Column of counts: how many of the changes, trivial ones included, are certified."""


def role_status(before: ArrayLike, after: ArrayLike) -> NDArray[np.str_]:
    """What became of each role (tests,), from the answers before and after.

    ``"kept"`` (yes, yes), ``"gained"`` (no, yes), ``"lost"`` (yes, no) and ``"absent"`` (no, no)
    rest on two shown answers. A role that is undecided at one end is ``"undecided"``: that it
    could not be shown again is no evidence that it is gone. ``"untestable"`` goes before.

    Two answers stand behind each status, so with a family-wise correction, of p-values that hold
    (those of betting do on skewed scores, those of t do not), the chance that any role is wrongly
    called lost is at most 2 alpha, and the same for gained. A false discovery rate is that of a
    whole role table: among the few roles that were lost it may be higher.

    >>> role_status(["yes", "yes", "no"], ["no", "undecided", "yes"]).tolist()
    ['lost', 'undecided', 'gained']
    """
    before, after = np.asarray(before), np.asarray(after)
    untestable = (before == UNTESTABLE) | (after == UNTESTABLE)
    had, has = before == YES, after == YES
    lacked, lacks = before == NO, after == NO
    cases = (untestable, had & has, lacked & has, had & lacks, lacked & lacks)
    answers = ("untestable", "kept", "gained", "lost", "absent")
    return np.select(cases, answers, default="undecided")


def describe_change(
    changed: NDArray[np.bool_], equivalent: NDArray[np.bool_], testable: NDArray[np.bool_]
) -> NDArray[np.str_]:
    """What is known of each difference (tests,), from the tests of change and of equivalence.

    ``"changed"``: it is not 0, and not shown to be smaller than the margin. ``"equivalent"``: it is
    smaller than the margin. ``"trivial"``: both, a difference that is there and too small to
    matter, as many examples will show. ``"undecided"``: neither was shown.

    >>> yes, no = [True, True, False, False], [True, False, True, False]
    >>> describe_change(np.array(yes), np.array(no), np.ones(4, dtype=bool)).tolist()
    ['trivial', 'changed', 'equivalent', 'undecided']
    """
    cases = (~testable, changed & equivalent, changed, equivalent)
    answers = ("untestable", "trivial", "changed", "equivalent")
    return np.select(cases, answers, default="undecided")


def is_certified(frame: pd.DataFrame) -> pd.Series[bool]:
    """Which rows of a table of shifts are changes, however small, that are certified too."""
    return frame["changed"] & frame["certified"].isin(("changed", "trivial"))
