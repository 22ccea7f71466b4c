"""What studies of removed heads share: options, sets of heads, measures, values of examples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from headroles import storage
from headroles.arrays import FloatArray
from headroles.errors import StorageError, UsageError
from headroles.models.heads.remaining import Head
from headroles.options import CIRCUMSTANCE, NO_FLAG, Convert, Options
from headroles.passes.saved_batches import SavedBatches
from headroles.record import Record, TaskRecord, versions
from headroles.results.result import Result
from headroles.storage import OpenParts, Parts
from headroles.tasks.options import REGRESSION, TaskOptions
from headroles.tasks.outcomes import DERIVATIVES, METRICS, Derivatives, Outcomes
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.options import TestOptions
from headroles.wording import not_among

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from headroles.models.loading.encoder import LoadedEncoder
    from headroles.studies.classification.role_table import RoleTable
    from headroles.tasks.running import TaskRun

LOSS, ACCURACY = "loss", "accuracy"
WORSE, BETTER = "worse", "better"
MORE, LESS = "more", "less"
_GROUPS = 50


def _as_parts(given: Any) -> Parts:
    if isinstance(given, Parts):
        return given
    if not isinstance(given, str | PathLike):
        raise UsageError(f"parts is {given!r}; it must be the name of a folder")
    return Parts(Path(given))


@dataclass(frozen=True, kw_only=True)
class RunOptions(TaskOptions):
    """Options of a long study of a task, which resumes where it was interrupted."""

    parts: Annotated[Parts | None, Convert(_as_parts), NO_FLAG, CIRCUMSTANCE] = None
    """Folder for finished batches, with which the same study resumes after an interruption."""


@dataclass(frozen=True, kw_only=True)
class RoleOptions(Options):
    """Options of the roles to use."""

    title: ClassVar[str] = "Heads"

    roles_from: Annotated[str | None, Convert(str)] = None
    """Folder that classify or assign wrote, of the model before it was fine-tuned or after."""


def keep_parts(
    study: str, options: RunOptions, encoder: LoadedEncoder, *runs: TaskRun | None
) -> OpenParts | None:
    """Let ``runs`` save finished batches, if ``options`` name a folder; return the open folder.

    Saved batches serve only the same study, with the same options, weights, configuration,
    tokenizer, examples, targets and versions. Raises StorageError for a folder of other settings.
    """
    if options.parts is None:
        return None
    task_runs = [run for run in runs if run is not None]
    tasks = {
        f"task {number}": {
            "examples": len(run.task),
            "sha256": run.task.digest,
            "objective": run.objective,
            "targets": hashlib.blake2b(run.targets.tobytes(), digest_size=16).hexdigest(),
        }
        for number, run in enumerate(task_runs, start=1)
    }
    settings = {"study": study, "options": options.record(), **encoder.identity}
    parts = options.parts.open(
        {**settings, "device": encoder.device.type, **tasks, "versions": versions()}
    )
    for run in task_runs:
        run.saved = SavedBatches(parts)
    return parts


def present_heads(run: TaskRun) -> list[Head]:
    """Return the heads that a model has, by layer and number. Raises UsageError if it has none."""
    from headroles.models.heads.surgery import heads_of

    heads = heads_of(run.encoder.model)
    if not heads:
        raise UsageError(
            f"all heads of {run.encoder.description.model} are removed; take a model that has some"
        )
    return heads


def without(removed: Iterable[Head], shape: tuple[int, int]) -> torch.Tensor:
    """Return gates (layers, heads), closed for the removed heads."""
    return without_each([removed], shape)[0]


def without_each(sets: Iterable[Iterable[Head]], shape: tuple[int, int]) -> torch.Tensor:
    """Return gates (sets, layers, heads): for each set of heads those of `without`."""
    import torch

    all_removed = [list(removed) for removed in sets]
    gates = torch.ones(len(all_removed), *shape)
    for of_set, removed in zip(gates, all_removed, strict=True):
        for head in removed:
            of_set[head] = 0
    return gates


def sorted_by(values: FloatArray, heads: Sequence[Head]) -> list[Head]:
    """Return heads by values (layers, heads), the smallest first; ties by layer and number."""
    return sorted(heads, key=lambda head: (values[head], head))


@dataclass(frozen=True)
class SharedLayers:
    """Groups of layers that share an attention module, from which heads are removed at once.

    A head of the first layer stands for its group, as a unit; a layer outside of all ``groups`` is
    a group by itself. Raises UsageError for groups of different sizes.
    """

    groups: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(group) for group in self.groups}
        if len(sizes) > 1:
            raise UsageError(
                f"layers of this model share attention modules in groups of {sorted(sizes)}; heads "
                "can only be removed from models whose groups are of one size"
            )

    def _group_of(self, layer: int) -> tuple[int, ...]:
        return next((group for group in self.groups if layer in group), (layer,))

    def unit_of(self, head: Head) -> Head:
        """Return the head that stands for ``head``: of the same number, in the first layer."""
        return self._group_of(head[0])[0], head[1]

    def units(self, heads: Iterable[Head]) -> list[Head]:
        """Return those of ``heads`` that stand for their groups."""
        return [head for head in heads if self.unit_of(head) == head]

    def spread(self, units: Iterable[Head]) -> list[Head]:
        """Return all heads that ``units`` stand for."""
        return [(layer, number) for first, number in units for layer in self._group_of(first)]

    def summed(self, derivatives: Derivatives) -> Derivatives:
        """Return the derivatives by gates that whole groups share: sums over their layers.

        Sums by token are of absolute values, and so an upper bound.
        """
        by_gate, by_token = derivatives.by_gate.copy(), derivatives.by_token.copy()
        for group in self.groups:
            for values in (by_gate, by_token):
                values[:, group[0]] = values[:, list(group)].sum(1)
        return replace(derivatives, by_gate=by_gate, by_token=by_token)

    def n_units(self, n_removed: int, n_heads: int) -> int:
        """Count units that ``n_removed`` of ``n_heads`` heads are.

        Raises UsageError for a part of a unit.
        """
        size = len(self.groups[0]) if self.groups else 1
        if n_removed % size:
            fewer = n_heads - n_removed // size * size
            raise UsageError(
                f"layers of this model share one attention module, so that a head is removed from "
                f"{size} layers at once; {n_removed} of {n_heads} heads are no multiple of {size}. "
                f"Pass `keep={fewer - size}` or `keep={fewer}`"
            )
        return n_removed // size


NOT_SHARED = SharedLayers()
"""Every layer has a module by itself."""


def rises_of(run: TaskRun, shared: SharedLayers = NOT_SHARED) -> FloatArray:
    """Return (layers, heads): the rise of the mean loss without each head; NaN if removed.

    A head of ``shared`` layers is removed from its whole group, and stands in the first layer.
    """
    heads = shared.units(present_heads(run))
    losses = run.outcomes(_without_one(run, heads, shared)).losses.mean(0)
    rises = np.full(run.shape, np.nan)
    rises[tuple(zip(*heads, strict=True))] = losses[1:] - losses[0]
    return rises


def _without_one(run: TaskRun, heads: Sequence[Head], shared: SharedLayers) -> torch.Tensor:
    """Return open gates, followed by the gates without each head."""
    return without_each([[], *(shared.spread([head]) for head in heads)], run.shape)


def passes_to_choose(order: str, run: TaskRun, steps: int = 1) -> float:
    """Return how many passes over the examples of a run `choose_heads` takes."""
    if order == "ablation":
        return run.n_passes(_without_one(run, present_heads(run), NOT_SHARED))
    return DERIVATIVES * {"importance": 1, "reestimated": steps}.get(order, 0)


def heads_by_role(table: RoleTable, run: TaskRun) -> dict[str, list[Head]]:
    """Return the heads of each role that any head of the model has.

    Raises UsageError for roles of a model of another size.
    """
    shape = (int(table.frame["layer"].max()) + 1, int(table.frame["head"].max()) + 1)
    if shape != run.shape:
        raise UsageError(
            f"the roles are of {shape[0]} layers x {shape[1]} heads, and the model has "
            f"{run.shape[0]} x {run.shape[1]}; take roles of this model or its origin"
        )
    present = set(present_heads(run))
    by_role = {
        role: [head for head in table.heads_with(role) if head in present] for role in table.roles
    }
    return {role: heads for role, heads in by_role.items() if heads}


def describe_task(record: TaskRecord, measured: Mapping[str, float]) -> str:
    """Name the model, the examples, and the loss and the metrics of the whole model."""
    task = record.task
    unit = "" if task.objective == REGRESSION else " nats"
    metrics = [f"{name} {measured[name]:.3f}" for name in task.metrics]
    values = ", ".join([f"loss {measured[LOSS]:.4f}{unit}", *metrics])
    file = Path(record.corpus.file).name
    return f"{record.model.name} on {task.examples} examples of {file}: {values}."


def check_measured(measured: Mapping[str, float], metrics: Sequence[str]) -> None:
    """Raise ValueError if the loss or a metric of the whole model is missing in a record."""
    if lacking := {LOSS, *metrics}.difference(measured):
        raise ValueError(f"the whole model has no {', '.join(sorted(lacking))}")


def known_measure(measure: str, known: Sequence[str]) -> str:
    """Return ``measure``. Raises UsageError unless it is known."""
    if measure not in known:
        raise UsageError(not_among("measure", measure, known))
    return measure


def find_measures(
    outcomes: Outcomes, targets: FloatArray, metrics: Sequence[str]
) -> dict[str, FloatArray]:
    """Return the loss and each metric (settings,)."""
    by_metric = {name: _by_setting(name, outcomes.predictions, targets) for name in metrics}
    return {LOSS: outcomes.losses.mean(0), **by_metric}


def unit_values(
    outcomes: Outcomes, targets: FloatArray, metrics: Sequence[str]
) -> dict[str, FloatArray]:
    """Return for the loss and each metric values (units, settings) with the measure as their mean.

    Units of loss and accuracy are examples. Other metrics are no means over examples: their units
    are random groups of examples, and the values are pseudo-values of the jackknife over groups
    (Tukey 1958), which may be tested like means. Their mean is the metric up to its bias.
    """
    values = {LOSS: outcomes.losses}
    for name in metrics:
        if name == ACCURACY:
            values[name] = (outcomes.predictions == targets[:, None]).astype(np.float64)
        else:
            values[name] = _pseudo_values(name, outcomes.predictions, targets)
    return values


def _pseudo_values(name: str, predictions: FloatArray, targets: FloatArray) -> FloatArray:
    n_groups = min(_GROUPS, len(targets))
    groups = np.random.default_rng(0).permutation(len(targets)) % n_groups
    rest = [
        _by_setting(name, predictions[groups != group], targets[groups != group])
        for group in range(n_groups)
    ]
    return n_groups * _by_setting(name, predictions, targets) - (n_groups - 1) * np.stack(rest)


def _by_setting(name: str, predictions: FloatArray, targets: FloatArray) -> FloatArray:
    return np.array([METRICS[name](column, targets) for column in predictions.T])


def worse_by(differences: FloatArray, measure: str) -> FloatArray:
    """Return differences of a measure, positive where worse: more loss, less of a metric."""
    return differences if measure == LOSS else -differences


def find_loss_change(before: Outcomes, after: Outcomes) -> dict[str, float]:
    """Compare the losses of the same examples, each (examples, 1).

    Returns ``loss_change``, the mean of the paired differences (nats), with its 95 % interval
    ``ci_low`` to ``ci_high``, and ``p_value``, of a t-test for no change (two-sided).
    """
    options = TestOptions(clusters="none")
    changes = after.losses - before.losses
    size = size_of(before.losses, after.losses)
    hypotheses = Hypotheses.of(changes, 0.0, size=size, called="the differences")
    interval = hypotheses.intervals(options.alpha)
    return {
        "loss_change": float(hypotheses.moments.mean[0]),
        "ci_low": float(interval.ci_low[0]),
        "ci_high": float(interval.ci_high[0]),
        "p_value": float(find_p_values(hypotheses, options, "two-sided").single[0]),
    }


def describe_loss_change(change: Mapping[str, float]) -> str:
    """Write a change of the loss with its interval."""
    numbers = "{loss_change:+.4f} nats (95 % interval {ci_low:+.4f} to {ci_high:+.4f})"
    return numbers.format_map(change)


def read_examples(file: Path, axes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Read arrays (examples, ...) that `storage.encode_arrays` wrote, with their numbers of axes.

    Raises StorageError for a file with other arrays.
    """
    from safetensors import SafetensorError

    try:
        arrays = storage.decode_arrays(file.read_bytes())
    except (OSError, SafetensorError) as error:
        raise StorageError(f"{file} cannot be read ({error}); make the results again") from error
    lengths = {array.shape[:1] for array in arrays.values()}
    if {name: array.ndim for name, array in arrays.items()} != dict(axes) or len(lengths) > 1:
        raise StorageError(
            f"{file} does not hold the examples of this version; make the results again"
        )
    return arrays


