"""The picture of the README: some roles of a table, by layer and head.

python -m docs.studies.picture DIR FILE.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

from headroles import RoleTable
from headroles.studies.classification.figures import draw_roles

ROLES = (
    "local",
    "delimiter:cls",
    "block:ratio",
    "syntactic:nsubj/content:to_governor",
    "syntactic:nsubj/function:to_governor",
    "syntactic:obj/content:to_governor",
    "syntactic:obj/content:to_dependent",
    "syntactic:amod:to_governor",
)


def draw(table: RoleTable, file: Path) -> None:
    """Write the picture; the same table gives the same file."""
    figure = draw_roles(table, ROLES)
    for ax in figure.axes:  # cells as pixels: a tenth of the file
        ax.collections[0].set_rasterized(True)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "headroles"}):
        figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Parse the command line and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    draw(RoleTable.load(arguments.folder), arguments.file)


if __name__ == "__main__":
    main()
