"""Runs of scoring: one number per example, layer, head and role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs

from headroles.corpus import Corpus, PreparedCorpus, as_corpus, prepared
from headroles.encoding import TOO_LONG, EncodedExample
from headroles.errors import CorpusError
from headroles.models.attention.reader import AttentionReader, open_reader
from headroles.models.loading.encoder import Attending, LoadedEncoder, load_encoder
from headroles.options import fields_of, takes
from headroles.passes.loop import Budget
from headroles.passes.options import shown_in_notebooks
from headroles.record import RecordedPart, ScoresRecord
from headroles.roles import (
    BASIC,
    LISTED,
    SCORES,
    Role,
    absent_defaults,
    choose_relations,
    choose_roles,
    refuse_too_far,
    with_other_trees,
)
from headroles.scoring.block_scoring import BlockScorer, Launched
from headroles.scoring.options import HALF, TREES, ScoreOptions
from headroles.scoring.run_notes import advice_on_length
from headroles.scoring.scores import (
    Counts,
    HeadScores,
    ScoredWindow,
    describe_scores,
    write_scores,
)
from headroles.scoring.sharing import ALONE, SavedWindows, Sharing
from headroles.scoring.windows import WINDOW_BYTES, WINDOW_EXAMPLES, Window, one_ahead, windows_of
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
    >>> scores.of_head((0, 1), "nsubj")  # uniform attention has a bias score of 1
    array([1.], dtype=float32)
    """
    with open_scoring(model, corpus, options, sharing=sharing) as run:
        return run.scores()


def score_to_folder(run: ScoringRun, folder: Path) -> ScoresRecord:
    """Write the scores of ``run`` into an existing folder as they come, and return their record.

    Memory does not grow with the number of examples. The files are those of `HeadScores.save`.
    """
    return write_scores(folder, run.blocks(), run.options.precision == HALF, run.record)


@contextmanager
def open_scoring(
    model: Attending,
    corpus: Corpus,
    options: ScoreOptions,
    sharing: Sharing = ALONE,
) -> Iterator[ScoringRun]:
    """Open a scoring run that yields its results block by block.

    The corpus is read, and its relations checked, before the model is loaded. ``sharing`` is that
    of `ScoringRun`. Errors are those of `score_heads`.
    """
    with shown_in_notebooks(options) as options, prepared(as_corpus(corpus)) as ready:
        if ready.record.format == "arcs" and options.arcs == BASIC:
            options = replace(options, arcs=LISTED)
        chosen = _choose(options, ready)
        encoder = load_encoder(model, options)
        with open_reader(encoder.network, options.measure) as reader:
            yield ScoringRun(encoder, reader, ready, options, sharing, chosen)


def assist(model: Attending, corpus: Corpus, options: ScoreOptions, sharing: Sharing) -> None:
    """Score and save this process's windows of a run that the first process finishes.

    Raises StorageError if this process would score differently from that process.
    """
    with open_scoring(model, corpus, options, sharing=sharing) as run:
        run.assist()


_Chosen: TypeAlias = tuple[tuple[str, ...], tuple[Role, ...], int]
"""Relations, roles, and the number of sentences without a tree of another sentence."""


def _choose(options: ScoreOptions, corpus: PreparedCorpus) -> _Chosen:
    """Choose relations and roles. Raises errors where the corpus lacks what they need."""
    relations = choose_relations(options, corpus.record.scheme, corpus.relations, corpus)
    roles = choose_roles(options, relations, SCORES[options.score], corpus)
    controls, alone = with_other_trees(roles if TREES in options.controls else (), corpus)
    return relations, roles + controls, alone


