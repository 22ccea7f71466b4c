"""Can the heads of a layer share queries and keys? Model and sample -> model, Collaboration."""

from __future__ import annotations

import copy
import operator
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, TypedDict

import numpy as np
import pandas as pd
from msgspec import Meta, structs

from headroles.corpus import BITEXT, Corpus, make_examples, prepared, read_conllu
from headroles.encoding import PAIR_MASK, check_known_pieces
from headroles.errors import CorpusError, UsageError
from headroles.models.options import ENCODER, SHARED, TargetOptions
from headroles.models.shared.factorisation import Factors, InputMoments, factorise, score_error
from headroles.options import Seed, takes
from headroles.passes.options import OnProgress, Progress, shown_in_notebooks
from headroles.record import RecordedCorpus
from headroles.results.consistency import Rule, at_most
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Title, Warned
from headroles.sample import sample_treebank
from headroles.studies.removals import (
    LossChange,
    describe_change,
    find_loss_change,
    n_parameters,
)
from headroles.tasks.options import TaskOptions
from headroles.tasks.outcomes import Measures

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from headroles.arrays import BoolArray, FloatArray
    from headroles.models.heads.stack import Stack
    from headroles.models.loading.encoder import LoadedModel, Model
    from headroles.models.loading.saved_models import CollaborativeModel
    from headroles.models.shared.sites import Site, Sums
    from headroles.passes.loop import ExampleBatch, Passes
    from headroles.tasks.running import TaskRun

LENGTHS = (32, 128, 512)
"""Tokens of sequences whose multiplications are counted."""
_HELD_OUT = 0.25
"""Share of the sample held out, to measure on: whole documents where there are several."""
_FEW_TOKENS = 8
"""Fewer tokens of the sample for each dimension of the inputs give a warning."""
_STEPS = 48
"""A search for the rank of an error tries multiples of the full rank / 48."""
_PASSES_OF_FIT = 2
"""Passes over the sample that count as a fit in reports of progress."""


@dataclass(frozen=True, kw_only=True)
class CollaborateOptions(TaskOptions):
    """Options of factorising queries and keys."""

    title: ClassVar[str] = "Factorisation"

    attention: Literal["encoder", "decoder", "cross"] = "encoder"
    """Attention of a translation model whose queries and keys are factorised.

    In its encoder, in its decoder, or across; the last two need a bitext as sample.
    """
    sample_examples: Annotated[int, Meta(ge=2)] = 400
    """Most examples of the sample, of which a quarter are held out, to measure on."""
    seed: Seed = 0
    """Seed of the starts, and of the examples held out."""
    rank: Annotated[int | None, Meta(ge=1)] = None
    """Dimensions of queries and keys that all heads of a layer have together.

    The full rank of the model (heads times head size) changes nothing. A layer that lost heads has
    its full rank at most, and per head the dimensions of a whole layer.
    """
    error: Annotated[float | None, Meta(gt=0, lt=1)] = None
    """Instead of a rank: largest error of scores, as a share; layers get their least rank.

    The root mean square error on the sample, of the root mean square of scores.
    """
    method: Literal["shared", "per-head"] = "shared"
    """shared: dimensions that all heads mix; per-head: fewer dimensions for each head."""
    weighting: Literal["inputs", "none"] = "inputs"
    """Errors to minimise: of scores of real inputs, or of the weights alone."""
    restarts: Annotated[int, Meta(ge=1)] = 1
    """Starts of the shared factors; the best is kept."""

    def check(self) -> None:
        """Reject neither a rank nor an error, and both."""
        super().check()
        if (self.rank is None) == (self.error is None):
            raise UsageError("give exactly one of `rank` and `error`")


class PassFacts(TypedDict):
    """Multiplications of attention over so many tokens, as a share of the original's."""

    tokens: int
    multiplications: float


class TaskChange(LossChange):
    """Loss and metrics of a task ``before`` and ``after``, and the change of the loss."""

    file: str
    examples: int
    before: Measures
    after: Measures


class CollaborationFacts(TypedDict):
    """Facts of the whole model, as `Collaboration` describes them."""

    device: str
    bundled: bool
    examples_held_out: int
    tokens: int
    parameters_before: int
    parameters_after: int
    passes: list[PassFacts]
    task: TaskChange | None


