"""HeadScores of a pilot -> PowerPlan: how many examples it takes to decide each role."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from headroles.errors import UsageError
from headroles.evidence import notes, settled
from headroles.export import export_frame
from headroles.hypotheses import MAX_T, FloatArray, Hypotheses, IntArray, TestOptions
from headroles.inference import NO, OK, YES, design_effect, one_sample_t, smallest_n
from headroles.scores import HeadScores

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


@dataclass(frozen=True, repr=False)
class PowerPlan:
    """How many examples it takes to decide every head and role, if all is as in the pilot.

    ``frame`` has the columns of ``COLUMNS``, ordered by role, layer and head. ``n``, ``mean`` and
    ``effect_size`` are those of the pilot. ``direction`` is ``"yes"`` for heads above the
    threshold and ``"no"`` for those below; to be shown, both need examples.
    ``examples_with_score`` is the number of examples with a score for the role at which the test
    has the power asked for, and ``corpus_examples`` the number of all examples that have so
    many, in documents like those of the pilot where they are clusters. Infinity is for a mean at
    the threshold, NaN for what cannot be planned; ``note`` says why.
    """

    frame: pd.DataFrame
    provenance: dict[str, Any] = field(default_factory=dict)

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
            "share": rows["n"].max() / self.provenance["plan"]["examples"],
            "above": int((rows["direction"] == YES).sum()),
            "below": int((rows["direction"] == NO).sum()),
            "unplanned": len(rows) - len(needed),
            **{
                name: needed[int(np.ceil(share * len(needed))) - 1] if len(needed) else np.nan
                for name, share in SHARES.items()
            },
        }

    def export(self, fmt: str) -> bytes:
        """The table as csv, parquet, json, markdown, latex or html; UTF-8 where it is text.

        JSON has null for infinity, as for NaN; the note tells which it was. Raises UsageError
        for another format.
        """
        frame = self.frame.replace(np.inf, np.nan) if fmt == "json" else self.frame
        return export_frame(frame, fmt, self.provenance)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"{self._headline()}\n{self.summary().to_string()}"

    def _repr_html_(self) -> str:
        return f"<p>{self._headline()}</p>{self.summary().to_html()}"

    def _headline(self) -> str:
        plan = self.provenance["plan"]
        return (
            f"PowerPlan({len(self.frame)} tests; examples of a corpus that decide heads with "
            f"power {plan['power']:g}; the pilot had {plan['examples']})"
        )


def plan_examples(
    scores: HeadScores,
    *,
    power: float = 0.8,
    threshold: float | None = None,
    alpha: float = 0.05,
    correction: str = "fdr_bh",
    family: str = "all",
    groups: str = "auto",
) -> PowerPlan:
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
    each, and as much alike within (`required_examples`). A larger corpus is one of more documents,
    not of longer ones.

    The power is that of t-tests of normal scores; for skewed ones, of few documents or of
    documents of very different sizes it is off. The means of a pilot are themselves uncertain,
    and heads that were picked for their large means will have smaller ones: take the answer as a
    lower bound.

    Args:
        scores: from `score_heads`, of a corpus like the one to be planned.
        power: the probability of each decision, between 0 and 1.
        threshold: as in `assign_roles`, like all that follow.
        alpha: level of the tests of each direction.
        correction: any of `assign_roles`.
        family: ``"all"`` or ``"role"``.
        groups: ``"auto"``, ``"document"`` or ``"none"``.

    Raises:
        UsageError: an option outside its range, or examples that cannot be grouped as asked.
    """
    if not 0 < power < 1:
        raise UsageError(f"the power is {power}; it must lie between 0 and 1")
    options = TestOptions(
        threshold=threshold,
        alpha=alpha,
        test="sign_flip" if correction == MAX_T else "t",
        correction=correction,
        family=family,
        groups=groups,
    )
    hypotheses = settled(Hypotheses.of(scores, options))
    plan = {
        "power": power,
        "threshold": hypotheses.options.threshold,
        "alpha": alpha,
        "correction": correction,
        "family": family,
        "groups": groups,
        "clustered_by": "none" if hypotheses.groups is None else "document",
        "n_clusters": hypotheses.n_clusters,
        "examples": scores.n_examples,
    }
    return PowerPlan(_frame(hypotheses, power), {**scores.provenance, "plan": plan})


def _frame(hypotheses: Hypotheses, power: float) -> pd.DataFrame:
    pilot = one_sample_t(hypotheses.values, hypotheses.threshold, groups=hypotheses.groups)
    ok = pilot.status == OK
    direction = np.select(
        [ok & (pilot.effect_size > 0), ok & (pilot.effect_size < 0)], [YES, NO], ""
    )
    frame = pd.DataFrame(
        {
            "layer": hypotheses.layer,
            "head": hypotheses.head,
            "role": hypotheses.role_names,
            "n": pilot.n,
            "n_clusters": pilot.n_groups,
            "mean": pilot.mean,
            "effect_size": pilot.effect_size,
            "threshold": hypotheses.threshold,
            "direction": direction.astype(object),
            "alpha_per_test": np.nan,
            "design_effect": design_effect(pilot),
            "examples_with_score": np.where(ok, np.inf, np.nan),
            "corpus_examples": np.where(ok, np.inf, np.nan),
            "note": np.where(ok & (direction == ""), _AT_THRESHOLD, notes(pilot)).astype(object),
        }
    )
    for family in hypotheses.columns_by_family():
        for wanted in (YES, NO):
            columns = family[direction[family] == wanted]
            if len(columns):
                levels = _levels(hypotheses.options, int(ok[family].sum()), len(columns), power)
                _plan(frame, columns, levels, power, len(hypotheses.values))
    return frame[list(COLUMNS)]


def _levels(options: TestOptions, n_tests: int, n_heads: int, power: float) -> FloatArray:
    """Level of the test of each of ``n_heads`` heads, the easiest first, in a family."""
    if options.correction == "none":
        return np.full(n_heads, options.alpha)
    if not options.correction.startswith("fdr_"):
        return np.full(n_heads, options.alpha / n_tests)
    rejections = np.maximum(1, power * np.arange(1, n_heads + 1))
    by_dependence = (1 / np.arange(1, n_tests + 1)).sum() if options.correction == "fdr_by" else 1
    return np.asarray(options.alpha * rejections / (n_tests * by_dependence))


def _plan(
    frame: pd.DataFrame, columns: IntArray, levels: FloatArray, power: float, n_examples: int
) -> None:
    """Fill in level and examples of the tests ``columns``, those of a direction of a family."""
    rows = frame.loc[columns]
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
        cluster_size=n / rows["n_clusters"],
    )
    return with_score, np.ceil(with_score * n_examples / n)
