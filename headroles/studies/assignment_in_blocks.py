"""Scores that are too many to be held at once -> RoleTable: the same tests, from sums.

Memory does not grow with the number of examples: t and betting need sums only, over examples or
over documents, which must come whole. The scores are read twice, first for their means.
"""

from __future__ import annotations

import numpy as np

from headroles.corpus import Places
from headroles.errors import UsageError
from headroles.inference.sample import Sample
from headroles.inference.summing import MeansInBlocks, MomentsInBlocks
from headroles.scoring import ScoreBlock, ScoresInBlocks
from headroles.studies.heads import FloatArray, HeadColumns, are_units
from headroles.studies.options import AssignOptions
from headroles.studies.role_table import RoleTable
from headroles.studies.role_tests import Described, refuse_nothing, table_of, tests_asked
from headroles.studies.stopped import EXAMPLE, drawn_units
from headroles.studies.whole_documents import in_whole_documents
from headroles.testing import (
    BETTING,
    FCR,
    INTERVALS,
    MAX_T,
    TESTS,
    Hypotheses,
    RunningBets,
    T,
    TestOptions,
    size_of_scores,
)


def assign_in_blocks(scores: ScoresInBlocks, options: AssignOptions) -> RoleTable:
    """`assign_roles` of scores that come in blocks.

    Tests by t and by betting, with intervals by t, have the results that they have for all scores
    at once, but for the rounding of sums.

    Raises:
        UsageError: as `assign_roles`; what takes all scores at once; a document that goes on after
            others.
    """
    asked = tests_asked(scores, options)
    first = _FirstReading(scores)
    columns = first.columns
    refuse_nothing(columns)
    _refuse_what_takes_all(scores, first, asked, options)
    limits = columns.thresholds(scores.score, options.threshold)
    ddof = 0 if options.is_published else 1
    hypotheses = _hypotheses(scores, first, limits, asked, ddof)
    described = Described(
        scores.roles, scores.score, scores.provenance, first.longest, first.means_of
    )
    return table_of(described, columns, hypotheses, options, asked, {})


class _FirstReading:
    """What there is, and the mean of every column of every role."""

    def __init__(self, scores: ScoresInBlocks) -> None:
        self._scores = scores
        self._n_heads = scores.n_layers * scores.n_heads
        self._has = np.zeros(len(scores.roles), dtype=np.bool_)
        self._means = MeansInBlocks(len(scores.roles) * self._n_heads)
        self._documents = Places()
        self.n_examples = self.longest = 0
        for block in scores.blocks():
            self._add(block)

    def _add(self, block: ScoreBlock) -> None:
        self._has |= (block.counts > 0).any(axis=0)
        self._means.add(np.moveaxis(block.values, -1, 1).reshape(len(block.ids), -1))
        for document in dict.fromkeys(block.documents):
            self._documents.setdefault(document, 0)
        self.n_examples += len(block.ids)
        self.longest = max(self.longest, int(block.lengths.max(initial=0)))

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self._documents)

    @property
    def columns(self) -> HeadColumns:
        """What is tested, as `HeadColumns.of` has it."""
        scores = self._scores
        there = zip(scores.roles, self._has, strict=True)
        tested = tuple(role for role, has in there if has and role.is_tested)
        return HeadColumns(tested, scores.n_layers, scores.n_heads)

    def means(self, ids: tuple[str, ...]) -> MeansInBlocks:
        """Those of all heads for some roles, by role, layer and head."""
        known = [role.id for role in self._scores.roles]
        starts = np.array([known.index(name) for name in ids]) * self._n_heads
        return self._means.take((starts[:, None] + np.arange(self._n_heads)).ravel())

    def means_of(self, role: str) -> FloatArray:
        """The mean (layers * heads,) of every head for a role, NaN without any value."""
        means = self.means((role,))
        return np.where(means.n, means.mean, np.nan)


def _hypotheses(
    scores: ScoresInBlocks,
    first: _FirstReading,
    limits: FloatArray,
    asked: TestOptions,
    ddof: int,
) -> Hypotheses:
    """Those of `hypotheses_of`, with moments and bets in the place of values."""
    columns, clustered = first.columns, _is_clustered(scores, first, asked)
    moments = MomentsInBlocks(first.means(columns.ids), clustered=clustered, ddof=ddof)
    bets: RunningBets | None = RunningBets(limits, scores.record.drawn_from)
    for block in in_whole_documents(scores.blocks()) if clustered else scores.blocks():
        values, bounds, codes = columns.read(block, scores.roles, scores.score, clustered)
        moments.add(values, codes)
        if bets is None or bounds is None:
            bets = None  # what no bounds are known of cannot be bet on
        else:
            bets.add(Sample.of(values, codes), bounds)
    sample = moments.sample()
    return Hypotheses.of(
        sample,
        limits,
        size=size_of_scores(sample),
        labels=columns.places[0],
        names=columns.ids,
        family=asked.family,
        is_clustered=clustered,
        n_population=scores.record.drawn_from,
        bets=bets,
    )


def _is_clustered(scores: ScoresInBlocks, first: _FirstReading, asked: TestOptions) -> bool:
    """Whether documents are the units, as `clusters_of` has it."""
    return drawn_units(scores, asked) != EXAMPLE and are_units(first.n_documents, asked)


def _refuse_what_takes_all(
    scores: ScoresInBlocks, first: _FirstReading, asked: TestOptions, options: AssignOptions
) -> None:
    """Raise UsageError for what needs all values at once, and say how much that would take."""
    found = [
        (TESTS[asked.test].takes_values, f"test {asked.test}", f"--test {T} or {BETTING}"),
        (asked.correction == MAX_T, f"correction {MAX_T}", "--correction fdr_bh or holm"),
        (INTERVALS[asked.interval].takes_values, f"interval {asked.interval}", f"--interval {FCR}"),
        (
            scores.score.of_first_choice and options.threshold is None,
            "comparison with the best fixed offset",
            "--threshold",
        ),
    ]
    n_tests = len(first.columns.places[0])
    gib = first.n_examples * n_tests * 8 / 2**30
    for takes_all, what, cure in found:
        if takes_all:
            raise UsageError(
                f"the {what} takes all scores at once, {first.n_examples} examples x {n_tests} "
                f"tests or {gib:.1f} GiB, several times over; pass {cure}, which takes sums, or "
                "score part of the corpus"
            )
