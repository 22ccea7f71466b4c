"""What figures and pages of all studies show is what results say, and figures are drawn by name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from msgspec import structs

import headroles as hr
from headroles import report
from headroles.drawing import saving
from headroles.drawing.page import Picture
from headroles.drawing.saving import save_figure, to_svg
from headroles.drawing.style import BRIGHT, DARK
from headroles.errors import StorageError, UsageError
from headroles.report.pages import FigureOptions, draw_figure, make_report
from tests.commands import run_well
from tests.report.conftest import marked, parts_of


def cells(ax: Any) -> np.ndarray:
    return np.asarray(ax.collections[0].get_array())


def test_a_role_has_its_means_and_answers(table: hr.RoleTable) -> None:
    clearest = report.draw_role(table, table.clearest_role())
    assert table.plot("role").get_title() == clearest.get_title()
    ax = report.draw_role(table, "local")
    rows = table.where(role="local").frame
    assert cells(ax).ravel() == pytest.approx(rows["mean"])
    found = marked(ax)
    certified = rows[(rows["answer"] == "yes") & (rows["certified"] == "yes")]
    sure = found.get("yes, certified", set())
    assert sure == set(zip(certified["layer"], certified["head"], strict=True))
    undecided = rows[rows["answer"] == "undecided"]
    assert found["undecided"] == set(zip(undecided["layer"], undecided["head"], strict=True))


def test_numbers_of_roles(table: hr.RoleTable) -> None:
    """Syntactic and other roles apart, and special tokens in neither."""
    pairs, others = report.draw_heads(table).axes
    for ax, roles in ((pairs, ["syntactic:any:to_governor"]), (others, ["local"])):
        rows = table.frame[table.frame["role"].isin(roles)]
        counts = rows.groupby(["layer", "head"])["assigned"].sum()
        shown = {
            (int(t.get_position()[1]), int(t.get_position()[0])): int(t.get_text())
            for t in ax.texts
        }
        assert shown == {place: n for place, n in counts.items() if n}
    answers = table.frame[table.frame["role"] == "local"]["answer"].value_counts()
    title = f"other roles, special tokens aside {answers['yes']} heads, "
    title += f"{answers.get('undecided', 0)} undecided"
    assert others.get_title().split() == title.split()


def test_arrows_go_from_before_to_after(shifts: hr.RoleComparison) -> None:
    first = shifts.checkpoints[0]
    ax = report.draw_changes(shifts, "local", first)
    rows = shifts.frame.query("role == 'local' and checkpoint == @first")
    arrows = [text for text in ax.texts if text.arrow_patch is not None]
    arrows.sort(key=lambda arrow: arrow.xy[1])
    assert [arrow.xy[0] for arrow in arrows] == pytest.approx(rows["mean_after"].tolist())
    assert [arrow.xyann[0] for arrow in arrows] == pytest.approx(rows["mean_before"].tolist())
    colors = [to_rgb(arrow.arrow_patch.get_edgecolor()) for arrow in arrows]
    assert [color == to_rgb(DARK) for color in colors] == list(rows["status"] == "gained")
    assert [color == to_rgb(BRIGHT) for color in colors] == list(rows["status"] == "lost")
    assert {"gained", "lost"} <= set(rows["status"])


def test_a_trajectory_has_all_checkpoints(shifts: hr.RoleComparison) -> None:
    ax = report.draw_trajectory(shifts, "local", most=1)
    before, there, back = ax.lines[0].get_ydata()
    assert back == pytest.approx(before)
    assert abs(there - before) > 3


@pytest.mark.parametrize(
    ("name", "draw", "message"),
    [
        ("table", lambda of: report.draw_role(of, "locl"), "no role 'locl'; did you mean 'local'"),
        ("shifts", lambda of: report.draw_changes(of, "local", "yesterday"), "no checkpoint"),
        ("importance", lambda of: report.draw_importance(of, "tailor"), "did you mean 'taylor'"),
        ("replication", lambda of: report.draw_replication(of, "locl"), "no role 'locl'"),
        ("curves", lambda of: report.draw_pruning_curves(of, "los"), "did you mean 'loss'"),
        ("drops", lambda of: report.draw_drops_by_task(of, "fame"), "no measure 'fame'"),
        ("groups", lambda of: report.draw_token_group(of, "others"), "did you mean 'other'"),
    ],
)
def test_what_is_not_there_is_refused(
    name: str, draw: Callable[[Any], Any], message: str, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(UsageError, match=message):
        draw(request.getfixturevalue(name))


def test_svg_escapes_names_and_has_ids_of_its_own(table: hr.RoleTable) -> None:
    def draw() -> str:
        ax = report.draw_role(table, "local")
        ax.set_title('<script>alert("id=")</script> $x$')
        return to_svg(ax.get_figure(root=True), "one", 'a "role" <b>')

    drawn = draw()
    assert "<script" not in drawn
    assert 'aria-label="a &quot;role&quot; &lt;b&gt;"' in drawn
    assert ' id="one-figure_1"' in drawn
    assert drawn == draw()
    assert "url(#one-" in drawn


def test_importance(importance: hr.Importance, tmp_path: Path) -> None:
    ax = report.draw_importance(importance, "taylor")
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


def test_ablations(ablations: hr.Ablations, tmp_path: Path) -> None:
    ax = report.draw_ablations(ablations)
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
        report.draw_ablations(without_single)


def test_importance_of_roles(role_importance: hr.ImportanceByRole, tmp_path: Path) -> None:
    frame = role_importance.frame.copy()
    frame["answer"] = np.where(np.arange(len(frame)) == 0, "more", "undecided")
    frame["removed_difference"] = 0.25
    ax = report.draw_importance_by_role(replace(role_importance, frame=frame))
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


def test_replication(replication: hr.Replication) -> None:
    heads = replication.heads()
    own = heads[heads["role"] == "local"].sort_values(["layer", "head"])["at_least"]
    assert own.max() == 2
    assert cells(report.draw_replication(replication, "local")).ravel().tolist() == own.tolist()
    in_all = (heads["at_least"] == 2).groupby([heads["layer"], heads["head"]]).sum()
    assert cells(report.draw_replication(replication)).ravel().tolist() == in_all.tolist()


def test_layer_counts(layer_counts: hr.Replication, tmp_path: Path) -> None:
    layers = layer_counts.layers().query("role == 'local'").groupby("layer")["with_role"]
    for ax in (report.draw_layer_counts(layer_counts, "local"), layer_counts.plot(role="local")):
        assert [bar.get_height() for bar in ax.patches] == layers.mean().tolist()
    folder = layer_counts.save(tmp_path / "counts")
    page = make_report(folder)
    assert page.answer[0].startswith("2 seeds")
    (picture,) = parts_of(page, Picture)
    assert picture.caption.startswith("Draw heads with a role by layer")
    assert draw_figure(folder, FigureOptions(kind="layers")).axes[0].get_xlabel() == "layer"
    with pytest.raises(UsageError, match="no figure of the replication called 'role'"):
        draw_figure(folder, FigureOptions(kind="role"))
    with pytest.raises(UsageError, match="heads of seeds do not correspond"):
        report.draw_replication(layer_counts)


def test_curves(curves: hr.PruningCurves) -> None:
    ax = report.draw_pruning_curves(curves, "loss")
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
    assert report.draw_pruning_curves(curves).get_ylabel() == f"{curves.measure} without them"


def test_drops(drops: hr.DropsByTask) -> None:
    frame = drops.frame.copy()
    frame["answer"], frame["deviates"] = "undecided", "undecided"
    chosen = (frame["measure"] == "loss") & (frame["removed"] == "layer 0")
    assert chosen.sum() == 2
    frame.loc[chosen, ["answer", "deviates"]] = ["worse", "less"]
    ax = report.draw_drops_by_task(replace(drops, frame=frame), "loss")
    rows = drops.frame[drops.frame["measure"] == "loss"]
    assert cells(ax) == pytest.approx(rows["relative_drop"].to_numpy().reshape(-1, 2))
    assert [one.get_text() for one in ax.get_yticklabels()] == rows["removed"][::2].tolist()
    texts = [one.get_text() for one in ax.texts]
    marked = [text for text in texts if text.endswith("%*<")]
    assert len(marked) == 2
    assert all(text.endswith("%") for text in texts if text not in marked)


def test_a_group(groups: hr.TokenGroups) -> None:
    ax = report.draw_token_group(groups, "other")
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


def test_groups_that_no_example_has_are_left_out(groups: hr.TokenGroups) -> None:
    counts = groups.frame[groups.frame["quantity"] == "tokens"].groupby("group")["n"].max()
    assert 0 < len(groups.present) == (counts > 0).sum()
    assert [ax.get_title() for ax in report.draw_token_groups(groups).axes] == groups.present


@pytest.fixture
def folder(table: hr.RoleTable, tmp_path: Path) -> Path:
    return table.save(tmp_path / "roles")


def test_title_width_and_role(folder: Path) -> None:
    plain = draw_figure(folder, FigureOptions(kind="role", role="special tokens"))
    assert [ax.get_title() for ax in plain.axes if ax.get_title()] == ["special tokens"]
    options = FigureOptions(kind="role", role="local", heading="Neighbours", width=3.3)
    figure = draw_figure(folder, options)
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["Neighbours\nneighbouring words"]  # the role is always named
    assert figure.get_size_inches()[0] == pytest.approx(3.3)
    out = folder.with_name("f.svg")
    run_well("figure", folder, "--role", "local", "--kind", "role", "--title", "Mine", "--out", out)
    assert "Mine" in out.read_text()


# Attention as arcs, and figures in files.

ROLE = "syntactic:obj:to_governor"
CHINESE = "\u4e2d\u56fd"


@pytest.fixture
def attention() -> hr.WordAttention:
    """Words 0 to 2 between special tokens; word 1 is to look at word 2, and word 2 at word 0."""
    weights = np.array(
        [
            [0.96, 0.01, 0.01, 0.01, 0.01],
            [0.2, 0.2, 0.2, 0.2, 0.2],
            [0.05, 0.05, 0.05, 0.8, 0.05],
            [0.04, 0.06, 0.0, 0.4, 0.5],
            [0.02, 0.02, 0.02, 0.92, 0.02],
        ],
        dtype=np.float32,
    )
    sieve = np.zeros((5, 5), dtype=bool)
    sieve[2, 3] = sieve[3, 1] = True
    labels = ("[CLS]", "<script>", "\u05e9\u05dc\u05d5\u05dd", "$x$", "[SEP]")
    words = np.array([-1, 0, 1, 2, -1])
    return hr.WordAttention(
        "a-1", 2, 3, ROLE, 7.5, "bias", "weights", labels, words, weights, sieve
    )


def test_arcs_lead_where_attention_goes(attention: hr.WordAttention) -> None:
    ax = report.draw_attention(attention)
    assert [text.get_text() for text in ax.texts][3] == r"\$x\$"
    drawn = {
        str(lines.get_gid()): sorted(
            (round(float(path.vertices[0, 1])), round(float(path.vertices[-1, 1])))
            for path in lines.get_paths()
        )
        for lines in ax.collections
        if hasattr(lines, "get_segments")
    }
    assert drawn == {
        "sieve": [(2, 3)],
        "missed": [(3, 1)],
        "elsewhere": [(1, 0), (1, 2), (1, 3), (1, 4), (3, 4), (4, 3)],
    }


def test_svg_has_the_words_as_text_and_nothing_that_runs(
    attention: hr.WordAttention, tmp_path: Path
) -> None:
    chinese = replace(attention, labels=(*attention.labels[:3], CHINESE, "[SEP]"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = save_figure(report.draw_attention(chinese), tmp_path / "a.svg").read_text("utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert CHINESE in text
    assert attention.labels[2] in text
    assert all(one.startswith(("#", "data:")) for one in re.findall(r'href="([^"]*)"', text))
    again = save_figure(report.draw_attention(chinese), tmp_path / "b.svg").read_text("utf-8")
    assert again == text


@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_other_fonts_draw_what_the_usual_one_lacks(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "_FAMILIES", ["Not Installed", "STIXGeneral"])
    figure = Figure()
    text = figure.text(0, 0, f"ab\u27d0{CHINESE}")  # STIXGeneral has the first of these
    families = text.get_fontfamily()
    with pytest.warns(UserWarning, match="^no font") as warned:
        file = save_figure(figure, tmp_path / f"a.{ending}")
    (message,) = (str(one.message) for one in warned)
    assert message.startswith(f"no font of this machine has {' '.join(CHINESE)}; ")
    content = file.read_bytes()
    assert len(content) > 1000
    for font in (b"STIXGeneral", b"DejaVuSans", b"/CIDFontType2"):
        assert (font in content) == (ending == "pdf")
    assert b"/Type3" not in content  # which publishers refuse
    assert text.get_fontfamily() == families  # the figure is the user's


def test_stored_examples_draw_the_attention_in_the_first(
    bert_folder: Path, treebank: Path, tmp_path: Path
) -> None:
    out, kept, file = (tmp_path / name for name in ("out", "kept", "a.svg"))
    run_well("score", bert_folder, treebank, "--out", out)
    asked = ("examples", out, "--head", "0-1", "--role", ROLE, "--out", kept)
    run_well(*asked)
    run_well("figure", kept, "--out", file)
    found = hr.read_attention(hr.HeadScores.load(out), (0, 1), ROLE)
    drawn = save_figure(report.draw_attention(found[0]), tmp_path / "b.svg")
    assert "bones" in file.read_text("utf-8")
    assert file.read_text("utf-8") == drawn.read_text("utf-8")
    examples = hr.Examples.load(kept)
    assert len(examples) > 1
    assert examples.facts.attention[0] == [*found[0].labels]
    for k, (forgery, reason) in enumerate(
        (
            ({"attention": [["a"], [[0, 1, 0.5, True]]]}, "an arc to no word"),
            ({"attention": [[], []]}, "of length >= 1"),
            ({"attention": [["a"], [[0, 0, 1e308, False]]]}, "<= "),
            ({"score": r"$\frac$"}, "Invalid enum value"),
        )
    ):
        facts = {**examples.record.facts, **forgery}
        forged = replace(examples, record=structs.replace(examples.record, facts=facts))
        with pytest.raises(StorageError, match=f"does not fit examples.parquet .*{reason}"):
            hr.Examples.load(forged.save(tmp_path / f"forged{k}"))
    run_well(*asked, "--no-weights", "--overwrite")
    message = "examples again with model, and without weights=False"
    with pytest.raises(UsageError, match=message):
        draw_figure(kept, FigureOptions())
