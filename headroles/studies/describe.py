"""How do heads attend? Scores -> HeadDescription: confidence, entropy, distance, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from headroles.errors import UsageError
from headroles.options import takes
from headroles.results.columns import Axes
from headroles.results.consistency import Rule, around
from headroles.results.result import NoFacts, Result
from headroles.results.shown import Grid, Shown, Title
from headroles.scoring.scores import HeadScores
from headroles.studies.classification.role_table import AssignOptions
from headroles.studies.heads import (
    ESTIMATES,
    HeadColumns,
    clusters_in,
    estimates_of,
    warn_of_doubled,
)
from headroles.studies.profile import HeadProfile, profile_head
from headroles.testing.options import UnitOptions

_MOST = 3


@dataclass(frozen=True, repr=False, eq=False)
class HeadDescription(Result[UnitOptions, NoFacts]):
    """Quantities that describe heads, one row each; ``role`` names the quantity.

    ``mean`` is over ``n`` examples, in units of the quantity; intervals are robust to clusters, and
    NaN where there are fewer than two.

    With ``description`` as `describe_heads` returns it:

    >>> description.frame["role"].unique().tolist()
    ['confidence']
    """

    kind: ClassVar[str] = "description"
    question: ClassVar[str] = "How do heads attend?"
    columns: ClassVar[tuple[str, ...]] = ("layer", "head", "role", *ESTIMATES)
    rules: ClassVar[tuple[Rule, ...]] = (around("ci_low", "mean", "ci_high"),)

    def axes(self) -> Axes:
        """Return roles, layers and heads."""
        return {(name,): [] for name in ("role", "layer", "head")}

    def summarize(self) -> Iterator[Shown]:
        """Tabulate means by layer, and the heads with the largest."""
        yield Title("means over heads by layer, and the heads with the largest: layer-head mean")
        rows = []
        for name, heads in self.frame.groupby("role", sort=False):
            largest = heads.nlargest(_MOST, "mean")[["layer", "head", "mean"]]
            texts = [
                f"{layer}-{head} {mean:.3f}"
                for layer, head, mean in largest.itertuples(index=False)
            ]
            by_layer = heads.groupby("layer")["mean"].mean()
            rows.append((str(name), *(f"{mean:.3f}" for mean in by_layer), "  ".join(texts)))
        layers = tuple(map(str, sorted(self.frame["layer"].unique())))
        yield Grid(("quantity", *layers, "largest"), tuple(rows), left=frozenset(["largest"]))


@takes(AssignOptions)
def describe_heads(
    scores: HeadScores, head: tuple[int, int] | None = None, *, options: AssignOptions
) -> HeadProfile | HeadDescription:
    """Return means and intervals of the quantities that describe heads, or the roles of one head.

    Args:
        scores: from `score_heads`; without a ``head``, with the ``roles`` confidence, entropy or
            distance.
        head: layer and head, from 0, to return all roles of this head, as `assign_roles` tests them
            with the same options, in a `HeadProfile`.
        options: keyword arguments, described below; without a ``head`` alpha, clusters and
            duplicates alone.

    Raises:
        UsageError: a head that the model lacks, scores without such quantities, examples that
            cannot be clustered as asked, or options of tests without a head.

    With ``model`` an encoder with random weights:

    >>> from headroles import describe_heads, read_conllu, sample_treebank, score_heads
    >>> scores = score_heads(model, read_conllu(sample_treebank()), roles="confidence,distance")
    >>> described = describe_heads(scores).frame
    >>> described["role"].unique().tolist(), len(described)
    (['confidence', 'distance'], 24)
    """
    if head is not None:
        return profile_head(scores, head, options)
    units = options.as_group(UnitOptions)
    if options != AssignOptions(**units.record()):
        raise UsageError(
            "thresholds, margins and tests are of the roles of one head; name it: headroles "
            "describe DIR --head LAYER-HEAD"
        )
    columns = HeadColumns.from_scores(scores, described=True)
    if not columns.roles:
        raise UsageError(
            "these scores have no quantity that describes heads; score again with "
            "`roles='confidence,entropy,distance'`, or see the roles of one head with: headroles "
            "describe DIR --head LAYER-HEAD"
        )
    clusters = clusters_in(scores.clusters, units)
    estimates = estimates_of(columns.values(scores), clusters, units.alpha)
    frame = pd.DataFrame({**columns.labels, **estimates})
    warnings = [*warn_of_doubled(scores.clusters, units)]
    return HeadDescription.made(frame, units, sources={"scores": scores.record}, warnings=warnings)
