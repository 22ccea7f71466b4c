"""Which head finds each relation best, and do several together? Scores -> BestHeads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.corpus import Example
from headroles.encoding import EncodedExample
from headroles.errors import UsageError
from headroles.inference.intervals import difference_interval, wilson_interval
from headroles.inference.sample import Sample
from headroles.models.options import CROSS
from headroles.options import fields_of, takes
from headroles.results.columns import NUMBER, TEXT, Column
from headroles.results.consistency import Rule, equal_to, inside
from headroles.results.result import NoFacts, Result
from headroles.results.shown import SEE_FULL, Grid, Pointer, Shown
from headroles.roles import (
    BIAS,
    HIT,
    UPOS,
    ClassRules,
    Nearest,
    PaddedBatch,
    Role,
    Scope,
    classes_of_rules,
    contrast_of,
    find_homes,
    nearest_words,
    with_class_rules,
)
from headroles.scoring.scores import HeadScores
from headroles.studies.heads import (
    HeadColumns,
    baseline_of,
    class_shares,
    clusters_in,
    second_half,
    warn_of_doubled,
)
from headroles.studies.inspection.attention import average_between_words, read_heads
from headroles.studies.inspection.origin import Origin, OriginOptions
from headroles.testing.hypotheses import Hypotheses, size_of_scores
from headroles.testing.options import UnitOptions
from headroles.wording import head_name

T = TypeVar("T", int, str)
Estimate = Callable[..., dict[str, float]]
_SHOWN = 8
_RULES_SHOWN = 3
_BY_COLUMNS = ":from_governor"
"""End of roles whose first choices are those of columns: the words that attend most to a word."""


@dataclass(frozen=True, kw_only=True)
class BestOptions(UnitOptions, OriginOptions):
    """Options of the choice of heads."""

    title: ClassVar[str] = "Heads"

    top: Annotated[int | None, Meta(ge=1)] = None
    """Average this many of the best heads too, and tell how often their strongest pairs are right;
    this reads text and model again."""

    def check(self) -> None:
        """Reject text and model where neither is read."""
        super().check()
        for field in fields_of(OriginOptions):
            if self.top is None and getattr(self, field.name) != field.default:
                raise UsageError(f"`{field.name}` has no effect without `top`; omit it")


@dataclass(frozen=True, repr=False, eq=False)
class BestHeads(Result[BestOptions, NoFacts]):
    """The best head and the best rules of every role between words, on unseen documents.

    Rules know no tree: the word at a fixed offset, and the nearest word of a class.

    Heads are chosen on one half of the documents, by their mean over examples of what is beyond
    distance (the contrast, or hits beyond the best fixed offset), and reported on the other
    ``half``, 1 or 2; each role has a row for each. ``mean`` is the mean score of the head over
    ``n`` examples, and ``gain`` the mean of what is beyond distance. Of first choices,
    ``offset_mean`` are the hits of the best fixed ``offset``, and ``share_of_arcs`` counts every
    arc once, as published accuracies do. ``class_mean`` are the hits of the ``class_rule`` that
    looks for the nearest word of a class, and ``class_gain`` those of the head beyond them; they
    are missing for scores that were saved without.

    With ``top`` heads, ``precision`` is the share of words with such arcs whose strongest other
    word, by the average of these heads, is at the end of such an arc: a mean over examples, beside
    ``share_of_words``, which counts every word once. ``head_precision``, ``offset_precision`` and
    ``class_precision`` are those of the single head and of both rules, and ``top_gain`` is the mean
    difference from the single head.

    Intervals are of means, robust to clusters, and NaN where there are fewer than two: Wilson's for
    shares (`wilson_interval`), of Wilson's limits for their differences (`difference_interval`),
    else t's.

    With ``best`` as `find_best_heads` returns it:

    >>> best.frame["half"].unique().tolist()
    [1, 2]
    """

    kind: ClassVar[str] = "best"
    question: ClassVar[str] = "Which head finds each relation best?"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "role half layer head n n_clusters mean ci_low ci_high arcs share_of_arcs offset "
            "offset_mean offset_share_of_arcs gain gain_ci_low gain_ci_high class_rule class_mean "
            "class_share_of_arcs class_gain class_gain_ci_low class_gain_ci_high top words_read "
            "precision precision_low precision_high share_of_words head_precision "
            "offset_precision class_precision top_gain top_gain_low top_gain_high"
        ).split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "offset": Column(NUMBER, gaps=True),
        **dict.fromkeys(("class_rule", "top"), Column(TEXT)),
        **dict.fromkeys((*columns[18:23], *columns[24:]), Column(NUMBER, -1, gaps=True)),
        "words_read": Column(NUMBER, 0, gaps=True),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        inside("ci_low", "mean", "ci_high"),
        inside("gain_ci_low", "gain", "gain_ci_high"),
        inside("class_gain_ci_low", "class_gain", "class_gain_ci_high"),
        inside("precision_low", "precision", "precision_high"),
        inside("top_gain_low", "top_gain", "top_gain_high"),
        equal_to("gain", ("mean", "offset_mean"), np.subtract),
        equal_to("class_gain", ("mean", "class_mean"), np.subtract),
        equal_to("top_gain", ("precision", "head_precision"), np.subtract),
    )

    def summarize(self) -> Iterator[Shown]:
        """Tabulate the best heads of each role, on the half that did not choose them."""
        frame, corpus = self.frame, self.record.sources["scores"].corpus
        documents = "examples" if corpus.documents == 1 else "documents"
        about = self._about
        yield (
            f"The best {about.head} of each role, chosen on one half of the {documents} and "
            f"measured on the other: {about.text}, next to {about.beside} (means of both halves)."
        )
        order = frame.groupby("role", sort=False)["gain"].mean().sort_values(ascending=False)
        rows, left = [], frozenset(["Head", about.compared])
        for role in order.index[:_SHOWN]:
            halves = frame[frame["role"] == role]
            heads = (halves["layer"].astype(str) + "-" + halves["head"].astype(str)).unique()
            means = [halves[name].mean() for name in about.columns.values()]
            cells = ("-" if np.isnan(mean) else f"{mean:{about.digits}}" for mean in means)
            # a rule that scores lack cannot be compared
            least = halves[list(about.least)].dropna(axis=1)
            is_more = "yes" if (least > 0).all(axis=None) else "not shown"
            rows.append((self.in_words(role), " or ".join(heads), *cells, is_more))
        yield Grid(("Role", "Head", *about.columns, about.compared), tuple(rows), left=left)
        if len(order) > _SHOWN:
            yield Pointer(f"{len(order) - _SHOWN} more roles: {SEE_FULL}")
        yield from self._about_rules(order.index)

    @property
    def _score(self) -> str:
        """The kind of score."""
        return str(self.record.sources["scores"].facts["score"])

    @property
    def _about(self) -> _Compared:
        """What is shown of each role."""
        if (top := self.options.top) is not None:
            return _Compared(
                head=f"{top} heads",
                text="how often the word with most attention is right",
                beside="the best head, offset and class rule",
                columns={f"{top} heads": "precision", "One head": "head_precision"}
                | {"Best offset": "offset_precision", "Class rule": "class_precision"},
                compared="Beats one head",
                least=("top_gain_low",),
            )
        score = self._score
        if score == HIT.name and self.frame["class_mean"].isna().all():
            return _Compared(
                head="head",
                text="how often its first choice is right",
                beside="the best fixed offset",
                columns={"Right": "mean", "Best offset": "offset_mean"},
                compared="Beats offset",
                least=("gain_ci_low",),
            )
        if score == HIT.name:
            return _Compared(
                head="head",
                text="how often its first choice is right",
                beside="the best offset and class rule",
                columns={"Right": "mean", "Best offset": "offset_mean", "Class rule": "class_mean"},
                compared="Beats both",
                least=("gain_ci_low", "class_gain_ci_low"),
            )
        unit = "x uniform" if score == BIAS.name else f"{score} score"
        return _Compared(
            head="head",
            text="its mean score",
            beside="the part that distance does not explain",
            columns={unit: "mean", "Above same distance": "gain"},
            compared="Beats distance",
            least=("gain_ci_low",),
            digits=".2f",
        )

    def _about_rules(self, roles: Iterable[str]) -> Iterator[str]:
        """Name class rules that find more than the heads do, those that find most first."""
        columns, score = [*self._about.columns.values()], self._score
        if "Class rule" not in self._about.columns:
            if score == HIT.name:
                yield (
                    "These scores were saved by a version that did not count the hits of the "
                    "nearest word of a class; score again for the best class rule."
                )
            return
        means = self.frame.groupby("role", sort=False)[columns].mean().loc[list(roles)]
        by_rule, by_heads = means[columns[-1]], means[columns[0]]
        winners = by_rule[by_rule > by_heads].sort_values(ascending=False, kind="stable")
        for role, share in winners[:_RULES_SHOWN].items():
            chosen = self.frame.loc[self.frame["role"] == role, "class_rule"].unique()
            yield (
                f"{self.in_words(str(role))}: the rule *{' or '.join(chosen)}* finds {share:.0%}, "
                f"the best {self._about.head} {by_heads[str(role)]:.0%}."
            )
        if (more := len(winners) - _RULES_SHOWN) > 0:
            yield f"Class rules beat the best {self._about.head} in {more} other roles too."


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """What a summary shows: titles, columns of means, and the limits that are above 0 if more."""

    head: str
    text: str
    beside: str
    columns: Mapping[str, str]
    compared: str
    least: tuple[str, ...]
    digits: str = ".0%"


@takes(BestOptions)
def find_best_heads(scores: HeadScores, options: BestOptions) -> BestHeads:
    """Return the best heads of each role of pairs, chosen on one half, reported on the other.

    The best of many heads looks better than it is on the data that it was chosen on: here no
    document is used both to choose a head and to report its score.

    Args:
        scores: from `score_heads`: first choices, or scores with contrasts.
        options: keyword arguments, described below.

    Raises:
        UsageError: scores without roles of pairs of words that can be ranked, or examples that
            cannot be clustered as asked.
        CorpusError, ModelError: with ``top``, text or model are missing or have changed.

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
    in_second = second_half(scores)
    estimate = partial(_estimate, clusters_in(scores.clusters, options), options.alpha)
    roles = [
        role
        for role in HeadColumns.from_scores(scores).ids
        if contrast_of(role) in scores.role_ids or baseline_of(scores, role) is not None
    ]
    if not roles:
        raise UsageError(
            "these scores have no role of pairs of words with a contrast; score one, such as "
            "syntactic, with `beyond_offset` or `score='hit'`"
        )
    candidates = (
        _row(scores, role, half, in_second == (half == 2), options.top, estimate)
        for role in roles
        for half in (1, 2)
    )
    rows = [row for row in candidates if row]
    if options.top is not None:
        counts = _count_right(scores, rows, in_second, options)
        for row in rows:
            row |= _precisions(row, counts[row["role"]], in_second, estimate)
    frame = pd.DataFrame(rows, columns=list(BestHeads.columns))
    warnings = [*warn_of_doubled(scores.clusters, options)]
    return BestHeads.made(frame, options, sources={"scores": scores.record}, warnings=warnings)


