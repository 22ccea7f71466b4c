"""What another model of the same kind loses on a task."""

from __future__ import annotations

import torch

from headroles.studies.collaboration.result import TaskChange
from headroles.tasks import TaskRun
from headroles.testing import Hypotheses, TestOptions, find_intervals, find_p_values, size_of


def change_on(before: TaskRun, after: TaskRun) -> TaskChange:
    """Loss and metrics of two models on the examples of one task, and the change of the loss.

    ``loss_change`` is the mean of the paired differences over examples, ``ci_low`` and ``ci_high``
    its interval of 95 %, ``p_value`` that of no change (t-test, two-sided).
    """
    runs = (before, after)
    first, second = (run.outcomes(torch.ones(1, *run.shape)) for run in runs)
    asked = TestOptions(clusters="none")
    hypotheses = Hypotheses.of(
        second.losses - first.losses,
        0.0,
        size=size_of(first.losses, second.losses),
        called="the differences",
    )
    interval = find_intervals(hypotheses, asked)
    return TaskChange(
        file=before.task.file,
        examples=len(before.task),
        metrics=list(before.metrics),
        before=before.measure(first),
        after=after.measure(second),
        loss_change=float(hypotheses.moments.mean[0]),
        ci_low=float(interval.ci_low[0]),
        ci_high=float(interval.ci_high[0]),
        p_value=float(find_p_values(hypotheses, asked, "two-sided").single[0]),
    )
