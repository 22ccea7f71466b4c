"""What replication gives: in how many sets heads have roles, or how many heads per layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import pandas as pd

from headroles.formats import to_records
from headroles.results import Grid, Result, Shown, Warned
from headroles.roles import is_contrast
from headroles.studies.forms import ReplicationForm
from headroles.studies.heads import roles_in
from headroles.testing import describe_correction
from headroles.wording import listed

COLUMNS = ("layer", "head", "role", "sets", "at_least", "log_e", "p_adjusted", "replicated")
LAYER_COLUMNS = ("set", "role", "layer", "heads", "with_role")


class _Replicated(Result):
    """What both tables of replication have in common."""

    form: ClassVar[type[msgspec.Struct]] = ReplicationForm

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for, and of which sets."""
        asked: dict[str, Any] = self.provenance["replication"]
        return asked

    def _title(self) -> str:
        asked = self.asked
        correction = describe_correction(asked["correction"], asked["family"])
        contrasts = "; of contrasts > 0" * bool(self.frame["role"].map(is_contrast).any())
        return (
            f"{asked['score']} > {asked['threshold']:g}{contrasts} in {len(asked['names'])} "
            f"{asked['over']}: "
            f"{listed(asked['names'])}\n(by betting, alpha {asked['alpha']:g}, {correction})"
        )

    def _warned(self) -> Iterator[Shown]:
        yield from map(Warned, self.asked.get("warnings", ()))
        if dropped := self.asked["left_out"]:
            yield Warned(f"not all sets have these roles, which are left out: {', '.join(dropped)}")


@dataclass(frozen=True, repr=False, eq=False)
class Replication(_Replicated):
    """In at least how many of k score sets each head has each role.

    ``frame`` has a row per layer, head, role and number ``at_least`` from 1 to k, and the columns
    of ``COLUMNS``. ``sets`` are those in which the role could be tested at all. ``log_e`` is the
    natural logarithm of the evidence that it is in at least so many, ``p_adjusted`` min(1, 1 / E)
    corrected over the family of all heads and roles for this number, ``replicated`` whether that
    is at most alpha.
    """

    kind: ClassVar[str] = "replication"
    stem: ClassVar[str] = "replication"
    cure: ClassVar[str] = "make one with: headroles replicate DIR DIR --out REPLICATION"
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    views: ClassVar[tuple[str, ...]] = ("long", "heads", "counts", "layers")

    def heads(self) -> pd.DataFrame:
        """Columns layer, head, role, and in ``at_least`` how many sets it was shown; 0 for none."""
        shown = self.frame["at_least"].where(self.frame["replicated"], 0)
        by_head = self.frame.assign(at_least=shown).groupby(["layer", "head", "role"], sort=False)
        heads: pd.DataFrame = by_head[["at_least"]].max().reset_index()
        return heads

    def counts(self) -> pd.DataFrame:
        """Number of heads: a row per role, a column per number of sets that it was shown for."""
        counts = self.frame.pivot_table(
            index="role", columns="at_least", values="replicated", aggfunc="sum", sort=False
        )
        return counts.astype(int).rename_axis(columns=None)

    def layers(self) -> pd.DataFrame:
        """Number of heads by role and layer: a column per number of sets."""
        counts = self.frame.pivot_table(
            index=["role", "layer"],
            columns="at_least",
            values="replicated",
            aggfunc="sum",
            sort=False,
        )
        return counts.astype(int).rename_axis(columns=None).reset_index()

    def shown(self) -> Iterator[Shown]:
        """Heads per role by the number of sets, and per layer those shown for all sets."""
        counts, layers = self.counts(), self.layers()
        k = len(self.asked["names"])
        everywhere = layers.pivot_table(index="role", columns="layer", values=k, sort=False)
        in_all: list[list[int]] = everywhere.to_numpy(dtype=int).tolist()
        yield (
            f"heads per role that have it in at least 1 to {k} of the sets, and by layer in all {k}"
            f"\n{self._title()}\n"
        )
        rows = [
            (
                role,
                *map(str, counts.loc[role]),
                *(str(n) if n else "." for n in of_layers),
            )
            for role, of_layers in zip(roles_in(self.frame), in_all, strict=True)
        ]
        names = (*map(str, counts.columns), *(f"layer {n}: {k}" for n in everywhere.columns))
        total = (*counts.sum().tolist(), *everywhere.sum().tolist())
        rows.append(("all", *(str(int(n)) for n in total)))
        yield Grid(("role", *names), tuple(rows), bold=str(k))
        if not self.asked["independent"]:
            yield (
                "the sets share examples, or the seed of a random order (--shuffle-seed): evidence "
                "is averaged over them, and not multiplied\n"
            )
        yield from self._warned()

    def facts(self) -> dict[str, Any]:
        """The same for scripts, with the heads of every role."""
        heads = self.heads()
        return {
            "replication": self.asked,
            "heads_per_role": self.counts().to_dict(orient="index"),
            "heads": to_records(heads[heads["at_least"] > 0]),
        }


@dataclass(frozen=True, repr=False, eq=False)
class LayerCounts(_Replicated):
    """How many heads of each layer have each role in score sets whose heads are no counterparts.

    ``frame`` has a row per set, role and layer and the columns of ``LAYER_COLUMNS``: how many heads
    there are, and how many were shown to have the role, each set corrected by itself.
    """

    kind: ClassVar[str] = "layer counts"
    stem: ClassVar[str] = "layer_counts"
    cure: ClassVar[str] = "make them with: headroles replicate DIR DIR --over seeds --out COUNTS"
    columns: ClassVar[tuple[str, ...]] = LAYER_COLUMNS
    views: ClassVar[tuple[str, ...]] = ("long", "summary")

    def summary(self) -> pd.DataFrame:
        """Fewest and most heads with a role among the sets, and their mean, by role and layer."""
        by_layer = self.frame.groupby(["role", "layer"], sort=False)["with_role"]
        summary: pd.DataFrame = by_layer.agg(["min", "mean", "max"]).reset_index()
        return summary

    def shown(self) -> Iterator[Shown]:
        """For each role and layer the fewest and the most heads with the role."""
        summary = self.summary()
        summary["range"] = [
            f"{low}" if low == high else f"{low}-{high}"
            for low, high in zip(summary["min"], summary["max"], strict=True)
        ]
        ranges = summary.pivot_table(
            index="role", columns="layer", values="range", aggfunc="first", sort=False
        )
        yield f"heads per layer, fewest and most among the sets\n{self._title()}\n"
        rows = tuple((str(role), *map(str, row)) for role, *row in ranges.itertuples())
        yield Grid(("role", *map(str, ranges.columns)), rows)
        yield from self._warned()

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {"replication": self.asked, "layers": to_records(self.summary())}
