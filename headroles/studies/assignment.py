"""HeadScores -> RoleTable: which heads have which roles, by hypothesis test."""

from __future__ import annotations

from headroles.options import takes
from headroles.scoring import HeadScores
from headroles.studies.heads import (
    HeadColumns,
    hypotheses_of,
    scores_of,
)
from headroles.studies.offsets import rival_of
from headroles.studies.options import AssignOptions
from headroles.studies.role_table import RoleTable
from headroles.studies.role_tests import refuse_nothing, table_of, tests_asked


@takes(AssignOptions)
def assign_roles(scores: HeadScores, options: AssignOptions) -> RoleTable:
    """Test for every head and role whether its mean score lies above the threshold.

    The unit is the example, or the document that it comes from. Two one-sided tests are made:
    of H0: mean <= threshold, and of H0: mean >= threshold. Each direction is corrected for the
    number of tests by itself. The answer is ``yes`` if the mean is shown to be above (adjusted
    p <= alpha), ``no`` if it is shown to be below, ``undecided`` if the data show neither: not to
    have shown a role is not to have shown that there is none. A role goes to the heads with
    ``yes``. "Yes" and "no" keep ``alpha`` each. With ``fdr_bh``, ``fdr_by`` and ``bonferroni`` the
    wrong answers of both kinds together keep it too, unless means lie exactly at the threshold;
    with ``holm``, ``hochberg`` and ``max_t`` the chance of any wrong answer is up to 2 * ``alpha``.

    With few examples or clusters of right-skewed scores, as most are, wrong "no" are more frequent
    than ``alpha`` says and wrong "yes" less: of t-tests, sign flips and max-T alike, and a little
    less so of ``bootstrap_t``.

    First choices (``score="hit"``) of arcs have to beat a rule: always look at the word at the best
    fixed offset, up to 5 words away. The offset is chosen on one half of the documents for the
    other, and the share of hits of the rule is taken from that of the head example by example, so
    that the errors of both count. ``threshold`` is then the mean of the rule and ``offset_margin``,
    and ``sd``, interval and effect size are those of the difference. A ``threshold`` asked for is
    that of all roles, and replaces the rule.

    ``untestable`` are roles with fewer than two examples, or clusters. Where scores do not vary,
    but for rounding, betting decides, or nothing. Neither enters the correction. Contrasts
    (``...:beyond_offset``) are tested against 0. ``block:evenness`` is no role: its mean is the
    column ``evenness`` of ``block``. A role that no example has (``block`` without pairs) is left
    out; the record names it.

    Args:
        scores: from `score_heads`.
        options: keyword arguments, described below.

    Raises:
        UsageError: an option outside its range, or options or scores that do not go together.
    """
    scores = scores_of(scores)
    asked = tests_asked(scores, options)
    columns = HeadColumns.of(scores)
    refuse_nothing(columns)
    hypotheses = hypotheses_of(
        scores, columns, asked, options, ddof=0 if options.is_published else 1
    )
    rivals = _describe_rivals(scores, columns, options)
    return table_of(scores, columns, hypotheses, options, asked, rivals)


def _describe_rivals(
    scores: HeadScores, columns: HeadColumns, options: AssignOptions
) -> dict[str, tuple[int, int]]:
    """The offsets that roles were compared with, if any were, as `RoleTable.rivals` has them."""
    if scores.offset_shares is None or options.threshold is not None:
        return {}
    rivals = {role: rival_of(scores, role) for role in columns.ids}
    return {role: rival.offsets for role, rival in rivals.items() if rival is not None}
