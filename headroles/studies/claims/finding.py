"""Findings: what tests say of a claim, from values of documents or heads and of their controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.errors import HeadRolesError
from headroles.inference.sample import Alternative, Bounds
from headroles.testing.evidence import BETTING, NEW, PValues, find_p_values, in_at_least
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.options import TestOptions
from headroles.wording import head_name

SHARES, DIFFERENCES = (0.0, 1.0), (-1.0, 1.0)
"""The smallest and the largest possible value."""
SHUFFLES = 9999
_HALVINGS = 12
SIDES: tuple[Alternative, Alternative] = ("greater", "less")
_SINGLE = TestOptions(correction="none", clusters="none")
_BETTING = replace(_SINGLE, test=BETTING)
NOTHING = PValues.alone(np.full(1, np.nan), np.full(1, np.nan))
"""The p-value of a test that was not made."""


class NotTestable(HeadRolesError):
    """A claim that cannot be tested with the input; the message is the reason."""


@dataclass(frozen=True)
class Finding:
    """Effect of a claim, that of its control, and p-values of the claim and of its opposite.

    ``control`` is the effect where the claim cannot hold. ``ci_low`` and ``ci_high`` end the
    interval that belongs to the test, NaN for none. Without p-values a claim is described, without
    an effect it could not be tested. ``n`` is the number of random units, and ``unit`` their name.
    """

    effect: float = np.nan
    control: float = np.nan
    n: int = 0
    unit: str = ""
    shown: PValues = NOTHING
    contradicted: PValues = NOTHING
    ci_low: float = np.nan
    ci_high: float = np.nan
    note: str = ""

    @property
    def opposite(self) -> Finding:
        """The finding of the opposite claim, with the same effect."""
        return replace(self, shown=self.contradicted, contradicted=self.shown)


def two_sides(tested: Hypotheses, test: str | None = None) -> tuple[PValues, PValues]:
    """Return single p-values of H1: the mean is above the threshold, and of H1: it is below."""
    above, below = (find_p_values(tested, _SINGLE, side, test) for side in SIDES)
    return above, below


def at_least(several: Sequence[PValues], n: int) -> PValues:
    """Return one p-value of H1: ``n`` of the single H1 hold, whatever their dependence."""
    p = np.concatenate([p_values.evidence for p_values in several])
    return in_at_least(PValues.alone(p, p), n)


def mean_beyond(
    values: ArrayLike,
    threshold: float,
    clusters: IndexArray | None,
    bounds: tuple[float, float] = SHARES,
    alpha: float = 0.05,
) -> Finding:
    """Test by betting whether the mean of documents is above a threshold, for any distribution.

    Args:
        values: (examples,), NaN for examples without a value.
        threshold: the mean under H0; the opposite is a mean below.
        clusters: (examples,), None for independent examples.
        bounds: the smallest and the largest possible value.
        alpha: 1 less the level of the interval, of the means that betting does not reject.

    Raises NotTestable without any value.
    """
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    there = ~np.isnan(column[:, 0])
    if not there.any():
        raise NotTestable("no example has a value for this claim")
    units = None if clusters is None else clusters[there]
    tested = _bounded(column[there], threshold, units, bounds)
    shown, contradicted = two_sides(tested, BETTING)
    mean = float(tested.betting.mean[0])
    low, high = (_limit(tested, *end, mean, alpha) for end in zip(SIDES, bounds, strict=True))
    n, unit = int(tested.moments.n_clusters[0]), "examples" if units is None else "documents"
    return Finding(mean, np.nan, n, unit, shown, contradicted, low, high)


def _limit(
    tested: Hypotheses, side: Alternative, end: float, accepted: float, alpha: float
) -> float:
    """Return the mean nearest to ``end`` that betting does not reject, at half of alpha."""
    for _ in range(_HALVINGS):
        middle = (end + accepted) / 2
        rejects = find_p_values(tested.against(middle), _BETTING, side).shows(alpha / 2)[0]
        end, accepted = (middle, accepted) if rejects else (end, middle)
    return end


def _bounded(
    values: FloatArray, threshold: float, clusters: IndexArray | None, bounds: tuple[float, float]
) -> Hypotheses:
    """Return H0 of each column: its mean without missing values is the threshold."""
    low, high = (np.full((len(values), 1), end) for end in bounds)
    kinds = np.zeros(values.shape[1], dtype=np.intp)
    limits = Bounds(low, high, low[0], high[0], kinds, cap=bounds[1] - bounds[0])
    size = size_of(values) + abs(threshold)
    return Hypotheses.from_values(values, threshold, size=size, clusters=clusters, bounds=limits)


def beyond_values(
    finding: Finding, values: ArrayLike, control: ArrayLike, clusters: IndexArray | None
) -> Finding:
    """Show a claim only if the values (examples,) exceed those of the control, too."""
    differences = np.asarray(values, dtype=np.float64) - np.asarray(control, dtype=np.float64)
    more = mean_beyond(differences, 0.0, clusters, DIFFERENCES)
    return replace(
        finding,
        control=finding.effect - more.effect,
        shown=at_least([finding.shown, more.shown], 2),
    )


def beyond_draws(
    finding: Finding, effect: float, draws: Sequence[float], both_sides: bool = False
) -> Finding:
    """Show a claim only if the effect is unlike that of control models, by t of one more draw.

    ``effect`` is measured as in ``draws``. With ``both_sides`` the opposite is shown only
    if the effect is below that of control models.
    """
    drawn = np.asarray(draws, dtype=np.float64)
    above, below = two_sides(Hypotheses.from_draws(effect, drawn[:, None], size=1.0), NEW)
    less = at_least([finding.contradicted, below], 2) if both_sides else finding.contradicted
    shown = at_least([finding.shown, above], 2)
    return replace(finding, control=float(drawn.mean()), shown=shown, contradicted=less)


@dataclass(frozen=True)
class Halves:
    """Membership of examples (examples,) in the second half of the documents, and their clusters.

    ``shape`` are the layers, and the heads of each.
    """

    in_second: BoolArray
    clusters: IndexArray | None
    shape: tuple[int, int]


def some_head(
    values: FloatArray,
    threshold: float,
    halves: Halves,
    control: FloatArray | None = None,
    alpha: float = 0.05,
) -> Finding:
    """Test whether some head has a mean share above the threshold.

    The head is chosen on the first half of the documents and tested on the second, so that the
    choice has no part in the test. Contradicted if every single head is shown to be below.

    Args:
        values: (examples, heads), or several directions of all heads one after the other.
        threshold: the mean under H0.
        halves: of the examples.
        control: values of the same heads that the chosen one has to exceed, too.
        alpha: that of `mean_beyond`.

    Raises NotTestable where one half has no example.
    """
    first, second = values[~halves.in_second], values[halves.in_second]
    if np.isnan(first).all() or np.isnan(second).all():
        raise NotTestable("one half of the documents has no example for this claim; add documents")
    best = int(np.nanargmax(mean_of_known(first, 0)))
    units = None if halves.clusters is None else halves.clusters[halves.in_second]
    finding = mean_beyond(second[:, best], threshold, units, alpha=alpha)
    if control is not None:
        finding = beyond_values(finding, second[:, best], control[halves.in_second, best], units)
    every = _bounded(values[:, ~np.isnan(values).all(axis=0)], threshold, halves.clusters, SHARES)
    below = in_at_least(find_p_values(every, _BETTING, "less"), every.n_tests)
    n_layers, n_heads = halves.shape
    name = head_name(divmod(best % (n_layers * n_heads), n_heads))
    return replace(finding, contradicted=below, note=f"head {name}")


def all_of(findings: Mapping[str, Finding]) -> Finding:
    """Combine findings by name: shown if all are, contradicted if any is (Bonferroni).

    Effect, control and interval are those of the smallest effect.
    """
    name = min(findings, key=lambda name: findings[name].effect)
    weakest, every = findings[name], list(findings.values())
    note = ", ".join(filter(None, (weakest.note, f"smallest of {', '.join(findings)}: {name}")))
    shown = at_least([finding.shown for finding in every], len(every))
    contradicted = at_least([finding.contradicted for finding in every], 1)
    return replace(weakest, shown=shown, contradicted=contradicted, note=note)


def mean_of_known(values: ArrayLike, axis: int | tuple[int, ...]) -> FloatArray:
    """Return means without missing values, NaN where all are missing."""
    numbers = np.asarray(values, dtype=np.float64)
    n = (~np.isnan(numbers)).sum(axis=axis)
    return np.where(n, np.nansum(numbers, axis=axis) / np.maximum(n, 1), np.nan)
