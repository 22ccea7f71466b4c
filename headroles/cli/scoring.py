"""Commands of scores: make them, join them, test them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headroles.cli import console, flags
from headroles.cli.studies import write_results
from headroles.corpus import CorpusOptions
from headroles.scoring.options import PartOptions, ScoreOptions
from headroles.studies.classification.options import ClassifyOptions

if TYPE_CHECKING:
    from headroles.corpus import Corpus
    from headroles.scoring.sharing import Sharing


def classify(
    model: flags.Model,
    corpus: flags.Texts,
    out: flags.Out,
    reading: CorpusOptions,
    options: ClassifyOptions,
    output: flags.ReportedOptions,
    resuming: flags.ResumeOptions,
) -> None:
    """Score the heads of MODEL over CORPUS and test their roles."""
    from headroles.roles import is_own
    from headroles.scoring.run import assist
    from headroles.studies.classification.classify import classify_heads

    with _shared(out, corpus, reading, options, output, resuming) as (
        folder,
        texts,
        shown,
        sharing,
    ):
        if sharing.assists:
            assist(model, texts, options, sharing)
            return
        result = classify_heads(model, texts, options=shown, sharing=sharing)
        write_results(folder, result.scores, result.roles)
    imported = [name for name in options.roles or () if is_own(name)]
    console.finish(out, output, result.roles, imported)


def score(
    model: flags.Model,
    corpus: flags.Texts,
    out: flags.Out,
    reading: CorpusOptions,
    part: PartOptions,
    options: ScoreOptions,
    output: flags.FolderOptions,
    resuming: flags.ResumeOptions,
) -> None:
    """Score the heads of MODEL over CORPUS, without tests. For corpora of any size."""
    from headroles.scoring.run import assist, open_scoring, score_to_folder
    from headroles.scoring.run_notes import RunSummary

    with _shared(out, corpus, reading, options, output, resuming) as (
        folder,
        texts,
        shown,
        sharing,
    ):
        sharing = replace(sharing, corpus_part=part.corpus_part)
        if sharing.assists:
            assist(model, texts, options, sharing)
            return
        with open_scoring(model, texts, shown, sharing=sharing) as run:
            record = score_to_folder(run, folder)
    console.finish(out, output, RunSummary(record))


@contextmanager
def _shared(
    out: Path,
    corpus: list[Path],
    reading: CorpusOptions,
    options: Any,
    output: flags.FolderOptions,
    resuming: flags.ResumeOptions,
) -> Iterator[tuple[Path, Corpus, Any, Sharing]]:
    """Claim a folder for scores; yield it with the corpus and options that show progress.

    Of several processes the first fills the folder, and the others work beside it.
    """
    from headroles.corpus import open_corpus
    from headroles.results.stored import new_folder
    from headroles.scoring.scores import HeadScores
    from headroles.scoring.sharing import Sharing, find_team
    from headroles.storage import parts_beside, parts_in

    team = find_team()
    if team is not None and team.index > 0:
        yield out, open_corpus(corpus, reading), options, Sharing(parts_in(out), team)
        return
    with new_folder(out, [HeadScores], output.overwrite, resuming.resume) as folder:
        texts = open_corpus(corpus, reading)
        with console.progress_bar("scoring") as on_progress:
            shown = replace(options, on_progress=on_progress)
            sharing = Sharing(parts_beside(folder), team)
            yield folder, console.watched(texts, on_progress), shown, sharing


def merge(
    parts: Annotated[
        list[Path],
        typer.Argument(metavar="DIR DIR", help="Folders that score --part wrote, all of them."),
    ],
    out: flags.Out,
    output: flags.FolderOptions,
) -> None:
    """Join parts of a corpus that were scored apart."""
    from headroles.results.stored import new_folder
    from headroles.scoring.merging import merge_scores
    from headroles.scoring.run_notes import RunSummary
    from headroles.scoring.scores import HeadScores

    with new_folder(out, [HeadScores], output.overwrite) as folder:
        record = merge_scores(parts, folder)
    console.finish(out, output, RunSummary(record))
