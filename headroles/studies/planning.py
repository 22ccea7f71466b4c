"""HeadScores of a pilot -> PowerPlan: how many examples it takes to decide each role."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import pandas as pd

from headroles.formats import to_records
from headroles.inference import NO, UNDECIDED, YES, design_effect, smallest_n
from headroles.options import takes
from headroles.results import Grid, Result, Shown
from headroles.scoring import HeadScores
from headroles.studies.forms import PlanForm
from headroles.studies.heads import (
    FloatArray,
    HeadColumns,
    IntArray,
    describe_clusters,
    general_threshold,
    hypotheses_of,
    scores_of,
)
from headroles.studies.options import PlanOptions
from headroles.studies.stopped import refuse_stopped
from headroles.testing import Hypotheses, describe_correction, find_notes, side_of

COLUMNS = (
    "layer",
    "head",
    "role",
    "n",
    "n_clusters",
    "mean",
    "effect_size",
    "threshold",
    "direction",
    "alpha_per_test",
    "design_effect",
    "examples_with_score",
    "corpus_examples",
    "note",
)
SHARES = {"half": 0.5, "nine_tenths": 0.9, "all": 1.0}
"""The shares of a role's heads that a summary tells the examples for."""
_AT_THRESHOLD = "the pilot mean is at the threshold: no number of examples decides it"


