"""Columns of tables: declared once by name, checked when a table is read back.

A column of one name means the same in all tables. Whoever sends a folder can write digests that fit
any table, so readers rely on these declarations alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

TEXT, FLAG, WHOLE, NUMBER = "text", "truth values", "whole numbers", "numbers"
_STORED = {
    TEXT: ("is_string", "is_large_string"),
    FLAG: ("is_boolean",),
    WHOLE: ("is_integer",),
    NUMBER: ("is_integer", "is_floating"),
}
"""Functions of `pyarrow.types` that know the types a column of each kind may be stored as."""
_MOST = 1e100
"""A number larger than all measurements and counts, whose square is finite."""


@dataclass(frozen=True)
class Column:
    """Type and values of a column.

    Numbers lie between ``least`` and ``most``, and may be missing if ``gaps`` is set. A text is one
    of ``texts``, if any are given.
    """

    kind: str
    least: float = -_MOST
    most: float = _MOST
    gaps: bool = False
    texts: tuple[str, ...] = ()

    def check(self, values: pa.ChunkedArray) -> None:
        """Raise ValueError that describes the first value that the column cannot hold."""
        from pyarrow import types

        if not any(getattr(types, name)(values.type) for name in _STORED[self.kind]):
            raise ValueError(f"it holds {values.type} instead of {self.kind}")
        column = values.to_pandas()
        numbers = column.dropna()
        if not self.gaps and len(numbers) < len(column):
            raise ValueError("values are missing")
        if self.kind in (WHOLE, NUMBER):
            numbers = numbers.astype(np.float64)  # bounds are too large for smaller types
            for number in numbers[~numbers.between(self.least, self.most)][:1]:
                raise ValueError(f"{number:g} is not between {self.least:g} and {self.most:g}")
        if self.texts and not numbers.isin(self.texts).all():
            raise ValueError(f"it holds texts other than {', '.join(map(repr, self.texts))}")


def one_of(*texts: str) -> Column:
    """Declare a column that holds one of these texts."""
    return Column(TEXT, texts=texts)


_COLUMNS = {
    "role set removed task measure order method group quantity checkpoint note shared_with "
    "shown_in example document text words gives": Column(TEXT),
    "attention": one_of("", "encoder", "decoder", "cross"),
    "assigned changed equivalent replicated converged *_shared": Column(FLAG),
    "layer head other n n_* heads sets draws arcs count *rank rounds": Column(WHOLE, 0),
    "at_least half parameters* multiplications*": Column(WHOLE, 1),
    "threshold value loss loss_change": Column(NUMBER),
    "p_* *_p_value *_p_adjusted *share *share_of_arcs overlap alpha_per_test": Column(
        NUMBER, 0, 1, gaps=True
    ),
    "*_overlap": Column(NUMBER, -1e-6, 1 + 1e-6),
    "examples_* *_examples": Column(NUMBER, 0, math.inf, gaps=True),
    "df sd* *_error* divergence* evenness margin design_effect": Column(NUMBER, 0, gaps=True),
    "*mean mean_* *_low *_high *difference *_loss importance gain deviation effect_size statistic "
    "log_e normalised whole without relative_drop beyond_* past_attractors accuracy_change": Column(
        NUMBER, gaps=True
    ),
}
"""What columns hold, by patterns of their names, of which the first that fits counts."""


def declared(name: str) -> Column:
    """Return what a column called ``name`` holds, unless its table declares something else.

    Raises LookupError for a name that no pattern fits.
    """
    for patterns, column in _COLUMNS.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns.split()):
            return column
    raise LookupError(f"no column is called {name}; say in `schema` of its table what it holds")


Axes = Mapping[tuple[str, ...], Sequence[tuple[Any, ...]]]
"""Columns of whose values a table has every combination, with the values that must occur.

Columns that belong together are one axis. An axis without named values may have any.
"""

NAMES = (
    "checkpoint set task measure order estimator seed role half attention layer head other group "
    "quantity removed share at_least example"
).split()
"""Columns that identify a row: no two rows agree in all of them."""


def check_table(table: pa.Table, schema: Mapping[str, Column], shape: tuple[int, int]) -> None:
    """Check the values of every column; ``schema`` are the columns that the table itself declares.

    Raises ValueError for values that a column cannot hold, for layers and heads that a model of
    ``shape`` (layers, heads), 0 if unknown, does not have, and for two rows of one identity.
    """
    sizes = dict(zip(("layer", "head"), shape, strict=True))
    for name in table.column_names:
        column, size = schema.get(name) or declared(name), sizes.get(name)
        if column.kind == WHOLE and size:
            column = replace(column, most=size - 1)
        try:
            column.check(table.column(name))
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from error
    keys = [name for name in NAMES if name in table.column_names]
    if table.select(keys).to_pandas(ignore_metadata=True).duplicated().any():
        raise ValueError(f"two rows are of the same {', '.join(keys)}")


def check_rows(frame: pd.DataFrame, axes: Axes) -> None:
    """Raise ValueError if ``frame`` lacks a row for a combination of values of ``axes``."""
    n_needed = 1
    for axis, needed in axes.items():
        there = set(frame[[*axis]].drop_duplicates().itertuples(index=False, name=None))
        n_needed *= len(there)
        if lacking := [row for row in needed if row not in there]:
            raise ValueError(f"it has no row of {' and '.join(axis)} {lacking[0]}")
    if axes and len(frame) != n_needed:
        names = ", ".join(" and ".join(axis) for axis in axes)
        raise ValueError(f"it has {len(frame)} rows for {n_needed} combinations of {names}")
