"""What figures show is what results say; one of them is compared with its picture."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from headroles import HeadScores, RoleComparison, RoleTable
from headroles.drawing.style import BRIGHT, DARK, to_svg
from headroles.errors import UsageError
from headroles.studies.classification.figures import (
    draw_head,
    draw_heads,
    draw_role,
    draw_scores,
)
from headroles.studies.comparison.figures import draw_changes, draw_trajectory
from tests.report.conftest import marked


def test_a_role_has_its_means_and_answers(table: RoleTable) -> None:
    ax = draw_role(table, "local")
    rows = table.where(role="local").frame
    assert np.asarray(ax.collections[0].get_array()).ravel() == pytest.approx(rows["mean"])
    found = marked(ax)
    having = found.get("yes", set()) | found.get("yes, certified", set())
    assert having == set(table.heads_with("local"))
    certified = rows[(rows["answer"] == "yes") & (rows["certified"] == "yes")]
    assert found.get("yes, certified", set()) == set(
        zip(certified["layer"], certified["head"], strict=True)
    )
    assert found["undecided"] == {
        (row.layer, row.head) for row in rows.itertuples() if row.answer == "undecided"
    }


def test_numbers_of_roles(table: RoleTable) -> None:
    """Syntactic and other roles apart, and special tokens in neither."""
    pairs, others = draw_heads(table).axes
    for ax, roles in ((pairs, ["syntactic:any:to_governor"]), (others, ["local"])):
        rows = table.frame[table.frame["role"].isin(roles)]
        counts = rows.groupby(["layer", "head"])["assigned"].sum()
        shown = {
            (int(t.get_position()[1]), int(t.get_position()[0])): int(t.get_text())
            for t in ax.texts
        }
        assert shown == {place: n for place, n in counts.items() if n}
    assert others.get_title().split() == "other roles, special tokens aside".split()


def test_a_head_has_its_intervals(table: RoleTable) -> None:
    ax = draw_head(table, 1, 1)
    rows = table.frame[(table.frame["layer"] == 1) & (table.frame["head"] == 1)]
    (means,) = [line for line in ax.lines if line.get_label() == "yes"]
    assert means.get_xdata() == pytest.approx(rows["mean"][rows["assigned"]])
    bars = ax.collections[-1].get_segments()
    assert [bar[0][0] for bar in bars] == pytest.approx(rows["ci_low"][rows["assigned"]])
    assert [bar[1][0] for bar in bars] == pytest.approx(rows["ci_high"][rows["assigned"]])


def test_scores_are_all_counted(scores: HeadScores) -> None:
    ax = draw_scores(scores, 1, 0, "local")
    assert sum(bar.get_height() for bar in ax.patches) == 40
    mean, threshold = (line.get_xdata()[0] for line in ax.lines)
    assert mean == pytest.approx(scores.values[:, 1, 0, 0].mean())
    assert threshold == 3


def test_arrows_go_from_before_to_after(shifts: RoleComparison) -> None:
    first = shifts.checkpoints[0]
    ax = draw_changes(shifts, "local", first)
    rows = shifts.frame.query("role == 'local' and checkpoint == @first")
    arrows = [text for text in ax.texts if text.arrow_patch is not None]
    arrows.sort(key=lambda arrow: arrow.xy[1])
    assert [arrow.xy[0] for arrow in arrows] == pytest.approx(rows["mean_after"].tolist())
    assert [arrow.xyann[0] for arrow in arrows] == pytest.approx(rows["mean_before"].tolist())
    colors = [to_rgb(arrow.arrow_patch.get_edgecolor()) for arrow in arrows]
    assert [color == to_rgb(DARK) for color in colors] == list(rows["status"] == "gained")
    assert [color == to_rgb(BRIGHT) for color in colors] == list(rows["status"] == "lost")
    assert {"gained", "lost"} <= set(rows["status"])


def test_a_trajectory_has_all_checkpoints(shifts: RoleComparison) -> None:
    ax = draw_trajectory(shifts, "local", most=1)
    before, there, back = ax.lines[0].get_ydata()
    assert back == pytest.approx(before)
    assert abs(there - before) > 3


def test_what_is_not_there_is_refused(
    table: RoleTable, shifts: RoleComparison, scores: HeadScores
) -> None:
    with pytest.raises(UsageError, match="no role 'locl'; did you mean 'local'"):
        draw_role(table, "locl")
    with pytest.raises(UsageError, match="no means of head 7-0"):
        draw_head(table, 7, 0)
    with pytest.raises(UsageError, match="the head is 3; it must be 0 to 2"):
        draw_scores(scores, 0, 3, "local")
    with pytest.raises(UsageError, match="no checkpoint"):
        draw_changes(shifts, "local", "yesterday")


def test_svg_escapes_names_and_has_ids_of_its_own(table: RoleTable) -> None:
    def draw() -> str:
        ax = draw_role(table, "local")
        ax.set_title('<script>alert("id=")</script> $x$')
        return to_svg(ax.get_figure(root=True), "one", 'a "role" <b>')

    drawn = draw()
    assert "<script" not in drawn
    assert 'aria-label="a &quot;role&quot; &lt;b&gt;"' in drawn
    assert ' id="one-figure_1"' in drawn
    assert drawn == draw()
    assert "url(#one-" in drawn
