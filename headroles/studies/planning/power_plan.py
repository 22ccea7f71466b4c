"""PowerPlan: the number of examples that decides each head and role."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from headroles.formats import to_records
from headroles.record import ScoresRecord
from headroles.results.columns import Column, one_of
from headroles.results.result import Result
from headroles.results.shown import SEE_FULL, Grid, Shown
from headroles.roles import in_words, is_contrast
from headroles.storage import Count, plain
from headroles.testing.answers import NO, YES
from headroles.testing.options import describe_correction
from headroles.testing.recorded import RecordedLevel

SHARES = {"half": 0.5, "nine_tenths": 0.9, "all": 1.0}
"""Shares of a role's heads in a summary."""
_SHOWN = 8
_BEYOND_REACH = 1_000_000
"""Numbers of examples above this are shown as out of reach."""


class Planned(RecordedLevel, frozen=True, kw_only=True):
    """Options of a plan, and the size of the pilot."""

    power: float
    clustered_by: str
    n_clusters: Count
    effective_clusters: float
    examples: Count


class PlanRecord(ScoresRecord, frozen=True, kw_only=True):
    """Record of a plan: the pilot and the options."""

    plan: Planned


@dataclass(frozen=True, repr=False, eq=False)
class PowerPlan(Result):
    """Numbers of examples that decide every head and role, for means and deviations of a pilot.

    ``frame`` has the columns of ``columns``, ordered by role, layer and head. ``n``, ``mean`` and
    ``effect_size`` are from the pilot. ``direction`` is ``"yes"`` for heads above the threshold and
    ``"no"`` for heads below; both answers need examples. ``examples_with_score`` is the number of
    examples with a score for the role at which the test has the wanted power, and
    ``corpus_examples`` the number of all examples among which are so many with a score, in
    documents like the pilot's if documents are clusters. Infinity is for a mean at the threshold,
    NaN for heads that cannot be planned for; ``note`` gives the reason.

    With ``plan`` as `plan_examples` returns it:

    >>> plan.summary().loc["local", ["above", "below", "half"]].to_dict()
    {'above': 1.0, 'below': 1.0, 'half': 3.0}
    """

    record: PlanRecord

    kind: ClassVar[str] = "plan"
    stem: ClassVar[str] = "plan"
    remedy: ClassVar[str] = "make one with: headroles power DIR --out PLAN"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "layer head role n n_clusters mean effect_size threshold direction alpha_per_test "
            "design_effect examples_with_score corpus_examples note"
        ).split()
    )
    own: ClassVar[Mapping[str, Column]] = {"direction": one_of(YES, NO, "")}
    views: ClassVar[tuple[str, ...]] = ("long", "summary")

    @property
    def plan(self) -> Planned:
        """The options of the plan, and the size of the pilot."""
        return self.record.plan

    def summary(self) -> pd.DataFrame:
        """Return for each role the number of heads to decide, and the size of the corpus.

        Columns: ``share``, of the examples that have a score for the role; ``above``, ``below``
        and ``unplanned``, numbers of heads; ``half``, ``nine_tenths`` and ``all``, the examples
        of a corpus large enough for that share of the planned heads.
        """
        rows = {
            role: self._summary_of(part) for role, part in self.frame.groupby("role", sort=False)
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("role")

    def _summary_of(self, rows: pd.DataFrame) -> dict[str, float]:
        return {
            "share": rows["n"].max() / self.plan.examples,
            "above": int((rows["direction"] == YES).sum()),
            "below": int((rows["direction"] == NO).sum()),
            "unplanned": int(rows["corpus_examples"].isna().sum()),
            **{name: _enough_for(share, rows) for name, share in SHARES.items()},
        }

    def shown(self) -> Iterator[Shown]:
        """Give the examples that decide nine tenths of heads and roles, and tabulate roles."""
        needed, asked = _enough_for(0.9, self.frame), self.plan
        if np.isnan(needed):
            yield "No head can be planned for with this pilot."
        else:
            size = f"{needed:,.0f} examples" if np.isfinite(needed) else "no number of examples"
            yield (
                f"Nine tenths of all heads and roles are decided by {size} ({asked.power:g} power "
                f"each, level {asked.alpha:g}); the pilot had {asked.examples}."
            )
        summary = self.summary()
        own = [role for role in summary.index if not is_contrast(str(role))] or list(summary.index)
        order = summary.loc[own, "nine_tenths"].sort_values(ascending=False).index[:_SHOWN]
        rows = tuple(
            (in_words(str(role)), *(_whole(summary.loc[role, name]) for name in SHARES))
            for role in order
        )
        yield Grid(("Examples to decide of", "half the heads", "nine tenths", "all"), rows)
        if len(own) > _SHOWN:
            yield f"{len(own) - _SHOWN} roles take fewer: {SEE_FULL}"
        if len(own) < len(summary):
            yield f"Contrasts with distance are planned too: {SEE_FULL}"
        yield "The means of the pilot are uncertain: take these numbers as lower bounds."

    def details(self) -> Iterator[Shown]:
        """Tabulate the examples that decide the heads of each role."""
        asked, summary = self.plan, self.summary()
        documents = f", {asked.n_clusters} documents" * (asked.clustered_by != "none")
        yield (
            f"examples of a corpus that decide half, nine tenths and all of a role's heads\n"
            f"with power {asked.power:g} each (alpha {asked.alpha:g}, "
            f"{describe_correction(asked.correction, asked.family)}); "
            f"the pilot had {asked.examples} examples{documents}\n"
        )
        rows = []
        for role, row in zip(summary.index, summary.to_dict(orient="records"), strict=True):
            rows.append((str(role), f"{row.pop('share'):.0%}", *map(_whole, row.values())))
        names = (str(name).replace("_", " ") for name in summary.columns)
        yield Grid(("role", *names), tuple(rows))
        yield (
            "share: of the examples that have a score for the role; above and below: heads to be "
            "shown above or below the threshold; unplanned: heads that cannot be planned for."
        )
        if (summary["all"] > _BEYOND_REACH).any():
            yield (
                f"A role that takes more than {_BEYOND_REACH:,} examples for all of its heads has "
                "a head whose mean is next to the threshold; undecided is an answer for it too."
            )

    def facts(self) -> dict[str, Any]:
        """Return the result for scripts; null for infinite and missing numbers of examples."""
        return {"plan": plain(self.plan), "roles": to_records(self.summary().reset_index())}


def _enough_for(share: float, rows: pd.DataFrame) -> float:
    """Return the examples that decide a share of the planned heads; NaN if none is planned."""
    needed = np.sort(rows["corpus_examples"].dropna().to_numpy(dtype=np.float64))
    return float(needed[int(np.ceil(share * len(needed))) - 1]) if len(needed) else np.nan


def _whole(number: float) -> str:
    """Format a count; "-" if missing."""
    if math.isnan(number):
        return "-"
    return f">{_BEYOND_REACH:,}" if number > _BEYOND_REACH else f"{int(number):,}"