_OPTIONS = frozenset(field.name for field in fields_of(ScoreOptions))
_VERSIONS = ("headroles", "torch", "transformers", "tokenizers", "numpy")


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
    ) -> None:
        """Open a run; ``sharing`` says where windows are saved and which processes score them.

        ``chosen`` are relations and roles, as `_Chosen`, if they are chosen already.
        """
        self._sharing = sharing
        self._encoder = encoder
        self._reader = reader
        self.corpus = corpus
        self.options = options
        self.score = SCORES[options.score]
        self.relations, self.roles, self._alone = chosen or _choose(options, corpus)
        refuse_too_far((role.id for role in self.roles), encoder.max_tokens)
        budget = Budget.of(encoder.device, options.batch_tokens)
        self.batch_tokens = budget.tokens
        self.scorer = BlockScorer(encoder, reader, self.roles, self.score, budget)
        self._pieces = encoder.example_encoder()
        self._opened = self._open_record()
        self._counts = Counts(skipped=Counter(corpus.skipped))
        self._part: RecordedPart | None = None
        self._n_examples = self._n_scores = 0

    def _open_record(self) -> ScoresRecord:
        """Return what is known before anything is scored, all that scores depend on."""
        reader, corpus, options = self._reader, self.corpus, self.options
        return ScoresRecord.now(
            model=structs.replace(self._encoder.description, **reader.description),
            corpus=corpus.record,
            options={
                **{name: one for name, one in options.record().items() if name in _OPTIONS},
                "relations": list(self.relations),
                "device": self._encoder.device.type,
                "batch_tokens": self.batch_tokens,
            },
            **describe_scores(self.roles, self.score, reader.n_layers, reader.n_heads),
            reaches=list(reader.reaches),
            removed_heads=list(reader.removed),
            rounded=HALF if options.precision == HALF else "",
            absent_relations=absent_defaults(options, corpus.record.scheme, self.relations),
            without_other_tree=self._alone,
        )

    def record(self) -> ScoresRecord:
        """Return the record of the run, once its blocks are exhausted."""
        return self._counts.put_into(self._opened, self._n_examples, self._n_scores, self._part)

    def scores(self) -> HeadScores:
        """Return the scores of all examples, with their record."""
        return HeadScores.joined(list(self.blocks()), self.record())

    def blocks(self) -> Iterator[HeadScores]:
        """Yield the scores of all examples in corpus order, a window at a time."""
        counts = Counts()
        sizes: list[int] = []
        for scores, found in self._scored():
            counts.add(found)
            self._counts.add(found)
            sizes.append(scores.n_examples)
            self._n_examples += scores.n_examples
            self._n_scores += scores.record.scores
            if scores.n_examples:
                yield scores
        if self._sharing.corpus_part is not None:
            self._sharing.corpus_part.refuse_empty(sizes)
            self._part = RecordedPart(
                **vars(self._sharing.corpus_part),
                sizes=sizes,
                counts=counts.record(),
                plan=self._settings(),
            )
        self._refuse_nothing()

    def _scored(self) -> Iterator[ScoredWindow]:
        """Yield the result of each window, in corpus order."""
        saved = self._open_windows()
        if self._sharing.team is None:
            yield from self._score(saved, [])
            return
        numbers: list[int] = []
        for _ in self._score(saved, numbers):
            pass
        self._sharing.wait()
        yield from map(saved.read, numbers)

    def assist(self) -> None:
        """Score and save the windows of this process, and wait until all processes have done so."""
        for _ in self._score(self._open_windows(), []):
            pass
        self._sharing.wait()

    def _open_windows(self) -> SavedWindows:
        return self._sharing.open(self._settings, self.scorer.fetch([], Counts()))

    def _score(self, saved: SavedWindows, numbers: list[int]) -> Iterator[ScoredWindow]:
        """Yield the results of the windows of this process, which are saved.

        ``numbers`` are filled with those of all windows of the run. A window is fetched once the
        next one is launched, so that a device need not wait.
        """
        waiting: Callable[[], ScoredWindow] | None = None
        for window, counts, examples in one_ahead(self._encoded(saved, numbers)):
            if examples is None:
                fetch = partial(saved.read, window.number)
            else:
                fetch = partial(
                    self._fetch, window.number, self._launch(window, examples), counts, saved
                )
            if waiting is not None:
                yield waiting()
            waiting = fetch
        if waiting is not None:
            yield waiting()

    def _encoded(
        self, saved: SavedWindows, numbers: list[int]
    ) -> Iterator[tuple[Window, Counts, list[EncodedExample] | None]]:
        """Yield this process's windows with their examples in word pieces, None if saved."""
        for window in windows_of(self.corpus, self.options.pairing, self._n_examples_at_once):
            if not self._sharing.has(window.number):
                continue
            numbers.append(window.number)
            if not self._sharing.scores_here(window.number):
                continue
            counts = Counts()
            if window.number in saved:
                yield window, counts, None
                continue
            self._pieces.counts.clear()
            encoded = self._pieces.encode(window.examples, counts.skipped)
            counts.pieces.update(self._pieces.counts)
            yield window, counts, encoded

    @property
    def _n_examples_at_once(self) -> int:
        """Most examples of a window."""
        bytes_each = 4 * self._reader.n_layers * self._reader.n_heads * len(self.roles)
        return max(1, min(WINDOW_EXAMPLES, WINDOW_BYTES // bytes_each))

    def _launch(self, window: Window, examples: list[EncodedExample]) -> list[Launched]:
        def report(done: int) -> None:
            if self.options.on_progress is not None:
                sentences = window.first + window.n_sentences * done // len(examples)
                self.options.on_progress(sentences, self.corpus.record.sentences)

        return self.scorer.launch(examples, report) if examples else []

    def _fetch(
        self, number: int, launched: list[Launched], counts: Counts, saved: SavedWindows
    ) -> ScoredWindow:
        scores = self.scorer.fetch(launched, counts)
        if self.options.precision == HALF:
            scores = scores.rounded()
        scored = ScoredWindow(scores, counts)
        saved.write(number, scored)
        return scored

    def _settings(self) -> dict[str, Any]:
        """Return all that results of windows depend on.

        Files and folders are among them by content, not by path; a user's own roles by their ids
        alone.
        """
        record, corpus = self._opened, self.corpus
        # the roles describe the file of frequencies by its content, so its path does not matter
        options = {name: one for name, one in record.options.items() if name != "frequencies"}
        return {
            "corpus": {"sentences": corpus.record.sentences, "digest": corpus.content_digest()},
            **self._encoder.identity,
            "options": options,
            "roles": {role.id: plain(role) for role in record.roles},
            "examples of a part": self._n_examples_at_once,
            "versions": {name: record.versions[name] for name in _VERSIONS},
        }

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
                "other `roles` or another corpus"
            )
