"""HeadScores -> RoleTable: which heads have which roles, by hypothesis test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.errors import UsageError
from headroles.formats import to_records
from headroles.inference import ANSWERS, NO, YES, Sample
from headroles.options import takes
from headroles.results import Grid, Result, Shown, Warned
from headroles.roles import BIAS, SCORES
from headroles.scoring import HeadScores, warnings_of_run
from headroles.studies.cautions import warn_of_documents, why_absent
from headroles.studies.forms import RoleTableForm
from headroles.studies.heads import (
    FloatArray,
    HeadColumns,
    describe_clusters,
    general_threshold,
    hypotheses_of,
    roles_in,
    scores_of,
)
from headroles.studies.offsets import rival_of
from headroles.studies.options import CORPUS, AssignOptions
from headroles.studies.stopped import refuse_stopped, stopped_early, stopped_tests
from headroles.testing import (
    TEST_NAMES,
    Hypotheses,
    PValues,
    TestOptions,
    answer,
    certify,
    describe_correction,
    describe_interval,
    find_intervals,
    find_notes,
    find_p_values,
    find_warnings,
)

COLUMNS = (
    "layer",
    "head",
    "role",
    "n",
    "n_clusters",
    "df",
    "mean",
    "sd",
    "effect_size",
    "ci_low",
    "ci_high",
    "threshold",
    "statistic",
    "p_value",
    "p_adjusted",
    "p_below",
    "p_below_adjusted",
    "answer",
    "assigned",
    "certified",
    "certified_mean",
    "evenness",
    "note",
)
VALUES = COLUMNS[3:]
"""The columns that a wide table can show."""
_STRONGEST = 3
_NOT_OF_ASSIGNED = ["assigned", "answer", "p_below", "p_below_adjusted", "df", "certified_mean"]


@dataclass(frozen=True, repr=False, eq=False)
class RoleTable(Result):
    """The tests of every head on every role, one row each, with what they were computed from.

    ``frame`` has the columns of ``COLUMNS``, ordered by role, layer and head. Means, deviations
    and intervals are in units of the score; what is not defined is NaN. ``certified`` is the answer
    of betting, which asks for independent examples or documents and nothing else, about
    ``certified_mean``: in it documents count the same each, and examples less whose score could lie
    unusually far from the threshold. It is empty for scores whose bounds were not kept.
    """

    kind: ClassVar[str] = "role table"
    form: ClassVar[type[msgspec.Struct]] = RoleTableForm
    stem: ClassVar[str] = "roles"
    cure: ClassVar[str] = "test scores with: headroles assign {folder}"
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    views: ClassVar[tuple[str, ...]] = (
        "long",
        "wide",
        "assigned",
        "counts",
        "answers",
        "certified",
        "colocation",
    )

    @property
    def roles(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return roles_in(self.frame)

    @property
    def assigned(self) -> pd.DataFrame:
        """The rows of the roles that were assigned, strongest mean first.

        Columns that say the same of all of them are left out, and details that the whole table has.
        """
        rows = self.frame[self.frame["assigned"]].drop(columns=_NOT_OF_ASSIGNED)
        return rows.sort_values(["mean", "layer", "head"], ascending=[False, True, True])

    @property
    def tests(self) -> dict[str, Any]:
        """How was tested: the options, the units, what was left out, warnings."""
        tests: dict[str, Any] = self.provenance["tests"]
        return tests

    @property
    def rivals(self) -> dict[str, list[int]]:
        """For roles that were compared with fixed offsets, those that were, in words.

        The first was found on the second half of the documents for the first, the second on the
        first half for the second.
        """
        rivals: dict[str, list[int]] = self.tests.get("offsets", {})
        return rivals

    def heads_with(self, role: str) -> list[tuple[int, int]]:
        """(layer, head) of the heads that ``role`` was assigned to.

        Raises UsageError for a role that the table does not have.
        """
        rows = self.where(role=role, only_assigned=True).frame
        return list(zip(rows["layer"].tolist(), rows["head"].tolist(), strict=True))

    def wide(self, value: str = "assigned") -> pd.DataFrame:
        """One row per head, a column per role, holding column ``value`` of the long table.

        Raises UsageError for a column that is not one of ``VALUES``.
        """
        if value not in VALUES:
            raise UsageError(f"the value is {value!r}; it must be one of {', '.join(VALUES)}")
        wide = self.frame.pivot_table(
            index=["layer", "head"], columns="role", values=value, aggfunc="first", dropna=False
        )
        return wide.reindex(columns=list(self.roles)).rename_axis(columns=None).reset_index()

    def counts(self, answer: str = YES) -> pd.DataFrame:
        """Number of heads with an answer: a row per role, a column per layer, and the total.

        Raises UsageError for anything but ``"yes"``, ``"no"``, ``"undecided"``, ``"untestable"``.
        """
        if answer not in ANSWERS:
            raise UsageError(f"the answer is {answer!r}; it must be one of {', '.join(ANSWERS)}")
        chosen = self.frame.assign(chosen=self.frame["answer"] == answer)
        counts = chosen.pivot_table(
            index="role", columns="layer", values="chosen", aggfunc="sum", sort=False
        ).astype(int)
        return counts.assign(total=counts.sum(axis=1)).rename_axis(columns=None)

    def answers(self) -> pd.DataFrame:
        """Number of heads by answer: a row per role, columns yes, no, undecided, untestable."""
        return pd.DataFrame({answer: self.counts(answer)["total"] for answer in ANSWERS})

    def certified(self) -> pd.DataFrame:
        """Number of heads by certified answer: a row per role, columns yes, no, undecided, ..."""
        frame = self.frame
        found = {answer: frame["role"][frame["certified"] == answer] for answer in ANSWERS}
        return pd.DataFrame(
            {
                answer: roles.value_counts().reindex(self.roles, fill_value=0)
                for answer, roles in found.items()
            }
        ).rename_axis("role")

    def colocation(self) -> pd.DataFrame:
        """Number of heads that have both of two roles; the diagonal counts the heads of a role."""
        has = self.wide().set_index(["layer", "head"]).astype(int)
        return has.T.dot(has).rename_axis("role")

    def shown(self) -> Iterator[Shown]:
        """Answers per role, heads per layer, the strongest heads, what to be careful about."""
        yield self._title()
        yield self._answers_grid()
        if self._is_certified:
            yield self._about_certified()
        yield self._strongest_grid()
        yield from self._left_out()
        if untested := int((self.frame["answer"] == "untestable").sum()):
            yield f"{untested} tests were not made; the notes of the table say why"
        if changing := [role for role, (one, other) in self.rivals.items() if one != other]:
            yield f"the best offset differs between halves of the documents: {', '.join(changing)}"
        yield from map(Warned, self.tests["warnings"])

    def _left_out(self) -> Iterator[str]:
        """The roles that no example has, together with those that are left out for one reason."""
        by_reason: dict[str, list[str]] = {}
        for role in self.tests["left_out"]:
            reason = self.tests.get("why_left_out", {}).get(role, "")
            by_reason.setdefault(reason, []).append(role)
        for reason, roles in by_reason.items():
            why = f" ({reason})" if reason else ""
            yield f"left out, as no example has them: {', '.join(roles)}{why}"

    @property
    def _is_uneven(self) -> bool:
        """Whether documents differ so much in size that it matters."""
        return bool(self.tests["effective_clusters"] < 0.9 * self.tests["n_clusters"])

    def _title(self) -> str:
        tests = self.tests
        units = (
            f"{tests['n_clusters']} independent examples"
            if tests["clustered_by"] == "none"
            else f"examples clustered by {tests['n_clusters']} documents"
            + f" (worth {tests['effective_clusters']:.0f} of one size)" * self._is_uneven
        )
        beyond = (
            f"; of arcs > best fixed offset + {tests['offset_margin']:g}" if self.rivals else ""
        )
        limit = f"{tests['threshold']:g}{beyond}"
        return (
            f"heads per layer with mean {_called(self.provenance)} > {limit} "
            f"(alpha {tests['alpha']:g}, "
            f"{describe_correction(tests['correction'], tests['family'])})\n"
            f"{TEST_NAMES[tests['test']]} of {units}, each direction at alpha\n"
            f"{describe_interval(tests['interval'], tests['alpha'])}" + self._where_stopped()
        )

    @property
    def _is_certified(self) -> bool:
        """Whether there are certified answers: the bounds of the scores were kept."""
        return bool((self.frame["certified"] != "").any())

    def _about_certified(self) -> str:
        """How many answers stand whatever the distribution of scores is."""
        given, certified = self.frame["answer"], self.frame["certified"]
        counts = ", ".join(
            f"{int((certified == answer).sum())} {answer} "
            f"({int(((certified == answer) & (given == answer)).sum())} of them answered so above)"
            for answer in (YES, NO)
        )
        against = int(
            ((given == YES) & (certified == NO) | (given == NO) & (certified == YES)).sum()
        )
        return (
            f"certified (by betting and e-BH, whatever the distribution of scores): {counts}"
            + f"; {against} against the answer given, by the means of certified_mean"
            * bool(against)
            + "\n"
        )

    def _where_stopped(self) -> str:
        """Where scoring stopped early, if it did."""
        stopped = self.provenance.get("stopped")
        if not stopped:
            return ""
        rough = (
            "; intervals take the number of examples as given beforehand, and are rough"
            * stopped_early(self.provenance)
        )
        of = "this corpus" if stopped["until_of"] == CORPUS else "all text like this"
        return (
            f"\nstopped after {stopped['sentences']} of {stopped['of_sentences']} sentences, with "
            f"{stopped['decided']:.1%} of all heads and roles decided for {of}{rough}"
        )

    def _answers_grid(self) -> Grid:
        """For each role the heads with it in each layer, and how many heads got which answer."""
        per_layer, answers = self.counts().drop(columns="total"), self.answers()
        if not answers["untestable"].any():
            answers = answers.drop(columns="untestable")
        certified = self.certified()[[YES, NO] if self._is_certified else []]
        certified = certified.add_prefix("certified ")
        sizes = {"examples": self.frame.groupby("role")["n"].max()}
        if self.tests["clustered_by"] != "none":
            sizes["clusters"] = self.frame.groupby("role")["n_clusters"].max()
        rows = [
            (
                role,
                *(str(column.loc[role]) for column in sizes.values()),
                *(str(n) if n else "." for n in per_layer.loc[role]),
                *map(str, answers.loc[role]),
                *map(str, certified.loc[role]),
            )
            for role in self.roles
        ]
        columns = (
            "role",
            *sizes,
            *map(str, per_layer.columns),
            *answers.columns,
            *certified.columns,
        )
        return Grid(columns, tuple(rows), bold=YES)

    def _strongest_grid(self) -> Grid:
        assigned, digits = self.assigned, _digits(self.provenance)
        rows = []
        for role in self.roles:
            strongest = assigned[assigned["role"] == role].head(_STRONGEST)
            heads = [
                f"{layer}-{head} {mean:.{digits}f}"
                for layer, head, mean in zip(
                    strongest["layer"], strongest["head"], strongest["mean"], strict=True
                )
            ]
            rows.append((role, "  ".join(heads)))
        title = "strongest heads: layer-head mean score"
        return Grid(("role", title), tuple(rows), left=frozenset([title]))

    def facts(self) -> dict[str, Any]:
        """The same for scripts, with the heads of every role."""
        assigned = self.assigned[["layer", "head", "role", "mean", "p_adjusted"]]
        answers = self.answers()
        return {
            "tests": self.tests,
            "heads_per_role": answers["yes"].to_dict(),
            "answers_per_role": answers.to_dict(orient="index"),
            "certified_per_role": self.certified().to_dict(orient="index"),
            "assigned": to_records(assigned),
        }


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

    ``untestable`` are roles with fewer than two examples, or clusters. With zero variance, or
    only that of rounding, the mean decides. Neither enters the correction. Contrasts
    (``...:beyond_offset``) are tested against 0. ``block:evenness`` is no role: its mean is the
    column ``evenness`` of ``block``. A role that no example has (``block`` without pairs) is left
    out; the provenance names it.

    Args:
        scores: from `score_heads`.
        options: keyword arguments, described below.

    Raises:
        UsageError: an option outside its range, or options or scores that do not go together.
    """
    return assign(scores_of(scores), options)


