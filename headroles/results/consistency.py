"""What the cells of one row have to do with one another, declared beside the columns of a table.

Whoever sends a folder can write digests that fit any table. A row that contradicts itself is
refused: an interval beside its mean, a corrected p-value below the uncorrected one, an answer that
its p-value does not give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

_SLACK = 1e-6
"""Relative difference of two numbers that were computed in two ways."""
_TINY = 1e-3
"""Differences up to this size may be rounding, which shows no direction."""


@dataclass(frozen=True)
class Rule:
    """A relation between ``columns`` of a row; ``words`` name it in messages.

    ``holds`` tells it of rows (n,), given the options of the study (None for a study without).
    """

    columns: tuple[str, ...]
    words: str
    holds: Callable[[pd.DataFrame, Any], ArrayLike]


def check_consistency(frame: pd.DataFrame, rules: Sequence[Rule], options: Any) -> None:
    """Raise ValueError for the first row that breaks one of ``rules``, or a rule of all tables."""
    for rule in (*_of_all_tables(frame), *rules):
        holds = np.asarray(rule.holds(frame, options), dtype=bool)
        if not holds.all():
            row = frame.iloc[int(np.flatnonzero(~holds)[0])]
            cells = ", ".join(f"{name} {row[name]}" for name in rule.columns)
            raise ValueError(f"{rule.words}, but a row has {cells}")


# Rules of columns that a table names.


def inside(low: str, middle: str, high: str) -> Rule:
    """Declare an interval: both ends are missing, or ``middle`` lies between them."""

    def holds(rows: pd.DataFrame, _: Any) -> BoolArray:
        ends, value = (_numbers(rows, low), _numbers(rows, high)), _numbers(rows, middle)
        slack = _slack(*ends, value)
        is_missing = np.isnan(ends[0]) & np.isnan(ends[1])
        return np.asarray(is_missing | ((ends[0] - slack <= value) & (value <= ends[1] + slack)))

    return Rule((low, middle, high), f"{middle} lies between {low} and {high}", holds)


def around(low: str, middle: str, high: str) -> Rule:
    """Declare an interval with ``middle`` in its middle, as t intervals have it, or no interval."""

    def holds(rows: pd.DataFrame, _: Any) -> BoolArray:
        ends, value = (_numbers(rows, low), _numbers(rows, high)), _numbers(rows, middle)
        is_missing = np.isnan(ends[0]) & np.isnan(ends[1])
        is_central = np.abs((ends[0] + ends[1]) / 2 - value) <= _slack(*ends, value)
        return np.asarray(is_missing | (is_central & (ends[0] <= ends[1])))

    return Rule((low, middle, high), f"{middle} lies in the middle of {low} and {high}", holds)


def interval_of(low: str, high: str, error: Callable[[pd.DataFrame], FloatArray], df: str) -> Rule:
    """Declare the t interval of a mean with the standard ``error`` of rows.

    ``df`` is the column of degrees of freedom, or of one more than these if it is ``n``.
    """

    def holds(rows: pd.DataFrame, options: Any) -> BoolArray:
        from scipy.special import stdtrit

        reach = (_numbers(rows, high) - _numbers(rows, low)) / 2
        freedom = _numbers(rows, df) - (df == "n")
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = stdtrit(freedom, 1 - options.alpha / 2) * error(rows)
        fits = np.abs(reach - expected) <= 1e-4 * expected + _slack(reach)
        return np.asarray(fits | ~np.isfinite(expected) | np.isnan(reach))

    return Rule((low, high, df), f"{low} and {high} are a t interval", holds)


def marked(flag: str, column: str, *texts: str) -> Rule:
    """Declare a truth value that says whether ``column`` has one of ``texts``."""

    def holds(rows: pd.DataFrame, _: Any) -> BoolArray:
        return np.asarray(rows[flag].astype(bool) == rows[column].isin(texts))

    return Rule((flag, column), f"{flag} says whether {column} is {' or '.join(texts)}", holds)


def answers_by(
    column: str, p_value: str, *texts: str | bool, of: str = "", otherwise: Sequence[str] = ()
) -> Rule:
    """Declare that ``column`` has one of ``texts`` if, and only if, ``p_value`` is at most alpha.

    Rows without a p-value may have any answer, and so may those with a text of ``otherwise``, which
    go before. With ``of``, values that may be rounding may be undecided.
    """

    def holds(rows: pd.DataFrame, options: Any) -> BoolArray:
        p, has_text = _numbers(rows, p_value), rows[column].isin(texts).to_numpy()
        is_free = np.isnan(p) | rows[column].isin(otherwise).to_numpy()
        if of:
            is_free |= (np.abs(_numbers(rows, of)) <= _TINY) & ~has_text
        return np.asarray(is_free | (has_text == (p <= options.alpha)))

    words = f"{column} is {' or '.join(map(str, texts))} where {p_value} is at most alpha"
    return Rule((column, p_value), words, holds)


def on_side(column: str, above: Sequence[str], below: Sequence[str], of: str, at: str = "") -> Rule:
    """Declare which answers are of values above, and below, a threshold ``at``, by default 0."""

    def holds(rows: pd.DataFrame, _: Any) -> BoolArray:
        distance = _numbers(rows, of) - (_numbers(rows, at) if at else 0)
        is_above, is_below = (rows[column].isin(texts).to_numpy() for texts in (above, below))
        return np.asarray(~((is_above & ~(distance > 0)) | (is_below & ~(distance < 0))))

    names = (column, of, at) if at else (column, of)
    return Rule(names, f"{column} follows the side of {of} {f'of {at}' if at else 'of 0'}", holds)


def equal_to(column: str, parts: Sequence[str], compute: Callable[..., FloatArray]) -> Rule:
    """Declare that a column is computed from ``parts``, columns of the same row."""

    def holds(rows: pd.DataFrame, _: Any) -> BoolArray:
        value, numbers = _numbers(rows, column), [_numbers(rows, name) for name in parts]
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = compute(*numbers)
        fits = np.abs(value - expected) <= _slack(value, *numbers)
        return np.asarray(fits | np.isnan(value) | ~np.isfinite(expected))

    return Rule((column, *parts), f"{column} follows from {' and '.join(parts)}", holds)


def at_most(smaller: str, larger: str) -> Rule:
    """Declare that one number is not larger than another, where a row has both."""

    def holds(rows: pd.DataFrame, _: Any) -> BoolArray:
        low, high = _numbers(rows, smaller), _numbers(rows, larger)
        return np.asarray(np.isnan(low) | np.isnan(high) | (low <= high + _slack(low, high)))

    return Rule((smaller, larger), f"{smaller} is at most {larger}", holds)


def only_with(column: str, count: str, least: int) -> Rule:
    """Declare that a row has a number in ``column`` only with ``least`` of what ``count`` counts.

    A row without any of these has none.
    """

    def holds(rows: pd.DataFrame, _: Any) -> BoolArray:
        return np.asarray(np.isnan(_numbers(rows, column)) | (_numbers(rows, count) >= least))

    return Rule((column, count), f"{column} takes {least} or more of {count}", holds)


def standardised(mean: str, sd: str, threshold: str = "") -> Rule:
    """Declare that ``effect_size`` is the distance of a mean from its threshold in deviations."""
    parts = (mean, sd, threshold) if threshold else (mean, sd)

    def distance(value: FloatArray, deviation: FloatArray, *limits: FloatArray) -> FloatArray:
        return np.asarray((value - sum(limits)) / np.where(deviation > 0, deviation, np.nan))

    return equal_to("effect_size", parts, distance)


# Rules of all tables.


def _of_all_tables(frame: pd.DataFrame) -> Iterator[Rule]:
    """Yield the rules of columns that mean the same in every table."""
    names = [str(name) for name in frame.columns]
    for name in names:
        if name.endswith("_low") and (high := f"{name.removesuffix('_low')}_high") in names:
            yield at_most(name, high)
            yield _both_or_none(name, high)
        if name.endswith("_adjusted"):
            stem = name.removesuffix("_adjusted")
            single = next((one for one in (stem, f"{stem}_value") if one in names), None)
            if single is not None:
                yield at_most(single, name)
                yield _both_or_none(single, name)
    if {"n", "n_clusters"} <= {*names}:
        yield at_most("n_clusters", "n")
        yield _clusters_of_values()
    if {"n", "mean"} <= {*names}:
        yield only_with("mean", "n", 1)
    if {"n", "sd"} <= {*names}:
        yield only_with("sd", "n", 2)
    if {"n_clusters", "df"} <= {*names}:
        yield only_with("df", "n_clusters", 2)
        yield equal_to("df", ("df", "n_clusters"), lambda df, n: np.minimum(df, n - 1))


def _both_or_none(first: str, second: str) -> Rule:
    def holds(rows: pd.DataFrame, _: Any) -> BoolArray:
        return np.asarray(np.isnan(_numbers(rows, first)) == np.isnan(_numbers(rows, second)))

    return Rule((first, second), f"a row has both {first} and {second}, or none", holds)


def _clusters_of_values() -> Rule:
    def holds(rows: pd.DataFrame, _: Any) -> BoolArray:
        return np.asarray((_numbers(rows, "n") > 0) == (_numbers(rows, "n_clusters") > 0))

    return Rule(("n", "n_clusters"), "values are of clusters", holds)


def _numbers(rows: pd.DataFrame, column: str) -> FloatArray:
    numbers: FloatArray = rows[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _slack(*numbers: NDArray[Any]) -> FloatArray:
    """Return what numbers (n,) of these sizes may differ by where they should be equal."""
    largest = np.nan_to_num(np.abs(np.stack(numbers))).max(axis=0)
    return np.asarray(_SLACK * np.maximum(1e-3, largest))
