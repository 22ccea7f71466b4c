"""``headroles by-role``: whether heads with a role matter more."""

from __future__ import annotations

from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, Out, TaskArgument
from headroles.cli.flags import ReportedOptions, ResumeOptions, command
from headroles.cli.keeping import fill_resumably
from headroles.studies.removal import RoleImportanceOptions


@command(app)
def by_role(
    model: ModelArgument,
    task: TaskArgument,
    out: Out,
    options: RoleImportanceOptions,
    output: ReportedOptions,
    resuming: ResumeOptions,
) -> None:
    """Test whether heads with a role matter more.

    They are compared with other heads of their layers: by importance, by the loss without each, and
    by the loss without all of them against as many others.
    """
    from headroles.studies.removal import RoleImportance
    from headroles.studies.removal import role_importance as compare

    fill_resumably(
        out, RoleImportance, output, resuming, "roles", compare, model, task, options=options
    )
