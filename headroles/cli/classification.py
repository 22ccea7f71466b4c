"""Commands of classification: score heads, test their roles."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.flags import (
    CorpusArgument,
    FolderOptions,
    ModelArgument,
    Out,
    OutputOptions,
    ReportedOptions,
    ResumeOptions,
    ScoredArgument,
)
from headroles.cli.running import shared_folder, with_progress
from headroles.corpus import CorpusOptions
from headroles.scoring.options import PartOptions, ScoreOptions
from headroles.studies.classification.options import AssignOptions, ClassifyOptions


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
    from headroles.scoring.run import assist
    from headroles.scoring.scores import HeadScores
    from headroles.studies.classification.classify import classify_heads

    with shared_folder(out, [HeadScores], output, resuming.resume) as (folder, sharing):
        source = open_corpus(corpus, reading)
        if sharing.assists:
            assist(model, source, options, sharing)
            return
        work = partial(classify_heads, sharing=sharing)
        result = with_progress("scoring", work, model, source, options=options)
        write_together(folder, [result.scores, result.roles])
    imported = [name for name in options.roles or () if is_own(name)]
    console.finish(out, output, result, imported)


def score(
    model: ModelArgument,
    corpus: CorpusArgument,
    out: Out,
    reading: CorpusOptions,
    part: PartOptions,
    options: ScoreOptions,
    output: FolderOptions,
    resuming: ResumeOptions,
) -> None:
    """Score the heads of MODEL over CORPUS, without tests. For corpora of any size."""
    from headroles.corpus import open_corpus
    from headroles.scoring.run import assist, open_scoring, score_to_folder
    from headroles.scoring.run_notes import RunSummary
    from headroles.scoring.scores import HeadScores

    with shared_folder(out, [HeadScores], output, resuming.resume) as (folder, sharing):
        sharing = replace(sharing, corpus_part=part.corpus_part)
        source = open_corpus(corpus, reading)
        if sharing.assists:
            assist(model, source, options, sharing)
            return
        with console.progress_bar("scoring") as on_progress:
            source = console.watched(source, on_progress)
            options = replace(options, on_progress=on_progress)
            with open_scoring(model, source, options, sharing=sharing) as run:
                record = score_to_folder(run, folder)
    console.finish(out, output, RunSummary(record))


def merge(
    parts: Annotated[
        list[Path],
        typer.Argument(metavar="DIR DIR", help="Folders that score --part wrote, all of them."),
    ],
    out: Out,
    output: FolderOptions,
) -> None:
    """Join parts of a corpus that were scored apart."""
    from headroles.results.stored import new_folder
    from headroles.scoring.merging import merge_scores
    from headroles.scoring.run_notes import RunSummary
    from headroles.scoring.scores import HeadScores

    with new_folder(out, [HeadScores], output.overwrite) as folder:
        record = merge_scores(parts, folder)
    console.finish(out, output, RunSummary(record))


def assign(scored: ScoredArgument, options: AssignOptions, output: OutputOptions) -> None:
    """Test the scores in DIR again, without the model. Writes the role table there."""
    from headroles.options import DEFAULT
    from headroles.results.stored import put_into
    from headroles.scoring.scores import HeadScores
    from headroles.studies.classification.assignment import assign_roles

    scores = HeadScores.load(scored)
    with console.working("testing"):
        table = assign_roles(scores, options)
    if options.preset != scores.record.options.get("preset", DEFAULT):
        console.warn("the scores were not made with this preset: only the tests follow it")
    put_into(scored, table)
    console.finish(scored, output, table)
