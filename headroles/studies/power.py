"""How many examples does it take? Scores of a pilot -> PowerAnalysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import pandas as pd
from msgspec import Meta

from headroles.corpus import BITEXT
from headroles.drawing.style import DARK, THRESHOLD, legend_below, new_axes
from headroles.errors import UsageError
from headroles.inference.power import design_effect, smallest_n
from headroles.options import takes
from headroles.results.columns import Axes as Combinations
from headroles.results.columns import Column, one_of
from headroles.results.consistency import Rule, at_most, on_side
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown
from headroles.scoring.scores import HeadScores
from headroles.studies.evidence import CONTRASTS, DISTANCE, STEPS, RoleHypotheses
from headroles.studies.heads import (
    ScoreLevel,
    ThresholdOptions,
    UnitFacts,
    check_contrasts,
    describe_clusters,
    note_removed,
    scores_of,
    warn_of_doubled,
)
from headroles.testing.evidence import NO, POSITIONAL, UNDECIDED, YES, answers
from headroles.testing.notes import find_notes
from headroles.testing.options import LevelOptions
from headroles.testing.steps import LEAST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headroles.arrays import FloatArray, IntArray
    from headroles.testing.hypotheses import Hypotheses
    from headroles.testing.steps import Leg

HEAD_SHARES = {"half": 0.5, "nine_tenths": 0.9, "all": 1.0}
"""Shares of a role's heads in the summary."""
OUT_OF_REACH = 1_000_000
_AT_THRESHOLD = "the pilot mean is at the threshold: no number of examples decides it"


@dataclass(frozen=True, kw_only=True)
class PowerOptions(LevelOptions, ThresholdOptions):
    """Options of a power analysis: the tests, and their power."""

    power: Annotated[float, Meta(gt=0, lt=1)] = 0.8
    """Probability to decide a head with its mean and deviation in the pilot."""


class PowerFacts(ScoreLevel, UnitFacts):
    """Facts of a power analysis: score and units of the pilot, and the number of its examples."""

    examples: int


