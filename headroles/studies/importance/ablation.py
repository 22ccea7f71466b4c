"""A model and a task -> Ablations: the change of the loss without heads, tested over examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from headroles.arrays import FloatArray
from headroles.errors import UsageError
from headroles.formats import to_records
from headroles.models.loading.encoder import Model
from headroles.options import takes
from headroles.record import TaskRecord
from headroles.results.columns import WHOLE, Column, one_of
from headroles.results.shown import Grid, Shown, Warned
from headroles.role_names import in_words
from headroles.storage import plain
from headroles.studies.importance.ablation_table import ANSWERS, make_table
from headroles.studies.importance.example_values import OutcomesResult
from headroles.studies.importance.measures import check_measured, describe_task
from headroles.studies.importance.options import AblateOptions
from headroles.studies.importance.removals import removals_of, without_each
from headroles.studies.importance.resuming import keep_parts
from headroles.tasks.outcomes import Outcomes
from headroles.tasks.running import open_run
from headroles.testing.answers import UNDECIDED
from headroles.testing.recorded import RecordedCorrection

_SHOWN = 8
_SETS = {
    "single": "one head",
    "others": "all heads of a layer but one",
    "layers": "a whole layer",
    "thirds": "a third of the layers",
    "roles": "all heads with a role",
}
"""Sets of removals in words."""


class Ablated(RecordedCorrection, frozen=True, kw_only=True):
    """Record of ablations and their tests, with measures of the whole model."""

    ablation: str
    margin: float
    measured: dict[str, float]
    warnings: list[str]


class AblationsRecord(TaskRecord, frozen=True, kw_only=True):
    """Record of ablations: the model, the task, and the removals."""

    ablated: Ablated

    def __post_init__(self) -> None:
        super().__post_init__()
        check_measured(self.ablated.measured, self.task.metrics)


@dataclass(frozen=True, repr=False, eq=False)
class Ablations(OutcomesResult):
    """Losses of a task without heads, each removal tested over the examples.

    ``frame`` has the columns of ``columns``, a row for each removal. ``layer`` and ``head`` are -1
    for removals from several layers, or of several heads. ``loss_change`` is the mean of the paired
    differences of losses (nats), with and without the heads; ``ci_low`` and ``ci_high`` are its
    interval, ``p_value`` tests whether the loss changes (two-sided). ``answer`` is worse, better or
    undecided; ``equivalent`` says whether the change is shown to be smaller than the margin.
    ``examples_needed`` is the number of examples that would show a change of this size at the level
    of a Bonferroni correction, with power 0.8. ``accuracy_change`` is tested by McNemar's exact
    test; NaN without classes.

    ``outcomes`` are the losses and predictions (examples, 1 + removals) of every example, the whole
    model first; ``targets`` (examples,) are the right labels or numbers.

    With ``ablations`` as `ablate_heads` returns them:

    >>> ablations.rises().shape
    (3, 4)
    """

    record: AblationsRecord

    kind: ClassVar[str] = "ablations"
    stem: ClassVar[str] = "ablations"
    examples_file: ClassVar[str] = "ablation-examples.parquet"
    remedy: ClassVar[str] = "make them with: headroles ablate MODEL TASK --out DIR"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "set removed layer head n_removed n loss loss_change sd ci_low ci_high p_value "
            "p_adjusted p_equivalence p_equivalence_adjusted answer equivalent "
            "examples_needed accuracy_change p_accuracy p_accuracy_adjusted note"
        ).split()
    )
    own: ClassVar[Mapping[str, Column]] = {
        **dict.fromkeys(("layer", "head"), Column(WHOLE, -1)),
        "answer": one_of(*ANSWERS),
        "set": one_of(*_SETS),
    }

    @property
    def ablated(self) -> Ablated:
        """The record of removals and tests: options, warnings, measures of the whole model."""
        return self.record.ablated

    @property
    def examples(self) -> tuple[Outcomes, FloatArray]:
        """The outcomes and the targets. Raises UsageError for ablations without them."""
        if self.outcomes is None or self.targets is None:
            raise UsageError("these ablations lack their examples; load them from their folder")
        return self.outcomes, self.targets

    def rises(self) -> FloatArray:
        """Return (layers, heads): the change of the loss without each head; NaN if not removed."""
        found = np.full((self.record.layers, self.record.heads), np.nan)
        rows = self.frame[self.frame["set"] == "single"]
        found[rows["layer"], rows["head"]] = rows["loss_change"]
        return found

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return a sentence on the tests, and the work to cite."""
        return ("We removed heads and tested whether the loss of the same examples changed.",), (
            "michel",
        )

    def summarize(self) -> Iterator[Shown]:
        """Say how many removals changed the loss, and tabulate the largest changes."""
        asked = self.ablated
        yield describe_task(self.record, asked.measured)
        for kind, part in self.frame.groupby("set", sort=False):
            worse, better, open_ = (part["answer"] == answer for answer in ANSWERS)
            small = open_ & part["equivalent"]
            yield (
                f"Without {_SETS[str(kind)]} ({len(part)} removals): the loss is worse in "
                f"{worse.sum()}, better in {better.sum()};\nof the other {open_.sum()}, "
                f"{small.sum()} are shown to change it by less than {asked.margin:g} nats."
            )
        largest = self.frame.nlargest(_SHOWN, "loss_change")
        yield self._tabulate(largest)
        excludes_zero = largest["ci_low"] * largest["ci_high"] > 0
        if ((largest["answer"] == UNDECIDED) & excludes_zero).any():
            yield (
                f"Answers are corrected for {len(self.frame)} removals, intervals are for each "
                "alone."
            )
        yield from map(Warned, asked.warnings)

    def details(self) -> Iterator[Shown]:
        """Name the ablation and the tests, and count answers, also about accuracy."""
        asked = self.ablated
        yield (
            f"Heads replaced by {asked.ablation}; alpha {asked.alpha:g}, "
            f"{asked.correction}, margin {asked.margin:g}."
        )
        yield self._counts()

    def _counts(self) -> Grid:
        rows = []
        for kind, part in self.frame.groupby("set", sort=False):
            counts = (
                len(part),
                *((part["answer"] == answer).sum() for answer in ANSWERS),
                part["equivalent"].sum(),
                (part["loss_change"] < 0).sum(),
                (part["p_accuracy_adjusted"] <= self.ablated.alpha).sum(),
            )
            needed = part["examples_needed"].median()
            n_needed = f"{needed:,.0f}" if np.isfinite(needed) else "-"
            rows.append((str(kind), *map(str, counts), n_needed))
        names = ("equivalent", "loss fell", "accuracy changed", "examples needed (median)")
        return Grid(("removed", "sets", *ANSWERS, *names), tuple(rows))

    def _tabulate(self, rows: pd.DataFrame) -> Grid:
        names = [
            f"all: {in_words(name)}" if kind == "roles" else name
            for kind, name in zip(rows["set"], rows["removed"], strict=True)
        ]
        has_accuracy = self.frame["accuracy_change"].notna().any()
        cells = {
            "Loss rises most without": "{removed}",
            "nats": "{loss_change:+.4f}",
            f"{1 - self.ablated.alpha:.0%} interval": "{ci_low:+.4f} to {ci_high:+.4f}",
            **({"accuracy": "{accuracy_change:+.3f}"} if has_accuracy else {}),
            "answer": "{answer}",
        }
        return Grid.of(rows.assign(removed=names), cells)

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        ablated = {**self.record.options, **plain(self.ablated)}
        return {"ablated": ablated, "removals": to_records(self.frame)}


