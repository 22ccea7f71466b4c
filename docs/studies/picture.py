"""Draw the picture of the README: some roles of a table, by layer and head.

python -m docs.studies.picture DIR FILE.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

from headroles import RoleTable
from headroles.studies.classification.figures import draw_roles

ROLES = {
    "local": "local: neighbours",
    "delimiter:cls": "delimiter: the classifier's token",
    "block": "block: the own sentence",
    "syntactic": "syntactic: governors",
    "syntactic:nsubj:to_governor": "subjects look at their verbs",
    "syntactic:obj:to_governor": "objects look at their verbs",
    "syntactic:amod:to_dependent": "nouns look at adjectives",
    "syntactic:amod:to_dependent:beyond_offset": "the same, beyond position",
}
SIZE = (12.4, 4.2)
"""Inches; the page of a repository is about as wide."""


def draw(table: RoleTable, file: Path) -> None:
    """Write the picture; the same table gives the same file."""
    figure = draw_roles(table, list(ROLES))
    figure.set_size_inches(*SIZE)
    for ax, title in zip(figure.axes, ROLES.values(), strict=True):
        ax.set_title(title, fontsize=10)
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
