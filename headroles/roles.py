"""HeadScores -> RoleTable: which heads have which roles, by hypothesis test."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headroles import storage
from headroles.errors import StorageError, UsageError
from headroles.export import export_frame
from headroles.inference import (
    CORRECTIONS,
    DEGENERATE,
    UNTESTABLE,
    OneSampleResult,
    adjust_p_values,
    one_sample_t,
)
from headroles.scores import HeadScores
from headroles.storage import ROLES_CSV, ROLES_FILE, RUN_FILE

FAMILIES = ("all", "role")
PRESETS = ("default", "published")
SHAPES = ("long", "wide")
COLUMNS = (
    "layer",
    "head",
    "role",
    "n",
    "mean",
    "sd",
    "effect_size",
    "ci_low",
    "ci_high",
    "threshold",
    "statistic",
    "p_value",
    "p_adjusted",
    "assigned",
    "note",
)
VALUES = COLUMNS[3:]
"""The columns that a wide table can show."""
_NOTES = {
    UNTESTABLE: "untestable: fewer than two examples",
    DEGENERATE: "degenerate: zero variance, decided by the mean",
}


def check_preset(preset: str) -> None:
    """Raise UsageError for a preset that there is not."""
    if preset not in PRESETS:
        raise UsageError(f"the preset is {preset!r}; it must be one of {', '.join(PRESETS)}")


@dataclass(frozen=True)
class TestOptions:
    """How roles are assigned: a role goes to a head if its adjusted p-value is below ``alpha``.

    ``family`` says which tests are corrected together: ``"all"`` heads and roles, or the heads
    of each ``"role"``. ``ddof`` 0 is the standard deviation of the released notebooks.
    """

    threshold: float = 3.0
    alpha: float = 0.05
    correction: str = "fdr_bh"
    family: str = "all"
    ddof: int = 1

    __test__ = False  # not a test case, whatever its name says to pytest

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha is {self.alpha}; it must lie between 0 and 1")
        if not np.isfinite(self.threshold):
            raise UsageError(f"the threshold is {self.threshold}; it must be a finite number")
        for name, value, allowed in (
            ("correction", self.correction, CORRECTIONS),
            ("family", self.family, FAMILIES),
        ):
            if value not in allowed:
                raise UsageError(f"the {name} is {value!r}; it must be one of {', '.join(allowed)}")

    @classmethod
    def of_preset(
        cls, preset: str, threshold: float, alpha: float, correction: str, family: str
    ) -> TestOptions:
        """The options of a preset: ``"default"`` takes them as given.

        ``"published"`` tests as the released notebooks do: no correction, population standard
        deviation. Raises UsageError for an unknown preset or an option outside its range.
        """
        check_preset(preset)
        given = cls(threshold, alpha, correction, family)
        return replace(given, correction="none", ddof=0) if preset == "published" else given


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

    def counts(self) -> pd.DataFrame:
        """Number of heads with each role: a row per role, a column per layer, and the total."""
        counts = self.frame.pivot_table(
            index="role", columns="layer", values="assigned", aggfunc="sum", sort=False
        ).astype(int)
        return counts.assign(total=counts.sum(axis=1)).rename_axis(columns=None)

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
        """Write the files of `save` into an existing folder, each whole or not at all."""
        for name, fmt in ((ROLES_CSV, "csv"), (ROLES_FILE, "parquet")):
            storage.write_bytes(folder / name, self.export(fmt))
        storage.write_json(folder / RUN_FILE, self.provenance)

    @classmethod
    def load(cls, folder: str | Path) -> RoleTable:
        """Read back what `save` wrote. Raises StorageError where that is not possible."""
        folder = Path(folder)
        if not (folder / ROLES_FILE).is_file() and (folder / storage.SCORES_FILE).is_file():
            raise StorageError(
                f"{folder} holds scores that were not tested yet; run: headroles assign {folder}"
            )
        provenance = storage.read_json(folder / RUN_FILE)
        return cls(storage.read_table(folder / ROLES_FILE).to_pandas(), provenance)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        n_assigned = int(self.frame["assigned"].sum())
        head = f"RoleTable({len(self.frame)} tests, {n_assigned} roles assigned; heads per layer)"
        return f"{head}\n{self.counts().to_string()}"

    def _repr_html_(self) -> str:
        return str(self.counts().to_html())


def assign_roles(
    scores: HeadScores,
    *,
    threshold: float = 3.0,
    alpha: float = 0.05,
    correction: str = "fdr_bh",
    family: str = "all",
    preset: str = "default",
) -> RoleTable:
    """Test for every head and role whether its mean score lies above ``threshold``.

    The unit is the example. H0: mean <= threshold, H1: mean > threshold, one-sample t-test, and
    a correction over the family of tests. A role with fewer than two examples is not tested; one
    with zero variance is decided by its mean; neither enters the correction. A role that no
    example has (``block`` without pairs) is left out of the table; the provenance names it.

    Args:
        scores: from `score_heads`.
        threshold: 3 is the published one: three times as much attention as uniform.
        alpha: level of the tests; confidence intervals have level ``1 - alpha``.
        correction: ``fdr_bh``, ``fdr_by``, ``fdr_tsbh``, ``holm``, ``hochberg``,
            ``bonferroni`` or ``none``.
        family: ``"all"`` tests are one family, or the heads of each ``"role"`` are.
        preset: ``"published"`` tests as the released notebooks do (no correction, population
            standard deviation), for comparison with them only. Their numbers also need scores
            with their band edge: ``score_heads(..., published_edge=True)``.

    Raises:
        UsageError: an option outside its range.
    """
    options = TestOptions.of_preset(preset, threshold, alpha, correction, family)
    there = np.flatnonzero(scores.counts.any(axis=0))
    roles = [scores.roles[role] for role in there]
    columns = np.moveaxis(scores.values[..., there], -1, 1).reshape(scores.n_examples, -1)
    result = one_sample_t(columns, threshold, confidence=1 - alpha, ddof=options.ddof)
    tests = {
        **asdict(options),
        "preset": preset,
        "left_out": [role for role in scores.roles if role not in roles],
    }
    return RoleTable(_frame(scores, roles, result, options), {**scores.provenance, "tests": tests})


def _frame(
    scores: HeadScores, roles: list[str], result: OneSampleResult, options: TestOptions
) -> pd.DataFrame:
    role, layer, head = (
        axis.ravel() for axis in np.indices((len(roles), scores.n_layers, scores.n_heads))
    )
    families = role if options.family == "role" else np.zeros_like(role)
    p_adjusted = adjust_p_values(result.p_value, options.correction, families, options.alpha)
    by_mean = (result.status == DEGENERATE) & (result.mean > options.threshold)
    frame = pd.DataFrame(
        {
            **{name: getattr(result, name) for name in COLUMNS if hasattr(result, name)},
            "layer": layer,
            "head": head,
            "role": np.asarray(roles, dtype=object)[role],
            "threshold": options.threshold,
            "p_adjusted": p_adjusted,
            "assigned": (p_adjusted < options.alpha) | by_mean,
            "note": [_NOTES.get(str(status), "") for status in result.status],
        }
    )
    for windowed, reach in enumerate(scores.provenance.get("reaches", ())):
        if reach is not None:
            here = (frame["layer"] == windowed) & (frame["role"] == "local")
            frame.loc[here & (frame["note"] == ""), "note"] = (
                f"attention of this layer reaches {reach} positions: partly architecture"
            )
    return frame[list(COLUMNS)]