@dataclass(frozen=True, repr=False, eq=False)
class OutcomesResult(Result):
    """A table with the outcomes of every example in all settings.

    ``outcomes`` are losses and predictions (examples, settings), ``targets`` (examples,) the right
    labels or numbers; both None for tables made by hand.
    """

    outcomes: Outcomes | None = None
    targets: FloatArray | None = None

    examples_file: ClassVar[str]

    def write_files(self, folder: Path) -> list[str]:
        """Write the table, and the outcomes of every example."""
        names = super().write_files(folder)
        if self.outcomes is None or self.targets is None:
            return names
        arrays = {**vars(self.outcomes), "targets": self.targets}
        storage.write_bytes(folder / self.examples_file, storage.encode_arrays(arrays))
        return [*names, self.examples_file]

    @classmethod
    def read_files(cls, folder: Path, record: Record) -> Self:
        """Read the table and the outcomes."""
        table, file = super().read_files(folder, record), folder / cls.examples_file
        arrays = read_examples(file, {"losses": 2, "predictions": 2, "targets": 1})
        if arrays["losses"].shape != arrays["predictions"].shape:
            raise StorageError(f"{file} has more losses or more predictions; {cls.remedy}")
        targets = arrays.pop("targets")
        return replace(table, outcomes=Outcomes(**arrays), targets=targets)