@dataclass(frozen=True, repr=False, eq=False)
class PowerAnalysis(Result[PowerOptions, PowerFacts]):
    """Numbers of examples that decide every head and role, for means and deviations of a pilot.

    ``frame`` is ordered by role, layer and head. ``n``, ``mean`` and ``effect_size`` are from the
    pilot. ``direction`` is ``"yes"`` for heads above the threshold and ``"no"`` for heads below;
    both answers need examples. ``examples_with_score`` is the number of examples with a score for
    the role at which the test has the wanted power, and ``corpus_examples`` the number of all
    examples among which are so many with a score, in documents like the pilot's if documents are
    clusters. ``examples_class`` and ``examples_attractors`` are the examples of a corpus that shows
    these steps of evidence too, NaN where the pilot does not go so far. Infinity is for a mean at
    the threshold, NaN for heads that cannot be planned for; ``note`` gives the reason.

    With ``plan`` as `power_analysis` returns it:

    >>> plan.summary().loc["local", ["above", "below", "half"]].to_dict()
    {'above': 1.0, 'below': 1.0, 'half': 3.0}
    """

    kind: ClassVar[str] = "power"
    question: ClassVar[str] = "How many examples does it take?"
    figures: ClassVar[Mapping[str, str]] = {"curves": "draw_power"}
    columns: ClassVar[tuple[str, ...]] = tuple(
        "layer head role n n_clusters mean effect_size threshold direction alpha_per_test "
        "design_effect examples_with_score corpus_examples examples_class examples_attractors "
        "note".split()
    )
    schema: ClassVar[Mapping[str, Column]] = {"direction": one_of(YES, POSITIONAL, NO, "")}
    rules: ClassVar[tuple[Rule, ...]] = (
        on_side("direction", (YES, POSITIONAL), (NO,), of="mean", at="threshold"),
        on_side("direction", (YES,), (NO, POSITIONAL), of="effect_size"),
        at_most("examples_with_score", "corpus_examples"),
    )
    views: ClassVar[tuple[str, ...]] = ("long", "summary")

    def axes(self) -> Combinations:
        """Return roles, layers and heads."""
        return {(name,): [] for name in ("role", "layer", "head")}

    def summary(self) -> pd.DataFrame:
        """Return for each role the heads to decide, and the examples that decide shares of them.

        Columns: ``share``, of the examples that have a score for the role; ``above``, ``below``
        and ``unplanned``, numbers of heads; ``half``, ``nine_tenths`` and ``all``, the examples
        of a corpus large enough for that share of the planned heads.
        """
        rows = {
            role: {
                "share": heads["n"].max() / self.facts["examples"],
                "above": int(heads["direction"].isin([YES, POSITIONAL]).sum()),
                "below": int((heads["direction"] == NO).sum()),
                "unplanned": int(heads["corpus_examples"].isna().sum()),
                **{name: _enough_for(share, heads) for name, share in HEAD_SHARES.items()},
            }
            for role, heads in self.frame.groupby("role", sort=False)
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("role")

    def summarize(self) -> Iterator[Shown]:
        """Give the examples that decide nine tenths of heads and roles, and tabulate roles."""
        needed, pilot = _enough_for(0.9, self.frame), self.facts["examples"]
        size, record = "no number of examples", self.record.sources["pilot"]
        if np.isfinite(needed):
            size = f"{_rounded(needed)} examples"
            if not record.is_by_hand:  # of a corpus like the pilot's
                texts = (record.corpus.sentences, record.corpus.documents)
                sentences, documents = (_rounded(needed / pilot * n) for n in texts)
                size += f", about {sentences} sentences in {documents} documents"
                if record.corpus.format == BITEXT:
                    size = f"{_rounded(needed)} pairs of sentences"
        yield (
            "No head can be planned for with this pilot."
            if np.isnan(needed)
            else f"Nine tenths of all heads and roles are decided by {size} "
            f"({self.options.power:g} power each, level {self.options.alpha:g}); the pilot had "
            f"{pilot}."
        )
        order = self.summary().sort_values("nine_tenths", ascending=False, kind="stable")
        cells = order[[*HEAD_SHARES]].map(_rounded)
        rows = tuple((self.in_words(role), *shares) for role, *shares in cells.itertuples())
        yield Grid(("Examples to decide of", "half the heads", "nine tenths", "all"), rows)
        for step in STEPS[1:]:
            of_step = self.frame[f"examples_{step}"].dropna().to_numpy(dtype=np.float64)
            if len(of_step):
                half = _rounded(float(np.median(of_step)))
                yield (
                    f"Step *{step}*: {half} examples show it for half of the {len(of_step)} heads "
                    "and roles that reach it in the pilot."
                )
        yield "The means of the pilot are uncertain: take these numbers as lower bounds."


@takes(PowerOptions)
def power_analysis(scores: HeadScores, options: PowerOptions) -> PowerAnalysis:
    """Plan how many examples the t-tests of `assign_roles` need to decide each head and role.

    Every head is assumed to have its mean and deviation in the pilot: heads above the threshold
    are to be shown to be above, heads below to be below. The level of a single test follows from
    the correction, over the m tests of the pilot:

    * ``none``: alpha; ``bonferroni``: alpha / m, which also serves the step-wise ``holm``
      and ``hochberg``: they never need more examples;
    * ``fdr_bh``: alpha * (expected rejections) / m. If the k-th easiest head of a direction has the
      wanted power, at least power * k rejections are expected; with the examples of a harder head,
      whose level is higher, the easier heads are decided too. The number of rejections stands for
      its expectation: for few heads the power is approximate. The same, divided by 1 + 1/2 + ... +
      1/m, for ``fdr_by``.

    With clusters, new documents are assumed to be like the pilot's: of as many examples, and as
    much alike within. A larger corpus has more documents, not longer ones.

    The power is of t-tests of normal scores; for skewed scores, few documents or documents of very
    different sizes it is inexact. The means of a pilot are themselves uncertain, and heads chosen
    for their large means have smaller means in a new corpus: take the answer as a lower bound.

    A role of pairs of words takes several tests, of the mean and of contrasts; the plan is for the
    hardest one. The further steps of evidence are planned each by itself.

    Args:
        scores: from `score_heads`, of a corpus like the planned one.
        options: keyword arguments, described below.

    Raises:
        UsageError: an option outside its range, examples that cannot be clustered by
            ``clusters``.

    With scores of 20 examples for a pilot, made by hand:

    >>> import numpy as np
    >>> from headroles import HeadScores, power_analysis
    >>> values = np.random.default_rng(0).normal([[3.5], [1.0]], 1.0, size=(20, 1, 2, 1))
    >>> plan = power_analysis(HeadScores.by_hand(values, ["local"]))
    >>> plan.frame[["layer", "head", "direction", "examples_with_score"]]
       layer  head direction  examples_with_score
    0      0     0       yes                108.0
    1      0     1        no                  4.0
    """
    scores = scores_of(scores)
    check_contrasts(scores)
    tested = RoleHypotheses.from_scores(scores, options, options)
    pilot = tested.means
    ok, side = pilot.is_tested, answers(pilot.is_tested, pilot.direction)
    open_note = np.where(ok & (side == UNDECIDED), _AT_THRESHOLD, "").astype(object)
    frame = pd.DataFrame(
        {
            **tested.columns.labels,
            **_measured(pilot),
            "mean": pilot.moments.mean,
            "threshold": pilot.threshold,
            "direction": np.where(side == UNDECIDED, "", side).astype(object),
            "alpha_per_test": np.nan,
            "examples_with_score": np.where(ok, np.inf, np.nan),
            "corpus_examples": np.where(ok, np.inf, np.nan),
            "note": find_notes(pilot, open_note),
        }
    )
    for contrast in CONTRASTS[DISTANCE]:
        if contrast in tested.legs:
            _plan_for_contrast(frame, tested.legs[contrast])
    for _, rows in frame[frame["direction"] != ""].groupby("direction"):
        _plan(frame, rows, options, int(ok.sum()), scores.n_examples)
    for step in STEPS[1:]:
        frame[f"examples_{step}"] = _examples_of_step(
            frame, tested, step, options, scores.n_examples
        )
    note_removed(frame, scores.record)
    facts: PowerFacts = {
        **options.facts_about(scores.score),
        **describe_clusters(pilot, scores.clusters),
        "examples": scores.n_examples,
    }
    warnings = [*warn_of_doubled(scores.clusters, options)]
    return PowerAnalysis.made(
        frame, options, facts=facts, sources={"pilot": scores.record}, warnings=warnings
    )


def _plan_for_contrast(frame: pd.DataFrame, leg: Leg) -> None:
    """Put a contrast in the place of a mean above the threshold, or of an easier contrast.

    Where the contrast is below its margin, the plan is to show that.
    """
    beyond, rows = leg.hypotheses, frame.loc[leg.subjects]
    words = np.where(beyond.direction < 0, POSITIONAL, YES)
    of_contrasts = rows.assign(**_measured(beyond), direction=words)
    is_harder = (of_contrasts["ease"] < rows["ease"]) | (beyond.direction < 0)
    takes = (rows["direction"] == YES) & beyond.is_tested & is_harder
    frame.loc[rows.index[takes], of_contrasts.columns] = of_contrasts[takes]


def _examples_of_step(
    frame: pd.DataFrame,
    tested: RoleHypotheses,
    step: str,
    options: PowerOptions,
    n_examples: int,
) -> FloatArray:
    """Return the examples (T,) that show a step of evidence, and all before it.

    NaN for heads that are not planned to be shown to have the role, or that lack a contrast or rule
    of the step, or that do not exceed it by the margin in the pilot.
    """
    before = STEPS[STEPS.index(step) - 1]
    needed = frame["corpus_examples"] if before == DISTANCE else frame[f"examples_{before}"]
    needed = needed.where(frame["direction"] == YES)
    if not (legs := tested.all_legs_of(step)):
        return np.full(len(frame), np.nan)
    for leg in legs:
        plan = frame.loc[leg.subjects].assign(**_measured(leg.hypotheses), corpus_examples=np.nan)
        is_planned = leg.hypotheses.is_tested & (leg.hypotheses.direction > 0)
        _plan(plan, plan[is_planned], options, int(leg.hypotheses.is_tested.sum()), n_examples)
        # a step takes some documents, however large its effect is
        least = np.ceil(LEAST * n_examples / plan["n_clusters"].where(plan["n_clusters"] > 0))
        of_leg = plan["corpus_examples"].clip(lower=least).reindex(frame.index)
        needed = needed.where(needed >= of_leg, of_leg).where(of_leg.notna() & needed.notna())
    return np.asarray(needed, dtype=np.float64)


def _measured(pilot: Hypotheses) -> dict[str, FloatArray | IntArray]:
    """Return the columns of a test that its plan follows from."""
    moments, design = pilot.moments, design_effect(pilot.moments)
    return {
        "n": moments.n,
        "n_clusters": moments.n_clusters,
        "effect_size": pilot.effect_size,
        "cluster_size": moments.n / (moments.df + 1),
        "design_effect": design,
        "ease": np.abs(pilot.effect_size) / np.sqrt(design),  # as if examples were independent
    }


def _plan(
    frame: pd.DataFrame, rows: pd.DataFrame, options: PowerOptions, n_tests: int, n_examples: int
) -> None:
    """Fill in level and examples of ``rows``, the tests of one direction among ``n_tests``."""

    def examples(rows: pd.DataFrame, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return examples with a score, and in the corpus, that decide each test at its level."""
        clusters = rows["design_effect"], rows["cluster_size"]
        with_score = smallest_n(rows["effect_size"].abs(), levels, options.power, *clusters)
        return with_score, np.ceil(with_score * n_examples / rows["n"].to_numpy())

    levels = np.full(len(rows), options.alpha)
    if options.correction.startswith("fdr_"):  # of the easiest head first
        rejections = np.maximum(1, options.power * np.arange(1, len(rows) + 1))
        penalty = (1 / np.arange(1, n_tests + 1)).sum() if options.correction == "fdr_by" else 1
        levels = options.alpha * rejections / (n_tests * penalty)
    elif options.correction != "none":
        levels = levels / n_tests
    # Easy tests are easy at any level: the order at the strictest level serves for all.
    rows = rows.iloc[np.argsort(examples(rows, levels[:1])[1], kind="stable")]
    with_score, in_corpus = examples(rows, levels)
    # With the corpus of a harder head, at its higher level, the easier heads are decided too.
    least = np.minimum.accumulate(in_corpus[::-1])[::-1]
    last = np.searchsorted(least, least, side="right") - 1
    levels = levels[last]
    # Heads up to the last count as rejections at its level: the corpus must decide all of them.
    in_corpus = np.maximum.accumulate(examples(rows, levels)[1])[last]
    in_corpus_with_score = np.ceil(in_corpus * rows["n"].to_numpy() / n_examples)
    frame.loc[rows.index, "alpha_per_test"] = levels
    frame.loc[rows.index, "examples_with_score"] = np.minimum(with_score, in_corpus_with_score)
    frame.loc[rows.index, "corpus_examples"] = in_corpus


def _enough_for(share: float, rows: pd.DataFrame) -> float:
    """Return the examples that decide a share of the planned heads; NaN if none is planned."""
    needed = np.sort(rows["corpus_examples"].dropna().to_numpy(dtype=np.float64))
    return float(needed[int(np.ceil(share * len(needed))) - 1]) if len(needed) else np.nan


def _rounded(number: float) -> str:
    """Write a number with three significant digits: the means of a pilot know no more."""
    if np.isnan(number):
        return "-"
    return f">{OUT_OF_REACH:,}" if number > OUT_OF_REACH else f"{float(f'{number:.3g}'):,.0f}"


def draw_power(plan: PowerAnalysis, ax: Axes | None = None) -> Axes:
    """Draw the share of heads and roles that are decided, against the size of the corpus.

    Shares are of the planned heads and roles; means at the threshold keep the share below 1.

    Raises UsageError for a plan without any head that examples decide.

    With ``plan`` as `power_analysis` returns it:

    >>> from headroles.report import draw_power
    >>> draw_power(plan).get_title()
    'power 0.8, alpha 0.05'
    """
    needed = plan.frame["corpus_examples"].dropna().to_numpy(dtype=np.float64)
    finite = np.sort(needed[np.isfinite(needed)])
    if not len(finite):
        raise UsageError("the plan has no head that any number of examples decides")
    ax = new_axes(ax, 6, 3.4)
    ax.step(finite, np.arange(1, len(finite) + 1) / len(needed), where="post", color=DARK)
    pilot = plan.facts["examples"]
    ax.axvline(pilot, color=THRESHOLD, linestyle="dotted", label=f"pilot: {pilot} examples")
    ax.set(xscale="log", xlabel="examples of the corpus", ylim=(0, 1.02))
    ax.set_ylabel("share of heads and roles decided")
    ax.set_title(f"power {plan.options.power:g}, alpha {plan.options.alpha:g}")
    legend_below(ax)
    return ax
