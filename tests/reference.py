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


def reference_scores(
    attention: Attention, reference: ReferenceExample, relations: Sequence[str], window: int = 2
) -> dict[str, Any]:
    """(layers, heads) per role, None where the example has no score."""
    n, specials = reference.n, reference.specials
    everywhere = range(n)
    near = [(i, [j for j in everywhere if abs(i - j) <= window]) for i in everywhere]
    scores = {
        "local": row_mean_ratio(attention, near),
        "delimiter": row_mean_ratio(attention, [(i, specials) for i in everywhere]),
        "delimiter:cls": row_mean_ratio(attention, [(i, specials[:1]) for i in everywhere]),
        "delimiter:sep": row_mean_ratio(attention, [(i, specials[1:]) for i in everywhere]),
        "block": None,
        "block:ratio": None,
    }
    if len(reference.words_of) == 2:
        rows = [(i, reference.words_of[int(i >= specials[1])]) for i in everywhere]
        scores["block:ratio"] = row_mean_ratio(attention, rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(attention > 0, attention * np.log(attention), 0.0)
        entropies = -terms.sum(-1)
        scores["block"] = np.mean(
            [
                attention[..., i, sieve].mean(-1) * n * entropies[..., i]
                for i, sieve in rows
                if sieve
            ],
            axis=0,
        )
    return {**scores, **_syntactic_scores(attention, reference, relations)}


def _syntactic_scores(
    attention: Attention, reference: ReferenceExample, relations: Sequence[str]
) -> dict[str, Any]:
    scores: dict[str, Any] = {}
    for direction in ("to_governor", "to_dependent"):
        by_relation: dict[str, list[Attention]] = {relation: [] for relation in relations}
        for sentence, pieces in zip(reference.example.sentences, reference.pieces, strict=True):
            for dependent, governor in enumerate(sentence.governors):
                relation = sentence.relations[dependent].split(":")[0]
                if governor < 0 or relation not in by_relation:
                    continue
                ends = (pieces[dependent], pieces[governor])
                queries, keys = ends if direction == "to_governor" else ends[::-1]
                if queries and keys:
                    cells = [attention[..., i, j] for i in queries for j in keys]
                    by_relation[relation].append(np.mean(cells, axis=0) * reference.n)
        pooled = [arc for arcs in by_relation.values() for arc in arcs]
        name = "syntactic" if direction == "to_governor" else "syntactic:to_dependent"
        scores[name] = np.mean(pooled, axis=0) if pooled else None
        for relation, arcs in by_relation.items():
            scores[f"syntactic:{relation}:{direction}"] = np.mean(arcs, axis=0) if arcs else None
    return scores


def largest_difference(
    values: NDArray[np.float32], roles: Sequence[str], expected: dict[str, Any]
) -> float:
    """Largest relative difference over (layers, heads, roles); infinite if presence differs."""
    worst = 0.0
    for k, role in enumerate(roles):
        ours, theirs = values[..., k], expected[role]
        if theirs is None or np.isnan(ours).any():
            if not (theirs is None and np.isnan(ours).all()):
                return float("inf")
            continue
        worst = max(worst, float((np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1e-12)).max()))
    return worst