@dataclass(frozen=True, repr=False, eq=False)
class Collaboration(Result[CollaborateOptions, CollaborationFacts]):
    """Changes and savings of queries and keys of low rank, layer by layer.

    ``frame`` has the columns of ``columns``, a row per layer that has any heads. ``rank`` is the
    number of query dimensions of all heads together, and ``full_rank`` this number in the original.
    Errors are root mean squares as shares of the original's: ``tensor_error`` of the products of
    the weights, ``score_error`` of scores on the sample and on text held out, with the outputs of
    the original's layers as inputs. ``score_error`` is an approximation, as if each sentence had
    the means and covariances of all (.142 where the pairs of tokens of the sentences held out gave
    .162). Divergences are in nats (Kullback-Leibler, mean over heads
    and queries), with the outputs of each model's layers as inputs. Parameters are of queries and
    keys, multiplications of queries, keys and scores for a sequence of 128 tokens; ``rounds`` are
    those of least squares.

    ``facts`` are those of the whole model: its ``device``, the ``tokens`` of the sample, the
    parameters of the encoder, multiplications of ``passes`` over sequences of some lengths as
    shares of the original's, and, with a ``task``, loss and metrics before and after.

    With ``collaboration`` as `collaborate_heads` returns it:

    >>> collaboration.frame["rank"].tolist()
    [24, 24, 24]
    """

    kind: ClassVar[str] = "collaboration"
    question: ClassVar[str] = "Can the heads of a layer share queries and keys?"
    columns: ClassVar[tuple[str, ...]] = tuple(
        "layer method rank full_rank tensor_error score_error score_error_held_out "
        "divergence divergence_held_out parameters_before parameters "
        "multiplications_before multiplications rounds converged".split()
    )
    rules: ClassVar[tuple[Rule, ...]] = (at_most("rank", "full_rank"),)

    def summarize(self) -> Iterator[Shown]:
        """Give the size, the speed and the losses of the model."""
        facts, sums = self.facts, self.frame[["parameters", "parameters_before"]].sum()
        whole = facts["parameters_after"] / facts["parameters_before"]
        part = "encoder" if self.options.attention == ENCODER else "model"
        yield (
            f"Queries and keys keep {sums['parameters'] / sums['parameters_before']:.0%} of their "
            f"parameters, the whole {part} {whole:.1%}."
        )
        slower = [passed["tokens"] for passed in facts["passes"] if passed["multiplications"] > 1]
        if slower:
            yield (
                f"Attention needs more multiplications than before from {slower[0]} tokens on, "
                "because every head uses all shared dimensions. To save time, prune heads, or pass "
                "`method='per-head'`."
            )
        yield (
            "On text that the fit did not see, attention diverges from the original's by "
            f"{self.frame['divergence_held_out'].mean():.4f} nats (mean over layers)."
        )
        cells = {"Tokens": "{tokens}", "Multiplications, times before": "{multiplications:.2f}"}
        yield Grid.from_frame(pd.DataFrame(facts["passes"]), cells)
        if task := facts["task"]:
            yield Title(f"{task['examples']} examples of {task['file']}")
            yield from describe_change("", {"before": task["before"], "after": task["after"]}, task)
        yield from map(Warned, self.record.warnings)


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
    the sample that alternating least squares find (`models.shared.factorisation`).

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode, which does not change.
        sample: text of the kind that the model reads, to weight and to measure with; None for the
            bundled treebank.
        task: examples of the task of the model, which it was not trained on; loss and metrics are
            measured before and after.
        options: keyword arguments, described below.

    Raises:
        ModelSupportError: a family with position terms in its scores.
        UsageError: a rank that the layers cannot have.
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
    from headroles.models.attention.reader import open_reader
    from headroles.models.heads.stack import find_stack
    from headroles.models.loading.encoder import load_encoder
    from headroles.models.loading.saved_models import CollaborativeModel
    from headroles.models.loading.targets import about_saved
    from headroles.models.shared.sites import find_sites, install
    from headroles.tasks.running import open_run

    _check_sample(sample, options)
    of, kind = options.as_group(TargetOptions), options.attention
    with shown_in_notebooks(options, "examples") as shown:
        whole = load_encoder(model, options, head=None, of=of)
        network, loaded = whole.model, replace(shown, tokenizer=whole.tokenizer)
        encoder = load_encoder(network, loaded, of=of)
        with open_reader(whole.stack) as reader:
            n_heads, described = reader.n_heads, reader.description
        sites = find_sites(whole.stack)
        _check_rank(options, sites, n_heads)
        run = None if task is None else open_run(network, task, loaded)
        learnt, held_out, corpus = read_sample(encoder, sample, options)
        rounds = Progress(loaded.on_progress)
        n_examples = len(learnt.lengths) + len(held_out.lengths)
        n_of_task = 0 if run is None else 2 * len(run.task)
        rounds.expect(n_examples * (1 + _PASSES_OF_FIT * len(sites) + 2) + n_of_task)
        fits = _fit_sites(whole.stack, sites, (learnt, held_out), options, n_heads, rounds)
        after = copy.deepcopy(network)
        for fit in fits:
            install(after, fit.site, fit.factors)
        changed = find_stack(after, kind)
        measured = {
            name: divergences(whole.stack, changed, passes, rounds.share(2 * len(passes.lengths)))
            for name, passes in (("divergence", learnt), ("divergence_held_out", held_out))
        }
        change = None if run is None else _change_in_task(run, after, loaded, rounds)
    frame, n_tokens = _frame(fits, measured), sum(learnt.lengths)
    table = Collaboration.made(
        frame,
        options,
        model=structs.replace(encoder.description, **described),
        corpus=structs.replace(corpus, examples=len(learnt.lengths)),
        facts={
            "device": encoder.device.type,
            "bundled": sample is None,
            "examples_held_out": len(held_out.lengths),
            "tokens": n_tokens,
            "parameters_before": n_parameters(whole.stack.base),
            "parameters_after": n_parameters(changed.base),
            "passes": [_pass(fits, n) for n in LENGTHS if n <= encoder.max_tokens],
            "task": change,
        },
        warnings=[
            *_warnings(frame, n_tokens, sites[0].maps.query.shape[2]),
            *about_saved(whole.own_for_targets),
        ],
    )
    return CollaborativeModel(after, whole.tokenizer, table.record, whole.own_for_targets), table


