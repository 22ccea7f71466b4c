"""Most heads can go one by one."""

from __future__ import annotations

from headroles.studies.claims.claim import TASK, Claim, Finding
from headroles.studies.claims.means import DIFFERENCES, most_within
from headroles.studies.claims.measured import Measured

SHARE = 0.9


def test(measured: Measured) -> Finding:
    """Test whether 90 % of the heads can go one by one with changes below the margin."""
    margin = measured.options.probability_margin
    falls = measured.tasks[0].one_by_one
    return most_within(falls, margin, SHARE, DIFFERENCES, alpha=measured.alpha)


CLAIM = Claim(
    id="many-can-go",
    source="Michel et al. 2019",
    statement="Of most heads (90 %) each can be removed by itself at no cost.",
    published="0.92 (88 of 96 heads, BLEU not significantly changed)",
    needs=TASK,
    effect="share of heads without which the mean probability of the right answer changes by less "
    "than the margin",
    rule="Random: examples. Null: fewer than 90 % of the heads change it by less than the margin, "
    "by partial conjunction. Contradicted if without more than 10 % it falls by more.",
    test=test,
)
