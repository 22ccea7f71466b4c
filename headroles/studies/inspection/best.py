"""Which head finds each relation best? Scores of first choices -> BestHeads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from headroles.arrays import BoolArray, IndexArray
from headroles.errors import UsageError
from headroles.inference.intervals import difference_interval, wilson_interval
from headroles.inference.sample import Sample
from headroles.options import Options, takes
from headroles.record import Record
from headroles.results.result import Result
from headroles.results.shown import SEE_FULL, Grid, Shown
from headroles.roles import OFFSETS, in_words, is_other_trees
from headroles.scoring.scores import HeadScores
from headroles.studies.heads import HeadColumns, baseline_of, clusters_of, dealt_by, second_half
from headroles.testing.options import UnitOptions
from headroles.wording import head_name

_SHOWN = 8


@dataclass(frozen=True, repr=False, eq=False)
class BestHeads(Result):
    """The best head and the best fixed offset of every role between words, on unseen documents.

    Both are chosen on one half of the documents, by their mean over examples, and reported on the
    other ``half``, 1 or 2; each role has a row for each. ``mean`` is the share of hits of the head,
    a mean over ``n`` examples, and ``offset_mean`` that of the rule; ``gain`` is the mean
    difference. ``share_of_arcs`` counts every arc once, as published accuracies do. Intervals are
    of means, robust to clusters, and NaN where there are fewer than two: Wilson's for shares
    (`wilson_interval`), and of Wilson's limits for gains (`difference_interval`).

    With ``best`` as `find_best_heads` returns it:

    >>> best.frame["half"].unique().tolist()
    [1, 2]
    """

    kind: ClassVar[str] = "best"
    question: ClassVar[str] = "Which head finds each relation best?"
    options_type: ClassVar[type[Options]] = UnitOptions
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "role half layer head n n_clusters mean ci_low ci_high arcs share_of_arcs offset "
            "offset_mean offset_share_of_arcs gain gain_ci_low gain_ci_high"
        ).split()
    )

    def summarize(self) -> Iterator[Shown]:
        """Tabulate the best head of each role, with its hits and those of the best fixed offset."""
        frame = self.frame
        documents = dealt_by(self.record.sources["scores"].corpus.documents)
        yield (
            f"The best head of each role, chosen on one half of the {documents}: its share of "
            "first choices on the\nother half, beside the best fixed offset (means of both halves)."
        )
        order = frame.groupby("role", sort=False)["gain"].mean().sort_values(ascending=False)
        rows = []
        for role in order.index[:_SHOWN]:
            halves = frame[frame["role"] == role]
            heads = map(head_name, zip(halves["layer"], halves["head"], strict=True))
            shares = (f"{halves[name].mean():.0%}" for name in ("mean", "offset_mean"))
            is_more = "yes" if (halves["gain_ci_low"] > 0).all() else "not shown"
            rows.append((in_words(role), " or ".join(dict.fromkeys(heads)), *shares, is_more))
        columns = ("Role", "head", "hits", "best offset", "more than offset")
        yield Grid(columns, tuple(rows), left=frozenset(["head", "more than offset"]))
        if len(order) > _SHOWN:
            yield f"{len(order) - _SHOWN} more roles: {SEE_FULL}"


@takes(UnitOptions)
def find_best_heads(scores: HeadScores, options: UnitOptions) -> BestHeads:
    """Return the head that hits most arcs of each role, chosen on one half, reported on the other.

    The best of many heads looks better than it is on the data that it was chosen on: here no
    document is used both to choose a head and to report its hits.

    Args:
        scores: first choices, from `score_heads` with ``score="hit"``.
        options: keyword arguments, described below.

    Raises:
        UsageError: scores of another kind, or examples that cannot be clustered as asked.

    With ``model`` an encoder with random weights, of which no head beats the best fixed offset:

    >>> from headroles import find_best_heads, read_conllu, sample_treebank, score_heads
    >>> treebank = read_conllu(sample_treebank())
    >>> scores = score_heads(model, treebank, score="hit", relations="nsubj")
    >>> best = find_best_heads(scores).frame
    >>> best[["role", "half", "offset"]].head(2)
                            role  half  offset
    0  syntactic:any:to_governor     1       1
    1  syntactic:any:to_governor     2       2
    >>> bool((best["gain"] < 0).all())
    True
    """
    if scores.offset_shares is None:
        raise UsageError(
            f"best heads need scores of first choices, and these are {scores.score.name} scores; "
            "score again with `score='hit'`"
        )
    clusters, in_second = clusters_of(scores, options), second_half(scores)
    roles = [
        role
        for role in HeadColumns.of(scores).ids
        if baseline_of(scores, role) is not None and not is_other_trees(role)
    ]
    if not roles:
        raise UsageError(
            "these scores have no role of pairs of words; score one, such as syntactic"
        )
    rows = [
        _row(scores, role, half, reported, clusters, options.alpha)
        for role in roles
        for half, reported in ((1, ~in_second), (2, in_second))
    ]
    frame = pd.DataFrame([row for row in rows if row], columns=list(BestHeads.columns))
    return BestHeads(frame, Record.of_scores("best", scores.record, options))


def _row(
    scores: HeadScores,
    role: str,
    half: int,
    reported: BoolArray,
    clusters: IndexArray | None,
    alpha: float,
) -> dict[str, Any] | None:
    """Return one row, None where either half has no score for the role."""
    place = scores.role_ids.index(role)
    assert scores.offset_shares is not None
    hits, shares = scores.column(role), scores.offset_shares[:, place]
    has_score = scores.counts[:, place] > 0
    chosen, reported = has_score & ~reported, has_score & reported
    if not chosen.any() or not reported.any():
        return None
    layer, head = divmod(int(np.nanargmax(np.nanmean(hits[chosen], axis=0))), scores.n_heads)
    offset = int(shares[chosen].mean(axis=0, dtype=np.float64).argmax())
    of_head = hits[reported, layer * scores.n_heads + head]
    of_offset, arcs = shares[reported, offset], scores.counts[reported, place]
    units = None if clusters is None else clusters[reported]
    hit, gain = (Sample.of(x[:, None], units) for x in (of_head, of_head - of_offset))
    moments, limits = hit.moments, wilson_interval(hit, confidence=1 - alpha)
    of_gains = difference_interval(gain, confidence=1 - alpha)
    return {
        "role": role,
        "half": half,
        "layer": layer,
        "head": head,
        "n": int(moments.n[0]),
        "n_clusters": int(moments.n_clusters[0]),
        "mean": moments.mean[0],
        "ci_low": limits.ci_low[0],
        "ci_high": limits.ci_high[0],
        "arcs": int(arcs.sum()),
        "share_of_arcs": np.average(of_head, weights=arcs),
        "offset": OFFSETS[offset],
        "offset_mean": of_offset.mean(dtype=np.float64),
        "offset_share_of_arcs": np.average(of_offset, weights=arcs),
        "gain": gain.moments.mean[0],
        "gain_ci_low": of_gains.ci_low[0],
        "gain_ci_high": of_gains.ci_high[0],
    }
