"""Columns of tables: declared once by name, checked when a table is read back.

A column of one name means the same in all tables. Whoever sends a folder can write digests that fit
any table, so readers rely on these declarations alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

TEXT, FLAG, WHOLE, NUMBER = "text", "truth values", "whole numbers", "numbers"
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
        if not _is_of(self.kind, values.type):
            raise ValueError(f"it holds {values.type} instead of {self.kind}")
        column = values.to_pandas()
        known = column.dropna()
        if not self.gaps and len(known) < len(column):
            raise ValueError("values are missing")
        if self.kind in (WHOLE, NUMBER):
            for number in known[~known.between(self.least, self.most)][:1]:
                raise ValueError(f"{number:g} is not between {self.least:g} and {self.most:g}")
        if self.texts and not known.isin(self.texts).all():
            raise ValueError(f"it holds texts other than {', '.join(map(repr, self.texts))}")


def _is_of(kind: str, stored: pa.DataType) -> bool:
    from pyarrow import types

    is_whole = types.is_integer(stored)
    kinds: dict[str, bool] = {
        TEXT: types.is_string(stored) or types.is_large_string(stored),
        FLAG: types.is_boolean(stored),
        WHOLE: is_whole,
        NUMBER: is_whole or types.is_floating(stored),
    }
    return kinds[kind]


def one_of(*texts: str) -> Column:
    """Declare a column that holds one of these texts."""
    return Column(TEXT, texts=texts)


def _each(column: Column, names: str) -> dict[str, Column]:
    return dict.fromkeys(names.split(), column)


COLUMNS: Mapping[str, Column] = {
    **_each(
        Column(TEXT),
        "role set removed task measure order estimator method group quantity checkpoint change "
        "status answer answer_before answer_after certified deviates direction note shared_with "
        "shown_in example document text words gives",
    ),
    **_each(
        Column(FLAG), "assigned changed equivalent replicated converged query_shared key_shared"
    ),
    **_each(
        Column(WHOLE, 0),
        "layer head other n n_clusters n_removed heads with_role sets draws arcs count rank "
        "full_rank rounds",
    ),
    **_each(
        Column(WHOLE, 1),
        "at_least half parameters parameters_before multiplications multiplications_before",
    ),
    "offset": Column(WHOLE),
    **_each(Column(NUMBER), "threshold loss value loss_change score"),
    **_each(
        Column(NUMBER, gaps=True),
        "mean effect_size ci_low ci_high statistic certified_mean mean_before mean_after "
        "difference certified_difference difference_low difference_high log_e normalised "
        "importance importance_difference loss_difference removed_loss removed_difference "
        "drawn_loss drawn_low drawn_high whole without relative_drop deviation deviation_low "
        "deviation_high beyond_distance beyond_low beyond_high "
        "mean_trees mean_words mean_weights "
        "offset_mean gain gain_ci_low gain_ci_high accuracy_change",
    ),
    **_each(
        Column(NUMBER, 0, gaps=True),
        "df sd standard_error sd_draws evenness margin design_effect tensor_error score_error "
        "divergence score_error_held_out divergence_held_out",
    ),
    **_each(
        Column(NUMBER, 0, math.inf, gaps=True),
        "examples_needed examples_with_score corpus_examples",
    ),
    **_each(
        Column(NUMBER, 0, 1, gaps=True),
        "share share_of_arcs offset_share offset_share_of_arcs overlap alpha_per_test p_beyond "
        "p_value p_adjusted p_below p_below_adjusted p_changed p_changed_adjusted p_equivalent "
        "p_equivalent_adjusted p_equivalence "
        "p_equivalence_adjusted p_accuracy p_accuracy_adjusted p_deviation p_deviation_adjusted "
        "p_importance p_importance_adjusted p_loss p_loss_adjusted p_removed p_removed_adjusted "
        "query_p_value query_p_adjusted key_p_value key_p_adjusted",
    ),
    **_each(Column(NUMBER, -1e-6, 1 + 1e-6), "query_overlap key_overlap"),
}
"""Columns by name; a table declares itself those that differ."""

Axes = Mapping[tuple[str, ...], Sequence[tuple[Any, ...]]]
"""Columns of whose values a table has every combination, with the values that must occur.

Columns that belong together are one axis. An axis without named values may have any.
"""

_OF_A_ROW = (
    "checkpoint set task measure order estimator seed role half layer head other group quantity "
    "removed share at_least example"
).split()
"""Columns that identify a row: no two rows agree in all of them."""


def check_table(table: pa.Table, schema: Mapping[str, Column], shape: tuple[int, int]) -> None:
    """Check the values of every column; ``schema`` are the columns that the table itself declares.

    Raises ValueError for values that a column cannot hold, for layers and heads that a model of
    ``shape`` (layers, heads), 0 if unknown, does not have, and for two rows of one identity.
    """
    sizes = dict(zip(("layer", "head"), shape, strict=True))
    for name in table.column_names:
        column, size = schema.get(name) or COLUMNS[name], sizes.get(name)
        if column.kind == WHOLE and size:
            column = replace(column, most=size - 1)
        try:
            column.check(table.column(name))
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from error
    keys = [name for name in _OF_A_ROW if name in table.column_names]
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
