"""Scoring in random order that stops when enough is decided, by tests that allow this."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from headroles.arrays import BoolArray
from headroles.corpus import Corpus, PreparedCorpus, Sentence, make_examples
from headroles.errors import UsageError
from headroles.models.loading import Attending
from headroles.record import ScoresRecord, Stopped
from headroles.roles import SCORES, Role, Score
from headroles.scoring.blocks import ScoreBlock
from headroles.scoring.options import AUTO, ScoreOptions
from headroles.scoring.run import ScoringRun, open_scoring, score_to_folder
from headroles.scoring.scores import HeadScores
from headroles.scoring.sharing import ALONE, Sharing
from headroles.studies.classification.options import UntilOptions
from headroles.studies.heads import HeadColumns
from headroles.studies.options import CORPUS, ThresholdOptions
from headroles.studies.stopped import DOCUMENT, EXAMPLE
from headroles.testing.answers import NO, YES, RunningAnswers
from headroles.testing.options import TestOptions

EXAMPLES_PER_LOOK = 64
"""Number of examples between looks: more would stop later, fewer would take more time in tests."""


@dataclass(frozen=True)
class Stopping:
    """Rule of stopping: the share of tests to decide, and their options."""

    options: UntilOptions
    tests: TestOptions
    against: ThresholdOptions = field(default_factory=ThresholdOptions)

    @property
    def by_document(self) -> bool:
        """Whether documents are drawn, where there are several.

        For answers about this corpus, examples are drawn: a random order is all that betting needs,
        even if documents have much in common. For answers about all text, documents are drawn,
        which betting takes as independent.
        """
        return self.options.until_of != CORPUS and self.tests.clusters != "none"

    def score(
        self, model: Attending, corpus: Corpus, options: ScoreOptions, sharing: Sharing = ALONE
    ) -> HeadScores:
        """Return the scores up to the end or the stop."""
        with self._opened(model, corpus, options, sharing) as (run, stopped):
            blocks = list(stopped.blocks())
            return HeadScores.from_blocks(blocks, run.roles, run.score, stopped.record())

    def score_to_folder(
        self,
        model: Attending,
        corpus: Corpus,
        options: ScoreOptions,
        folder: Path,
        sharing: Sharing = ALONE,
    ) -> ScoresRecord:
        """Write these scores into an existing folder, and return their record."""
        with self._opened(model, corpus, options, sharing) as (run, stopped):
            return score_to_folder(run, folder, stopped.blocks(), stopped.record)

    @contextmanager
    def _opened(
        self, model: Attending, corpus: Corpus, options: ScoreOptions, sharing: Sharing
    ) -> Iterator[tuple[ScoringRun, StoppedRun]]:
        self._refuse_offsets(options)
        _refuse_sharing(sharing)
        if options.dtype == AUTO:
            raise UsageError(
                "until (--until) stops where enough is decided, and auto scores some heads again "
                "after that; pass dtype='float32' or 'bfloat16' (--dtype float32)"
            )
        units: list[int] = []
        arrange = partial(self._shuffled, options.pairing, units)
        with open_scoring(model, corpus, options, arrange, sharing) as run:
            yield run, StoppedRun(self, run, len(units))

    def _refuse_offsets(self, options: ScoreOptions) -> None:
        """Raise UsageError for thresholds that are found in the scores, which change by look."""
        if SCORES[options.score].of_first_choice and self.against.threshold is None:
            raise UsageError(
                "first choices are compared with offsets that are found in the scores, and "
                "until (--until) needs fixed thresholds; pass a threshold (--threshold), or "
                "leave until out"
            )

    def _shuffled(self, pairing: str, units: list[int], corpus: PreparedCorpus) -> PreparedCorpus:
        """Return the corpus in random order; ``units`` gets the size of each unit."""
        found = find_units(corpus, pairing, self.by_document)
        order = np.random.default_rng(self.options.shuffle_seed).permutation(len(found))
        units += [len(one) for one in found]
        return replace(corpus, order=tuple(offset for k in order for offset in found[k]))


class StoppedRun:
    """A scoring run over ``n_units`` in random order, which stops when enough is decided."""

    def __init__(self, stopping: Stopping, run: ScoringRun, n_units: int) -> None:
        self._until, self._run, self._n_units = stopping.options, run, n_units
        self._by_document = stopping.by_document and run.n_documents > 1
        self._answers = AnswersSoFar(stopping, run.roles, run.score, n_units, self._by_document)

    def blocks(self) -> Iterator[ScoreBlock]:
        """Yield blocks of whole documents, until enough is decided; skip an unfinished last one."""
        waiting: list[ScoreBlock] = []
        for block in self._run.blocks(EXAMPLES_PER_LOOK):
            whole, waiting = split_off_last(waiting, block) if self._by_document else ([block], [])
            if not whole:
                continue
            yield self._answers.add(ScoreBlock.joined(whole))
            if self._answers.share_decided >= (self._until.until or 1):
                self._run.stop()
                waiting = []
        if waiting:  # the end of the corpus is the end of its last document
            yield self._answers.add(ScoreBlock.joined(waiting))

    def record(self) -> ScoresRecord:
        """Return the record of the run with its stop, once blocks are exhausted."""
        return structs.replace(
            self._run.record(),
            stopped=Stopped(
                **self._until.record(),
                unit=DOCUMENT if self._by_document else EXAMPLE,
                units=self._n_units,
                sentences=self._run.sentences_done,
                of_sentences=self._run.n_sentences,
                decided=self._answers.share_decided,
            ),
            examples=self._answers.n_examples,
            scores=self._answers.n_scores,
        )


class AnswersSoFar:
    """Answers of the blocks so far, and counts of their examples and scores.

    Each block takes the same time, however many came before. Raises UsageError if no role is
    tested.
    """

    def __init__(
        self,
        stopping: Stopping,
        roles: Sequence[Role],
        score: Score,
        n_units: int,
        by_document: bool,
    ) -> None:
        self._stopping, self._roles, self._score = stopping, roles, score
        self._n_population = n_units if stopping.options.until_of == CORPUS else None
        self._by_document = by_document
        self._tested = tuple(role for role in roles if role.is_tested)
        self._answers: RunningAnswers | None = None
        self._is_there: BoolArray = np.zeros(0, dtype=np.bool_)
        self.n_examples = self.n_scores = 0
        if not self._tested:
            raise UsageError(
                "until (--until) waits for decided roles, and these scores have no role to "
                "test; score roles, or leave until out"
            )

    def add(self, block: ScoreBlock) -> ScoreBlock:
        """Take in a block of whole units. Returns the block."""
        columns = HeadColumns(self._tested, *block.values.shape[1:3])
        values, bounds, clusters = columns.read(
            block, tuple(self._roles), self._score, self._by_document
        )
        assert bounds is not None  # scoring always has them
        if self._answers is None:
            limits = columns.thresholds(self._score, self._stopping.against.threshold)
            self._answers = RunningAnswers(
                limits, columns.places[0], self._stopping.tests, self._n_population
            )
            self._is_there = np.zeros(len(limits), dtype=np.bool_)
        self._answers.add(values, bounds, clusters)
        self._is_there |= ~np.isnan(values).all(axis=0)
        self.n_examples += len(block.ids)
        self.n_scores += block.n_scores
        return block

    def answers(self) -> NDArray[np.str_]:
        """Return the answers for all heads and roles (T,)."""
        return np.zeros(0, dtype=np.str_) if self._answers is None else self._answers.look()

    @property
    def share_decided(self) -> float:
        """The decided share of the heads and roles that any example has."""
        decided = np.isin(self.answers(), (YES, NO))[self._is_there]
        return float(decided.mean()) if len(decided) else 0.0


def split_off_last(
    waiting: list[ScoreBlock], block: ScoreBlock
) -> tuple[list[ScoreBlock], list[ScoreBlock]]:
    """Split blocks into finished documents and the unfinished last one.

    ``waiting`` are the blocks of the unfinished document before ``block``.
    """
    last = block.documents.index(block.documents[-1])
    goes_on = bool(waiting) and waiting[0].documents[0] == block.documents[0]
    rest = block.take(slice(last, None))
    if last == 0 and (goes_on or not waiting):
        return [], [*waiting, rest]
    return [*waiting, block.take(slice(last))], [rest]


def _refuse_sharing(sharing: Sharing) -> None:
    """Raise UsageError for several processes or a part, none of which sees all earlier scores."""
    if sharing.team is not None or sharing.corpus_part is not None:
        raise UsageError(
            "until (--until) looks at the scores one after the other; run it as one "
            "process, over the whole corpus"
        )


def find_units(corpus: PreparedCorpus, pairing: str, by_document: bool) -> list[list[int]]:
    """Return the places of sentences by unit: documents if there are several, else examples."""
    documents: dict[str, list[int]] = {}
    for offset, sentence in corpus.with_places():
        documents.setdefault(sentence.document, []).append(offset)
    if by_document and len(documents) > 1:
        return list(documents.values())
    offsets: list[int] = []

    def read() -> Iterator[Sentence]:
        for offset, sentence in corpus.with_places():
            offsets.append(offset)
            yield sentence

    sizes = [len(example.sentences) for example in make_examples(read(), pairing)]
    ends = np.cumsum(sizes)
    return [offsets[end - size : end] for size, end in zip(sizes, ends, strict=True)]
