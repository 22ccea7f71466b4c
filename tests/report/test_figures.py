"""What figures and pages of all studies show is what results say, and figures are drawn by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from headroles import (
    Ablations,
    DropsByTask,
    HeadScores,
    Importance,
    ImportanceByRole,
    LayerCounts,
    PruningCurves,
    Replication,
    RoleComparison,
    RoleTable,
    TokenGroups,
)
from headroles.drawing.saving import save_figure
from headroles.drawing.style import BRIGHT, DARK, to_svg
from headroles.errors import UsageError
from headroles.report.pages import draw_figure, make_report
from headroles.studies.classification.figures import (
    draw_head,
    draw_heads,
    draw_role,
    draw_scores,
)
from headroles.studies.comparison.figures import draw_changes, draw_trajectory
from headroles.studies.importance.ablate import draw_ablations
from headroles.studies.importance.by_role import draw_importance_by_role
from headroles.studies.importance.by_task import draw_drops_by_task
from headroles.studies.importance.importance import draw_importance
from headroles.studies.inspection.tokens import draw_token_group, draw_token_groups
from headroles.studies.options import FigureOptions
from headroles.studies.pruning.pruning_curves import draw_pruning_curves
from headroles.studies.replicate import draw_layer_counts, draw_replication
from tests.commands import run_well
from tests.report.conftest import marked


def cells(ax: Any) -> np.ndarray:
    return np.asarray(ax.collections[0].get_array())


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


@pytest.mark.parametrize(
    ("name", "draw", "message"),
    [
        ("table", lambda of: draw_role(of, "locl"), "no role 'locl'; did you mean 'local'"),
        ("table", lambda of: draw_head(of, 7, 0), "no means of head 7-0"),
        ("scores", lambda of: draw_scores(of, 0, 3, "local"), "the head is 3; it must be 0 to 2"),
        ("shifts", lambda of: draw_changes(of, "local", "yesterday"), "no checkpoint"),
        ("importance", lambda of: draw_importance(of, "tailor"), "did you mean 'taylor'"),
        ("replication", lambda of: draw_replication(of, "locl"), "no role 'locl'"),
        ("curves", lambda of: draw_pruning_curves(of, "los"), "did you mean 'loss'"),
        ("drops", lambda of: draw_drops_by_task(of, "fame"), "no measure 'fame'"),
        ("groups", lambda of: draw_token_group(of, "others"), "did you mean 'other'"),
    ],
)
def test_what_is_not_there_is_refused(
    name: str, draw: Callable[[Any], Any], message: str, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(UsageError, match=message):
        draw(request.getfixturevalue(name))


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


def test_importance(importance: Importance, tmp_path: Path) -> None:
    ax = draw_importance(importance, "taylor")
    assert cells(ax) == pytest.approx(importance.of("taylor"))
    ranks = importance.of("taylor", "rank")
    shown = {tuple(int(x) for x in one.get_position()[::-1]): one.get_text() for one in ax.texts}
    assert shown == {place: f"{n:.0f}" for place, n in np.ndenumerate(ranks) if n <= 10}
    page = make_report(importance.save(tmp_path / "importance"))
    rows = importance.frame[importance.frame["estimator"] == "absolute"]
    first = rows.nsmallest(1, "rank").iloc[0]
    named = f"{first['layer']:.0f}-{first['head']:.0f}"
    assert page.answer[1].startswith("The estimator absolute serves to choose heads to remove")
    assert f"{named} {first['importance']:.3g}" in " ".join(repr(importance).split())
    assert page.to_html().count("<svg") == 1


def test_ablations(ablations: Ablations, tmp_path: Path) -> None:
    ax = draw_ablations(ablations)
    assert cells(ax) == pytest.approx(ablations.rises())
    low, high = ax.collections[0].get_clim()
    assert -low == high == pytest.approx(np.abs(ablations.rises()).max())
    page = make_report(ablations.save(tmp_path / "ablations"))
    counts = ablations.frame["answer"].value_counts()
    assert f"the loss is worse in {counts.get('worse', 0)}, " in " ".join(page.answer)
    worst = ablations.frame.loc[ablations.frame["loss_change"].idxmax()]
    said = f"{worst['removed']} {worst['loss_change']:+.4f} "
    assert said in " ".join(repr(ablations).split())
    without_single = replace(ablations, frame=ablations.frame[ablations.frame["set"] != "single"])
    with pytest.raises(UsageError, match="no head was removed by itself"):
        draw_ablations(without_single)


def test_importance_of_roles(role_importance: ImportanceByRole, tmp_path: Path) -> None:
    frame = role_importance.frame.copy()
    frame["answer"] = np.where(np.arange(len(frame)) == 0, "more", "undecided")
    frame["removed_difference"] = 0.25
    ax = draw_importance_by_role(replace(role_importance, frame=frame))
    found, others = ax.lines[:2]
    assert (found.get_label(), len(found.get_xdata())) == ("significant", 1)
    assert (others.get_label(), len(others.get_xdata())) == ("not significant", len(frame) - 1)
    bars = [bar for bar in ax.collections[0].get_segments() if bar.ndim == 2]
    limits = frame[["drawn_low", "drawn_high"]].sub(frame["drawn_loss"], axis=0).dropna().to_numpy()
    assert np.array([bar[:, 0] for bar in bars]) == pytest.approx(limits)
    assert len(limits) > 1
    page = make_report(role_importance.save(tmp_path / "by-role"))
    assert f"over {len(frame)} roles" in page.answer[0]
    assert page.answer[1] == "Matter more than random heads: no role shown."


def test_replication(replication: Replication, tmp_path: Path) -> None:
    heads = replication.heads()
    own = heads[heads["role"] == "local"].sort_values(["layer", "head"])["at_least"]
    assert own.max() == 2
    assert cells(draw_replication(replication, "local")).ravel().tolist() == own.tolist()
    in_all = (heads["at_least"] == 2).groupby([heads["layer"], heads["head"]]).sum()
    assert cells(draw_replication(replication)).ravel().tolist() == in_all.tolist()
    page = make_report(replication.save(tmp_path / "replication"))
    assert page.answer[0].startswith("2 corpora: one, two.")
    n_local = int((own == 2).sum())
    row = next(line for line in repr(replication).splitlines() if "neighbouring" in line)
    assert row.split()[2] == str(n_local)


def test_layer_counts(layer_counts: LayerCounts, tmp_path: Path) -> None:
    bars = draw_layer_counts(layer_counts, "local").patches
    summary = layer_counts.summary()
    expected = summary[summary["role"] == "local"]["mean"].tolist()
    assert [bar.get_height() for bar in bars] == expected
    page = make_report(layer_counts.save(tmp_path / "counts"))
    assert page.answer[0].startswith("2 seeds")


def test_curves(curves: PruningCurves) -> None:
    ax = draw_pruning_curves(curves, "loss")
    rows = curves.frame[(curves.frame["measure"] == "loss") & curves.frame["share"].notna()]
    *lines, whole = ax.lines
    assert [line.get_label() for line in lines] == ["random", "middle"]
    for line, band in zip(lines, ax.collections, strict=True):
        own = rows[rows["order"] == line.get_label()]
        assert line.get_xdata() == pytest.approx([0.25, 0.5])
        assert line.get_ydata() == pytest.approx(own["value"])
        edges = band.get_paths()[0].vertices[:, 1]
        assert set(own["ci_low"]) | set(own["ci_high"]) <= set(edges)
    assert whole.get_ydata()[0] == curves.facts["measured"]["loss"]
    assert len({line.get_color() for line in lines}) == 2
    assert draw_pruning_curves(curves).get_ylabel() == f"{curves.measure} without them"


def test_drops(drops: DropsByTask) -> None:
    frame = drops.frame.copy()
    frame["answer"], frame["deviates"] = "undecided", "undecided"
    chosen = (frame["measure"] == "loss") & (frame["removed"] == "layer 0")
    assert chosen.sum() == 2
    frame.loc[chosen, ["answer", "deviates"]] = ["worse", "less"]
    ax = draw_drops_by_task(replace(drops, frame=frame), "loss")
    rows = drops.frame[drops.frame["measure"] == "loss"]
    assert cells(ax) == pytest.approx(rows["relative_drop"].to_numpy().reshape(-1, 2))
    assert [one.get_text() for one in ax.get_yticklabels()] == rows["removed"][::2].tolist()
    texts = [one.get_text() for one in ax.texts]
    marked = [text for text in texts if text.endswith("%*<")]
    assert len(marked) == 2
    assert all(text.endswith("%") for text in texts if text not in marked)


def test_a_group(groups: TokenGroups) -> None:
    ax = draw_token_group(groups, "other")
    rows = groups.frame[(groups.frame["group"] == "other") & (groups.frame["layer"] != "all")]
    weights, norms, uniform = ax.lines
    for line, bars, name in zip(
        (weights, norms), ax.collections, ("weights", "norms"), strict=True
    ):
        own = rows[rows["quantity"] == name]
        assert line.get_label() == name
        assert np.asarray(line.get_ydata()) == pytest.approx(own["mean"])
        limits = np.array([bar[:, 1] for bar in bars.get_segments()])
        assert limits == pytest.approx(own[["ci_low", "ci_high"]].to_numpy())
    assert uniform.get_ydata()[0] == groups.summary().loc["other", "tokens"]


def test_groups_that_no_example_has_are_left_out(groups: TokenGroups) -> None:
    counts = groups.frame[groups.frame["quantity"] == "tokens"].groupby("group")["n"].max()
    assert 0 < len(groups.present) == (counts > 0).sum()
    assert [ax.get_title() for ax in draw_token_groups(groups).axes] == groups.present


def titles(figure: Figure) -> list[str]:
    return [ax.get_title() for ax in figure.axes if ax.get_title()]


def test_figures_in_files(table: RoleTable, tmp_path: Path) -> None:
    folder = table.save(tmp_path / "roles")
    for name in ("a.pdf", "a.png"):
        file = save_figure(draw_figure(folder, FigureOptions()), tmp_path / name)
        assert file.stat().st_size > 1000
    text = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type3" not in text
    assert b"/CIDFontType2" in text


def test_title_width_and_role(table: RoleTable, tmp_path: Path) -> None:
    folder = table.save(tmp_path / "roles")
    plain = draw_figure(folder, FigureOptions(kind="role", role="special tokens"))
    assert titles(plain) == ["special tokens"]
    options = FigureOptions(kind="role", role="local", heading="Neighbours", width=3.3)
    figure = draw_figure(folder, options)
    assert titles(figure) == ["Neighbours\nneighbouring words"]  # the role is always named
    assert figure.get_size_inches()[0] == pytest.approx(3.3)
    with pytest.raises(UsageError, match="choose another kind, or leave role out"):
        draw_figure(folder, FigureOptions(kind="heads", role="local"))
    head = draw_figure(folder, FigureOptions(kind="head", head="1-2"))
    assert "1-2" in titles(head)[0]


def test_the_command(table: RoleTable, tmp_path: Path) -> None:
    folder, out = table.save(tmp_path / "roles"), tmp_path / "f.svg"
    asked = ("--kind", "role", "--role", "local", "--title", "Neighbours")
    run_well("figure", folder, *asked, "--out", out)
    assert "Neighbours" in out.read_text()
