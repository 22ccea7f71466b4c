"""A model -> a smaller one, in a folder that every command takes as a model."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from msgspec import structs

from headroles.errors import UsageError
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.remaining import Head
from headroles.models.heads.surgery import heads_of, layer_groups, remove_heads, zero_heads
from headroles.models.heads.tuning import check_trainer
from headroles.models.loading.encoder import LoadedEncoder, load_encoder
from headroles.models.loading.saved_models import PrunedModel, PrunedRecord, model_folder
from headroles.options import takes
from headroles.passes.timing import Speed, time_in_turns
from headroles.results.shown import Grid, Shown, Summary
from headroles.results.stored import write_together
from headroles.studies.importance.removals import (
    LOSS,
    SharedLayers,
    describe_loss_change,
    find_loss_change,
    keep_parts,
)
from headroles.studies.pruning.options import ZEROED, PruneOptions
from headroles.studies.pruning.orders import choose_heads
from headroles.studies.pruning.tuning import Tuning, fine_tune
from headroles.tasks.options import TaskOptions
from headroles.tasks.outcomes import Outcomes
from headroles.tasks.running import TaskRun, open_run

_TIMED = 128
"""Tokens of the sequences that are timed, or as many as the model takes."""


@dataclass(frozen=True)
class Pruned(Summary):
    """Outcome of pruning: heads ``removed`` and ``kept``, weights and measures.

    ``before`` and ``after`` are the mean loss and the metrics of the examples that ``measured_on``
    names; empty without a test. ``tuning`` is the outcome of fine-tuning. ``speed`` compares passes
    before and after; None where heads are set to zero. ``loss_change`` is over the examples of the
    test; None without a test.
    """

    folder: Path
    order: str
    removed: tuple[Head, ...]
    kept: tuple[Head, ...]
    parameters: tuple[int, int]
    before: dict[str, float]
    after: dict[str, float]
    tuning: Tuning | None = None
    measured_on: str = ""
    speed: Speed | None = None
    loss_change: dict[str, float] | None = None

    def summarize(self) -> list[Shown]:
        """Give loss, metrics, weights and speed before and after, and the heads of each layer."""
        before, after = self.parameters
        layers = sorted({layer for layer, _ in (*self.removed, *self.kept)})
        counts = [str(sum(one == layer for one, _ in self.kept)) for layer in layers]
        shown: list[Shown] = [
            f"{len(self.removed)} of {len(self.removed) + len(self.kept)} heads removed "
            f"(order: {self.order}).",
            *self._about_task(),
            f"Weights: {before:,} -> {after:,} ({after / before:.0%}).",
            self._about_form(),
            Grid(("Layer", *map(str, layers)), (("heads kept", *counts),)),
        ]
        if self.tuning is not None:
            shown += [self._measurements(self.tuning)] if self.before else []
            shown += self.tuning.summarize()
        return shown

    def _about_task(self) -> Iterator[str]:
        if not self.before:
            yield "The loss was not measured: name examples with `test`."
        elif self.tuning is None:  # else a table has the measures of each step
            changes = [
                f"{name} {self.before[name]:.4f} -> {self.after[name]:.4f}"
                for name in sorted(self.before, key=lambda name: name == LOSS)
            ]
            yield f"On {self.measured_on}: {', '.join(changes)}."
            yield from self._about_loss()

    def _about_loss(self) -> Iterator[str]:
        if self.loss_change is not None and not np.isnan(self.loss_change["ci_low"]):
            subject = "Only the loss was tested: it" if len(self.before) > 1 else "The loss"
            yield f"{subject} changes by {describe_loss_change(self.loss_change)}."

    def details(self) -> Iterator[str]:
        """Give the change of the loss where the summary has a table of each step."""
        if self.tuning is not None:
            yield from self._about_loss()

    def _about_form(self) -> str:
        if self.speed is not None:
            return str(self.speed)
        return (
            "The removed heads are set to zero: any program that reads the original reads this "
            "model, at the size and speed of the original."
        )

    def next_steps(self, folder: Path) -> Iterator[str]:
        """Name the function that loads a model that transformers alone cannot load."""
        if self.speed is not None:
            yield f'Load it with headroles.load_model("{folder}"): transformers alone cannot.'
            yield (
                "For a folder that transformers reads, at the original size and speed: "
                "`written_as='zeroed'`"
            )

    def _measurements(self, tuning: Tuning) -> Grid:
        steps = {
            "before": self.before,
            "before, fine-tuned": tuning.whole,
            "after, not fine-tuned": tuning.masked,
            "after": self.after,
        }
        rows = tuple(
            (name, *(f"{value:.4f}" for value in measured.values()))
            for name, measured in steps.items()
            if measured
        )
        return Grid((f"On {self.measured_on}", *self.before), rows)

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        return {
            "order": self.order,
            "removed": [list(head) for head in self.removed],
            "kept": [list(head) for head in self.kept],
            "parameters": {"before": self.parameters[0], "after": self.parameters[1]},
            "before": self.before,
            "after": self.after,
            "loss_change": self.loss_change,
            "seconds": self.speed and [self.speed.before, self.speed.after],
            "times_as_fast": self.speed and list(self.speed.ratios),
            **({"fine_tuning": self.tuning.to_json()} if self.tuning else {}),
        }


@takes(PruneOptions)
def prune_heads(
    model: str | Path,
    out: str | Path,
    *,
    task: str | Path | None = None,
    test: str | Path | None = None,
    overwrite: bool = False,
    options: PruneOptions,
    folder: Path | None = None,
) -> Pruned:
    """Write a model without some of its heads into a folder, and measure both models.

    Every command and `load_model` read the folder; heads keep their numbers. With
    ``written_as="zeroed"`` the model keeps its full size, and any program reads it. With
    ``fine_tune_on`` the model is fine-tuned with the heads masked before they are removed.

    Args:
        model: a folder or hub id; a pruned model may lose more heads.
        out: the folder to write.
        task: examples to find orders of importance with.
        test: examples to measure the model on, before and after. Take others than in ``task``:
            a choice of heads looks better on the examples that it was made with.
        overwrite: whether ``out`` may hold files.
        options: keyword arguments, described below.
        folder: a claimed folder that is filled in the place of ``out``; commands pass it.

    Raises:
        UsageError: an order without the task or role that it needs, too many heads to remove, or
            fine-tuning without accelerate.
        ModelError, CorpusError, StorageError: as `find_importance` and `load_model`.

    With ``model`` a classifier of 3 layers with 4 heads each:

    >>> from tempfile import TemporaryDirectory
    >>> from headroles import load_model, prune_heads
    >>> with TemporaryDirectory() as folder:
    ...     found = prune_heads(model, f"{folder}/small", order="random", share=0.25)
    ...     smaller = load_model(f"{folder}/small")
    >>> len(found.to_json()["removed"])
    3
    """
    claimed = model_folder(out, model, [PrunedModel], overwrite)
    with claimed if folder is None else nullcontext(folder) as folder:
        run = None if task is None else open_run(model, task, options)
        tested = _over(model, test, options.of_test(), run)
        tuned = _tuned(model, options, tested or run)
        opened = tested or run or tuned
        encoder = opened.encoder if opened else load_encoder(model, options, head=None)
        keep_parts("pruning", options, encoder, run, tested)
        removed = _choose(encoder, options, run)
        before = outcomes_of(tested)
        tuning = None if tuned is None else fine_tune(tuned, tested, removed, options)
        pruned = write_without(
            encoder,
            removed,
            folder,
            options,
            order=options.order,
            before=before,
            tested=tested,
            tuning=tuning,
            zeroed=options.written_as == ZEROED,
        )
    return replace(pruned, folder=Path(out))


def _choose(encoder: LoadedEncoder, options: PruneOptions, run: TaskRun | None) -> list[Head]:
    """Return the heads to remove; the same heads from layers that share a module."""
    shared, heads = SharedLayers(layer_groups(encoder.model)), heads_of(encoder.model)
    units, n_removed = shared.units(heads), _n_removed(len(heads), options)
    if options.share is None:
        n_units = shared.n_units(n_removed, len(heads))
    else:
        n_units = _n_removed(len(units), options)
    protect = dict.fromkeys(map(shared.unit_of, options.protect or ()))
    asked = replace(options, protect=list(protect) or None)
    return shared.spread(choose_heads(options.order, n_units, units, asked, run, shared))


def write_without(
    encoder: LoadedEncoder,
    removed: Sequence[Head],
    folder: Path,
    options: TaskOptions,
    *,
    order: str,
    before: Outcomes | None,
    tested: TaskRun | None,
    zeroed: bool = False,
    tuning: Tuning | None = None,
    **notes: Any,
) -> Pruned:
    """Write a model without heads into a folder, and measure it again.

    ``before`` are the outcomes of the whole model on ``tested``; ``notes`` are further fields of
    the `PrunedRecord`.
    """
    network = encoder.model
    heads = heads_of(network)
    n_before = sum(parameter.numel() for parameter in network.parameters())
    speed = None if zeroed else _remove(encoder, removed)
    sites = HeadSites.from_model(network)
    record = PrunedRecord.now(
        model=structs.replace(encoder.description, **sites.description),
        layers=sites.n_layers,
        heads=sites.n_heads,
        options=options.record(),
        removed=list(removed),
        fine_tuning=tuning.to_json() if tuning else None,
        **notes,
    )
    if zeroed:
        zero_heads(network, removed)
    write_together(folder, [PrunedModel(network, encoder.tokenizer, record)])
    after = outcomes_of(tested)
    return Pruned(
        folder,
        order,
        tuple(sorted(removed)),
        tuple(head for head in heads if head not in removed),
        (n_before, sum(parameter.numel() for parameter in network.parameters())),
        _measure(tested, before),
        _measure(tested, after),
        tuning,
        "" if tested is None else tested.named,
        speed,
        find_loss_change(before, after) if before and after else None,
    )


def _remove(encoder: LoadedEncoder, removed: Sequence[Head]) -> Speed:
    """Remove heads from a model; return the speed of passes before and after."""
    whole = copy.deepcopy(encoder.model)
    remove_heads(encoder.model, removed)
    return time_in_turns(whole, encoder.model, min(_TIMED, encoder.max_tokens))


def _over(
    model: str | Path, file: str | Path | None, options: TaskOptions, run: TaskRun | None
) -> TaskRun | None:
    """Return a run over a file, with the loaded model of ``run`` if given; None without a file."""
    if file is None:
        return None
    return open_run(model, file, options) if run is None else run.over(file, options)


def _tuned(model: str | Path, options: PruneOptions, run: TaskRun | None) -> TaskRun | None:
    """Return a run over the examples to fine-tune on; None without fine-tuning."""
    if options.fine_tune_on is None:
        return None
    check_trainer()
    asked = replace(options, examples=options.fine_tune_examples)
    return _over(model, options.fine_tune_on, asked, run)


def outcomes_of(run: TaskRun | None) -> Outcomes | None:
    """Return the outcomes of a model with all gates open; None without a run."""
    return None if run is None else run.outcomes(torch.ones(1, *run.shape))


def _measure(run: TaskRun | None, outcomes: Outcomes | None) -> dict[str, float]:
    """Return the mean loss and the metrics; empty without a run."""
    return {} if run is None or outcomes is None else run.measure(outcomes)


def _n_removed(n_heads: int, options: PruneOptions) -> int:
    if options.share is not None:
        return round(options.share * n_heads)
    keep = int(options.keep or 0)
    if keep > n_heads:
        raise UsageError(f"{keep} heads are to be kept, but the model has {n_heads}")
    return n_heads - keep
