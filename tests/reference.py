"""The scores straight from their definition: slow, in float64, one example at a time.

Nothing here comes from the package but the examples: words are cut into pieces one by one, and
attention is what transformers returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles.corpus import Example

Attention = NDArray[np.float64]


class ReferenceExample:
    """Token positions of an example: classifier, words, separator(s), words, separator."""

    def __init__(self, example: Example, tokenizer: PreTrainedTokenizerBase) -> None:
        self.example = example
        added = [tokenizer.num_special_tokens_to_add(pair=pair) for pair in (False, True)]
        n_between = added[1] - added[0]
        cls_id, sep_id = tokenizer("")["input_ids"]
        ids, self.pieces, self.words_of, self.specials = [cls_id], [], [], [0]
        for segment, sentence in enumerate(example.sentences):
            if segment:  # BERT: one separator stands between; RoBERTa: one more
                for _ in range(n_between - 1):
                    self.specials.append(len(ids))
                    ids.append(sep_id)
            spans = []
            for word in sentence.words:
                word_ids = tokenizer([word], is_split_into_words=True, add_special_tokens=False)[
                    "input_ids"
                ]
                spans.append(list(range(len(ids), len(ids) + len(word_ids))))
                ids += word_ids
            self.pieces.append(spans)
            self.words_of.append([position for span in spans for position in span])
            self.specials.append(len(ids))
            ids.append(sep_id)
        self.ids = ids
        self.n = len(ids)

    def token_types(self) -> list[int]:
        boundary = self.specials[1]
        return [int(position > boundary) for position in range(self.n)]


def attention_of(
    model: PreTrainedModel, reference: ReferenceExample, token_types: bool
) -> Attention:
    """(layers, heads, n, n) as transformers returns it under eager attention."""
    inputs: dict[str, Any] = {"input_ids": torch.tensor([reference.ids])}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if token_types:
        inputs["token_type_ids"] = torch.tensor([reference.token_types()])
    with torch.no_grad():
        attentions = model(**inputs, output_attentions=True).attentions
    return np.stack([layer[0].double().numpy() for layer in attentions])


def row_mean_ratio(attention: Attention, rows: Sequence[tuple[int, Sequence[int]]]) -> Any:
    """mean over (query, sieve) of mean attention in the sieve / mean attention of the row."""
    ratios = [
        attention[..., query, list(sieve)].mean(-1) / attention[..., query, :].mean(-1)
        for query, sieve in rows
        if len(sieve)
    ]
    return np.mean(ratios, axis=0) if ratios else None


def row_mean_excess(attention: Attention, rows: Sequence[tuple[int, Sequence[int]]]) -> Any:
    """mean over (query, sieve) of the attention in the sieve beyond that of uniform attention."""
    n = attention.shape[-1]
    values = [
        (attention[..., query, list(sieve)].sum(-1) - len(sieve) / n) / (1 - len(sieve) / n)
        for query, sieve in rows
        if 0 < len(sieve) < n
    ]
    return np.mean(values, axis=0) if values else None


ROW_MEANS = {"bias": row_mean_ratio, "excess": row_mean_excess}


def reference_scores(
    attention: Attention,
    reference: ReferenceExample,
    relations: Sequence[str],
    window: int = 2,
    score: str = "bias",
) -> dict[str, Any]:
    """(layers, heads) per role, None where the example has no score.

    A contrast with an arc at an offset where the example has no other pair is left out.
    """
    row_mean = ROW_MEANS[score]
    n, specials = reference.n, reference.specials
    everywhere = range(n)
    near = [(i, [j for j in everywhere if abs(i - j) <= window]) for i in everywhere]
    scores = {
        "local": row_mean(attention, near),
        "delimiter": row_mean(attention, [(i, specials) for i in everywhere]),
        "delimiter:cls": row_mean(attention, [(i, specials[:1]) for i in everywhere]),
        "delimiter:sep": row_mean(attention, [(i, specials[1:]) for i in everywhere]),
        "block": None,
        "block:ratio" if score == "bias" else "block:evenness": None,
    }
    if len(reference.words_of) == 2:
        rows = [(i, reference.words_of[int(i >= specials[1])]) for i in everywhere]
        scores |= BLOCK_SCORES[score](attention, [row for row in rows if row[1]])
    scores |= _syntactic_scores(attention, reference, relations, row_mean)
    return scores | _contrasts(attention, reference, relations, score)


def _entropy(weights: Attention) -> Attention:
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(weights > 0, weights * np.log(weights), 0.0).sum(-1)


def _block_bias(attention: Attention, rows: list[tuple[int, list[int]]]) -> dict[str, Any]:
    with_entropy = [
        attention[..., i, sieve].mean(-1) * attention.shape[-1] * _entropy(attention[..., i, :])
        for i, sieve in rows
    ]
    return {
        "block": np.mean(with_entropy, axis=0),
        "block:ratio": row_mean_ratio(attention, rows),
    }


def _block_excess(attention: Attention, rows: list[tuple[int, list[int]]]) -> dict[str, Any]:
    evenness = []
    for i, sieve in rows:
        if len(sieve) > 1:
            within = attention[..., i, sieve]
            evenness.append(_entropy(within / within.sum(-1, keepdims=True)) / np.log(len(sieve)))
    return {
        "block": row_mean_excess(attention, rows),
        "block:evenness": np.mean(evenness, axis=0) if evenness else None,
    }


BLOCK_SCORES = {"bias": _block_bias, "excess": _block_excess}


_Arc = tuple[int, list[int], list[int]]


def _directed_arcs(
    reference: ReferenceExample, relations: Sequence[str], direction: str
) -> dict[str, list[_Arc]]:
    """(sentence, queries, keys) of the arcs of every relation."""
    by_relation: dict[str, list[_Arc]] = {r: [] for r in relations}
    for k, sentence in enumerate(reference.example.sentences):
        pieces = reference.pieces[k]
        for dependent, governor in enumerate(sentence.governors):
            relation = sentence.relations[dependent].split(":")[0]
            if governor < 0 or relation not in by_relation:
                continue
            ends = (pieces[dependent], pieces[governor])
            queries, keys = ends if direction == "to_governor" else ends[::-1]
            if queries and keys:
                by_relation[relation].append((k, queries, keys))
    return by_relation


def _contrasts(
    attention: Attention, reference: ReferenceExample, relations: Sequence[str], score: str
) -> dict[str, Any]:
    """Pair by pair: attention less the mean at the same offset between words no arc joins."""
    scores: dict[str, Any] = {}
    for direction in ("to_governor", "to_dependent"):
        by_relation: dict[str, list[Any]] = {}
        for relation, arcs in _directed_arcs(reference, relations, direction).items():
            by_relation[relation] = []
            for k, queries, keys in arcs:
                cells = [
                    attention[..., i, j] - _control(attention, reference, k, j - i)
                    for i in queries
                    for j in keys
                ]
                size = len(keys) / reference.n
                scale = 1 / size if score == "bias" else 1 / (1 - size)
                by_relation[relation].append(np.sum(cells, axis=0) / len(queries) * scale)
        pooled = [arc for found in by_relation.values() for arc in found]
        name = "syntactic" if direction == "to_governor" else "syntactic:to_dependent"
        for role, found in [(name, pooled)] + [
            (f"syntactic:{relation}:{direction}", found) for relation, found in by_relation.items()
        ]:
            mean = np.mean(found, axis=0) if found else None
            if mean is None or not np.isnan(mean).any():
                scores[f"{role}:beyond_offset"] = mean
    return scores


def _control(attention: Attention, reference: ReferenceExample, k: int, offset: int) -> Any:
    """Mean over pairs of words of sentence ``k``, NaN if there is none at the offset."""
    governors, pieces = reference.example.sentences[k].governors, reference.pieces[k]
    total, weight = 0.0, 0.0
    for x in range(len(pieces)):
        for y in range(len(pieces)):
            if x == y or governors[x] == y or governors[y] == x:
                continue
            for i in pieces[x]:
                if i + offset in pieces[y]:
                    share = 1 / (len(pieces[x]) * len(pieces[y]))
                    total = total + share * attention[..., i, i + offset]
                    weight += share
    return total / weight if weight else np.nan


def _syntactic_scores(
    attention: Attention, reference: ReferenceExample, relations: Sequence[str], row_mean: Any
) -> dict[str, Any]:
    """An arc is the mean of its rows, a role the mean of its arcs."""

    def mean_of(arcs: list[_Arc]) -> Any:
        values = [row_mean(attention, [(i, keys) for i in queries]) for _, queries, keys in arcs]
        return np.mean(values, axis=0) if values else None

    scores: dict[str, Any] = {}
    for direction in ("to_governor", "to_dependent"):
        by_relation = _directed_arcs(reference, relations, direction)
        pooled = [arc for arcs in by_relation.values() for arc in arcs]
        scores["syntactic" if direction == "to_governor" else "syntactic:to_dependent"] = mean_of(
            pooled
        )
        for relation, arcs in by_relation.items():
            scores[f"syntactic:{relation}:{direction}"] = mean_of(arcs)
    return scores


def largest_difference(
    values: NDArray[np.float32], roles: Sequence[str], expected: dict[str, Any], floor: float
) -> float:
    """Largest relative difference over (layers, heads, roles); infinite if presence differs.

    It is relative to what is expected, or to ``floor`` where that is smaller; contrasts, which
    go through 0, to 1 at least.
    """
    worst = 0.0
    for k, role in enumerate(roles):
        if role not in expected:
            continue
        ours, theirs = values[..., k], expected[role]
        if theirs is None or np.isnan(ours).any():
            if not (theirs is None and np.isnan(ours).all()):
                return float("inf")
            continue
        least = 1.0 if role.endswith("beyond_offset") else floor
        worst = max(worst, float((np.abs(ours - theirs) / np.maximum(np.abs(theirs), least)).max()))
    return worst


FLOORS = {"bias": 1e-12, "excess": 1.0}
