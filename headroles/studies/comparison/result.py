"""RoleShifts: the tests of all differences, their views, and their summary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
import pandas as pd

from headroles.errors import UsageError
from headroles.formats import to_records
from headroles.record import RecordedCorpus, ScoresRecord, SetsRecord
from headroles.results.columns import Column, one_of
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned, in_digits
from headroles.roles import BIAS, is_arc
from headroles.storage import Count, plain
from headroles.studies.classification.summary import describe_limit
from headroles.studies.comparison.answers import (
    CERTIFIED,
    CERTIFIED_SMALL,
    CHANGES,
    STATUSES,
    changed_most,
    count_answers,
    find_moved_heads,
    measure_agreement,
    summarise_layers,
)
from headroles.studies.comparison.role_changes import describe_dropped, find_outcome, summarized
from headroles.studies.heads import roles_in
from headroles.testing.answers import ANSWERS, UNTESTABLE
from headroles.testing.catalogue import TESTS
from headroles.testing.options import describe_correction
from headroles.testing.recorded import RecordedTests
from headroles.wording import listed

_SHOWN_HEADS = 10
_HAPPENED = ("kept", "gained", "lost", "changed")
_COUNTS = (*STATUSES, *CHANGES, CERTIFIED)
_CERTIFIED = "certified"
"""Title of that column for people."""


class PairedTests(RecordedTests, frozen=True, kw_only=True):
    """Record of paired tests, with the margin within which means count as equal."""

    margin: float


class ShiftsRecord(SetsRecord, frozen=True, kw_only=True):
    """Record of the compared sets, the first with all others, and of what was dropped."""

    sets: Annotated[dict[str, ScoresRecord], msgspec.Meta(min_length=2)]
    examples: Count
    clustered_by: str
    n_clusters: Count
    dropped_examples: dict[str, Count]
    dropped_roles: dict[str, list[str]]
    warnings: list[str]

    def __post_init__(self) -> None:
        self.read_options(PairedTests)

    @property
    def tests(self) -> PairedTests:
        """The record of the tests."""
        return self.read_options(PairedTests)

    @property
    def corpus(self) -> RecordedCorpus:
        """The corpus of the first set."""
        return next(iter(self.sets.values())).corpus

    @property
    def files(self) -> list[str]:
        """The files of the corpus, if it is one of files."""
        return self.corpus.files


@dataclass(frozen=True, repr=False, eq=False)
class RoleShifts(Result):
    """Changes of heads: a paired test for every checkpoint, role, layer and head.

    ``frame`` has the columns of ``columns``, ordered by checkpoint, role, layer and head; every
    checkpoint is compared with the scores before. Means, differences, their deviations, errors and
    intervals, and the margin, are in units of the score; undefined values are NaN.

    ``changed``: the mean is shown to have moved by more than the margin; ``equivalent``: by less;
    ``change`` follows from the two (`describe_change`), and ``status`` from the answers before and
    after (`role_status`). ``p_value`` is of no difference at all, uncorrected. ``certified`` says
    by betting whether ``certified_difference``, a mean in which every document counts the same,
    differs from 0 (``"changed"``), lies within the margin (``"equivalent"``), or both
    (``"trivial"``); it holds for any distribution, and is empty for scores without stored bounds.

    With ``shifts`` as `compare_roles` returns them:

    >>> shifts.with_status("lost")[["checkpoint", "layer", "head", "role"]]
      checkpoint  layer  head   role
    0      after      0     0  local
    >>> int(shifts.counts()["kept"].sum())
    0
    """

    record: ShiftsRecord

    kind: ClassVar[str] = "comparison"
    figures: ClassVar[Mapping[str, str]] = {
        "heads": "headroles.studies.comparison.figures:draw_changed_heads",
        "changes": "headroles.studies.comparison.figures:draw_changes",
        "trajectory": "headroles.studies.comparison.figures:draw_trajectory",
    }
    page: ClassVar[str] = "headroles.studies.comparison.page:comparison_page"
    stem: ClassVar[str] = "shifts"
    remedy: ClassVar[str] = "compare scores with: headroles compare BEFORE AFTER --out DIR"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "checkpoint layer head role n n_clusters mean_before mean_after difference sd "
            "standard_error effect_size ci_low ci_high statistic p_value margin p_changed "
            "p_changed_adjusted changed p_equivalent p_equivalent_adjusted equivalent change "
            "certified certified_difference threshold answer_before answer_after status note"
        ).split()
    )
    own: ClassVar[Mapping[str, Column]] = {
        **dict.fromkeys(("answer_before", "answer_after"), one_of(*ANSWERS)),
        "status": one_of(*STATUSES),
        "change": one_of(*CHANGES.values(), UNTESTABLE),
        "certified": one_of(*CHANGES.values(), CERTIFIED_SMALL, UNTESTABLE, ""),
    }
    views: ClassVar[tuple[str, ...]] = ("long", "counts", "layers", "agreement", "moved")

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return a sentence on the tests, and the work to cite."""
        return (
            "We tested for each head and role whether its score changed, by paired tests over the "
            "same examples.",
        ), ("pande",)

    def clearest_role(self) -> str:
        """Return the role that changed most."""
        return changed_most(self.frame)[0]

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Names of the score sets after, in the order of the table."""
        return tuple(dict.fromkeys(self.frame["checkpoint"]))

    @property
    def knows_bounds(self) -> bool:
        """Whether changes could be certified."""
        return bool((self.frame["certified"] != "").any())

    @property
    def roles(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return roles_in(self.frame)

    def with_status(self, status: str) -> pd.DataFrame:
        """Return rows with a status, as ``"gained"``, largest standardised difference first.

        Raises UsageError for anything that is not one of ``STATUSES``.
        """
        if status not in STATUSES:
            raise UsageError(f"the status is {status!r}; it must be one of {', '.join(STATUSES)}")
        rows = self.frame[self.frame["status"] == status]
        return rows.sort_values("effect_size", key=abs, ascending=False, kind="stable")

    def counts(self) -> pd.DataFrame:
        """Return heads by status for each checkpoint, role and layer, as `count_answers` does."""
        return count_answers(self.frame)

    def layers(self) -> pd.DataFrame:
        """Measure how far each layer moved, as `summarise_layers` does."""
        return summarise_layers(self.frame)

    def agreement(self) -> pd.DataFrame:
        """Measure how far the tables before and after agree, as `measure_agreement` does."""
        return measure_agreement(self.frame, self.record.tests.alpha)

    def moved(self, n: int = _SHOWN_HEADS) -> pd.DataFrame:
        """Return the ``n`` heads of each checkpoint that moved most, as `find_moved_heads` does."""
        return find_moved_heads(self.frame, n)

    @property
    def has_rivals(self) -> bool:
        """Whether roles of arcs were compared with the best fixed offset."""
        of_arcs = self.frame["threshold"][self.frame["role"].map(is_arc)].dropna()
        return not np.allclose(of_arcs, self.record.tests.threshold)

    @property
    def controls_distance(self) -> bool:
        """Whether arcs were compared with other words at the same distance."""
        return self.has_rivals or bool(self.record.tests.distance_margin)

    def summarize(self) -> Iterator[Shown]:
        """Count roles that were kept, lost and gained, and name their heads."""
        yield from summarized(self)
        yield from map(Warned, self.record.warnings)

    def details(self) -> Iterator[Shown]:
        """Describe sides and tests; for each checkpoint tabulate its roles, layers and heads."""
        limit = describe_limit(self.record.tests, self.has_rivals)
        yield from _sides(self.record, limit)
        for checkpoint in self.checkpoints:
            if len(self.checkpoints) > 1:
                yield f"== before to {checkpoint} ==\n"
            yield self._roles_grid(checkpoint)
            yield self._agreement_grid(checkpoint)
            yield self._layers_grid(checkpoint)
            yield self._heads_grid(checkpoint)

    def _roles_grid(self, checkpoint: str) -> Grid:
        """Count the heads of each role by status and by the change of their means.

        Of several checkpoints only roles in which something happened are shown.
        """
        counts = self._by_role(checkpoint)
        shown = [name for name in _COUNTS if name != "untestable" or counts[name].any()]
        if not self.knows_bounds:
            shown.remove(CERTIFIED)
        rows = counts[shown]
        if len(self.checkpoints) > 1:
            rows = rows[rows[list(_HAPPENED)].any(axis=1)]
        cells = [
            (str(role), *(str(n) if n else "." for n in row))
            for role, row in zip(rows.index, rows.to_numpy(), strict=True)
        ]
        cells.append(("all roles", *map(str, counts[shown].sum())))
        return Grid(
            ("heads by role", *(_CERTIFIED if name == CERTIFIED else name for name in shown)),
            tuple(cells),
        )

    def _by_role(self, checkpoint: str) -> pd.DataFrame:
        """Count heads: a row per role, the columns of ``_COUNTS``."""
        counts = _of(self.counts(), checkpoint)
        return counts.groupby("role", sort=False)[list(_COUNTS)].sum()

    def _agreement_grid(self, checkpoint: str) -> Shown:
        """Tabulate the agreement on roles that any head has before or after."""
        agreement = _of(self.agreement(), checkpoint)
        rows = agreement[agreement["jaccard"].notna()]
        if rows.empty:
            return "no head was shown to have any role, before or after\n"
        cells = {
            "agreement on who has a role": "{role}",
            "before": "{had}",
            "after": "{has}",
            "both": "{both}",
            f"Jaccard ({1 - self.record.tests.alpha:.0%})": "{jaccard}",
            "kappa": "{kappa}",
        }
        intervals = {name: _intervals(rows, name) for name in ("jaccard", "kappa")}
        return Grid.of(rows.assign(**intervals), cells)

    def _layers_grid(self, checkpoint: str) -> Grid:
        layers = _of(self.layers(), checkpoint)
        rows = (
            ("tests that found a change", *(f"{share:.0%}" for share in layers["changed"])),
            ("mean absolute effect size", *map(in_digits, layers["effect_size"])),
            ("the same if nothing changed", *map(in_digits, layers["chance"])),
            *(
                (f"roles {name}", *(str(n) if n else "." for n in layers[name]))
                for name in ("gained", "lost")
            ),
        )
        return Grid(("layers", *map(str, layers["layer"])), rows)

    def _heads_grid(self, checkpoint: str) -> Shown:
        """Tabulate the heads that moved most, without heads that did not move at all."""
        moved = _of(self.moved(), checkpoint)
        moved = moved[moved["effect_size"] > 0]
        if moved.empty:
            return "no head moved\n"
        cells = {
            "heads that moved most": "{layer}-{head}",
            "effect size": "{effect_size:.2f}",
            "changes": "{changed}",
            **({_CERTIFIED: f"{{{CERTIFIED}}}"} if self.knows_bounds else {}),
            "most in": "{role}",
            "by": "{role_difference:+.2g}",
        }
        return Grid.of(moved, cells, left=["most in"])

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts; undefined values are null."""
        record = self.record
        names = ("options", "examples", "clustered_by", "n_clusters", "dropped_examples")
        return {
            "models": plain(record.models),
            "corpus": plain(record.corpus),
            **{name: getattr(record, name) for name in (*names, "dropped_roles", "warnings")},
            "checkpoints": {name: self._facts_of(name) for name in self.checkpoints},
        }

    def _facts_of(self, checkpoint: str) -> dict[str, Any]:
        counts = self._by_role(checkpoint)
        return {
            "outcome": asdict(find_outcome(self, checkpoint)),
            "heads": {name: int(total) for name, total in counts.sum().items()},
            "roles": to_records(counts.reset_index()),
            "agreement": to_records(_of(self.agreement(), checkpoint)),
            "layers": to_records(_of(self.layers(), checkpoint)),
            "moved": to_records(_of(self.moved(), checkpoint)),
        }