def _estimate(
    clusters: IndexArray | None,
    alpha: float,
    values: NDArray[np.floating],
    reported: BoolArray,
    interval: Callable[..., Any] | None,
) -> dict[str, float]:
    """Return mean, limits, and numbers of the reported ``values`` (examples,), by their names.

    Limits are those of an ``interval``, by default of t.
    """
    sample = Sample.from_values(
        values[reported, None], None if clusters is None else clusters[reported]
    )
    if interval is None:
        limits = Hypotheses.from_values(sample, 0.0, size=size_of_scores(sample)).intervals(alpha)
    else:
        limits = interval(sample, confidence=1 - alpha)
    return {
        "mean": sample.moments.mean[0],
        "ci_low": limits.ci_low[0],
        "ci_high": limits.ci_high[0],
        "n": sample.moments.n[0],
        "n_clusters": sample.moments.n_clusters[0],
    }


def _row(
    scores: HeadScores,
    role: str,
    half: int,
    of_half: BoolArray,
    top: int | None,
    estimate: Estimate,
) -> dict[str, Any]:
    """Return one row, with the ``top`` heads; empty where a half has no score."""
    place, is_hit = scores.role_ids.index(role), scores.offset_shares is not None
    ranked_by = role if is_hit else contrast_of(role)
    has_score = scores.counts[:, scores.role_ids.index(ranked_by)] > 0
    chosen, reported = has_score & ~of_half, has_score & of_half
    if not chosen.any() or not reported.any():
        return {}
    beyond = scores.column(ranked_by)
    means = pd.DataFrame(beyond[chosen]).mean().to_numpy()
    ranking = [k for k in np.argsort(-means, kind="stable").tolist() if not np.isnan(means[k])]
    of_head, gains = (values[:, ranking[0]] for values in (scores.column(role), beyond))
    arcs = scores.counts[:, place]
    of_rules: dict[str, Any] = {"class_rule": ""}
    of_scores, of_gains = (wilson_interval, difference_interval) if is_hit else (None, None)
    if scores.offset_shares is not None:
        best, hits = _best_rule(scores.offset_shares[:, place], chosen)
        gains = of_head - hits
        of_rules |= {
            "share_of_arcs": np.average(of_head[reported], weights=arcs[reported]),
            "offset": scores.offsets[best],
            "offset_mean": hits[reported].mean(dtype=np.float64),
            "offset_share_of_arcs": np.average(hits[reported], weights=arcs[reported]),
        }
    if (shares := class_shares(scores, role)) is not None:
        best, hits = _best_rule(shares, chosen)
        # in the precision of scores, which bounds their rounding
        gains_of_rule = (of_head - hits).astype(of_head.dtype)
        beyond_rule = estimate(gains_of_rule, reported, of_gains)
        of_rules |= {
            "class_rule": str(scores.class_rules(role).rules[best]),
            "class_mean": hits[reported].mean(),
            "class_share_of_arcs": np.average(hits[reported], weights=arcs[reported]),
            "class_gain": beyond_rule["mean"],
            "class_gain_ci_low": beyond_rule["ci_low"],
            "class_gain_ci_high": beyond_rule["ci_high"],
        }
    gain = estimate(gains, reported, of_gains)
    heads = [divmod(k, scores.n_heads) for k in ranking]
    return {
        "role": role,
        "half": half,
        "layer": heads[0][0],
        "head": heads[0][1],
        **estimate(of_head, reported, of_scores),
        "arcs": int(arcs[reported].sum()),
        **of_rules,
        "gain": gain["mean"],
        "gain_ci_low": gain["ci_low"],
        "gain_ci_high": gain["ci_high"],
        "top": "",
        "heads": heads[:top],
    }


