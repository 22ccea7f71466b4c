"""Scores -> answers of all heads and roles, quickly, for any subset of the examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headroles.arrays import BoolArray, Float32Array, FloatArray, IndexArray, IntArray
from headroles.inference.sample import Sample
from headroles.scoring.scores import HeadScores
from headroles.studies.claims.claim import NotTestable
from headroles.studies.heads import HeadColumns, clusters_of
from headroles.testing.evidence import PValues, find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of_scores
from headroles.testing.options import TestOptions

LOCAL, DELIMITER, SYNTACTIC, BLOCK = KINDS = ("local", "delimiter", "syntactic", "block")
"""The kinds of roles that Pande et al. (2021) count."""
N_GROUPS = 10
"""Groups of documents, for intervals of counts over heads."""


@dataclass(frozen=True)
class HeadAnswers:
    """Signs of heads for every role: the head has it (1), has not (-1), or is undecided (0).

    ``by_role`` has arrays (layers, heads). ``p_above`` are single p-values (T,) of all tests of
    roles that a head has or not, without correction, NaN where none was made.
    """

    by_role: dict[str, IntArray]
    p_above: FloatArray
    shape: tuple[int, int]

    def of(self, role: str) -> IntArray:
        """Return signs (layers, heads) of a role. Raises NotTestable if no example has it."""
        if role not in self.by_role:
            raise NotTestable(f"no example has a score for the role {role}{_NEEDS.get(role, '')}")
        return self.by_role[role]

    def has(self, role: str) -> BoolArray:
        """Tell which heads (layers, heads) were shown to have a role."""
        return self.of(role) > 0

    def share_by_layer(self, role: str) -> FloatArray:
        """Return the share of the heads of each layer (layers,) that have a role."""
        return np.asarray(self.has(role).mean(axis=1))


_NEEDS = {
    BLOCK: "; it needs pairs of sentences",
    SYNTACTIC: "; it needs a treebank",
}


@dataclass(frozen=True)
class ScoredRoles:
    """Scores of all examples, and the answers of all or of a subset of them."""

    scores: HeadScores
    options: TestOptions

    @cached_property
    def columns(self) -> HeadColumns:
        """The roles, layers and heads."""
        return HeadColumns.of(self.scores)

    @cached_property
    def clusters(self) -> IndexArray | None:
        """Document of each example (examples,), None where examples are independent."""
        return clusters_of(self.scores, self.options)

    @cached_property
    def all(self) -> HeadAnswers:
        """Answers of all examples."""
        return self.of(np.ones(self.scores.n_examples, dtype=bool))

    @cached_property
    def without_groups(self) -> list[HeadAnswers]:
        """Answers with one group of documents left out, for each group."""
        return [self.of(chosen) for chosen in self.groups()]

    def groups(self) -> Iterator[BoolArray]:
        """Yield for each group of whole documents which examples (examples,) are outside of it."""
        codes = self.clusters
        units = np.arange(self.scores.n_examples) if codes is None else codes
        n = min(N_GROUPS, len(np.unique(units)))
        for group in range(n if n > 2 else 0):
            yield units % n != group

    def of(self, chosen: BoolArray) -> HeadAnswers:
        """Return the answers of the examples ``chosen`` (examples,)."""
        columns, scores = self.columns, self.scores
        values = self._values[chosen]
        codes = None if self.clusters is None else self.clusters[chosen]
        sample = Sample.of(values, codes)
        tested = Hypotheses.of(
            sample,
            columns.thresholds(scores.score, None),
            size=size_of_scores(sample),
            is_clustered=codes is not None,
        )
        above, below = (find_p_values(tested, self.options, side) for side in ("greater", "less"))
        shape = (columns.n_layers, columns.n_heads)
        signs = _signs(above, below, self.options.alpha).reshape(-1, *shape)
        return HeadAnswers(dict(zip(columns.ids, signs, strict=True)), above.single, shape)

    @cached_property
    def _values(self) -> Float32Array:
        return self.columns.values(self.scores)


def _signs(above: PValues, below: PValues, alpha: float) -> IntArray:
    return above.shows(alpha).astype(np.int64) - below.shows(alpha)
