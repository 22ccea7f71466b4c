"""How many heads have each role, and how far the evidence goes: the counts that people read.

Of roles of pairs of words, heads are counted once for each step of evidence that holds for any of
their roles. A count is a lower bound, so that the undecided heads stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from headroles.models.heads.remaining import Head
from headroles.studies.evidence import ATTRACTORS, CLASS, DISTANCE, STEPS
from headroles.testing.evidence import NO, POSITIONAL, UNDECIDED, UNTESTABLE, YES
from headroles.wording import numbered

BEYOND = {
    CLASS: "beyond nearer words of the class",
    ATTRACTORS: "past such a word in between",
}
"""The steps beyond distance, on screens."""
BEYOND_RULES = BEYOND | {CLASS: "beyond the nearest word of a class"}
"""The same of first choices."""


@dataclass(frozen=True)
class Count:
    """The heads for which something is shown, and the other ones for which it is undecided.

    ``n_open`` of ``n_tests`` tests of heads and roles are undecided.
    """

    heads: list[Head]
    undecided: list[Head]
    n_open: int
    n_tests: int

    @classmethod
    def from_rows(cls, rows: pd.DataFrame) -> Count:
        """Count the heads of rows of a role table by their answers."""
        n_open = int((rows["answer"] == UNDECIDED).sum())
        n_tests = int((rows["answer"] != UNTESTABLE).sum())
        return cls(heads_in(rows[rows["assigned"]]), undecided_in(rows), n_open, n_tests)

    @property
    def none_shown(self) -> str:
        """The words for a count of 0, which is no finding while tests are undecided."""
        if not self.n_open:
            return "none shown"
        return f"none shown; {self.open_tests}: add documents"

    @property
    def none_in_cell(self) -> str:
        """The same for the cell of a grid."""
        if not self.n_open:
            return "none"
        return f"{self.n_open} of {numbered(self.n_tests, 'test')} open"

    @property
    def open_tests(self) -> str:
        """How many tests are undecided, in words."""
        return f"{self.n_open} of {numbered(self.n_tests, 'test')} undecided"


@dataclass(frozen=True)
class Rung(Count):
    """A step of evidence: the heads that it holds for, and those for which it is undecided."""

    step: str


def heads_in(rows: pd.DataFrame) -> list[Head]:
    """Return the heads of some rows, by layer and head, each once."""
    return sorted(set(zip(rows["layer"].tolist(), rows["head"].tolist(), strict=True)))


def undecided_in(rows: pd.DataFrame) -> list[Head]:
    """Return the heads that have none of the roles in some rows, and may have one."""
    having = set(heads_in(rows[rows["assigned"]]))
    return [head for head in heads_in(rows[rows["answer"] == UNDECIDED]) if head not in having]


def ladder(pairs: pd.DataFrame) -> list[Rung]:
    """Return the steps of evidence about the rows of roles of pairs of words.

    Steps that no row was tested for are missing.
    """
    rungs = [Rung(**vars(Count.from_rows(pairs)), step=DISTANCE)]
    for step in STEPS[1:]:
        answers = pairs[f"{step}_answer"]
        if not answers.isin((YES, NO, UNDECIDED)).any():
            continue
        is_tested = pairs["assigned"] & answers.isin((YES, NO, UNDECIDED))
        reached = reaches(pairs, step)
        is_open = pairs["assigned"] & ~reached & answers.isin((YES, UNDECIDED))
        heads = heads_in(pairs[reached])
        open_heads = [head for head in heads_in(pairs[is_open]) if head not in set(heads)]
        rungs.append(Rung(heads, open_heads, int(is_open.sum()), int(is_tested.sum()), step))
    return rungs


def positional_in(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of heads whose attention place may explain, strongest first."""
    return rows[rows["answer"] == POSITIONAL].sort_values("mean", ascending=False, kind="stable")


def reaches(rows: pd.DataFrame, step: str) -> pd.Series[bool]:
    """Tell which rows have a role with evidence up to a step; that of *distance* is *yes*."""
    if step == DISTANCE:
        return rows["assigned"]
    return pd.Series(np.isin(rows["evidence"], STEPS[STEPS.index(step) :]), index=rows.index)