def _sides(record: ShiftsRecord, limit: str) -> Iterator[str]:
    """Describe the models, the corpus and the tests; ``limit`` names the thresholds."""
    tests = record.tests
    width = max(map(len, (*record.sets, "dropped")))
    for name, one in record.sets.items():
        shape = f"{one.model.family or '?'}, {one.layers} layers x {one.heads} heads"
        yield f"{name:<{width}} {one.model.model or 'made by hand'} ({shape})"
    yield (
        f"{'corpus':<{width}} {listed(record.corpus.files)}\n"
        f"{'':<{width}} {record.examples} examples that all have, {_units(record)}"
    )
    if dropped := describe_dropped(record):
        yield f"{'dropped':<{width}} {dropped}"
    kind = "" if record.score == BIAS.name else f"{record.score} "
    yield (
        f"\npaired {TESTS[tests.test].words}, before and after (alpha {tests.alpha:g}, "
        f"{describe_correction(tests.correction)}); "
        f"changed: more than {tests.margin:g} apart, equivalent: less\n"
        f"roles: mean {kind}score > {limit}, at either end\n"
    )


def _units(record: ShiftsRecord) -> str:
    if record.clustered_by == "none":
        return "taken as independent"
    return f"clustered by {record.n_clusters} documents"


def _intervals(rows: pd.DataFrame, name: str) -> list[str]:
    """Write the numbers of a column with their intervals, if defined."""
    limits = zip(rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return [
        in_digits(number) + ("" if math.isnan(low + high) else f" [{low:.2f}, {high:.2f}]")
        for number, low, high in limits
    ]


def _of(table: pd.DataFrame, checkpoint: str) -> pd.DataFrame:
    return table[table["checkpoint"] == checkpoint].drop(columns="checkpoint")
