"""``headroles best``: the best head of each relation, on unseen documents."""

from __future__ import annotations

from headroles.cli.app import app
from headroles.cli.arguments import ScoredArgument
from headroles.cli.flags import FolderOptions, command
from headroles.cli.keeping import OptionalOut, keep_or_show, refuse_idle_overwrite
from headroles.testing import UnitOptions


@command(app)
def best(
    scored: ScoredArgument,
    options: UnitOptions,
    output: FolderOptions,
    out: OptionalOut = None,
) -> None:
    """Tell which head finds each relation best, in unseen text."""
    from headroles.scoring import HeadScores
    from headroles.studies import best_heads

    refuse_idle_overwrite(out, output, "table")
    keep_or_show(best_heads(HeadScores.load(scored), options), out, output)
