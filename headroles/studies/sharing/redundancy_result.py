"""Overlap of the weights of heads: tables of pairs of heads, of layers and of roles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

import numpy as np
import pandas as pd

from headroles.formats import to_records
from headroles.record import ModelRecord, Recorded
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown
from headroles.storage import plain
from headroles.testing.recorded import Share
from headroles.wording import listed

SHARES = (0.9, 0.95, 0.99)
_STRONGEST = 5
_PROJECTIONS = ("query", "key")


LayerDimensions = TypedDict(
    "LayerDimensions",
    {
        "layer": int,
        "heads": int,
        "head_size": int,
        "width": int,
        "head_90%": float | None,
        "head_95%": float | None,
        "head_99%": float | None,
        "sum_90%": int,
        "sum_95%": int,
        "sum_99%": int,
        "sum_90%_by_chance": float | None,
        "p_value": float | None,
        "p_adjusted": float | None,
    },
)
"""A row of the table of layers: dimensions that hold shares of the attention of heads."""


class RoleOverlap(TypedDict):
    """A row of the table of roles: overlap of the heads of a role, observed and by chance."""

    role: str
    projection: str
    heads: int
    pairs: int
    overlap: float
    expected: float | None
    p_value: float | None
    p_adjusted: float | None
    shared: bool


class Common(Recorded, frozen=True):
    """Tables of layers and roles, and the overlap of two heads by chance."""

    layers: list[LayerDimensions]
    roles: list[RoleOverlap] | None
    chance: float


class Level(Recorded, frozen=True):
    """The level of tests."""

    alpha: Share


class RedundancyRecord(ModelRecord, frozen=True, kw_only=True):
    """Record of the model, with the tables beside the table of pairs."""

    redundancy: Common

    def __post_init__(self) -> None:
        super().__post_init__()
        self.read_options(Level)

    @property
    def alpha(self) -> float:
        """Level of the tests of pairs and roles."""
        return self.read_options(Level).alpha


@dataclass(frozen=True, repr=False, eq=False)
class Redundancy(Result):
    """Overlap of the query and key projections of a layer's heads.

    ``frame`` has a row for every two heads of a layer, with the columns of ``columns``: the
    overlaps of their query spaces and of their key spaces, 0 to 1, and whether the overlaps are
    shown to be larger than by chance (``query_shared``, ``key_shared``). Layers that share a module
    are listed as their first layer. The other views are ``layers``, dimensions that hold 90, 95 and
    99 % of the energy, and ``roles``, empty if no roles were given.

    With ``redundancy`` as `report_redundancy` returns it:

    >>> len(redundancy.frame)
    18
    """

    record: RedundancyRecord

    kind: ClassVar[str] = "redundancy"
    stem: ClassVar[str] = "redundancy"
    remedy: ClassVar[str] = "make one with: headroles collaborate MODEL --report --out DIR"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "layer head other query_overlap query_p_value query_p_adjusted query_shared "
            "key_overlap key_p_value key_p_adjusted key_shared"
        ).split()
    )
    may_be_empty: ClassVar[bool] = True
    views: ClassVar[tuple[str, ...]] = ("long", "layers", "roles")

    @property
    def layers(self) -> pd.DataFrame:
        """A row per layer: mean dimensions of single heads, of the sum of all, and by chance."""
        return pd.DataFrame(self.record.redundancy.layers)

    @property
    def roles(self) -> pd.DataFrame:
        """A row per role and projection: overlap of heads with the role, and by chance."""
        return pd.DataFrame(self.record.redundancy.roles or [])

    @property
    def alpha(self) -> float:
        """Level of the tests of pairs and roles."""
        return self.record.alpha

    def summarize(self) -> Iterator[Shown]:
        """Tabulate dimensions of layers and overlaps of pairs; name the roles that overlap."""
        yield self._answer()
        yield (
            "Dimensions that hold 90, 95 and 99 % of the energy of query-key products: of single\n"
            "heads (mean) and of the sum of all heads; by chance: of heads alike in random spaces"
        )
        yield self._layers_grid()
        chance = self.record.redundancy.chance
        yield (
            f"Overlap of the spaces of two heads; by chance {chance:.3f} "
            f"(false discovery rate {self.alpha:g})"
        )
        yield self._pairs_grid()
        if len(self.roles):
            above = self._by_p().loc[lambda roles: roles["shared"]]
            found = [f"{one.role} ({one.projection})" for one in above.itertuples()]
            yield (
                "Roles whose heads overlap more than heads shuffled within layers: "
                f"{listed(found) or 'none'}, of {self.roles['role'].nunique()}"
            )

    def details(self) -> Iterator[Shown]:
        """Tabulate the roles."""
        if len(self.roles):
            yield "Overlap of heads of one role, against heads shuffled within layers"
            yield self._roles_grid()

    def _answer(self) -> str:
        """Compare the dimensions that heads share with chance."""
        layers, pairs = self.layers, self.frame
        needed, drawn = layers["sum_90%"], layers["sum_90%_by_chance"]
        shared = (layers["p_adjusted"] <= self.alpha).sum()
        found = (f"{int(pairs[f'{one}_shared'].sum())} share {one} space" for one in _PROJECTIONS)
        return (
            f"The heads of a layer together use {_span(needed)} dimensions for 90 % of what their "
            f"queries and keys compare,\nwhere heads alike in random spaces would use "
            f"{_span(drawn)}: fewer than by chance in {shared} of {len(layers)} layers.\n"
            f"Of {len(pairs)} pairs of heads of one layer {' and '.join(found)} beyond chance."
        )

    def _by_p(self) -> pd.DataFrame:
        return self.roles.sort_values("p_value", kind="stable")

    def _layers_grid(self) -> Grid:
        most = np.minimum(self.layers["width"], self.layers["heads"] * self.layers["head_size"])
        cells = {
            "layer": "{layer}",
            "one head": "{head_90%:.1f} {head_95%:.1f} {head_99%:.1f}",
            "of": "{head_size}",
            "all heads": "{sum_90%} {sum_95%} {sum_99%}",
            "of ": "{most}",
            "90 % by chance": "{sum_90%_by_chance:.1f}",
            "p": "{p_adjusted:.3f}",
        }
        return Grid.of(self.layers.assign(most=most), cells)

    def _pairs_grid(self) -> Grid:
        rows = []
        for layer, part in self.frame.groupby("layer"):
            cells = []
            for name in _PROJECTIONS:
                found = int(part[f"{name}_shared"].sum())
                cells += [f"{part[f'{name}_overlap'].mean():.3f}", f"{found} of {len(part)}"]
            best = part.nlargest(1, "key_overlap").iloc[0]
            most = f"{best['head']:.0f} and {best['other']:.0f} {best['key_overlap']:.3f}"
            rows.append((str(layer), *cells, most))
        names = ("layer", "queries", "pairs above", "keys", "pairs above ", "keys most alike")
        return Grid(names, tuple(rows))

    def _roles_grid(self) -> Grid:
        roles = self._by_p()
        found = roles[roles["shared"]]
        shown = found if len(found) else roles.head(_STRONGEST)
        cells = {
            "role": "{role}",
            "of": "{projection}",
            "heads": "{heads}",
            "overlap": "{overlap:.3f}",
            "expected": "{expected:.3f}",
            "p": "{p_adjusted:.3f}",
        }
        return Grid.of(shown, cells)

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        shared = self.frame[self.frame["query_shared"] | self.frame["key_shared"]]
        return {
            "options": self.record.options,
            **plain(self.record.redundancy),
            "pairs_above_chance": to_records(shared),
        }


def _span(numbers: pd.Series[float]) -> str:
    return f"{numbers.min():.0f} to {numbers.max():.0f}"
