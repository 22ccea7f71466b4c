"""Results of sharing queries and keys: a model, and a table of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from headroles.formats import to_records
from headroles.models.loading.saved_models import ChangedModel
from headroles.record import ModelRecord, Recorded, RecordedCorpus
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.results.stored import MODEL_KINDS
from headroles.storage import plain
from headroles.studies.importance.removals import LossChange

_FEW_TOKENS = 8
"""Fewer tokens of the sample for each dimension of the inputs give a warning."""


class Pass(Recorded, frozen=True):
    """Cost of passes over sequences of one length, as shares of the original's; seconds of both."""

    tokens: int
    seconds_before: float
    seconds_after: float
    multiplications: float
    time: float


class TaskChange(LossChange, frozen=True):
    """Change of the loss on a task, with loss and metrics of both models."""

    file: str
    examples: int
    metrics: list[str]
    before: dict[str, float]
    after: dict[str, float]


class Whole(Recorded, frozen=True):
    """Figures of a whole model with queries and keys of low rank."""

    tokens: int
    parameters_before: int
    parameters_after: int
    passes: list[Pass]
    task: TaskChange | None


class Factors(Recorded, frozen=True):
    """Record of the factorisation of queries and keys."""

    method: str
    weighting: str


class RecordedSample(RecordedCorpus, frozen=True, kw_only=True):
    """The text that factors are fitted to, and measured with."""

    bundled: bool
    examples: int
    examples_held_out: int


class CollaborationRecord(ModelRecord, frozen=True, kw_only=True):
    """Record of the factorisation, its text, and the changes."""

    corpus: RecordedSample
    collaboration: Whole

    def __post_init__(self) -> None:
        super().__post_init__()
        self.read_options(Factors)

    @property
    def factors(self) -> Factors:
        """The record of the factorisation."""
        return self.read_options(Factors)


@dataclass(frozen=True, repr=False, eq=False)
class CollaborativeModel(ChangedModel):
    """A model whose queries and keys are of low rank, with its tokenizer.

    Its folder can be given to every command in the place of a model. ``model`` is in evaluation
    mode and has the task head of the original.
    """

    record: CollaborationRecord

    kind: ClassVar[str] = MODEL_KINDS[1]
    remedy: ClassVar[str] = "make one with: headroles collaborate MODEL --rank R --out DIR"