def _best_rule(shares: NDArray[np.floating], chosen: BoolArray) -> tuple[int, NDArray[np.floating]]:
    """Return the rule with most hits in the ``chosen`` examples, and its hits (examples,)."""
    best = int(shares[chosen].mean(axis=0, dtype=np.float64).argmax())
    return best, shares[:, best]


def _precisions(
    row: dict[str, Any], counted: _Counted, in_second: BoolArray, estimate: Estimate
) -> dict[str, Any]:
    """Return how often the strongest pairs of the best heads of a row, and rules, are right."""
    words, right = counted.words, counted.by_heads
    reported, other = ((words > 0) & (in_second == (row["half"] == k)) for k in (2, 1))
    if not reported.any() or not other.any():
        return {}
    n_words = np.maximum(words, 1)
    single, together = right.T / n_words
    offset, of_offset = _rule_of(
        row.get("offset"), counted.offsets, counted.by_offsets, n_words, other
    )
    of_class: dict[str, Any] = {}
    if counted.rules:
        names = [*map(str, counted.rules)]
        class_rule = row["class_rule"] or None
        rule, hits = _rule_of(class_rule, names, counted.by_rules, n_words, other)
        of_class = {"class_rule": rule, "class_precision": hits[reported].mean()}
    precision = estimate(together, reported, wilson_interval)
    top_gain = estimate(together - single, reported, difference_interval)
    return {
        "offset": offset,
        "top": " ".join(map(head_name, row["heads"])),
        "words_read": int(words[reported].sum()),
        "precision": precision["mean"],
        "precision_low": precision["ci_low"],
        "precision_high": precision["ci_high"],
        "share_of_words": right[reported, 1].sum() / words[reported].sum(),
        "head_precision": single[reported].mean(),
        "offset_precision": of_offset[reported].mean(),
        **of_class,
        "top_gain": top_gain["mean"],
        "top_gain_low": top_gain["ci_low"],
        "top_gain_high": top_gain["ci_high"],
    }


