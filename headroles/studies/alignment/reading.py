"""A bitext read by a translation model: counts of links, and files of links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np
from msgspec import structs

from headroles.arrays import IntArray
from headroles.corpus import Example, PreparedCorpus
from headroles.encoding import EncodedExample, ExampleEncoder, check_known_pieces
from headroles.errors import CorpusError
from headroles.inference.doubled import Clusters, find_clusters
from headroles.models.attention.reader import open_norms, open_reader
from headroles.models.loading.encoder import LoadedModel, Model, load_encoder
from headroles.models.options import CROSS, MEASURES, TargetOptions
from headroles.passes.loop import Budget, ExampleBatch, passes_over
from headroles.passes.options import PassOptions, Progress
from headroles.record import PieceCounts, RecordedCorpus, RecordedModel
from headroles.scoring.windows import Window, check_finite, windows_of
from headroles.storage import whole_file
from headroles.studies.alignment.head_sets import NO_LINK, HeadSet
from headroles.studies.alignment.links import Choices, LinkCounts, LinkReader, WordMaps

ReadBatch = Callable[[ExampleBatch, WordMaps], Choices]


@dataclass
class PairReader:
    """Reader of the pairs of a bitext; `open_pairs` makes it.

    After `count_heads`, ``first`` has the pairs that were read first, and ``clusters`` and
    ``records`` are known.
    """

    encoder: LoadedModel
    links: LinkReader
    corpus: PreparedCorpus
    budget: Budget
    report: Progress
    skipped: Counter[str]
    backwards: bool = False
    """Whether the sides of the bitext were exchanged, and links are written in its order."""
    first: list[EncodedExample] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    pieces: PieceCounts | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of layers and heads."""
        return self.links.reader.n_layers, self.links.reader.n_heads

    @property
    def remaining(self) -> tuple[tuple[int, ...], ...]:
        """For each layer, its heads that were not removed from the model."""
        return self.links.reader.remaining

    def count_heads(self) -> LinkCounts:
        """Count the links of all heads and whole layers, in the order of `LinkReader.by_heads`.

        Raises CorpusError if no pair can be read, and TokenizerError if most pieces are unknown.
        """
        n_layers, n_heads = self.shape
        n_pairs, n_columns = self.corpus.record.sentences // 2, len(MEASURES) * n_layers
        counts = LinkCounts.empty(n_pairs, n_columns * (n_heads + 1))
        cut = self.encoder.example_encoder()
        for _, pairs in self._windows(cut, self.skipped):
            for batch, maps, choices in self._choices(pairs, self.links.by_heads):
                counts.put(np.array(batch.indices) + len(self.lengths), maps, choices)
                by_layer = choices.confidence.reshape(len(batch.indices), n_columns, -1)
                check_finite(by_layer, batch.examples, self.encoder)
            if pairs and not self.first:
                check_known_pieces(cut.counts["unknown_pieces"], cut.counts["pieces"], "the bitext")
                self.first = pairs
            self.documents += [pair.document for pair in pairs]
            self.digests += [pair.digest for pair in pairs]
            self.lengths += map(len, pairs)
        if not self.lengths:
            reasons = "; ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            raise CorpusError(
                f"no pair could be read: {reasons or 'the bitext is empty'}; give others"
            )
        self.pieces = PieceCounts(**cut.counts)
        return counts.of_first(len(self.lengths))

    def count_sets(self, sets: Sequence[HeadSet], shown: int, out: Path | None) -> LinkCounts:
        """Count the links of sets of heads; write those of the set at the place ``shown``."""
        counts, n_read = LinkCounts.empty(len(self.lengths), len(sets)), 0
        self.report.start(self.corpus.record.sentences)
        with open_lines(out, self.corpus.record, self.backwards) as write:
            for window, pairs in self._windows(self.encoder.example_encoder(), Counter()):
                chosen: dict[str, IntArray] = {}
                for batch, maps, choices in self._choices(
                    pairs, lambda batch, maps: self.links.by_sets(batch, maps, sets)
                ):
                    counts.put(np.array(batch.indices) + n_read, maps, choices)
                    ids = (pair.id for pair in batch.examples)
                    chosen |= zip(ids, choices.chosen[:, shown], strict=True)
                n_read += len(pairs)
                for example in window.examples:
                    write(example, chosen.get(example.id))
        return counts

    def links_in(self, pairs: Sequence[EncodedExample], heads: HeadSet) -> list[IntArray]:
        """Return the choices (V,) of the target words of some pairs by a set of heads."""
        passes = passes_over(pairs, self.encoder, self.budget)
        chosen: dict[int, IntArray] = {}
        for batch, choices in passes.over_all(
            lambda batch: self.links.by_sets(batch, WordMaps.from_examples(batch.examples), [heads])
        ):
            chosen |= zip(batch.indices, choices.chosen[:, 0], strict=True)
        return [chosen[row] for row in range(len(pairs))]

    @property
    def clusters(self) -> Clusters:
        """Clusters of the pairs that were read."""
        per_word = 1.0 if self.pieces is None else self.pieces.per_word
        return find_clusters(self.documents, self.digests, np.array(self.lengths), per_word)

    @property
    def records(self) -> tuple[RecordedModel, RecordedCorpus]:
        """Records of the model and of the bitext."""
        counts = {"examples": len(self.lengths), "skipped": dict(self.skipped)}
        return (
            structs.replace(self.encoder.description, **self.links.reader.description),
            structs.replace(self.corpus.record, pieces=self.pieces, **counts),
        )

    def _windows(
        self, cut: ExampleEncoder, skipped: Counter[str]
    ) -> Iterator[tuple[Window, list[EncodedExample]]]:
        """Yield the windows of the bitext with their encoded pairs."""
        for window in windows_of(self.corpus, "adjacent"):
            yield window, cut.encode(window.examples, skipped)
            self.report(window.first + window.n_sentences)

    def _choices(
        self, pairs: Sequence[EncodedExample], read: ReadBatch
    ) -> Iterator[tuple[ExampleBatch, WordMaps, Choices]]:
        """Yield batches of pairs with their words, and what was read of them."""

        def of_batch(batch: ExampleBatch) -> tuple[WordMaps, Choices]:
            maps = WordMaps.from_examples(batch.examples)
            return maps, read(batch, maps)

        for batch, read_of in passes_over(pairs, self.encoder, self.budget).over_all(of_batch):
            yield batch, *read_of


