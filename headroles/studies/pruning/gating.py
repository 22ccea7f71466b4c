"""A model and a task -> a smaller model, with the heads whose learnt gates are open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from headroles.errors import UsageError
from headroles.models.loading.saved_models import PrunedModel, RecordedGates, model_folder
from headroles.options import takes
from headroles.results.shown import Grid, Shown, Summary, Warned
from headroles.storage import OpenParts, plain
from headroles.studies.importance.removals import keep_parts, present_heads
from headroles.studies.pruning.gate_learning import LearntGates, learn_gates
from headroles.studies.pruning.gate_options import TRAINED, GateOptions
from headroles.studies.pruning.pruning import Pruned, outcomes_of, write_without
from headroles.tasks.running import TaskRun, open_run

_STABLE = 0.5


@dataclass(frozen=True)
class Gated(Summary):
    """A model ``pruned`` by learnt gates, and the gates that each seed learnt (``runs``).

    ``chosen`` is the place in ``runs`` of the seed whose heads the model has.
    """

    pruned: Pruned
    runs: tuple[LearntGates, ...]
    chosen: int

    @property
    def overlap(self) -> float:
        """Share of the kept heads that two seeds have in common, mean over pairs; NaN for one."""
        pairs = list(combinations(self.runs, 2))
        shared = [len({*one.kept} & {*other.kept}) / len(one.kept) for one, other in pairs]
        return float(np.mean(shared)) if pairs else float("nan")

    @property
    def overlap_by_chance(self) -> float:
        """The overlap if every seed kept as many heads at random: the share that is kept."""
        return len(self.runs[0].kept) / len(self.runs[0].heads)

    @property
    def kept_by(self) -> dict[tuple[int, int], int]:
        """The number of seeds that keep each head, of heads that any keeps."""
        return dict(sorted(Counter(head for run in self.runs for head in run.kept).items()))

    def summarize(self) -> list[Shown]:
        """Describe the pruned model, and how far seeds agree on the heads to keep."""
        shown = self.pruned.summarize()
        if len(self.runs) == 1:
            return [
                *shown,
                Warned("One seed does not show how stable the choice is. Pass more `seeds`."),
            ]
        always = sum(n == len(self.runs) for n in self.kept_by.values())
        chance = self.overlap_by_chance
        shown.append(
            f"Two seeds share {self.overlap:.0%} of the heads that they keep, {chance:.0%} by "
            f"chance; all {len(self.runs)} keep {always} heads."
        )
        if (self.overlap - chance) / (1 - chance) < _STABLE:
            shown.append(Warned("This set of heads is sufficient; other sets work about as well."))
        return shown

    def details(self) -> list[Shown]:
        """Tabulate the loss and the heads of each seed."""
        best = self.runs[self.chosen]
        columns = ("seed", "loss on the task", "open by the rule", "kept as by the one chosen")
        rows = tuple(
            (
                f"{run.seed}{' (chosen)' if run is best else ''}",
                f"{run.loss:.4f}",
                str(run.n_open),
                str(len({*run.kept} & {*best.kept})),
            )
            for run in self.runs
        )
        return [Grid(columns, rows)]

    def next_steps(self, folder: Path) -> Iterator[str]:
        """Name the function that loads the model."""
        yield from self.pruned.next_steps(folder)

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        return {
            **self.pruned.to_json(),
            "seeds": [plain(_record(run)) for run in self.runs],
            "chosen_seed": self.runs[self.chosen].seed,
            "overlap": self.overlap,
            "overlap_by_chance": self.overlap_by_chance,
            "kept_by": [[*head, n] for head, n in self.kept_by.items()],
        }


@takes(GateOptions)
def gate_heads(
    model: str | Path,
    task: str | Path,
    out: str | Path,
    *,
    test: str | Path | None = None,
    overwrite: bool = False,
    options: GateOptions,
    folder: Path | None = None,
) -> Gated:
    """Learn which heads to keep, and write the model without the others.

    Every head gets a gate that is drawn from a hard concrete distribution (Louizos et al. 2018, as
    Voita et al. 2019 use it). All gates are open at first; the expected number of open gates falls
    with every update, and the loss of the task decides which gates close. At the end exactly
    ``keep`` heads stay: the heads with the largest log alpha.

    Args:
        model: a folder or hub id, with the head that was trained for the task.
        task: examples to learn gates with, as of `find_importance`.
        out: the folder to write; a model for every command and for `load_model`.
        test: examples to measure the model on before and after; others than ``task``.
        overwrite: whether ``out`` may hold files.
        options: keyword arguments, described below.
        folder: a claimed folder that is filled in the place of ``out``; commands pass it.

    Raises:
        UsageError: as many heads to keep as the model has, or layers that share a module.
        ModelError: a loss that is not finite; else as `find_importance`.
        CorpusError, StorageError: as `find_importance` and `prune_heads`.

    With ``model`` a classifier of 3 layers with 4 heads each, ``task`` a file of 8 examples:

    >>> from tempfile import TemporaryDirectory
    >>> from headroles import gate_heads
    >>> with TemporaryDirectory() as folder:
    ...     found = gate_heads(model, task, f"{folder}/small", keep=8, seeds=1, updates=5)
    >>> len(found.pruned.to_json()["removed"])
    4
    """
    claimed = model_folder(out, model, [PrunedModel], overwrite)
    with claimed if folder is None else nullcontext(folder) as folder:
        run = open_run(model, task, options)
        heads = present_heads(run)
        _check(run, len(heads), options)
        tested = None if test is None else run.over(test, options.of_test())
        parts = keep_parts("gates", options, run.encoder, run, tested)
        before = outcomes_of(tested)
        runs, chosen = _learn(run, options, parts)
        pruned = write_without(
            run.encoder,
            [head for head in heads if head not in runs[chosen].kept],
            folder,
            options,
            order="gates",
            before=before,
            tested=tested,
            seeds=[_record(one) for one in runs],
            chosen_seed=runs[chosen].seed,
        )
    return Gated(replace(pruned, folder=Path(out)), tuple(runs), chosen)


def _learn(
    run: TaskRun, options: GateOptions, parts: OpenParts | None
) -> tuple[list[LearntGates], int]:
    """Return the gates of each seed and the place of the best, whose weights the model gets."""
    heads, network = present_heads(run), run.encoder.model
    trained = options.weights == TRAINED
    whole = best = deepcopy(network.state_dict()) if trained else None
    runs: list[LearntGates] = []
    chosen = 0
    for number in range(options.seeds):
        if whole is not None:
            network.load_state_dict(whole)
        on_update = partial(_tell, options, options.updates * number)
        seed = options.seed + number
        runs.append(learn_gates(run, heads, options, seed, on_update, parts))
        if runs[number].loss <= runs[chosen].loss:
            chosen = number
            best = deepcopy(network.state_dict()) if trained else None
    if best is not None:
        network.load_state_dict(best)
    return runs, chosen


def _tell(options: GateOptions, before: int, done: int) -> None:
    if options.on_progress is not None:
        options.on_progress(before + done, options.updates * options.seeds)


def _check(run: TaskRun, n_heads: int, options: GateOptions) -> None:
    if options.n_kept >= n_heads:
        raise UsageError(
            f"{options.n_kept} heads are to be kept, and the model has {n_heads}; keep fewer"
        )
    if run.sites.layers_are_shared:
        raise UsageError(
            "layers of this model share one attention module, so that no head of a single layer "
            "can be removed; take another model, or prune it by another order (headroles prune)"
        )


def _record(run: LearntGates) -> RecordedGates:
    """Return the gates of one seed for files."""
    return RecordedGates(
        seed=run.seed,
        loss=run.loss,
        open_by_rule=run.n_open,
        kept=list(run.kept),
        log_alpha=[(*head, value) for head, value in zip(run.heads, run.log_alpha, strict=True)],
    )