@dataclass(frozen=True, repr=False, eq=False)
class PowerPlan(Result):
    """How many examples it takes to decide every head and role, if all is as in the pilot.

    ``frame`` has the columns of ``COLUMNS``, ordered by role, layer and head. ``n``, ``mean`` and
    ``effect_size`` are those of the pilot. ``direction`` is ``"yes"`` for heads above the
    threshold and ``"no"`` for those below; to be shown, both need examples.
    ``examples_with_score`` is the number of examples with a score for the role at which the test
    has the power asked for, and ``corpus_examples`` the number of all examples that have so
    many, in documents like those of the pilot where they are clusters. Infinity is for a mean at
    the threshold, NaN for what cannot be planned; ``note`` says why.
    """

    kind: ClassVar[str] = "plan"
    form: ClassVar[type[msgspec.Struct]] = PlanForm
    stem: ClassVar[str] = "plan"
    cure: ClassVar[str] = "make one with: headroles power DIR --out PLAN"
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    views: ClassVar[tuple[str, ...]] = ("long", "summary")

    @property
    def plan(self) -> dict[str, Any]:
        """What was asked for, and the size of the pilot."""
        plan: dict[str, Any] = self.provenance["plan"]
        return plan

    def summary(self) -> pd.DataFrame:
        """For each role how many heads there are to decide, and the corpus that it takes.

        Columns: ``share``, of the examples that have a score for the role; ``above``, ``below``
        and ``unplanned``, numbers of heads; ``half``, ``nine_tenths`` and ``all``, the examples
        of a corpus large enough for that share of the planned heads.
        """
        rows = {
            role: self._summary_of(part) for role, part in self.frame.groupby("role", sort=False)
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("role")

    def _summary_of(self, rows: pd.DataFrame) -> dict[str, float]:
        needed = np.sort(rows["corpus_examples"].dropna().to_numpy())
        return {
            "share": rows["n"].max() / self.plan["examples"],
            "above": int((rows["direction"] == YES).sum()),
            "below": int((rows["direction"] == NO).sum()),
            "unplanned": len(rows) - len(needed),
            **{
                name: needed[int(np.ceil(share * len(needed))) - 1] if len(needed) else np.nan
                for name, share in SHARES.items()
            },
        }

    def shown(self) -> Iterator[Shown]:
        """How many examples it takes to decide the heads of each role."""
        asked, summary = self.plan, self.summary()
        documents = f", {asked['n_clusters']} documents" * (asked["clustered_by"] != "none")
        yield (
            f"examples of a corpus that decide half, nine tenths and all of a role's heads\n"
            f"with power {asked['power']:g} each (alpha {asked['alpha']:g}, "
            f"{describe_correction(asked['correction'], asked['family'])}); "
            f"the pilot had {asked['examples']} examples{documents}\n"
        )
        rows = []
        for role, row in zip(summary.index, summary.to_dict(orient="records"), strict=True):
            rows.append((str(role), f"{row.pop('share'):.0%}", *map(_whole, row.values())))
        names = (str(name).replace("_", " ") for name in summary.columns)
        yield Grid(("role", *names), tuple(rows))
        yield "the pilot's means are uncertain: take these numbers as lower bounds"

    def facts(self) -> dict[str, Any]:
        """The same for scripts; null where no number of examples is known to do."""
        return {"plan": self.plan, "roles": to_records(self.summary().reset_index())}


@takes(PlanOptions)
def plan_examples(scores: HeadScores, options: PlanOptions) -> PowerPlan:
    """Number of examples at which the t-tests of `assign_roles` would decide each head and role.

    Every head is taken to have the mean and the deviation of the pilot: a head above the
    threshold is to be shown to be above, one below to be below. The level of a single test
    follows from the correction, over m tests of the family in the pilot:

    * ``none``: alpha; ``bonferroni``: alpha / m, which is also taken for the step-wise ``holm``,
      ``hochberg`` and ``max_t``: they need fewer examples, never more;
    * ``fdr_bh``: alpha * (expected rejections) / m. With so many examples that the k-th easiest
      head of a direction has the power asked for, at least power * k rejections are expected;
      with the examples of a harder head, whose level is higher, the easier ones are decided too.
      That takes the number of rejections for its expectation: of few heads the power is roughly
      what was asked for. The same for ``fdr_tsbh``, whose second stage needs no more, and divided
      by 1 + 1/2 + ... + 1/m for ``fdr_by``.

    With clusters, the documents to come are taken to be like those of the pilot: as many examples
    each, and as much alike within. A larger corpus is one of more documents, not of longer ones.

    The power is that of t-tests of normal scores; for skewed ones, of few documents or of
    documents of very different sizes it is off. The means of a pilot are themselves uncertain,
    and heads that were picked for their large means will have smaller ones: take the answer as a
    lower bound.

    Args:
        scores: from `score_heads`, of a corpus like the one to be planned.
        options: keyword arguments, described below.

    Raises:
        UsageError: an option outside its range, examples that cannot be clustered as asked, or
            scores that stopped early.
    """
    return plan(scores_of(scores), options)


def plan(scores: HeadScores, options: PlanOptions) -> PowerPlan:
    """`plan_examples` for callers that have their options together."""
    refuse_stopped(scores, "a plan takes")
    columns = HeadColumns.of(scores)
    hypotheses = hypotheses_of(scores, columns, options, options)
    asked = {
        **options.record(),
        "threshold": general_threshold(scores, options.threshold),
        **describe_clusters(hypotheses),
        "examples": scores.n_examples,
    }
    frame = _frame(columns, hypotheses, options)
    return PowerPlan(frame, {**scores.provenance, "plan": asked})


def _frame(columns: HeadColumns, pilot: Hypotheses, options: PlanOptions) -> pd.DataFrame:
    moments, ok = pilot.moments, pilot.is_tested
    side = side_of(pilot)
    direction = np.where(ok & (side != UNDECIDED), side, "")
    own = np.where(ok & (side == UNDECIDED), _AT_THRESHOLD, "").astype(object)
    frame = pd.DataFrame(
        {
            **columns.labels,
            "n": moments.n,
            "n_clusters": moments.n_clusters,
            "df": moments.df,
            "mean": moments.mean,
            "effect_size": pilot.effect_size,
            "threshold": pilot.threshold,
            "direction": direction.astype(object),
            "alpha_per_test": np.nan,
            "design_effect": design_effect(moments),
            "examples_with_score": np.where(ok, np.inf, np.nan),
            "corpus_examples": np.where(ok, np.inf, np.nan),
            "note": find_notes(pilot, own),
        }
    )
    for family in pilot.columns_by_family:
        for wanted in (YES, NO):
            tests = family[direction[family] == wanted]
            if len(tests):
                levels = _levels(options, int(ok[family].sum()), len(tests))
                _plan(frame, tests, levels, options.power, pilot.sample.n_examples)
    return frame[list(COLUMNS)]


def _levels(options: PlanOptions, n_tests: int, n_heads: int) -> FloatArray:
    """Level of the test of each of ``n_heads`` heads, the easiest first, in a family."""
    if options.correction == "none":
        return np.full(n_heads, options.alpha)
    if not options.correction.startswith("fdr_"):
        return np.full(n_heads, options.alpha / n_tests)
    rejections = np.maximum(1, options.power * np.arange(1, n_heads + 1))
    by_dependence = (1 / np.arange(1, n_tests + 1)).sum() if options.correction == "fdr_by" else 1
    return np.asarray(options.alpha * rejections / (n_tests * by_dependence))


def _plan(
    frame: pd.DataFrame, tests: IntArray, levels: FloatArray, power: float, n_examples: int
) -> None:
    """Fill in level and examples of ``tests``, those of a direction of a family."""
    rows = frame.loc[tests]
    # What is easy is easy at any level: the order at the strictest serves for all.
    order = np.argsort(_examples(rows, levels[:1], power, n_examples)[1], kind="stable")
    rows = rows.iloc[order]
    with_score, in_corpus = _examples(rows, levels, power, n_examples)
    # With the corpus of a harder head, at its higher level, the easier ones are decided too.
    least = np.minimum.accumulate(in_corpus[::-1])[::-1]
    last = np.searchsorted(least, least, side="right") - 1
    levels = levels[last]
    # Those up to the last count as rejections at its level: the corpus must do for all of them.
    in_corpus = np.maximum.accumulate(_examples(rows, levels, power, n_examples)[1])[last]
    in_corpus_with_score = np.ceil(in_corpus * rows["n"].to_numpy() / n_examples)
    frame.loc[rows.index, "alpha_per_test"] = levels
    frame.loc[rows.index, "examples_with_score"] = np.minimum(with_score, in_corpus_with_score)
    frame.loc[rows.index, "corpus_examples"] = in_corpus


def _examples(
    rows: pd.DataFrame, levels: FloatArray, power: float, n_examples: int
) -> tuple[FloatArray, FloatArray]:
    """Examples with a score, and in the corpus, that decide each test at its level."""
    n = rows["n"].to_numpy()
    with_score = smallest_n(
        rows["effect_size"].abs(),
        levels,
        power,
        design_effect=rows["design_effect"],
        cluster_size=n / (rows["df"] + 1),
    )
    return with_score, np.ceil(with_score * n_examples / n)


def _whole(number: float) -> str:
    """A count for people; infinity stays, and - is what there is not."""
    if math.isnan(number):
        return "-"
    return "inf" if math.isinf(number) else f"{int(number):,}"
