"""An interactive map of all heads: the data that its script reads.

Without scripts the pictures of the same page replace it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from headroles.wording import printable

_MOST_CELLS = 40_000
"""Cells of all views; with as many the page stays below 2 MB."""
_ABOUT = ["words", "group", "unit", "line"]

if TYPE_CHECKING:
    Signs = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class HeadMap:
    """A map of all heads with its views, the first of which is shown first.

    Args:
        title: description of the map for screen readers.
        value: name of the values.
        frame: a row for each view, layer and head. ``view`` is the id of a view, as a role;
            ``words``, ``group`` and ``unit`` describe it, and ``line`` is its threshold. ``value``
            colours the map, and ``mark`` is a sign of the legend.
        facts: the columns of other numbers and texts of a head by their names; two columns are a
            range, or the values before and after.
        legend: signs, their meaning, and the look of their cells: full, pale, hatched or framed.
        low: the value that is white; None for signed values, with 0 in the middle of the scale.
    """

    title: str
    value: str
    frame: pd.DataFrame
    facts: Mapping[str, tuple[str, ...]]
    legend: Signs
    low: float | None = None

    def to_json(self) -> str:
        """Return the data of the script as JSON that can stand in an HTML document."""
        layers, heads = (int(self.frame[name].max()) + 1 for name in ("layer", "head"))
        all_heads = pd.MultiIndex.from_product([range(layers), range(heads)])
        frames = list(self.frame.groupby("view", sort=False))
        views = [
            {
                **rows.iloc[0][_ABOUT].to_dict(),
                "values": _column(cells["value"]),
                "marks": _column(cells["mark"].fillna("")),
                "facts": [
                    [name, *(_column(cells[column]) for column in columns)]
                    for name, columns in self.facts.items()
                    if cells[[*columns]].notna().any(axis=None)
                ],
            }
            for _, rows in frames[: max(1, _MOST_CELLS // len(all_heads))]
            for cells in [rows.set_index(["layer", "head"]).reindex(all_heads)]
        ]
        record = {
            **{name: getattr(self, name) for name in ("title", "value", "legend", "low")},
            "layers": layers,
            "heads": heads,
            "views": views,
        }
        text = json.dumps(_plain(record), separators=(",", ":"), allow_nan=False)
        for sign in "<>&":  # so that no word ends the element that holds the data
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        return text


def _column(cells: pd.Series[Any]) -> list[Any] | dict[str, Any]:
    """Return numbers of three digits, or texts by their numbers in a list of them."""
    if cells.dtype.kind in "iuf":
        return [float(f"{value:.3g}") if value - value == 0 else None for value in cells]
    numbers, texts = pd.factorize(cells.fillna("").astype(str))
    return {"texts": list(texts), "at": numbers.tolist()}


def _plain(content: Any) -> Any:
    """Return the content with printable texts."""
    if isinstance(content, str):
        return printable(content)
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(one) for one in content]
    return content
