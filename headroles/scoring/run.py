"""Runs of scoring: one number per example, layer, head and role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs

from headroles.corpus import Corpus, PreparedCorpus, as_corpus
from headroles.encoding import TOO_LONG
from headroles.errors import CorpusError, UsageError
from headroles.models.attention import AttentionReader, open_reader
from headroles.models.loading import Attending, LoadedEncoder, load_encoder
from headroles.models.options import FLOAT32
from headroles.options import takes
from headroles.passes.loop import Budget
from headroles.passes.options import shown_in_notebooks
from headroles.record import PartCounts, PieceCounts, RecordedPart, ScoresRecord
from headroles.roles import (
    SCORES,
    Role,
    absent_defaults,
    choose_relations,
    choose_roles,
    refuse_too_far,
)
from headroles.scoring.block_scoring import BlockScorer
from headroles.scoring.blocks import Counts, SavedWindows, ScoreBlock, ScoredWindow
from headroles.scoring.half_precision import EncoderInDtype, SecondPass, choose_dtype
from headroles.scoring.options import AUTO, HALF, ScoreOptions
from headroles.scoring.pipeline import WindowScorer
from headroles.scoring.run_notes import advice_on_length
from headroles.scoring.scores import HeadScores, describe_scores, write_scores
from headroles.scoring.sharing import ALONE, Sharing
from headroles.scoring.windows import WINDOW_EXAMPLES, Window, examples_of, windows_of
from headroles.storage import plain
from headroles.wording import listed


@takes(ScoreOptions)
def score_heads(  # noqa: D417 - sharing is for commands
    model: Attending, corpus: Corpus, options: ScoreOptions, sharing: Sharing = ALONE
) -> HeadScores:
    """Return the scores of every head of an encoder for every role and example of a corpus.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode; or, with a ``tokenizer``, a
            function from the pieces of a batch to attention, as in ``docs/own-attention.md``.
        corpus: from `read_conllu`, `read_text`, `read_pairs` or `make_corpus`; or the path of a
            treebank, or a list of spaCy's documents, of triples or of `Sentence`.
        options: keyword arguments, described below.

    Returns:
        The scores. An example without an arc of the relation, or without a second sentence
        (``block``), has no score for the role: NaN. Examples that are too long for the model are
        skipped and counted.

    Raises:
        CorpusError: defective input, or a relation that the corpus does not have.
        ModelError, TokenizerError, UsageError: as `load_encoder`.

    >>> import numpy as np
    >>> from headroles import SavedAttention, make_corpus
    >>> corpus = make_corpus([(("Dogs", "bark"), (1, -1), ("nsubj", "root"))])
    >>> uniform = np.full((1, 2, 4, 4), 1 / 4)  # one layer of two heads, four pieces
    >>> saved = SavedAttention({"tree-1": uniform}, {"tree-1": [None, 0, 1, None]})
    >>> scores = score_heads(saved, corpus, roles="syntactic", relations="nsubj", pairing="none")
    >>> scores.of_head((0, 1), "syntactic")  # uniform attention has a bias score of 1
    array([1.], dtype=float32)
    """
    with open_scoring(model, corpus, options, sharing=sharing) as run:
        return run.scores()


def score_to_folder(
    run: ScoringRun,
    folder: Path,
    blocks: Iterable[ScoreBlock] | None = None,
    record: Callable[[], ScoresRecord] | None = None,
) -> ScoresRecord:
    """Write the scores of ``run`` into an existing folder as they come, and return their record.

    ``blocks`` default to those of the run, and ``record``, which is called when they are exhausted,
    to its own. Memory does not grow with the number of examples. The files are those of
    `HeadScores.save`.
    """
    ids = [role.id for role in run.roles]
    is_half = run.precision == HALF
    return write_scores(folder, blocks or run.blocks(), ids, is_half, record or run.record)


@contextmanager
def open_scoring(
    model: Attending,
    corpus: Corpus,
    options: ScoreOptions,
    arrange: Callable[[PreparedCorpus], PreparedCorpus] = lambda corpus: corpus,
    sharing: Sharing = ALONE,
    second_pass: SecondPass = lambda _: 0.0,
) -> Iterator[ScoringRun]:
    """Open a scoring run that yields its results block by block.

    The corpus is read, and its relations checked, before the model is loaded; ``arrange`` may
    reorder its sentences. ``sharing`` is that of `ScoringRun`. ``second_pass`` is that of
    `choose_dtype`, which chooses a dtype. Errors are those of `score_heads`.
    """
    _refuse_choices(options, sharing)
    with shown_in_notebooks(options) as options, sharing.prepared(as_corpus(corpus)) as read:
        ready = arrange(read)
        chosen = _choose(options, ready)
        asked = (chosen[1], SCORES[options.score])
        dtype = sharing.known_dtype() if options.dtype == AUTO else None
        in_dtype = choose_dtype(model, ready, options, asked, dtype, second_pass)
        with open_reader(in_dtype.encoder.network, options.measure) as reader:
            yield ScoringRun(in_dtype.encoder, reader, ready, options, sharing, chosen, in_dtype)


def _refuse_choices(options: ScoreOptions, sharing: Sharing) -> None:
    """Raise UsageError where runs that must have one dtype would each choose their own."""
    if options.dtype == AUTO and sharing.corpus_part is not None:
        raise UsageError(
            "each part of a corpus would choose a dtype by itself, and only parts of one dtype "
            "can be merged; pass dtype='float32' or 'bfloat16' (--dtype float32)"
        )


def assist(model: Attending, options: ScoreOptions, sharing: Sharing) -> None:
    """Score the unscored windows of a run that another process opened and will finish.

    Raises StorageError if this process would score differently from that process.
    """
    encoder = None if options.dtype == AUTO else load_encoder(model, options)
    with sharing.find_prepared() as corpus:
        if encoder is None:
            encoder = load_encoder(model, replace(options, dtype=sharing.known_dtype() or FLOAT32))
        with open_reader(encoder.network, options.measure) as reader:
            ScoringRun(encoder, reader, corpus, options, sharing).assist()


_Chosen: TypeAlias = tuple[tuple[str, ...], tuple[Role, ...]]


def _choose(options: ScoreOptions, corpus: PreparedCorpus) -> _Chosen:
    """Choose relations and roles. Raises errors where the corpus lacks what they need."""
    relations = choose_relations(options, corpus.scheme, corpus.relations, corpus)
    return relations, choose_roles(options, relations, SCORES[options.score], corpus)


class ScoringRun:
    """One encoder over one corpus."""

    def __init__(
        self,
        encoder: LoadedEncoder,
        reader: AttentionReader,
        corpus: PreparedCorpus,
        options: ScoreOptions,
        sharing: Sharing = ALONE,
        chosen: _Chosen | None = None,
        in_dtype: EncoderInDtype | None = None,
    ) -> None:
        """Open a run; ``sharing`` says where windows are saved and which processes score them.

        ``chosen`` are relations and roles if they are chosen already. ``in_dtype`` says how the
        dtype of the encoder was chosen, if it was.
        """
        self._sharing = sharing
        self._encoder = encoder
        self._reader = reader
        self.corpus = corpus
        self.options = options
        self._in_dtype = in_dtype or EncoderInDtype(encoder)
        self.score = SCORES[options.score]
        self.relations, self.roles = chosen or _choose(options, corpus)
        refuse_too_far((role.id for role in self.roles), encoder.max_tokens)
        budget = Budget.of(encoder.device, options.batch_tokens)
        self.batch_tokens = budget.tokens
        self.scorer = BlockScorer(encoder, reader, self.roles, self.score, budget)
        self._windows = WindowScorer(
            encoder.example_encoder(),
            self.scorer,
            options.precision == HALF,
            self._report,
        )
        self._opened = self._open_record()
        self.n_sentences, self.n_documents = corpus.n_sentences, corpus.documents
        self.sentences_done = self._reported = 0
        self.precision = options.precision
        self._is_stopped = False
        self._counts = Counts(skipped=Counter(corpus.skipped))
        self._part: RecordedPart | None = None
        self._n_examples = self._n_scores = 0

    def stop(self) -> None:
        """Stop after the block that was yielded last."""
        self._is_stopped = True

    def _open_record(self) -> ScoresRecord:
        """Return what is known before anything is scored, all that scores depend on."""
        reader, corpus, options = self._reader, self.corpus, self.options
        return ScoresRecord.now(
            model=structs.replace(self._encoder.description, **reader.description),
            corpus=corpus.describe(),
            options={
                **options.as_group(ScoreOptions).record(),
                "relations": list(self.relations),
                "device": self._encoder.device.type,
                "batch_tokens": self.batch_tokens,
            },
            **describe_scores(self.roles, self.score, reader.n_layers, reader.n_heads),
            reaches=list(reader.reaches),
            removed_heads=list(reader.removed),
            rounded=HALF if options.precision == HALF else "",
            absent_relations=absent_defaults(options, corpus.scheme, self.relations),
        )

    def record(self) -> ScoresRecord:
        """Return the record of the run, once its blocks are exhausted."""
        counts = self._counts.record()
        return structs.replace(
            self._opened,
            examples=self._n_examples,
            scores=self._n_scores,
            skipped=counts["skipped"],
            controls=counts["controls"],
            pieces=PieceCounts(**counts["pieces"]) if counts["pieces"] else None,
            part=self._part,
            half_precision=self._in_dtype.half,
            chosen_dtype=self._in_dtype.chosen,
        )

    def scores(self) -> HeadScores:
        """Return the scores of all examples, with their record."""
        blocks = list(self.blocks())
        record = self.record()
        return HeadScores.from_blocks(blocks, self.roles, self.score, record, record.scores)

    def blocks(
        self,
        n_examples: int | None = None,
        scored: Iterable[tuple[Window, ScoredWindow]] | None = None,
    ) -> Iterator[ScoreBlock]:
        """Yield the scores of all examples in corpus order, at most ``n_examples`` at a time.

        ``scored`` are the results of all windows if another loop read them.
        """
        n_examples = n_examples or WINDOW_EXAMPLES
        counts = Counts()
        sizes: list[int] = []
        for window, result in scored or self._scored(n_examples):
            self.sentences_done += window.n_sentences
            counts.add(result.counts)
            self._counts.add(result.counts)
            sizes.append(len(result.block.ids) if result.block is not None else 0)
            if result.block is not None:
                self._n_examples += len(result.block.ids)
                self._n_scores += result.block.n_scores
                yield result.block
            if self._is_stopped:
                break
        if self._sharing.corpus_part is not None:
            self._sharing.corpus_part.refuse_empty(sizes)
            self._part = RecordedPart(
                **vars(self._sharing.corpus_part),
                sizes=sizes,
                counts=PartCounts(**counts.record()),
                plan=self._settings(n_examples),
            )
        self._refuse_nothing()

    def _scored(self, n_examples: int) -> Iterator[tuple[Window, ScoredWindow]]:
        """Yield each window with its result, in corpus order."""
        windows = (
            (window, examples)
            for window, examples in windows_of(self.corpus, self.options.pairing, n_examples)
            if self._sharing.has(window.number)
        )
        if self._sharing.team is not None:
            shared = [window for window, _ in windows]
            saved = self._sharing.share(self._settings(n_examples), shared)
            self._score_unclaimed(saved, shared)
            yield from ((window, saved.read(window.number)) for window in shared)
            return
        saved = self._sharing.keep(lambda: self._settings(n_examples))
        yield from self._windows.score(windows, saved)

    def assist(self, n_examples: int | None = None) -> None:
        """Score windows that no process has scored yet, until none is left."""
        saved, windows = self._sharing.join(self._settings(n_examples or WINDOW_EXAMPLES))
        self._score_unclaimed(saved, windows)

    def _score_unclaimed(self, saved: SavedWindows, windows: list[Window]) -> None:
        unclaimed = (
            (window, examples_of(self.corpus, window, self.options.pairing))
            for window in self._sharing.unclaimed(saved, windows)
        )
        for _ in self._windows.score(
            unclaimed, saved, lambda: self._sharing.sentences_done(saved, windows)
        ):
            pass
        self._sharing.wait()

    def _settings(self, n_examples: int) -> dict[str, Any]:
        return settings_of(self._encoder, self.corpus, self._opened, n_examples)

    def _refuse_nothing(self) -> None:
        """Raise CorpusError if there is no example, or none with a score."""
        if not self._n_examples:
            self._sharing.forget()
            skipped = self._counts.skipped
            raise CorpusError(
                "no example could be scored: "
                + "; ".join(f"{count} {reason}" for reason, count in skipped.items())
                + (advice_on_length(self._opened) if skipped[TOO_LONG] else "")
            )
        if not self._n_scores and self._sharing.corpus_part is None:
            self._sharing.forget()
            raise CorpusError(
                f"no example has a score for {listed([role.id for role in self.roles])}; choose "
                "other roles (--roles) or another corpus"
            )

    def _report(self, sentences: int) -> None:
        if self.options.on_progress is not None:
            self._reported = max(self._reported, sentences)  # counts of other processes lag
            self.options.on_progress(self._reported, self.corpus.n_sentences)


_VERSIONS = ("headroles", "torch", "transformers", "tokenizers", "numpy")


def settings_of(
    encoder: LoadedEncoder, corpus: PreparedCorpus, record: ScoresRecord, n_examples: int
) -> dict[str, Any]:
    """Return the settings of a run over windows of ``n_examples``.

    Files and folders are among them by content, not by path; a user's own roles by their ids alone.
    """
    # the roles describe the file of frequencies by its content, so its path does not matter
    options = {name: one for name, one in record.options.items() if name != "frequencies"}
    return {
        "corpus": {"sentences": corpus.n_sentences, "digest": corpus.content_digest()},
        **encoder.identity,
        "options": options,
        "roles": {role.id: plain(role) for role in record.roles},
        "examples of a part": n_examples,
        "versions": {name: record.versions[name] for name in _VERSIONS},
    }
