"""Tables of results of any kind, from their folders."""

from __future__ import annotations

from pathlib import Path

from headroles import storage
from headroles.errors import StorageError
from headroles.results import Result
from headroles.scoring import HeadScores
from headroles.studies.best_heads import BestHeads
from headroles.studies.collaboration import Collaboration, Redundancy
from headroles.studies.comparison import RoleShifts
from headroles.studies.examples import Examples
from headroles.studies.power_plan import PowerPlan
from headroles.studies.quantities import Quantities
from headroles.studies.removal import Ablations, Importance, RoleImportance
from headroles.studies.replication_tables import LayerCounts, Replication
from headroles.studies.role_table import RoleTable

TABLES: tuple[type[Result], ...] = (
    RoleTable,
    RoleShifts,
    PowerPlan,
    BestHeads,
    Quantities,
    Examples,
    Collaboration,
    Redundancy,
    Replication,
    LayerCounts,
    Importance,
    Ablations,
    RoleImportance,
)
"""Every kind of table that a folder can hold."""


def load_table(folder: str | Path) -> Result:
    """The table of results in ``folder``, whatever kind it is.

    Raises StorageError if there is none, or it cannot be read.
    """
    folder = Path(folder)
    held = storage.read_run(folder).files
    for kind in TABLES:
        if kind.kind in held:
            return kind.load(folder)
    if HeadScores.kind in held:
        raise StorageError(
            f"{folder} holds scores that were not tested yet; run: headroles assign {folder}"
        )
    raise StorageError(f"{folder} holds no table of results that this version knows")
