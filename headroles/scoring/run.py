"""Streams examples through an encoder and keeps one number per example, layer, head and role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles import storage
from headroles.corpus import (
    Corpus,
    Places,
    PreparedCorpus,
    Skipped,
    as_corpus,
    make_examples,
    prepared,
)
from headroles.encoding import TOO_LONG, EncodedExample, ExampleEncoder
from headroles.errors import CorpusError, ModelError
from headroles.memory import HeldMemory
from headroles.models import AttentionReader, LoadedEncoder, Model, load_encoder, open_reader
from headroles.options import takes
from headroles.provenance import new_provenance
from headroles.roles import (
    OFFSETS,
    SCORES,
    Batch,
    Plan,
    Scope,
    absent_defaults,
    bounds_of,
    choose_relations,
    choose_roles,
    plan_roles,
)
from headroles.scoring.batches import batches_by_length, collate
from headroles.scoring.layer import on_device, read_scores
from headroles.scoring.notebooks import shown_in_notebooks
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run_notes import cure_of_length
from headroles.scoring.scores import HeadScores, ScoreBlock, ScoreWriter, describe_scores

# Examples that are sorted by length together: enough for batches of about equal length, few enough
# that a small corpus needs as much memory as a large one.
WINDOW_EXAMPLES = 192
_MEMORY_SLACK = 64 * 2**20  # what is given back has to be asked for again
_BATCH_TOKENS = {"cpu": 1024, "cuda": 65536, "mps": 8192}


@takes(ScoreOptions)
def score_heads(model: Model, corpus: Corpus, options: ScoreOptions) -> HeadScores:
    """Score every head of an encoder on every role, over every example of a corpus.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode.
        corpus: from `read_conllu`, `read_text`, `read_pairs` or `make_corpus`; or the path of a
            treebank, or a list of spaCy's documents, of triples or of `Sentence`.
        options: keyword arguments, described below.

    Returns:
        The scores, NaN where an example has no score for a role: no arc of the relation, or one
        sentence only (``block``). Examples too long for the model are left out and counted.

    Raises:
        CorpusError: defective input, or a relation that the corpus does not have.
        ModelError, TokenizerError, UsageError: as `load_encoder`.
    """
    return score(model, corpus, options)


def score(model: Model, corpus: Corpus, options: ScoreOptions) -> HeadScores:
    """`score_heads` for callers that have their options together."""
    with open_scoring(model, corpus, options) as run:
        return HeadScores.from_blocks(run.blocks(), run.roles, run.score, run.provenance)


def score_to_folder(
    run: ScoringRun, folder: Path, blocks: Iterator[ScoreBlock] | None = None
) -> dict[str, Any]:
    """Write the scores of ``run`` into an existing folder as they come, and its provenance.

    ``blocks`` are those of the run unless given.

    For corpora of any size: memory does not grow with the number of examples. The files are
    those of `HeadScores.save`. Returns the provenance.
    """
    with ScoreWriter(folder, [role.id for role in run.roles]) as writer:
        for block in blocks or run.blocks():
            writer.write(block)
    files = storage.digests_of(folder, writer.files)
    storage.write_run(folder, run.provenance, {HeadScores.kind: files})
    return run.provenance


@contextmanager
def open_scoring(
    model: Model,
    corpus: Corpus,
    options: ScoreOptions,
    arrange: Callable[[PreparedCorpus], PreparedCorpus] = lambda corpus: corpus,
) -> Iterator[ScoringRun]:
    """A scoring run that gives its results block by block.

    The corpus is read through, and its relations checked, before the model is loaded; ``arrange``
    may put its sentences into another order. Errors are those of `score_heads`.
    """
    with shown_in_notebooks(options) as options, prepared(as_corpus(corpus)) as read:
        ready = arrange(read)
        relations = choose_relations(options, ready.scheme, ready.relations, ready)
        choose_roles(options, relations, SCORES[options.score], ready)
        encoder = load_encoder(model, options)
        with open_reader(encoder.model, options.measure) as reader:
            yield ScoringRun(encoder, reader, ready, options)


class ScoringRun:
    """One encoder over one corpus. ``provenance`` is complete when the blocks are exhausted."""

    def __init__(
        self,
        encoder: LoadedEncoder,
        reader: AttentionReader,
        corpus: PreparedCorpus,
        options: ScoreOptions,
    ) -> None:
        self._encoder = encoder
        self._reader = reader
        self._corpus = corpus
        self._options = options
        self._skipped: Skipped = Counter(corpus.skipped)
        self._controls: Counter[str] = Counter()
        self._held_memory = HeldMemory(_MEMORY_SLACK)
        self.score = SCORES[options.score]
        self.relations = choose_relations(options, corpus.scheme, corpus.relations, corpus)
        self.roles = choose_roles(options, self.relations, self.score, corpus)
        self.batch_tokens = options.batch_tokens or _BATCH_TOKENS.get(encoder.device.type, 4096)
        self.provenance = self._open_provenance()
        self.n_sentences, self.n_documents = corpus.n_sentences, corpus.documents
        self.sentences_done = 0
        self._is_stopped = False

    def stop(self) -> None:
        """Let the block that was given last be the last one."""
        self._is_stopped = True

    def _open_provenance(self) -> dict[str, Any]:
        reader, corpus = self._reader, self._corpus
        provenance = new_provenance(
            model={**self._encoder.description, "family": reader.family.name},
            corpus=corpus.describe(),
            options={
                **self._options.part(ScoreOptions).record(),
                "relations": list(self.relations),
                "device": self._encoder.device.type,
                "batch_tokens": self.batch_tokens,
            },
        )
        return {
            **provenance,
            **describe_scores(self.roles, self.score, reader.n_layers, reader.n_heads),
            "reaches": list(reader.reaches),
            "removed_heads": [list(head) for head in reader.removed],
            "absent_relations": absent_defaults(self._options, corpus.scheme, self.relations),
        }

    def blocks(self, window: int = WINDOW_EXAMPLES) -> Iterator[ScoreBlock]:
        """Scores of all examples in corpus order, at most ``window`` examples at a time."""
        encoder = ExampleEncoder(
            self._encoder.tokenizer, self._encoder.max_tokens, self._encoder.takes_token_types
        )
        examples = make_examples(self._corpus, self._options.pairing)
        n_scored = n_scores = 0
        seen = Places()
        while not self._is_stopped and (some := list(islice(examples, window))):
            encoded = encoder.encode(some, self._skipped)
            _refuse_repeats(encoded, seen)
            n_scored += len(encoded)
            sentences = sum(len(example.sentences) for example in some)
            before, self.sentences_done = self.sentences_done, self.sentences_done + sentences
            if encoded:
                report = partial(self._report, before, sentences, len(encoded))
                block = self._score(encoded, report)
                n_scores += int(np.count_nonzero(~np.isnan(block.values)))
                yield block
        self._close_provenance(n_scored, n_scores, dict(encoder.counts))

    def _close_provenance(self, n_scored: int, n_scores: int, pieces: dict[str, int]) -> None:
        if not n_scored:
            raise CorpusError(
                "no example could be scored: "
                + "; ".join(f"{count} {reason}" for reason, count in self._skipped.items())
                + (cure_of_length(self.provenance) if self._skipped[TOO_LONG] else "")
            )
        self.provenance |= {
            "examples": n_scored,
            "scores": n_scores,
            "skipped": dict(self._skipped),
            "pieces": pieces,
            "controls": dict(self._controls),
        }

    def _report(self, before: int, sentences: int, examples: int, done: int) -> None:
        """Tell of ``done`` of the ``examples`` that a window of so many ``sentences`` made."""
        if self._options.on_progress is not None:
            done_so_far = before + sentences * done // examples
            self._options.on_progress(done_so_far, self._corpus.n_sentences)

    def _score(self, examples: list[EncodedExample], report: Callable[[int], None]) -> ScoreBlock:
        shape = (len(examples), self._reader.n_layers, self._reader.n_heads, len(self.roles))
        values = np.empty(shape, dtype=np.float32)
        counts = np.empty((len(examples), len(self.roles)), dtype=np.int64)
        shares = np.full((len(examples), len(self.roles), len(OFFSETS)), np.nan, dtype=np.float32)
        bounds = np.empty((*counts.shape, 2), dtype=np.float32)
        waiting = batches_by_length(examples, self.batch_tokens)[::-1]
        done = 0
        while waiting:
            rows = waiting.pop()
            batch = [examples[row] for row in rows]
            try:
                values[rows], counts[rows], bounds[rows], of_offsets = self._score_batch(batch)
            except torch.OutOfMemoryError:
                self._refuse_single(batch)
                waiting += self._halve(rows)
                continue
            if of_offsets is not None:
                shares[rows] = of_offsets
            done += len(rows)
            report(done)
            self._held_memory.release()
        return ScoreBlock(
            ids=[example.id for example in examples],
            documents=[example.document for example in examples],
            lengths=np.array([len(example) for example in examples]),
            values=values,
            counts=counts,
            digests=[example.digest for example in examples],
            offset_shares=shares if self.score.of_first_choice else None,
            bounds=bounds,
        )

    def _score_batch(
        self, examples: list[EncodedExample]
    ) -> tuple[
        NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32] | None
    ]:
        """Values (B, layers, heads, roles), what is behind them, their bounds, hits of offsets.

        How much is behind them (B, roles), what offsets would hit (B, roles, offsets), and what is
        told to be left out, are those of the layers with the widest reach; values lie between
        bounds (B, roles, 2) in all layers.
        """
        batch, reaches = Batch(examples), self._reader.reaches
        plans = {
            reach: plan_roles(self.roles, Scope(batch, reach, self.score))
            for reach in dict.fromkeys(reaches)
        }
        values = self._read(examples, plans)
        for layer, reach in enumerate(reaches):
            values[:, layer].swapaxes(1, 2)[plans[reach].counts == 0] = np.nan
        widest = max(plans.values(), key=lambda plan: int(plan.counts.sum()))
        self._skipped += widest.skipped
        self._controls += widest.controls
        counts = np.max([plan.counts for plan in plans.values()], axis=0)
        return values, counts, bounds_of(list(plans.values())), widest.offset_shares

    def _read(
        self, examples: Sequence[EncodedExample], plans: dict[int | None, Plan]
    ) -> NDArray[np.float32]:
        """Values (B, layers, heads, roles), meaningless where plans count nothing."""
        device, reaches = self._encoder.device, self._reader.reaches
        moved = {reach: on_device(plan, device) for reach, plan in plans.items()}
        layers: list[Tensor] = []
        self._reader.read(
            collate(examples, device, self._encoder.tokenizer.pad_token_id or 0),
            lambda layer, weights: layers.append(read_scores(weights, moved[reaches[layer]])),
        )
        read = torch.stack(layers, dim=1).cpu().numpy()
        if not np.isfinite(read).all():
            row, layer = np.argwhere(~np.isfinite(read))[0, :2]
            raise ModelError(
                f"attention of layer {layer} is not finite for example {examples[row].id!r}; "
                f"run the model in float32 (it ran in {self._encoder.model.dtype})"
            )
        for layer, head in self._reader.removed:
            read[:, layer, head] = np.nan
        columns = next(iter(plans.values())).columns
        return np.asarray(read if columns == tuple(range(len(columns))) else read[..., columns])

    def _refuse_single(self, examples: list[EncodedExample]) -> None:
        if len(examples) == 1:
            (example,) = examples
            raise ModelError(
                f"memory ran out for the single example {example.id!r} of {len(example)} tokens; "
                "use a device with more memory"
            )

    def _halve(self, rows: list[int]) -> list[list[int]]:
        torch.cuda.empty_cache()
        self.batch_tokens = max(1, self.batch_tokens // 2)
        middle = len(rows) // 2
        return [rows[middle:], rows[:middle]]


def _refuse_repeats(examples: list[EncodedExample], seen: Places) -> None:
    """Raise CorpusError for an id that is in ``seen``; add those of ``examples`` to it."""
    for example in examples:
        place = len(seen)
        if seen.setdefault(example.id, place) != place:
            raise CorpusError(
                f"two examples would be called {example.id!r}; rename their sentences so that "
                "ids joined by + stay different"
            )
