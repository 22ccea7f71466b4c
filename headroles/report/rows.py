"""Rows of tables of tests, as pages tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headroles.roles import is_contrast

if TYPE_CHECKING:
    import pandas as pd


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows by the names of their columns."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def without_contrasts(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of roles: the contrasts of roles with position are no roles of their own."""
    return frame[~frame["role"].isin([one for one in frame["role"].unique() if is_contrast(one)])]


def with_interval(
    row: Mapping[Any, Any], value: str = "mean", low: str = "ci_low", high: str = "ci_high"
) -> str:
    """A value with its interval in brackets."""
    return f"{row[value]:.3g} ({row[low]:.3g} to {row[high]:.3g})"
