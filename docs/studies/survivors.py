"""Roles of the heads that remain after pruning.

python -m docs.studies.survivors --models FOLDER ... --roles-from DIR [--permutations 9999]

Reads what `headroles prune` or `headroles gate` recorded in each folder, and the roles that
`headroles classify` found in the model before. The table has for every role how many of its heads
remain, and their share less the mean of their layers, tested by permuting heads within layers, with
the correction of Benjamini and Hochberg over the roles of a folder. Layers that lose all heads or
none do not count in the test. docs/removing-heads-measured.md discusses the results.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from headroles import RoleTable
from headroles.inference import adjust_p_values, permute_within, rank_test
from headroles.models.heads.remaining import Head


def main() -> None:
    """Parse the command line and print a table for each folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, nargs="+", required=True)
    parser.add_argument("--roles-from", type=Path, required=True)
    parser.add_argument("--permutations", type=int, default=9999)
    given = parser.parse_args()
    table = RoleTable.load(given.roles_from)
    for folder in given.models:
        notes = json.loads((folder / "run.json").read_text("utf-8"))
        removed = {(layer, head) for layer, head in notes["removed"]}
        print(f"{folder}: {len(removed)} heads removed\n")
        made = survivors(table, removed, given.permutations)
        print(made.to_markdown(index=False, disable_numparse=True), end="\n\n")


def survivors(table: RoleTable, removed: set[Head], permutations: int) -> pd.DataFrame:
    """Return a row for each role that some heads have."""
    pairs = table.frame[["layer", "head"]].drop_duplicates().itertuples(index=False)
    heads = [(int(one.layer), int(one.head)) for one in pairs]
    left = [float(head not in removed) for head in heads]
    rows, p_values = [], []
    for role in table.roles:
        having = {*table.heads_with(role)}
        if not having:
            continue
        marks = [head in having for head in heads]
        layers = [layer for layer, _ in heads]
        difference, drawn = permute_within(left, marks, layers, permutations, 0)
        p_value = rank_test(np.abs(drawn)[:, None], abs(difference), 1e-12)[0]
        n_left = len(having - removed)
        rows.append(
            {
                "role": role,
                "heads": str(len(having)),
                "left": f"{n_left} ({n_left / len(having):.0%})",
                "less the mean of their layers": f"{difference:+.2f}",
            }
        )
        p_values.append(p_value)
    adjusted = adjust_p_values(np.array(p_values), "fdr_bh")
    return pd.DataFrame(rows).assign(p=[f"{value:.2g}" for value in adjusted])


if __name__ == "__main__":
    main()
