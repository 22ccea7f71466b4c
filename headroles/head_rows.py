"""Rows of heads: the layers of one kind of attention, or those of several kinds, one after another.

An encoder-decoder has heads in its encoder, in its decoder and across, each in layers of their own.
All of them together are an array (rows, heads), as those of one kind are (layers, heads).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.arrays import IntArray
from headroles.wording import head_name

if TYPE_CHECKING:
    import pandas as pd

ATTENTION = "attention"
"""Column of tables with the kind of attention, where there are several."""


@dataclass(frozen=True)
class HeadRows:
    """Numbers of ``layers`` by kind of attention; empty for one kind that needs no name."""

    layers: Mapping[str, int] = field(default_factory=dict)

    @property
    def kinds(self) -> list[str]:
        """The kind of each row; empty for one kind that needs no name."""
        return [kind for kind, n_layers in self.layers.items() for _ in range(n_layers)]

    @property
    def parts(self) -> dict[str, slice]:
        """The rows of each kind; all rows under an empty name, if it needs none."""
        ends = np.cumsum([*self.layers.values()]).tolist()
        starts = [0, *ends[:-1]]
        spans = map(slice, starts, ends)
        return dict(zip(self.layers, spans, strict=True)) or {"": slice(None)}

    def first(self, kind: str) -> int:
        """Return the first row of a kind; 0 for one kind that needs no name."""
        return self.parts[kind].start if self.layers else 0

    def place(self, row: int) -> tuple[str, int]:
        """Return the kind of a row, and its layer there."""
        for kind, rows in self.parts.items():
            if kind and row < rows.stop:
                return kind, row - rows.start
        return "", row

    def numbers_of(self, heads: Iterable[Sequence[int]]) -> dict[str, int]:
        """Count heads by kind."""
        counts = dict.fromkeys(self.parts, 0)
        for row, _ in heads:
            counts[self.place(row)[0]] += 1
        return counts

    def cells(self, head: tuple[int, int]) -> tuple[Any, ...]:
        """Return the cells of a head in tables: its kind, where there are several, and numbers."""
        kind, layer = self.place(head[0])
        return (kind, layer, head[1]) if kind else head

    def name(self, head: Sequence[int]) -> str:
        """Name a head by kind, layer and number, as in ``cross 2-5``."""
        kind, layer = self.place(head[0])
        return f"{kind} {head_name((layer, head[1]))}".lstrip()

    def name_of_layer(self, row: int) -> str:
        """Name a layer, as in ``cross layer 2``."""
        kind, layer = self.place(row)
        return f"{kind} layer {layer}".lstrip()

    def with_kinds(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table whose ``layer`` has rows, with the kind and its layer in their place.

        Numbers below 0, which are no layer, stay; their kind is empty.
        """
        if not self.layers:
            return frame
        places = [self.place(row) if row >= 0 else ("", row) for row in frame["layer"].tolist()]
        kinds, layers = zip(*places, strict=True) if places else ((), ())
        layers_by_name = frame.assign(layer=np.array(layers, dtype=np.int64))
        layers_by_name.insert(list(frame).index("layer"), ATTENTION, np.array(kinds, dtype=object))
        return layers_by_name

    def rows_of(self, frame: pd.DataFrame) -> IntArray:
        """Return the rows (n,) of the heads of a table that `with_kinds` returned."""
        layers: Any = frame["layer"].to_numpy()
        if not self.layers:
            return np.asarray(layers)
        first = {kind: rows.start for kind, rows in self.parts.items()}
        starts = frame[ATTENTION].map(first).fillna(0).to_numpy(dtype=np.int64)
        return np.asarray(starts + layers)

    def with_column(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of a table, with that of the kind before the layer, if it has any."""
        if not self.layers or "layer" not in columns:
            return tuple(columns)
        place = list(columns).index("layer")
        return (*columns[:place], ATTENTION, *columns[place:])
