"""How do heads attend? Scores -> HeadDescription: confidence, entropy, distance, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.arrays import IndexArray
from headroles.errors import UsageError
from headroles.options import takes
from headroles.results.columns import Axes
from headroles.results.consistency import Rule, around
from headroles.results.result import NoFacts, Result
from headroles.results.shown import Grid, Shown, Title
from headroles.scoring.scores import HeadScores
from headroles.studies.heads import HeadColumns, clusters_in, warn_of_doubled
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.options import UnitOptions

ESTIMATES = ("n", "n_clusters", "mean", "sd", "ci_low", "ci_high")
"""Columns of means with intervals."""
_MOST = 3


def estimates_of(
    values: NDArray[np.floating], clusters: IndexArray | None, alpha: float
) -> dict[str, NDArray[Any]]:
    """Return `ESTIMATES` of each column of ``values`` (examples, columns); NaN is missing.

    Intervals have level 1 - ``alpha`` and are robust to ``clusters`` (examples,).
    """
    hypotheses = Hypotheses.of(values, 0.0, size=size_of(values), clusters=clusters)
    moments, interval = hypotheses.moments, hypotheses.intervals(alpha)
    return {
        "n": moments.n,
        "n_clusters": moments.n_clusters,
        "mean": moments.mean,
        "sd": moments.sd,
        "ci_low": interval.ci_low,
        "ci_high": interval.ci_high,
    }


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
            named = [
                f"{layer}-{head} {mean:.3f}"
                for layer, head, mean in largest.itertuples(index=False)
            ]
            by_layer = heads.groupby("layer")["mean"].mean()
            rows.append((str(name), *(f"{mean:.3f}" for mean in by_layer), "  ".join(named)))
        layers = tuple(map(str, sorted(self.frame["layer"].unique())))
        yield Grid(("quantity", *layers, "largest"), tuple(rows), left=frozenset(["largest"]))


@takes(UnitOptions)
def describe_heads(scores: HeadScores, options: UnitOptions) -> HeadDescription:
    """Return means and intervals of the quantities that describe heads, without tests.

    Args:
        scores: from `score_heads` with the ``roles`` confidence, entropy or distance.
        options: keyword arguments, described below.

    Raises:
        UsageError: scores without such quantities, or examples that cannot be clustered as asked.

    With ``model`` an encoder with random weights:

    >>> from headroles import describe_heads, read_conllu, sample_treebank, score_heads
    >>> scores = score_heads(model, read_conllu(sample_treebank()), roles="confidence,distance")
    >>> described = describe_heads(scores).frame
    >>> described["role"].unique().tolist(), len(described)
    (['confidence', 'distance'], 24)
    """
    columns = HeadColumns.of(scores, described=True)
    if not columns.roles:
        raise UsageError(
            "these scores have no quantity that describes heads; score again with "
            "`roles='confidence,entropy,distance'`"
        )
    clusters = clusters_in(scores.clusters, options)
    estimates = estimates_of(columns.values(scores), clusters, options.alpha)
    frame = pd.DataFrame({**columns.labels, **estimates})
    warnings = [*warn_of_doubled(scores.clusters, options)]
    return HeadDescription.made(
        frame, options, sources={"scores": scores.record}, warnings=warnings
    )
