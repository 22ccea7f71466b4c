"""Most heads can go one by one."""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.claim import TASK, Claim, Finding
from headroles.studies.claims.kinds import SINGLE
from headroles.studies.claims.measured import Measured
from headroles.testing.evidence import find_equivalence, find_p_values, in_at_least
from headroles.testing.hypotheses import Hypotheses, size_of

SHARE = 0.9


def test(measured: Measured) -> Finding:
    """Is the loss without each of at least 90 % of the heads as it is, within the margin?"""
    rises = measured.tasks[0].one_by_one
    margin = measured.options.loss_margin
    tested = Hypotheses.of(rises, 0.0, size=size_of(rises) + margin)
    near = find_equivalence(tested, SINGLE, margin)
    far = find_p_values(tested.against(margin), SINGLE, "greater")
    n = tested.n_tests
    most = int(np.ceil(SHARE * n))
    share = float((np.abs(tested.moments.mean) < margin).mean())
    return Finding(
        share,
        np.nan,
        np.nan,
        in_at_least(near, most),
        in_at_least(far, n - most + 1),
        n,
        "heads",
    )


CLAIM = Claim(
    id="many-can-go",
    source="Michel et al. 2019",
    statement="Of most heads (90 %) each can be removed by itself at no cost.",
    published="0.92 (88 of 96 heads, BLEU not significantly changed)",
    needs=TASK,
    effect="share of heads without which the mean loss changes by less than the margin",
    rule="Random: examples. Null: fewer than 90 % of the heads change the loss by less than the "
    "margin, by partial conjunction. Contradicted if more than 10 % raise it by more.",
    test=test,
)
