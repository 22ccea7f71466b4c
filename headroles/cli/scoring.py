"""Commands of scores: make them, join them, test them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from headroles.cli import console, flags
from headroles.cli.studies import fill
from headroles.corpus import CorpusOptions
from headroles.options import Options
from headroles.results.stored import put_into
from headroles.sample import demo_model, sample_treebank
from headroles.scoring.options import PartOptions, ScoreOptions
from headroles.storage import parts_beside, parts_in
from headroles.studies.classification.assignment import (
    ClassifyOptions,
    assign_roles,
    classify_heads,
)
from headroles.studies.classification.role_table import AssignOptions


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

    def work(texts: Any, running: Any, sharing: Any, folder: Path) -> Any:
        made = classify_heads(model, texts, options=running, sharing=sharing)
        return made.scores, made.roles

    imported = [name for name in options.roles or () if is_own(name)]
    _score(model, corpus, out, reading, options, output, resuming, work, roles=imported)


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
    from headroles.scoring.run import open_scoring
    from headroles.scoring.run_notes import RunSummary

    def work(texts: Any, running: Any, sharing: Any, folder: Path) -> Any:
        with open_scoring(model, texts, running, sharing=sharing) as run:
            return RunSummary(run.write(folder))

    _score(model, corpus, out, reading, options, output, resuming, work, part.corpus_part)


def _score(
    model: str,
    corpus: list[Path],
    out: Path,
    reading: CorpusOptions,
    options: ScoreOptions,
    output: flags.FolderOptions,
    resuming: flags.ResumeOptions,
    work: Callable[..., Any],
    part: Any = None,
    roles: Sequence[str] = (),
) -> None:
    """Fill a folder with scores; of several processes the first does, and the others help it."""
    from headroles.corpus import open_corpus
    from headroles.scoring.parts import Sharing, find_team
    from headroles.scoring.run import open_scoring
    from headroles.scoring.scores import HeadScores

    team = find_team()
    if team is not None and team.index > 0:
        sharing = Sharing(parts_in(out), team, part)
        with open_scoring(model, open_corpus(corpus, reading), options, sharing) as run:
            run.assist()
        return

    def scored(running: Any, folder: Any) -> Any:
        texts = console.watched(open_corpus(corpus, reading), running.on_progress)
        return work(texts, running, Sharing(parts_beside(folder), team, part), folder)

    fill(
        out,
        [HeadScores],
        output,
        options,
        scored,
        doing="scoring",
        resume=resuming.resume,
        roles=roles,
    )


def assign(scored: flags.Scored, options: AssignOptions, output: flags.OutputOptions) -> None:
    """Test the scores in DIR again, without the model. Writes the role table there."""
    from headroles.scoring.scores import HeadScores

    with console.working("role table"):
        table = assign_roles(HeadScores.load(scored), options=options)
    put_into(scored, table)
    console.finish(table, output, scored)


def demo(output: flags.FolderOptions, out: flags.Out = Path("headroles-demo")) -> None:
    """Run classify on the bundled treebank and model."""
    classify(
        str(demo_model()),
        [sample_treebank()],
        out,
        CorpusOptions(),
        ClassifyOptions(),
        flags.ReportedOptions(**vars(output), report=True),
        flags.ResumeOptions(resume=True),
    )


def merge(
    parts: Annotated[
        list[Path],
        flags.argument("DIR DIR", "Folders that score --part wrote, all of them."),
    ],
    out: flags.Out,
    output: flags.FolderOptions,
) -> None:
    """Join parts of a corpus that were scored apart."""
    from headroles.scoring.parts import merge_scores
    from headroles.scoring.run_notes import RunSummary
    from headroles.scoring.scores import HeadScores

    def work(_: Any, folder: Any) -> Any:
        return RunSummary(merge_scores(parts, folder))

    fill(out, [HeadScores], output, Options(), work, doing="merging")
