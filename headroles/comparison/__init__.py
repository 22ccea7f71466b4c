"""HeadScores before and after -> RoleShifts: what changed in which heads, and is it to be believed.

Needs the scores only, no model.
"""

from headroles.comparison.answers import CHANGES, STATUSES, describe_change, role_status
from headroles.comparison.compare import compare_roles, name_sides
from headroles.comparison.joining import ON_MISMATCH
from headroles.comparison.result import VIEWS, RoleShifts, check_comparison_folder
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
    "check_comparison_folder",
    "compare_roles",
    "describe_change",
    "name_sides",
    "role_status",
]
