"""Examples that shared projections are measured on: sentences, or examples of a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from headroles.corpus import Corpus, make_examples, prepared, read_conllu
from headroles.encoding import refuse_unknown
from headroles.errors import CorpusError
from headroles.models.loading.encoder import LoadedEncoder
from headroles.passes.examples import ExampleBatch, passes_over
from headroles.passes.loop import Budget, Passes
from headroles.sample import sample_treebank
from headroles.studies.importance.removals import find_loss_change
from headroles.studies.sharing.options import SampleOptions
from headroles.studies.sharing.result import RecordedSample, TaskChange
from headroles.tasks.running import TaskRun


@dataclass(frozen=True)
class SampleText:
    """Examples to learn from, and examples held out, ready to run a model over."""

    learnt: Passes[ExampleBatch]
    held_out: Passes[ExampleBatch]
    description: RecordedSample

    @property
    def n_tokens(self) -> int:
        """Tokens to learn from."""
        return sum(self.learnt.lengths)

    @property
    def n_batches(self) -> int:
        """Batches of all examples."""
        return n_batches(self.learnt) + n_batches(self.held_out)


def n_batches(passes: Passes[ExampleBatch]) -> int:
    """Return how many batches a pass over all examples takes."""
    return len(passes.budget.batches(passes.lengths))


def read_sample(
    encoder: LoadedEncoder, corpus: Corpus | None, options: SampleOptions
) -> SampleText:
    """Return the first examples of ``corpus``, or of the bundled treebank, some of them held out.

    Raises CorpusError for a sample of fewer than two examples, TokenizerError if the tokenizer does
    not know most of its word pieces.
    """
    with prepared(corpus or read_conllu(sample_treebank())) as ready:
        examples = list(islice(make_examples(ready, "adjacent"), options.sample_examples))
        encode = encoder.example_encoder()
        encoded = encode.encode(examples, Counter())
        described = ready.describe()
    pieces = encode.counts
    refuse_unknown(pieces["unknown_pieces"], pieces["pieces"], "the sample")
    if len(encoded) < 2:
        raise CorpusError(
            f"the sample has {len(encoded)} examples that fit the model; it must have 2 or more, "
            "to learn from some and measure on others; give a larger `sample`"
        )
    apart = _held_out([one.document for one in encoded], options)
    parts = [
        [one for one, is_apart in zip(encoded, apart, strict=True) if is_apart == wanted]
        for wanted in (False, True)
    ]
    budget = Budget.of(encoder.device, options.batch_tokens)
    learnt, held_out = (passes_over(part, encoder, budget) for part in parts)
    description = RecordedSample.extending(
        described,
        bundled=corpus is None,
        examples=len(parts[0]),
        examples_held_out=len(parts[1]),
    )
    return SampleText(learnt, held_out, description)


def _held_out(documents: Sequence[str], options: SampleOptions) -> np.ndarray[Any, np.dtype[Any]]:
    """Draw the examples (examples,) to hold out: whole documents if there are several."""
    units = documents if len(set(documents)) > 1 else range(len(documents))
    _, codes, sizes = np.unique(np.asarray(units), return_inverse=True, return_counts=True)
    order = np.random.default_rng(options.seed).permutation(len(sizes))
    reached = np.cumsum(sizes[order]) >= options.held_out * len(documents)
    # At least one unit either side.
    n_apart = min(max(1, int(np.argmax(reached)) + 1), len(sizes) - 1)
    return np.asarray(np.isin(codes, order[:n_apart]))


def change_on(before: TaskRun, after: TaskRun) -> TaskChange:
    """Return loss and metrics of two models on one task, and the change of the loss."""
    runs = (before, after)
    first, second = (run.outcomes(torch.ones(1, *run.shape)) for run in runs)
    return TaskChange.extending(
        find_loss_change(first, second),
        file=before.task.file,
        examples=len(before.task),
        metrics=list(before.metrics),
        before=before.measure(first),
        after=after.measure(second),
    )
