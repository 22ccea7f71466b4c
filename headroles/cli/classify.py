"""``headroles classify``: score, test, write both tables."""

from __future__ import annotations

from functools import partial

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import CorpusArgument, ModelArgument, Out
from headroles.cli.flags import ReportedOptions, ResumeOptions, command
from headroles.cli.keeping import shared_folder, with_progress
from headroles.corpus import CorpusOptions
from headroles.studies.classification.options import ClassifyOptions


@command(app)
def classify(
    model: ModelArgument,
    corpus: CorpusArgument,
    out: Out,
    reading: CorpusOptions,
    options: ClassifyOptions,
    output: ReportedOptions,
    resuming: ResumeOptions,
) -> None:
    """Score the heads of MODEL over CORPUS and test their roles."""
    from headroles.corpus import open_corpus
    from headroles.results.stored import write_together
    from headroles.roles import is_own
    from headroles.scoring.options import ScoreOptions
    from headroles.scoring.run import assist
    from headroles.scoring.scores import HeadScores
    from headroles.studies.classification.classify import classify_heads

    with shared_folder(out, [HeadScores], output, resuming.resume) as (folder, sharing):
        if sharing.assists:
            assist(model, options.part(ScoreOptions), sharing)
            return
        source = open_corpus(corpus, reading)
        work = partial(classify_heads, sharing=sharing)
        result = with_progress("scoring", work, model, source, options=options)
        write_together(folder, [result.scores, result.roles])
    own = [name for name in options.roles or () if is_own(name)]
    console.finish(out, output, result, own)
