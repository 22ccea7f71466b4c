"""What studies of removed heads share: gates, tested differences, tables with every example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypedDict

import numpy as np
from safetensors import SafetensorError

from headroles import storage
from headroles.arrays import FloatArray
from headroles.errors import StorageError, UsageError
from headroles.models.heads.remaining import Head
from headroles.options import Convert, Options, path_text
from headroles.record import Record
from headroles.results.result import FactsOf, OptionsOf, Result
from headroles.results.shown import Grid, Shown, Warned, in_digits
from headroles.tasks.options import REGRESSION
from headroles.tasks.outcomes import LOSS, TO_LOWER, Outcomes
from headroles.testing.evidence import answers, find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.options import CorrectionOptions, TestOptions
from headroles.wording import not_among

if TYPE_CHECKING:
    import torch

    from headroles.studies.classification.role_table import RoleTable
    from headroles.tasks.running import TaskRun

WORSE, BETTER = "worse", "better"
MORE, LESS = "more", "less"


@dataclass(frozen=True, kw_only=True)
class RolesFromOptions(Options):
    """Options of the roles to use."""

    title: ClassVar[str] = "Heads"

    roles_from: Annotated[str | None, Convert(path_text)] = None
    """Folder that classify or assign wrote, of the model before it was fine-tuned or after."""


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


def sorted_by(values: FloatArray, heads: Iterable[Head]) -> list[Head]:
    """Return heads by values (layers, heads), the smallest first; ties by layer and number."""
    return sorted(heads, key=lambda head: (values[head], head))


def at_most(room: Mapping[int, int], heads: Iterable[Head]) -> Iterator[Head]:
    """Yield heads in their order, of each layer as many as there is room for."""
    left = Counter(room)
    for head in heads:
        if left[head[0]]:
            left[head[0]] -= 1
            yield head


def rises_of(run: TaskRun, units: Sequence[Sequence[Head]]) -> FloatArray:
    """Return (layers, heads): the rise of the mean loss without each unit, heads that go at once.

    The rise stands in the place of the first head of the unit; others are NaN.
    """
    losses = run.outcomes(without_each([(), *units], run.shape)).losses.mean(0)
    rises = np.full(run.shape, np.nan)
    rises[tuple(zip(*(unit[0] for unit in units), strict=True))] = losses[1:] - losses[0]
    return rises


def heads_by_role(table: RoleTable, run: TaskRun) -> dict[str, list[Head]]:
    """Return the heads of each role that any head of the model has.

    Raises UsageError for roles of a model of another size, and of attention that is not looked at.
    """
    shape = (int(table.frame["layer"].max()) + 1, int(table.frame["head"].max()) + 1)
    sites, kind = run.sites, table.record.attention
    stack = next((stack for stack in sites.stacks if stack.kind == kind), None)
    if stack is None:
        raise UsageError(
            f"the roles are of {kind} attention; take its heads along with `attention={kind!r}`"
        )
    if shape != (stack.n_layers, stack.n_heads):
        raise UsageError(
            f"the roles are of {shape[0]} layers x {shape[1]} heads, and the model has "
            f"{stack.n_layers} x {stack.n_heads}; take roles of this model or its origin"
        )
    first = sites.rows.first(kind)
    present = set(run.heads)
    having = {
        role: [(first + layer, head) for layer, head in table.heads_with(role)]
        for role in table.roles
    }
    by_role = {role: [head for head in heads if head in present] for role, heads in having.items()}
    return {role: heads for role, heads in by_role.items() if heads}


def warn_of_guessing(measured: Mapping[str, float | None]) -> Iterator[Warned]:
    """Warn if a model does no better than chance, as without training for the task."""
    for name in ("matthews", "spearman"):
        if (value := measured.get(name)) is not None and value <= 0:
            yield Warned(
                f"{name} is {value:.3f}, no better than chance: was the model trained for it?"
            )


class LossChange(TypedDict):
    """A difference of mean losses (nats), as `find_loss_change` returns it."""

    loss_change: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None


def describe_task(record: Record, measured: Mapping[str, float | None]) -> Iterator[Shown]:
    """Name the model, the examples, and the loss and the metrics of the whole model."""
    yield from warn_of_guessing(measured)
    task = record.task
    unit = "" if task.objective == REGRESSION else " nats"
    metrics = [f"{name.replace('_', ' ')} {in_digits(measured[name], 3)}" for name in task.metrics]
    values = ", ".join([f"loss {in_digits(measured[LOSS], 4)}{unit}", *metrics])
    file = Path(task.file).name
    yield f"{record.model.name} on {task.examples} examples of {file}: {values}."


def known_measure(measure: str, measures: Sequence[str]) -> str:
    """Return ``measure``. Raises UsageError unless it is known."""
    if measure not in measures:
        raise UsageError(not_among("measure", measure, measures))
    return measure


def worse_by(differences: FloatArray, measure: str) -> FloatArray:
    """Return differences of a measure, positive where worse: more loss, less of most metrics."""
    return differences if measure in TO_LOWER else -differences


def two_sided(
    hypotheses: Hypotheses, options: CorrectionOptions, words: tuple[str, str], names: str
) -> dict[str, Any]:
    """Return columns (T,) of two-sided tests, in the order of ``names``, with blanks between them.

    They are means, both ends of intervals, p-values, corrected ones, and answers: ``words`` for
    means above and below the threshold.
    """
    p_values = find_p_values(hypotheses, options, "two-sided")
    limits, shown = hypotheses.intervals(options.alpha), p_values.shows(options.alpha)
    tests = (p_values.single, p_values.adjusted, answers(shown, p_values.direction, words))
    columns = (hypotheses.moments.mean, limits.ci_low, limits.ci_high, *tests)
    return dict(zip(names.split(), columns, strict=True))


def find_loss_change(before: Outcomes, after: Outcomes) -> LossChange:
    """Compare the losses of the same examples, each (examples, 1).

    Returns ``loss_change``, the mean of the paired differences (nats), with its 95 % interval
    ``ci_low`` to ``ci_high``, and ``p_value``, of a t-test for no change (two-sided).
    """
    size = size_of(before.losses, after.losses)
    changes = Hypotheses.from_values(after.losses - before.losses, 0.0, size=size)
    names = "loss_change ci_low ci_high p_value p_adjusted answer"
    columns = two_sided(changes, TestOptions(clusters="none"), (WORSE, BETTER), names)
    return {
        "loss_change": float(columns["loss_change"][0]),
        "ci_low": float(columns["ci_low"][0]),
        "ci_high": float(columns["ci_high"][0]),
        "p_value": float(columns["p_value"][0]),
    }


def describe_change(
    title: str, steps: Mapping[str, Mapping[str, float | None]], change: LossChange
) -> Iterator[Shown]:
    """Tabulate loss and metrics at those steps that were measured; write the change of the loss."""
    measured = {name: values for name, values in steps.items() if values}
    metrics = tuple(next(iter(measured.values())))
    rows = (
        (name, *(in_digits(number, 4) for number in values.values()))
        for name, values in measured.items()
    )
    yield Grid((title, *metrics), tuple(rows))
    if change["ci_low"] is not None:
        subject = "Only the loss was tested: it" if len(metrics) > 1 else "The loss"
        numbers = "{loss_change:+z.4f} nats (95 % interval {ci_low:+z.4f} to {ci_high:+z.4f})"
        yield f"{subject} changes by {numbers.format_map(change)}."


def n_parameters(network: torch.nn.Module) -> int:
    """Count the parameters of a network."""
    return sum(parameter.numel() for parameter in network.parameters())


@dataclass(frozen=True, repr=False, eq=False)
class ExamplesResult(Result[OptionsOf, FactsOf]):
    """A table with arrays of every example, which are in a file beside it.

    ``arrays`` is the field of a result with them, and its type; it is None for tables made by hand.
    """

    arrays: ClassVar[tuple[str, type]] = ("outcomes", Outcomes)

    @classmethod
    def file_names(cls) -> Sequence[str]:
        """Return the names of the table and of the arrays."""
        return [*super().file_names(), cls._arrays_file()]

    @classmethod
    def _arrays_file(cls) -> str:
        return f"{cls.filename}-examples.safetensors"

    def write_files(self, folder: Path) -> list[str]:
        """Write the table, and the arrays."""
        names = super().write_files(folder)
        if (arrays := getattr(self, self.arrays[0])) is None:
            return names
        file = self._arrays_file()
        storage.write_bytes(folder / file, storage.encode_arrays(vars(arrays)))
        return [*names, file]

    @classmethod
    def read_files(cls, folder: Path, record: Record) -> Self:
        """Read the table and the arrays."""
        file, (name, form) = folder / cls._arrays_file(), cls.arrays
        try:
            arrays = form(**storage.decode_arrays(file.read_bytes()))
        except (OSError, SafetensorError, TypeError, ValueError) as error:
            raise StorageError(f"{file} cannot be read ({error}); {cls.hint}") from error
        return replace(super().read_files(folder, record), **{name: arrays})
