"""Figures and the page of token groups, against the table that they are drawn from."""

from __future__ import annotations

import numpy as np
import pytest

from headroles import TokenGroups
from headroles.errors import UsageError
from headroles.results.result import picture
from headroles.studies.inspection.tokens import draw_token_group, draw_token_groups


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
    with pytest.raises(UsageError, match="no group 'others'; did you mean 'other'"):
        draw_token_group(groups, "others")


def test_groups_that_no_example_has_are_left_out(groups: TokenGroups) -> None:
    counts = groups.frame[groups.frame["quantity"] == "tokens"].groupby("group")["n"].max()
    assert 0 < len(groups.present) == (counts > 0).sum()
    assert [ax.get_title() for ax in draw_token_groups(groups).axes] == groups.present
    assert picture(groups).startswith("<img alt=")
