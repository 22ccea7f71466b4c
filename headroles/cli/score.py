"""``headroles score``: scores without tests, for corpora of any size."""

from __future__ import annotations

from dataclasses import replace

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import CorpusArgument, ModelArgument, Out
from headroles.cli.flags import FolderOptions, ResumeOptions, command
from headroles.cli.keeping import finish_scoring, shared_folder
from headroles.corpus import CorpusOptions
from headroles.scoring.options import PartOptions, ScoreOptions
from headroles.studies.classification.options import UntilOptions


@command(app)
def score(
    model: ModelArgument,
    corpus: CorpusArgument,
    out: Out,
    reading: CorpusOptions,
    part: PartOptions,
    options: ScoreOptions,
    until: UntilOptions,
    output: FolderOptions,
    resuming: ResumeOptions,
) -> None:
    """Score the heads of MODEL over CORPUS, without tests. For corpora of any size."""
    from headroles.corpus import open_corpus
    from headroles.scoring.run import assist, open_scoring, score_to_folder
    from headroles.scoring.scores import HeadScores
    from headroles.studies.classification.stopping import Stopping
    from headroles.testing.options import TestOptions

    with shared_folder(out, [HeadScores], output, resuming.resume) as (folder, sharing):
        sharing = replace(sharing, part=part.corpus_part)
        if sharing.assists:
            assist(model, options, sharing)
            return
        with console.progress_bar("scoring") as on_progress:
            source = console.watched(open_corpus(corpus, reading), on_progress)
            options = replace(options, on_progress=on_progress)
            if until.until is not None:
                stopping = Stopping(until, TestOptions())
                record = stopping.score_to_folder(model, source, options, folder, sharing)
            else:
                with open_scoring(model, source, options, sharing=sharing) as run:
                    record = score_to_folder(run, folder)
    finish_scoring(out, output, record)
