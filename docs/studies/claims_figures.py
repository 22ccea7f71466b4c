"""Figures of the claims by encoder, and of the syntactic heads left after each control.

python -m docs.studies.claims_figures docs/data/claims docs

Reads the tables of `docs.studies.claims_over_encoders` and writes claims-matrix.svg and
claims-syntactic.svg; the same tables give the same files.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from docs.studies.claims_over_encoders import AFTER, OF_TWO, STEPS, first_of
from headroles.drawing.style import line_looks, svg_of
from headroles.studies.claims import CLAIMS

LOOKS = {
    "shown": ("#0072b2", "white"),
    "contradicted": ("#d55e00", "white"),
    "undecided": ("#dddddd", "black"),
    "not testable": ("white", "0.5"),
}
"""Colours of a cell and of its text: distinct for the colour-blind, and in grey print."""
SIGNS = {"shown": "✓", "contradicted": "✗", "undecided": "?", "not testable": ""}
WORDS = {
    "threshold": "mean above 3",
    "uncorrected": "uncorrected t",
    "corrected": "corrected",
    "clustered": "by documents",
    "beyond_distance": "beyond distance",
}


def main() -> None:
    """Parse the command line and write both figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    claims = first_of(pd.read_csv(given.tables / "claims.csv"))
    claims = claims[~claims["claim"].isin(OF_TWO)]
    syntactic = first_of(pd.read_csv(given.tables / "syntactic.csv"))
    for name, figure in (
        ("claims-matrix", draw_matrix(claims)),
        ("claims-syntactic", draw_syntactic(syntactic)),
    ):
        (given.out / f"{name}.svg").write_text(svg_of(figure, name), encoding="utf-8")


def draw_matrix(claims: pd.DataFrame) -> Figure:
    """Draw effects with verdicts: claims by encoders, fine-tuned copies at the right."""
    names = [one for one in CLAIMS if one in set(claims["claim"])]
    columns = sorted(dict.fromkeys(claims["encoder"]), key=lambda one: one in AFTER)
    figure = Figure(figsize=(5.5 + 0.62 * len(columns), 1.8 + 0.34 * len(names)))
    ax = figure.subplots()
    for row in claims.itertuples():
        x, y = columns.index(row.encoder), names.index(row.claim)
        back, front = LOOKS[row.verdict]
        ax.fill_between([x - 0.48, x + 0.48], y - 0.46, y + 0.46, color=back, linewidth=0)
        text = "" if pd.isna(row.effect) else f"{SIGNS[row.verdict]} {row.effect:.2f}"
        ax.text(x, y, text or "n.t.", ha="center", va="center", color=front, fontsize=8)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xticks(range(len(columns)), columns, rotation=40, ha="left", fontsize=8)
    ax.xaxis.tick_top()
    labels = [f"{one}   [{published(one)}]" for one in names]
    ax.set_yticks(range(len(names)), labels, fontsize=8)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    figure.subplots_adjust(left=3.9 / figure.get_figwidth(), right=0.93, bottom=0.02, top=0.78)
    return figure


def published(claim: str) -> str:
    """Shorten the published figure of a claim: the first source, without brackets."""
    said = CLAIMS[claim].published
    return "in words" if "in words" in said else re.sub(r" \([^)]*\)", "", said).split(";")[0]


def draw_syntactic(counts: pd.DataFrame) -> Figure:
    """Draw the share of each encoder's heads that are syntactic, control after control."""
    figure = Figure(figsize=(8.5, 4.6), layout="constrained")
    ax = figure.subplots()
    for look, (_, row) in zip(line_looks(), counts.iterrows(), strict=False):
        shares = [row[step] / row["heads"] for step in STEPS]
        ax.plot(range(len(STEPS)), shares, label=row["encoder"], **look)
    ax.set_xticks(range(len(STEPS)), [WORDS[one] for one in STEPS])
    ax.set_ylabel("share of heads called syntactic")
    ax.set_ylim(0)
    ax.grid(axis="y", color="0.9")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


if __name__ == "__main__":
    main()
