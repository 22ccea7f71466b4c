"""Which heads does a task need? Model and task -> a model with the heads of open gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import combinations, count
from math import log
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypedDict

import numpy as np
import pandas as pd
import torch
from msgspec import Meta
from safetensors.torch import load, save
from scipy.optimize import brentq
from scipy.special import expit
from torch import Tensor

from headroles.errors import ModelError, UsageError
from headroles.models.heads.gates import gated
from headroles.models.heads.remaining import Head
from headroles.models.loading.saved_models import PrunedModel, model_folder
from headroles.options import Seed, takes
from headroles.passes.loop import gradients_of_mean
from headroles.passes.options import Progress
from headroles.results.columns import FLAG, NUMBER, WHOLE, Axes, Column
from headroles.results.shown import Shown, Warned
from headroles.results.stored import Claimed
from headroles.storage import OpenParts
from headroles.studies.pruning.prune import (
    PruningFacts,
    UpdateOptions,
    WithoutHeads,
    measure_whole,
    write_without,
)
from headroles.studies.removals import without
from headroles.tasks.options import GenerateOptions, RunOptions
from headroles.tasks.running import TaskRun, keep_parts, open_run, without_gradients
from headroles.tasks.translating import check_generation
from headroles.wording import all_of

_STABLE = 0.5
_RATE = 0.1
"""Learning rate of the gates."""
_START = 3.0
"""Log alpha of every gate at the start: the gate is exactly 1 at 90 % of the draws."""
_SHARE_OF_DESCENT = 2 / 3
"""Share of the updates over which the expected number of open gates falls."""
TEMPERATURE = 0.33
"""Temperature of the number before it is stretched to (`_LOW`, `_HIGH`), as in the paper."""
_LOW, _HIGH = -0.1, 1.1
_EDGE = -TEMPERATURE * log(-_LOW / _HIGH)
_EPSILON = 1e-6
_FAR = 50.0


@dataclass(frozen=True, kw_only=True)
class GateOptions(UpdateOptions, GenerateOptions, RunOptions):
    """Options of learning gates."""

    title: ClassVar[str] = "Heads"

    keep: Annotated[int | None, Meta(ge=1)] = None
    """Number of heads to keep."""
    seeds: Annotated[int, Meta(ge=1)] = 3
    """How often gates are learnt, with different random numbers.

    The heads with the lowest loss on the task are kept; the summary counts how many of them other
    seeds keep.
    """
    updates: Annotated[int, Meta(ge=3)] = 300
    """Updates of the gates."""
    weights: Literal["frozen", "trained"] = "frozen"
    """Whether the weights of the model are frozen or trained together with the gates."""
    weight_rate: Annotated[float, Meta(gt=0, lt=1000)] = 2e-5
    """Learning rate of trained weights."""
    seed: Seed = 0
    """The first seed; the others are the next numbers."""

    @property
    def n_kept(self) -> int:
        """The number of heads to keep."""
        return self.keep or 0

    def check(self) -> None:
        """Reject a missing number of heads."""
        super().check()
        if self.keep is None:
            raise UsageError("give the number of heads to keep: `keep`")
        if self.weights == "frozen" and self.weight_rate != GateOptions.weight_rate:
            raise UsageError(
                "`weight_rate` does nothing to frozen weights; pass "
                "`weights='trained'`, or leave it out"
            )


class SeedFacts(TypedDict):
    """The loss of the heads that a seed keeps, and how many of its gates are open by the rule."""

    seed: int
    loss: float
    open_by_rule: int


class GatingFacts(PruningFacts):
    """Facts of a model whose heads learnt gates chose, as `Gating` describes them."""

    seeds: list[SeedFacts]
    overlap: float | None
    overlap_by_chance: float
    chosen_seed: int


@dataclass(frozen=True, repr=False, eq=False)
class Gating(WithoutHeads[GateOptions, GatingFacts]):
    """The heads of a model that learnt gates keep, and what it does without the others.

    ``frame`` has a row for each seed and head: the learnt ``log_alpha`` of its gate, and whether
    the seed keeps it. The view ``seeds`` has the loss on the task of the heads that each seed
    keeps, and the number of heads that the rule of Voita et al. (2019) keeps. The model has the
    heads of ``facts["chosen_seed"]``. Other facts are those of `Pruning`, and ``overlap``, the
    share of the kept heads that two seeds have in common (mean over pairs; None for one seed),
    beside ``overlap_by_chance``, if every seed kept as many heads at random.
    """

    kind: ClassVar[str] = "gating"
    question: ClassVar[str] = "Which heads does the task need?"
    columns: ClassVar[tuple[str, ...]] = ("seed", "layer", "head", "log_alpha", "kept")
    schema: ClassVar[Mapping[str, Column]] = {
        "seed": Column(WHOLE, 0),
        "log_alpha": Column(NUMBER),
        "kept": Column(FLAG),
    }
    views: ClassVar[tuple[str, ...]] = ("long", "seeds", "translations")

    def axes(self) -> Axes:
        """Return seeds, and the heads that the model had."""
        return {("seed",): [], **super().axes()}

    @property
    def seeds(self) -> pd.DataFrame:
        """The loss, and the number of heads that the rule keeps, of each seed."""
        return pd.DataFrame(self.facts["seeds"])

    def summarize(self) -> Iterator[Shown]:
        """Describe the pruned model, and how far seeds agree on the heads to keep."""
        yield from super().summarize()
        overlap, chance = self.facts["overlap"], self.facts["overlap_by_chance"]
        if overlap is None:
            yield Warned("One seed does not show how stable the choice is. Pass more `seeds`.")
            return
        names = self.record.model.rows.with_column(("layer", "head"))
        in_all = self.frame.groupby([*names])["kept"].all().sum()
        yield (
            f"Two seeds share {overlap:.0%} of the heads that they keep, {chance:.0%} by chance; "
            f"{all_of(len(self.seeds), 'seeds')} keep {in_all} heads."
        )
        if (overlap - chance) / (1 - chance) < _STABLE:
            yield Warned("This set of heads is sufficient; other sets work about as well.")


@takes(GateOptions)
def gate_heads(
    model: str | Path,
    task: str | Path,
    out: str | Path | Claimed,
    *,
    test: str | Path | None = None,
    overwrite: bool = False,
    options: GateOptions,
) -> Gating:
    """Learn which heads to keep, and write the model without the others.

    Every head gets a gate that is drawn from a hard concrete distribution (Louizos et al. 2018, as
    Voita et al. 2019 use it). All gates are open at first; the expected number of open gates falls
    with every update, and the loss of the task decides which gates close. At the end exactly
    ``keep`` heads stay: the heads with the largest log alpha.

    Args:
        model: a folder or hub id, with the head that was trained for the task.
        task: examples to learn gates with, as of `find_importance`.
        out: the folder to write; a model for every command and for `load_model`.
        test: examples to measure the model on before and after; others than ``task``.
        overwrite: whether ``out`` may hold files.
        options: keyword arguments, described below.

    Raises:
        UsageError: as many heads to keep as the model has, or layers that share a module.
        ModelError: a loss that is not finite; else as `find_importance`.
        CorpusError, StorageError: as `find_importance` and `prune_heads`.

    With ``model`` a classifier of 3 layers with 4 heads each, ``task`` a file of 8 examples:

    >>> from tempfile import TemporaryDirectory
    >>> from headroles import gate_heads
    >>> with TemporaryDirectory() as folder:
    ...     gating = gate_heads(model, task, f"{folder}/small", keep=8, seeds=1, updates=5)
    >>> len(gating.removed)
    4
    """
    with model_folder(out, model, [PrunedModel, Gating], overwrite) as folder:
        run = open_run(model, task, options)
        heads = run.heads
        if options.n_kept >= len(heads):
            raise UsageError(
                f"{options.n_kept} heads are to be kept, and the model has {len(heads)}; keep fewer"
            )
        if run.sites.layers_are_shared:
            raise UsageError(
                "layers of this model share one attention module, so that no head of a single "
                "layer can be removed; take another model, or prune it by another order "
                "(headroles prune)"
            )
        tested = None if test is None else run.over(test, replace(options, examples=None))
        check_generation(tested, options)
        parts = keep_parts("gates", options, run, tested)
        before = None if tested is None else measure_whole(tested, options)
        learnt, chosen = _learn(run, options, parts)
        rows = [
            (gates.seed, *head, log_alpha, head in gates.kept)
            for gates in learnt
            for head, log_alpha in zip(heads, gates.log_alpha, strict=True)
        ]
        shared = [len({*a.kept} & {*b.kept}) / options.n_kept for a, b in combinations(learnt, 2)]
        return write_without(
            Gating,
            run.encoder,
            [head for head in heads if head not in chosen.kept],
            folder,
            options,
            before=before,
            tested=tested,
            chosen_by=run,
            frame=pd.DataFrame(rows, columns=list(Gating.columns)),
            order="gates",
            seeds=[
                {"seed": gates.seed, "loss": gates.loss, "open_by_rule": gates.n_open}
                for gates in learnt
            ],
            overlap=float(np.mean(shared)) if shared else None,
            overlap_by_chance=options.n_kept / len(heads),
            chosen_seed=chosen.seed,
        )


@dataclass(frozen=True)
class LearntGates:
    """Gates that one seed learnt: the ``log_alpha`` of each head of the model.

    ``kept`` are the heads with the largest log alpha; ``n_open`` is the number of heads that the
    rule of Voita et al. (2019) keeps; ``loss`` is the mean over the task with ``kept`` alone.
    """

    seed: int
    log_alpha: tuple[float, ...]
    kept: tuple[Head, ...]
    n_open: int
    loss: float


def _learn(
    run: TaskRun, options: GateOptions, parts: OpenParts | None
) -> tuple[list[LearntGates], LearntGates]:
    """Return the gates of each seed, and the best, whose weights the model gets."""
    network, learnt = run.encoder.model, list[LearntGates]()
    whole = best = deepcopy(network.state_dict()) if options.weights == "trained" else None
    progress = Progress(options.on_progress)
    progress.expect(options.updates * options.seeds)
    for seed in range(options.seed, options.seed + options.seeds):
        if whole is not None:
            network.load_state_dict(whole)
        learnt.append(learn_gates(run, options, seed, progress.start(options.updates), parts))
        chosen = min(reversed(learnt), key=lambda gates: gates.loss)
        if whole is not None and chosen is learnt[-1]:
            best = deepcopy(network.state_dict())
    if best is not None:
        network.load_state_dict(best)
    return learnt, chosen


def learn_gates(
    run: TaskRun,
    options: GateOptions,
    seed: int,
    on_update: Callable[[int], None] = lambda done: None,
    parts: OpenParts | None = None,
) -> LearntGates:
    """Learn gates of the heads of a model so that ``options.n_kept`` heads remain.

    Heads are kept by the largest log alpha, ties by layer and number. What the seed learnt is saved
    in ``parts``, or read from there.

    Raises ModelError for a loss that is not finite.
    """
    heads, model, name = run.heads, run.encoder.model, f"gates-{seed}"
    log_alpha = torch.full((len(heads),), _START, device=run.encoder.device, requires_grad=True)
    trains_weights = options.weights == "trained"
    weights = [values for values in model.parameters() if trains_weights and values.requires_grad]
    learnt = [log_alpha, *weights]
    if parts is not None and name in parts:
        saved = parts.read(name, load)
        with torch.no_grad():
            for number, values in enumerate(learnt):
                values.copy_(saved[str(number)])
        on_update(options.updates)
    else:
        with nullcontext() if trains_weights else without_gradients(model):
            _update(run, options, seed, log_alpha, weights, on_update)
        if parts is not None:
            numbers = {str(n): values.detach().contiguous() for n, values in enumerate(learnt)}
            parts.write(name, save(numbers))
    log_alpha = log_alpha.detach().cpu()
    order = torch.argsort(log_alpha, descending=True, stable=True).tolist()
    kept = {heads[number] for number in order[: options.n_kept]}
    gates = without([head for head in heads if head not in kept], run.shape)
    return LearntGates(
        seed,
        tuple(log_alpha.tolist()),
        tuple(sorted(kept)),
        int(is_open(log_alpha).sum()),
        float(run.outcomes(gates[None]).losses.mean()),
    )


def _update(
    run: TaskRun,
    options: GateOptions,
    seed: int,
    log_alpha: Tensor,
    weights: Sequence[Tensor],
    on_update: Callable[[int], None],
) -> None:
    """Update ``log_alpha`` of the heads, and ``weights``, by the loss of the task.

    The loss decides which gates open more than others; after every update one number shifts all
    log alpha to `expected_open` gates, so that no penalty needs a weight.
    """
    heads, device = run.heads, run.encoder.device
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(options.updates, len(heads), generator=generator)
    indices = tuple(torch.tensor(axis, device=device) for axis in zip(*heads, strict=True))
    rates = ([log_alpha], _RATE), (weights, options.weight_rate)
    adam = torch.optim.Adam([{"params": numbers, "lr": rate} for numbers, rate in rates])
    groups, rng = run.groups(options.update_examples), np.random.default_rng(seed)
    passes = (rng.permutation(len(groups)) for _ in count())  # over all, in new orders
    batches_of_updates = (groups[number] for order in passes for number in order)
    steps = zip(batches_of_updates, expected_open(len(heads), options), draws, strict=False)
    for n_updates, (batches, target, uniform) in enumerate(steps, start=1):
        gates = draw_gates(log_alpha, uniform.to(device))
        of_heads = torch.ones(run.shape, device=device).index_put(indices, gates)
        placed = of_heads.detach().requires_grad_()
        with gated(run.sites, placed):
            loss, (of_gates, *of_weights) = gradients_of_mean(
                run.passes, batches, lambda batch: run.losses_of(batch)[0], [placed, *weights]
            )
        if not torch.isfinite(loss):
            raise ModelError(
                "the loss is not finite while gates are learnt; run the model in float32 (it ran "
                f"in {run.encoder.model.dtype}), and lower `weight_rate` of trained weights"
            )
        adam.zero_grad()
        of_heads.backward(of_gates)  # type: ignore[no-untyped-call]
        for values, gradient in zip(weights, of_weights, strict=True):
            values.grad = gradient
        adam.step()
        with torch.no_grad():
            log_alpha += shift_to(log_alpha, target)
        on_update(n_updates)


def expected_open(n_heads: int, options: GateOptions) -> list[float]:
    """Return the expected number of open gates after each update: linear, then constant."""
    start = n_heads * float(p_nonzero(torch.tensor(_START)))
    n_down = max(1, round(options.updates * _SHARE_OF_DESCENT))
    # Of few heads, more may be kept than are expected to be open at the start.
    down = np.linspace(max(start, options.n_kept), options.n_kept, n_down + 1)[1:]
    return [*down.tolist(), *[float(options.n_kept)] * (options.updates - n_down)]


# The hard concrete distribution of Louizos et al. (2018): a number between 0 and 1 with the odds
# ``exp(log_alpha)``, stretched to a larger interval, and clipped to 0 and 1, so that it is often
# exactly one of them. ``log_alpha`` may have any shape.


def draw_gates(log_alpha: Tensor, uniform: Tensor) -> Tensor:
    """Compute gates from uniform numbers in (0, 1), with gradients by ``log_alpha``."""
    noise = torch.logit(uniform, eps=_EPSILON)
    unstretched = torch.sigmoid((noise + log_alpha) / TEMPERATURE)
    return (unstretched * (_HIGH - _LOW) + _LOW).clamp(0, 1)


def p_nonzero(log_alpha: Tensor) -> Tensor:
    """Return the probability that a gate is not 0; the sum is the expected number of open gates."""
    return torch.sigmoid(log_alpha + _EDGE)


def p_one(log_alpha: Tensor) -> Tensor:
    """Return the probability that a gate is exactly 1."""
    return torch.sigmoid(log_alpha - TEMPERATURE * log((1 - _LOW) / (_HIGH - 1)))


def is_open(log_alpha: Tensor) -> Tensor:
    """Tell whether 1 is likelier than 0: by this rule Voita et al. (2019) keep a head."""
    return p_one(log_alpha) > 1 - p_nonzero(log_alpha)


def shift_to(log_alpha: Tensor, expected: float) -> float:
    """Return the shift of every ``log_alpha`` that leads to so many expected open gates.

    ``expected`` is above 0 and below the number of gates.
    """
    values = log_alpha.detach().double().cpu().numpy()

    def excess(shift: float) -> float:
        return float(expit(values + shift + _EDGE).sum() - expected)

    # at these ends all gates are as good as closed, or as good as open: the root lies between
    shift: float = brentq(excess, -_FAR - values.max(), _FAR - values.min())
    return shift
