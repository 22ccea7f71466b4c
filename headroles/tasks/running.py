"""Runs of a model over the examples of a task, for losses, predictions and derivatives by gates."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from msgspec import structs
from numpy.typing import NDArray
from torch import Tensor

from headroles.arrays import MODEL_TERMS, FloatArray, rounding_bound
from headroles.errors import ModelError, UsageError, lacks_memory
from headroles.models.heads.gates import (
    Ablation,
    HeadSites,
    gate_gradients,
    gated,
    mask_of,
    sum_outputs,
)
from headroles.models.heads.remaining import Head
from headroles.models.heads.shared_passes import SharedPasses, first_tokens_alone, order_of
from headroles.models.loading.encoder import (
    LoadedModel,
    Model,
    check_is_model,
    load_encoder,
    weight_digest,
)
from headroles.models.loading.weights import load_config
from headroles.models.options import ATTENTIONS, CROSS, ENCODER, MEAN, UNIFORM, ZERO, TargetOptions
from headroles.passes.options import Progress, shown_in_notebooks
from headroles.record import Record, RecordedTask, versions
from headroles.storage import OpenParts, decode_arrays, encode_arrays
from headroles.tasks.options import (
    CLASSIFICATION,
    MASKED_LM,
    REGRESSION,
    TEXT_TO_TEXT,
    UNLABELLED,
    WRITING,
    RunOptions,
    TaskOptions,
)
from headroles.tasks.outcomes import (
    DERIVATIVES,
    Derivatives,
    Measures,
    Outcomes,
    metrics_of,
)
from headroles.tasks.reading import (
    IGNORED,
    Task,
    TaskBatch,
    find_targets,
    objective_of,
    passes_over,
    read_task,
)
from headroles.tasks.writing import cut_texts

OnPass = Callable[[float], None]
Arrays = dict[str, NDArray[Any]]
ArrayTypes = Mapping[str, tuple[type, tuple[int, ...]]]
"""For each array of examples, the type of its numbers, and its shape for each example."""
_REFERENCE_BATCHES = 16


class TaskRun:
    """A model with the examples of a task, which can run under any gates."""

    def __init__(self, encoder: LoadedModel, task: Task, options: TaskOptions) -> None:
        self.encoder, self.task, self.options = encoder, task, options
        config = encoder.model.config
        self.objective = objective_of(options.objective, config)
        self.targets = find_targets(task, self.objective, config, tuple(options.labels or ()))
        self.shape = self.sites.n_layers, self.sites.n_heads
        """Numbers of layers and of heads in each, including removed ones."""
        self.start: list[int] = []
        """Pieces that the decoder reads before it writes the first one of a target."""
        self.metrics = metrics_of(self.objective, config.num_labels or 0)
        if self.objective in WRITING:
            pieces = cut_texts(encoder, task, options)
            self.passes, self.n_cut = pieces.passes(options), pieces.n_cut
            self.targets, self.start = pieces.n_targets, pieces.start
        else:
            passes = passes_over(encoder, task, self.objective, self.targets, options)
            self.passes, self.n_cut = passes
        self.batches = self.passes.batches()
        self.batch_tokens = self.passes.budget.tokens
        self.parts: OpenParts | None = None
        """Where finished batches are saved."""
        self.rounds = Progress(options.on_progress)

    def over(self, file: str | Path, options: TaskOptions) -> TaskRun:
        """Return a run of the same model over another file; raises errors as `read_task`."""
        task = read_task(file, options, self.objective)
        return TaskRun(self.encoder, task, options)

    def expect(self, n_passes: float) -> None:
        """Expect ``n_passes`` more passes over all examples in reports of progress."""
        self.rounds.expect(n_passes * len(self.batches))

    @property
    def sites(self) -> HeadSites:
        """Sites of the heads that the model has at present."""
        return self.encoder.sites

    @property
    def heads(self) -> list[Head]:
        """The heads of the model, by layer and number. Raises UsageError if it has none."""
        if heads := self.sites.heads:
            return heads
        raise UsageError(
            f"all heads of {self.encoder.description.model} are removed; take a model that has some"
        )

    @property
    def target_tokenizer(self) -> Any:
        """The tokenizer of targets."""
        target = self.encoder.target
        return self.encoder.tokenizer if target is None else target.tokenizer

    def groups(self, n_examples: int) -> list[list[TaskBatch]]:
        """Divide all examples into groups of similar length, each with its batches."""
        lengths, batches = self.passes.lengths, self.passes.budget.batches
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        groups = (order[start : start + n_examples] for start in range(0, len(order), n_examples))
        return [
            [
                self.passes.make([group[index] for index in indices])
                for indices in batches([lengths[index] for index in group])
            ]
            for group in groups
        ]

    def record(self, options: TaskOptions, **study: Any) -> Record:
        """Return the record of results of this run, with the additions of the ``study``."""
        task, metrics = self.task, list(self.metrics)
        return Record.now(
            model=structs.replace(self.encoder.description, **self.sites.description),
            task=RecordedTask(
                task.file, task.digest, len(task), self.objective, metrics, self.n_cut
            ),
            options={
                **options.record(),
                "device": self.encoder.device.type,
                "batch_tokens": self.batch_tokens,
            },
            **study,
        )

    def measure(self, outcomes: Outcomes) -> Measures:
        """Return the mean loss and the metrics of the first setting."""
        return outcomes.of_first(self.metrics)

    def outcomes_unmasked(self) -> Outcomes:
        """Return the outcomes of the model as it is, with all gates open."""
        return self.outcomes(torch.ones(1, *self.shape))

    def outcomes(self, gates: Tensor, ablation: str = ZERO) -> Outcomes:
        """Return the outcomes of all examples under each of ``gates`` (S, layers, heads).

        Layers run once for all settings with the same gates in them and below them.
        """
        order, shared, costs = self._in_order(gates)
        is_whole = (gates == 1).all(-1).all(-1)
        ablation_used = Ablation() if bool(is_whole.all()) else self.ablation(ablation)
        sites, ranks = self.sites, np.argsort(order)

        def compute(batch: TaskBatch, on_pass: OnPass) -> Arrays:
            passes = SharedPasses(sites, values_are_read=ablation_used.kind == UNIFORM)
            of_batch = replace(ablation_used, inputs=batch.inputs)
            read: list[tuple[FloatArray, FloatArray]] = []
            with torch.inference_mode():
                for setting, following, done in zip(
                    order, [*shared, 0], costs.cumsum(), strict=True
                ):
                    with ExitStack() as stack:
                        if not is_whole[setting]:
                            stack.enter_context(gated(sites, gates[setting], of_batch))
                        stack.enter_context(passes.next(following))
                        stack.enter_context(self._only_read_tokens())
                        losses, predictions = self.losses_of(batch)
                        read.append((_in_double(losses), _in_double(predictions)))
                    on_pass(done)
            by_setting = (np.stack(values, axis=1)[:, ranks] for values in zip(*read, strict=True))
            return dict(zip(("losses", "predictions"), by_setting, strict=True))

        types = dict.fromkeys(("losses", "predictions"), (np.float64, (len(gates),)))
        arrays = self.over_batches(compute, ablation, gates, types, costs.sum())
        return Outcomes(**arrays, targets=self.targets)

    def n_passes(self, gates: Tensor) -> float:
        """Return how many whole passes `outcomes` takes for ``gates``."""
        return float(self._in_order(gates)[-1].sum())

    def _in_order(self, gates: Tensor) -> tuple[list[int], list[int], FloatArray]:
        """Return an order of ``gates`` (S, layers, heads) with the fewest layers to run.

        The second list has the number of first layers in which each two neighbours are the same;
        the array has the share of a pass that each setting takes.
        """
        by_layer = gates[:, order_of(self.sites)].tolist()
        order = sorted(range(len(gates)), key=lambda setting: by_layer[setting], reverse=True)
        shared = [
            sum(1 for _ in takewhile(bool, map(operator.eq, by_layer[first], by_layer[second])))
            for first, second in pairwise(order)
        ]
        reused = np.array([0, *shared]) * (not self.sites.layers_are_shared)
        return order, shared, 1 - reused / self.shape[0]

    def derivatives(self, gates: Tensor | None = None) -> Derivatives:
        """Return derivatives of every example's loss at ``gates`` (layers, heads), 1 by default.

        Each batch takes one forward and one backward pass. Raises ModelError for derivatives that
        are not finite.
        """
        sites = self.sites

        def compute(batch: TaskBatch, _: OnPass) -> Arrays:
            with ExitStack() as stack:
                stack.enter_context(without_gradients(self.encoder.model))
                of_loss = stack.enter_context(gate_gradients(sites))
                stack.enter_context(self._only_read_tokens())
                if gates is not None:
                    stack.enter_context(gated(sites, gates))
                losses, predictions = self.losses_of(batch)
                of_sequences = of_loss(losses.sum())
            return {
                **self._summed_over_tokens(of_sequences, batch.inputs),
                "losses": _in_double(losses),
                "predictions": _in_double(predictions),
            }

        at = torch.ones(self.shape) if gates is None else gates
        of_heads, of_examples = (np.float32, self.shape), (np.float64, ())
        types: ArrayTypes = {
            **dict.fromkeys(("by_gate", "by_token"), of_heads),
            **dict.fromkeys(("losses", "predictions"), of_examples),
            "tokens": (np.int64, self.shape[:1] if self.objective in WRITING else ()),
        }
        arrays = self.over_batches(compute, "derivatives", at, types, DERIVATIVES)
        derivatives = Derivatives(**arrays)
        if not np.isfinite(derivatives.by_gate).all():
            raise ModelError(
                "derivatives of the loss are not finite; run the model in float32 "
                f"(it ran in {self.encoder.model.dtype})"
            )
        return derivatives

    def _summed_over_tokens(
        self, of_sequences: Mapping[int, Tensor], inputs: Mapping[str, Tensor]
    ) -> Arrays:
        """Sum derivatives (batch, tokens, layers, heads) of each sequence; count its tokens."""
        n, sites = len(inputs["input_ids"]), self.sites
        sums = {name: np.zeros((n, *self.shape), np.float32) for name in ("by_gate", "by_token")}
        tokens = np.zeros((n, self.shape[0]), np.int64)
        for sequence, derivatives in of_sequences.items():
            by_token, real = derivatives.float(), mask_of(inputs, sequence)
            rows = sites.rows_in(sequence)
            sums["by_gate"][:, rows] = by_token.sum(1).cpu().numpy()
            of_real = by_token.abs() * real[..., None, None]
            sums["by_token"][:, rows] = of_real.sum(1).cpu().numpy()
            tokens[:, rows] = real.sum(1).cpu().numpy()[:, None]
        return {**sums, "tokens": tokens if self.objective in WRITING else tokens[:, 0]}

    def over_batches(
        self,
        compute: Callable[[TaskBatch, OnPass], Arrays],
        computed: str,
        gates: Tensor,
        types: ArrayTypes,
        n_passes: float,
    ) -> Arrays:
        """Compute arrays of ``types`` for every batch; join them in the order of the examples.

        Batches that ``parts`` has are not computed again, under a name that no other arrays have.
        ``compute`` reports how many of its ``n_passes`` over a batch are done.
        """
        prefix, arrays, done = "", list[Arrays](), 0
        if self.parts is not None:
            weights = weight_digest(self.encoder.model)  # weights may have been tuned since loading
            inputs = [computed, weights, self.task.digest, self.task.lines, self.batch_tokens]
            prefix = hashlib.sha256(repr([*inputs, gates.tolist()]).encode()).hexdigest()[:32]
        with shown_in_notebooks(self.options, "passes") as options:
            # a notebook without `expect` has a bar for each round
            rounds = self.rounds if options is self.options else Progress(options.on_progress)
            report = rounds.start(len(self.batches) * n_passes)
            n_batches, n_examples = len(self.batches), len(self.task)

            def read(part: TaskBatch) -> Arrays:
                size = len(part.indices)
                return compute(
                    part, lambda n: report(n_batches * (done * n_passes + n * size) / n_examples)
                )

            for number, batch in enumerate(self.batches):
                name = f"{prefix}-{number + 1}"
                if self.parts is not None and name in self.parts:
                    decode = partial(_decode, types, len(batch.indices))
                    arrays.append(self.parts.read(name, decode))
                    done += len(batch.indices)
                else:
                    pieces: list[Arrays] = []
                    for part, piece in self.passes.run([batch], read):
                        pieces.append(piece)
                        done += len(part.indices)
                    arrays.append(_joined(pieces))
                    if self.parts is not None:
                        self.parts.write(name, encode_arrays(arrays[-1]))
                report(n_batches * done / n_examples * n_passes)  # whole numbers stay whole
        rows = np.argsort([index for batch in self.batches for index in batch.indices])
        return {name: values[rows] for name, values in _joined(arrays).items()}

    def ablation(self, kind: str) -> Ablation:
        """Return the replacement of the outputs of heads, with their means over some batches."""
        if kind != MEAN:
            return Ablation(kind)
        some = self.batches[:: max(1, len(self.batches) // _REFERENCE_BATCHES)]
        sites, totals = self.sites, dict[int, tuple[int, Tensor]]()
        with torch.inference_mode():
            for _, sums in self.passes.run(some, lambda batch: sum_outputs(sites, batch.inputs)):
                for layer, (n, of_batch) in sums.items():
                    before, total = totals.get(layer, (0, 0))
                    totals[layer] = before + n, total + of_batch
        nothing = 1, torch.zeros(0, 1)
        by_layer = (totals.get(layer, nothing) for layer in range(sites.n_layers))
        means = [total / n for n, total in by_layer]
        return Ablation(kind, means=means)

    def _only_read_tokens(self) -> AbstractContextManager[None]:
        """Let passes run the last layer for first tokens alone where no others are read."""
        return first_tokens_alone(self.sites) if self.reads_first_tokens else nullcontext()

    @cached_property
    def reads_first_tokens(self) -> bool:
        """Whether the outputs for an example depend on its first token alone, up to rounding."""
        if self.objective in UNLABELLED:
            return False
        inputs, model = self.passes.make([0]).inputs, self.encoder.model
        with torch.inference_mode():
            expected = model(**inputs).logits.double()
            try:
                with first_tokens_alone(self.sites):
                    logits = model(**inputs).logits.double()
            except Exception as error:  # the model reads more tokens
                if lacks_memory(error):
                    raise
                return False
        epsilon = torch.finfo(model.dtype).eps
        reach = float(rounding_bound(1 + float(expected.abs().max()), MODEL_TERMS, epsilon))
        return logits.shape == expected.shape and float((logits - expected).abs().max()) <= reach

    def losses_of(self, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """Return the loss and the prediction of every example, each (batch,)."""
        logits, targets = self.encoder.stack.run_whole(batch.inputs).logits.float(), batch.targets
        if self.objective == REGRESSION:
            predictions = logits.squeeze(-1)
            return (predictions - targets) ** 2, predictions
        if self.objective == CLASSIFICATION:
            losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
            return losses, logits.argmax(-1)
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), targets, reduction="none", ignore_index=IGNORED
        )
        is_target = targets != IGNORED
        losses = losses.sum(1) / is_target.sum(1)
        if self.objective == MASKED_LM:
            return losses, torch.full_like(losses, torch.nan)
        return losses, ((logits.argmax(-1) == targets) & is_target).sum(1)


def _joined(pieces: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _in_double(values: Tensor) -> FloatArray:
    return np.asarray(values.detach().double().cpu().numpy())


def open_run(model: Model, file: str | Path, options: TaskOptions) -> TaskRun:
    """Load a model and the examples of a task file.

    Raises:
        CorpusError, UsageError: as `read_task`; labels that the model does not know.
        ModelError: as `load_encoder`; no head that was trained for the objective.
    """
    check_is_model(model)
    config = load_config(str(model), options) if isinstance(model, str | Path) else model.config
    objective = objective_of(options.objective, config)
    kinds = options.kinds or (ATTENTIONS if objective == TEXT_TO_TEXT else (ENCODER,))
    if objective != TEXT_TO_TEXT and kinds != (ENCODER,):
        raise UsageError(
            f"heads of {' and '.join(kinds)} are looked at in models of text to text, and the "
            f"objective is {objective}; omit `attention`"
        )
    task = read_task(file, options, objective)
    head = CLASSIFICATION if objective == REGRESSION else objective
    of = options.as_group(TargetOptions, attention=CROSS if objective == TEXT_TO_TEXT else ENCODER)
    encoder = load_encoder(model, options, head, of)
    return TaskRun(encoder.with_heads_of(kinds) if objective in WRITING else encoder, task, options)


def keep_parts(study: str, options: RunOptions, *runs: TaskRun | None) -> OpenParts | None:
    """Let runs of a model save finished batches, if ``options`` name a folder; return it opened.

    Saved batches serve only the same study, with the same options, weights, configuration,
    tokenizer, examples, targets and versions. Raises StorageError for a folder of other settings.
    """
    saving = [run for run in runs if run is not None]
    if options.parts is None or not saving:
        return None
    tasks = {
        f"task {number}": {
            "examples": len(run.task),
            "sha256": run.task.digest,
            "objective": run.objective,
            "targets": hashlib.blake2b(run.targets.tobytes(), digest_size=16).hexdigest(),
        }
        for number, run in enumerate(saving, start=1)
    }
    encoder = saving[0].encoder
    settings = {"study": study, "options": options.record(), **encoder.identity}
    parts = options.parts.open(
        {**settings, "device": encoder.device.type, **tasks, "versions": versions()}
    )
    for run in saving:
        run.parts = parts
    return parts


@contextmanager
def without_gradients(model: torch.nn.Module | Any) -> Iterator[None]:
    """Turn off gradients of weights within the block; those of gates remain."""
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    for parameter, _ in before:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter, had in before:
            parameter.requires_grad_(had)


def _decode(types: ArrayTypes, n: int, content: bytes) -> Arrays:
    """Decode saved arrays. Raises ValueError unless they have ``types`` and ``n`` examples."""
    arrays = decode_arrays(content)
    held = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    needed = {name: (np.dtype(kind), (n, *shape)) for name, (kind, shape) in types.items()}
    if held != needed:
        raise ValueError(f"it holds {held} instead of {needed}")
    return arrays