@takes(AblateOptions)
def ablate_heads(model: Model, task: str | Path, options: AblateOptions) -> Ablations:
    """Test the change of a task's loss without heads, over the examples.

    Each removal is compared with the whole model, example by example: the losses by paired tests,
    accuracy by McNemar's. Both are corrected over all removals. An undecided head may still matter;
    ``equivalent`` heads are shown not to, by two one-sided tests against the margin.

    Args:
        model: a folder or hub id, with the head that was trained for the task; or a loaded model.
        task: a tab-separated file of labelled text, plain text for masked language models; of
            examples that the model was not trained on.
        options: keyword arguments, described below.

    Raises:
        UsageError, CorpusError, ModelError: as `find_importance`; roles of another model.

    With ``model`` a classifier of 3 layers with 4 heads each, ``task`` a file of 8 examples:

    >>> from headroles import ablate_heads
    >>> ablations = ablate_heads(model, task, sets="single")
    >>> ablations.rises().shape
    (3, 4)
    >>> ablations.frame[["removed", "n", "n_removed"]].head(2)
      removed  n  n_removed
    0     0-0  8          1
    1     0-1  8          1
    """
    run = open_run(model, task, options)
    keep_parts("ablations", options, run.encoder, run)
    removals = removals_of(run, options)
    gates = without_each([(), *(removal.heads for removal in removals)], run.shape)
    outcomes = run.outcomes(gates, options.ablation)
    frame, warnings = make_table(run, removals, outcomes, options)
    ablated = Ablated.from_options(
        options.record(), measured=run.measure(outcomes), warnings=warnings
    )
    record = AblationsRecord.extending(run.record(options), ablated=ablated)
    return Ablations(frame[list(Ablations.columns)], record, outcomes, run.targets)