def assign(scores: HeadScores, options: AssignOptions) -> RoleTable:
    """`assign_roles` for callers that have their options together."""
    if options.is_published and scores.score != BIAS:
        raise UsageError(
            f"the published tests are of bias scores, and these are {scores.score.name} scores; "
            "score again with score='bias' (--score bias), or leave the preset out"
        )
    if options.is_published:
        refuse_stopped(scores, "the published tests take")
    asked = options.tests if options.is_published else stopped_tests(scores, options.tests)
    columns = HeadColumns.of(scores)
    if not columns.roles:
        raise UsageError(
            "these scores have no role that could be tested; score roles with --roles, or see what "
            "describes heads with: headroles describe DIR"
        )
    hypotheses = hypotheses_of(
        scores, columns, asked, options, ddof=0 if options.is_published else 1
    )
    above = find_p_values(hypotheses, asked, "greater")
    below = find_p_values(hypotheses, asked, "less")
    absent = [role for role in scores.roles if role.is_tested and role.id not in columns.ids]
    left_out = why_absent(absent, scores.provenance)
    tests = {
        **asked.record(),
        "threshold": general_threshold(scores, options.threshold),
        **_describe_rivals(scores, columns, options),
        "preset": options.preset,
        **describe_clusters(hypotheses),
        "left_out": list(left_out),
        "why_left_out": left_out,
        "warnings": [
            *warnings_of_run(scores.provenance),
            *warn_of_documents(scores.provenance, hypotheses, asked),
            *_warn_of_norms(scores, columns),
            *find_warnings(hypotheses, asked, above),
        ],
    }
    frame = _frame(scores, columns, hypotheses, above, below, asked)
    return RoleTable(frame, {**scores.provenance, "score": scores.score.name, "tests": tests})


