"""``headroles classify``: score, test, write both tables."""

from __future__ import annotations

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import CorpusArgument, ModelArgument, Out
from headroles.cli.flags import ReportedOptions, command
from headroles.cli.keeping import with_progress
from headroles.corpus import CorpusOptions
from headroles.studies import ClassifyOptions


@command(app)
def classify(
    model: ModelArgument,
    corpus: CorpusArgument,
    out: Out,
    reading: CorpusOptions,
    options: ClassifyOptions,
    output: ReportedOptions,
) -> None:
    """Score the heads of MODEL over CORPUS and test their roles."""
    from headroles.corpus import open_corpus
    from headroles.results import new_folder, write_together
    from headroles.scoring import HeadScores
    from headroles.studies import classify as classify_heads

    source = open_corpus(corpus, reading)
    with new_folder(out, [HeadScores], output.overwrite) as folder:
        result = with_progress("scoring", classify_heads, model, source, options=options)
        write_together(folder, [result.scores, result.roles])
    console.finish_with_report(out, output, result.facts(), result.shown())
