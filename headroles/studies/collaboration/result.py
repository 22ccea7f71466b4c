"""What a study of shared queries and keys leaves: a model, and a table of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from headroles.formats import to_records
from headroles.models.stored import StoredModel
from headroles.results import MODEL_KINDS, Grid, Result, Shown, Warned
from headroles.studies.forms import CollaborationForm

COLUMNS = (
    "layer",
    "method",
    "rank",
    "full_rank",
    "tensor_error",
    "score_error",
    "score_error_held_out",
    "divergence",
    "divergence_held_out",
    "parameters_before",
    "parameters",
    "multiplications_before",
    "multiplications",
    "rounds",
    "converged",
    "seconds",
)
_FEW_TOKENS = 8
"""Tokens of a sample for each dimension of the inputs, below which it says little of them."""


class CollaborativeModel(StoredModel):
    """A model whose queries and keys are of low rank, with its tokenizer.

    Its folder can be given to every command in the place of a model. ``model`` is in evaluation
    mode and has the task head of the original.
    """

    kind: ClassVar[str] = MODEL_KINDS[1]
    cure: ClassVar[str] = "make one with: headroles collaborate MODEL --rank R --out DIR"


@dataclass(frozen=True, repr=False, eq=False)
class Collaboration(Result):
    """What queries and keys of low rank change, and what they save, layer by layer.

    ``frame`` has the columns of ``COLUMNS``, a row per layer that has any heads. ``rank`` is the
    number of query dimensions of all heads together, and ``full_rank`` that of the original. Errors
    are root mean squares as shares of the original's: ``tensor_error`` of the products of the
    weights, ``score_error`` of scores on the sample and on text held out, each layer reading what
    the original's layers below put out. Divergences are in nats (Kullback-Leibler, mean over heads
    and queries), each model reading what its own layers put out. Parameters are those of queries
    and keys, multiplications those of queries, keys and scores for a sequence of 128 tokens.
    ``rounds`` and ``seconds`` (of the processor) were spent on the factors.
    """

    kind: ClassVar[str] = "collaboration"
    stem: ClassVar[str] = "collaboration"
    cure: ClassVar[str] = "make one with: headroles collaborate MODEL --rank R --out DIR"
    form: ClassVar[type[msgspec.Struct]] = CollaborationForm
    columns: ClassVar[tuple[str, ...]] = COLUMNS

    @property
    def whole(self) -> dict[str, Any]:
        """Of the model as a whole: parameters, tokens of the sample, and passes timed."""
        whole: dict[str, Any] = self.provenance["collaboration"]
        return whole

    @property
    def task(self) -> dict[str, Any] | None:
        """Loss and metrics before and after, and the change of the loss; None without a task."""
        task: dict[str, Any] | None = self.whole.get("task")
        return task

    def shown(self) -> Iterator[Shown]:
        """Say how much smaller and faster the model is, and what it loses."""
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
        """Say how was fitted, and tabulate the layers."""
        yield self._title()
        yield self._layers()

    def _title(self) -> str:
        corpus, options = self.provenance["corpus"], self.provenance["options"]
        what = "shared by all heads" if options["method"] == "shared" else "of each head"
        text = "the bundled treebank" if corpus["bundled"] else ", ".join(corpus["files"])
        how = "scores on the sample" if options["weighting"] == "inputs" else "the weights alone"
        return (
            f"queries and keys {what}, fitted to {how}\n"
            f"sample {text}: {corpus['examples']} examples, {corpus['examples_held_out']} held out"
            f"\ndivergence of attention from the original's in nats\n"
        )

    def _layers(self) -> Grid:
        columns = ("layer", "rank", "of", "score error", "held out", "divergence", "held out ")
        names = (
            "score_error",
            "score_error_held_out",
            "divergence",
            "divergence_held_out",
        )
        rows = [
            tuple(str(row[name]) for name in ("layer", "rank", "full_rank"))
            + tuple(f"{row[name]:.4f}" for name in names)
            for row in self.frame.to_dict("records")
        ]
        means = (f"{self.frame[name].mean():.4f}" for name in names)
        return Grid(columns, (*rows, ("mean", "", "", *means)))

    def _cost(self) -> Grid:
        rows = tuple(
            (str(row["tokens"]), f"{row['multiplications']:.2f}", f"{row['time']:.2f}")
            for row in self.whole["passes"]
        )
        return Grid(("tokens", "multiplications of scores", "time of a pass"), rows)

    def _on_task(self, task: dict[str, Any]) -> Iterator[Shown]:
        names = ("loss", *task["metrics"])
        rows = [
            (when, *(f"{task[when][name]:.4f}" for name in names)) for when in ("before", "after")
        ]
        yield Grid((f"{task['examples']} examples of {task['file']}", *names), tuple(rows))
        yield (
            f"The loss changes by {task['loss_change']:+.4f} nats ({task['ci_low']:+.4f} to "
            f"{task['ci_high']:+.4f}, p = {task['p_value']:.2g})."
        )

    def _verdict(self) -> str:
        own, before = (int(self.frame[name].sum()) for name in ("parameters", "parameters_before"))
        whole, all_before = (self.whole[f"parameters_{when}"] for when in ("after", "before"))
        text = (
            f"Queries and keys have {own / before:.0%} of the original's parameters, "
            f"the encoder {whole / all_before:.1%}."
        )
        slower = [row["tokens"] for row in self.whole["passes"] if row["multiplications"] > 1]
        if slower:
            text += (
                f"\nFrom {slower[0]} tokens on attention takes more multiplications than before, "
                "as every head uses all shared dimensions. For speed prune heads, or pass "
                "method='per-head' (--method per-head)."
            )
        return text

    def _found(self) -> Iterator[str]:
        width = int(self.frame["parameters_before"].max() / self.frame["full_rank"].max() / 2) - 1
        if self.whole["tokens"] < _FEW_TOKENS * width:
            yield (
                f"The sample has {self.whole['tokens']} tokens for inputs of {width} dimensions. "
                "With a larger sample (--sample) factors fit other text better."
            )
        if late := [str(layer) for layer in self.frame.loc[~self.frame["converged"], "layer"]]:
            yield (
                f"The factors of layers {', '.join(late)} were still improving when the rounds "
                "ran out. Pass more rounds (--rounds)."
            )

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {
            "options": self.provenance["options"],
            "whole": self.whole,
            "layers": to_records(self.frame),
            "warnings": list(self._found()),
        }
