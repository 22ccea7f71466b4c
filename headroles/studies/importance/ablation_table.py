"""Losses with and without heads as a table: differences, tests, equivalence, examples needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from headroles.arrays import FloatArray
from headroles.inference.power import smallest_n
from headroles.studies.importance.measures import BETTER, WORSE
from headroles.studies.importance.options import AblateOptions
from headroles.studies.importance.removals import Removal
from headroles.tasks.options import CLASSIFICATION
from headroles.tasks.outcomes import Outcomes
from headroles.tasks.running import TaskRun
from headroles.testing.answers import UNDECIDED, answers
from headroles.testing.catalogue import MCNEMAR
from headroles.testing.evidence import find_equivalence, find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.notes import find_notes, warn_of_differences

ANSWERS = (WORSE, BETTER, UNDECIDED)
_POWER = 0.8


def make_table(
    run: TaskRun, removals: Sequence[Removal], outcomes: Outcomes, options: AblateOptions
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each removal, and warnings about the tests."""
    changes = outcomes.losses[:, 1:] - outcomes.losses[:, :1]
    hypotheses = Hypotheses.of(
        changes,
        0.0,
        size=size_of(outcomes.losses[:, 1:], outcomes.losses[:, :1]),
        called="the differences",
    )
    two_sided = find_p_values(hypotheses, options, "two-sided")
    near = find_equivalence(hypotheses, options, options.margin)
    intervals = hypotheses.intervals(options.alpha)
    frame = pd.DataFrame(
        {
            "set": [removal.kind for removal in removals],
            "removed": [removal.name for removal in removals],
            "layer": [removal.layer for removal in removals],
            "head": [removal.head for removal in removals],
            "n_removed": [len(removal.heads) for removal in removals],
            "n": hypotheses.moments.n,
            "loss": outcomes.losses[:, 1:].mean(0),
            "loss_change": hypotheses.moments.mean,
            "sd": hypotheses.moments.sd,
            "ci_low": intervals.ci_low,
            "ci_high": intervals.ci_high,
            "p_value": two_sided.single,
            "p_adjusted": two_sided.adjusted,
            "p_equivalence": near.single,
            "p_equivalence_adjusted": near.adjusted,
            "answer": answers(two_sided.shows(options.alpha), two_sided.direction, (WORSE, BETTER)),
            "equivalent": near.shows(options.alpha),
            "examples_needed": _needed(hypotheses, options),
            **_accuracy(run, outcomes, options),
            "note": find_notes(hypotheses),
        }
    )
    return frame, warn_of_differences(hypotheses, options)


def _needed(hypotheses: Hypotheses, options: AblateOptions) -> FloatArray:
    """Return examples (T,) at which a two-sided test with a Bonferroni correction has power 0.8."""
    effect = np.abs(hypotheses.effect_size)
    needed = np.where(np.isnan(effect), np.nan, np.inf)
    if (some := effect > 0).any():
        level = options.alpha / 2 / hypotheses.n_tests
        needed[some] = smallest_n(effect[some], level, _POWER)
    return needed


def _accuracy(
    run: TaskRun, outcomes: Outcomes, options: AblateOptions
) -> dict[str, FloatArray | float]:
    """Return changes of the accuracy, with p-values; NaN for tasks without classes."""
    if run.objective != CLASSIFICATION:
        return dict.fromkeys(("accuracy_change", "p_accuracy", "p_accuracy_adjusted"), np.nan)
    right = outcomes.predictions == run.targets[:, None]
    differences = right[:, 1:].astype(np.int8) - right[:, :1].astype(np.int8)
    found = find_p_values(Hypotheses.of(differences, 0.0, size=1.0), options, "two-sided", MCNEMAR)
    return {
        "accuracy_change": right[:, 1:].mean(0) - right[:, 0].mean(),
        "p_accuracy": found.single,
        "p_accuracy_adjusted": found.adjusted,
    }
