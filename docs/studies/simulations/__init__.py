"""Simulations: how often tests, intervals and plans err where the truth is known.

`docs.studies.simulations.scores` and `.steps` draw from scores of real heads, `.tasks` from losses
without heads, `.claims` draws measurements of claims. Each study is a function from folders and a
number of draws to the rows of a table; `python -m docs.studies.simulations` prints it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from headroles.arrays import FloatArray

ALPHA = 0.05
Row: TypeAlias = dict[str, object]
Figures: TypeAlias = dict[str, float | FloatArray]
"""What one draw shows, by name: a share, or one of each column (NaN: none), whose mean counts.

A name that ends in # is no share, but a number.
"""
Study: TypeAlias = Callable[[list[Path], int], Iterator[Row]]


def generator(*names: object) -> np.random.Generator:
    """Make a generator whose seed is a name; PCG64 is not what the package draws with."""
    return np.random.default_rng(zlib.crc32("/".join(map(str, names)).encode()))


def averaged(draws: Iterable[Figures]) -> dict[str, str]:
    """Average figures over draws, in % with the Monte Carlo error of the mean."""
    several: dict[str, list[float]] = {}
    for figures in draws:
        for name, figure in figures.items():
            there = np.asarray(figure)[~np.isnan(figure)]
            if there.size:
                several.setdefault(name, []).append(float(there.mean()))
    cells = {}
    for name, values in several.items():
        error = np.std(values) / math.sqrt(max(len(values) - 1, 1))
        text = f"{100 * np.mean(values):.1f} ± {100 * error:.1f}"
        cells[name.removesuffix("#")] = f"{np.mean(values):.3g}" if name.endswith("#") else text
    return cells


def markdown(rows: Iterable[Row]) -> str:
    """Format rows as a table."""
    frame = pd.DataFrame(list(rows)).fillna("")
    return str(frame.to_markdown(index=False, disable_numparse=True))
