"""What the command line shows of a comparison."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import pandas as pd

from headroles.console import (
    TEST_NAMES,
    describe_correction,
    finite,
    new_grid,
    out,
    print_grid,
)

if TYPE_CHECKING:
    from headroles.comparison import RoleShifts

_SHOWN_HEADS = 10
_HAPPENED = ("kept", "gained", "lost", "changed")
_COUNTS = ("kept", "gained", "lost", "absent", "undecided", "untestable", "changed", "equivalent")


def print_shifts(shifts: RoleShifts) -> None:
    """What was compared, then for each checkpoint its roles, layers and heads, then warnings."""
    _print_sides(shifts)
    for checkpoint in shifts.checkpoints:
        if len(shifts.checkpoints) > 1:
            out.print(f"== before to {checkpoint} ==\n", soft_wrap=True)
        _print_roles(shifts, checkpoint)
        _print_agreement(shifts, checkpoint)
        _print_layers(shifts, checkpoint)
        _print_heads(shifts, checkpoint)
    for warning in shifts.warnings:
        out.print(f"warning: {warning}", soft_wrap=True)


def _print_sides(shifts: RoleShifts) -> None:
    record, tests = shifts.provenance, shifts.provenance["options"]
    width = max(map(len, (*record["sets"], "dropped")))
    for name, one in record["sets"].items():
        shape = f"{one['model']['family']}, {one['layers']} layers x {one['heads']} heads"
        out.print(f"{name:<{width}} {one['model']['model']} ({shape})", soft_wrap=True)
    files = record["corpus"]["files"]
    out.print(
        f"{'corpus':<{width}} {', '.join(files[:3])}{', ...' if len(files) > 3 else ''}\n"
        f"{'':<{width}} {record['examples']} examples that all have, {_units(record)}",
        soft_wrap=True,
    )
    if dropped := _dropped(record):
        out.print(f"{'dropped':<{width}} {dropped}", soft_wrap=True)
    out.print(
        f"\npaired {TEST_NAMES[tests['test']]}, before and after (alpha {tests['alpha']:g}, "
        f"{describe_correction(tests)}); equivalent: less than {tests['margin']:g} apart\n"
        f"roles: mean {_excess(record)}score > {tests['threshold']:g}, at either end\n",
        soft_wrap=True,
    )


def _units(record: dict[str, Any]) -> str:
    if record["clustered_by"] == "none":
        return "taken as independent"
    return f"clustered by {record['n_clusters']} documents"


def _dropped(record: dict[str, Any]) -> str:
    """What not all score sets had; empty if that is nothing."""
    parts = []
    for name, n_examples in record["dropped_examples"].items():
        roles = record["dropped_roles"][name]
        found = [f"{n_examples} examples"] if n_examples else []
        found += [f"the roles {', '.join(roles)}"] if roles else []
        if found:
            parts.append(f"of {name} {' and '.join(found)}")
    return "; ".join(parts)


def _excess(record: dict[str, Any]) -> str:
    scored = record["sets"]["before"]["options"].get("score", "bias")
    return "excess " if scored == "excess" else ""


def _print_roles(shifts: RoleShifts, checkpoint: str) -> None:
    """How many heads have each status, and how many means changed or are equivalent.

    Of several checkpoints only roles in which something happened are shown.
    """
    counts = _by_role(shifts, checkpoint)
    shown = [name for name in _COUNTS if name != "untestable" or counts[name].any()]
    rows = counts[shown]
    if len(shifts.checkpoints) > 1:
        rows = rows[rows[list(_HAPPENED)].any(axis=1)]
    grid = new_grid("heads by role", *shown)
    for role, row in zip(rows.index, rows.to_numpy(), strict=True):
        grid.add_row(str(role), *(str(n) if n else "." for n in row))
    grid.add_row("all roles", *map(str, counts[shown].sum()))
    print_grid(grid)


def _by_role(shifts: RoleShifts, checkpoint: str) -> pd.DataFrame:
    """Numbers of heads: a row per role, the columns of ``_COUNTS``."""
    counts = _of(shifts.counts(), checkpoint)
    return counts.groupby("role", sort=False)[list(_COUNTS)].sum()


def _print_agreement(shifts: RoleShifts, checkpoint: str) -> None:
    """How far the role tables agree, for the roles that any head has at either end."""
    agreement = _of(shifts.agreement(), checkpoint)
    rows = agreement[agreement["jaccard"].notna()].to_dict(orient="records")
    if not rows:
        out.print("no head was shown to have any role, before or after\n")
        return
    level = f"{1 - shifts.provenance['options']['alpha']:.0%}"
    grid = new_grid(
        "agreement on who has a role", "before", "after", "both", f"Jaccard ({level})", "kappa"
    )
    for row in rows:
        sizes = (str(row[name]) for name in ("had", "has", "both"))
        grid.add_row(str(row["role"]), *sizes, *(_interval(row, n) for n in ("jaccard", "kappa")))
    print_grid(grid)


def _interval(row: dict[Hashable, Any], name: str) -> str:
    """A number with its interval, as far as they are defined."""
    if math.isnan(row[name]):
        return "-"
    limits = [row[f"{name}_low"], row[f"{name}_high"]]
    shown = "" if any(map(math.isnan, limits)) else f" [{limits[0]:.2f}, {limits[1]:.2f}]"
    return f"{row[name]:.2f}{shown}"


def _print_layers(shifts: RoleShifts, checkpoint: str) -> None:
    layers = _of(shifts.layers(), checkpoint)
    grid = new_grid("layers", *map(str, layers["layer"]))
    grid.add_row("tests that found a change", *(f"{share:.0%}" for share in layers["changed"]))
    grid.add_row("mean absolute effect size", *map(_two_digits, layers["effect_size"]))
    grid.add_row("the same if nothing changed", *map(_two_digits, layers["chance"]))
    for name in ("gained", "lost"):
        grid.add_row(f"roles {name}", *(str(n) if n else "." for n in layers[name]))
    print_grid(grid)


def _print_heads(shifts: RoleShifts, checkpoint: str) -> None:
    """The heads that moved most; those that did not move at all are left out."""
    moved = _of(shifts.moved(_SHOWN_HEADS), checkpoint)
    rows = moved[moved["effect_size"] > 0].to_dict(orient="records")
    if not rows:
        out.print("no head moved\n")
        return
    grid = new_grid("heads that moved most", "effect size", "changes", "most in", "by")
    grid.columns[3].justify = "left"
    for row in rows:
        grid.add_row(
            f"{row['layer']}-{row['head']}",
            _two_digits(row["effect_size"]),
            str(row["changed"]),
            str(row["role"]),
            f"{row['role_difference']:+.2g}",
        )
    print_grid(grid)


def _two_digits(number: float) -> str:
    return "-" if math.isnan(number) else f"{number:.2f}"


def _of(table: pd.DataFrame, checkpoint: str) -> pd.DataFrame:
    return table[table["checkpoint"] == checkpoint].drop(columns="checkpoint")


def shift_summary(shifts: RoleShifts) -> dict[str, Any]:
    """The same for scripts: a JSON object, null for what is not defined."""
    record = shifts.provenance
    kept = ("options", "examples", "clustered_by", "n_clusters")
    return {
        "models": record["model"],
        "corpus": record["corpus"],
        **{key: record[key] for key in (*kept, "dropped_examples", "dropped_roles", "warnings")},
        "checkpoints": {name: _checkpoint_summary(shifts, name) for name in shifts.checkpoints},
    }


def _checkpoint_summary(shifts: RoleShifts, checkpoint: str) -> dict[str, Any]:
    counts = _by_role(shifts, checkpoint)
    return {
        "heads": {name: int(total) for name, total in counts.sum().items()},
        "roles": _records(counts.reset_index()),
        "agreement": _records(_of(shifts.agreement(), checkpoint)),
        "layers": _records(_of(shifts.layers(), checkpoint)),
        "moved": _records(_of(shifts.moved(_SHOWN_HEADS), checkpoint)),
    }


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    rows = table.to_dict(orient="records")
    return [{name: finite(value) for name, value in row.items()} for row in rows]
