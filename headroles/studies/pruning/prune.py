"""How small can the model be? A model -> a smaller one, which every command takes, and Pruning."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import torch
from msgspec import Meta, structs
from torch import Tensor

from headroles.arrays import FloatArray
from headroles.errors import UsageError
from headroles.models.heads.gates import HeadSites, gated
from headroles.models.heads.remaining import Head
from headroles.models.heads.surgery import heads_of, layer_groups, remove_heads, zero_heads
from headroles.models.heads.tuning import (
    TuningRecipe,
    n_updates_of,
    train_weights,
    weights_of_heads,
)
from headroles.models.loading.encoder import LoadedEncoder, load_encoder
from headroles.models.loading.saved_models import PrunedModel, model_folder
from headroles.options import Convert, Flag, Options, fields_of, takes
from headroles.passes.loop import gradients_of_mean
from headroles.passes.options import Progress
from headroles.passes.timing import Speed, time_in_turns
from headroles.record import ModelRecord
from headroles.results.columns import FLAG, Column
from headroles.results.formats import to_records
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown
from headroles.results.stored import write_together
from headroles.storage import plain
from headroles.studies.importance.importance import ABSOLUTE, values_of
from headroles.studies.importance.removals import (
    LESS,
    MORE,
    SharedLayers,
    describe_loss_change,
    find_loss_change,
    keep_parts,
    present_heads,
    without,
)
from headroles.studies.pruning.orders import (
    SelectionOptions,
    TestSetOptions,
    check_role,
    choose_heads,
    refuse_idle,
)
from headroles.tasks.batches import TaskBatch
from headroles.tasks.options import TaskOptions
from headroles.tasks.outcomes import Outcomes
from headroles.tasks.running import TaskRun, open_run
from headroles.testing.answers import answers
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions

_TIMED = 128
"""Tokens of the sequences that are timed, or as many as the model takes."""


@dataclass(frozen=True, kw_only=True)
class UpdateOptions(Options):
    """Options of updates in training."""

    title: ClassVar[str] = "Fine-tuning"

    update_examples: Annotated[int, Meta(ge=1)] = 32
    """Examples behind each update of gates or weights.

    They run in batches of batch_tokens.
    """


@dataclass(frozen=True, kw_only=True)
class TuningOptions(UpdateOptions):
    """Options of fine-tuning a model with heads masked."""

    fine_tune_on: Annotated[str | None, Convert(str)] = None
    """Examples to fine-tune on, with the heads masked, before the model is written.

    If left out, no weights change.
    """
    fine_tune_examples: Annotated[int | None, Meta(ge=2)] = None
    """Most examples to fine-tune on, chosen at random; left out: all."""
    epochs: Annotated[float, Meta(gt=0)] = 3.0
    """How often fine-tuning goes through its examples."""
    learning_rate: Annotated[float, Meta(gt=0, lt=1000)] = 2e-5
    """Highest learning rate of fine-tuning."""
    compensation: bool = False
    """Fine-tune the whole model too, to see which heads make up for removed ones."""

    def check(self) -> None:
        """Reject options of fine-tuning given without examples."""
        super().check()
        for one in fields_of(TuningOptions):
            if self.fine_tune_on is None and getattr(self, one.name) != one.default:
                raise UsageError(
                    f"`{one.name}` is about fine-tuning; name examples with `fine_tune_on`"
                )


@dataclass(frozen=True, kw_only=True)
class PruneOptions(SelectionOptions, TuningOptions, TestSetOptions):
    """Options of pruning."""

    order: Literal[
        "importance",
        "reestimated",
        "ablation",
        "with_role",
        "without_role",
        "bottom",
        "top",
        "middle",
        "both_ends",
        "alternate",
        "random",
        "random_per_layer",
    ] = "importance"
    """Order in which heads are removed.

    importance, reestimated and ablation need a task; with_role and without_role need roles; the
    others need nothing.
    """
    keep: Annotated[int | None, Meta(ge=0)] = None
    """Number of heads to keep."""
    share: Annotated[float | None, Meta(gt=0, lt=1)] = None
    """Share of the heads to remove, instead of keep."""
    written_as: Annotated[Literal["pruned", "zeroed"], Flag("--as")] = "pruned"
    """pruned: without the heads; zeroed: full size with zeros, for any program."""

    def check(self) -> None:
        """Reject a missing or double number of heads, and orders by role without a role."""
        super().check()
        if (self.keep is None) == (self.share is None):
            raise UsageError(
                "give the number of heads to keep, or the share to remove: `keep` or `share`"
            )
        check_role(self.order, self)
        refuse_idle([self.order], self)


@dataclass(frozen=True, repr=False, eq=False)
class Pruning(Result):
    """The heads of a model that were removed, and what it does without them.

    ``frame`` has a row for each head that the model had, and whether it was ``removed``. ``facts``
    are the ``order`` of removal, the number of ``parameters``, and the ``speed`` of passes before
    and after (None where heads are set to zero); with a test, its mean loss and metrics ``before``
    and ``after``, the ``loss_change`` with its interval, and the examples (``measured_on``).

    With fine-tuning, ``facts["fine_tuning"]`` has its examples and updates, and loss and metrics
    without the heads before fine-tuning (``masked``) and with all heads after the same fine-tuning
    (``whole``). The view ``compensation`` then compares each remaining head with the whole model
    fine-tuned in the same way. ``weight_change`` is the Euclidean length of the difference of its
    weights, divided by the length of its weights in the whole model. ``importance``
    (`find_importance`, absolute) is in the whole model, ``importance_change`` the difference of the
    smaller model; ``excess_change`` is this difference less its mean over all remaining heads, with
    its interval. It is 0 for all heads if they compensate evenly: ``answer`` says which heads
    compensate more or less, by t-tests over examples corrected over heads (Benjamini and Hochberg).
    """

    record: ModelRecord

    kind: ClassVar[str] = "pruning"
    remedy: ClassVar[str] = PrunedModel.remedy
    question: ClassVar[str] = "How small can the model be?"
    options_type: ClassVar[type[Options]] = PruneOptions
    columns: ClassVar[tuple[str, ...]] = ("layer", "head", "removed")
    own: ClassVar[Mapping[str, Column]] = {"removed": Column(FLAG)}
    views: ClassVar[tuple[str, ...]] = ("long", "compensation")

    @property
    def removed(self) -> list[Head]:
        """The removed heads, by layer and number."""
        return [(layer, head) for layer, head in self.facts["removed"]]

    @property
    def kept(self) -> list[Head]:
        """The remaining heads, by layer and number."""
        heads = self.frame[["layer", "head"]].drop_duplicates()
        return sorted(set(heads.itertuples(index=False, name=None)) - set(self.removed))

    @property
    def compensation(self) -> pd.DataFrame:
        """The remaining heads beside those of the whole model; empty if that was not tuned."""
        return pd.DataFrame((self.facts["fine_tuning"] or {}).get("compensation"))

    def summarize(self) -> Iterator[Shown]:
        """Give loss, metrics, weights and speed before and after, and the heads of each layer."""
        facts, tuning = self.facts, self.facts["fine_tuning"]
        before, after = facts["parameters"]["before"], facts["parameters"]["after"]
        layers = sorted({layer for layer, _ in (*self.removed, *self.kept)})
        counts = [str(sum(at == layer for at, _ in self.kept)) for layer in layers]
        yield (
            f"{len(self.removed)} of {len(self.removed) + len(self.kept)} heads removed (order: "
            f"{facts['order']})."
        )
        yield from self._about_task()
        yield f"Weights: {before:,} -> {after:,} ({after / before:.0%})."
        if facts["speed"]:
            yield str(Speed(**facts["speed"]))
        else:
            yield (
                "The removed heads are set to zero: any program that reads the original reads this "
                "model, at the size and speed of the original."
            )
        yield Grid(("Layer", *map(str, layers)), (("heads kept", *counts),))
        if tuning:
            yield (
                f"Fine-tuned on {tuning['examples']} examples with the heads masked, "
                f"{tuning['updates']} updates of {tuning['update_examples']}."
            )
        if len(self.compensation):
            yield from self._about_compensation(self.compensation)

    def _about_task(self) -> Iterator[Shown]:
        facts, tuning, change = self.facts, self.facts["fine_tuning"], self.facts["loss_change"]
        if not facts["before"]:
            yield "The loss was not measured: name examples with `test`."
            return
        steps = {"before": facts["before"], "after": facts["after"]}
        if tuning:
            steps = {
                "before": facts["before"],
                "before, fine-tuned": tuning["whole"],
                "after, not fine-tuned": tuning["masked"],
                "after": facts["after"],
            }
        yield Grid(
            (f"On {facts['measured_on']}", *facts["before"]),
            tuple(
                (name, *(f"{value:.4f}" for value in measured.values()))
                for name, measured in steps.items()
                if measured
            ),
        )
        if change["ci_low"] is not None:
            subject = "Only the loss was tested: it" if len(facts["before"]) > 1 else "The loss"
            yield f"{subject} changes by {describe_loss_change(change)}."

    def _about_compensation(self, rows: pd.DataFrame) -> Iterator[Shown]:
        weights, change = rows["weight_change"], rows["importance_change"].mean()
        n_more, n_less = (int((rows["answer"] == answer).sum()) for answer in (MORE, LESS))
        yield (
            f"Compared with the whole model fine-tuned alike, weights of heads differ by "
            f"{weights.mean():.1%} ({weights.min():.1%} to {weights.max():.1%}), and importance by "
            f"{change:+.4f} on average: by more than that in {n_more} of {len(rows)} heads, by "
            f"less in {n_less} (false discovery rate 0.05)."
        )

    def next_steps(self, folder: Path) -> Iterator[str]:
        """Name the page, and the function that loads what transformers alone cannot load."""
        yield f"See:     headroles report {folder}"
        if self.facts["speed"]:
            yield f'Load it with headroles.load_model("{folder}"): transformers alone cannot.'
            yield "For a folder that transformers reads, of the full size: `written_as='zeroed'`"


P = TypeVar("P", bound=Pruning)


@takes(PruneOptions)
def prune_heads(
    model: str | Path,
    out: str | Path,
    *,
    task: str | Path | None = None,
    test: str | Path | None = None,
    overwrite: bool = False,
    options: PruneOptions,
    folder: Path | None = None,
) -> Pruning:
    """Write a model without some of its heads into a folder, and measure both models.

    Every command and `load_model` read the folder; heads keep their numbers. With
    ``written_as="zeroed"`` the model keeps its full size, and any program reads it. With
    ``fine_tune_on`` the model is fine-tuned with the heads masked before they are removed.

    Args:
        model: a folder or hub id; a pruned model may lose more heads.
        out: the folder to write.
        task: examples to find orders of importance with.
        test: examples to measure the model on, before and after. Take others than in ``task``:
            a choice of heads looks better on the examples that it was made with.
        overwrite: whether ``out`` may hold files.
        options: keyword arguments, described below.
        folder: a claimed folder that is filled in the place of ``out``; commands pass it.

    Raises:
        UsageError: an order without the task or role that it needs, or too many heads to remove.
        ModelError, CorpusError, StorageError: as `find_importance` and `load_model`.

    With ``model`` a classifier of 3 layers with 4 heads each:

    >>> from tempfile import TemporaryDirectory
    >>> from headroles import load_model, prune_heads
    >>> with TemporaryDirectory() as folder:
    ...     pruning = prune_heads(model, f"{folder}/small", order="random", share=0.25)
    ...     smaller = load_model(f"{folder}/small")
    >>> len(pruning.removed)
    3
    """
    claimed = model_folder(out, model, [PrunedModel, Pruning], overwrite)
    with claimed if folder is None else nullcontext(folder) as folder:
        run = None if task is None else open_run(model, task, options)
        tested = _over(model, test, options.of_test(), run)
        tuned = _tuned(model, options, tested or run)
        opened = tested or run or tuned
        encoder = opened.encoder if opened else load_encoder(model, options, head=None)
        keep_parts("pruning", options, encoder, run, tested)
        removed = _choose(encoder, options, run)
        before = outcomes_of(tested)
        tuning = None if tuned is None else fine_tune(tuned, tested, removed, options)
        return write_without(
            Pruning,
            encoder,
            removed,
            folder,
            options,
            before=before,
            tested=tested,
            zeroed=options.written_as == "zeroed",
            order=options.order,
            fine_tuning=tuning,
        )


def _choose(encoder: LoadedEncoder, options: PruneOptions, run: TaskRun | None) -> list[Head]:
    """Return the heads to remove; the same heads from layers that share a module."""
    shared, heads = SharedLayers(layer_groups(encoder.model)), heads_of(encoder.model)
    units, n_removed = shared.units(heads), _n_removed(len(heads), options)
    if options.share is None:
        n_units = shared.n_units(n_removed, len(heads))
    else:
        n_units = _n_removed(len(units), options)
    protect = dict.fromkeys(map(shared.unit_of, options.protect or ()))
    asked = replace(options, protect=list(protect) or None)
    return shared.spread(choose_heads(options.order, n_units, units, asked, run, shared))


def write_without(
    kind: type[P],
    encoder: LoadedEncoder,
    removed: Sequence[Head],
    folder: Path,
    options: TaskOptions,
    *,
    before: Outcomes | None = None,
    tested: TaskRun | None = None,
    zeroed: bool = False,
    frame: pd.DataFrame | None = None,
    **facts: Any,
) -> P:
    """Write a model without heads into a folder, with the result, which has these ``facts``.

    ``before`` are the outcomes of the whole model on ``tested``. The table of the result is by
    default about the heads that the model had.
    """
    network, heads = encoder.model, heads_of(encoder.model)
    if frame is None:
        rows = [(layer, head, (layer, head) in removed) for layer, head in heads]
        frame = pd.DataFrame(rows, columns=list(Pruning.columns))
    n_before = sum(parameter.numel() for parameter in network.parameters())
    speed = None if zeroed else _remove(encoder, removed)
    sites = HeadSites.from_model(network)
    if zeroed:
        zero_heads(network, removed)
    after = outcomes_of(tested)
    n_after = sum(parameter.numel() for parameter in network.parameters())
    measured = {
        "removed": sorted(removed),
        "parameters": {"before": n_before, "after": n_after},
        "measured_on": "" if tested is None else tested.named,
        "before": tested.measure(before) if tested and before else {},
        "after": tested.measure(after) if tested and after else {},
        "loss_change": find_loss_change(before, after) if before and after else None,
        "speed": asdict(speed) if speed else None,
    }
    record = ModelRecord.now(
        kind=kind.kind,
        model=structs.replace(encoder.description, **sites.description),
        layers=sites.n_layers,
        heads=sites.n_heads,
        options=options.record(),
        facts=plain({"fine_tuning": None, **facts, **measured}),
    )
    result = kind(frame, record)
    write_together(folder, [PrunedModel(network, encoder.tokenizer, record), result])
    return result


def _remove(encoder: LoadedEncoder, removed: Sequence[Head]) -> Speed:
    """Remove heads from a model; return the speed of passes before and after."""
    whole = copy.deepcopy(encoder.model)
    remove_heads(encoder.model, removed)
    return time_in_turns(whole, encoder.model, min(_TIMED, encoder.max_tokens))


def _over(
    model: str | Path, file: str | Path | None, options: TaskOptions, run: TaskRun | None
) -> TaskRun | None:
    """Return a run over a file, with the loaded model of ``run`` if given; None without a file."""
    if file is None:
        return None
    return open_run(model, file, options) if run is None else run.over(file, options)


def _tuned(model: str | Path, options: PruneOptions, run: TaskRun | None) -> TaskRun | None:
    """Return a run over the examples to fine-tune on; None without fine-tuning."""
    if options.fine_tune_on is None:
        return None
    asked = replace(options, examples=options.fine_tune_examples)
    return _over(model, options.fine_tune_on, asked, run)


def outcomes_of(run: TaskRun | None) -> Outcomes | None:
    """Return the outcomes of a model with all gates open; None without a run."""
    return None if run is None else run.outcomes(torch.ones(1, *run.shape))


def _n_removed(n_heads: int, options: PruneOptions) -> int:
    if options.share is not None:
        return round(options.share * n_heads)
    keep = int(options.keep or 0)
    if keep > n_heads:
        raise UsageError(f"{keep} heads are to be kept, but the model has {n_heads}")
    return n_heads - keep


def fine_tune(
    run: TaskRun, tested: TaskRun | None, removed: Sequence[Head], options: PruneOptions
) -> dict[str, Any]:
    """Fine-tune the model of ``run`` with the heads of ``removed`` masked; return facts about it.

    The masked heads stay in the model; removing them does not change its outputs. With
    ``compensation`` the whole model is fine-tuned first, in the same way, from the same weights and
    seed; importances are compared on ``tested``, by default on the examples of fine-tuning.

    Raises UsageError for compensation without a remaining head, and ModelError for weights that are
    not finite.
    """
    if options.compensation and not set(present_heads(run)) - set(removed):
        raise UsageError(
            "all heads are removed, and none could compensate; leave `compensation` out"
        )
    network = run.encoder.model
    gates, all_open = without(removed, run.shape), torch.ones(run.shape)
    recipe = TuningRecipe(options.epochs, options.learning_rate, options.seed)
    groups = run.groups(options.update_examples)
    n_updates = n_updates_of(recipe, len(groups))
    updates = count(1)
    progress = Progress(options.on_progress, n_updates * (1 + options.compensation))
    train = partial(_train, run, groups, recipe, lambda: progress(next(updates)))
    masked = measure_under(tested, gates)
    facts: dict[str, Any] = {
        "examples": len(run.task),
        "updates": n_updates,
        "update_examples": options.update_examples,
        "masked": masked,
        "whole": {},
    }
    if options.compensation:
        start, judged = copy.deepcopy(network.state_dict()), tested or run
        train(all_open)
        facts["whole"], unmasked = measure_under(tested, all_open), state_of(judged, all_open)
        network.load_state_dict(start)
        train(gates)
        rows = find_compensation(unmasked, state_of(judged, gates), removed)
        facts["compensation"] = to_records(rows)
    else:
        train(gates)
    return facts


def measure_under(run: TaskRun | None, gates: Tensor) -> dict[str, float]:
    """Return the mean loss and the metrics under gates (layers, heads); empty without a run."""
    return {} if run is None else run.measure(run.outcomes(gates[None]))


def _train(
    run: TaskRun,
    groups: Sequence[Sequence[TaskBatch]],
    recipe: TuningRecipe,
    on_update: Callable[[], None],
    gates: Tensor,
) -> None:
    def gradients_of(
        number: int, weights: Sequence[Tensor]
    ) -> tuple[Tensor, Sequence[Tensor | None]]:
        found = gradients_of_mean(
            run.passes, groups[number], lambda batch: run.losses_of(batch)[0], weights
        )
        on_update()
        return found

    with gated(run.sites, gates):
        train_weights(run.encoder.model, len(groups), gradients_of, recipe)


class HeadState(NamedTuple):
    """Weights of each head of a fine-tuned model, as a vector, and importances of heads.

    ``importances`` (examples, layers, heads) are absolute derivatives of the loss by gates.
    """

    weights: Mapping[Head, Tensor]
    importances: FloatArray


def state_of(run: TaskRun, gates: Tensor) -> HeadState:
    """Return weights and importances of a model, the importances at ``gates`` (layers, heads)."""
    values = values_of(run.derivatives(gates=gates), ABSOLUTE)
    return HeadState(weights_of_heads(run.sites), values.reshape(-1, *run.shape))


def find_compensation(
    whole: HeadState, moptions: HeadState, removed: Sequence[Head]
) -> pd.DataFrame:
    """Compare the remaining heads, fine-tuned without ``removed``, with the whole model."""
    heads = [head for head in whole.weights if head not in removed]
    layers, numbers = (list(axis) for axis in zip(*heads, strict=True))
    before, after = (state.importances[:, layers, numbers] for state in (whole, moptions))
    changes = after - before
    return pd.DataFrame(
        {
            "layer": layers,
            "head": numbers,
            "weight_change": [
                float(
                    (moptions.weights[head] - whole.weights[head]).norm()
                    / whole.weights[head].norm()
                )
                for head in heads
            ],
            "importance": before.mean(0),
            "importance_change": changes.mean(0),
            **_test(changes - changes.mean(1, keepdims=True), np.sqrt((before**2).mean())),
        }
    )


def _test(excess: FloatArray, size: float) -> dict[str, Any]:
    """Test whether means of (examples, heads) differ from 0; ``size`` is the size of the terms."""
    hypotheses = Hypotheses.of(excess, 0.0, size=size)
    options = TestOptions(clusters="none")
    p_values = find_p_values(hypotheses, options, "two-sided")
    intervals = hypotheses.intervals(options.alpha)
    return {
        "excess_change": hypotheses.moments.mean,
        "ci_low": intervals.ci_low,
        "ci_high": intervals.ci_high,
        "p_value": p_values.single,
        "p_adjusted": p_values.adjusted,
        "answer": answers(p_values.shows(options.alpha), p_values.direction, (MORE, LESS)),
    }