@contextmanager
def open_pairs(
    model: Model, corpus: PreparedCorpus, options: PassOptions, backwards: bool
) -> Iterator[PairReader]:
    """Open the cross-attention of a model for the pairs of a bitext; restore the model afterwards.

    ``backwards`` is whether their sides were exchanged.

    Raises errors as `load_encoder`, and ModelSupportError for a model without cross-attention.
    """
    of = options.as_group(TargetOptions, attention=CROSS)
    encoder = load_encoder(model, options, of=of)
    with open_reader(encoder.stack) as reader, open_norms(reader) as norms:
        yield PairReader(
            encoder,
            LinkReader(reader, norms),
            corpus,
            Budget.for_device(encoder.device, options.batch_tokens),
            Progress(options.on_progress, corpus.record.sentences),
            Counter(corpus.skipped),
            backwards,
        )


WriteLine = Callable[[Example, IntArray | None], None]


@contextmanager
def open_lines(out: Path | None, corpus: RecordedCorpus, backwards: bool) -> Iterator[WriteLine]:
    """Open a file of links, a line for each line of a bitext: ``0-0 1-2``, source and target.

    Words are numbered as in the bitext. A pair that was not read has an empty line, and so has a
    line of the bitext without a pair. The function that is yielded takes the pairs in their order,
    with their choices (V,); without a file it does nothing.
    """
    if out is None:
        yield lambda example, chosen: None
        return
    with whole_file(out) as draft, draft.open("w", encoding="ascii") as file:
        yield _Lines(file, corpus, backwards).write


@dataclass
class _Lines:
    """Lines of a file of links; ``place`` is the file of the bitext, and the line in it."""

    file: TextIO
    corpus: RecordedCorpus
    backwards: bool
    place: tuple[str, int] = "", 0

    def write(self, example: Example, chosen: IntArray | None) -> None:
        """Write the line of a pair, after empty lines for those before it that are no pairs."""
        if example.sentences[0].id == f"{example.document}.source":  # which is that of a line
            name, _, number = example.document.rpartition("-")
            before = self.place[1] if name == self.place[0] else 0
            self.place = name, int(number)
            self.file.write("\n" * (int(number) - before - 1))
        first, links = self.corpus.links_from, enumerate(() if chosen is None else chosen)
        pairs = [(source, target) for target, source in links if source != NO_LINK]
        if self.backwards:
            pairs = [(source, target) for target, source in pairs]
        text = " ".join(f"{source + first}-{target + first}" for source, target in sorted(pairs))
        self.file.write(text)
        self.file.write("\n")
