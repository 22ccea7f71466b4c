"""HeadScores of a pilot -> PowerPlan: the number of examples that decides each role."""

from __future__ import annotations

import numpy as np
import pandas as pd

from headroles.arrays import FloatArray, IntArray
from headroles.inference.power import design_effect, smallest_n
from headroles.options import takes
from headroles.scoring.scores import HeadScores
from headroles.studies.heads import (
    HeadColumns,
    describe_clusters,
    general_threshold,
    hypotheses_of,
    note_removed,
    scores_of,
)
from headroles.studies.planning.options import PlanOptions
from headroles.studies.planning.power_plan import Planned, PlanRecord, PowerPlan
from headroles.studies.stopped import refuse_stopped
from headroles.testing.answers import NO, UNDECIDED, YES, answers
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.notes import find_notes

_AT_THRESHOLD = "the pilot mean is at the threshold: no number of examples decides it"


@takes(PlanOptions)
def plan_examples(scores: HeadScores, options: PlanOptions) -> PowerPlan:
    """Plan how many examples the t-tests of `assign_roles` need to decide each head and role.

    Every head is assumed to have its mean and deviation in the pilot: heads above the threshold
    are to be shown to be above, heads below to be below. The level of a single test follows from
    the correction, over m tests of the family in the pilot:

    * ``none``: alpha; ``bonferroni``: alpha / m, which also serves the step-wise ``holm``,
      ``hochberg`` and ``max_t``: they never need more examples;
    * ``fdr_bh``: alpha * (expected rejections) / m. If the k-th easiest head of a direction has the
      wanted power, at least power * k rejections are expected; with the examples of a harder head,
      whose level is higher, the easier heads are decided too. The number of rejections stands for
      its expectation: for few heads the power is approximate. The same for ``fdr_tsbh``, whose
      second stage needs no more examples, and divided by 1 + 1/2 + ... + 1/m for ``fdr_by``.

    With clusters, new documents are assumed to be like the pilot's: of as many examples, and as
    much alike within. A larger corpus has more documents, not longer ones.

    The power is of t-tests of normal scores; for skewed scores, few documents or documents of very
    different sizes it is inexact. The means of a pilot are themselves uncertain, and heads chosen
    for their large means have smaller means in a new corpus: take the answer as a lower bound.

    Args:
        scores: from `score_heads`, of a corpus like the planned one.
        options: keyword arguments, described below.

    Raises:
        UsageError: an option outside its range, examples that cannot be clustered by
            ``clusters``, or scores that stopped early.

    With scores of 20 examples for a pilot, made by hand:

    >>> import numpy as np
    >>> from headroles import HeadScores, plan_examples
    >>> values = np.random.default_rng(0).normal([[3.5], [1.0]], 1.0, size=(20, 1, 2, 1))
    >>> plan = plan_examples(HeadScores.by_hand(values, ["local"]))
    >>> plan.frame[["layer", "head", "direction", "examples_with_score"]]
       layer  head direction  examples_with_score
    0      0     0       yes                108.0
    1      0     1        no                  4.0
    """
    scores = scores_of(scores)
    refuse_stopped(scores, "a plan takes")
    columns = HeadColumns.of(scores)
    hypotheses = hypotheses_of(scores, columns, options, options)
    asked = Planned(
        **{**options.record(), "threshold": general_threshold(scores.score, options.threshold)},
        **describe_clusters(hypotheses),
        examples=scores.n_examples,
    )
    frame = _frame(columns, hypotheses, options)
    note_removed(frame, scores.record)
    return PowerPlan(frame, PlanRecord.extending(scores.record, plan=asked))


def _frame(columns: HeadColumns, pilot: Hypotheses, options: PlanOptions) -> pd.DataFrame:
    moments, ok = pilot.moments, pilot.is_tested
    side = answers(ok, pilot.direction)
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
    return frame[list(PowerPlan.columns)]


def _levels(options: PlanOptions, n_tests: int, n_heads: int) -> FloatArray:
    """Return the level of the test of each of ``n_heads`` heads of a family, the easiest first."""
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
    """Fill in level and examples of ``tests``, the tests of one direction in a family."""
    rows = frame.loc[tests]
    # Easy tests are easy at any level: the order at the strictest level serves for all.
    order = np.argsort(_examples(rows, levels[:1], power, n_examples)[1], kind="stable")
    rows = rows.iloc[order]
    with_score, in_corpus = _examples(rows, levels, power, n_examples)
    # With the corpus of a harder head, at its higher level, the easier heads are decided too.
    least = np.minimum.accumulate(in_corpus[::-1])[::-1]
    last = np.searchsorted(least, least, side="right") - 1
    levels = levels[last]
    # Heads up to the last count as rejections at its level: the corpus must decide all of them.
    in_corpus = np.maximum.accumulate(_examples(rows, levels, power, n_examples)[1])[last]
    in_corpus_with_score = np.ceil(in_corpus * rows["n"].to_numpy() / n_examples)
    frame.loc[rows.index, "alpha_per_test"] = levels
    frame.loc[rows.index, "examples_with_score"] = np.minimum(with_score, in_corpus_with_score)
    frame.loc[rows.index, "corpus_examples"] = in_corpus


def _examples(
    rows: pd.DataFrame, levels: FloatArray, power: float, n_examples: int
) -> tuple[FloatArray, FloatArray]:
    """Return examples with a score, and in the corpus, that decide each test at its level."""
    n = rows["n"].to_numpy()
    with_score = smallest_n(
        rows["effect_size"].abs(),
        levels,
        power,
        design_effect=rows["design_effect"],
        cluster_size=n / (rows["df"] + 1),
    )
    return with_score, np.ceil(with_score * n_examples / n)