def _check_sample(sample: Corpus | None, options: CollaborateOptions) -> None:
    """Raise UsageError unless the sample is a bitext where the attention reads translations."""
    if options.attention == ENCODER:
        return
    if sample is None or sample.source.get("format") != BITEXT:
        raise UsageError(
            f"`attention={options.attention!r}` reads sentences and their translations; give a "
            "bitext (.bitext) as `sample`"
        )


def _check_rank(options: CollaborateOptions, sites: tuple[Site, ...], n_heads: int) -> None:
    """Raise UsageError for a rank that layers of ``n_heads`` cannot have."""
    size = sites[0].maps.query.shape[1]
    rank = options.rank or 0
    if rank > n_heads * size:
        raise UsageError(
            f"the rank is {rank}; a layer has {n_heads} heads of {size} dimensions, so it must be "
            f"{n_heads * size} or less"
        )
    if options.method != SHARED and rank % n_heads:
        raise UsageError(
            f"the rank is {rank}; with `method='per-head'` it must be a multiple of the {n_heads} "
            "heads"
        )


def _change_in_task(
    run: TaskRun, after: PreTrainedModel, options: CollaborateOptions, rounds: Progress
) -> TaskChange:
    """Measure the network of a run, and the one ``after``, on the task of the run."""
    from headroles.tasks.running import open_run

    other = open_run(after, run.task.file, options)
    run.rounds = other.rounds = Progress(rounds.share(2 * len(run.task)))
    run.expect(2)
    first, second = run.outcomes_unmasked(), other.outcomes_unmasked()
    return {
        "file": run.task.file,
        "examples": len(run.task),
        "before": run.measure(first),
        "after": other.measure(second),
        **find_loss_change(first, second),
    }


def _pass(fits: list[_Fit], tokens: int) -> PassFacts:
    """Return the multiplications of all layers for so many tokens, as a share of the original's."""
    counts = [np.multiply(fit.multiplications(tokens), len(fit.site.layers)) for fit in fits]
    before, after = np.sum(counts, axis=0).tolist()
    return {"tokens": tokens, "multiplications": float(after / before)}


def _warnings(frame: pd.DataFrame, n_tokens: int, width: int) -> Iterator[str]:
    if n_tokens < _FEW_TOKENS * width:
        yield (
            f"The sample has {n_tokens} tokens for inputs of {width} dimensions. With a larger "
            "`sample` factors fit other text better."
        )
    if late := [str(layer) for layer in frame.loc[~frame["converged"], "layer"]]:
        yield (
            f"The factors of layers {', '.join(late)} were still improving at the last "
            "round. Pass more `restarts`."
        )


