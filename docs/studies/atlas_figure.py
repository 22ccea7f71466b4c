"""The figure of the atlas: heads of each encoder by step of evidence, undecided ones lighter.

python -m docs.studies.atlas_figure FILE [ATLAS.parquet]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl
import pandas as pd

import headroles as hr
from docs.studies.atlas import rungs_of
from headroles.drawing.style import DARK, legend_below, several_axes
from headroles.models.options import ENCODER
from headroles.studies.classification.ladder import heads_in
from headroles.studies.evidence import STEPS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = (
    "than other words\nat the same distance",
    "than nearer words\nof the same class",
    "than such words\nin between",
)
"""The steps of evidence, as titles."""
LIGHT = "#a9c6e3"


class Bar(NamedTuple):
    """The heads of an encoder and its steps of evidence."""

    encoder: str
    n_heads: int
    counts: Mapping[str, tuple[int, int]]
    """Heads that reach each step, and undecided ones."""

    def shares(self, step: str) -> tuple[float, ...]:
        """Return the heads that reach a step, and those undecided, in % of all heads."""
        return tuple(100 * count / self.n_heads for count in self.counts[step])


def bars_of(atlas: pd.DataFrame) -> list[Bar]:
    """Return the bars of all encoders, those with the largest share at the first step last."""
    bars = []
    for rows, rungs in rungs_of(atlas[atlas["attention"] == ENCODER]):
        counts = {rung.step: (len(rung.heads), len(rung.undecided)) for rung in rungs}
        bars.append(Bar(rows["encoder"].iloc[0], len(heads_in(rows)), counts))
    return sorted(bars, key=lambda bar: bar.shares(STEPS[0]))


def draw_steps(atlas: pd.DataFrame) -> Figure:
    """Draw a panel for each step, with the encoders as bars."""
    bars = bars_of(atlas)
    names = [f"{bar.encoder} ({bar.n_heads})" for bar in bars]
    figure, panels = several_axes(len(STEPS), 3.2, len(STEPS), 1.15, sharey=True, sharex=True)
    for ax, step, title in zip(panels, STEPS, TITLES, strict=True):
        shown, undecided = zip(*(bar.shares(step) for bar in bars), strict=True)
        ax.barh(names, shown, color=DARK, label="shown")
        ax.barh(names, undecided, left=shown, color=LIGHT, label="undecided")
        for place, bar in enumerate(bars):
            heads, others = bar.counts[step]
            ax.text(
                sum(bar.shares(step)) + 1, place, f"{heads} ({others})", va="center", size="small"
            )
        ax.set_title(title, fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel("% of the heads")
    panels[0].set_ylabel("encoder (heads)")
    panels[0].set_xlim(0, 1.2 * max(sum(bar.shares(STEPS[0])) for bar in bars))
    figure.suptitle("Heads that give grammatical partners more attention")
    legend_below(panels[0])
    return figure


def main() -> None:
    """Parse the command line and write the figure; the same atlas gives the same file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("atlas", type=Path, nargs="?")
    options = parser.parse_args()
    atlas = pd.read_parquet(options.atlas) if options.atlas else hr.atlas()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "headroles"}):
        draw_steps(atlas).savefig(options.file, metadata={"Date": None})


if __name__ == "__main__":
    main()
