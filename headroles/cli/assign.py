"""``headroles assign``: test stored scores again."""

from __future__ import annotations

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ScoredArgument
from headroles.cli.flags import OutputOptions, command
from headroles.studies.classification.options import AssignOptions


@command(app)
def assign(scored: ScoredArgument, options: AssignOptions, output: OutputOptions) -> None:
    """Test the scores in DIR again, without the model. Writes the role table there."""
    from headroles.presets import DEFAULT
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
