"""Figures and pages of the later studies show the numbers of their results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headroles import (
    Ablations,
    HeadScores,
    Importance,
    ImportanceByRole,
    LayerCounts,
    Replication,
    replicate_roles,
)
from headroles.errors import UsageError
from headroles.report.pages import make_report
from headroles.studies.importance.ablate import draw_ablations
from headroles.studies.importance.by_role import draw_importance_by_role
from headroles.studies.importance.importance import draw_importance
from headroles.studies.replicate import draw_layer_counts, draw_replication


def cells(ax: object) -> np.ndarray:
    return np.asarray(ax.collections[0].get_array())  # type: ignore[attr-defined]


def test_importance(importance: Importance, tmp_path: Path) -> None:
    ax = draw_importance(importance, "taylor")
    assert cells(ax) == pytest.approx(importance.of("taylor"))
    ranks = importance.of("taylor", "rank")
    shown = {tuple(int(x) for x in one.get_position()[::-1]): one.get_text() for one in ax.texts}
    assert shown == {place: f"{n:.0f}" for place, n in np.ndenumerate(ranks) if n <= 10}
    with pytest.raises(UsageError, match="no estimator 'tailor'; did you mean 'taylor'"):
        draw_importance(importance, "tailor")
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
    with pytest.raises(UsageError, match="no role 'locl'"):
        draw_replication(replication, "locl")
    page = make_report(replication.save(tmp_path / "replication"))
    assert page.answer[0].startswith("2 corpora: one, two.")
    n_local = int((own == 2).sum())
    row = next(line for line in repr(replication).splitlines() if "neighbouring" in line)
    assert row.split()[2] == str(n_local)


def test_layer_counts(bounded: HeadScores, tmp_path: Path) -> None:
    counts = replicate_roles([bounded, bounded], ["one", "two"], over="seeds")
    assert isinstance(counts, LayerCounts)
    assert "<img" in counts._repr_html_()
    bars = draw_layer_counts(counts, "local").patches
    summary = counts.summary()
    expected = summary[summary["role"] == "local"]["mean"].tolist()
    assert [bar.get_height() for bar in bars] == expected
    assert make_report(counts.save(tmp_path / "counts")).answer[0].startswith("2 seeds")
