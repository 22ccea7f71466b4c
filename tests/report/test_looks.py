"""Looks of figures: of every kind nothing is cut, marks differ on paper, and pictures stay."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from headroles import RoleTable
from headroles.arrays import FloatArray
from headroles.drawing.style import figure_of, of_width
from headroles.report.pages import draw_result
from headroles.studies.classification.figures import CERTIFIED, draw_role
from headroles.studies.options import FigureOptions
from tests.report.golden import check_result_look

RESULTS = (
    "table shifts plan replication layer_counts importance ablations role_importance curves drops "
    "groups"
).split()
WIDTHS = (3.3, 6.9)
ANSWERS = ("no", "yes", CERTIFIED, "positional", "undecided", "untestable")


def pixels(figure: Figure) -> FloatArray:
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=150)
    return plt.imread(io.BytesIO(page.getvalue()))[..., :3]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", RESULTS)
def test_nothing_is_cut(name: str, width: float, request: pytest.FixtureRequest) -> None:
    """No ink reaches the edge of a figure, at the widths of one column and of two."""
    result = request.getfixturevalue(name)
    for kind in result.figures:
        head = "1-1" if kind == "head" else None
        figure = draw_result(result, FigureOptions(kind=kind, width=width, head=head))
        drawn = pixels(figure)
        assert drawn.shape[1] == pytest.approx(150 * width, abs=1)
        edges = [drawn[0], drawn[-1], drawn[:, 0], drawn[:, -1]]
        assert min(float(edge.min()) for edge in edges) == 1, kind
        assert drawn.min() < 0.5


@pytest.mark.parametrize("width", WIDTHS)
def test_marks_differ_in_grey(table: RoleTable, width: float) -> None:
    """Each answer has a look of its own, in a model of 12 heads and in grey print."""
    rows = table.frame[table.frame["role"] == "local"].iloc[[0] * 12]
    answers = np.resize(ANSWERS, 12)
    rows = rows.assign(
        layer=0,
        head=range(12),
        mean=[3.5] * 11 + [9],
        answer=np.where(answers == CERTIFIED, "yes", answers),
        certified=np.where(answers == CERTIFIED, "yes", "no"),
        assigned=np.isin(answers, ["yes", CERTIFIED]),
    )
    with of_width(width):
        ax = draw_role(replace(table, frame=rows), "local")
    figure = figure_of(ax)
    grey = pixels(figure) @ [0.299, 0.587, 0.114]
    scale = 150 / figure.dpi
    cells = {}
    for head, answer in enumerate(ANSWERS):
        corners = ax.transData.transform([(head - 0.45, 0.45), (head + 0.45, -0.45)]) * scale
        (left, low), (right, high) = corners.round().astype(int)
        cells[answer] = grey[len(grey) - high : len(grey) - low, left:right]
    high, wide = (min(cell.shape[k] for cell in cells.values()) for k in (0, 1))
    for k, one in enumerate(ANSWERS):
        for other in ANSWERS[:k]:
            apart = cells[one][:high, :wide] - cells[other][:high, :wide]
            assert np.sqrt(np.mean(apart**2)) > 0.06, (one, other)
    assert cells["yes"].mean() < cells["no"].mean() - 0.1  # heads with the role are the dark ones


@pytest.mark.parametrize("name", RESULTS)
def test_figures_look_as_they_did(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    check_result_look(request.getfixturevalue(name), tmp_path)
