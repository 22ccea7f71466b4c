"""HeadScores -> hypotheses: which means are tested, against what, how, and over what units."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles.errors import UsageError
from headroles.inference import CORRECTIONS
from headroles.scores import HeadScores
from headroles.sieves import BEYOND_OFFSET, EVENNESS

PRESETS = DEFAULT, PUBLISHED = ("default", "published")
TESTS = ("t", "wilcoxon", "sign_flip", "bootstrap_t")
MAX_T = "max_t"
TEST_CORRECTIONS = (*CORRECTIONS, MAX_T)
TEST_FAMILIES = ("all", "role")
GROUPS = ("auto", "document", "none")
INTERVALS = ("t", "bootstrap_t", "bca", "simultaneous")

DEFAULT_THRESHOLDS = {"bias": 3.0, "excess": 0.1}
"""By score, the mean that a head has to exceed to have a role."""
CONTRAST_THRESHOLD = 0.0
"""The same for contrasts with other words at the same offset: 0 is no difference."""
CONTRAST_ROUNDING = 1e-5
"""Contrasts are 0 where they are smaller than this, relative to the scores they come from: sums of
some hundred float32 products were found to be off by up to half of it."""

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TestOptions:
    """How heads are tested; the options are described at `assign_roles`.

    ``threshold`` None is the default of the score. ``ddof`` 0 is the standard deviation of the
    released notebooks. Raises UsageError for options outside their range, and for those that do
    not go together.
    """

    threshold: float | None = None
    alpha: float = 0.05
    test: str = "t"
    correction: str = "fdr_bh"
    family: str = "all"
    groups: str = "auto"
    interval: str = "t"
    resamples: int = 10_000
    seed: int = 0
    ddof: int = 1

    __test__ = False  # not a test case, whatever its name says to pytest

    def __post_init__(self) -> None:
        for name, allowed in (
            ("the test", TESTS),
            ("the correction", TEST_CORRECTIONS),
            ("the family", TEST_FAMILIES),
            ("groups", GROUPS),
            ("the interval", INTERVALS),
        ):
            _check_choice(name, getattr(self, name.removeprefix("the ")), allowed)
        self._check_numbers()
        self._check_combinations()

    def _check_numbers(self) -> None:
        if not 0 < self.alpha < 0.5:
            raise UsageError(f"alpha is {self.alpha}; it must lie between 0 and 0.5")
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise UsageError(f"the threshold is {self.threshold}; it must be a finite number")
        if self.resamples < 1:
            raise UsageError(f"the number of resamples is {self.resamples}; it must be 1 or more")
        if self.seed < 0:
            raise UsageError(f"the seed is {self.seed}; it must be 0 or more")

    def _check_combinations(self) -> None:
        if self.correction == MAX_T and self.test != "sign_flip":
            raise UsageError(
                "the correction max_t comes from sign flips; "
                "pass test='sign_flip' (--test sign_flip), or another correction"
            )
        if self.test == "wilcoxon" and self.groups != "none":
            raise UsageError(
                "the Wilcoxon test takes examples as independent; pass groups='none' "
                "(--groups none) to have it so, or test='sign_flip' (--test sign_flip)"
            )
        if self.interval == "simultaneous" and self._largest_rank > self.resamples:
            raise UsageError(
                f"{self.resamples} resamples are too few for simultaneous intervals of level "
                f"{1 - self.alpha:g}; pass more with resamples (--resamples)"
            )

    @property
    def _largest_rank(self) -> int:
        """Which of the resampled maxima, counted from the smallest, the level asks for."""
        return math.ceil((1 - self.alpha) * (self.resamples + 1))

    @classmethod
    def of_preset(cls, preset: str, **given: Any) -> TestOptions:
        """The options of a preset: ``"default"`` takes those that are given.

        ``"published"`` tests as the released notebooks do, with threshold and alpha as given:
        t-tests of independent examples with the population standard deviation, no correction.
        Raises UsageError for an unknown preset and for what the class refuses.
        """
        check_preset(preset)
        options = cls(**given)
        if preset == DEFAULT:
            return options
        return replace(options, test="t", correction="none", groups="none", interval="t", ddof=0)


def check_preset(preset: str) -> None:
    """Raise UsageError for a preset that there is not."""
    _check_choice("the preset", preset, PRESETS)


def _check_choice(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{what} is {value!r}; it must be one of {', '.join(allowed)}")


def kind_of(scores: HeadScores) -> str:
    """``"bias"`` or ``"excess"``; scores that were stored before there was a choice are bias."""
    return str(scores.provenance.get("options", {}).get("score", "bias"))


@dataclass(frozen=True)
class Hypotheses:
    """For every role, layer and head, in this order, H0: mean score <= threshold.

    ``values`` (examples, tests), those of `values_to_test`, is NaN where an example has no score.
    Of each test, ``role`` (tests,) is the place in ``roles``, ``layer`` and ``head`` (tests,)
    count from 0, and ``threshold`` (tests,) is in units of the score. ``groups`` (examples,) are
    the clusters of the examples, numbered from 0; None if examples are independent.

    ``options`` are those asked for, with the threshold that None stood for.
    """

    options: TestOptions
    roles: tuple[str, ...]
    role: IntArray
    layer: IntArray
    head: IntArray
    values: NDArray[np.float32]
    threshold: FloatArray
    groups: IntArray | None

    @classmethod
    def of(cls, scores: HeadScores, options: TestOptions) -> Hypotheses:
        """One test for every head and role that any example has a score for.

        Raises UsageError for examples that cannot be grouped as ``options`` say.
        """
        there = [
            place
            for place, role in enumerate(scores.roles)
            if role != EVENNESS and scores.counts[:, place].any()
        ]
        roles = tuple(scores.roles[place] for place in there)
        role, layer, head = (
            axis.ravel() for axis in np.indices((len(roles), scores.n_layers, scores.n_heads))
        )
        usual = DEFAULT_THRESHOLDS[kind_of(scores)]
        threshold = usual if options.threshold is None else options.threshold
        by_role = np.array(
            [CONTRAST_THRESHOLD if is_contrast(name) else threshold for name in roles]
        )
        return cls(
            options=replace(options, threshold=threshold),
            roles=roles,
            role=role,
            layer=layer,
            head=head,
            values=_side_by_side(scores, roles),
            threshold=by_role[role],
            groups=_groups(scores, options.groups),
        )

    @property
    def n_tests(self) -> int:
        """Number of hypotheses."""
        return len(self.role)

    @property
    def families(self) -> IntArray:
        """Label (tests,) of the family that each test is corrected with."""
        return self.role if self.options.family == "role" else np.zeros_like(self.role)

    def columns_by_family(self) -> list[IntArray]:
        """Places of the tests of each family."""
        labels = self.families
        return [np.flatnonzero(labels == label) for label in np.unique(labels)]

    @property
    def role_names(self) -> NDArray[np.object_]:
        """Role id (tests,) of each test."""
        return np.array(self.roles, dtype=object)[self.role]

    @property
    def n_clusters(self) -> int:
        """Number of independent units: of documents where they are clusters, else of examples."""
        return len(self.values) if self.groups is None else int(self.groups.max()) + 1


def is_contrast(role: str) -> bool:
    """Whether a role is the contrast of another with words at the same offset."""
    return role.endswith(f":{BEYOND_OFFSET}")


def values_to_test(scores: HeadScores, role: str) -> NDArray[np.float32]:
    """The scores (examples, layers * heads) of one role as they are tested.

    A contrast is the difference of two float32 means. Of a head that looks at positions alone only
    their rounding is left, which would be tested as if it varied. A contrast is 0 where it is below
    ``CONTRAST_ROUNDING`` of the score that it is the contrast of, of the same example and head.
    """
    values = _column(scores, role)
    compared = role.removesuffix(f":{BEYOND_OFFSET}")
    if not is_contrast(role) or compared not in scores.roles:
        return values
    size = np.abs(_column(scores, compared))
    if kind_of(scores) == "excess":  # what was taken off, uniform attention, has its rounding too
        size = size + 1 / scores.lengths[:, None]
    return np.where(np.abs(values) < CONTRAST_ROUNDING * size, np.float32(0), values)


def _column(scores: HeadScores, role: str) -> NDArray[np.float32]:
    return scores.values[..., scores.roles.index(role)].reshape(scores.n_examples, -1)


def _side_by_side(scores: HeadScores, roles: tuple[str, ...]) -> NDArray[np.float32]:
    """The scores (examples, roles * layers * heads) of all ``roles``, as they are tested."""
    n_heads = scores.n_layers * scores.n_heads
    values = np.empty((scores.n_examples, len(roles), n_heads), dtype=np.float32)
    for place, role in enumerate(roles):
        values[:, place] = values_to_test(scores, role)
    return values.reshape(scores.n_examples, -1)


def _groups(scores: HeadScores, asked: str) -> IntArray | None:
    documents, codes = np.unique(scores.documents, return_inverse=True)
    if asked == "document" and len(documents) < 2:
        raise UsageError(ONE_DOCUMENT)
    return codes if asked != "none" and len(documents) > 1 else None


ONE_DOCUMENT = (
    "all examples are of one document, so there are no documents to cluster by; "
    "pass groups='none' (--groups none) to take examples as independent"
)
