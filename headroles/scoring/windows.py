"""Windows of a corpus, and their scoring: the encoder runs and its attention is read meanwhile.

Windows pass through two steps, so that a device need not wait: they are launched, and their scores
are fetched when the next one is launched. Where a device runs the model, a thread prepares each
batch while the one before runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.arrays import Float32Array, IntArray
from headroles.corpus import Example, PreparedCorpus, make_examples
from headroles.encoding import EncodedExample, collate
from headroles.errors import CorpusError, ModelError
from headroles.models.attention.reader import AttentionReader
from headroles.models.loading.encoder import LoadedModel
from headroles.passes.loop import Budget, Passes, as_tensors, on_device, to_host
from headroles.reach import Reach
from headroles.record import Record, RecordedCorpus
from headroles.roles import (
    N_RULES,
    OFFSETS,
    PaddedBatch,
    Readout,
    Role,
    Scope,
    Score,
    SievesByKind,
    bounds_of,
    group_sieves,
    make_readout,
)
from headroles.scoring.layer import read_scores
from headroles.scoring.scores import HeadScores

T = TypeVar("T")
WINDOW_EXAMPLES, WINDOW_WORDS, WINDOW_BYTES = 1024, 2**15, 2**26
"""Most examples and words of a window, and most bytes of its scores.

Examples of a window are sorted by length, scored and saved together: enough for batches of similar
lengths, and so few that memory does not grow with the corpus, and that an interrupted run of a slow
model loses minutes.
"""


@dataclass(frozen=True, slots=True)
class Window:
    """Adjacent examples of a corpus; ``first`` is the number of sentences before them."""

    number: int
    first: int
    examples: list[Example]

    @property
    def n_sentences(self) -> int:
        """Number of sentences in the window."""
        return sum(len(example.sentences) for example in self.examples)


def windows_of(
    corpus: PreparedCorpus, pairing: str, n_examples: int = WINDOW_EXAMPLES
) -> Iterator[Window]:
    """Yield windows of ``n_examples`` at most.

    Raises CorpusError for two examples with one id.
    """
    seen: set[int] = set()  # hashes of ids, which take less memory
    n_words = 0
    window = Window(0, 0, [])
    for example in make_examples(corpus, pairing):
        if hash(example.id) in seen:
            raise CorpusError(
                f"two examples would have the id {example.id!r}; rename their sentences so that "
                "ids joined by + differ"
            )
        seen.add(hash(example.id))
        n_more = sum(len(sentence.words) for sentence in example.sentences)
        n_words += n_more
        if window.examples and (len(window.examples) >= n_examples or n_words > WINDOW_WORDS):
            yield window
            window = Window(window.number + 1, window.first + window.n_sentences, [])
            n_words = n_more
        window.examples.append(example)
    if window.examples:
        yield window


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield ``items``, making the next one in a thread while the caller uses the current one."""
    end = object()
    with ThreadPoolExecutor(1, "headroles-ahead") as worker:
        coming = worker.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, items, end)
            yield cast(T, item)


@dataclass(frozen=True)
class PreparedBatch:
    """Examples at some ``indices``: inputs of the model, and readouts by the reach of layers.

    ``known`` are the readouts in arrays, ``readouts`` the same in tensors.
    """

    indices: list[int]
    examples: Sequence[EncodedExample]
    known: Mapping[Reach, Readout]
    inputs: dict[str, Tensor]
    readouts: dict[Reach, Readout]


