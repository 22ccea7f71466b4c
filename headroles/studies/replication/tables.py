"""Results of replication: numbers of sets in which heads have roles, or of heads per layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from headroles.formats import to_records
from headroles.record import SetsRecord
from headroles.results.columns import Axes
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.roles import contrast_of, in_words, is_contrast
from headroles.storage import plain
from headroles.studies.classification.answers import arcs_among, split_roles
from headroles.studies.classification.summary import NOT_CONTROLLED, error_rate, in_units, unit_of
from headroles.testing.options import describe_correction
from headroles.testing.recorded import RecordedLevel
from headroles.wording import head_name, listed, named_heads


class Replicated(RecordedLevel, frozen=True, kw_only=True):
    """Record of the tests over several score sets, and of roles missing in some."""

    over: str
    score: str
    names: list[str]
    independent: bool
    left_out: list[str]
    lacking: dict[str, list[str]]
    warnings: list[str]


class ReplicationRecord(SetsRecord, frozen=True, kw_only=True):
    """Record of the sets, and of the tests over them."""

    replication: Replicated


@dataclass(frozen=True, repr=False, eq=False)
class _Replicated(Result):
    """Base of both tables of replication."""

    record: ReplicationRecord

    @property
    def asked(self) -> Replicated:
        """The record of the options and the sets."""
        return self.record.replication

    def _title(self) -> str:
        asked = self.asked
        correction = describe_correction(asked.correction, asked.family)
        contrasts = "; of contrasts > 0" * bool(self.frame["role"].map(is_contrast).any())
        return (
            f"{asked.score} > {asked.threshold:g}{contrasts} in {len(asked.names)} "
            f"{asked.over}: "
            f"{listed(asked.names)}\n(by betting, alpha {asked.alpha:g}, {correction})"
        )

    def _warned(self) -> Iterator[Shown]:
        yield from map(Warned, self.asked.warnings)
        for name, roles in self.asked.lacking.items():
            yield Warned(f"{name} has no example of these roles: {', '.join(roles)}")
        if dropped := self.asked.left_out:
            yield Warned(
                "roles that fewer than two sets have, or that sets define differently, are "
                f"skipped: {', '.join(dropped)}"
            )


@dataclass(frozen=True, repr=False, eq=False)
class Replication(_Replicated):
    """In at least how many of k score sets each head has each role.

    ``frame`` has a row per layer, head, role and number ``at_least`` from 1 to k, and the columns
    of ``columns``. ``sets`` is the number of sets in which the role could be tested.
    ``shown_in`` names, with commas between them, the sets that show the role each by
    itself, corrected over its own tests: fewer than ``at_least``, which adds up the
    evidence of several sets, or more. ``mean`` is the smallest among the ``at_least`` sets with the
    largest mean scores; NaN if fewer were tested. ``log_e`` is the natural logarithm of the
    evidence that at least so many sets have the role, ``p_adjusted`` min(1, 1 / E) corrected over
    the family of all heads and roles for this number, ``replicated`` whether it is at most alpha.

    With ``replication`` as `replicate_roles` returns it:

    >>> replication.asked.names
    ['news', 'mail']
    """

    kind: ClassVar[str] = "replication"
    stem: ClassVar[str] = "replication"
    remedy: ClassVar[str] = "make one with: headroles replicate DIR DIR --out REPLICATION"
    columns: ClassVar[tuple[str, ...]] = tuple(
        "layer head role sets shown_in at_least mean log_e p_adjusted replicated".split()
    )
    views: ClassVar[tuple[str, ...]] = ("long", "heads", "counts", "sets", "layers")

    def axes(self) -> Axes:
        """Return the axes: all heads and roles, by numbers of sets."""
        numbers = [(k + 1,) for k in range(len(self.asked.names))]
        return {**dict.fromkeys((("layer",), ("head",), ("role",)), ()), ("at_least",): numbers}

    def heads(self) -> pd.DataFrame:
        """Return for each head and role the number ``at_least`` of its sets, and their names."""
        shown = self.frame["at_least"].where(self.frame["replicated"], 0)
        by_head = self.frame.assign(at_least=shown).groupby(["layer", "head", "role"], sort=False)
        heads: pd.DataFrame = by_head.agg({"at_least": "max", "shown_in": "first"}).reset_index()
        return heads

    def sets(self) -> pd.DataFrame:
        """Count heads that each set shows by itself: a row per role, a column per set."""
        heads = self.heads()
        named = heads["shown_in"].str.split(", ")
        shown = {name: [name in names for names in named] for name in self.asked.names}
        return pd.DataFrame(shown).groupby(heads["role"], sort=False).sum()

    def counts(self) -> pd.DataFrame:
        """Count heads: a row per role, a column per number of sets."""
        counts = self.frame.pivot_table(
            index="role", columns="at_least", values="replicated", aggfunc="sum", sort=False
        )
        return counts.astype(int).rename_axis(columns=None)

    def layers(self) -> pd.DataFrame:
        """Count heads by role and layer: a column per number of sets."""
        counts = self.frame.pivot_table(
            index=["role", "layer"],
            columns="at_least",
            values="replicated",
            aggfunc="sum",
            sort=False,
        )
        return counts.astype(int).rename_axis(columns=None).reset_index()

    def shown(self) -> Iterator[Shown]:
        """Say which heads have which roles in all sets, farthest beyond distance first."""
        asked, k = self.asked, len(self.asked.names)
        yield (
            f"{k} {asked.over}: {listed(asked.names, 6)}. Heads are named layer-head, from 0."
            f"\nA role is a mean {asked.score} score above {asked.threshold:g}, shown by "
            f"betting ({error_rate(asked)})."
        )
        found = self.everywhere()
        yield self._grid(found, bool(found["beyond"].notna().any()))
        of_arcs = found["role"].isin(arcs_among(list(self.frame["role"].unique())))
        if self.frame["role"].map(is_contrast).any():
            n_beyond, n_arcs = int(found["is_beyond"].sum()), int(of_arcs.sum())
            yield (
                f"Betting shows {n_beyond} of the {n_arcs} heads with roles of pairs of words "
                f"beyond distance in all {k}."
                + " Of the others, those near 0 may only look at a fixed place."
                * (n_beyond < n_arcs)
            )
        elif of_arcs.any():
            yield NOT_CONTROLLED
        if not asked.independent:
            yield (
                "The sets share examples, or the shuffle_seed (--shuffle-seed) of a random order: "
                "evidence is averaged over them, not multiplied."
            )
        yield from self._warned()

    def everywhere(self) -> pd.DataFrame:
        """Return heads with roles in all sets, no role counted in two ways.

        Rows have ``layer, head, role, mean, beyond, is_beyond``: the smallest mean among the sets,
        the smallest of the contrast, and whether all sets show the contrast. Heads farthest
        beyond distance come first, then heads with the largest means.
        """
        others, arcs = split_roles(list(self.frame["role"].unique()))
        rows = self.frame[self.frame["at_least"] == len(self.asked.names)]
        found = rows[rows["replicated"] & rows["role"].isin([*others, *arcs])]
        contrasts = rows.assign(beyond=rows["mean"], is_beyond=rows["replicated"])
        keys = ["layer", "head", "role"]
        found = (
            found[[*keys, "mean"]]
            .assign(contrast=found["role"].map(contrast_of))
            .merge(
                contrasts[[*keys, "beyond", "is_beyond"]].rename(columns={"role": "contrast"}),
                how="left",
            )
            .drop(columns="contrast")
        )
        found["is_beyond"] = found["is_beyond"].eq(True)
        return found.sort_values(["beyond", "mean"], ascending=False, kind="stable")

    def _grid(self, found: pd.DataFrame, has_contrasts: bool) -> Grid:
        """Tabulate roles: how many heads have each in all sets, and the strongest."""
        n_layers, score = int(self.frame["layer"].max()) + 1, self.asked.score
        rows = []
        for role, own in found.groupby("role", sort=False):
            first = own.iloc[0]
            pairs = sorted(zip(own["layer"].tolist(), own["head"].tolist(), strict=True))
            farthest = "" if np.isnan(first["beyond"]) else in_units(first["beyond"], score)
            rows.append(
                (
                    in_words(str(role)),
                    str(len(own)),
                    named_heads(pairs, n_layers, widest=20),
                    head_name((first["layer"], first["head"])),
                    in_units(first["mean"], score),
                    *[farthest] * has_contrasts,
                )
            )
        k = len(self.asked.names)
        columns = (f"Roles in all {k}", "heads", "which", "strongest", unit_of(score))
        beyond = ("beyond distance",) * has_contrasts
        return Grid((*columns, *beyond), tuple(rows), left=frozenset(["which", "strongest"]))

    def details(self) -> Iterator[Shown]:
        """Count heads per role by the number of sets, in each set, and per layer in all sets."""
        counts, sets = self.counts(), self.sets()
        k = len(self.asked.names)
        yield (
            f"{self._title()}\n"
            f"Heads per role that have it in at least 1 to {k} of the sets, and in each by itself:"
        )
        both = counts.rename(columns=str).join(sets)
        both.loc["all"] = both.sum()
        rows = tuple((str(role), *map(str, row)) for role, *row in both.itertuples())
        yield Grid(("role", *both.columns), rows, bold=str(k))
        everywhere = self.layers().pivot_table(index="role", columns="layer", values=k, sort=False)
        rows = tuple(
            (str(role), *(str(n) if n else "." for n in row))
            for role, *row in everywhere.astype(int).itertuples()
        )
        yield f"Heads per layer that have the role in all {k} sets"
        yield Grid(("role", *(f"layer {layer}" for layer in everywhere.columns)), rows)

    def facts(self) -> dict[str, Any]:
        """Return the result for scripts, with the heads of every role."""
        heads = self.heads()
        return {
            "replication": plain(self.asked),
            "heads_per_role": self.counts().to_dict(orient="index"),
            "heads_by_set": self.sets().to_dict(orient="index"),
            "heads": to_records(heads[heads["at_least"] > 0]),
        }


@dataclass(frozen=True, repr=False, eq=False)
class LayerCounts(_Replicated):
    """Numbers of heads with each role by layer, in score sets whose heads do not correspond.

    ``frame`` has a row per set, role and layer and the columns of ``columns``: how many heads
    there are, and how many were shown to have the role, each set corrected by itself.

    With ``counts`` as `replicate_roles` returns them:

    >>> counts.summary()["max"].tolist()
    [1]
    """

    kind: ClassVar[str] = "layer counts"
    stem: ClassVar[str] = "layer_counts"
    remedy: ClassVar[str] = "make them with: headroles replicate DIR DIR --over seeds --out COUNTS"
    columns: ClassVar[tuple[str, ...]] = tuple("set role layer heads with_role".split())
    views: ClassVar[tuple[str, ...]] = ("long", "summary")

    def summary(self) -> pd.DataFrame:
        """Return fewest, most and mean heads with a role among the sets, by role and layer."""
        by_layer = self.frame.groupby(["role", "layer"], sort=False)["with_role"]
        summary: pd.DataFrame = by_layer.agg(["min", "mean", "max"]).reset_index()
        return summary

    def shown(self) -> Iterator[Shown]:
        """Name the role that most heads have, and tabulate fewest and most heads by layer."""
        total = self.frame.groupby(["set", "role"])["with_role"].sum().groupby("role")
        fewest, most = total.min(), total.max()
        role = str(most.idxmax())
        yield (
            f"Most heads have the role {in_words(role)}: {fewest[role]} to {most[role]} heads."
            if most[role]
            else "No head was shown to have any role, in any of the sets."
        )
        summary = self.summary()
        summary["range"] = [
            f"{low}" if low == high else f"{low}-{high}"
            for low, high in zip(summary["min"], summary["max"], strict=True)
        ]
        ranges = summary.pivot_table(
            index="role", columns="layer", values="range", aggfunc="first", sort=False
        )
        yield f"{self._title()}\nHeads per layer, fewest and most among the sets:"
        rows = tuple((str(role), *map(str, row)) for role, *row in ranges.itertuples())
        yield Grid(("role", *map(str, ranges.columns)), rows)
        yield from self._warned()

    def facts(self) -> dict[str, Any]:
        """Return the result for scripts."""
        return {"replication": plain(self.asked), "layers": to_records(self.summary())}
