"""ClaimTable: the verdict on each claim, with the effect beside the published figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from headroles.formats import to_records
from headroles.record import CorpusRecord
from headroles.results.columns import NUMBER, TEXT, Column, one_of
from headroles.results.result import Result
from headroles.results.shown import SEE_FULL, Grid, Shown, Warned, in_digits
from headroles.storage import plain
from headroles.testing.recorded import RecordedCorrection

SHOWN, CONTRADICTED, UNDECIDED, NOT_TESTABLE = VERDICTS = (
    "shown",
    "contradicted",
    "undecided",
    "not testable",
)
_FEW_WORDS = 38
"""Characters for the description of an effect."""
_REASONS = ", why some cannot be tested"
P_VALUES = ("p_shown", "p_shown_adjusted", "p_contradicted", "p_contradicted_adjusted")
COLUMNS = (
    "claim",
    "verdict",
    "effect",
    "ci_low",
    "ci_high",
    "published",
    "effect_is",
    "n",
    "unit",
    *P_VALUES,
    "statement",
    "source",
    "rule",
    "note",
)


class ClaimTests(RecordedCorrection, frozen=True, kw_only=True):
    """Record of the model and the tests."""

    model: str
    warnings: list[str]


class ClaimsRecord(CorpusRecord, frozen=True, kw_only=True):
    """Record of a corpus, a model and tests of claims."""

    claims: ClaimTests


@dataclass(frozen=True, repr=False, eq=False)
class ClaimTable(Result):
    """Claims of papers, tested on a model.

    ``frame`` has the columns of ``COLUMNS``, a row for each claim. ``verdict`` is ``shown`` if the
    corrected p-value of the claim is at most alpha, ``contradicted`` if that of its opposite is,
    ``not testable`` (with the reason in ``note``) if the input does not suffice, else
    ``undecided``. ``effect`` is what ``effect_is`` describes; ``ci_low`` and ``ci_high`` end its
    interval of level 1 - alpha (NaN if it has none). ``n`` is the number of random units in the
    test, and ``unit`` their name. ``p_shown`` and ``p_contradicted`` are the p-values of the claim
    and of its opposite; ``..._adjusted`` are corrected over the claims, each direction separately.
    """

    record: ClaimsRecord

    kind: ClassVar[str] = "claims"
    stem: ClassVar[str] = "claims"
    remedy: ClassVar[str] = "test some with: headroles claims MODEL CORPUS --out DIR"
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    own: ClassVar[Mapping[str, Column]] = {
        "verdict": one_of(*VERDICTS),
        **dict.fromkeys(("claim", "published", "effect_is", "unit"), Column(TEXT)),
        **dict.fromkeys(("statement", "source", "rule"), Column(TEXT)),
        "effect": Column(NUMBER, gaps=True),
        **dict.fromkeys(P_VALUES, Column(NUMBER, 0, 1, gaps=True)),
    }
    views: ClassVar[tuple[str, ...]] = ("long", "verdicts", "reasons")

    def verdicts(self) -> pd.DataFrame:
        """Return claim, verdict, effect with interval, and the published figure."""
        names = ["claim", "verdict", "effect", "ci_low", "ci_high", "published", "effect_is"]
        return self.frame[names]

    def reasons(self) -> pd.DataFrame:
        """Return the claims that could not be tested, with the reasons."""
        rows = self.frame[self.frame["verdict"] == NOT_TESTABLE]
        return rows[["claim", "note"]].reset_index(drop=True)

    def shown(self) -> Iterator[Shown]:
        """Count the verdicts, and tabulate the effects; details have the published figures."""
        asked = self.record.claims
        counts = self.frame["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        said = ", ".join(f"{counts[one]} {one}" for one in VERDICTS[1:-1])
        lacking = f"; {counts[NOT_TESTABLE]} cannot be tested with the given input"
        yield (
            f"Of {len(self.frame)} claims, {counts[SHOWN]} {'is' if counts[SHOWN] == 1 else 'are'} "
            f"shown, {said}{lacking * bool(counts[NOT_TESTABLE])}."
        )
        yield f"Model: {asked.model}."
        yield f"Tests: alpha {asked.alpha:g}, {asked.correction} over the claims."
        tested = self.frame[self.frame["verdict"] != NOT_TESTABLE]
        tested = tested.sort_values(
            "verdict", key=lambda own: own.map(VERDICTS.index), kind="stable"
        )
        shown = tested.assign(
            here=[in_digits(one, 3) for one in tested["effect"]],
            interval=[
                "" if np.isnan(low) else f"{low:.3f} to {high:.3f}"
                for low, high in zip(tested["ci_low"], tested["ci_high"], strict=True)
            ],
            number=[shorten(one, _FEW_WORDS, placeholder=" ...") for one in tested["effect_is"]],
        )
        cells = {name: f"{{{name}}}" for name in ("claim", "verdict", "here", "interval")}
        yield Grid.of(shown, {**cells, "the number is": "{number}"}, ["verdict", "the number is"])
        reasons = _REASONS * bool(counts[NOT_TESTABLE])
        yield f"What each claim says, its published figure{reasons}: {SEE_FULL}"
        yield from map(Warned, asked.warnings)

    def details(self) -> Iterator[Shown]:
        """Describe each claim, its effect, and its test or the reason why it was not tested."""
        for row in self.frame.itertuples():
            yield f"{row.claim}: {row.statement} ({row.source})"
            yield f"  here: {row.effect_is}. {row.rule} Published: {row.published}."
            if row.verdict == NOT_TESTABLE:
                yield f"  Not testable: {row.note}."
            else:
                yield (
                    f"  p {row.p_shown:.2g} for the claim, {row.p_contradicted:.2g} against it "
                    f"(corrected {row.p_shown_adjusted:.2g}, {row.p_contradicted_adjusted:.2g}); "
                    f"{row.n} {row.unit}" + f"; {row.note}" * bool(row.note)
                )

    def facts(self) -> dict[str, Any]:
        """Return the table for scripts."""
        return {"claims": plain(self.record.claims), "rows": to_records(self.frame)}
