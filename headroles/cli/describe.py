"""``headroles describe``: confidence, entropy and distance of every head."""

from __future__ import annotations

from headroles.cli.app import app
from headroles.cli.arguments import ScoredArgument
from headroles.cli.flags import FolderOptions, command
from headroles.cli.keeping import OptionalOut, keep_or_show, refuse_idle_overwrite
from headroles.testing import UnitOptions


@command(app)
def describe(
    scored: ScoredArgument,
    options: UnitOptions,
    output: FolderOptions,
    out: OptionalOut = None,
) -> None:
    """Describe heads by confidence, entropy and distance."""
    from headroles.scoring import HeadScores
    from headroles.studies import describe as describe_heads

    refuse_idle_overwrite(out, output, "table")
    keep_or_show(describe_heads(HeadScores.load(scored), options), out, output)