def _rule_of(
    rule: T | None, names: Sequence[T], right: FloatArray, n_words: FloatArray, other: BoolArray
) -> tuple[T, FloatArray]:
    """Return the ``rule`` if there is one, else the best one in ``other`` examples, and its shares.

    ``right`` (examples, rules) count the words that each of the rules gets right.
    """
    shares = right / n_words[:, None]
    best = int(shares[other].mean(axis=0).argmax()) if rule is None else names.index(rule)
    return names[best], shares[:, best]


class _Counted(NamedTuple):
    """Words that look for others in a role (examples,), and those for which the right one is found.

    It is found by the first head of the role and the half, and by the average of all (examples, 2);
    by each of the ``offsets``, and by each of the ``rules``.
    """

    offsets: tuple[int, ...]
    rules: list[Nearest]
    words: FloatArray
    by_heads: FloatArray
    by_offsets: FloatArray
    by_rules: FloatArray

    @classmethod
    def empty(cls, scores: HeadScores, rules: list[Nearest]) -> _Counted:
        """Return counts of 0."""
        n_examples, offsets = scores.n_examples, scores.offsets
        counts = (np.zeros((n_examples, n)) for n in (2, len(offsets), len(rules)))
        return cls(offsets, rules, np.zeros(n_examples), *counts)


