"""Model and corpus -> ClaimTable: tests of claims of papers on this model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from headroles.corpus import Corpus
from headroles.errors import HeadRolesError
from headroles.models.loading import Attending
from headroles.options import takes
from headroles.studies.claims.claim import NOTHING, Claim, Finding
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.options import ClaimOptions
from headroles.studies.claims.registry import choose_claims
from headroles.studies.claims.table import (
    COLUMNS,
    CONTRADICTED,
    NOT_TESTABLE,
    SHOWN,
    ClaimsRecord,
    ClaimTable,
    ClaimTests,
)
from headroles.testing.answers import answers
from headroles.testing.evidence import corrected_together
from headroles.testing.options import CorrectionOptions


@takes(ClaimOptions)
def test_claims(
    model: Attending,
    corpus: Corpus,
    after: Attending | None = None,  # noqa: PT028
    task: str | Path | Sequence[str | Path] = (),  # noqa: PT028
    *,
    options: ClaimOptions,
) -> ClaimTable:
    """Test claims of papers about attention heads on a model.

    Each claim has a hypothesis and its opposite. The tests show the claim, contradict it, or leave
    it undecided; if the input does not suffice for a test, the table says why. Measurements that
    several claims need are made once. p-values are corrected over the claims, separately for the
    claims and for their opposites.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode. For tasks it needs the
            head that it was trained with.
        corpus: as `score_heads` takes it. Claims about syntax need trees.
        after: a fine-tuned copy of the model, for claims about fine-tuning.
        task: examples as `find_importance` takes them; two files for the claim about two tasks.
        options: keyword arguments, described below.

    Raises:
        UsageError: there is no claim of this name.
        CorpusError, ModelError, TokenizerError: as `score_heads`.
    """
    tasks = (task,) if isinstance(task, str | Path) else tuple(task)
    return claims_of(Measured(model, corpus, options, after, tasks))


test_claims.__test__ = False  # type: ignore[attr-defined]  # no test case, despite its name


def claims_of(measured: Measured) -> ClaimTable:
    """Test claims as `test_claims` does, on measurements that claims ask for when tested."""
    options = measured.options
    chosen = choose_claims(options.claims)
    scored = measured.scored.scores.record
    frame = claim_frame(chosen, [find(one, measured) for one in chosen], options)
    asked = ClaimTests(
        model=scored.model.model or "",
        alpha=options.alpha,
        correction=options.correction,
        warnings=[],
    )
    record = ClaimsRecord.extending(scored, options=options.record(), claims=asked)
    return ClaimTable(frame, record)


def find(claim: Claim, measured: Measured) -> Finding | str:
    """Return the finding of a claim, or the reason why it cannot be tested."""
    try:
        return claim.test(measured)
    except HeadRolesError as error:
        return str(error)


def claim_frame(
    claims: Sequence[Claim], findings: Sequence[Finding | str], options: CorrectionOptions
) -> pd.DataFrame:
    """Make the table of these claims, corrected together."""
    found = [one if isinstance(one, Finding) else None for one in findings]
    above, below = (
        corrected_together([getattr(one, side) if one else NOTHING for one in found], options)
        for side in ("shown", "contradicted")
    )
    yes, no = above.shows(options.alpha), below.shows(options.alpha)
    verdicts = answers(yes | no, yes * 1.0 - no, (SHOWN, CONTRADICTED))
    untested = np.isnan(above.single) & np.isnan(below.single)
    frame = pd.DataFrame(
        {
            "claim": [one.id for one in claims],
            "verdict": np.where(untested, NOT_TESTABLE, verdicts),
            **{
                name: [getattr(one, field) if one else np.nan for one in found]
                for name, field in (("effect", "effect"), ("ci_low", "low"), ("ci_high", "high"))
            },
            "published": [one.published for one in claims],
            "effect_is": [one.effect for one in claims],
            "n": [one.n if one else 0 for one in found],
            "unit": [one.unit if one else "" for one in found],
            "p_shown": above.single,
            "p_shown_adjusted": above.adjusted,
            "p_contradicted": below.single,
            "p_contradicted_adjusted": below.adjusted,
            "statement": [one.statement for one in claims],
            "source": [one.source for one in claims],
            "rule": [one.rule for one in claims],
            "note": [one.note if isinstance(one, Finding) else one for one in findings],
        }
    )
    return frame[list(COLUMNS)]
