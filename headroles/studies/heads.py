"""HeadScores -> the values to test, a column for every role, layer and head.

First choices between words are compared with rules that know no tree: the best fixed offset, and
the best "nearest word of a class", each found on one half of the documents for the other half.

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, NotRequired, TypedDict

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from headroles.arrays import (
    BoolArray,
    Float32Array,
    FloatArray,
    IndexArray,
    new_array,
)
from headroles.errors import UsageError
from headroles.inference.doubled import Clusters
from headroles.inference.sample import Bounds
from headroles.options import PUBLISHED, Options
from headroles.record import Record
from headroles.role_names import BEYOND_OFFSET, OTHER_TREES, TOKENS
from headroles.roles import Nearest, Role, Score, contrast_of, has_contrast
from headroles.roles.score import ScoreName
from headroles.scoring.scores import HeadScores
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.options import KEEP, UnitOptions

ESTIMATES = ("n", "n_clusters", "mean", "sd", "ci_low", "ci_high")
"""Columns of means with intervals."""
_RANGES = {"bias": "0 or more", "excess": "below 1", "hit": "from 0 to 1"}


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions(Options):
    """Options of the thresholds of means."""

    title: ClassVar[str] = "Tests"

    threshold: float | None = None
    """Mean score to exceed; left out: 3 (bias), 0.1 (excess), 0.5 (hit).

    3 is the published one, three times as much attention as uniform.
    """
    offset_margin: Annotated[float, Meta(ge=0)] = 0.1
    """Share of hits that a head needs beyond the best fixed offset.

    For first choices between words (score hit), unless a threshold is given; 0.1 is the published
    one (Voita et al. 2019). Evidence beyond *distance* needs as much beyond the best rule that
    looks for the nearest word of a class.
    """
    distance_margin: Annotated[float | None, Meta(ge=0)] = None
    """What roles of pairs of words need beyond distance; left out: 0.5 (bias), 0.025 (excess).

    A head has such a role if, beside its mean, the mean of its contrast is shown to exceed this
    margin: the attention that it gives to these pairs less that to other words at the same
    distance.
    """

    def margin_of(self, score: Score) -> float:
        """Return the margin that contrasts of this score have to exceed."""
        return score.margin if self.distance_margin is None else self.distance_margin

    def check_range(self, score: Score) -> None:
        """Raise UsageError for a threshold that no mean, or every mean, of the score exceeds."""
        if self.threshold is not None and not score.low <= self.threshold < score.high:
            raise UsageError(
                f"`threshold={self.threshold:g}` is outside the range of {score.name} scores, "
                f"which are {_RANGES[score.name]}; give one inside it"
            )

    def check_margins(self, roles: Sequence[Role], score: Score) -> None:
        """Raise UsageError for a margin that no role is compared with."""
        if self.distance_margin is not None and not contrasts_by_parent(roles):
            raise UsageError(
                "`distance_margin` has no effect, as no role of these scores has a contrast; omit "
                "it, or score roles of pairs of words with `beyond_offset`"
            )
        if self.offset_margin == ThresholdOptions.offset_margin:
            return
        if self.threshold is not None:
            raise UsageError(
                "`offset_margin` has no effect beside `threshold`, which replaces the best fixed "
                "offset; omit one of them"
            )
        if not score.of_first_choice or all(role.kind == TOKENS for role in roles):
            raise UsageError(
                "`offset_margin` has no effect, as no role of these scores is compared with the "
                "best fixed offset; omit it, or score roles of pairs of words with `score='hit'`"
            )

    def facts_about(self, score: Score) -> ScoreLevel:
        """Return facts of a record: the score, and the threshold of roles without a special one."""
        threshold = score.threshold if self.threshold is None else self.threshold
        return {"score": score.name, "threshold": float(threshold)}


# Facts that others inherit are made by calls: annotations of classes are texts here, and Python
# 3.14 would look for the names in them in the modules of the heirs.
ScoreLevel = TypedDict("ScoreLevel", {"score": ScoreName, "threshold": float})  # noqa: UP013
"""The score that tests are of, and the threshold of roles without a special one."""

UnitFacts = TypedDict(  # noqa: UP013
    "UnitFacts",
    {
        "clustered_by": str,
        "n_clusters": int,
        "effective_clusters": float,
        "joined_documents": NotRequired[int],
        "doubled_examples": NotRequired[int],
    },
)
"""The units of tests: ``n_clusters`` examples or documents.

