"""RoleShifts: the tests of all differences, their views, and their files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from headroles import storage
from headroles.comparison.answers import STATUSES
from headroles.comparison.shifts import COLUMNS
from headroles.comparison.summaries import (
    count_answers,
    find_moved_heads,
    measure_agreement,
    summarise_layers,
)
from headroles.errors import StorageError, UsageError
from headroles.export import export_frame, noted_provenance
from headroles.storage import RUN_FILE, SCORES_FILE, SHIFTS_CSV, SHIFTS_FILE

VIEWS = ("long", "counts", "layers", "agreement", "moved")


@dataclass(frozen=True, repr=False)
class RoleShifts:
    """What changed in which heads: a paired test for every checkpoint, role, layer and head.

    ``frame`` has the columns of ``COLUMNS``, ordered by checkpoint, role, layer and head; every
    checkpoint is compared with the scores before. Means, differences, their deviations, errors and
    intervals, and the margin, are in units of the score; what is not defined is NaN.

    ``changed`` says that the mean is not what it was, ``equivalent`` that it moved by less than
    the margin, ``change`` what follows from the two (`describe_change`), and ``status`` what
    became of the role (`role_status`).
    """

    frame: pd.DataFrame
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Names of the score sets after, in the order of the table."""
        return tuple(dict.fromkeys(self.frame["checkpoint"]))

    @property
    def roles(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return tuple(dict.fromkeys(self.frame["role"]))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before relying on the tests: sentences for people."""
        return tuple(self.provenance.get("warnings", ()))

    def with_status(self, status: str) -> pd.DataFrame:
        """The rows with a status, such as ``"gained"``, largest standardised difference first.

        Raises UsageError for anything that is not one of ``STATUSES``.
        """
        if status not in STATUSES:
            raise UsageError(f"the status is {status!r}; it must be one of {', '.join(STATUSES)}")
        rows = self.frame[self.frame["status"] == status]
        return rows.sort_values("effect_size", key=abs, ascending=False, kind="stable")

    def counts(self) -> pd.DataFrame:
        """Heads by status for each checkpoint, role and layer, as `count_answers` does."""
        return count_answers(self.frame)

    def layers(self) -> pd.DataFrame:
        """How far each layer moved, as `summarise_layers` does."""
        return summarise_layers(self.frame)

    def agreement(self) -> pd.DataFrame:
        """How far the role tables before and after agree, as `measure_agreement` does."""
        return measure_agreement(self.frame, self.provenance["options"]["alpha"])

    def moved(self, n: int = 10) -> pd.DataFrame:
        """The ``n`` heads of each checkpoint that moved most, as `find_moved_heads` does."""
        return find_moved_heads(self.frame, n)

    def view(self, name: str) -> pd.DataFrame:
        """One of the tables of ``VIEWS``; ``"long"`` is all tests. UsageError for another name."""
        if name not in VIEWS:
            raise UsageError(f"the view is {name!r}; it must be one of {', '.join(VIEWS)}")
        table: pd.DataFrame = self.frame if name == "long" else getattr(self, name)()
        return table

    def export(self, fmt: str, view: str = "long") -> bytes:
        """A view as csv, parquet, json, markdown, latex or html; UTF-8 where it is text.

        Raises UsageError for another format or view.
        """
        return export_frame(self.view(view), fmt, self.provenance)

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write ``shifts.csv``, ``shifts.parquet`` and ``run.json`` into ``folder``.

        Raises StorageError if the folder holds files already and ``overwrite`` is not set, and if
        it holds scores, which cost more than a comparison: they are never replaced by one.
        """
        _refuse_scores(folder)
        with storage.result_folder(folder, overwrite) as staging:
            for name, fmt in ((SHIFTS_CSV, "csv"), (SHIFTS_FILE, "parquet")):
                storage.write_bytes(staging / name, self.export(fmt))
            storage.write_json(staging / RUN_FILE, self.provenance)
        return Path(folder)

    @classmethod
    def load(cls, folder: str | Path) -> RoleShifts:
        """Read back what `save` wrote. Raises StorageError where that is not possible."""
        folder = Path(folder)
        provenance = storage.read_json(folder / RUN_FILE)
        if not (folder / SHIFTS_FILE).is_file() and (folder / SCORES_FILE).is_file():
            raise StorageError(
                f"{folder} holds the scores of one model; compare them with those of another"
            )
        table = storage.read_table(folder / SHIFTS_FILE)
        noted = noted_provenance(table)
        if set(table.column_names) != set(COLUMNS) or noted != provenance:
            raise StorageError(
                f"{folder / SHIFTS_FILE} does not belong to {RUN_FILE} beside it, or comes from "
                "another version; compare again"
            )
        return cls(table.to_pandas(), provenance)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        moves = self._moves()
        return self._headline() + ("" if moves.empty else f"\n{moves.to_string()}")

    def _repr_html_(self) -> str:
        moves = self._moves()
        return f"<p>{self._headline()}</p>" + ("" if moves.empty else str(moves.to_html()))

    def _headline(self) -> str:
        frame = self.frame
        found = {
            "changed": int(frame["changed"].sum()),
            "equivalent": int(frame["equivalent"].sum()),
            **{name: int((frame["status"] == name).sum()) for name in ("gained", "lost")},
        }
        shown = ", ".join(f"{count} {name}" for name, count in found.items())
        n = len(self.checkpoints)
        where = "" if n == 1 else f" at {n} checkpoints"
        return f"RoleShifts({len(frame)} tests{where}: {shown}; heads gained and lost per layer)"

    def _moves(self) -> pd.DataFrame:
        """Heads gained and lost: a row per checkpoint and role with some, a column per layer."""
        counts = self.counts()
        cells = counts.assign(
            cell=[
                " ".join(f"{sign}{n}" for sign, n in (("+", gained), ("-", lost)) if n)
                for gained, lost in zip(counts["gained"], counts["lost"], strict=True)
            ]
        )
        wide = cells.pivot_table(
            index=["checkpoint", "role"],
            columns="layer",
            values="cell",
            aggfunc="first",
            fill_value="",
            sort=False,
        ).rename_axis(columns=None)
        return wide[(wide != "").any(axis=1)]


def check_comparison_folder(folder: str | Path, overwrite: bool = False) -> None:
    """Raise StorageError if `RoleShifts.save` would refuse ``folder``: to ask before long work."""
    _refuse_scores(folder)
    storage.check_result_folder(folder, overwrite)


def _refuse_scores(folder: str | Path) -> None:
    if (Path(folder) / SCORES_FILE).exists():
        raise StorageError(
            f"{folder} holds scores, which a comparison would replace; name another folder for it"
        )
