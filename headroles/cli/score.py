"""``headroles score``: scores without tests, for corpora of any size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import CorpusArgument, ModelArgument, Out
from headroles.cli.flags import FolderOptions, ResumeOptions, command
from headroles.cli.keeping import shared_folder
from headroles.corpus import CorpusOptions
from headroles.scoring import ScoreOptions
from headroles.studies import UntilOptions

if TYPE_CHECKING:
    from headroles.results import Shown


@command(app)
def score(
    model: ModelArgument,
    corpus: CorpusArgument,
    out: Out,
    reading: CorpusOptions,
    options: ScoreOptions,
    until: UntilOptions,
    output: FolderOptions,
    resuming: ResumeOptions,
) -> None:
    """Score the heads of MODEL over CORPUS, without tests. For corpora of any size."""
    from headroles.corpus import open_corpus
    from headroles.scoring import (
        HeadScores,
        assist,
        describe_run,
        facts_of_run,
        open_scoring,
        score_to_folder,
        warnings_of_run,
    )
    from headroles.studies import Stopping
    from headroles.testing import TestOptions

    with shared_folder(out, [HeadScores], output, resuming.resume) as (folder, sharing):
        if sharing.assists:
            assist(model, options, sharing)
            return
        source = open_corpus(corpus, reading)
        with console.progress_bar("scoring") as on_progress:
            options = replace(options, on_progress=on_progress)
            if until.until is not None:
                stopping = Stopping(until, TestOptions())
                provenance = stopping.score_to_folder(model, source, options, folder, sharing)
            else:
                with open_scoring(model, source, options, sharing=sharing) as run:
                    provenance = score_to_folder(run, folder)
    warnings = warnings_of_run(provenance)
    facts = {**facts_of_run(provenance), "warnings": warnings}
    console.finish(out, output.json, facts, _shown(describe_run(provenance), warnings))


def _shown(run: str, warnings: list[str]) -> Iterator[Shown]:
    from headroles.results import Warned

    yield run
    yield from map(Warned, warnings)
