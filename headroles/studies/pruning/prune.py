"""How small can the model be? A model -> a smaller one, which every command takes, and Pruning."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NotRequired,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
)

import numpy as np
import pandas as pd
import torch
from msgspec import Meta, structs
from torch import Tensor

from headroles.arrays import FloatArray
from headroles.errors import ModelError, UsageError
from headroles.models.heads.gates import HeadSites, gated, weights_of_heads
from headroles.models.heads.remaining import Head
from headroles.models.heads.surgery import remove_rows, zero_heads
from headroles.models.loading.encoder import LoadedModel, load_encoder
from headroles.models.loading.saved_models import PrunedModel, model_folder
from headroles.models.loading.targets import about_saved
from headroles.models.options import ATTENTIONS, TargetOptions
from headroles.options import Convert, Flag, Options, fields_of, path_text, split_names, takes
from headroles.passes.loop import gradients_of_mean
from headroles.passes.options import Progress
from headroles.record import Record
from headroles.results.columns import FLAG, Axes, Column
from headroles.results.result import OptionsOf, Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.results.stored import Claimed, write_together
from headroles.studies.importance.importance import ABSOLUTE, values_of
from headroles.studies.inspection.origin import read_head
from headroles.studies.pruning.orders import (
    Order,
    SelectionOptions,
    choose_heads,
    units_of,
    warn_of_one_file,
)
from headroles.studies.removals import (
    LESS,
    MORE,
    LossChange,
    describe_change,
    find_loss_change,
    n_parameters,
    two_sided,
    warn_of_guessing,
    without,
)
from headroles.studies.translations import (
    TranslationFacts,
    as_frame,
    compare_translations,
    describe_translations,
    translations_without,
)
from headroles.tasks.options import GenerateOptions
from headroles.tasks.outcomes import Measures, Outcomes
from headroles.tasks.running import TaskRun, keep_parts, open_run
from headroles.tasks.translating import Translations, check_generation
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_WARM_UP, _LONGEST_GRADIENT = 0.1, 1.0


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

    fine_tune_on: Annotated[str | None, Convert(path_text)] = None
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
        for field in fields_of(TuningOptions):
            if self.fine_tune_on is None and getattr(self, field.name) != field.default:
                raise UsageError(
                    f"`{field.name}` is about fine-tuning; name examples with `fine_tune_on`"
                )


@dataclass(frozen=True, kw_only=True)
class PruneOptions(SelectionOptions, TuningOptions, GenerateOptions):
    """Options of pruning."""

    order: Order = "importance"
    """Order in which heads are removed.

    importance, reestimated and ablation need a task; with_role and without_role need roles; the
    others need nothing.
    """
    keep: Annotated[int | None, Meta(ge=0)] = None
    """Number of heads to keep."""
    share: Annotated[float | None, Meta(gt=0, lt=1)] = None
    """Share of the heads to remove, instead of keep."""
    heads: Annotated[Sequence[str] | None, Convert(split_names)] = None
    """Heads to remove, as in 1-5,2-5, instead of keep; with several kinds of attention as in
    'cross 1-5'."""
    written_as: Annotated[Literal["pruned", "zeroed"], Flag("--as")] = "pruned"
    """pruned: without the heads; zeroed: full size with zeros, for any program."""

    def check(self) -> None:
        """Reject a missing or double number of heads, and orders by role without a role."""
        super().check()
        if sum(amount is not None for amount in (self.keep, self.share, self.heads)) != 1:
            raise UsageError(
                "give the number of heads to keep, the share to remove, or the heads: `keep`, "
                "`share` or `heads`"
            )
        self.check_orders([(self.order, self.role)])


class FineTuning(TypedDict):
    """Fine-tuning with heads masked: its examples and updates, and the measures beside it.

    ``masked`` are loss and metrics without the heads before, ``whole`` those of the whole model
    after the same fine-tuning. ``compensation`` are the rows of the view of this name.
    """

    examples: int
    updates: int
    update_examples: int
    masked: Measures
    whole: Measures
    compensation: NotRequired[list[dict[str, Any]]]


class Parameters(TypedDict):
    """Numbers of parameters of a model before and after the removal of heads."""

    before: int
    after: int


# A call since `GatingFacts` inherits it, as in `headroles.studies.heads`.
PruningFacts = TypedDict(  # noqa: UP013
    "PruningFacts",
    {
        "order": str,
        "removed": list[Head],
        "parameters": Parameters,
        "measured_on": str,
        "before": Measures,
        "after": Measures,
        "loss_change": LossChange | None,
        "fine_tuning": FineTuning | None,
        "translations": NotRequired[TranslationFacts],
    },
)
"""Facts of a model without heads, as `Pruning` describes them."""


F = TypeVar("F", bound=PruningFacts)


@dataclass(frozen=True, repr=False, eq=False)
class WithoutHeads(Result[OptionsOf, F]):
    """Heads of a model, and what it does without those that were removed."""

    def axes(self) -> Axes:
        """Return the heads that the model had, at least the removed ones."""
        names = self.record.model.rows
        return {names.with_column(("layer", "head")): [*map(names.cells, self.removed)]}

    @property
    def removed(self) -> list[Head]:
        """The removed heads, by layer and number.

        Layers of several kinds of attention are counted through, one kind after another.
        """
        return [*self.facts["removed"]]

    @property
    def kept(self) -> list[Head]:
        """The remaining heads, by layer and number."""
        layers = self.record.model.rows.rows_of(self.frame).tolist()
        heads = zip(layers, self.frame["head"].tolist(), strict=True)
        return sorted(set(heads) - set(self.removed))

    @property
    def is_zeroed(self) -> bool:
        """Whether the model has zeros in the place of the heads."""
        return False

    @property
    def translations(self) -> pd.DataFrame:
        """BLEU and chrF before and after, with tests of the changes; empty if none were written."""
        return as_frame(self._translated)

    @property
    def _translated(self) -> TranslationFacts | None:
        facts: PruningFacts = self.facts
        return facts.get("translations")

    def summarize(self) -> Iterator[Shown]:
        """Give loss, metrics and weights before and after, and the heads of each layer."""
        facts, tuning = self.facts, self.facts["fine_tuning"]
        before, after = facts["parameters"]["before"], facts["parameters"]["after"]
        yield from warn_of_guessing(facts["before"])
        yield (
            f"{len(self.removed)} of {len(self.removed) + len(self.kept)} heads removed (order: "
            f"{facts['order']})."
        )
        yield from self._kept_by_kind()
        if (change := facts["loss_change"]) is not None:
            steps = {"before": facts["before"]}
            if tuning is not None:
                steps["before, fine-tuned"] = tuning["whole"]
                steps["after, not fine-tuned"] = tuning["masked"]
            steps["after"] = facts["after"]
            yield from describe_change(f"On {facts['measured_on']}", steps, change)
        else:
            yield "The loss was not measured: name examples with `test`."
        yield from describe_translations(self._translated)
        yield f"Weights: {before:,} -> {after:,} ({after / before:.0%})."
        if self.is_zeroed:
            yield (
                "The removed heads are set to zero: any program that reads the original reads this "
                "model, at the size and speed of the original."
            )
        yield self._kept_by_layer()
        yield from map(Warned, self.record.warnings)

    def _kept_by_kind(self) -> Iterator[str]:
        """Say how many heads of each kind of attention stay, if there are several."""
        names = self.record.model.rows
        if len(names.layers) > 1:
            kept, every = map(names.numbers_of, (self.kept, (*self.kept, *self.removed)))
            shares = (
                f"{n} of {every[kind]} {kind} ({n / every[kind]:.0%})" for kind, n in kept.items()
            )
            yield f"Heads that stay: {', '.join(shares)}."

    def _kept_by_layer(self) -> Grid:
        """Count the heads that each layer keeps, in a row for each kind of attention."""
        rows = sorted({layer for layer, _ in (*self.removed, *self.kept)})
        counts = {row: sum(at == row for at, _ in self.kept) for row in rows}
        by_kind: dict[str, dict[int, str]] = {}
        for row in rows:
            kind, layer = self.record.model.rows.place(row)
            by_kind.setdefault(kind, {})[layer] = str(counts[row])
        layers = sorted({layer for of_kind in by_kind.values() for layer in of_kind})
        cells = tuple(
            (f"heads kept {kind}".rstrip(), *(of_kind.get(layer, "") for layer in layers))
            for kind, of_kind in by_kind.items()
        )
        return Grid(("Layer", *map(str, layers)), cells)

    def next_steps(self, folder: str) -> Iterator[str]:
        """Name the page, and the function that loads what transformers alone cannot load."""
        yield from super().next_steps(folder)
        if not self.is_zeroed:
            (path,) = shlex.split(folder)
            yield f"Load it with headroles.load_model({path!r}): transformers alone cannot."


@dataclass(frozen=True, repr=False, eq=False)
class Pruning(WithoutHeads[PruneOptions, PruningFacts]):
    """The heads of a model that were removed, and what it does without them.

    ``frame`` has a row for each head that the model had, and whether it was ``removed``. ``facts``
    are the ``order`` of removal, and the number of ``parameters``; with a test, its mean loss and
    metrics ``before`` and ``after``, the ``loss_change`` with its interval, and the examples
    (``measured_on``).

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

    kind: ClassVar[str] = "pruning"
    question: ClassVar[str] = "How small can the model be?"
    columns: ClassVar[tuple[str, ...]] = ("layer", "head", "removed")
    schema: ClassVar[Mapping[str, Column]] = {"removed": Column(FLAG)}
    views: ClassVar[tuple[str, ...]] = ("long", "compensation", "translations")

    @property
    def is_zeroed(self) -> bool:
        """Whether the model has zeros in the place of the heads."""
        return self.options.written_as == "zeroed"

    @property
    def compensation(self) -> pd.DataFrame:
        """The remaining heads beside those of the whole model; empty if that was not tuned."""
        tuning = self.facts["fine_tuning"]
        return pd.DataFrame(tuning.get("compensation") if tuning else None)

    def summarize(self) -> Iterator[Shown]:
        """Give what models without heads give, and what fine-tuning did."""
        yield from super().summarize()
        if tuning := self.facts["fine_tuning"]:
            yield (
                f"Fine-tuned on {tuning['examples']} examples with the heads masked, "
                f"{tuning['updates']} updates of {tuning['update_examples']}."
            )
        if len(rows := self.compensation):
            weights, change = rows["weight_change"], rows["importance_change"].mean()
            n_more, n_less = (int((rows["answer"] == answer).sum()) for answer in (MORE, LESS))
            yield (
                "Compared with the whole model fine-tuned alike, weights of heads differ by "
                f"{weights.mean():.1%} ({weights.min():.1%} to {weights.max():.1%}), and "
                f"importance by {change:+z.4f} on average: by more than that in {n_more} of "
                f"{len(rows)} heads, by less in {n_less} (false discovery rate 0.05)."
            )

    def next_steps(self, folder: str) -> Iterator[str]:
        """Name the option that writes a folder for other programs, too."""
        yield from super().next_steps(folder)
        if not self.is_zeroed:
            yield "For a folder of the full size that it reads: `written_as='zeroed'`"