``effective_clusters`` is the largest effective number of clusters of any role.
``doubled_examples`` stand in several of the ``joined_documents``, which share texts.
"""


@dataclass(frozen=True)
class OffsetBaseline:
    """The rule that a head has to beat: always look at the word at a fixed offset.

    ``hits`` (examples,) is the share of links of each example that the rule hits, NaN where there
    are none. ``offsets`` are the rules for the first and for the second half of the documents:
    each is the best of the other half, so that no example chooses its own rule, and every example
    is tested.
    """

    hits: FloatArray
    offsets: tuple[int, int]


def baseline_of(scores: HeadScores, role: str) -> OffsetBaseline | None:
    """Return the rule that a role has to beat; None for one without offsets.

    The best offset of a half is the one with the largest mean over examples, the first in the
    order of `HeadScores.offsets` of several. A half without any link takes that of all examples.
    """
    if scores.offset_shares is None:
        return None
    shares = scores.offset_shares[:, scores.role_ids.index(role)].astype(np.float64)
    if np.isnan(shares).all():
        return None
    hits, (first, second) = _by_halves(scores, shares)
    return OffsetBaseline(hits, (scores.offsets[first], scores.offsets[second]))


@dataclass(frozen=True)
class ClassBaseline:
    """The best rule without distance: always look at the nearest word of one class, on one side.

    ``hits`` (examples,) and the ``rules`` of both halves are as those of `OffsetBaseline`.
    """

    hits: FloatArray
    rules: tuple[Nearest, Nearest]


def class_baseline_of(scores: HeadScores, role: str) -> ClassBaseline | None:
    """Return the class rule that a role has to beat; None without any, chosen as in `baseline_of`.

    Of several rules with the same mean, the first in the order of `ClassRules.rules` is best.
    """
    shares, rules = class_shares(scores, role), scores.class_rules(role).rules
    if shares is None or np.isnan(shares).all():
        return None
    hits, (first, second) = _by_halves(scores, shares)
    return ClassBaseline(hits, (rules[first], rules[second]))


def class_shares(scores: HeadScores, role: str) -> FloatArray | None:
    """Return the shares (examples, rules) of arcs that class rules hit, NaN without an arc.

    None if the role is compared with none: it is not of pairs of words in one sentence, or the
    scores were saved by a version without such rules.
    """
    rules = scores.class_rules(role).rules
    if scores.class_hits is None or not rules:
        return None
    place = scores.role_ids.index(role)
    n = scores.counts[:, place].astype(np.float64)
    return scores.class_hits[:, place, : len(rules)] / np.where(n > 0, n, np.nan)[:, None]


def _by_halves(scores: HeadScores, shares: FloatArray) -> tuple[FloatArray, tuple[int, int]]:
    """Return the hits (examples,) of the best rules, each of the other half, and their places."""
    in_second, has_share = second_half(scores), ~np.isnan(shares[:, 0])
    best = []
    for half in (in_second, ~in_second):
        chosen = has_share & half if (has_share & half).any() else has_share
        best.append(int(shares[chosen].mean(axis=0).argmax()))
    return np.where(in_second, shares[:, best[1]], shares[:, best[0]]), (best[0], best[1])


def second_half(scores: HeadScores) -> BoolArray:
    """Return (examples,): whether an example is of the second half of the corpus.

    Documents belong to the halves by turns, in their order: both halves are from everywhere.
    Documents that share texts are of one half. Where there is only one document, examples do.
    """
    return in_second_half(scores.clusters)


def in_second_half(clusters: Clusters) -> BoolArray:
    """Return (examples,) as `second_half` does, for examples of some clusters."""
    codes = clusters.codes.tolist()
    numbers = {code: k for k, code in enumerate(dict.fromkeys(codes))}
    if len(numbers) == 1:
        return np.asarray(np.arange(len(codes)) % 2 == 1)
    return np.array([numbers[code] % 2 == 1 for code in codes])


@dataclass(frozen=True)
class HeadColumns:
    """The columns of a matrix (examples, T): every role, layer and head, in this order."""

    roles: tuple[Role, ...]
    n_layers: int
    n_heads: int

    @classmethod
    def from_scores(
        cls, scores: HeadScores, described: bool = False, unseen: bool = False
    ) -> HeadColumns:
        """Return the columns of the roles that any example has a score for, measures excluded.

        With ``described`` of the quantities that describe heads, in the place of roles. With
        ``unseen`` also those of arcs that a decoder sees in the other direction alone.
        """
        there = np.asarray((scores.counts > 0).any(axis=0))
        if unseen and scores.record.model.is_causal:
            ids, seen = scores.role_ids, there.copy()
            for place, role in enumerate(scores.roles):
                turned = "" if role.contrast or role.control else scores.turned(role.id)
                there[place] |= bool(turned) and bool(seen[ids.index(turned)])
        roles = (role for role, has in zip(scores.roles, there, strict=True) if has)
        chosen = (role for role in roles if (role.is_described if described else role.is_tested))
        return cls(tuple(chosen), scores.n_layers, scores.n_heads)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the roles."""
        return tuple(role.id for role in self.roles)

    @cached_property
    def indices(self) -> tuple[IndexArray, IndexArray, IndexArray]:
        """The place of the role in ``roles``, the layer and the head of each column (T,)."""
        axes = np.indices((len(self.roles), self.n_layers, self.n_heads))
        role, layer, head = (axis.ravel() for axis in axes)
        return role, layer, head

    @property
    def labels(self) -> dict[str, NDArray[np.generic]]:
        """The first columns of a table of tests: layer, head, role."""
        role, layer, head = self.indices
        return {"layer": layer, "head": head, "role": np.array(self.ids, dtype=object)[role]}

    def values(self, scores: HeadScores) -> Float32Array:
        """Return the scores (examples, T)."""
        values = new_array((scores.n_examples, len(self.indices[0])), np.float32)
        for place, role in enumerate(self.ids):
            values[:, self._of_role(place)] = scores.column(role)
        return values

    def _of_role(self, place: int) -> slice:
        """Return the columns of the role at a place."""
        n_heads = self.n_layers * self.n_heads
        return slice(place * n_heads, (place + 1) * n_heads)

    def baselines(
        self, rules: Mapping[str, OffsetBaseline], values: NDArray[np.floating]
    ) -> tuple[FloatArray, FloatArray]:
        """Return shifts (examples, R * L) and means (R * L,) for comparisons with fixed offsets.

        The offset of each example was chosen on the other half of the documents. Its hits there are
        subtracted from the scores, and their mean is added again: only differences vary, and the
        mean is that of the head. The mean is over the examples that have ``values`` (examples, T)
        in a layer, since a layer with a window lacks some. Roles that have nothing to do with
        offsets are not shifted, and have NaN for a mean.
        """
        n_roles, n_layers = len(self.roles), self.n_layers
        shifts = np.zeros((len(values), n_roles, n_layers))
        means = np.full((n_roles, n_layers), np.nan)
        for place, role in enumerate(self.ids):
            if (baseline := rules.get(role)) is None:
                continue
            of_role = values[:, self._of_role(place)].reshape(-1, n_layers, self.n_heads)
            for layer, has in enumerate(~np.isnan(of_role).all(axis=2).T):
                hits = np.where(has, baseline.hits, np.nan) if has.any() else baseline.hits
                means[place, layer] = np.nanmean(hits)
                shifts[:, place, layer] = means[place, layer] - baseline.hits
        return shifts.reshape(len(values), -1), means.ravel()

    @property
    def by_layer(self) -> IndexArray:
        """The place of the role and layer of each column (T,) among R * L."""
        role, layer, _ = self.indices
        return role * self.n_layers + layer

    def bounds(self, scores: HeadScores, shifts: FloatArray | None = None) -> Bounds | None:
        """Return bounds of the scores of every role; None if they were not stored.

        A score has a range of its own, which contrasts leave: differences, with a baseline.
        ``shifts`` (examples, R * L) are added to the scores; the shifts of examples to come are not
        known.
        """
        if scores.bounds is None:
            return None
        columns = [scores.role_ids.index(name) for name in self.ids]
        low, high = np.moveaxis(scores.bounds[:, columns].astype(np.float64), -1, 0)
        is_free = np.array([role.baseline is not None for role in self.roles], dtype=bool)
        kinds = self.indices[0]
        if shifts is not None:
            low, high = (np.repeat(side, self.n_layers, axis=1) + shifts for side in (low, high))
            is_free = np.repeat(is_free, self.n_layers) | (shifts != 0).any(axis=0)
            kinds = self.by_layer
        score = scores.score
        return Bounds(
            low=low,
            high=high,
            least=np.where(is_free, -np.inf, score.low),
            most=np.where(is_free, np.inf, score.high),
            kinds=kinds,
            cap=score.cap,
        )