def _count_right(
    scores: HeadScores,
    rows: Sequence[dict[str, Any]],
    in_second: BoolArray,
    options: BestOptions,
) -> dict[str, _Counted]:
    """Count for each role the words with such pairs, and those whose strongest pair is right.

    Words that have no pieces are neither queries nor keys.
    """
    heads = {(row["role"], row["half"] == 2): row["heads"] for row in rows}
    roles = dict.fromkeys(role for role, _ in heads)
    scored = scores.counts[:, [scores.role_ids.index(role) for role in roles]] > 0
    wanted = np.flatnonzero(scored.any(axis=1)).tolist()
    origin = Origin(scores, options)
    roles_read, examples = origin.read(roles, wanted)
    rules = _rules_of(scores, [roles_read[role] for role in roles], examples.values())
    counts = {role: _Counted.empty(scores, rules[role].rules) for role in roles}
    every = {head for chosen in heads.values() for head in chosen}
    cuts = read_heads(origin.encoder, examples, every, origin.measure, scores.digests)
    for row, (example, read) in cuts:
        scope = _widest_scope(scores, example)
        for role in roles:
            by_columns = role.endswith(_BY_COLUMNS)
            if not (keys := _keys_of(scope, roles_read[role], by_columns)):
                continue
            chosen, of_role = heads[role, bool(in_second[row])], counts[role]

            def right(found: NDArray[np.integer], keys: Mapping[int, set[int]] = keys) -> int:
                return sum(int(found[word]) in partners for word, partners in keys.items())

            of_role.words[row] = len(keys)
            for k, some in enumerate((chosen[:1], chosen)):
                between = average_between_words(example, [read[head] for head in some])
                between = between.T if by_columns else between
                np.fill_diagonal(between, -1)
                between[:, example.sizes == 0] = -1
                of_role.by_heads[row, k] = right(between.argmax(axis=1))
            words = np.arange(len(example.sizes))
            homes = find_homes(scope, 0 * words, words)
            of_role.by_offsets[row] = [right(homes + offset) for offset in scores.offsets]
            of_role.by_rules[row] = [right(found) for found in nearest_words(scope, rules[role])]
    return counts


def _rules_of(
    scores: HeadScores, roles: Sequence[Role], examples: Iterable[Example]
) -> dict[str, ClassRules]:
    """Return the class rules of roles: those of the scores, else those of these examples."""
    source = scores.record.options.get("classes") or UPOS
    sentences = [sentence for example in examples for sentence in example.sentences]
    across = scores.record.model.attention == CROSS
    of_examples = classes_of_rules(with_class_rules(roles, sentences, source, across))
    found = {}
    for role in roles:
        of_scores = scores.class_rules(role.id)
        classes = of_scores.classes or of_examples.get(role.id, ())
        found[role.id] = ClassRules(tuple(classes), source)
    return found


def _widest_scope(scores: HeadScores, example: EncodedExample) -> Scope:
    """Return an example in the scope of the layers that see most."""
    batch, reaches = PaddedBatch([example]), scores.record.model.reaches_of_layers
    scopes = (Scope(batch, reach, scores.score) for reach in dict.fromkeys(reaches))
    return max(scopes, key=lambda scope: int(scope.seen.sum()))


def _keys_of(scope: Scope, role: Role, by_columns: bool) -> dict[int, set[int]]:
    """Return for each word that looks for others in a role the words in view that it looks for."""
    assert role.sieve is not None
    (example,) = scope.batch.examples
    pairs = np.array(role.sieve.words(scope.batch)[1], dtype=np.int64).reshape(-1, 2)
    queries, partners = np.stack([example.starts, example.sizes], axis=1)[pairs.T]
    is_seen = scope.sees_words(np.zeros(len(pairs), dtype=np.int64), queries, partners)
    keys: dict[int, set[int]] = {}
    for pair in pairs[is_seen].tolist():
        query, key = reversed(pair) if by_columns else pair
        keys.setdefault(query, set()).add(key)
    return keys
