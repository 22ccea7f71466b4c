"""A model -> a smaller one, in a folder that every command takes as a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from headroles.errors import UsageError
from headroles.models import LoadedEncoder, load_config, load_encoder
from headroles.models.gates import HeadSites
from headroles.models.kept_heads import Head
from headroles.models.pruned import put_to_zero
from headroles.models.stored import PrunedModel, model_folder
from headroles.models.surgery import heads_of, layers_that_share, remove_heads
from headroles.models.tuning import check_trainer
from headroles.models.weights import CLASSIFICATION, ENCODER, MASKED_LM
from headroles.options import takes
from headroles.provenance import new_provenance
from headroles.results import Grid, Shown, Summary, write_together
from headroles.studies.removal.options import PruneOptions
from headroles.studies.removal.orders import choose_heads
from headroles.studies.removal.resuming import keep_parts
from headroles.studies.removal.shared_heads import SharedLayers
from headroles.studies.removal.tuning import Tuning, fine_tune, measure_under
from headroles.tasks import TaskOptions, TaskRun, open_run


@dataclass(frozen=True)
class Pruned(Summary):
    """What became of a model: heads ``removed`` and ``kept``, weights and what was measured.

    ``before`` and ``after`` are the mean loss and the metrics of the examples it was measured on;
    empty without any. ``tuning`` is what fine-tuning came to, None without.
    """

    folder: Path
    order: str
    removed: tuple[Head, ...]
    kept: tuple[Head, ...]
    parameters: tuple[int, int]
    before: dict[str, float]
    after: dict[str, float]
    tuning: Tuning | None = None

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
            rows = [
                (name, *(f"{value:.4f}" for value in measured.values()))
                for name, measured in self._measured()
                if measured
            ]
            parts.append(Grid(("", *self.before), tuple(rows)))
        return [*parts, *(self.tuning.shown() if self.tuning else ())]

    def _measured(self) -> Iterator[tuple[str, dict[str, float]]]:
        """What was measured, in the order of what was done."""
        yield "before", self.before
        if self.tuning is not None:
            yield "before, fine-tuned", self.tuning.whole
            yield "after, not fine-tuned", self.tuning.masked
        yield "after", self.after

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {
            "order": self.order,
            "removed": [list(head) for head in self.removed],
            "kept": [list(head) for head in self.kept],
            "parameters": {"before": self.parameters[0], "after": self.parameters[1]},
            "before": self.before,
            "after": self.after,
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

    With ``fine_tune_on`` the model is fine-tuned while the heads that go are masked, and then loses
    them.

    Raises:
        UsageError: an order without what it needs, or more heads than may go; fine-tuning without
            accelerate.
        ModelError, CorpusError, StorageError: as `find_importance` and `load_model`.
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
    """`prune_heads` into a folder that is claimed, for callers that have their options together."""
    run = open_run(model, task, options) if task is not None else None
    measured = _over(model, test, options.of_test(), run)
    tuned = _tuned(model, options, measured or run)
    opened = measured or run or tuned
    encoder = opened.encoder if opened else _load(model, options)
    keep_parts("pruning", options, encoder, run, measured)
    heads = heads_of(encoder.model)
    removed = _choose(encoder, heads, options, run)
    before = measure_whole(measured)
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
    """The heads to remove; from layers that share a module, the same ones."""
    shared = SharedLayers(layers_that_share(encoder.model))
    n_removed = _n_removed(len(heads), options)
    if shared.size == 1:
        return choose_heads(options.order, n_removed, heads, options, run)
    units, asked = shared.units(heads), shared.of_units(options)
    if options.share is None:
        n_units = shared.n_units(n_removed, len(heads))
    else:
        n_units = _n_removed(len(units), options)
    return shared.spread(choose_heads(options.order, n_units, units, asked, run, shared))


def write_without(
    encoder: LoadedEncoder,
    removed: Sequence[Head],
    folder: Path,
    options: TaskOptions,
    *,
    order: str,
    before: dict[str, float],
    measured: TaskRun | None,
    zeroed: bool = False,
    tuning: Tuning | None = None,
    notes: dict[str, Any] | None = None,
) -> Pruned:
    """Write a model without heads into a folder, with ``notes`` about it, and measure it again."""
    network = encoder.model
    heads = heads_of(network)
    n_before = sum(parameter.numel() for parameter in network.parameters())
    if not zeroed:
        remove_heads(network, removed)
    record = {
        **new_provenance(
            model={**encoder.description, **HeadSites.of(network).description},
            corpus={},
            options=options.record(),
        ),
        "removed": [list(head) for head in removed],
        **({"fine_tuning": tuning.facts()} if tuning else {}),
        **(notes or {}),
    }
    if zeroed:
        put_to_zero(network, removed)
    write_together(folder, [PrunedModel(network, encoder.tokenizer, record)])
    return Pruned(
        folder,
        order,
        tuple(sorted(removed)),
        tuple(head for head in heads if head not in removed),
        (n_before, sum(parameter.numel() for parameter in network.parameters())),
        before,
        measure_whole(measured),
        tuning,
    )


def _over(
    model: str | Path, file: str | Path | None, options: TaskOptions, run: TaskRun | None
) -> TaskRun | None:
    """The examples of a file, over the model that a run has loaded already if there is one."""
    if file is None:
        return None
    return open_run(model, file, options) if run is None else run.over(file, options)


def _tuned(model: str | Path, options: PruneOptions, run: TaskRun | None) -> TaskRun | None:
    """The examples to fine-tune on, None if that was not asked for."""
    if options.fine_tune_on is None:
        return None
    check_trainer()
    asked = replace(options, examples=options.fine_tune_examples)
    return _over(model, options.fine_tune_on, asked, run)


def measure_whole(run: TaskRun | None) -> dict[str, float]:
    """The mean loss and the metrics of a model as it is; empty without examples."""
    return {} if run is None else measure_under(run, torch.ones(run.shape))


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
