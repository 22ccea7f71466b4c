"""What the columns of tables can hold, checked in one place when a table is read back.

Whoever sends a folder can write digests that fit any table: what it says is checked beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

_TEXTS = frozenset("role answer note checkpoint change status certified task shown_in".split())
_NUMBERS = frozenset(
    "n n_clusters df mean sd effect_size ci_low ci_high threshold statistic certified_mean "
    "evenness mean_before mean_after difference standard_error margin alpha_per_test design_effect "
    "score count offset_mean gain tensor_error score_error divergence parameters multiplications "
    "rounds seconds log_e importance normalised n_removed loss loss_change value "
    "relative_drop deviation assigned".split()
)
_COUNTS = frozenset("n n_clusters count examples_with_score corpus_examples".split())
_NEVER_MISSING = frozenset("threshold role n shown_in".split())
_OF_A_ROW = (
    *("checkpoint", "set", "task", "measure", "order", "estimator", "role", "half", "layer"),
    *("head", "other", "group", "quantity", "removed", "n_removed", "at_least", "shared_with"),
)
"""Columns that say what a row is of: no two rows are of the same."""


def check_values(frame: pd.DataFrame, allowed: Mapping[str, Sequence[str]]) -> None:
    """Raise ValueError for values that no column of this name has, and for repeated rows.

    ``allowed`` are the texts that some columns can have.
    """
    for name in frame.columns:
        _check_column(name, frame[name])
        texts = allowed.get(name)
        if texts is not None and not frame[name].isin(texts).all():
            raise ValueError(f"column {name} holds something else than {', '.join(texts)}")
    own = [name for name in _OF_A_ROW if name in frame]
    if own and frame[own].astype(str).duplicated().any():
        raise ValueError(f"two rows are of the same {', '.join(own)}")


def _check_column(name: str, column: pd.Series) -> None:
    missing = column.isna()
    if name in _NEVER_MISSING and missing.any():
        raise ValueError(f"column {name} lacks values")
    is_number = name in _NUMBERS or name.startswith("p_")
    if not is_number and name not in _TEXTS:
        return
    known = column[~missing]
    if not known.map(_is_number if is_number else _is_text).all():
        raise ValueError(f"column {name} holds values of another type")
    if name.startswith("p_") and not known.between(0, 1).all():
        raise ValueError(f"column {name} holds what is no p-value")
    if name in _COUNTS and (known < 0).any():
        raise ValueError(f"column {name} holds a negative number")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number | np.bool_)
