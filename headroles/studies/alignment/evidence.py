"""Counts of links -> error rates with intervals, and tests against the diagonal and other heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.arrays import BoolArray, FloatArray, IndexArray, IntArray
from headroles.inference.ratios import ratio_values
from headroles.testing.evidence import UNTESTABLE, answers, find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import LevelOptions

if TYPE_CHECKING:
    from headroles.studies.alignment.links import LinkCounts

WHOLE_LAYER = -1
"""Number of a head that stands for all heads of a layer together."""
_SHARE = 1.0
"""Size of an error rate, which is a share."""
Halves: TypeAlias = tuple[BoolArray, BoolArray]
"""Which pairs (n,) are of the first half, and of the second."""


@dataclass(frozen=True)
class Errors:
    """What error rates are made of: ``right`` of ``of`` links (n, C), for n aligned pairs.

    The alignment error rate of the links A of an aligner is 1 - (|A and S| + |A and P|) /
    (|A| + |S|), with the sure links S of the bitext, and P its sure and possible ones (Och and Ney
    2003). Sums are over all pairs.
    """

    right: IntArray
    of: IntArray

    @classmethod
    def from_counts(cls, found: NDArray[np.integer], sure: IntArray) -> Errors:
        """Make errors of links ``found`` (n, C, kinds) and numbers of ``sure`` ones (n,)."""
        links, in_sure, in_possible = np.moveaxis(found.astype(np.int64), -1, 0)
        return cls(in_sure + in_possible, links + sure[:, None])

    def take(self, rows: BoolArray, columns: Sequence[int] | slice = slice(None)) -> Errors:
        """Return the errors of some pairs, and of some aligners."""
        return Errors(self.right[rows][:, columns], self.of[rows][:, columns])

    def column(self, place: int) -> Errors:
        """Return the errors of one aligner."""
        return Errors(self.right[:, place, None], self.of[:, place, None])

    @property
    def rates(self) -> FloatArray:
        """Error rates (C,); NaN without a link."""
        total = self.of.sum(axis=0, dtype=np.float64)
        total[total == 0] = np.nan
        return np.asarray(1 - self.right.sum(axis=0) / total)

    @property
    def values(self) -> FloatArray:
        """A value (n, C) of each pair, with the error rate as their mean (`ratio_values`).

        A single missing one without pairs.
        """
        if not len(self.of):
            return np.full((1, self.of.shape[1]), np.nan)
        return 1 - ratio_values(self.right, self.of)

    def beside(self, second: Errors, first: BoolArray) -> Errors:
        """Return errors of single aligners: these for the ``first`` pairs (n,), else others."""
        return Errors(
            np.where(first[:, None], self.right, second.right),
            np.where(first[:, None], self.of, second.of),
        )


@dataclass(frozen=True)
class AlignedPairs:
    """The errors of all heads and layers in pairs that the bitext aligns.

    ``labels`` has the measure, layer and head of each column of ``errors``; ``diagonal`` has one
    column. ``clusters`` (n,) are those of the pairs, None for independent pairs. Heads of the
    ``absent`` columns were removed from the model, and are compared with nothing.
    """

    labels: pd.DataFrame
    errors: Errors
    diagonal: Errors
    clusters: IndexArray | None
    halves: Halves
    absent: frozenset[int] = frozenset()

    @classmethod
    def from_counts(
        cls,
        labels: pd.DataFrame,
        counts: LinkCounts,
        clusters: IndexArray | None,
        in_second: BoolArray,
        absent: frozenset[int],
    ) -> AlignedPairs:
        """Choose the aligned pairs among those that were counted."""
        there = counts.has_links
        sure = counts.sure[there]
        return cls(
            labels,
            Errors.from_counts(counts.found[there], sure),
            Errors.from_counts(counts.diagonal[there], sure),
            None if clusters is None or not there.any() else clusters[there],
            (~in_second[there], in_second[there]),
            absent,
        )

    def tests(self, options: LevelOptions) -> dict[str, NDArray[Any]]:
        """Return error rates with intervals, tests and answers (C,), by the names of columns."""
        values, clusters = self.errors.values, self.clusters
        values[:, [*self.absent]] = np.nan
        tests = Hypotheses.from_values(values, 0.0, size=_SHARE, clusters=clusters)
        limits = tests.intervals(options.alpha)
        return {
            "n": tests.moments.n,
            "n_clusters": tests.moments.n_clusters,
            "aer": tests.moments.mean,
            "ci_low": limits.ci_low,
            "ci_high": limits.ci_high,
            **_fewer(values, self.diagonal.values, clusters, options, _BEYOND_DIAGONAL),
            **_fewer(values, self.rivals(), clusters, options, _BEYOND_OTHERS),
        }

    def rivals(self) -> FloatArray:
        """Return values (n, C) of the best other aligner of the same kind, chosen on other pairs.

        Heads are compared with heads, layers with layers, by the same measure. Each half of the
        pairs has the one with the lowest error rate in the other half. Columns without another one
        are NaN, and so are all if a half is empty.
        """
        first, second = self.halves
        values = np.full(self.errors.values.shape, np.nan)
        if not (first.any() and second.any()):
            return values
        ranked = [_ranked(self.errors.take(half)) for half in (second, first)]
        kinds = [self.labels["measure"], self.labels["head"] == WHOLE_LAYER]
        by_best: dict[tuple[int, ...], FloatArray] = {}
        for group in self.labels.groupby(kinds).indices.values():
            there = set(map(int, group)) - self.absent
            for column in there if len(there) > 1 else ():
                rest = there - {column}
                best = tuple(next(k for k in ranking if k in rest) for ranking in ranked)
                if best not in by_best:
                    by_best[best] = self.in_halves(best).values[:, 0]
                values[:, column] = by_best[best]
        return values

    def in_halves(self, columns: Sequence[int]) -> Errors:
        """Return errors of one aligner: a column for the first half, and one for the second."""
        of_first, of_second = map(self.errors.column, columns)
        return of_first.beside(of_second, self.halves[0])

    def best(self, measure: str, rows: BoolArray, of_layers: bool = False) -> list[int]:
        """Return the columns of heads, or of layers, by a measure: that with fewest errors first.

        Errors are counted in some ``rows`` (n,).
        """
        is_whole = self.labels["head"] == WHOLE_LAYER
        there = set(np.flatnonzero((self.labels["measure"] == measure) & (is_whole == of_layers)))
        ranked = _ranked(self.errors.take(rows))
        return [column for column in ranked if column in there - self.absent]

    def unseen_error(self, measure: str, of_layers: bool = False) -> float:
        """Return the error rate of the best head, or layer, each half chosen on the other one."""
        first, second = self.halves
        columns = [self.best(measure, rows, of_layers)[0] for rows in (second, first)]
        return float(self.in_halves(columns).rates[0])


def _ranked(errors: Errors) -> list[int]:
    """Return the columns, that with the lowest error rate first."""
    ranking: list[int] = np.argsort(errors.rates, kind="stable").tolist()
    return ranking


_BEYOND_DIAGONAL = "gain gain_low gain_high p_value p_adjusted p_below p_below_adjusted answer"
_BEYOND_OTHERS = "lead lead_low lead_high p_lead p_lead_adjusted p_behind p_behind_adjusted leads"
"""Columns of a difference, its limits, p-values of fewer and of more errors, and the answer."""


def _fewer(
    values: FloatArray,
    of_others: FloatArray,
    clusters: IndexArray | None,
    options: LevelOptions,
    names: str,
) -> dict[str, NDArray[Any]]:
    """Test whether aligners make fewer errors than others; values (n, C) of both are paired."""
    tests = Hypotheses.from_values(of_others - values, 0.0, size=2 * _SHARE, clusters=clusters)
    above, below = (find_p_values(tests, options, side) for side in ("greater", "less"))
    fewer, more = above.shows(options.alpha), below.shows(options.alpha)
    is_untestable = np.isnan(above.adjusted) & np.isnan(above.by_bound)
    limits = tests.intervals(options.alpha)
    columns = (
        tests.moments.mean,
        limits.ci_low,
        limits.ci_high,
        above.single,
        above.adjusted,
        below.single,
        below.adjusted,
        np.where(is_untestable, UNTESTABLE, answers(fewer | more, fewer * 1.0 - more)),
    )
    return dict(zip(names.split(), columns, strict=True))


def difference(
    errors: Errors, second: Errors | None, clusters: IndexArray | None, alpha: float
) -> tuple[float, float, float]:
    """Return the error rate of one aligner with its limits, or what another one has more."""
    values = errors.values if second is None else second.values - errors.values
    tests = Hypotheses.from_values(values, 0.0, size=2 * _SHARE, clusters=clusters)
    limits = tests.intervals(alpha)
    return tests.moments.mean[0], limits.ci_low[0], limits.ci_high[0]


def shares_of(counts: LinkCounts, absent: frozenset[int] = frozenset()) -> dict[str, NDArray[Any]]:
    """Return numbers of links and shares (C,), NaN where nothing is counted, as of absent heads.

    ``precision`` is the share of links that are sure or possible, ``recall`` the share of sure ones
    that are found, and ``f1`` their harmonic mean; ``linked`` is the share of target words that
    have a link.
    """
    links, _, _ = counts.found.sum(axis=0, dtype=np.float64).T
    shares = {
        "linked": links / _some(counts.words.sum()),
        **rates_of(counts.found[counts.has_links], counts.sure),
    }
    for share in shares.values():
        share[[*absent]] = np.nan
    return {"links": links.astype(np.int64), "confidence": counts.confidence, **shares}


def rates_of(found: NDArray[np.integer], sure: IntArray) -> dict[str, FloatArray]:
    """Return precision, recall and F1 (C,) of links ``found`` (n, C, kinds), of ``sure`` ones."""
    links, in_sure, in_possible = found.sum(axis=0, dtype=np.float64).T
    precision = in_possible / _some(links)
    recall = in_sure / _some(sure.sum())
    both = precision + recall
    f1 = np.where(both == 0, 0.0, 2 * precision * recall / _some(both))
    return {"precision": precision, "recall": recall, "f1": f1}


def _some(number: Any) -> FloatArray:
    """Return numbers to divide by, NaN for 0."""
    numbers = np.asarray(number, dtype=np.float64)
    return np.where(numbers == 0, np.nan, numbers)