def _frame(fits: list[_Fit], measured: dict[str, FloatArray]) -> pd.DataFrame:
    rows = []
    for fit in fits:
        heads, size, width = fit.site.maps.query.shape
        shared, rank = fit.factors.method == SHARED, fit.factors.rank
        before, after = fit.multiplications(LENGTHS[1])
        common = {
            "method": fit.factors.method,
            "rank": rank,
            "full_rank": heads * size,
            **fit.errors,
            "parameters_before": 2 * heads * size * (width + 1),
            "parameters": 2 * rank * width + (2 * heads if shared else 1) * rank,
            "multiplications_before": before,
            "multiplications": after,
            "rounds": len(fit.factors.errors),
            "converged": fit.factors.converged,
        }
        for layer in fit.site.layers:
            of_layer = {name: float(values[layer]) for name, values in measured.items()}
            rows.append({"layer": layer, **common, **of_layer})
    return pd.DataFrame(rows).sort_values("layer", ignore_index=True)


def read_sample(
    encoder: LoadedModel, corpus: Corpus | None, options: CollaborateOptions
) -> tuple[Passes[ExampleBatch], Passes[ExampleBatch], RecordedCorpus]:
    """Return examples to learn from, examples held out, and the record of their corpus.

    They are the first of ``corpus``, or of the bundled treebank, ready to run a model over.

    Raises CorpusError for a sample of fewer than two examples, TokenizerError if the tokenizer does
    not know most of its word pieces.
    """
    from headroles.passes.loop import Budget, passes_over

    with prepared(corpus or read_conllu(sample_treebank())) as ready:
        examples = list(islice(make_examples(ready, "adjacent"), options.sample_examples))
        encode = encoder.example_encoder()
        encoded = encode.encode(examples, Counter())
        described = ready.record
    pieces = encode.counts
    check_known_pieces(pieces["unknown_pieces"], pieces["pieces"], "the sample")
    if len(encoded) < 2:
        raise CorpusError(
            f"the sample has {len(encoded)} examples that fit the model; it must have 2 or more, "
            "to learn from some and measure on others; give a larger `sample`"
        )
    apart = _held_out([example.document for example in encoded], options)
    budget = Budget.for_device(encoder.device, options.batch_tokens)
    learnt, held_out = (
        passes_over([encoded[row] for row in np.flatnonzero(rows)], encoder, budget)
        for rows in (~apart, apart)
    )
    return learnt, held_out, described


def _held_out(documents: Sequence[str], options: CollaborateOptions) -> BoolArray:
    """Draw the examples (examples,) to hold out: whole documents if there are several."""
    units = documents if len(set(documents)) > 1 else range(len(documents))
    _, codes, sizes = np.unique(np.asarray(units), return_inverse=True, return_counts=True)
    order = np.random.default_rng(options.seed).permutation(len(sizes))
    reached = np.cumsum(sizes[order]) >= _HELD_OUT * len(documents)
    # At least one unit either side.
    n_apart = min(max(1, int(np.argmax(reached)) + 1), len(sizes) - 1)
    return np.asarray(np.isin(codes, order[:n_apart]))


class _Fit(NamedTuple):
    """The factors of one site, and their errors by column."""

    site: Site
    factors: Factors
    errors: dict[str, float]

    def multiplications(self, tokens: int) -> tuple[int, int]:
        """Count multiplications for a sequence of ``tokens``, before and after."""
        heads, _, width = self.site.maps.query.shape
        sharing = heads if self.factors.method == SHARED else 0
        before = multiplications(width, self.site.maps.full_rank, tokens)
        return before, multiplications(width, self.factors.rank, tokens, sharing)


def _fit_sites(
    stack: Stack,
    sites: tuple[Site, ...],
    parts: tuple[Passes[ExampleBatch], ...],
    options: CollaborateOptions,
    n_heads: int,
    rounds: Progress,
) -> list[_Fit]:
    """Fit factors of every site to the first of ``parts``; whole layers have ``n_heads``."""
    n_each = sum(len(part.lengths) for part in parts) * _PASSES_OF_FIT
    learnt, held_out = (
        moments_of(stack, sites, part, rounds.share(len(part.lengths))) for part in parts
    )
    fits: list[_Fit] = []
    for site, seen, unseen in zip(sites, learnt, held_out, strict=True):
        plain = InputMoments.none(site.maps.query.shape[2])
        report = rounds.start(n_each)
        weighting = seen if options.weighting == "inputs" else plain
        factors = _find(site, weighting, seen, options, n_heads)
        over = {"tensor_error": plain, "score_error": seen, "score_error_held_out": unseen}
        errors = {name: score_error(site.maps, factors, each) for name, each in over.items()}
        fits.append(_Fit(site, factors, errors))
        report(n_each)
    return fits


