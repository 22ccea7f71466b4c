"""Documents of scores, samples of whole documents, and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headroles import HeadScores

Rows: TypeAlias = NDArray[np.intp]


def rows_by_document(scores: HeadScores) -> tuple[Rows, ...]:
    """Return the rows of each document, by name."""
    labels = np.asarray(scores.documents)
    return tuple(np.flatnonzero(labels == name) for name in np.unique(labels))


def sample_of(documents: tuple[Rows, ...], drawn: Iterable[int]) -> tuple[Rows, Rows]:
    """Return the rows of drawn documents, and their clusters; one drawn twice is two clusters."""
    rows = [documents[k] for k in drawn]
    return np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(own) for own in rows])


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Format a table whose first column is text and whose others are figures."""
    names = list(header)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
