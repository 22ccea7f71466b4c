"""A model -> a smaller one, in a folder that every command takes as a model."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from msgspec import structs

from headroles.errors import UsageError
from headroles.models.gates import HeadSites
from headroles.models.loading import LoadedEncoder, load_encoder
from headroles.models.remaining_heads import Head
from headroles.models.saved_models import PrunedModel, PrunedRecord, model_folder
from headroles.models.surgery import heads_of, layer_groups, remove_heads, zero_heads
from headroles.models.tuning import check_trainer
from headroles.models.weights import CLASSIFICATION, ENCODER, MASKED_LM, load_config
from headroles.options import takes
from headroles.passes.timing import Speed, time_in_turns
from headroles.results.shown import Grid, Shown, Summary
from headroles.results.stored import write_together
from headroles.studies.importance.loss_change import LossChange
from headroles.studies.importance.measures import LOSS
from headroles.studies.importance.resuming import keep_parts
from headroles.studies.importance.shared_heads import SharedLayers
from headroles.studies.pruning.options import PruneOptions
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

    ``before`` and ``after`` are the mean loss and the metrics of the examples it was measured on,
    which ``measured_on`` names; empty without any. ``tuning`` is what fine-tuning came to, None
    without. ``speed`` is that of passes before and after; None where zeros stand in the place of
    heads. ``loss_change`` is from before to after, over the same examples; None without any.
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
    loss_change: LossChange | None = None

    def shown(self) -> list[Shown]:
        """Say what the model reaches and takes, before and after, and how to load it."""
        before, after = self.parameters
        layers = sorted({layer for layer, _ in (*self.removed, *self.kept)})
        counts = [str(sum(one == layer for one, _ in self.kept)) for layer in layers]
        parts: list[Shown] = [
            f"{len(self.removed)} of {len(self.removed) + len(self.kept)} heads removed "
            f"(order: {self.order}).",
            *self._about_task(),
            f"Weights: {before:,} -> {after:,} ({after / before:.0%}).",
            *self._about_form(),
            Grid(("Layer", *map(str, layers)), (("heads kept", *counts),)),
        ]
        if self.tuning is not None:
            parts += [self._measurements()] if self.before else []
            parts += self.tuning.shown()
        return parts

    def _about_task(self) -> Iterator[str]:
        if not self.before:
            yield "What the model loses was not measured: name examples with test (--test FILE)."
        elif self.tuning is None:  # whose table says it
            changes = [
                f"{name} {self.before[name]:.4f} -> {self.after[name]:.4f}"
                for name in sorted(self.before, key=lambda name: name == LOSS)
            ]
            yield f"On {self.measured_on}: {', '.join(changes)}."
            yield from self._about_loss()

    def _about_loss(self) -> Iterator[str]:
        if self.loss_change is not None and not np.isnan(self.loss_change.ci_low):
            subject = "Only the loss was tested: it" if len(self.before) > 1 else "The loss"
            yield f"{subject} changes by {self.loss_change}."

    def details(self) -> Iterator[str]:
        """Say how the loss changes where a table has the measures of each step."""
        if self.tuning is not None:
            yield from self._about_loss()

    def _about_form(self) -> Iterator[str]:
        if self.speed is not None:
            yield str(self.speed)
            return
        yield (
            "The removed heads are set to zero: any program that read the model reads it, at "
            "its former size and speed."
        )

    def next_steps(self, folder: Path) -> Iterator[str]:
        """Say how to load a model that transformers alone cannot load."""
        if self.speed is not None:
            yield f'Load it with headroles.load_model("{folder}"): transformers alone cannot.'
            yield (
                "For a folder that transformers reads, of the size and speed "
                "before: written_as='zeroed' (--as zeroed)"
            )

    def _measurements(self) -> Grid:
        rows = tuple(
            (name, *(f"{value:.4f}" for value in measured.values()))
            for name, measured in self._measured()
            if measured
        )
        return Grid((f"On {self.measured_on}", *self.before), rows)

    def _measured(self) -> Iterator[tuple[str, dict[str, float]]]:
        """Yield measures, in the order of the steps."""
        yield "before", self.before
        if self.tuning is not None:
            yield "before, fine-tuned", self.tuning.whole
            yield "after, not fine-tuned", self.tuning.masked
        yield "after", self.after

    def facts(self) -> dict[str, Any]:
        """Return the result for scripts."""
        return {
            "order": self.order,
            "removed": [list(head) for head in self.removed],
            "kept": [list(head) for head in self.kept],
            "parameters": {"before": self.parameters[0], "after": self.parameters[1]},
            "before": self.before,
            "after": self.after,
            "loss_change": self.loss_change and asdict(self.loss_change),
            "seconds": self.speed and [self.speed.before, self.speed.after],
            "times_as_fast": self.speed and list(self.speed.ratios),
            **({"fine_tuning": self.tuning.facts()} if self.tuning else {}),
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
) -> Pruned:
    """Remove heads from a model, write what is left into a folder, and return what that changes.

    The folder is a model for every command and for `load_model`; heads keep their numbers. As
    ``zeroed`` it has the size of the model before, and any program reads it.

    Args:
        model: a folder or hub id; one that was pruned before may lose more.
        out: the folder to write.
        task: examples that orders of importance are found with.
        test: examples on which the model is measured before and after. Take others than of
            ``task``: what was chosen by examples does better on them than on others.
        overwrite: whether ``out`` may hold files.
        options: keyword arguments, described below.

    With ``fine_tune_on`` the model is fine-tuned while the heads that go are masked, and then loses
    them.

    Raises:
        UsageError: an order without what it needs, or more heads than may go; fine-tuning without
            accelerate.
        ModelError, CorpusError, StorageError: as `find_importance` and `load_model`.

    With ``model`` a classifier of 3 layers with 4 heads each:

    >>> from tempfile import TemporaryDirectory
    >>> from headroles import load_model, prune_heads
    >>> with TemporaryDirectory() as folder:
    ...     found = prune_heads(model, f"{folder}/small", order="random", share=0.25)
    ...     smaller = load_model(f"{folder}/small")
    >>> len(found.facts()["removed"])
    3
    """
    with model_folder(out, model, [PrunedModel], overwrite) as folder:
        return replace(prune(model, folder, options, task, test), folder=Path(out))


def prune(
    model: str | Path,
    folder: Path,
    options: PruneOptions,
    task: str | Path | None = None,
    test: str | Path | None = None,
) -> Pruned:
    """Do `prune_heads` into a folder that is claimed, with options as a group."""
    run = open_run(model, task, options) if task is not None else None
    measured = _over(model, test, options.of_test(), run)
    tuned = _tuned(model, options, measured or run)
    opened = measured or run or tuned
    encoder = opened.encoder if opened else _load(model, options)
    keep_parts("pruning", options, encoder, run, measured)
    heads = heads_of(encoder.model)
    removed = _choose(encoder, heads, options, run)
    before = outcomes_of(measured)
    tuning = None
    if tuned is not None:
        tuning = fine_tune(tuned, measured, removed, options)
    return write_without(
        encoder,
        removed,
        folder,
        options,
        order=options.order,
        before=before,
        measured=measured,
        tuning=tuning,
        zeroed=options.written_as == "zeroed",
    )


def _choose(
    encoder: LoadedEncoder, heads: list[Head], options: PruneOptions, run: TaskRun | None
) -> list[Head]:
    """Return the heads to remove; from layers that share a module, the same ones."""
    shared = SharedLayers(layer_groups(encoder.model))
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
    measured: TaskRun | None,
    zeroed: bool = False,
    tuning: Tuning | None = None,
    **notes: Any,
) -> Pruned:
    """Write a model without heads into a folder, and measure it again.

    ``notes`` are further fields of its `PrunedRecord`.
    """
    network = encoder.model
    heads = heads_of(network)
    n_before = sum(parameter.numel() for parameter in network.parameters())
    speed = None if zeroed else _remove(encoder, removed)
    sites = HeadSites.of(network)
    record = PrunedRecord.now(
        model=structs.replace(encoder.description, **sites.description),
        layers=sites.n_layers,
        heads=sites.n_heads,
        options=options.record(),
        removed=list(removed),
        fine_tuning=tuning.facts() if tuning else None,
        **notes,
    )
    if zeroed:
        zero_heads(network, removed)
    write_together(folder, [PrunedModel(network, encoder.tokenizer, record)])
    after = outcomes_of(measured)
    return Pruned(
        folder,
        order,
        tuple(sorted(removed)),
        tuple(head for head in heads if head not in removed),
        (n_before, sum(parameter.numel() for parameter in network.parameters())),
        _measure(measured, before),
        _measure(measured, after),
        tuning,
        "" if measured is None else measured.named,
        speed,
        LossChange.between(before, after) if before and after else None,
    )


def _remove(encoder: LoadedEncoder, removed: Sequence[Head]) -> Speed:
    """Remove heads from a model; return the speed of passes before and after."""
    whole = copy.deepcopy(encoder.model)
    remove_heads(encoder.model, removed)
    return time_in_turns(whole, encoder.model, min(_TIMED, encoder.max_tokens))


def _over(
    model: str | Path, file: str | Path | None, options: TaskOptions, run: TaskRun | None
) -> TaskRun | None:
    """Return the examples of a file, over the loaded model of a run if there is one."""
    if file is None:
        return None
    return open_run(model, file, options) if run is None else run.over(file, options)


def _tuned(model: str | Path, options: PruneOptions, run: TaskRun | None) -> TaskRun | None:
    """Return the examples to fine-tune on, None if that was not asked for."""
    if options.fine_tune_on is None:
        return None
    check_trainer()
    asked = replace(options, examples=options.fine_tune_examples)
    return _over(model, options.fine_tune_on, asked, run)


def outcomes_of(run: TaskRun | None) -> Outcomes | None:
    """Return the outcomes of a model as it is; None without examples."""
    return None if run is None else run.outcomes(torch.ones(1, *run.shape))


def _measure(run: TaskRun | None, outcomes: Outcomes | None) -> dict[str, float]:
    """Return the mean loss and the metrics; empty without examples."""
    return {} if run is None or outcomes is None else run.measure(outcomes)


def _n_removed(n_heads: int, options: PruneOptions) -> int:
    if options.share is not None:
        return round(options.share * n_heads)
    keep = int(options.keep or 0)
    if keep > n_heads:
        raise UsageError(f"{keep} heads are to be kept, but the model has {n_heads}")
    return n_heads - keep


def _load(model: str | Path, options: PruneOptions) -> LoadedEncoder:
    """Return the model with what is on top of it, where that is known to be there."""
    names = load_config(str(model), options).architectures or [""]
    head = ENCODER
    if names[0].endswith("ForSequenceClassification"):
        head = CLASSIFICATION
    elif names[0].endswith("ForMaskedLM"):
        head = MASKED_LM
    elif not names[0].endswith("Model"):
        raise UsageError(
            f"{model} is a {names[0]}, of which only the encoder would remain; give an encoder, a "
            "model for sequence classification or one for masked words"
        )
    return load_encoder(model, options, head)
