"""Losses without heads of a role, and without as many others of the same layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headroles.inference.crossed import crossed_sample
from headroles.models.kept_heads import Head
from headroles.studies.removal.ablation_options import RoleImportanceOptions
from headroles.studies.removal.orders import without_each
from headroles.tasks import TaskRun
from headroles.tasks.outcomes import FloatArray
from headroles.testing import Hypotheses, TestOptions, find_intervals, find_p_values, size_of


def compare_removed(
    run: TaskRun,
    heads: Sequence[Head],
    having: Mapping[str, Sequence[Head]],
    options: RoleImportanceOptions,
) -> dict[str, Any]:
    """For each role the losses without its heads and without others, and the tests of both."""
    rng = np.random.default_rng(options.seed)
    pairs = [[draw_pair(own, heads, rng) for _ in range(options.draws)] for own in having.values()]
    n_removed = np.array([len(own[0][0]) for own in pairs])
    losses = _losses(run, pairs, options)
    differences = losses[..., 0] - losses[..., 1]
    is_tested = n_removed > 0  # else whole layers have the role
    sizes = size_of(losses[..., 0], losses[..., 1])
    values = differences[:, :, is_tested]
    tested = Hypotheses.of(crossed_sample(values), 0.0, size=sizes[is_tested])
    asked = TestOptions(alpha=options.alpha, correction=options.correction, clusters="none")
    p_values = find_p_values(tested, asked, "two-sided")
    intervals = find_intervals(tested, asked)
    found = {
        "removed_difference": tested.moments.mean,
        "ci_low": intervals.ci_low,
        "ci_high": intervals.ci_high,
        "p_removed": p_values.single,
        "p_removed_adjusted": p_values.adjusted,
    }
    columns = {name: np.full(len(pairs), np.nan) for name in found}
    for name, values in found.items():
        columns[name][is_tested] = values
    removed, drawn = np.moveaxis(losses.mean((0, 1)), -1, 0)
    return {
        "drawn_heads": n_removed,
        "removed_loss": removed,
        "drawn_loss": drawn,
        **columns,
    }


def _losses(
    run: TaskRun,
    pairs: Sequence[Sequence[tuple[list[Head], list[Head]]]],
    options: RoleImportanceOptions,
) -> FloatArray:
    """Losses (examples, draws, roles, 2) without the heads of each pair; no set is run twice."""
    sets = [tuple(removed) for own in pairs for pair in own for removed in pair]
    places = {removed: place for place, removed in enumerate(dict.fromkeys(sets))}
    gates = without_each(places, run.shape)
    losses = run.outcomes(gates).losses
    every = losses[:, [places[removed] for removed in sets]]
    by_role = every.reshape(len(losses), len(pairs), -1, 2)
    return np.asarray(by_role.swapaxes(1, 2), dtype=np.float64)


def draw_pair(
    own: Sequence[Head], heads: Sequence[Head], rng: np.random.Generator
) -> tuple[list[Head], list[Head]]:
    """As many heads of ``own`` as others, of the same layers: as many as there are of the fewer."""
    chosen: list[Head] = []
    drawn: list[Head] = []
    for layer in sorted({layer for layer, _ in own}):
        having = [head for head in own if head[0] == layer]
        others = [head for head in heads if head[0] == layer and head not in own]
        n = min(len(having), len(others))
        drawn += [others[place] for place in rng.permutation(len(others))[:n]]
        chosen += having if n == len(having) else _some(having, n, rng)
    return sorted(chosen), sorted(drawn)


def _some(heads: Sequence[Head], n: int, rng: np.random.Generator) -> list[Head]:
    return [heads[place] for place in rng.permutation(len(heads))[:n]]
