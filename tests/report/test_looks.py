"""Looks of figures: nothing is cut, marks differ on paper, pictures stay; notebooks show them."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

from headroles import Classification, Collaboration, HeadScores, RoleTable
from headroles.arrays import FloatArray
from headroles.drawing.style import figure_of, of_width
from headroles.report.pages import FigureOptions, draw_result
from headroles.studies.classification.figures import CERTIFIED, draw_heads, draw_role, draw_roles

RESULTS = (
    "table shifts plan replication layer_counts importance ablations role_importance curves drops "
    "groups"
).split()
WIDTHS = (3.3, 6.9)
PICTURES = Path(__file__).parent / "pictures"
"""The usual figures of results as they were when people last looked at them."""
MADE_WITH = (3, 11)
"""The matplotlib of the pictures; others place text otherwise."""
MOST = 3.0
"""The largest root mean square of differences, of 255; marks of one kind that are gone make 4.6."""
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
    for kind in result.figure_kinds:
        figure = draw_result(result, FigureOptions(kind=kind, width=width))
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
    """A figure that is meant to look otherwise: look at the picture named here, and copy it."""
    result = request.getfixturevalue(name)
    golden = PICTURES / f"{name}.png"
    now = tmp_path / golden.name
    result.plot().get_figure(root=True).savefig(now, dpi=40)
    assert golden.exists(), f"there is no {golden} yet: look at {now} and copy it there"
    if matplotlib.__version_info__[:2] != MADE_WITH:
        pytest.skip("another matplotlib than that of the pictures")
    assert compare_images(str(golden), str(now), tol=MOST) is None


@pytest.mark.parametrize("name", RESULTS)
def test_notebooks_show_figure_and_table(name: str, request: pytest.FixtureRequest) -> None:
    shown = request.getfixturevalue(name)._repr_html_()
    (png,) = re.findall(r'<img alt="[^"]+" src="data:image/png;base64,([^"]+)"', shown)
    assert min(plt.imread(io.BytesIO(base64.b64decode(png))).shape[:2]) > 100
    assert "<table" in shown


def test_a_drawing_that_ends_a_cell_is_shown_once(table: RoleTable) -> None:
    for drawn in (draw_role(table, "local"), draw_heads(table), draw_roles(table)):
        assert min(plt.imread(io.BytesIO(drawn._repr_png_())).shape[:2]) > 100  # type: ignore[union-attr]
    assert plt.get_fignums() == []  # pyplot, which shows what it knows of, would show it again
    figure, ax = plt.subplots()
    assert draw_role(table, "local", ax) is ax
    plt.close(figure)


def test_classifications_show_their_roles_and_results_without_a_figure_their_table(
    table: RoleTable, scores: HeadScores
) -> None:
    assert Classification(scores, table)._repr_html_() == table._repr_html_()
    empty = table.where(role="syntactic:any:to_governor", only_assigned=True)
    assert len(empty) == 0
    for result in (empty, Collaboration(pd.DataFrame())):
        assert result._picture() == ""
