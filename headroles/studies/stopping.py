"""Scoring that stops when enough is decided: in random order, looked at by tests that allow it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headroles.corpus import Corpus, PreparedCorpus, Sentence, make_examples
from headroles.errors import UsageError
from headroles.inference import NO, YES
from headroles.models import Model
from headroles.roles import SCORES
from headroles.scoring import (
    ALONE,
    HeadScores,
    ScoreBlock,
    ScoreOptions,
    ScoringRun,
    Sharing,
    open_scoring,
    score_to_folder,
)
from headroles.studies.heads import DOCUMENT, EXAMPLE, HeadColumns, hypotheses_of, stopped_tests
from headroles.studies.options import CORPUS, ThresholdOptions, UntilOptions
from headroles.testing import TestOptions, answer, find_p_values

EXAMPLES_PER_LOOK = 64
"""Fewer looks would stop later, more would cost more time in tests."""


@dataclass(frozen=True)
class Stopping:
    """When to stop: a share of the tests, and how they are made."""

    options: UntilOptions
    tests: TestOptions
    against: ThresholdOptions = field(default_factory=ThresholdOptions)

    @property
    def _by_document(self) -> bool:
        """Whether documents are drawn, where there are several.

        Of this corpus examples are: that their order is random is all that is needed, whatever
        documents have in common. Of other text documents are, which are taken to be independent.
        """
        return self.options.until_of != CORPUS and self.tests.clusters != "none"

    def score(
        self, model: Model, corpus: Corpus, options: ScoreOptions, sharing: Sharing = ALONE
    ) -> HeadScores:
        """The scores up to where it stopped."""
        self._refuse_offsets(options)
        _refuse_sharing(sharing)
        units: list[int] = []
        arrange = partial(self._shuffled, options.pairing, units)
        with open_scoring(model, corpus, options, arrange, sharing) as run:
            blocks = self.blocks(run, len(units))
            return HeadScores.from_blocks(blocks, run.roles, run.score, run.provenance)

    def score_to_folder(
        self,
        model: Model,
        corpus: Corpus,
        options: ScoreOptions,
        folder: Path,
        sharing: Sharing = ALONE,
    ) -> dict[str, Any]:
        """Write them into an existing folder. Returns the provenance."""
        self._refuse_offsets(options)
        _refuse_sharing(sharing)
        units: list[int] = []
        arrange = partial(self._shuffled, options.pairing, units)
        with open_scoring(model, corpus, options, arrange, sharing) as run:
            return score_to_folder(run, folder, self.blocks(run, len(units)))

    def _refuse_offsets(self, options: ScoreOptions) -> None:
        """Raise UsageError where thresholds would be found in the scores, and so change by look."""
        if SCORES[options.score].of_first_choice and self.against.threshold is None:
            raise UsageError(
                "first choices are compared with offsets that are found in the scores, and until "
                "(--until) needs thresholds that stand before; classify with a threshold "
                "(--threshold), or leave until out"
            )

    def _shuffled(self, pairing: str, units: list[int], corpus: PreparedCorpus) -> PreparedCorpus:
        """The corpus in random order; ``units`` gets the size of each unit."""
        found = find_units(corpus, pairing, self._by_document)
        order = np.random.default_rng(self.options.shuffle_seed).permutation(len(found))
        units += [len(one) for one in found]
        return replace(corpus, order=tuple(offset for k in order for offset in found[k]))

    def blocks(self, run: ScoringRun, n_units: int) -> Iterator[ScoreBlock]:
        """Blocks of whole documents, until enough is decided.

        What was read of a document that was not read to its end is left out. ``run.provenance`` is
        complete when the blocks are exhausted.
        """
        by_document = self._by_document and run.n_documents > 1
        stopped = {
            **self.options.record(),
            "unit": DOCUMENT if by_document else EXAMPLE,
            "units": n_units,
            "of_sentences": run.n_sentences,
        }
        kept: list[ScoreBlock] = []
        waiting: list[ScoreBlock] = []
        share = 0.0
        for block in run.blocks(EXAMPLES_PER_LOOK):
            whole, rest = _split(_joined([*waiting, block]), by_document)
            waiting = [rest]
            if not whole.ids:
                continue
            kept.append(whole)
            yield whole
            share = self._decided(run, stopped, kept)
            if share >= (self.options.until or 1):
                run.stop()
                waiting = []
        if waiting and waiting[0].ids:  # the end of the corpus is the end of its last document
            kept += waiting
            yield waiting[0]
            share = self._decided(run, stopped, kept)
        stopped |= {"sentences": run.sentences_done, "decided": share}
        run.provenance |= {
            "stopped": stopped,
            "examples": sum(len(block.ids) for block in kept),
            "scores": sum(int(np.count_nonzero(~np.isnan(block.values))) for block in kept),
        }

    def _decided(self, run: ScoringRun, stopped: dict[str, Any], kept: list[ScoreBlock]) -> float:
        """Share of the tests that have an answer by now."""
        scores = HeadScores.from_blocks(kept, run.roles, run.score, {"stopped": stopped})
        if stopped["unit"] == DOCUMENT and len(set(scores.documents)) < 2:
            return 0.0
        asked = stopped_tests(scores, self.tests)
        hypotheses = hypotheses_of(scores, HeadColumns.of(scores), asked, self.against)
        above = find_p_values(hypotheses, asked, "greater")
        below = find_p_values(hypotheses, asked, "less")
        answers = answer(hypotheses, above, below, asked.alpha)
        return float(np.isin(answers, (YES, NO)).mean())


def _refuse_sharing(sharing: Sharing) -> None:
    """Raise UsageError where no process sees the scores of all that comes before."""
    if sharing.team is not None or sharing.part is not None:
        raise UsageError(
            "until (--until) looks at the scores as they come, one after the other: run it as one "
            "process, over the whole corpus"
        )


def find_units(corpus: PreparedCorpus, pairing: str, by_document: bool) -> list[list[int]]:
    """Places of the sentences of each unit: of documents where there are several, else examples."""
    documents: dict[str, list[int]] = {}
    for offset, sentence in corpus.offsets():
        documents.setdefault(sentence.document, []).append(offset)
    if by_document and len(documents) > 1:
        return list(documents.values())
    offsets: list[int] = []

    def read() -> Iterator[Sentence]:
        for offset, sentence in corpus.offsets():
            offsets.append(offset)
            yield sentence

    sizes = [len(example.sentences) for example in make_examples(read(), pairing)]
    ends = np.cumsum(sizes)
    return [offsets[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _joined(blocks: list[ScoreBlock]) -> ScoreBlock:
    parts: dict[str, Any] = {}
    for one in fields(ScoreBlock):
        of_blocks = [getattr(block, one.name) for block in blocks]
        if of_blocks[0] is None:
            parts[one.name] = None
        elif isinstance(of_blocks[0], list):
            parts[one.name] = [value for values in of_blocks for value in values]
        else:
            parts[one.name] = np.concatenate(of_blocks)
    return ScoreBlock(**parts)


def _split(block: ScoreBlock, by_document: bool) -> tuple[ScoreBlock, ScoreBlock]:
    """What is of documents that are read to their end, and the beginning of the last one."""
    end = len(block.ids)
    while by_document and end and block.documents[end - 1] == block.documents[-1]:
        end -= 1
    halves: Iterator[dict[str, Any]] = (
        {
            name: None if value is None else value[part]
            for name, value in ((one.name, getattr(block, one.name)) for one in fields(ScoreBlock))
        }
        for part in (slice(end), slice(end, None))
    )
    whole, rest = (ScoreBlock(**half) for half in halves)
    return whole, rest