@dataclass(frozen=True, repr=False, eq=False)
class Collaboration(Result):
    """Changes and savings of queries and keys of low rank, layer by layer.

    ``frame`` has the columns of ``columns``, a row per layer that has any heads. ``rank`` is the
    number of query dimensions of all heads together, and ``full_rank`` this number in the original.
    Errors are root mean squares as shares of the original's: ``tensor_error`` of the products of
    the weights, ``score_error`` of scores on the sample and on text held out, with the outputs of
    the original's layers as inputs. Divergences are in nats (Kullback-Leibler, mean over heads and
    queries), with the outputs of each model's layers as inputs. Parameters are of queries and keys,
    multiplications of queries, keys and scores for a sequence of 128 tokens. ``rounds`` and
    ``seconds`` (of the processor) were spent on the factors.

    With ``collaboration`` as `collaborate_heads` returns it:

    >>> collaboration.frame["rank"].tolist()
    [24, 24, 24]
    """

    record: CollaborationRecord

    kind: ClassVar[str] = "collaboration"
    stem: ClassVar[str] = "collaboration"
    remedy: ClassVar[str] = "make one with: headroles collaborate MODEL --rank R --out DIR"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "layer method rank full_rank tensor_error score_error score_error_held_out "
            "divergence divergence_held_out parameters_before parameters "
            "multiplications_before multiplications rounds converged seconds"
        ).split()
    )

    @property
    def whole(self) -> Whole:
        """Figures of the model as a whole: parameters, tokens of the sample, and passes timed."""
        return self.record.collaboration

    @property
    def task(self) -> TaskChange | None:
        """Loss and metrics before and after, and the change of the loss; None without a task."""
        return self.whole.task

    def summarize(self) -> Iterator[Shown]:
        """Give the size, the speed and the losses of the model."""
        yield self._verdict()
        yield (
            "Attention diverges from the original's by "
            f"{self.frame['divergence_held_out'].mean():.4f} nats on text held out (mean over "
            "layers)."
        )
        yield self._cost()
        if self.task:
            yield from self._on_task(self.task)
        yield from map(Warned, self._found())

    def details(self) -> Iterator[Shown]:
        """Describe the fit, and tabulate the layers."""
        yield self._title()
        yield self._layers()

    def _title(self) -> str:
        corpus, factors = self.record.corpus, self.record.factors
        scope = "shared by all heads" if factors.method == "shared" else "of each head"
        text = "the bundled treebank" if corpus.bundled else ", ".join(corpus.files)
        how = "scores on the sample" if factors.weighting == "inputs" else "the weights alone"
        return (
            f"queries and keys {scope}, fitted to {how}\n"
            f"sample {text}: {corpus.examples} examples, {corpus.examples_held_out} held out"
            f"\ndivergence of attention from the original's in nats\n"
        )

    def _layers(self) -> Grid:
        columns = ("layer", "rank", "of", "score error", "held out", "divergence", "held out ")
        names = ("score_error", "score_error_held_out", "divergence", "divergence_held_out")
        rows = [
            tuple(str(row[name]) for name in ("layer", "rank", "full_rank"))
            + tuple(f"{row[name]:.4f}" for name in names)
            for row in self.frame.to_dict("records")
        ]
        means = (f"{self.frame[name].mean():.4f}" for name in names)
        return Grid(columns, (*rows, ("mean", "", "", *means)))

    def _cost(self) -> Grid:
        rows = tuple(
            (str(one.tokens), f"{one.multiplications:.2f}", f"{one.time:.2f}")
            for one in self.whole.passes
        )
        return Grid(("tokens", "multiplications of scores", "time of a pass"), rows)

    def _on_task(self, task: TaskChange) -> Iterator[Shown]:
        names = ("loss", *task.metrics)
        rows = [
            (when, *(f"{reached[name]:.4f}" for name in names))
            for when, reached in (("before", task.before), ("after", task.after))
        ]
        yield f"{task.examples} examples of {task.file}"
        yield Grid(("", *names), tuple(rows))
        yield (
            f"The loss changes by {task.loss_change:+.4f} nats ({task.ci_low:+.4f} to "
            f"{task.ci_high:+.4f}, p = {task.p_value:.2g})."
        )

    def _verdict(self) -> str:
        own, before = (int(self.frame[name].sum()) for name in ("parameters", "parameters_before"))
        whole, all_before = self.whole.parameters_after, self.whole.parameters_before
        text = (
            f"Queries and keys have {own / before:.0%} of the original's parameters, "
            f"the encoder {whole / all_before:.1%}."
        )
        slower = [one.tokens for one in self.whole.passes if one.multiplications > 1]
        if slower:
            text += (
                f"\nFrom {slower[0]} tokens on attention takes more multiplications than before, "
                "as every head uses all shared dimensions. For speed prune heads, or pass "
                "`method='per-head'`."
            )
        return text

    def _found(self) -> Iterator[str]:
        width = int(self.frame["parameters_before"].max() / self.frame["full_rank"].max() / 2) - 1
        if self.whole.tokens < _FEW_TOKENS * width:
            yield (
                f"The sample has {self.whole.tokens} tokens for inputs of {width} dimensions. "
                "With a larger `sample` factors fit other text better."
            )
        if late := [str(layer) for layer in self.frame.loc[~self.frame["converged"], "layer"]]:
            yield (
                f"The factors of layers {', '.join(late)} were still improving when the rounds "
                "ran out. Pass more `rounds`."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        return {
            "options": self.record.options,
            "whole": plain(self.whole),
            "layers": to_records(self.frame),
            "warnings": list(self._found()),
        }