def _warn_of_norms(scores: HeadScores, columns: HeadColumns) -> list[str]:
    """The published threshold of ``block`` is one for weights."""
    measure = scores.provenance.get("options", {}).get("measure")
    if measure != "norms" or scores.score != BIAS or "block" not in columns.ids:
        return []
    return [
        "under norms little goes to special tokens, so that rows are even, and block, which is "
        "times their entropy, exceeds its published threshold in many more heads; block:ratio is "
        "without entropy, and excess scores are without it altogether"
    ]


def _describe_rivals(
    scores: HeadScores, columns: HeadColumns, options: AssignOptions
) -> dict[str, Any]:
    """What provenance says of the offsets that roles were compared with, if any were."""
    if scores.offset_shares is None or options.threshold is not None:
        return {}
    rivals = {role: rival_of(scores, role) for role in columns.ids}
    offsets = {role: list(rival.offsets) for role, rival in rivals.items() if rival is not None}
    return {"offset_margin": options.offset_margin, "offsets": offsets}


def _frame(
    scores: HeadScores,
    columns: HeadColumns,
    hypotheses: Hypotheses,
    above: PValues,
    below: PValues,
    options: TestOptions,
) -> pd.DataFrame:
    moments, answers = hypotheses.moments, answer(hypotheses, above, below, options.alpha)
    intervals = find_intervals(hypotheses, options, answers)
    certified = certify(hypotheses, options)
    frame = pd.DataFrame(
        {
            **columns.labels,
            "n": moments.n,
            "n_clusters": moments.n_clusters,
            "df": moments.df,
            "mean": moments.mean,
            "sd": moments.sd,
            "effect_size": hypotheses.effect_size,
            "ci_low": intervals.ci_low,
            "ci_high": intervals.ci_high,
            "threshold": hypotheses.threshold,
            "statistic": above.statistic,
            "p_value": above.single,
            "p_adjusted": above.adjusted,
            "p_below": below.single,
            "p_below_adjusted": below.adjusted,
            "answer": answers.astype(object),
            "assigned": answers == YES,
            "certified": certified.answers.astype(object),
            "certified_mean": certified.mean,
            "evenness": _measures(scores, columns),
            "note": find_notes(hypotheses, _window_notes(scores, columns), options.test),
        }
    )
    for layer, head in scores.provenance.get("removed_heads", ()):
        gone = (frame["layer"] == layer) & (frame["head"] == head)
        frame.loc[gone, "note"] = "untestable: the head was removed from the model"
    return frame[list(COLUMNS)]


