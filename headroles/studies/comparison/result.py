"""RoleShifts: the tests of all differences, their views, and what people are shown of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
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
from headroles.roles import BIAS, is_contrast
from headroles.storage import Count, plain
from headroles.studies.classification.answers import is_arc
from headroles.studies.classification.summary import describe_limit
from headroles.studies.comparison.answers import (
    CERTIFIED,
    CHANGES,
    STATUSES,
    changed_most,
    count_answers,
    find_moved_heads,
    measure_agreement,
    summarise_layers,
)
from headroles.studies.comparison.role_changes import describe_dropped, summarized
from headroles.studies.heads import roles_in
from headroles.testing.answers import ANSWERS, UNTESTABLE
from headroles.testing.catalogue import TESTS
from headroles.testing.options import describe_correction
from headroles.testing.recorded import RecordedTests
from headroles.wording import listed

_SHOWN_HEADS = 10
_HAPPENED = ("kept", "gained", "lost", "changed", "trivial")
_COUNTS = (*STATUSES, *CHANGES, CERTIFIED)
_CERTIFIED = "certified"
"""Title of that column for people."""


class PairedTests(RecordedTests, frozen=True, kw_only=True):
    """Record of paired tests, with the margin within which means count as equal."""

    margin: float


class ShiftsRecord(SetsRecord, frozen=True, kw_only=True):
    """The sets that were compared, the first with all others, and what not all of them have."""

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
    intervals, and the margin, are in units of the score; what is not defined is NaN.

    ``changed`` says that the mean is not what it was, ``equivalent`` that it moved by less than
    the margin, ``change`` what follows from the two (`describe_change`), and ``status`` what
    became of the role (`role_status`). ``certified`` is ``change`` by betting, about
    ``certified_difference``, a mean in which documents count the same each; it asks for no
    distribution, and is empty for scores whose bounds were not kept.

    With ``shifts`` as `compare_roles` returns them:

    >>> shifts.with_status("lost")[["checkpoint", "layer", "head", "role"]]
      checkpoint  layer  head   role
    0      after      0     0  local
    >>> int(shifts.counts()["kept"].sum())
    0
    """

    record: ShiftsRecord

    kind: ClassVar[str] = "comparison"
    stem: ClassVar[str] = "shifts"
    cure: ClassVar[str] = "compare scores with: headroles compare BEFORE AFTER --out DIR"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "checkpoint layer head role n n_clusters mean_before mean_after difference sd "
            "standard_error effect_size ci_low ci_high statistic p_value p_adjusted changed "
            "margin p_equivalent p_equivalent_adjusted equivalent change certified "
            "certified_difference threshold answer_before answer_after status note"
        ).split()
    )
    own: ClassVar[Mapping[str, Column]] = {
        **dict.fromkeys(("answer_before", "answer_after"), one_of(*ANSWERS)),
        "status": one_of(*STATUSES),
        "change": one_of(*CHANGES.values(), UNTESTABLE),
        "certified": one_of(*CHANGES.values(), UNTESTABLE, ""),
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
        return self.has_rivals or any(map(is_contrast, self.roles))

    def shown(self) -> Iterator[Shown]:
        """Say how many roles were kept, lost and gained, by which heads."""
        yield from summarized(self)
        yield from map(Warned, self.record.warnings)

    def details(self) -> Iterator[Shown]:
        """Say what was compared and how; for each checkpoint its roles, layers and heads."""
        yield from _sides(self.record, self._limit())
        for checkpoint in self.checkpoints:
            if len(self.checkpoints) > 1:
                yield f"== before to {checkpoint} ==\n"
            yield self._roles_grid(checkpoint)
            yield self._agreement_grid(checkpoint)
            yield self._layers_grid(checkpoint)
            yield self._heads_grid(checkpoint)

    def _limit(self) -> str:
        """Name the thresholds of the means."""
        has_contrasts = any(map(is_contrast, self.roles))
        return describe_limit(self.record.tests, has_contrasts, self.has_rivals)

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
        rows = agreement[agreement["jaccard"].notna()].to_dict(orient="records")
        if not rows:
            return "no head was shown to have any role, before or after\n"
        level = f"{1 - self.record.tests.alpha:.0%}"
        sizes, measures = ("had", "has", "both"), ("jaccard", "kappa")
        cells = [
            (
                str(row["role"]),
                *(str(row[name]) for name in sizes),
                *(_interval(row, name) for name in measures),
            )
            for row in rows
        ]
        title = "agreement on who has a role"
        return Grid((title, "before", "after", "both", f"Jaccard ({level})", "kappa"), tuple(cells))

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
        """Return the heads that moved most; those that did not move at all are left out."""
        moved = _of(self.moved(), checkpoint)
        rows = moved[moved["effect_size"] > 0].to_dict(orient="records")
        if not rows:
            return "no head moved\n"
        cells = [
            (
                f"{row['layer']}-{row['head']}",
                in_digits(row["effect_size"]),
                str(row["changed"]),
                *([str(row[CERTIFIED])] if self.knows_bounds else []),
                str(row["role"]),
                f"{row['role_difference']:+.2g}",
            )
            for row in rows
        ]
        certified = [_CERTIFIED] if self.knows_bounds else []
        columns = ("heads that moved most", "effect size", "changes", *certified, "most in", "by")
        return Grid(columns, tuple(cells), left=frozenset(["most in"]))

    def facts(self) -> dict[str, Any]:
        """Return the result for scripts; null for what is not defined."""
        record = self.record
        names = ("options", "examples", "clustered_by", "n_clusters")
        return {
            "models": plain(record.models),
            "corpus": plain(record.corpus),
            **{
                key: getattr(record, key)
                for key in (*names, "dropped_examples", "dropped_roles", "warnings")
            },
            "checkpoints": {name: self._facts_of(name) for name in self.checkpoints},
        }

    def _facts_of(self, checkpoint: str) -> dict[str, Any]:
        counts = self._by_role(checkpoint)
        return {
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
        f"{describe_correction(tests.correction, tests.family)}); "
        f"equivalent: less than {tests.margin:g} apart\n"
        f"roles: mean {kind}score > {limit}, at either end\n"
    )


def _units(record: ShiftsRecord) -> str:
    if record.clustered_by == "none":
        return "taken as independent"
    return f"clustered by {record.n_clusters} documents"


def _interval(row: dict[Hashable, Any], name: str) -> str:
    """Return a number with its interval, as far as they are defined."""
    if math.isnan(row[name]):
        return "-"
    limits = [row[f"{name}_low"], row[f"{name}_high"]]
    shown = "" if any(map(math.isnan, limits)) else f" [{limits[0]:.2f}, {limits[1]:.2f}]"
    return f"{row[name]:.2f}{shown}"


def _of(table: pd.DataFrame, checkpoint: str) -> pd.DataFrame:
    return table[table["checkpoint"] == checkpoint].drop(columns="checkpoint")
