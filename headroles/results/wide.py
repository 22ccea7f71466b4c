"""A long table -> a wide one: a column for each of several names, holding one of its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from headroles.errors import UsageError


def widened(
    frame: pd.DataFrame, rows: Sequence[str], column: str, names: Sequence[Any], value: str
) -> pd.DataFrame:
    """Return a row for each combination of ``rows`` in ``frame``, in its order.

    The columns are ``rows``, then one for each of ``names``, which are those of ``column``, holding
    ``value``: another column of ``frame``, in which every row and name are once at most. What is
    missing is NaN. Raises UsageError for a value that there is not.
    """
    known = [name for name in frame.columns if name not in (*rows, column)]
    if value not in known:
        raise UsageError(f"the value is {value!r}; it must be one of {', '.join(known)}")
    # pivot_table would leave out what is missing, or make rows that there are not.
    wide = frame.set_index([*rows, column])[value].unstack(column)  # noqa: PD010
    order = frame.set_index([*rows]).index.unique()
    return wide.reindex(index=order, columns=list(names)).rename_axis(columns=None).reset_index()
