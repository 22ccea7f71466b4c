"""HeadScores -> RoleTable: which heads have which roles, by hypothesis test."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headroles import storage
from headroles.errors import StorageError, UsageError
from headroles.evidence import SKEWED, Evidence, notes, warnings, weigh
from headroles.export import export_frame, noted_provenance
from headroles.hypotheses import (
    DEFAULT,
    PUBLISHED,
    FloatArray,
    Hypotheses,
    TestOptions,
    is_contrast,
    kind_of,
)
from headroles.inference import ANSWERS, YES, one_sample_t
from headroles.scores import HeadScores
from headroles.sieves import EVENNESS
from headroles.storage import ROLES_CSV, ROLES_FILE, RUN_FILE

SHAPES = ("long", "wide")
COLUMNS = (
    "layer",
    "head",
    "role",
    "n",
    "n_clusters",
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
    "evenness",
    "note",
)
VALUES = COLUMNS[3:]
"""The columns that a wide table can show."""


@dataclass(frozen=True, repr=False)
class RoleTable:
    """The tests of every head on every role, one row each, with what they were computed from.

    ``frame`` has the columns of ``COLUMNS``, ordered by role, layer and head. Means, deviations
    and intervals are in units of the score; what is not defined is NaN.
    """

    frame: pd.DataFrame
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def roles(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return tuple(dict.fromkeys(self.frame["role"]))

    @property
    def assigned(self) -> pd.DataFrame:
        """The rows of the roles that were assigned, strongest mean first."""
        rows = self.frame[self.frame["assigned"]]
        return rows.sort_values(["mean", "layer", "head"], ascending=[False, True, True])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before relying on the tests: sentences for people."""
        return tuple(self.provenance.get("tests", {}).get("warnings", ()))

    def heads_with(self, role: str) -> list[tuple[int, int]]:
        """(layer, head) of the heads that ``role`` was assigned to."""
        rows = self.frame[self.frame["assigned"] & (self.frame["role"] == role)]
        return list(zip(rows["layer"].tolist(), rows["head"].tolist(), strict=True))

    def wide(self, value: str = "assigned") -> pd.DataFrame:
        """One row per head, a column per role, holding column ``value`` of the long table."""
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

    def colocation(self) -> pd.DataFrame:
        """Number of heads that have both of two roles; the diagonal counts the heads of a role."""
        has = self.wide().set_index(["layer", "head"]).astype(int)
        return has.T.dot(has)

    def export(self, fmt: str, shape: str = "long", value: str = "assigned") -> bytes:
        """The table as csv, parquet, json, markdown, latex or html; UTF-8 where it is text.

        ``shape`` is ``"long"`` (a row per test) or ``"wide"`` (a row per head, a column per role
        that holds ``value``). Raises UsageError for anything else.
        """
        if shape not in SHAPES:
            raise UsageError(f"the shape is {shape!r}; it must be one of {', '.join(SHAPES)}")
        if value not in VALUES:
            raise UsageError(f"the value is {value!r}; it must be one of {', '.join(VALUES)}")
        frame = self.frame if shape == "long" else self.wide(value)
        return export_frame(frame, fmt, self.provenance)

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write ``roles.csv``, ``roles.parquet`` and ``run.json`` into ``folder``.

        Raises StorageError if the folder holds files already and ``overwrite`` is not set.
        """
        with storage.result_folder(folder, overwrite) as staging:
            self.write_into(staging)
        return Path(folder)

    def write_into(self, folder: Path) -> None:
        """Write the files of `save` into an existing folder, replacing those that it has.

        All are written in full before any is put in its place, ``run.json`` last; `load` tells
        if that was cut short.
        """
        contents = {  # drafts take their places in reverse
            RUN_FILE: storage.encode_json(self.provenance),
            ROLES_FILE: self.export("parquet"),
            ROLES_CSV: self.export("csv"),
        }
        with ExitStack() as drafts:
            for name, content in contents.items():
                drafts.enter_context(storage.whole_file(folder / name)).write_bytes(content)

    @classmethod
    def load(cls, folder: str | Path) -> RoleTable:
        """Read back what `save` wrote. Raises StorageError where that is not possible."""
        folder = Path(folder)
        if not (folder / ROLES_FILE).is_file() and (folder / storage.SCORES_FILE).is_file():
            raise StorageError(
                f"{folder} holds scores that were not tested yet; run: headroles assign {folder}"
            )
        provenance = storage.read_json(folder / RUN_FILE)
        table = storage.read_table(folder / ROLES_FILE)
        if set(table.column_names) != set(COLUMNS):
            raise StorageError(
                f"{folder / ROLES_FILE} has not the columns of this version; "
                f"test the scores again: headroles assign {folder}"
            )
        noted = noted_provenance(table)
        if noted.get("tests") != provenance.get("tests"):
            raise StorageError(
                f"{folder / ROLES_FILE} is not of the same tests as {RUN_FILE} beside it; "
                f"test the scores again: headroles assign {folder}"
            )
        return cls(table.to_pandas(), provenance)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"{self._headline()}\n{self.counts().to_string()}"

    def _repr_html_(self) -> str:
        return f"<p>{self._headline()}</p>{self.counts().to_html()}"

    def _headline(self) -> str:
        totals = self.answers().sum()
        answers = ", ".join(f"{total} {answer}" for answer, total in totals.items() if total)
        return f"RoleTable({len(self.frame)} tests: {answers}; heads with each role per layer)"


def assign_roles(
    scores: HeadScores,
    *,
    threshold: float | None = None,
    alpha: float = 0.05,
    test: str = "t",
    correction: str = "fdr_bh",
    family: str = "all",
    groups: str = "auto",
    interval: str = "t",
    resamples: int = 10_000,
    seed: int = 0,
    preset: str = DEFAULT,
) -> RoleTable:
    """Test for every head and role whether its mean score lies above ``threshold``.

    The unit is the example, or the document that it comes from. Two one-sided tests are made:
    of H0: mean <= threshold, and of H0: mean >= threshold. Each direction is corrected for the
    number of tests by itself. The answer is ``yes`` if the mean is shown to be above (adjusted
    p <= alpha), ``no`` if it is shown to be below, ``undecided`` if the data show neither: not to
    have shown a role is not to have shown that there is none. A role goes to the heads with
    ``yes``. "Yes" and "no" keep ``alpha`` each: with a correction that controls it, the chance of
    any wrong answer of either kind is up to 2 * ``alpha``.

    With few examples or clusters of right-skewed scores, as most are, wrong "no" are more frequent
    than ``alpha`` says and wrong "yes" less: of t-tests, sign flips and max-T alike, and a little
    less so of ``bootstrap_t``.

    ``untestable`` are roles with fewer than two examples, or clusters. With zero variance, or
    only that of rounding, the mean decides. Neither enters the correction. Contrasts
    (``...:beyond_offset``) are tested against 0. ``block:evenness`` is no role: its mean is the
    column ``evenness`` of ``block``. A role that no example has (``block`` without pairs) is left
    out; the provenance names it.

    Args:
        scores: from `score_heads`.
        threshold: None takes 3 for bias scores, the published one, three times as much attention
            as uniform; and 0.1 for excess scores.
        alpha: level of the tests of each direction, below 0.5; confidence intervals have level
            ``1 - alpha``.
        test: ``"t"``, one-sample t-test, cluster-robust with clusters; ``"sign_flip"``, by
            flipping signs of clusters, which takes scores to be symmetric instead of normal;
            ``"bootstrap_t"``, by resampling clusters; ``"wilcoxon"``, signed ranks, for
            ``groups="none"`` only. Wilcoxon's test is of the pseudo-median, the center of
            symmetric scores, not of the mean: a head with skewed scores and a mean above the
            threshold can get "no".
        correction: ``fdr_bh``, ``fdr_by``, ``fdr_tsbh``, ``holm``, ``hochberg``,
            ``bonferroni``, ``none``, or ``max_t`` (step-down max-T, for sign flips only).
            Adjusted p-values are never below those of the single tests.
        family: ``"all"`` tests are one family, or the heads of each ``"role"`` are.
        groups: ``"document"`` takes the documents of the corpus as clusters, ``"none"`` takes
            examples as independent, ``"auto"`` clusters if there is more than one document.
        interval: ``"t"``, ``"bootstrap_t"`` or ``"bca"``, each mean by itself; or
            ``"simultaneous"``, all means of a family at once.
        resamples: number of sign flips or of bootstrap samples.
        seed: of these; the same seed gives the same table.
        preset: ``"published"`` tests as the released notebooks do (t-test, independent examples,
            no correction, population standard deviation), for comparison with them only. Their
            numbers also need scores with their band edge:
            ``score_heads(..., published_edge=True)``.

    Raises:
        UsageError: an option outside its range, or options or scores that do not go together.
    """
    options = TestOptions.of_preset(
        preset,
        threshold=threshold,
        alpha=alpha,
        test=test,
        correction=correction,
        family=family,
        groups=groups,
        interval=interval,
        resamples=resamples,
        seed=seed,
    )
    if preset == PUBLISHED and kind_of(scores) != "bias":
        raise UsageError(
            f"the published tests are of bias scores, and these are {kind_of(scores)} scores; "
            "score again with score='bias' (--score bias), or leave the preset out"
        )
    hypotheses = Hypotheses.of(scores, options)
    evidence = weigh(hypotheses)
    tests = {
        **asdict(hypotheses.options),
        "preset": preset,
        "clustered_by": "none" if hypotheses.groups is None else "document",
        "n_clusters": hypotheses.n_clusters,
        "left_out": [role for role in scores.roles if role not in (*hypotheses.roles, EVENNESS)],
        "warnings": warnings(hypotheses, evidence),
    }
    frame = _frame(hypotheses, evidence, scores)
    return RoleTable(frame, {**scores.provenance, "tests": tests})


def _frame(hypotheses: Hypotheses, evidence: Evidence, scores: HeadScores) -> pd.DataFrame:
    described = evidence.described
    frame = pd.DataFrame(
        {
            "layer": hypotheses.layer,
            "head": hypotheses.head,
            "role": hypotheses.role_names,
            "n": described.n,
            "n_clusters": described.n_groups,
            "mean": described.mean,
            "sd": described.sd,
            "effect_size": described.effect_size,
            "ci_low": evidence.ci_low,
            "ci_high": evidence.ci_high,
            "threshold": hypotheses.threshold,
            "statistic": evidence.statistic,
            "p_value": evidence.p_above,
            "p_adjusted": evidence.p_above_adjusted,
            "p_below": evidence.p_below,
            "p_below_adjusted": evidence.p_below_adjusted,
            "answer": evidence.answer.astype(object),
            "assigned": evidence.answer == YES,
            "evenness": _evenness(hypotheses, scores),
            "note": notes(described).astype(object),
        }
    )
    _note_windows(frame, scores)
    frame.loc[evidence.is_skewed & (frame["note"] == "").to_numpy(), "note"] = SKEWED
    return frame[list(COLUMNS)]


def _evenness(hypotheses: Hypotheses, scores: HeadScores) -> FloatArray:
    """Mean evenness (tests,) of the heads in the rows of ``block``, NaN in all others."""
    evenness = np.full(hypotheses.n_tests, np.nan)
    if EVENNESS in scores.roles and "block" in hypotheses.roles:
        rows = hypotheses.role == hypotheses.roles.index("block")
        measured = scores.values[..., scores.roles.index(EVENNESS)].reshape(scores.n_examples, -1)
        evenness[rows] = one_sample_t(measured, 0).mean
    return evenness


def _note_windows(frame: pd.DataFrame, scores: HeadScores) -> None:
    """Note what it does to roles that a layer sees only a window of the longest examples."""
    reaches: Sequence[int | None] = scores.provenance.get("reaches", ())
    farthest = int(scores.lengths.max()) - 1
    for layer, reach in enumerate(reaches):
        if reach is None or reach >= farthest:
            continue
        here = (frame["layer"] == layer) & (frame["note"] == "")
        seen = f"attention of this layer reaches {reach} positions"
        frame.loc[here & (frame["role"] == "local"), "note"] = f"{seen}: partly architecture"
        # Near an end of the example a window is cut short, and each key in it gets more.
        frame.loc[here & frame["role"].map(is_contrast), "note"] = (
            f"{seen}, fewer at the ends: contrasts are approximate"
        )
