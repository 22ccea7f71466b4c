"""Commands of scores: make them, join them, test them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from headroles.cli import console, flags
from headroles.cli.studies import fill
from headroles.corpus import CorpusOptions, open_corpus
from headroles.options import Options
from headroles.results.stored import Stored, joined_folder, write_together
from headroles.roles import is_own
from headroles.sample import demo_model, sample_treebank
from headroles.scoring.options import PartOptions, ScoreOptions
from headroles.scoring.parts import Sharing, find_team, merge_scores
from headroles.scoring.scores import HeadScores
from headroles.storage import parts_beside, parts_in
from headroles.studies.classification.assignment import (
    ClassifyOptions,
    assign_roles,
    run_classification,
)
from headroles.studies.classification.role_table import AssignOptions, RoleTable


def classify(
    model: flags.Model,
    corpus: flags.Texts,
    out: flags.Out,
    reading: CorpusOptions,
    options: ClassifyOptions,
    output: flags.LongRunOptions,
) -> None:
    """Score the heads of MODEL over CORPUS and test their roles."""

    def work(texts: Any, running: Any, sharing: Any, folder: Path) -> Any:
        classification = run_classification(model, texts, running, sharing)
        return classification.scores, classification.roles

    _score(model, corpus, out, reading, options, output, work, kinds=(RoleTable, HeadScores))


def score(
    model: flags.Model,
    corpus: flags.Texts,
    out: flags.Out,
    reading: CorpusOptions,
    part: PartOptions,
    options: ScoreOptions,
    output: flags.ResumeOptions,
) -> None:
    """Score the heads of MODEL over CORPUS, without tests. For corpora of any size."""

    def work(texts: Any, running: Any, sharing: Any, folder: Path) -> Any:
        from headroles.scoring.run import open_scoring

        with open_scoring(model, texts, running, sharing=sharing) as run:
            return run.write(folder)

    _score(model, corpus, out, reading, options, output, work, part.corpus_part)


def _score(
    model: str,
    corpus: list[Path],
    out: Path,
    reading: CorpusOptions,
    options: ScoreOptions,
    output: flags.ResumeOptions,
    work: Callable[..., Any],
    part: Any = None,
    kinds: Sequence[type[Stored]] = (HeadScores,),
) -> None:
    """Fill a folder with scores; of several processes the first does, and the others help it."""
    team = find_team()
    if team is not None and team.index > 0:
        from headroles.scoring.run import open_scoring

        sharing = Sharing(parts_in(out), team, part)
        with open_scoring(model, open_corpus(corpus, reading), options, sharing) as run:
            run.assist()
        return

    def scored(running: Any, folder: Any) -> Any:
        texts = console.watched(open_corpus(corpus, reading), running.on_progress)
        return work(texts, running, Sharing(parts_beside(folder), team, part), folder)

    own = [*filter(is_own, options.roles or ())]
    fill(out, kinds, output, options, scored, roles=own)


def assign(scored: flags.Scored, options: AssignOptions, output: flags.OutputOptions) -> None:
    """Test the scores in DIR again, without the model. Writes the role table there."""
    scores = HeadScores.load(scored)
    with joined_folder(scored, [RoleTable]) as staging:
        with console.working("role table"):
            table = assign_roles(scores, options=options)
        write_together(staging, [table], scored)
    console.finish(table, output, scored)


def demo(output: flags.FolderOptions, out: flags.Out = Path("headroles-demo")) -> None:
    """Run classify on the bundled treebank and model."""
    reported = flags.LongRunOptions(**vars(output), report=True, resume=True)
    corpus, options = CorpusOptions(), ClassifyOptions()
    classify(str(demo_model()), [sample_treebank()], out, corpus, options, reported)


def merge(
    parts: Annotated[
        list[Path],
        flags.argument("DIR DIR", "Folders that score --part wrote, all of them."),
    ],
    out: flags.Out,
    output: flags.FolderOptions,
) -> None:
    """Join parts of a corpus that were scored apart."""

    def work(_: Any, folder: Any) -> Any:
        return merge_scores(parts, folder)

    fill(out, [HeadScores], output, Options(), work)
