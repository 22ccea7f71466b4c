"""Best heads: chosen on one half, reported on the other; counted arc by arc and by example."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from headroles import HeadScores, find_best_heads
from headroles.errors import UsageError
from headroles.inference import difference_interval, wilson_interval
from headroles.roles import OFFSETS
from tests.conftest import make_scores
from tests.rounding import tolerance

ROLE = "syntactic:obj:to_governor"


def scores_of(hits: np.ndarray, rule: np.ndarray, arcs: list[int]) -> HeadScores:
    """Hits (examples, heads) of one layer, what the offset -2 hits, and numbers of arcs."""
    documents = [f"d{k}" for k in range(len(hits))]
    scores = make_scores(hits[:, None, :, None], [ROLE], documents, score="hit")
    shares = np.zeros((len(hits), 1, len(OFFSETS)), dtype=np.float32)
    shares[:, 0, OFFSETS.index(-2)] = rule
    return replace(scores, offset_shares=shares, counts=np.array(arcs)[:, None])


def test_the_head_of_one_half_is_reported_on_the_other() -> None:
    """Head 0 is best in the first half (documents 0, 2, 4), head 1 in the second."""
    hits = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.1], [0.4, 0.8], [0.8, 0.1], [0.3, 0.8]])
    frame = find_best_heads(scores_of(hits, np.full(6, 0.25), [1, 1, 1, 1, 1, 2])).frame
    first, second = frame.iloc[0], frame.iloc[1]
    assert (first["half"], first["head"], second["half"], second["head"]) == (1, 1, 2, 0)
    assert first["mean"] == pytest.approx(0.1)
    assert second["mean"] == pytest.approx(0.3)
    assert second["share_of_arcs"] == pytest.approx((0.2 + 0.4 + 2 * 0.3) / 4)
    assert second["gain"] == pytest.approx(0.05)
    assert (second["offset"], second["offset_mean"], second["arcs"]) == (-2, 0.25, 4)
    own = hits[1::2, 0]
    interval = wilson_interval(own[:, None])
    expected = (interval.ci_low[0], interval.ci_high[0])
    assert (second["ci_low"], second["ci_high"]) == pytest.approx(expected, abs=tolerance())
    gains = own - 0.25
    of_gains = difference_interval(gains[:, None])
    expected = (of_gains.ci_low[0], of_gains.ci_high[0])
    assert (second["gain_ci_low"], second["gain_ci_high"]) == pytest.approx(
        expected, abs=tolerance()
    )


def test_limits_stay_within_0_and_1() -> None:
    """Few documents: by t, the upper limit of 0.95 would pass 1."""
    hits = np.repeat([[0.9], [1.0]], 2, axis=0)
    frame = find_best_heads(scores_of(hits, np.array([0.0, 0.0, 1.0, 1.0]), [1] * 4)).frame
    for row in frame.itertuples():
        own = [0.9, 1.0]
        assert t.interval(0.95, 1, np.mean(own), np.std(own, ddof=1) / np.sqrt(2))[1] > 1
        assert 0 < row.ci_low < row.mean < row.ci_high < 1
        assert -1 < row.gain_ci_low < row.gain < row.gain_ci_high < 1


def test_a_head_that_hits_as_the_rule_does_is_not_known_to_differ_by_nothing() -> None:
    rule = np.random.default_rng(1).random(12) < 0.5
    hits = np.stack([rule, np.zeros(12)], axis=1)
    frame = find_best_heads(scores_of(hits, rule, [1] * 12)).frame
    assert (frame["gain"] == 0).all()
    assert (frame["gain_ci_low"] < -0.3).all()
    assert (frame["gain_ci_high"] > 0.3).all()


def test_scores_without_first_choices_are_refused() -> None:
    with pytest.raises(UsageError, match=r"these are bias scores; score again with score='hit'"):
        find_best_heads(make_scores(np.ones((4, 1, 2, 1)), [ROLE]))
    hits = make_scores(np.ones((4, 1, 2, 1)), ["local"], score="hit")
    nothing = np.full((4, 1, len(OFFSETS)), np.nan, dtype=np.float32)
    with pytest.raises(UsageError, match="these scores have no role of pairs of words"):
        find_best_heads(replace(hits, offset_shares=nothing))
