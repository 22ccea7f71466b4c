"""Tests of means over documents or examples, of one column or of the best of several.

Each function takes arrays, so that simulations can test it on arrays whose truth is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.inference.payoffs import Bounds
from headroles.studies.claims.claim import Finding, NotTestable
from headroles.testing.catalogue import BETTING
from headroles.testing.evidence import PValues, find_equivalence, find_p_values, in_at_least
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.intervals import find_intervals
from headroles.testing.options import TestOptions
from headroles.wording import head_name

Ends = tuple[float, float]
"""The smallest and the largest possible value."""
SHARES: Ends = (0, 1)
DIFFERENCES: Ends = (-1, 1)

SINGLE = TestOptions(correction="none", clusters="none")
"""Single tests by t: the correction over claims comes later."""
SIDES: tuple[Literal["greater"], Literal["less"]] = ("greater", "less")
_HALVINGS = 12


def mean_beyond(
    values: ArrayLike,
    threshold: float,
    clusters: IndexArray | None,
    *,
    alpha: float,
    bounds: Ends | None = None,
) -> Finding:
    """Test whether a mean is above the threshold. Contradicted if it is below.

    With ``bounds``, the smallest and the largest possible value, the test is betting: p-values and
    interval hold for any distribution, and documents count alike. Without them it is t, clustered
    by documents.
    """
    tested, units = _of_column(values, threshold, clusters, bounds)
    shown, contradicted = (find_p_values(tested, _by(bounds), side) for side in SIDES)
    return _mean(tested, units, bounds, alpha, shown, contradicted)


def mean_within(
    values: ArrayLike,
    margin: float,
    clusters: IndexArray | None,
    *,
    alpha: float,
    bounds: Ends | None = None,
) -> Finding:
    """Test whether a mean is nearer to 0 than a margin. Contradicted if it is farther.

    ``bounds`` are those of `mean_beyond`.
    """
    tested, units = _of_column(values, 0.0, clusters, bounds)
    beyond = [
        find_p_values(tested.against(margin), _by(bounds), "greater"),
        find_p_values(tested.against(-margin), _by(bounds), "less"),
    ]
    near = find_equivalence(tested, _by(bounds), margin)
    found = _mean(tested, units, bounds, alpha, near, either(beyond))
    note = "" if bounds is None else _too_few(found.n, margin, bounds, alpha)
    return replace(found, note=note)


def most_within(
    values: FloatArray, margin: float, share: float, bounds: Ends, *, alpha: float
) -> Finding:
    """Test whether at least a share of the means of columns are nearer to 0 than a margin.

    ``values`` are (examples, heads). The test is a partial conjunction, valid for any
    dependence of the columns. Contradicted if more columns than the rest are above the margin.
    """
    tested = _hypotheses(values, 0.0, None, bounds)
    near = find_equivalence(tested, _by(bounds), margin)
    far = find_p_values(tested.against(margin), _by(bounds), "greater")
    n = tested.n_tests
    most = ceil(share * n)
    found = float((np.abs(tested.betting.test().mean) < margin).mean())
    sides = in_at_least(near, most), in_at_least(far, n - most + 1)
    note = _too_few(len(values), margin, bounds, alpha / (n - most + 1))
    return Finding(found, np.nan, np.nan, *sides, n, "heads", note)


def _too_few(n: int, margin: float, bounds: Ends, alpha: float) -> str:
    """Warn if no ``n`` values could show by betting that their mean is within the margin."""
    best = _hypotheses(np.resize([margin, -margin], (n, 1)) * 1e-6, 0.0, None, bounds)
    if find_equivalence(best, _by(bounds), margin).shows(alpha)[0]:
        return ""
    return f"{n} values cannot show a change below {margin:g}, however small it is; add some"


@dataclass(frozen=True)
class Halves:
    """Membership of examples (examples,) in the second half of the documents, and their clusters.

    ``shape`` are the layers, and the heads of each; ``alpha`` is the level of intervals.
    """

    in_second: BoolArray
    clusters: IndexArray | None
    shape: tuple[int, int]
    alpha: float


def heads_for_each(
    values: Mapping[str, FloatArray],
    threshold: float,
    halves: Halves,
    bounds: Ends | None = None,
) -> Finding:
    """Test by `some_head` whether each name has a head whose mean is above the threshold."""
    findings = [some_head(own, threshold, halves, bounds) for own in values.values()]
    return all_of(findings, list(values))


def some_head(
    values: FloatArray,
    threshold: float,
    halves: Halves,
    bounds: Ends | None = None,
    names: Sequence[str] | None = None,
) -> Finding:
    """Test whether some head has a mean above the threshold; values are (examples, heads).

    Columns may be of several directions. The head is chosen on the first half of the
    documents and tested on the second, so that the choice has no part in the test. Contradicted if
    every single head is shown to be below, on all documents: the largest p-value of all heads.
    ``bounds`` are those of `mean_beyond`; ``names`` are those of the columns, if they are not all
    heads of all layers.
    """
    there = ~np.isnan(values).all(axis=0)
    values, places = values[:, there], np.flatnonzero(there)
    first, second = values[~halves.in_second], values[halves.in_second]
    if not len(places) or np.isnan(first).all() or np.isnan(second).all():
        raise NotTestable("one half of the documents has no example for this claim; add documents")
    best = int(np.nanargmax(mean_of_known(first, 0)))
    units = None if halves.clusters is None else halves.clusters[halves.in_second]
    found = mean_beyond(second[:, best], threshold, units, alpha=halves.alpha, bounds=bounds)
    every = _hypotheses(values, threshold, halves.clusters, bounds)
    contradicted = in_at_least(find_p_values(every, _by(bounds), "less"), every.n_tests)
    n_layers, n_heads = halves.shape
    place = int(places[best])
    name = names[place] if names else head_name(divmod(place % (n_layers * n_heads), n_heads))
    return replace(found, contradicted=contradicted, note=f"head {name}")


def all_of(findings: Sequence[Finding], names: Sequence[str], least: str = "smallest") -> Finding:
    """Combine findings: shown if all are shown, contradicted if any is (Bonferroni).

    The effect is the smallest of all; the note calls it ``least``.
    """
    place = min(range(len(findings)), key=lambda place: findings[place].effect)
    weakest = findings[place]
    note = f"{least} of {', '.join(names)}: {names[place]}" if len(findings) > 1 else names[0]
    if weakest.note:
        note += f", {weakest.note}"
    shown = in_at_least(_stacked([one.shown for one in findings]), len(findings))
    contradicted = either([one.contradicted for one in findings])
    return replace(weakest, shown=shown, contradicted=contradicted, note=note)


def either(several: Sequence[PValues]) -> PValues:
    """Return one p-value of H1: any of the single H1 holds (Bonferroni)."""
    return in_at_least(_stacked(several), 1)


def _stacked(several: Sequence[PValues]) -> PValues:
    names = ("statistic", "single", "adjusted", "direction", "by_bound")
    return PValues(*(np.concatenate([getattr(one, name) for one in several]) for name in names))


def jackknifed(
    whole: float, without: Sequence[float], alpha: float
) -> tuple[float, float, FloatArray]:
    """Return the interval of a statistic and its pseudo-values, from values without one group each.

    The pseudo-values k * whole - (k - 1) * without of k groups of documents have the statistic,
    less its bias, for a mean (Tukey 1958); the interval is theirs by t.
    """
    k = len(without)
    pseudo = k * whole - (k - 1) * np.asarray(without, dtype=np.float64)
    if k < 2 or not np.isfinite(pseudo).all() or np.ptp(pseudo) < 1e-12:
        return np.nan, np.nan, pseudo  # a count that no group changes has no known error
    low, high = _interval(_hypotheses(pseudo[:, None], 0.0, None), alpha)
    shift = whole - pseudo.mean()
    return low + shift, high + shift, pseudo


def mean_of_known(values: ArrayLike, axis: int | tuple[int, ...]) -> FloatArray:
    """Return means without missing values, NaN where all are missing."""
    numbers = np.asarray(values, dtype=np.float64)
    n = (~np.isnan(numbers)).sum(axis=axis)
    return np.where(n, np.nansum(numbers, axis=axis) / np.maximum(n, 1), np.nan)


def _of_column(
    values: ArrayLike, threshold: float, clusters: IndexArray | None, bounds: Ends | None
) -> tuple[Hypotheses, IndexArray | None]:
    """Return H0 of the mean of the values (examples,) that are not missing, and their clusters."""
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    there = ~np.isnan(column[:, 0])
    if not there.any():
        raise NotTestable("no example has a value for this claim")
    units = None if clusters is None else clusters[there]
    return _hypotheses(column[there], threshold, units, bounds), units


def _mean(
    tested: Hypotheses,
    units: IndexArray | None,
    bounds: Ends | None,
    alpha: float,
    shown: PValues,
    contradicted: PValues,
) -> Finding:
    """Return the finding of a mean, with its interval."""
    if bounds is None:
        mean, ends = float(tested.moments.mean[0]), _interval(tested, alpha)
    else:
        mean, ends = float(tested.betting.test().mean[0]), _betting_interval(tested, bounds, alpha)
    n, unit = int(tested.moments.n_clusters[0]), "examples" if units is None else "documents"
    return Finding(mean, *ends, shown, contradicted, n, unit)


def _hypotheses(
    values: FloatArray, threshold: float, clusters: IndexArray | None, bounds: Ends | None = None
) -> Hypotheses:
    """Return H0 of each column: its mean without missing values is the threshold."""
    known = None
    if bounds is not None:
        low, high = (np.full((len(values), 1), end, dtype=np.float64) for end in bounds)
        kinds = np.zeros(values.shape[1], dtype=np.intp)
        known = Bounds(low, high, low[0], high[0], kinds, cap=bounds[1] - bounds[0])
    size = size_of(values) + abs(threshold)
    return Hypotheses.of(values, threshold, size=size, clusters=clusters, bounds=known)


def _by(bounds: Ends | None) -> TestOptions:
    """Return the test of a mean: by betting if values have bounds, else by t."""
    return SINGLE if bounds is None else replace(SINGLE, test=BETTING)


def _betting_interval(tested: Hypotheses, bounds: Ends, alpha: float) -> tuple[float, float]:
    """Return the ends of the means that betting does not reject, at half of alpha on each side."""
    mean = float(tested.betting.test().mean[0])

    def limit(side: Literal["greater", "less"], rejected: float) -> float:
        accepted = mean
        for _ in range(_HALVINGS):
            middle = (rejected + accepted) / 2
            found = find_p_values(tested.against(middle), _by(bounds), side)
            if found.shows(alpha / 2)[0]:
                rejected = middle
            else:
                accepted = middle
        return rejected

    return limit("greater", float(bounds[0])), limit("less", float(bounds[1]))


def _interval(tested: Hypotheses, alpha: float) -> tuple[float, float]:
    found: Any = find_intervals(tested, TestOptions(alpha=alpha, correction="none"))
    return float(found.ci_low[0]), float(found.ci_high[0])