def contrasts_by_parent(roles: Iterable[Role]) -> dict[str, Role]:
    """Return the contrasts with other words at the same offset, by the roles that have them."""
    return {
        role.parent: role for role in roles if role.contrast == BEYOND_OFFSET and not role.control
    }


def clusters_in(clusters: Clusters, options: UnitOptions) -> IndexArray | None:
    """Return the cluster (examples,) of each example, from 0; None for independent examples.

    Raises UsageError for examples of one document that are to be clustered by document.
    """
    refuse_one_document(clusters.n_documents, options)
    if options.clusters == "none" or clusters.n_documents == 1:
        return None
    return clusters.documents if options.duplicates == KEEP else clusters.codes


def estimates_of(
    values: NDArray[np.floating], clusters: IndexArray | None, alpha: float
) -> dict[str, NDArray[Any]]:
    """Return `ESTIMATES` of each column of ``values`` (examples, columns); NaN is missing.

    Intervals have level 1 - ``alpha`` and are robust to ``clusters`` (examples,).
    """
    hypotheses = Hypotheses.from_values(values, 0.0, size=size_of(values), clusters=clusters)
    moments, interval = hypotheses.moments, hypotheses.intervals(alpha)
    return {
        "n": moments.n,
        "n_clusters": moments.n_clusters,
        "mean": moments.mean,
        "sd": moments.sd,
        "ci_low": interval.ci_low,
        "ci_high": interval.ci_high,
    }


