"""In notebooks results show their figure and their table."""

from __future__ import annotations

import base64
import re
from io import BytesIO
from types import SimpleNamespace

import matplotlib.pyplot as plt

from headroles import Classification, HeadScores, RoleComparison, RoleTable, power_analysis
from headroles.results.result import picture
from headroles.studies.classification.figures import draw_heads, draw_role, draw_roles


def pixels(html: str) -> tuple[int, int]:
    """Width and height of the first picture of a page."""
    found = re.search(r'src="data:image/png;base64,([^"]+)"', html)
    assert found
    height, width, _ = plt.imread(BytesIO(base64.b64decode(found[1]))).shape
    return width, height


def test_results_show_figure_and_table(
    table: RoleTable, shifts: RoleComparison, scores: HeadScores
) -> None:
    for result in (table, shifts, power_analysis(scores), Classification(scores, table)):
        html = result._repr_html_()
        assert html.count("<img alt=") == 1
        assert "<table" in html
        assert min(pixels(html)) > 100


def test_a_drawing_that_ends_a_cell_is_shown_once(table: RoleTable) -> None:
    for drawn in (draw_role(table, "local"), draw_heads(table), draw_roles(table)):
        assert min(plt.imread(BytesIO(drawn._repr_png_())).shape[:2]) > 100  # type: ignore[union-attr]
    assert plt.get_fignums() == []  # pyplot, which shows what it knows of, would show it again
    figure, ax = plt.subplots()
    assert draw_role(table, "local", ax) is ax
    plt.close(figure)


def test_results_without_a_figure_have_their_table_alone(table: RoleTable) -> None:
    assert picture(SimpleNamespace(figures={})) == ""
    empty = table.where(role="syntactic:any:to_governor", only_assigned=True)
    assert len(empty) == 0
    assert picture(empty) == ""
