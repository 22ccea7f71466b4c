"""Targets of the examples of a task: classes, numbers or masked tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headroles.arrays import FloatArray
from headroles.errors import CorpusError, UsageError
from headroles.tasks.options import AUTO, CLASSIFICATION, MASKED_LM, REGRESSION
from headroles.tasks.reading import Task
from headroles.wording import listed


def objective_of(asked: str, config: Any) -> str:
    """Return the objective ``asked`` for, or of the model's configuration for ``auto``."""
    if asked != AUTO:
        return asked
    if (config.architectures or [""])[0].endswith("ForMaskedLM"):
        return MASKED_LM
    kind = getattr(config, "problem_type", None)
    if kind == "multi_label_classification":
        raise UsageError("a model of several labels for one text is not supported")
    return REGRESSION if kind == REGRESSION or config.num_labels == 1 else CLASSIFICATION


def find_targets(task: Task, objective: str, config: Any, labels: Sequence[str] = ()) -> FloatArray:
    """Return the class or number of each example (examples,), NaN if tokens are masked.

    A label is the name or the number of a class, or one of ``labels``, which are
    ``"label=class"``.

    Raises CorpusError for labels that the model does not know, for labels of a regression that are
    no numbers, and for a single class; UsageError for ``labels`` of classes that the model lacks,
    or of an objective without classes.
    """
    if labels and objective != CLASSIFICATION:
        raise UsageError(
            f"`labels` are for classification, and the objective is {objective}; leave them out"
        )
    if objective == MASKED_LM:
        return np.full(len(task), np.nan)
    if objective == REGRESSION:
        return np.array(task.numbers())
    numbered = config.label2id or {name: number for number, name in (config.id2label or {}).items()}
    names = {str(name).lower(): number for name, number in numbered.items()}
    known = {str(number): number for number in range(config.num_labels)} | names
    known |= _classes_given(labels, config.num_labels)
    for line, label in zip(task.lines, task.labels, strict=True):
        if label.lower() not in known:
            raise CorpusError(
                f"{task.file}, line {line}: the model does not know the label {label!r}; it knows "
                f"{listed(sorted(known), 8)}. Name the column of labels with `label_column`"
                f", or give labels their classes: `labels='{label}=0,...'`"
                f""
            )
    targets = np.array([known[label.lower()] for label in task.labels], dtype=np.float64)
    if len(np.unique(targets)) < 2:
        raise CorpusError(
            f"all {len(task)} examples of {task.file} have the label {task.labels[0]!r}; give "
            "examples of two classes at least"
        )
    return targets


def _classes_given(labels: Sequence[str], n_classes: int) -> dict[str, int]:
    """Return the class of each label, which may be written in any case."""
    given = {}
    for pair in labels:
        label, _, number = pair.rpartition("=")
        if not 0 <= int(number) < n_classes:
            raise UsageError(f"labels {pair}: the model has the classes 0 to {n_classes - 1}")
        given[label.strip().lower()] = int(number)
    return given
