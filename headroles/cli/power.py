"""``headroles power``: how many examples it takes."""

from __future__ import annotations

from headroles.cli.app import app
from headroles.cli.arguments import ScoredArgument
from headroles.cli.flags import ReportedOptions, command
from headroles.cli.keeping import OptionalOut, keep_or_show, refuse_idle_overwrite
from headroles.studies import PlanOptions


@command(app)
def power(
    scored: ScoredArgument,
    options: PlanOptions,
    output: ReportedOptions,
    out: OptionalOut = None,
) -> None:
    """Tell how many examples it takes to decide each role. The scores in DIR are the pilot."""
    from headroles.scoring import HeadScores
    from headroles.studies import plan

    refuse_idle_overwrite(out, output, "plan")
    keep_or_show(plan(HeadScores.load(scored), options), out, output)