def moments_of(
    stack: Stack,
    sites: tuple[Site, ...],
    passes: Passes[ExampleBatch],
    on_progress: OnProgress | None = None,
) -> tuple[InputMoments, ...]:
    """Return moments of the inputs of each site over all examples."""
    from headroles.models.shared.sites import Sums, reading_inputs

    totals: dict[int, Sums] = {}
    with reading_inputs(stack, sites) as read:
        for _, sums in passes.over_all(lambda batch: read(batch.inputs), on_progress):
            for number, of_site in sums:
                before = totals.get(number, (0,) * len(of_site))
                totals[number] = Sums(*map(operator.add, before, of_site))
    n_sites, of_sites = len(sites), {number: sums.moments() for number, sums in totals.items()}
    return tuple(
        replace(of_sites[number], within=of_sites.get(n_sites + number, of_sites[number]).within)
        for number in range(n_sites)
    )


def _find(
    site: Site,
    weighting: InputMoments,
    seen: InputMoments,
    options: CollaborateOptions,
    n_heads: int,
) -> Factors:
    """Find factors of the rank asked for, or of the least rank that meets the error."""

    @cache
    def at(rank: int) -> Factors:
        starts = {"seed": options.seed, "restarts": options.restarts}
        return factorise(site.maps, weighting, rank, options.method, **starts)

    def is_near(rank: int) -> bool:
        return score_error(site.maps, at(rank), seen) <= (options.error or 0)

    full, heads, is_shared = site.maps.full_rank, len(site.heads), options.method == SHARED
    if options.rank is not None:  # of a whole layer; this one may have lost some heads
        return at(min(options.rank, full) if is_shared else options.rank // n_heads * heads)
    step = max(1, full // _STEPS) if is_shared else heads
    ranks = [*range(step, full, step), full]
    # the least rank that is near enough; the full one needs no test
    return at(ranks[bisect_left(ranks, True, hi=len(ranks) - 1, key=is_near)])


def divergences(
    before: Stack,
    after: Stack,
    passes: Passes[ExampleBatch],
    on_progress: OnProgress | None = None,
) -> FloatArray:
    """Return (layers,): divergence of the attention of ``after`` from that of ``before``, in nats.

    Kullback-Leibler divergence of rows of attention, sum a ln(a / b), the mean over heads and
    real queries; NaN for a layer without heads. Every layer reads the outputs of its model's layer
    below.
    """
    from headroles.models.attention.reader import open_reader
    from headroles.models.heads.gates import mask_of

    tiny, queries = float(np.finfo(np.float32).tiny), before.reaches[0].queries
    with open_reader(before) as first, open_reader(after) as second:

        def compare(batch: ExampleBatch) -> FloatArray:
            inputs = {name: rows for name, rows in batch.inputs.items() if name != PAIR_MASK}
            real = mask_of(inputs, queries).bool()
            of_first: list[Tensor] = []
            of_layers: list[float] = []
            first.read(inputs, lambda _, weights: of_first.append(weights.clone()))

            def add(layer: int, weights: Tensor) -> None:
                logs = [attention.clamp_min(tiny).log() for attention in (of_first[layer], weights)]
                per_row = (of_first[layer] * (logs[0] - logs[1])).sum(dim=(1, 3))
                of_layers.append(float(per_row[real].double().sum()))

            second.read(inputs, add)
            return np.array([*of_layers, float(real.sum())])

        sums = np.zeros(first.n_layers + 1)
        for _, of_batch in passes.over_all(compare, on_progress):
            sums += of_batch
        n_heads = np.array([len(heads) or np.nan for heads in first.remaining])
    # none is negative, but rounding may leave less than 0
    return np.asarray(np.maximum(sums[:-1] / n_heads / sums[-1], 0))


def multiplications(width: int, rank: int, tokens: int, sharing: int = 0) -> int:
    """Count multiplications for queries, keys and scores of one layer and ``tokens`` tokens.

    ``rank`` dimensions of all heads together, or shared by ``sharing`` heads.
    """
    scores = max(1, sharing) * tokens**2 * rank
    return 2 * tokens * width * rank + sharing * tokens * rank + scores
