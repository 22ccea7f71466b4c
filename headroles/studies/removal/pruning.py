"""A model -> a smaller one, in a folder that every command takes as a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headroles.errors import UsageError
from headroles.models import LoadedEncoder, load_config, load_encoder
from headroles.models.kept_heads import Head
from headroles.models.pruned import save_model
from headroles.models.surgery import heads_of, remove_heads
from headroles.models.weights import CLASSIFICATION, ENCODER, MASKED_LM
from headroles.options import takes
from headroles.results import Grid, Shown
from headroles.storage import check_result_folder
from headroles.studies.removal.options import PruneOptions
from headroles.studies.removal.orders import choose_heads
from headroles.tasks import TaskOptions, TaskRun, open_run


@dataclass(frozen=True)
class Pruned:
    """What became of a model: heads ``removed`` and ``kept``, weights and what was measured.

    ``before`` and ``after`` are the mean loss and the metrics of the examples it was measured on;
    empty without any.
    """

    folder: Path
    order: str
    removed: tuple[Head, ...]
    kept: tuple[Head, ...]
    parameters: tuple[int, int]
    before: dict[str, float]
    after: dict[str, float]

    def shown(self) -> list[Shown]:
        """What became of it, for people."""
        before, after = self.parameters
        layers = sorted({layer for layer, _ in (*self.removed, *self.kept)})
        counts = [str(sum(one == layer for one, _ in self.kept)) for layer in layers]
        parts: list[Shown] = [
            f"{len(self.removed)} of {len(self.removed) + len(self.kept)} heads removed "
            f"({self.order}); {after:,} of {before:,} weights are left ({after / before:.0%})\n",
            Grid(("layer", *map(str, layers)), (("heads kept", *counts),)),
        ]
        if self.before:
            columns = ("", *self.before)
            rows = (
                ("before", *(f"{value:.4f}" for value in self.before.values())),
                ("after", *(f"{value:.4f}" for value in self.after.values())),
            )
            parts.append(Grid(columns, rows))
        return parts

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {
            "order": self.order,
            "removed": [list(head) for head in self.removed],
            "kept": [list(head) for head in self.kept],
            "parameters": {"before": self.parameters[0], "after": self.parameters[1]},
            "before": self.before,
            "after": self.after,
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
    """Remove heads from a model and write what is left into a folder.

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

    Raises:
        UsageError: an order without what it needs, or more heads than may go.
        ModelError, CorpusError, StorageError: as `find_importance` and `load_model`.
    """
    return prune(model, out, options, task, test, overwrite)


def prune(
    model: str | Path,
    out: str | Path,
    options: PruneOptions,
    task: str | Path | None = None,
    test: str | Path | None = None,
    overwrite: bool = False,
) -> Pruned:
    """`prune_heads` for callers that have their options together."""
    check_result_folder(out, overwrite)
    run = open_run(model, task, options) if task is not None else None
    measured = _measured(model, test, options, run)
    opened = measured or run
    encoder = opened.encoder if opened else _load(model, options)
    heads = heads_of(encoder.model)
    removed = choose_heads(options.order, _n_removed(len(heads), options), heads, options, run)
    return write_without(
        encoder,
        removed,
        out,
        options,
        order=options.order,
        before=measure_whole(measured),
        measured=measured,
        overwrite=overwrite,
        zeroed=options.written_as == "zeroed",
    )


def write_without(
    encoder: LoadedEncoder,
    removed: Sequence[Head],
    out: str | Path,
    options: TaskOptions,
    *,
    order: str,
    before: dict[str, float],
    measured: TaskRun | None,
    overwrite: bool = False,
    zeroed: bool = False,
    notes: dict[str, Any] | None = None,
) -> Pruned:
    """Write a model without heads, measured on ``measured`` again, with ``notes`` about it."""
    network = encoder.model
    heads = heads_of(network)
    n_before = sum(parameter.numel() for parameter in network.parameters())
    if not zeroed:
        remove_heads(network, removed)
    if measured is not None:
        # The heads are found anew: the projections of the model are others now.
        measured = TaskRun(encoder, measured.task, options)
    record = {
        "model": encoder.description,
        "options": options.record(),
        "removed": [list(head) for head in removed],
        **(notes or {}),
    }
    put_to_zero = removed if zeroed else []
    tokenizer = encoder.tokenizer
    save_model(network, tokenizer, out, zeroed=put_to_zero, notes=record, overwrite=overwrite)
    return Pruned(
        Path(out),
        order,
        tuple(sorted(removed)),
        tuple(head for head in heads if head not in removed),
        (n_before, sum(parameter.numel() for parameter in network.parameters())),
        before,
        measure_whole(measured),
    )


def _measured(
    model: str | Path, test: str | Path | None, options: PruneOptions, run: TaskRun | None
) -> TaskRun | None:
    """The examples to measure on, over the model that a run has loaded already if there is one."""
    if test is None:
        return None
    return open_run(model, test, options) if run is None else run.over(test, options)


def measure_whole(run: TaskRun | None) -> dict[str, float]:
    """The mean loss and the metrics of a model as it is; empty without examples."""
    return {} if run is None else run.measure(run.outcomes(torch.ones(1, *run.shape)))


def _n_removed(n_heads: int, options: PruneOptions) -> int:
    if options.share is not None:
        return round(options.share * n_heads)
    keep = int(options.keep or 0)
    if keep > n_heads:
        raise UsageError(f"{keep} heads are to be kept, but the model has {n_heads}")
    return n_heads - keep


def _load(model: str | Path, options: PruneOptions) -> LoadedEncoder:
    """The model with what is on top of it, where that is known to be there."""
    names = load_config(str(model), options).architectures or [""]
    head = ENCODER
    if names[0].endswith("ForSequenceClassification"):
        head = CLASSIFICATION
    elif names[0].endswith("ForMaskedLM"):
        head = MASKED_LM
    elif not names[0].endswith("Model"):
        raise UsageError(
            f"{model} is a {names[0]}, of which only the encoder would be kept; give an encoder, a "
            "model for sequence classification or one for masked words"
        )
    return load_encoder(model, options, head)