@dataclass(frozen=True)
class WindowScorer:
    """Scorer of windows with one encoder, in batches that the ``budget`` allows."""

    encoder: LoadedModel
    reader: AttentionReader
    roles: tuple[Role, ...]
    score: Score
    budget: Budget

    @cached_property
    def _sieves(self) -> SievesByKind:
        return group_sieves(self.roles)

    def prepare(self, examples: Sequence[EncodedExample], indices: list[int]) -> PreparedBatch:
        """Prepare the batch of the examples at these indices; needs no device."""
        batch = PaddedBatch([examples[index] for index in indices])
        frequencies_known = {
            reach: make_readout(self._sieves, Scope(batch, reach, self.score))
            for reach in dict.fromkeys(self.reader.reaches)
        }
        inputs = collate(batch.examples, self.encoder.tokenizer.pad_token_id or 0)
        tensors = as_tensors((inputs, frequencies_known), self.encoder.device)
        return PreparedBatch(indices, batch.examples, frequencies_known, *tensors)

    def launch(
        self,
        examples: Sequence[EncodedExample],
        report: Callable[[int], None],
        cut: Record = Record(),  # noqa: B008 - it cannot change
        batches: Sequence[list[int]] | None = None,
    ) -> Callable[[], HeadScores]:
        """Run the encoder on all examples; devices other than the CPU may finish later.

        The returned function waits for the scores and returns them, with a record of their counts
        alone, added to those of ``cut``. ``report`` is called with the number of examples done.
        ``batches`` are the indices of the examples of each, by default as the budget allows.
        """
        n, lengths = len(examples), [len(example) for example in examples]
        make = partial(self.prepare, examples)
        passes = Passes(
            lengths, make, lambda index: f"the example {examples[index].id!r}", self.budget
        )
        counts = np.empty((n, len(self.roles)), dtype=np.int64)
        bounds = np.empty((*counts.shape, 2), dtype=np.float32)
        shares = np.full((*counts.shape, len(OFFSETS)), np.nan, dtype=np.float32)
        hits = np.zeros((*counts.shape, N_RULES), dtype=np.uint16)
        skipped, controls = Counter[str](), Counter[str]()
        launched: list[tuple[list[int], Callable[[], Float32Array]]] = []
        done = 0
        planned = self.budget.batches(lengths) if batches is None else batches
        ready: Iterator[PreparedBatch] = map(make, planned)
        if self.encoder.device.type != "cpu":  # there a thread would wait for the interpreter
            ready = one_ahead(ready)
        for batch, arrived in passes.run(ready, lambda batch: to_host(self.read(batch))):
            rows, readouts = batch.indices, list(batch.known.values())
            # the others have one entry for all layers: that of the layers with the widest reach
            widest = max(readouts, key=lambda readout: int(readout.counts.sum()))
            counts[rows] = np.max([readout.counts for readout in readouts], axis=0)
            bounds[rows] = bounds_of(readouts)
            if widest.offset_shares is not None:
                shares[rows] = widest.offset_shares
            if widest.class_hits is not None:
                hits[rows] = widest.class_hits
            skipped.update(widest.skipped)
            controls.update(widest.controls)
            by_reach = {reach: readout.counts for reach, readout in batch.known.items()}
            values = partial(self._values, arrived, batch.examples, by_reach, widest.columns)
            launched.append((rows, values))
            done += len(rows)
            report(done)

        def fetch() -> HeadScores:
            values = np.empty((n, self.reader.n_layers, self.reader.n_heads, len(self.roles)), "f4")
            for rows, values_of_batch in launched:
                values[rows] = values_of_batch()
            return HeadScores(
                ids=tuple(example.id for example in examples),
                documents=tuple(example.document for example in examples),
                lengths=np.array(lengths, dtype=np.int64),
                roles=self.roles,
                values=values,
                counts=counts,
                score=self.score,
                record=cut.plus(
                    Record(
                        corpus=RecordedCorpus(examples=n, skipped=dict(skipped)),
                        facts={"controls": dict(controls)},
                    )
                ),
                digests=tuple(example.digest for example in examples),
                offset_shares=shares if self.score.of_first_choice else None,
                class_hits=hits if self.score.of_first_choice else None,
                bounds=bounds,
            )

        return fetch

    def read(self, batch: PreparedBatch) -> Tensor:
        """Read values (B, layers, heads, columns), undefined where counts are 0."""
        inputs, readouts = on_device((batch.inputs, batch.readouts), self.encoder.device)
        layers: list[Tensor] = []

        def read_layer(layer: int, weights: Tensor) -> None:
            layers.append(read_scores(weights, readouts[self.reader.reaches[layer]]))

        self.reader.read(inputs, read_layer, [example.id for example in batch.examples])
        return torch.stack(layers, dim=1)

    def _values(
        self,
        arrived: Callable[[], Float32Array],
        examples: Sequence[EncodedExample],
        counts: Mapping[Reach, IntArray],
        columns: IntArray,
    ) -> Float32Array:
        """Return values (B, layers, heads, roles), NaN where an example or a head has none.

        ``counts`` (B, roles) are those of layers with each reach; each role is read in its column.
        """
        read = arrived()
        check_finite(read, examples, self.encoder)
        for layer, head in self.reader.removed:
            read[:, layer, head] = np.nan
        values = read[..., columns]
        lacking = {reach: (of_layers == 0)[:, None] for reach, of_layers in counts.items()}
        for layer, reach in enumerate(self.reader.reaches):
            np.copyto(values[:, layer], np.nan, where=lacking[reach])
        return values


def check_finite(
    read: NDArray[np.floating], examples: Sequence[EncodedExample], encoder: LoadedModel
) -> None:
    """Raise ModelError if any value of ``read`` (examples, layers, ...) is not finite."""
    if not np.isfinite(read).all():
        row, layer = np.argwhere(~np.isfinite(read))[0, :2]
        raise ModelError(
            f"attention of layer {layer} is not finite for example {examples[row].id!r}; "
            f"run the model in float32 (it ran in {encoder.attention.dtype})"
        )
