"""Layers and a sample -> factors of the layers' queries and keys, of a rank or within an error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headroles.errors import UsageError
from headroles.models.options import SHARED
from headroles.models.shared.factorisation import (
    Factors,
    InputMoments,
    factorise,
    score_error,
)
from headroles.models.shared.sites import ReadSums, Site, Sums, collect_moments
from headroles.passes.examples import ExampleBatch
from headroles.passes.loop import Passes
from headroles.passes.options import OnProgress, Rounds
from headroles.studies.sharing.measures import multiplications
from headroles.studies.sharing.options import INPUTS, CollaborateOptions
from headroles.studies.sharing.sample import SampleText, n_batches

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_STEPS = 48
"""A search for the rank of an error tries multiples of the full rank / 48."""
_PASSES_OF_FIT = 2
"""Passes over the sample that take about as long as a fit; used until the first fit is timed."""


@dataclass(frozen=True)
class Fit:
    """The factors of one site, and their errors."""

    site: Site
    factors: Factors
    seconds: float
    tensor_error: float
    score_error: float
    score_error_held_out: float

    def multiplications(self, tokens: int) -> tuple[int, int]:
        """Count multiplications for a sequence of ``tokens``, before and after."""
        heads, _, width = self.site.maps.query.shape
        sharing = heads if self.factors.method == SHARED else 0
        before = multiplications(width, self.site.maps.full_rank, tokens)
        return before, multiplications(width, self.factors.rank, tokens, sharing)


def check_goal(options: CollaborateOptions) -> None:
    """Raise UsageError unless either a rank or an error is given."""
    if (options.rank is None) == (options.error is None):
        raise UsageError("give exactly one of `rank` and `error`")


def check_rank(options: CollaborateOptions, sites: tuple[Site, ...], n_heads: int) -> None:
    """Raise UsageError for a rank that layers of ``n_heads`` cannot have."""
    if options.rank is None:
        return
    size = sites[0].maps.query.shape[1]
    if options.rank > n_heads * size:
        raise UsageError(
            f"the rank is {options.rank}; a layer has {n_heads} heads of {size} dimensions, so it "
            f"must be {n_heads * size} or less"
        )
    if options.method != SHARED and options.rank % n_heads:
        raise UsageError(
            f"the rank is {options.rank}; with factors per head it must be a multiple of "
            f"the {n_heads} heads"
        )


def fit_sites(
    network: PreTrainedModel,
    sites: tuple[Site, ...],
    text: SampleText,
    options: CollaborateOptions,
    n_heads: int,
    rounds: Rounds,
    later: int,
) -> list[Fit]:
    """Fit factors of every site to the examples to learn from; whole layers have ``n_heads``.

    ``rounds`` counts batches, of which ``later`` follow; a fit counts as the batches that take as
    long.
    """
    n_each = text.n_batches * _PASSES_OF_FIT
    rounds.expect(text.n_batches + n_each * len(sites) + later)
    start = time.process_time()
    learnt, held_out = (
        moments_of(network, sites, one, rounds.share(n_batches(one)))
        for one in (text.learnt, text.held_out)
    )
    pace = text.n_batches / max(time.process_time() - start, 1e-3)  # clocks may be coarse
    fits: list[Fit] = []
    for site, seen, unseen in zip(sites, learnt, held_out, strict=True):
        plain = InputMoments.none(site.maps.query.shape[2])
        tell, start = rounds.start(n_each), time.process_time()
        weighting = seen if options.weighting == INPUTS else plain
        factors = _find(site, weighting, seen, options, n_heads)
        seconds = time.process_time() - start
        errors = (score_error(site.maps, factors, one) for one in (plain, seen, unseen))
        fits.append(Fit(site, factors, seconds, *errors))
        tell(n_each)
        n_each = round(pace * sum(fit.seconds for fit in fits) / len(fits))
        rounds.expect(n_each * (len(sites) - len(fits)) + later)
    return fits


def moments_of(
    network: PreTrainedModel,
    sites: tuple[Site, ...],
    passes: Passes[ExampleBatch],
    on_progress: OnProgress | None = None,
) -> tuple[InputMoments, ...]:
    """Return moments of the inputs of each site over all examples."""

    def over_batches(read: ReadSums) -> Iterator[list[tuple[int, Sums]]]:
        for _, found in passes.over_all(lambda batch: read(batch.inputs), on_progress):
            yield found

    return collect_moments(network, sites, over_batches)


def _find(
    site: Site,
    weighting: InputMoments,
    seen: InputMoments,
    options: CollaborateOptions,
    n_heads: int,
) -> Factors:
    """Find factors of the rank asked for, or of the least rank that meets the error."""

    def at(rank: int) -> Factors:
        return factorise(
            site.maps,
            weighting,
            rank,
            options.method,
            seed=options.seed,
            restarts=options.restarts,
        )

    if options.rank is not None:
        return at(_own_rank(site, options.rank, options.method, n_heads))
    assert options.error is not None
    ranks = list(_ranks(site, options.method))
    low, high = 0, len(ranks) - 1
    best = at(ranks[high])
    while low < high:
        middle = (low + high) // 2
        factors = at(ranks[middle])
        if score_error(site.maps, factors, seen) <= options.error:
            high, best = middle, factors
        else:
            low = middle + 1
    return best


def _own_rank(site: Site, rank: int, method: str, n_heads: int) -> int:
    """Scale a rank of layers of ``n_heads`` to a layer that may have lost some heads."""
    if method == SHARED:
        return min(rank, site.maps.full_rank)
    return rank // n_heads * len(site.heads)


def _ranks(site: Site, method: str) -> Iterator[int]:
    """Return the ranks to choose from, the full one last."""
    heads, full = len(site.maps.query), site.maps.full_rank
    step = max(1, full // _STEPS) if method == SHARED else heads
    yield from range(step, full, step)
    yield full
