"""Streams examples through an encoder and keeps one number per example, layer, head and role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headroles import storage
from headroles.corpus import Corpus, PreparedCorpus, as_corpus, prepared
from headroles.encoding import TOO_LONG, ExampleEncoder
from headroles.errors import CorpusError
from headroles.models import AttentionReader, LoadedEncoder, Model, load_encoder, open_reader
from headroles.options import takes
from headroles.provenance import new_provenance
from headroles.roles import SCORES, absent_defaults, choose_relations, choose_roles
from headroles.scoring.ahead import one_ahead
from headroles.scoring.batches import tokens_for
from headroles.scoring.block_scoring import BlockScorer, LaunchedBlock, PlannedBlock
from headroles.scoring.blocks import Counts, Part, ScoreBlock
from headroles.scoring.notebooks import shown_in_notebooks
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run_notes import cure_of_length
from headroles.scoring.scores import HeadScores, describe_scores
from headroles.scoring.tables import ScoreWriter
from headroles.scoring.windows import WINDOW_EXAMPLES, Window, windows_of


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
        self._pieces = ExampleEncoder(
            encoder.tokenizer, encoder.max_tokens, encoder.takes_token_types
        )
        self.score = SCORES[options.score]
        self.relations = choose_relations(options, corpus.scheme, corpus.relations, corpus)
        self.roles = choose_roles(options, self.relations, self.score, corpus)
        self.batch_tokens = tokens_for(encoder.device, options.batch_tokens)
        self._scorer = BlockScorer(encoder, reader, self.roles, self.score, self.batch_tokens)
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

    def blocks(self, n_examples: int = WINDOW_EXAMPLES) -> Iterator[ScoreBlock]:
        """Scores of all examples in corpus order, those of at most ``n_examples`` at a time."""
        counts = Counts(skipped=Counter(self._corpus.skipped))
        n_scored = n_scores = 0
        for window, part in self._parts(n_examples):
            self.sentences_done += window.n_sentences
            counts.add(part.counts)
            if part.block is not None:
                n_scored += len(part.block.ids)
                n_scores += int(np.count_nonzero(~np.isnan(part.block.values)))
                yield part.block
            if self._is_stopped:
                break
        self._close_provenance(n_scored, n_scores, counts)

    def _parts(self, n_examples: int) -> Iterator[tuple[Window, Part]]:
        """Windows and what became of them.

        While one is computed the next is prepared, and it is fetched when that one is launched.
        """
        waiting: tuple[Window, Counts, LaunchedBlock | None] | None = None
        launched_sentences = 0
        for window, counts, planned in one_ahead(self._planned(n_examples)):
            launched = None
            if planned is not None:
                report = partial(
                    self._report, launched_sentences, window.n_sentences, len(planned.examples)
                )
                launched = self._scorer.launch(planned, report)
            launched_sentences += window.n_sentences
            if waiting is not None:
                yield self._fetched(*waiting)
            waiting = window, counts, launched
        if waiting is not None:
            yield self._fetched(*waiting)

    def _fetched(
        self, window: Window, counts: Counts, launched: LaunchedBlock | None
    ) -> tuple[Window, Part]:
        block = None if launched is None else self._scorer.fetch(launched, counts)
        return window, Part(block, counts)

    def _planned(self, n_examples: int) -> Iterator[tuple[Window, Counts, PlannedBlock | None]]:
        """Windows, what was left out of them, and their batches; None without any example."""
        for window, examples in windows_of(self._corpus, self._options.pairing, n_examples):
            counts = Counts()
            self._pieces.counts.clear()
            encoded = self._pieces.encode(examples, counts.skipped)
            counts.pieces.update(self._pieces.counts)
            yield window, counts, self._scorer.plan(encoded) if encoded else None

    def _close_provenance(self, n_scored: int, n_scores: int, counts: Counts) -> None:
        if not n_scored:
            raise CorpusError(
                "no example could be scored: "
                + "; ".join(f"{count} {reason}" for reason, count in counts.skipped.items())
                + (cure_of_length(self.provenance) if counts.skipped[TOO_LONG] else "")
            )
        self.provenance |= {
            "examples": n_scored,
            "scores": n_scores,
            "skipped": dict(counts.skipped),
            "pieces": dict(counts.pieces),
            "controls": dict(counts.controls),
        }

    def _report(self, before: int, sentences: int, examples: int, done: int) -> None:
        """Tell of ``done`` of the ``examples`` that a window of so many ``sentences`` made."""
        if self._options.on_progress is not None:
            done_so_far = before + sentences * done // examples
            self._options.on_progress(done_so_far, self._corpus.n_sentences)
