"""Model and sample -> a model whose heads share queries and keys, and what it does differently."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headroles.corpus import Corpus
from headroles.errors import UsageError
from headroles.models import Model, ModelOptions, load_encoder, load_whole, open_reader
from headroles.models.factorisation import Factors, Moments, factorise, score_error
from headroles.models.inputs import collect_moments
from headroles.models.sites import Site, find_sites, install
from headroles.options import takes
from headroles.provenance import new_provenance
from headroles.studies.collaboration.measures import (
    LENGTHS,
    count_parameters,
    divergences,
    multiplications,
    time_passes,
)
from headroles.studies.collaboration.options import INPUTS, SHARED, CollaborateOptions
from headroles.studies.collaboration.result import COLUMNS, Collaboration, CollaborativeModel
from headroles.studies.collaboration.sample import SampleText, read_sample

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_STEPS = 48
"""Ranks that are tried for a target error lie a full rank / 48 apart, as shared dimensions do."""


@takes(CollaborateOptions)
def collaborate_heads(
    model: Model, sample: Corpus | None, options: CollaborateOptions
) -> tuple[CollaborativeModel, Collaboration]:
    """Make a model whose heads share query and key dimensions, and measure what it changes.

    Collaborative attention (Cordonnier et al. 2020): with R dimensions for all heads of a layer
    in the place of d for each,

        score_h(i, j) = ((m_h * Q x_i + c_h) . K x_j) / sqrt(d)

    The bias of the keys is dropped, as the softmax does not see it, and the scale is that of the
    original. At full rank the model is the original; below, the factors have the least mean square
    error of scores on the sample that alternating least squares find (`models.factorisation`).

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode, which stays as it is.
        sample: text like that which the model is for, to weight and to measure with; None for
            the bundled treebank.
        options: keyword arguments, described below.

    Returns:
        The new model with its tokenizer, and the table of its layers.

    Raises:
        ModelSupportError: a family with position terms in its scores.
        UsageError: a rank that the layers cannot have, or neither a rank nor an error.
        CorpusError, ModelError, TokenizerError: as `score_heads`.
    """
    return collaborate(model, sample, options)


def collaborate(
    model: Model, sample: Corpus | None, options: CollaborateOptions
) -> tuple[CollaborativeModel, Collaboration]:
    """`collaborate_heads` for callers that have their options together."""
    _check_goal(options)
    network, tokenizer = load_whole(model, options)
    encoder = load_encoder(network, replace(options.part(ModelOptions), tokenizer=tokenizer))
    with open_reader(network) as reader:
        n_heads, family = reader.n_heads, reader.family.name
    sites = find_sites(network, n_heads)
    _check_rank(options, sites)
    text = read_sample(encoder, sample, options)
    fits = _fit(network, sites, text, options)
    after = copy.deepcopy(network)
    for fit in fits:
        install(after, fit.site, fit.factors)
    parts = (("divergence", text.learnt), ("divergence_held_out", text.held_out))
    measured = {name: divergences(network, after, batches) for name, batches in parts}
    frame = _frame(fits, measured)
    provenance = new_provenance(
        model={**encoder.description, "family": family},
        corpus=text.description,
        options={**options.record(), "device": encoder.device.type},
    )
    provenance["collaboration"] = {
        "tokens": text.n_tokens,
        "parameters_before": count_parameters(network),
        "parameters_after": count_parameters(after),
        "passes": _passes(network, after, fits, encoder.max_tokens),
    }
    return CollaborativeModel(after, tokenizer, provenance), Collaboration(frame, provenance)


def _check_goal(options: CollaborateOptions) -> None:
    if (options.rank is None) == (options.error is None):
        raise UsageError(
            "how far to go is not said, or twice; give either a rank (--rank) or a largest "
            "error of scores (--error)"
        )


@dataclass(frozen=True)
class _Fit:
    """The factors of one site, and how good they are."""

    site: Site
    factors: Factors
    seconds: float
    tensor_error: float
    score_error: float
    score_error_held_out: float

    def multiplications(self, tokens: int) -> tuple[int, int]:
        """Of a sequence of ``tokens``, before and after."""
        heads, _, width = self.site.maps.query.shape
        sharing = heads if self.factors.method == SHARED else 0
        before = multiplications(width, self.site.maps.full_rank, tokens)
        return before, multiplications(width, self.factors.rank, tokens, sharing)


def _check_rank(options: CollaborateOptions, sites: tuple[Site, ...]) -> None:
    if options.rank is None:
        return
    for site in sites:
        heads, full = len(site.maps.query), site.maps.full_rank
        if options.rank > full:
            raise UsageError(
                f"the rank is {options.rank}; layer {site.layers[0]} has {heads} heads of "
                f"{full // heads} dimensions, so it must be {full} or less"
            )
        if options.method != SHARED and options.rank % heads:
            raise UsageError(
                f"the rank is {options.rank}; with factors per head it must be a multiple of "
                f"the {heads} heads"
            )


def _fit(
    network: PreTrainedModel, sites: tuple[Site, ...], text: SampleText, options: CollaborateOptions
) -> list[_Fit]:
    learnt = collect_moments(network, sites, text.learnt)
    held_out = collect_moments(network, sites, text.held_out)
    fits = []
    for site, seen, unseen in zip(sites, learnt, held_out, strict=True):
        plain = Moments.none(site.maps.query.shape[2])
        start = time.process_time()
        factors = _find(site, seen if options.weighting == INPUTS else plain, seen, options)
        seconds = time.process_time() - start
        errors = (score_error(site.maps, factors, one) for one in (plain, seen, unseen))
        fits.append(_Fit(site, factors, seconds, *errors))
    return fits


def _find(site: Site, weighting: Moments, seen: Moments, options: CollaborateOptions) -> Factors:
    """Factors of the rank asked for, or of the least rank whose error on the sample is met."""

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
        return at(options.rank)
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


def _ranks(site: Site, method: str) -> Iterator[int]:
    """Ranks to choose from, the full one last."""
    heads, full = len(site.maps.query), site.maps.full_rank
    step = max(1, full // _STEPS) if method == SHARED else heads
    yield from range(step, full, step)
    yield full


def _frame(fits: list[_Fit], measured: dict[str, Any]) -> pd.DataFrame:
    rows = []
    for fit in fits:
        heads, size, width = fit.site.maps.query.shape
        shared, rank = fit.factors.method == SHARED, fit.factors.rank
        before, after = fit.multiplications(LENGTHS[1])
        common = {
            "method": fit.factors.method,
            "rank": rank,
            "full_rank": heads * size,
            "tensor_error": fit.tensor_error,
            "score_error": fit.score_error,
            "score_error_held_out": fit.score_error_held_out,
            "parameters_before": 2 * heads * size * (width + 1),
            "parameters": 2 * rank * width + (2 * heads if shared else 1) * rank,
            "multiplications_before": before,
            "multiplications": after,
            "rounds": fit.factors.iterations,
            "converged": fit.factors.converged,
            "seconds": fit.seconds,
        }
        for layer in fit.site.layers:
            own = {name: float(values[layer]) for name, values in measured.items()}
            rows.append({"layer": layer, **common, **own})
    frame = pd.DataFrame(rows).sort_values("layer", ignore_index=True)
    return frame[list(COLUMNS)]


def _passes(
    before: PreTrainedModel, after: PreTrainedModel, fits: list[_Fit], longest: int
) -> list[dict[str, Any]]:
    """What passes over sequences of some lengths take: multiplications of scores, and seconds."""
    rows = time_passes(before, after, longest)
    for row in rows:
        counts = [
            np.multiply(fit.multiplications(row["tokens"]), len(fit.site.layers)) for fit in fits
        ]
        first, second = np.sum(counts, axis=0).tolist()
        row["multiplications"] = second / first
        row["time"] = row["seconds_after"] / row["seconds_before"]
    return rows
