"""Tables as papers have them: few columns, roles in words, units."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headroles.role_names import in_words

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ("checkpoint", "role", "estimator", "removed", "order", "task", "measure", "group")
_VALUES = (
    "mean",
    "difference",
    "importance",
    "loss_change",
    "removed_difference",
    "relative_drop",
    "value",
)
_OWN_NAME = re.compile(r"[a-z]+(_[a-z]+)+")
_UNITS = {
    **dict.fromkeys(("loss", "loss_change", "removed_difference", "loss_difference"), "nats"),
    "seconds": "s",
    "relative_drop": "share of the score",
}
_OF_SCORES = ("mean", "mean_before", "mean_after", "difference", "beyond", "threshold")
_OF_A_SCORE = {"bias": "times uniform"}
_ANSWERS = ("answer", "change", "interval")


def for_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Name heads in one column, and choose up to four columns of a long table.

    The columns are the head (or the removal), names, the value, and the answer or interval; for
    roles beyond position the contrast instead of the interval. A fifth column tells which heads go
    beyond distance, if that is known. A table without a known value keeps all columns.
    """
    chosen = frame
    if "removed" in frame:
        chosen = frame.drop(columns=["layer", "head"], errors="ignore")
    elif {"layer", "head"} <= set(frame):
        pairs = zip(frame["layer"], frame["head"], strict=True)
        chosen = frame.assign(head=[f"{layer}-{head}" for layer, head in pairs])
        chosen = chosen.drop(columns="layer")
    value = next((name for name in _VALUES if name in frame), None)
    if value is None:
        return chosen
    if {"ci_low", "ci_high"} <= set(frame):
        ends = (frame[name].map(_short) for name in ("ci_low", "ci_high"))
        interval = [f"{low} to {high}" for low, high in zip(*ends, strict=True)]
        chosen = chosen.assign(interval=interval)
    telling = [name for name in chosen if len(chosen[name].unique()) > 1]
    answers = [name for name in ("beyond", *_ANSWERS) if name in telling]
    names = [name for name in ("head", *_NAMES) if name in telling]
    names = names or [name for name in ("head", *_NAMES) if name in chosen][:1]
    beyond = [name for name in ("beyond_distance",) if name in telling]
    return chosen[[*names[:2], value, *answers[:1], *beyond]]


def with_units(frame: pd.DataFrame, score: str = "") -> pd.DataFrame:
    """Name roles in words, in cells and column names, and add units to column names."""
    units = {**_UNITS, **dict.fromkeys(_OF_SCORES, _OF_A_SCORE.get(score, score))}
    names = {}
    for name in frame.columns:
        words = name.replace("_", " ") if _OWN_NAME.fullmatch(name) else in_words(name)
        unit = units.get(name)
        names[name] = f"{words} ({unit})" if unit else words
    for name in {"role", "removed"} & set(frame):
        frame = frame.assign(**{name: frame[name].map(in_words)})
    return frame.rename(columns=names)


def _short(value: float) -> str:
    return f"{value:.3g}"
