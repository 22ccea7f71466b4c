"""``headroles demo``: the main job on what comes with the package."""

from __future__ import annotations

from pathlib import Path

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import Out
from headroles.cli.flags import FolderOptions, ReportedOptions, command
from headroles.cli.keeping import with_progress


@command(app)
def demo(output: FolderOptions, out: Out = Path("headroles-demo")) -> None:
    """Run classify on the bundled treebank and model."""
    from headroles.corpus import read_conllu
    from headroles.results.stored import new_folder, write_together
    from headroles.sample import demo_model, sample_treebank
    from headroles.scoring.scores import HeadScores
    from headroles.studies.classification.classify import classify_heads
    from headroles.studies.classification.options import ClassifyOptions

    with new_folder(out, [HeadScores], output.overwrite) as folder:
        model = demo_model()
        source = read_conllu(sample_treebank())
        result = with_progress("scoring", classify_heads, model, source, options=ClassifyOptions())
        write_together(folder, [result.scores, result.roles])
    console.finish(out, ReportedOptions(**vars(output), report=True), result)
