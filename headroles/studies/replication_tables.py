"""What replication gives: in how many sets heads have roles, or how many heads per layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import pandas as pd

from headroles.formats import to_records
from headroles.results import Axes, Grid, Result, Shown, Warned
from headroles.roles import is_contrast
from headroles.studies.forms import ReplicationForm
from headroles.testing import describe_correction
from headroles.wording import listed

COLUMNS = (
    *("layer", "head", "role", "sets", "shown_in"),
    *("at_least", "log_e", "p_adjusted", "replicated"),
)
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
        for name, roles in self.asked["lacking"].items():
            yield Warned(f"{name} has no example of these roles: {', '.join(roles)}")
        if dropped := self.asked["left_out"]:
            yield Warned(
                "roles that fewer than two sets have, or that sets define differently, are left "
                f"out: {', '.join(dropped)}"
            )


@dataclass(frozen=True, repr=False, eq=False)
class Replication(_Replicated):
    """In at least how many of k score sets each head has each role.

    ``frame`` has a row per layer, head, role and number ``at_least`` from 1 to k, and the columns
    of ``COLUMNS``. ``sets`` is the number of those in which the role could be tested at all.
    ``shown_in`` has the names, with commas between them, of those that show the role each by
    itself, corrected over its own tests: they can be fewer than ``at_least``, which adds up the
    evidence of several sets, or more. ``log_e`` is the natural logarithm of the evidence that it is
    in at least so many, ``p_adjusted`` min(1, 1 / E) corrected over the family of all heads and
    roles for this number, ``replicated`` whether that is at most alpha.
    """

    kind: ClassVar[str] = "replication"
    stem: ClassVar[str] = "replication"
    cure: ClassVar[str] = "make one with: headroles replicate DIR DIR --out REPLICATION"
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    views: ClassVar[tuple[str, ...]] = ("long", "heads", "counts", "sets", "layers")

    @classmethod
    def axes(cls, record: dict[str, Any]) -> Axes:
        """Return those of all heads and roles, by numbers of sets."""
        numbers = [(k + 1,) for k in range(len(record["replication"]["names"]))]
        return {**dict.fromkeys((("layer",), ("head",), ("role",)), ()), ("at_least",): numbers}

    def heads(self) -> pd.DataFrame:
        """A row per head and role: in ``at_least`` how many sets it was shown, and ``shown_in``."""
        shown = self.frame["at_least"].where(self.frame["replicated"], 0)
        by_head = self.frame.assign(at_least=shown).groupby(["layer", "head", "role"], sort=False)
        heads: pd.DataFrame = by_head.agg({"at_least": "max", "shown_in": "first"}).reset_index()
        return heads

    def sets(self) -> pd.DataFrame:
        """Number of heads that each set shows by itself: a row per role, a column per set."""
        heads = self.heads()
        named = heads["shown_in"].str.split(", ")
        shown = {name: [name in names for names in named] for name in self.asked["names"]}
        return pd.DataFrame(shown).groupby(heads["role"], sort=False).sum()

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
        """Heads per role by the number of sets, and in each set by itself."""
        counts, sets = self.counts(), self.sets()
        k = len(self.asked["names"])
        yield (
            f"heads per role that have it in at least 1 to {k} of the sets, and in each by itself\n"
            f"{self._title()}\n"
        )
        both = counts.rename(columns=str).join(sets)
        both.loc["all"] = both.sum()
        rows = tuple((str(role), *map(str, row)) for role, *row in both.itertuples())
        yield Grid(("role", *both.columns), rows, bold=str(k))
        if not self.asked["independent"]:
            yield (
                "the sets share examples, or the seed of a random order (--shuffle-seed): evidence "
                "is averaged over them, and not multiplied\n"
            )
        yield from self._warned()

    def details(self) -> Iterator[Shown]:
        """Heads per role and layer that have it in all sets."""
        k = len(self.asked["names"])
        everywhere = self.layers().pivot_table(index="role", columns="layer", values=k, sort=False)
        rows = tuple(
            (str(role), *(str(n) if n else "." for n in row))
            for role, *row in everywhere.astype(int).itertuples()
        )
        yield f"heads per layer that have the role in all {k} sets\n"
        yield Grid(("role", *(f"layer {layer}" for layer in everywhere.columns)), rows)

    def facts(self) -> dict[str, Any]:
        """The same for scripts, with the heads of every role."""
        heads = self.heads()
        return {
            "replication": self.asked,
            "heads_per_role": self.counts().to_dict(orient="index"),
            "heads_by_set": self.sets().to_dict(orient="index"),
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
