"""HeadScores before and after -> RoleShifts: what changed in which heads, and is it to be believed.

Needs the scores only, no model.
"""

from headroles.comparison.answers import CHANGES, STATUSES, describe_change, role_status
from headroles.comparison.compare import compare_roles
from headroles.comparison.joining import ON_MISMATCH
from headroles.comparison.result import VIEWS, RoleShifts
from headroles.comparison.shifts import COLUMNS, DEFAULT_MARGINS, PAIRED_TESTS

__all__ = [
    "CHANGES",
    "COLUMNS",
    "DEFAULT_MARGINS",
    "ON_MISMATCH",
    "PAIRED_TESTS",
    "STATUSES",
    "VIEWS",
    "RoleShifts",
    "compare_roles",
    "describe_change",
    "role_status",
]