def refuse_one_document(n_documents: int, options: UnitOptions) -> None:
    """Raise UsageError for one document if examples are to be clustered by document."""
    if options.clusters == "document" and n_documents < 2:
        raise UsageError(
            "all examples are of one document, so there are no documents to cluster by; "
            "pass `clusters='none'` to take examples as independent"
        )


def scores_of(value: Any) -> HeadScores:
    """Return the scores in a classification, in a folder, or given as they are.

    Raises UsageError for what holds none.
    """
    scores = getattr(value, "scores", value)
    if isinstance(scores, str | Path):
        return HeadScores.load(scores)
    if not isinstance(scores, HeadScores):
        raise UsageError(
            f"{type(value).__name__} holds no scores; give what score_heads or classify_heads "
            "returned, or a folder that they were saved in"
        )
    return scores


def refuse_nothing_to_test(roles: Sequence[Role]) -> None:
    """Raise UsageError if no role is left to test."""
    if not roles:
        raise UsageError(
            "there is no role to test, only quantities that describe heads; add a role to `roles`, "
            "or score without tests and describe heads with: headroles describe DIR"
        )


def check_contrasts(scores: HeadScores) -> None:
    """Raise UsageError for scores of a role that lost its contrast, which was scored with it."""
    options = scores.record.options
    is_contrasted = options.get("beyond_offset") and options.get("preset") != PUBLISHED
    if not is_contrasted or scores.score.of_first_choice:
        return
    by_parent = contrasts_by_parent(scores.roles)
    in_other_trees = {role.parent for role in scores.roles if role.control == OTHER_TREES}
    for role in scores.roles:
        if has_contrast(role) and scores.record.model.is_causal and role.id not in in_other_trees:
            raise UsageError(
                f"these scores have {role.id} without its control {OTHER_TREES}, which controls "
                "distance in decoders; score again with `controls='trees'`"
            )
        if has_contrast(role) and role.id not in by_parent:
            raise UsageError(
                f"these scores have {role.id} without its contrast {contrast_of(role.id)}, so that "
                "distance is not controlled; select both, or score again"
            )


def warn_of_doubled(clusters: Clusters, options: UnitOptions) -> Iterator[str]:
    """Warn of documents that share texts, unless the user keeps them apart."""
    if not clusters.n_doubled or options.duplicates == KEEP:
        return
    taken = "Documents that share texts are one cluster"
    if options.clusters == "none":
        taken = "`clusters='none'` takes every copy as an independent example"
    yield (
        f"{clusters.n_doubled} of {len(clusters.codes)} examples stand in several documents, and "
        f"{clusters.n_joined} of {clusters.n_documents} documents share most of their text with "
        f"another. {taken}. Remove the copies, or pass `duplicates='keep'` if the texts are "
        "independent."
    )


def describe_clusters(hypotheses: Hypotheses, clusters: Clusters) -> UnitFacts:
    """Return the fields of a record about the units of tests."""
    effective = np.nan_to_num(hypotheses.moments.effective_clusters).max(initial=0)
    return {
        "clustered_by": "document" if hypotheses.is_clustered else "none",
        "n_clusters": hypotheses.n_clusters,
        "effective_clusters": round(float(effective), 1),
        "joined_documents": clusters.n_joined,
        "doubled_examples": clusters.n_doubled,
    }


def note_removed(frame: pd.DataFrame, record: Record, among: pd.Series | bool = True) -> None:
    """Note in the rows of removed heads that the model of ``record`` lost them.

    ``among`` are the rows of this model.
    """
    for layer, head in record.model.removed_heads:
        is_removed = (frame["layer"] == layer) & (frame["head"] == head) & among
        frame.loc[is_removed, "note"] = "untestable: the head was removed from the model"
