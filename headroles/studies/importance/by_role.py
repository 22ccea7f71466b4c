"""Roles and a task -> RoleImportance: whether heads with a role matter more than others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from headroles.arrays import FloatArray
from headroles.errors import UsageError
from headroles.formats import to_records
from headroles.inference.permutation import permute_within
from headroles.models.heads.remaining import Head
from headroles.models.loading.encoder import Model
from headroles.options import takes
from headroles.record import TaskRecord
from headroles.results.columns import Column, one_of
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.roles import in_words
from headroles.storage import plain
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.importance.estimators import values_of
from headroles.studies.importance.measures import LESS, MORE
from headroles.studies.importance.options import RoleImportanceOptions
from headroles.studies.importance.removals import (
    heads_by_role,
    passes_to_choose,
    present_heads,
    rises_of,
)
from headroles.studies.importance.resuming import keep_parts
from headroles.studies.importance.role_removals import compare_removed, expected_passes, n_sets_like
from headroles.tasks.running import open_run
from headroles.testing.answers import UNDECIDED
from headroles.testing.catalogue import RANK
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.recorded import RecordedCorrection
from headroles.wording import listed

_SHOWN = 8


class ComparedRoles(RecordedCorrection, frozen=True, kw_only=True):
    """Record of the comparison of roles."""

    estimator: str
    warnings: list[str]


class RoleImportanceRecord(TaskRecord, frozen=True, kw_only=True):
    """Record of the importance of roles: the model, the task, and the comparison."""

    compared: ComparedRoles


@dataclass(frozen=True, repr=False, eq=False)
class RoleImportance(Result):
    """Tests of whether heads with a role matter more to a task than others of their layers.

    ``frame`` has the columns of ``columns``, a row for each role that some heads have.
    ``importance_difference`` and ``loss_difference`` are means over the heads with the role, of
    their importance and of the rise of the loss without each, less the means of their layers; both
    are tested by permuting heads within layers. ``removed_loss`` is the loss without all heads with
    the role, ``drawn_loss`` the mean of the losses without random sets of as many heads of each
    layer, drawn from all heads of these layers, and ``removed_difference`` the one less the other.
    ``p_removed`` is from the rank of ``removed_loss`` among the losses of the ``draws``; 1 - alpha
    of these losses lie between ``drawn_low`` and ``drawn_high``. ``answer`` says whether heads with
    the role matter ``more`` or ``less`` than such sets, else ``undecided``. NaN where only whole
    layers have the role.
    ``shared_with`` is the role that most of these heads have too, and ``overlap`` the share of
    heads with either role that have both: either role may explain the result of the other.

    With ``found`` as `compare_roles_in_task` returns it:

    >>> found.frame["role"].tolist()
    ['local', 'punctuation']
    """

    record: RoleImportanceRecord

    kind: ClassVar[str] = "role importance"
    stem: ClassVar[str] = "role-importance"
    remedy: ClassVar[str] = "make it with: headroles by-role MODEL TASK --out DIR"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "role heads shared_with overlap importance_difference p_importance "
            "p_importance_adjusted loss_difference p_loss p_loss_adjusted draws removed_loss "
            "drawn_loss drawn_low drawn_high removed_difference p_removed p_removed_adjusted "
            "answer"
        ).split()
    )
    own: ClassVar[Mapping[str, Column]] = {"answer": one_of(MORE, LESS, UNDECIDED)}

    def summarize(self) -> Iterator[Shown]:
        """Say heads of which roles matter more or less than random heads of the same layers."""
        asked, frame, task = self.record.compared, self.frame, self.record.task
        yield (
            f"{self.record.model.name} on {task.examples} examples of "
            f"{Path(self.record.corpus.file).name}: loss without all heads with a role, "
            "against random sets\nof as many heads of each layer "
            f"({asked.correction} at {asked.alpha:g} over {len(frame)} roles)."
        )
        for answer in (MORE, LESS):
            named = [in_words(role) for role in frame["role"][frame["answer"] == answer]]
            yield f"Matter {answer} than random heads: {listed(named, 6) or 'no role shown'}."
        order = frame["removed_difference"].abs().sort_values(ascending=False).index
        rows = frame.loc[order[:_SHOWN]].assign(role=lambda own: own["role"].map(in_words))
        cells = {
            "Loss without all heads with": "{role}",
            "heads": "{heads}",
            "loss": "{removed_loss:.3f}",
            "of random": "{drawn_loss:.3f}",
            "difference": "{removed_difference:+.3f}",
            "p": "{p_removed_adjusted:.2g}",
        }
        yield Grid.of(rows, cells)
        if n_alike := (frame["overlap"] > 1 / 2).sum():
            yield Warned(
                f"More than half of the heads of {n_alike} roles have another role too: tests "
                "cannot tell which of the two matters. The column shared_with names the other role."
            )
        yield from map(Warned, asked.warnings)

    def details(self) -> Iterator[Shown]:
        """Tabulate the differences of all roles, by three measures, with their p-values."""
        asked = self.record.compared
        yield (
            f"Heads with a role less others of their layers (importance: {asked.estimator}; "
            "draws: random sets)"
        )
        shared = [
            f"{role} {overlap:.2f}" if role else ""
            for role, overlap in zip(self.frame["shared_with"], self.frame["overlap"], strict=True)
        ]
        cells = {
            "role": "{role}",
            "heads": "{heads}",
            "importance": "{importance_difference:+.4f}",
            "p": "{p_importance_adjusted:.2g}",
            "loss without each": "{loss_difference:+.4f}",
            "p ": "{p_loss_adjusted:.2g}",
            "draws": "{draws}",
            "loss less draws'": "{removed_difference:+.3f}",
            "p  ": "{p_removed_adjusted:.2g}",
            "shares heads with": "{shared_with}",
        }
        yield Grid.of(self.frame.assign(shared_with=shared), cells)

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        compared = {**self.record.options, **plain(self.record.compared)}
        return {"compared": compared, "roles": to_records(self.frame)}


@takes(RoleImportanceOptions)
def compare_roles_in_task(
    model: Model, task: str | Path, options: RoleImportanceOptions
) -> RoleImportance:
    """Test whether heads with a role matter more to a task than other heads of their layers.

    Three tests: by importance (derivatives), by the loss without each head, and by the loss
    without all heads of a role, ranked among losses without random sets of as many heads of each
    layer. H0 of all three: the heads of the role are any heads of their layers.

    Args:
        model: a folder or hub id, with the head that was trained for the task; or a loaded model.
        task: examples, as `ablate_heads` takes them.
        options: keyword arguments, described below; ``roles_from`` is required.

    Raises:
        UsageError: no roles, or those of a model of another size; else as `ablate_heads`.

    With ``model`` a classifier of 3 layers with 4 heads each, ``task`` a file of 8 examples,
    and ``folder`` the roles of its heads, as `classify_heads` saved them:

    >>> from headroles import compare_roles_in_task
    >>> found = compare_roles_in_task(model, task, roles_from=folder, draws=9, permutations=99)
    >>> found.frame[["role", "draws", "answer"]]
              role  draws     answer
    0        local      9  undecided
    1  punctuation      9  undecided
    """
    if options.roles_from is None:
        raise UsageError("name the folder of roles: `roles_from`")
    table = RoleTable.load(options.roles_from).where(role=options.roles)
    run = open_run(model, task, options)
    having, heads = heads_by_role(table, run), present_heads(run)
    if not having:
        raise UsageError(f"no head has a role in {options.roles_from}; there is nothing to compare")
    keep_parts("role importance", options, run.encoder, run)
    run.expect(
        sum(passes_to_choose(order, run) for order in ("importance", "ablation"))
        + expected_passes(run, heads, having, options)
    )
    importances = values_of(run.derivatives(), options.estimator).mean(0).reshape(run.shape)
    frame = pd.DataFrame(
        {
            "role": list(having),
            "heads": [len(own) for own in having.values()],
            **_overlaps(having),
            **_within(importances, heads, having, options, "importance"),
            **_within(rises_of(run), heads, having, options, "loss"),
            **compare_removed(run, heads, having, options),
        }
    )
    compared = ComparedRoles.from_options(
        options.record(), warnings=_warnings(having, heads, options)
    )
    record = RoleImportanceRecord.extending(run.record(options), compared=compared)
    return RoleImportance(frame[list(RoleImportance.columns)], record)


def _warnings(
    having: Mapping[str, Sequence[Head]], heads: Sequence[Head], options: RoleImportanceOptions
) -> list[str]:
    """Warn of roles that cannot be shown to matter by the loss without their heads."""
    found = []
    enough = ceil(2 / options.alpha) - 1
    enough_for_one = ceil(2 * len(having) / options.alpha) - 1
    if options.draws < enough:
        found.append(
            f"{options.draws} draws give no p-value below {2 / (1 + options.draws):.2g}: nothing "
            f"can be shown by the loss without a role; take {enough} `draws` or more"
        )
    elif options.draws < enough_for_one:
        found.append(
            f"{options.draws} draws cannot show one role alone among {len(having)} after "
            f"correction; take {enough_for_one} `draws`, or fewer `roles`"
        )
    if few := [role for role, own in having.items() if n_sets_like(own, heads) < enough]:
        found.append(
            f"too few sets of as many heads are possible for {listed(few, 3)}: the loss without "
            f"these roles cannot have a p-value of {options.alpha:g}"
        )
    return found


def _overlaps(having: Mapping[str, Sequence[Head]]) -> dict[str, list[Any]]:
    """Return for each role the other one that shares the largest part of the heads of both."""
    names, overlaps = [], []
    for role, own in having.items():
        shares = {
            other: len({*own} & {*others}) / len({*own} | {*others})
            for other, others in having.items()
            if other != role
        }
        best = max(shares, key=lambda other: shares[other], default="")
        overlaps.append(shares.get(best, 0.0))
        names.append(best if overlaps[-1] else "")
    return {"shared_with": names, "overlap": overlaps}


def _within(
    values: FloatArray,
    heads: Sequence[Head],
    having: Mapping[str, Sequence[Head]],
    options: RoleImportanceOptions,
    name: str,
) -> dict[str, FloatArray]:
    """Compare the values of heads with a role with those of their layers; test the differences."""
    numbers, layers = [values[head] for head in heads], [layer for layer, _ in heads]
    found = [
        permute_within(
            numbers, [head in own for head in heads], layers, options.permutations, options.seed
        )
        for own in having.values()
    ]
    differences = np.array([observed for observed, _ in found])
    drawn = np.abs(np.stack([own for _, own in found], axis=1))
    some = ~np.isnan(differences)
    ranks = Hypotheses.of_draws(
        np.abs(differences[some]), drawn[:, some], size=np.abs(numbers).max()
    )
    tested = find_p_values(ranks, options, "greater", RANK)
    single, adjusted = np.full((2, len(found)), np.nan)
    single[some], adjusted[some] = tested.single, tested.adjusted
    return {
        f"{name}_difference": differences,
        f"p_{name}": single,
        f"p_{name}_adjusted": adjusted,
    }
