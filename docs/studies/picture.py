"""Draw a role table as an SVG: a grid of layers and heads for each role.

python -m docs.studies.picture DIR FILE.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from headroles import RoleTable

ROLES = {
    "local": "local",
    "delimiter:cls": "delimiter: classifier",
    "syntactic:amod:to_dependent": "amod: noun to adjective",
    "syntactic": "syntactic: to governor",
    "syntactic:beyond_offset": "the same beyond position",
    "syntactic:amod:to_dependent:beyond_offset": "noun to adjective, beyond position",
}
CELL, GAP, LEFT, TOP, PER_ROW = 16, 40, 34, 46, 3
STRONG = (31, 87, 141)


def shade(strength: float) -> str:
    """From white to the strong colour."""
    return "#" + "".join(f"{round(255 + (c - 255) * strength):02x}" for c in STRONG)


def panel(rows: pd.DataFrame, title: str, x: int, y: int) -> list[str]:
    """One role: darker for a higher mean score, outlined where the role is assigned."""
    strongest = max(float(rows["mean"].max()), float(rows["threshold"].max()))
    parts = [f'<text x="{x}" y="{y - 8}" class="title">{title}</text>']
    for row in rows.itertuples():
        left, top = x + row.head * CELL, y + row.layer * CELL
        stroke = 'stroke="#d1495b" stroke-width="2"' if row.assigned else 'stroke="#d8dee6"'
        fill = shade(max(0.0, row.mean / strongest))
        parts.append(
            f'<rect x="{left + 1}" y="{top + 1}" width="{CELL - 3}" height="{CELL - 3}" '
            f'fill="{fill}" {stroke}><title>layer {row.layer} head {row.head}: '
            f"{row.mean:.1f}</title></rect>"
        )
    return parts


def draw(table: RoleTable) -> str:
    """The whole picture."""
    frame = table.frame
    layers, heads = int(frame["layer"].max()) + 1, int(frame["head"].max()) + 1
    width = LEFT + PER_ROW * (heads * CELL + GAP)
    height = TOP + -(-len(ROLES) // PER_ROW) * (layers * CELL + GAP) + 10
    parts = []
    for place, (role, title) in enumerate(ROLES.items()):
        x = LEFT + place % PER_ROW * (heads * CELL + GAP)
        y = TOP + place // PER_ROW * (layers * CELL + GAP)
        parts += panel(frame[frame["role"] == role], title, x, y)
        if place % PER_ROW == 0:
            parts += [
                f'<text x="{LEFT - 16}" y="{y + layer * CELL + 12}">{layer}</text>'
                for layer in range(layers)
            ]
    caption = (
        "rows: layers, columns: heads; the darker, the higher the mean score (per panel); "
        "outlined: the role is assigned"
    )
    parts.append(f'<text x="{LEFT}" y="{height - 8}">{caption}</text>')
    style = "text{font:11px sans-serif;fill:#444}.title{font-size:13px;fill:#111}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
        f'<style>{style}</style><rect width="100%" height="100%" fill="white"/>'
        f"{''.join(parts)}</svg>\n"
    )


def main() -> None:
    """Parse the command line and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    arguments.file.write_text(draw(RoleTable.load(arguments.folder)), encoding="utf-8")


if __name__ == "__main__":
    main()
