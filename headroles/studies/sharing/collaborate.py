"""Model and sample -> a model whose heads share queries and keys, and its differences."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from msgspec import structs

from headroles.arrays import FloatArray
from headroles.corpus import Corpus
from headroles.models.attention.reader import open_reader
from headroles.models.loading.encoder import Model, load_encoder, load_whole
from headroles.models.options import SHARED
from headroles.models.shared.sites import find_sites, install
from headroles.options import takes
from headroles.passes.options import Rounds, shown_in_notebooks
from headroles.passes.timing import LENGTHS, time_in_turns
from headroles.studies.sharing.fitting import Fit, check_goal, check_rank, fit_sites
from headroles.studies.sharing.measures import count_parameters, divergences
from headroles.studies.sharing.options import CollaborateOptions
from headroles.studies.sharing.result import (
    Collaboration,
    CollaborationRecord,
    CollaborativeModel,
    Pass,
    Whole,
)
from headroles.studies.sharing.sample import change_on, n_batches, read_sample
from headroles.tasks.running import open_run

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@takes(CollaborateOptions)
def collaborate_heads(
    model: Model,
    sample: Corpus | None,
    *,
    task: str | Path | None = None,
    options: CollaborateOptions,
) -> tuple[CollaborativeModel, Collaboration]:
    """Make a model whose heads share query and key dimensions, and measure its differences.

    Collaborative attention (Cordonnier et al. 2020): with R dimensions for all heads of a layer
    in the place of d for each,

        score_h(i, j) = ((m_h * Q x_i + c_h) . K x_j) / sqrt(d)

    The bias of the keys is dropped, since it does not change the softmax; the scale stays. At full
    rank the model is the original; below, the factors have the least mean square error of scores on
    the sample that alternating least squares find (`models.factorisation`).

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode, which does not change.
        sample: text of the kind that the model reads, to weight and to measure with; None for the
            bundled treebank.
        task: examples of the task of the model, which it was not trained on; loss and metrics are
            measured before and after.
        options: keyword arguments, described below.

    Returns:
        The new model with its tokenizer, and the table of its layers.

    Raises:
        ModelSupportError: a family with position terms in its scores.
        UsageError: a rank that the layers cannot have, or neither a rank nor an error.
        CorpusError, ModelError, TokenizerError: as `score_heads`, and for a task as `ablate_heads`.

    With ``model`` an encoder of 3 layers, whose 4 heads have 8 dimensions each:

    >>> from headroles import collaborate_heads
    >>> made, table = collaborate_heads(model, None, rank=24)
    >>> table.frame[["layer", "rank", "full_rank"]]
       layer  rank  full_rank
    0      0    24         32
    1      1    24         32
    2      2    24         32
    """
    with shown_in_notebooks(options, "steps") as shown:
        return _collaborate(model, sample, shown, task)


def _collaborate(
    model: Model, sample: Corpus | None, options: CollaborateOptions, task: str | Path | None
) -> tuple[CollaborativeModel, Collaboration]:
    check_goal(options)
    network, tokenizer = load_whole(model, options)
    asked = replace(options, tokenizer=tokenizer)
    encoder = load_encoder(network, asked)
    with open_reader(network) as reader:
        n_heads, described = reader.n_heads, reader.description
    sites = find_sites(network)
    check_rank(options, sites, n_heads)
    run = None if task is None else open_run(network, task, asked)
    text = read_sample(encoder, sample, options)
    rounds = Rounds(options.on_progress)
    later = 2 * text.n_batches + (0 if run is None else 2 * len(run.batches))
    fits = fit_sites(network, sites, text, options, n_heads, rounds, later)
    after = copy.deepcopy(network)
    for fit in fits:
        install(after, fit.site, fit.factors)
    parts = (("divergence", text.learnt), ("divergence_held_out", text.held_out))
    measured = {
        name: divergences(network, after, passes, rounds.share(2 * n_batches(passes)))
        for name, passes in parts
    }
    change = None
    if run is not None:
        other = open_run(after, run.task.file, asked)
        run.rounds = other.rounds = rounds
        change = change_on(run, other)
    frame = _frame(fits, measured)
    record = CollaborationRecord.now(
        model=structs.replace(encoder.description, **described),
        corpus=text.description,
        options={**options.record(), "device": encoder.device.type},
        collaboration=Whole(
            tokens=text.n_tokens,
            parameters_before=count_parameters(network),
            parameters_after=count_parameters(after),
            passes=_passes(network, after, fits, encoder.max_tokens),
            task=change,
        ),
    )
    return CollaborativeModel(after, tokenizer, record), Collaboration(frame, record)


def _frame(fits: list[Fit], measured: dict[str, FloatArray]) -> pd.DataFrame:
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
    return frame[list(Collaboration.columns)]


def _passes(
    before: PreTrainedModel, after: PreTrainedModel, fits: list[Fit], longest: int
) -> list[Pass]:
    """Measure passes over sequences of some lengths: multiplications of scores, and seconds."""
    passes = []
    for tokens in (length for length in LENGTHS if length <= longest):
        speed = time_in_turns(before, after, tokens)
        counts = [np.multiply(fit.multiplications(tokens), len(fit.site.layers)) for fit in fits]
        first, second = np.sum(counts, axis=0).tolist()
        passes.append(
            Pass(
                tokens=tokens,
                seconds_before=speed.before,
                seconds_after=speed.after,
                multiplications=second / first,
                time=speed.after / speed.before,
            )
        )
    return passes