P = TypeVar("P", bound=WithoutHeads[Any, Any])


@takes(PruneOptions)
def prune_heads(
    model: str | Path,
    out: str | Path | Claimed,
    *,
    task: str | Path | None = None,
    test: str | Path | None = None,
    overwrite: bool = False,
    options: PruneOptions,
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
    with model_folder(out, model, [PrunedModel, Pruning], overwrite) as folder:
        opened: TaskRun | None = None  # whose model the others share
        runs: list[TaskRun | None] = []
        for file, examples in (
            (task, options.examples),
            (test, None),
            (options.fine_tune_on, options.fine_tune_examples),
        ):
            reading = replace(options, examples=examples)
            if file is not None:
                opened = opened.over(file, reading) if opened else open_run(model, file, reading)
            runs.append(None if file is None else opened)
        run, tested, tuned = runs
        targets = TargetOptions(target_tokenizer=options.target_tokenizer)
        encoder = opened.encoder if opened else load_encoder(model, options, None, targets)
        if opened is None and (kinds := options.kinds or _kinds_in(options.heads or ())):
            encoder = encoder.with_heads_of(kinds)
        check_generation(tested, options)
        keep_parts("pruning", options, run, tested)
        removed = _choose(encoder.sites, options, run)
        before = None if tested is None else measure_whole(tested, options)
        return write_without(
            Pruning,
            encoder,
            removed,
            folder,
            options,
            before=before,
            tested=tested,
            chosen_by=run if options.heads is None else None,
            zeroed=options.written_as == "zeroed",
            order=options.order if options.heads is None else "as named",
            fine_tuning=None if tuned is None else fine_tune(tuned, tested, removed, options),
        )


def _kinds_in(names: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of attention in the names of heads."""
    return tuple(kind for kind in ATTENTIONS if any(kind in name.split() for name in names))


def _find_head(sites: HeadSites, text: str) -> Head:
    """Return the row and the number of a head, named as in ``1-5`` or ``cross 1-5``.

    Raises UsageError for a head that the model does not have, or whose kind of attention is open.
    """
    kind, _, name = text.strip().rpartition(" ")
    layer, number = read_head(name)
    kinds = sites.rows.layers
    if kind not in kinds and (kind or len(kinds) > 1):
        raise UsageError(
            f"the head {text!r} is of no kind of attention; name one of "
            f"{', '.join(kinds) or 'none'}, as in 'cross 1-5'"
        )
    head = sites.rows.first(kind or next(iter(kinds), "")) + layer, number
    if head not in sites.heads or sites.rows.place(head[0])[1] != layer:
        raise UsageError(f"the model has no head {text}; layers and heads count from 0")
    return head


def _choose(sites: HeadSites, options: PruneOptions, run: TaskRun | None) -> list[Head]:
    """Return the heads to remove; the same heads from layers that share a module.

    Raises UsageError for more heads to keep than there are, or a part of a unit, and as
    `choose_heads`.
    """
    units = units_of(sites)
    if options.heads is not None:
        removed = {_find_head(sites, name) for name in options.heads}
        return [head for unit in units.values() if removed & {*unit} for head in unit]
    size = max(map(len, units.values()), default=1)
    n_heads, keep = size * len(units), options.keep or 0
    if keep > n_heads:
        raise UsageError(f"{keep} heads are to be kept, but the model has {n_heads}")
    n_units, rest = divmod(n_heads - keep, size)
    if options.share is not None:
        n_units = round(options.share * len(units))
    elif rest:
        more = n_heads - n_units * size
        raise UsageError(
            "layers of this model share one attention module, so that a head is removed from "
            f"{size} layers at once; {n_heads - keep} of {n_heads} heads are no multiple of "
            f"{size}. Pass `keep={more - size}` or `keep={more}`"
        )
    return choose_heads(options.order, n_units, units, options, run, sites.rows)


class Measurement(NamedTuple):
    """What a model does on a test, and its translations, if any are asked for."""

    outcomes: Outcomes
    translations: Translations | None


def measure_whole(tested: TaskRun, options: GenerateOptions) -> Measurement:
    """Measure a model before heads are removed, by its translations too if these are asked for."""
    written = translations_without(tested, [()], options) if options.generate else None
    return Measurement(tested.outcomes_unmasked(), written)


def write_without(
    kind: type[P],
    encoder: LoadedModel,
    removed: Sequence[Head],
    folder: Path,
    options: GenerateOptions,
    *,
    before: Measurement | None = None,
    tested: TaskRun | None = None,
    chosen_by: TaskRun | None = None,
    zeroed: bool = False,
    frame: pd.DataFrame | None = None,
    **facts: Any,
) -> P:
    """Write a model without heads into a folder, with the result, which has these ``facts``.

    ``before`` is what the whole model does on ``tested``, and heads were ``chosen_by`` examples.
    The table of the result is by default about the heads that the model had.
    """
    network = encoder.model
    if frame is None:
        rows = [(*head, head in removed) for head in encoder.sites.heads]
        frame = pd.DataFrame(rows, columns=list(Pruning.columns))
    n_before = n_parameters(network)
    if before is not None and tested is not None and before.translations is not None:
        written = translations_without(tested, [removed], options)  # as without them, in one class
        both = before.translations.followed_by(written)
        names = [f"{len(removed)} heads"]
        facts["translations"] = compare_translations(names, both, options)
    remove = zero_heads if zeroed else remove_rows
    remove(encoder.sites, removed)
    measured: dict[str, Any] = {"measured_on": "", "before": {}, "after": {}, "loss_change": None}
    if tested is not None and before is not None:
        after = tested.outcomes_unmasked()
        measured = {
            "measured_on": f"{len(tested.task)} examples of {Path(tested.task.file).name}",
            "before": tested.measure(before.outcomes),
            "after": tested.measure(after),
            "loss_change": find_loss_change(before.outcomes, after),
        }
    measured |= {
        "removed": sorted(removed),
        "parameters": {"before": n_before, "after": n_parameters(network)},
    }
    warnings = about_saved(encoder.own_for_targets)
    if tested is not None and chosen_by is not None:
        warnings += warn_of_one_file(chosen_by.task, tested.task)
    record = Record.now(
        kind=kind.kind,
        model=structs.replace(encoder.description, **encoder.sites.description),
        options=options.record(),
        facts={"fine_tuning": None, **facts, **measured},
        warnings=warnings,
    )
    result = kind(encoder.sites.rows.with_kinds(frame), record)
    model = PrunedModel(network, encoder.tokenizer, record, encoder.own_for_targets)
    write_together(folder, [model, result])
    return result


def fine_tune(
    run: TaskRun, tested: TaskRun | None, removed: Sequence[Head], options: PruneOptions
) -> FineTuning:
    """Fine-tune the model of ``run`` with the heads of ``removed`` masked; return facts about it.

    The masked heads stay in the model; removing them does not change its outputs. With
    ``compensation`` the whole model is fine-tuned first, in the same way, from the same weights and
    seed; importances are compared on ``tested``, by default on the examples of fine-tuning.

    Raises UsageError for compensation without a remaining head, and ModelError for weights that are
    not finite.
    """
    if options.compensation and not set(run.heads) - set(removed):
        raise UsageError(
            "all heads are removed, and none could compensate; leave `compensation` out"
        )
    network, groups = run.encoder.model, run.groups(options.update_examples)
    n_updates = ceil(options.epochs * len(groups))
    updates = count(1)
    progress = Progress(options.on_progress, n_updates * (1 + options.compensation))

    def gradients_of(number: int, weights: Sequence[Tensor]) -> Sequence[Tensor | None]:
        _, gradients = gradients_of_mean(
            run.passes, groups[number], lambda batch: run.losses_of(batch)[0], weights
        )
        progress(next(updates))
        return gradients

    def measure(gates: Tensor) -> Measures:
        return {} if tested is None else tested.measure(tested.outcomes(gates[None]))

    def tune(gates: Tensor) -> HeadState:
        """Fine-tune; return weights of heads, and importances at ``gates`` where compared."""
        with gated(run.sites, gates):
            train_weights(network, len(groups), gradients_of, options)
        if not options.compensation:
            return {}, np.empty(0)
        values = values_of((tested or run).derivatives(gates=gates), ABSOLUTE)
        return weights_of_heads(run.sites), values.reshape(-1, *run.shape)

    masked, whole = without(removed, run.shape), torch.ones(run.shape)
    facts: FineTuning = {
        "examples": len(run.task),
        "updates": n_updates,
        "update_examples": options.update_examples,
        "masked": measure(masked),
        "whole": {},
    }
    if not options.compensation:
        tune(masked)
        return facts
    start = copy.deepcopy(network.state_dict())
    of_whole = tune(whole)
    facts["whole"] = measure(whole)
    network.load_state_dict(start)
    compensation = find_compensation(of_whole, tune(masked), removed)
    return {**facts, "compensation": cast(list[dict[str, Any]], compensation.to_dict("records"))}


GradientsOf: TypeAlias = Callable[[int, Sequence[Tensor]], Sequence[Tensor | None]]
"""Function from the number of an update's group and the weights to the gradients of its loss."""
HeadState: TypeAlias = tuple[Mapping[Head, Tensor], FloatArray]
"""Weights of each head, as a vector, and absolute importances (examples, layers, heads)."""


def train_weights(
    model: PreTrainedModel, n_groups: int, gradients_of: GradientsOf, options: PruneOptions
) -> None:
    """Train all weights of ``model`` on groups of examples, in a new order every epoch.

    Each update uses the gradients of one group, whose number ``gradients_of`` gets, as the Trainer
    of transformers does: AdamW, with a rate that rises over a tenth of the updates, then falls.
    Dropout is on meanwhile. The program's random state is restored afterwards.

    Raises ModelError for weights that are not finite afterwards.
    """
    from transformers import get_linear_schedule_with_warmup

    n_updates = ceil(options.epochs * n_groups)
    weights = [values for values in model.parameters() if values.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=options.learning_rate, weight_decay=0, fused=True)
    n_warm = int(_WARM_UP * n_updates)
    rates = get_linear_schedule_with_warmup(optimizer, n_warm, n_updates)  # type: ignore[no-untyped-call]
    generator = torch.Generator()
    model.train()
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        for update in range(n_updates):
            epoch, place = divmod(update, n_groups)
            if place == 0:
                torch.empty((), dtype=torch.int64).random_()  # which a DataLoader draws
                generator.manual_seed(options.seed + epoch)
                order = torch.randperm(n_groups, generator=generator).tolist()
            for tensor, gradient in zip(weights, gradients_of(order[place], weights), strict=True):
                tensor.grad = gradient
            torch.nn.utils.clip_grad_norm_(weights, _LONGEST_GRADIENT)
            optimizer.step()
            rates.step()
    model.zero_grad()
    model.eval()  # type: ignore[no-untyped-call]
    if not all(torch.isfinite(values).all() for values in model.parameters()):
        raise ModelError(
            "weights are not finite after fine-tuning; lower the learning rate "
            f"({options.learning_rate:g}), and run the model in float32 (it ran in {model.dtype})"
        )


def find_compensation(
    whole: HeadState, smaller: HeadState, removed: Sequence[Head]
) -> pd.DataFrame:
    """Compare the remaining heads, fine-tuned without ``removed``, with the whole model."""
    heads = [head for head in whole[0] if head not in removed]
    layers, numbers = (list(axis) for axis in zip(*heads, strict=True))
    before, after = (importances[:, layers, numbers] for _, importances in (whole, smaller))
    changes = after - before
    excess = Hypotheses.from_values(
        changes - changes.mean(1, keepdims=True), 0.0, size=np.sqrt((before**2).mean())
    )
    names = "excess_change ci_low ci_high p_value p_adjusted answer"
    columns = {
        "layer": layers,
        "head": numbers,
        "weight_change": [
            float((smaller[0][head] - whole[0][head]).norm() / whole[0][head].norm())
            for head in heads
        ],
        "importance": before.mean(0),
        "importance_change": changes.mean(0),
        **two_sided(excess, TestOptions(clusters="none"), (MORE, LESS), names),
    }
    return pd.DataFrame(columns)
