"""What is tested: options that go together, thresholds, families, clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headroles.errors import UsageError
from headroles.hypotheses import (
    DEFAULT_THRESHOLDS,
    TEST_CORRECTIONS,
    TEST_FAMILIES,
    Hypotheses,
    TestOptions,
)
from headroles.inference import CORRECTIONS
from headroles.roles import assign_roles
from headroles.scores import HeadScores
from headroles.sieves import SCORES, role_ids
from tests.conftest import make_scores

RNG = np.random.default_rng(0)


def hypotheses(scores: HeadScores, **options: Any) -> Hypotheses:
    return Hypotheses.of(scores, TestOptions(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha is 0.0; it must lie between 0 and 0.5"),
        ({"alpha": 0.5}, "alpha is 0.5"),
        ({"threshold": float("nan")}, "the threshold is nan"),
        ({"threshold": float("inf")}, "the threshold is inf"),
        ({"test": "z"}, "the test is 'z'; it must be one of t, wilcoxon, sign_flip, bootstrap_t"),
        ({"correction": "sidak"}, "the correction is 'sidak'"),
        ({"family": "layer"}, "the family is 'layer'; it must be one of all, role"),
        ({"groups": "genre"}, "groups is 'genre'; it must be one of auto, document, none"),
        ({"interval": "wald"}, "the interval is 'wald'"),
        ({"resamples": 0}, "the number of resamples is 0"),
        ({"seed": -1}, "the seed is -1"),
        ({"correction": "max_t"}, "pass test='sign_flip'"),
        ({"correction": "max_t", "test": "bootstrap_t"}, "pass test='sign_flip'"),
        ({"test": "wilcoxon"}, "pass groups='none'"),
        ({"test": "wilcoxon", "groups": "document"}, "pass groups='none'"),
        ({"interval": "simultaneous", "resamples": 18}, "18 resamples are too few"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TestOptions(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"test": "wilcoxon", "groups": "none"},
        {"test": "sign_flip", "correction": "max_t"},
        {"interval": "simultaneous", "resamples": 19},
        {"alpha": 0.499, "threshold": -1.0},
    ],
)
def test_options_that_can(options: dict[str, Any]) -> None:
    TestOptions(**options)


def test_published_preset_keeps_threshold_and_alpha_only() -> None:
    found = TestOptions.of_preset(
        "published", threshold=2.0, alpha=0.1, test="sign_flip", correction="max_t", interval="bca"
    )
    assert found == TestOptions(threshold=2.0, alpha=0.1, correction="none", groups="none", ddof=0)
    with pytest.raises(UsageError, match="the preset is 'best'"):
        TestOptions.of_preset("best")


def test_choices_fit_those_of_the_rooms_below() -> None:
    assert set(TEST_CORRECTIONS) == {*CORRECTIONS, "max_t"}
    assert set(DEFAULT_THRESHOLDS) == set(SCORES)


class TestHypotheses:
    def test_order_is_role_layer_head(self) -> None:
        values = RNG.normal(size=(4, 2, 3, 2)).astype(np.float32)
        found = hypotheses(make_scores(values, ["local", "syntactic"]))
        assert found.n_tests == 12
        for test in range(found.n_tests):
            role, layer, head = found.role[test], found.layer[test], found.head[test]
            np.testing.assert_array_equal(found.values[:, test], values[:, layer, head, role])
            assert found.role_names[test] == found.roles[role]
        assert found.role.tolist() == sorted(found.role)

    def test_a_role_that_no_example_has_is_left_out(self) -> None:
        values = RNG.normal(size=(4, 1, 2, 3))
        values[..., 1] = np.nan
        assert hypotheses(make_scores(values, ["a", "b", "c"])).roles == ("a", "c")

    @pytest.mark.parametrize("family", TEST_FAMILIES)
    def test_families(self, family: str) -> None:
        found = hypotheses(make_scores(RNG.normal(size=(4, 2, 2, 3)), "abc"), family=family)
        parts = [part.tolist() for part in found.columns_by_family()]
        whole = list(range(12))
        assert parts == ([whole] if family == "all" else [whole[:4], whole[4:8], whole[8:]])


class TestThresholds:
    @pytest.mark.parametrize("options", [{}, {"score": "bias"}, {"score": "excess"}])
    def test_default_is_that_of_the_score(self, options: dict[str, str]) -> None:
        scores = make_scores(RNG.normal(size=(4, 1, 2, 1)), ["local"], options=options)
        expected = DEFAULT_THRESHOLDS[options.get("score", "bias")]
        found = hypotheses(scores)
        assert found.options.threshold == expected
        assert (found.threshold == expected).all()

    def test_scores_without_options_are_bias(self) -> None:
        found = hypotheses(make_scores(RNG.normal(size=(4, 1, 1, 1)), ["local"]))
        assert found.options.threshold == DEFAULT_THRESHOLDS["bias"]

    @pytest.mark.parametrize("threshold", [None, 1.5])
    def test_contrasts_are_tested_against_zero(self, threshold: float | None) -> None:
        roles = role_ids(["amod"], beyond_offset=True)
        found = hypotheses(
            make_scores(RNG.normal(size=(4, 1, 2, len(roles))), roles), threshold=threshold
        )
        contrast = np.array([str(name).endswith(":beyond_offset") for name in found.role_names])
        assert contrast.sum() == 2 * 4
        assert (found.threshold[contrast] == 0).all()
        assert (found.threshold[~contrast] == (threshold or 3.0)).all()

    def test_evenness_is_no_role(self) -> None:
        roles = role_ids([], score="excess")
        scores = make_scores(RNG.normal(size=(4, 1, 2, len(roles))), roles)
        assert hypotheses(scores).roles == tuple(name for name in roles if "evenness" not in name)


class TestGroups:
    VALUES = RNG.normal(size=(4, 1, 2, 1))

    @pytest.mark.parametrize(
        ("asked", "documents", "expected"),
        [
            ("auto", "bbaa", [1, 1, 0, 0]),
            ("auto", "aaaa", None),
            ("document", "abca", [0, 1, 2, 0]),
            ("none", "bbaa", None),
        ],
    )
    def test_documents_are_clusters(
        self, asked: str, documents: str, expected: list[int] | None
    ) -> None:
        found = hypotheses(make_scores(self.VALUES, ["local"], list(documents)), groups=asked)
        assert (None if found.groups is None else found.groups.tolist()) == expected
        assert found.n_clusters == (4 if expected is None else len(set(documents)))

    def test_one_document_cannot_be_clustered(self) -> None:
        with pytest.raises(UsageError, match=r"all examples are of one document.*groups='none'"):
            hypotheses(make_scores(self.VALUES, ["local"]), groups="document")


class TestRoundingOfContrasts:
    """Contrasts of a head that looks at positions alone are 0 but for rounding."""

    ROLES = ("syntactic", "syntactic:beyond_offset")

    def scores(self, sizes: Any, contrasts: Any, **options: str) -> HeadScores:
        """Scores (examples, heads) of the role and of its contrast, of one layer."""
        values = np.stack([sizes, contrasts], axis=-1)[:, None]
        return make_scores(values, self.ROLES, options=options)

    @pytest.mark.parametrize(("score", "size"), [("bias", 4.0), ("bias", -4.0), ("excess", 0.5)])
    @pytest.mark.parametrize("test", ["t", "sign_flip", "bootstrap_t"])
    def test_rounding_is_degenerate_and_no_role(self, score: str, size: float, test: str) -> None:
        sizes = size + np.zeros((30, 2))
        rounding = RNG.uniform(0.1, 1, sizes.shape) * 1e-6 * [1, -1]  # each head to one side
        table = assign_roles(self.scores(sizes, rounding, score=score), test=test, resamples=200)
        found = table.frame[table.frame["role"] == self.ROLES[1]]
        assert found["note"].str.startswith("degenerate: zero variance").all()
        assert (found["mean"] == 0).all()
        assert (found["answer"] == "undecided").all()
        assert found["p_value"].isna().all()
        assert not found["assigned"].any()

    def test_uniform_attention_has_no_excess_and_rounding_still(self) -> None:
        """Excess scores of uniform attention are 0 themselves: what was taken off is the size."""
        rounding = RNG.normal(2e-8, 1e-8, (30, 2))
        found = hypotheses(self.scores(rounding, rounding, score="excess"))
        assert (found.values[:, 2:] == 0).all()
        assert (found.values[:, :2] != 0).all()

    def test_what_is_larger_stays_as_it_is(self) -> None:
        sizes = RNG.uniform(0.1, 4, (30, 2))
        contrasts = RNG.choice([-1, 1], sizes.shape) * RNG.uniform(2e-5, 2, sizes.shape) * sizes
        scores = self.scores(sizes, contrasts)
        np.testing.assert_array_equal(hypotheses(scores).values[:, 2:], scores.values[:, 0, :, 1])

    def test_size_is_that_of_the_same_example_and_head(self) -> None:
        contrasts = np.full((3, 2), 1e-6)
        found = hypotheses(self.scores([[1.0, 0.01], [0.01, 1.0], [1.0, np.nan]], contrasts))
        expected = np.array([[0, 1e-6], [1e-6, 0], [0, 1e-6]], dtype=np.float32)
        np.testing.assert_array_equal(found.values[:, 2:], expected)

    def test_missing_stays_missing(self) -> None:
        found = hypotheses(self.scores([[1.0], [1.0]], [[np.nan], [1e-8]]))
        np.testing.assert_array_equal(found.values[:, 1], [np.nan, 0])

    def test_only_contrasts_are_rounded(self) -> None:
        values = RNG.normal(0, 1e-9, (4, 1, 2, 2))
        roles = ("syntactic", "syntactic:obj:to_governor:beyond_offset")
        scores = make_scores(values, roles)  # nothing is there that the contrast is one of
        np.testing.assert_array_equal(
            hypotheses(scores).values, np.moveaxis(scores.values, -1, 1).reshape(4, -1)
        )
