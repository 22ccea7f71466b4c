"""What became of a role, and what is known of a difference: all cases."""

from __future__ import annotations

import numpy as np
import pytest

from headroles.studies.comparison.answers import STATUSES, describe_change, role_status
from headroles.testing.answers import ANSWERS

STATUS_OF = {
    ("yes", "yes"): "kept",
    ("no", "yes"): "gained",
    ("yes", "no"): "lost",
    ("no", "no"): "absent",
    # Not shown again is not shown to be gone, and not shown before is not shown to be new.
    ("yes", "undecided"): "undecided",
    ("undecided", "yes"): "undecided",
    ("no", "undecided"): "undecided",
    ("undecided", "no"): "undecided",
    ("undecided", "undecided"): "undecided",
}


@pytest.mark.parametrize("before", ANSWERS)
@pytest.mark.parametrize("after", ANSWERS)
def test_status(before: str, after: str) -> None:
    expected = STATUS_OF.get((before, after), "untestable")
    assert role_status([before], [after]).tolist() == [expected]
    assert expected in STATUSES
    assert (expected == "untestable") == ("untestable" in (before, after))


@pytest.mark.parametrize(
    ("changed", "equivalent", "testable", "expected"),
    [
        (True, False, True, "changed"),
        (False, True, True, "equivalent"),
        (False, False, True, "undecided"),
        (False, False, False, "untestable"),
    ],
)
def test_change(changed: bool, equivalent: bool, testable: bool, expected: str) -> None:
    cases = (np.array([case]) for case in (changed, equivalent, testable))
    assert describe_change(*cases).tolist() == [expected]
