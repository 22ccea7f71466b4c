"""Model and sample -> a model whose heads share queries and keys, and what it does differently."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headroles.corpus import Corpus
from headroles.errors import UsageError
from headroles.models import Model, load_encoder, load_whole, open_reader
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
from headroles.studies.collaboration.task import change_on
from headroles.tasks import open_run

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_STEPS = 48
"""Ranks that are tried for a target error lie a full rank / 48 apart, as shared dimensions do."""


@takes(CollaborateOptions)
def collaborate_heads(
    model: Model,
    sample: Corpus | None,
    options: CollaborateOptions,
    task: str | Path | None = None,
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
        task: examples of what the model was trained for, which it was not trained on; its loss
            and metrics are measured before and after.

    Returns:
        The new model with its tokenizer, and the table of its layers.

    Raises:
        ModelSupportError: a family with position terms in its scores.
        UsageError: a rank that the layers cannot have, or neither a rank nor an error.
        CorpusError, ModelError, TokenizerError: as `score_heads`, and for a task as `ablate_heads`.
    """
    return collaborate(model, sample, options, task)


def collaborate(
    model: Model,
    sample: Corpus | None,
    options: CollaborateOptions,
    task: str | Path | None = None,
) -> tuple[CollaborativeModel, Collaboration]:
    """`collaborate_heads` for callers that have their options together."""
    _check_goal(options)
    network, tokenizer = load_whole(model, options)
    asked = replace(options, tokenizer=tokenizer)
    encoder = load_encoder(network, asked)
    with open_reader(network) as reader:
        n_heads, family = reader.n_heads, reader.family.name
    sites = find_sites(network, n_heads)
    _check_rank(options, sites, n_heads)
    run = None if task is None else open_run(network, task, asked)
    text = read_sample(encoder, sample, options)
    fits = _fit(network, sites, text, options, n_heads)
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
        "task": None if run is None else change_on(run, open_run(after, run.task.file, asked)),
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


def _check_rank(options: CollaborateOptions, sites: tuple[Site, ...], n_heads: int) -> None:
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


def _fit(
    network: PreTrainedModel,
    sites: tuple[Site, ...],
    text: SampleText,
    options: CollaborateOptions,
    n_heads: int,
) -> list[_Fit]:
    learnt = collect_moments(network, sites, text.learnt)
    held_out = collect_moments(network, sites, text.held_out)
    fits = []
    for site, seen, unseen in zip(sites, learnt, held_out, strict=True):
        plain = Moments.none(site.maps.query.shape[2])
        start = time.process_time()
        weighting = seen if options.weighting == INPUTS else plain
        factors = _find(site, weighting, seen, options, n_heads)
        seconds = time.process_time() - start
        errors = (score_error(site.maps, factors, one) for one in (plain, seen, unseen))
        fits.append(_Fit(site, factors, seconds, *errors))
    return fits


def _find(
    site: Site, weighting: Moments, seen: Moments, options: CollaborateOptions, n_heads: int
) -> Factors:
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
    """What a rank that was asked for layers of ``n_heads`` is in one that may have lost some."""
    if method == SHARED:
        return min(rank, site.maps.full_rank)
    return rank // n_heads * len(site.heads)


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