def _measures(scores: HeadScores, columns: HeadColumns) -> FloatArray:
    """Mean (T,) of the measure that the role of each column has, NaN where it has none."""
    means = np.full((len(columns.roles), scores.n_layers * scores.n_heads), np.nan)
    for role in scores.roles:
        if role.measure_of in columns.ids and not role.is_tested:
            measured = Sample.of(scores.column(role.id))
            means[columns.ids.index(role.measure_of)] = measured.moments.mean
    return means.ravel()


def _window_notes(scores: HeadScores, columns: HeadColumns) -> NDArray[np.object_]:
    """What it does to roles (T,) that a layer sees only a window of the longest examples."""
    reaches: Sequence[int | None] = scores.provenance.get("reaches", ())
    farthest = int(scores.lengths.max()) - 1
    notes = np.full((len(columns.roles), columns.n_layers, columns.n_heads), "", dtype=object)
    for layer, reach in enumerate(reaches):
        if reach is None or reach >= farthest:
            continue
        for place, role in enumerate(columns.roles):
            if role.in_window:
                notes[place, layer] = (
                    f"attention of this layer reaches {reach} positions{role.in_window}"
                )
    return notes.ravel()


def _called(provenance: dict[str, Any]) -> str:
    name: str = provenance["score"]
    return "score" if name == BIAS.name else f"{name} score"


def _digits(provenance: dict[str, Any]) -> int:
    """Decimals that tell means apart on the scale of the score."""
    return 1 if SCORES[provenance["score"]].threshold >= 1 else 2
