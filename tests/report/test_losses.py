"""Figures and pages of what is lost without heads, against the tables that they are drawn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headroles.errors import UsageError
from headroles.studies.importance.by_task import DropsByTask, draw_drops_by_task
from headroles.studies.pruning.pruning_curves import (
    PruningCurves,
    draw_pruning_curves,
)


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
    with pytest.raises(UsageError, match="no measure 'los'; did you mean 'loss'"):
        draw_pruning_curves(curves, "los")


def test_drops(drops: DropsByTask) -> None:
    frame = drops.frame.copy()
    frame["answer"], frame["deviates"] = "undecided", "undecided"
    chosen = (frame["measure"] == "loss") & (frame["removed"] == "layer 0")
    assert chosen.sum() == 2
    frame.loc[chosen, ["answer", "deviates"]] = ["worse", "less"]
    ax = draw_drops_by_task(replace(drops, frame=frame), "loss")
    rows = drops.frame[drops.frame["measure"] == "loss"]
    drawn = np.asarray(ax.collections[0].get_array())
    assert drawn == pytest.approx(rows["relative_drop"].to_numpy().reshape(-1, 2))
    assert [one.get_text() for one in ax.get_yticklabels()] == rows["removed"][::2].tolist()
    texts = [one.get_text() for one in ax.texts]
    marked = [text for text in texts if text.endswith("%*<")]
    assert len(marked) == 2
    assert all(text.endswith("%") for text in texts if text not in marked)
    with pytest.raises(UsageError, match="no measure 'fame'"):
        draw_drops_by_task(drops, "fame")
