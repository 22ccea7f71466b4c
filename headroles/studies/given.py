"""The weights that a head gives in sentences: along the arcs of a role, and elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.errors import HeadRolesError, UsageError
from headroles.studies.options import AttentionOptions

if TYPE_CHECKING:
    from headroles.studies.attention import WordAttention
    from headroles.studies.sentences import FoundAgain, MarkedExample

Given = tuple[int, int, float, bool]
"""Query, key, weight, whether the role has this arc."""
_LEAST = 0.1  # weights elsewhere that are smaller are not listed
_OWN, _OTHERS = 8, 4
"""Arcs of a role, and others, that are listed for a sentence."""


def weights_again(
    again: FoundAgain, model: Any = None, options: AttentionOptions | None = None
) -> tuple[Sequence[Sequence[WordAttention] | None], tuple[str, ...]]:
    """Return attention in the sentences, from a model on this machine, or why there is none."""
    if not again.asked:
        return (), ()
    from headroles.studies.attention import attention_of_heads  # which loads torch

    recorded = str(again.scores.record.model.model)
    try:
        if model is None and not Path(recorded).is_dir():
            raise UsageError(f"{recorded} is no folder here; pass model (--model)")
        return attention_of_heads(again, options or AttentionOptions(model=model)), ()
    except HeadRolesError as error:
        return [None] * len(again.asked), (f"Weights are not shown: {error}.",)


def largest_weights(seen: WordAttention, marked: MarkedExample) -> Iterator[Given]:
    """Yield the largest weights: of the role, then elsewhere; without arcs the largest of all."""
    weights = seen.weights
    is_word = seen.words >= 0
    large = weights >= _LEAST
    if marked.pairs:
        between = large & np.outer(is_word, is_word) & ~np.eye(len(seen), dtype=bool)
        groups = [(seen.sieve, _OWN), (between & ~seen.sieve, _OTHERS)]
    else:
        groups = [(large, _OWN)]
    for chosen, most in groups:
        places = np.argwhere(chosen)
        order = np.argsort(-weights[chosen], kind="stable")[:most]
        for query, key in places[order].tolist():
            yield query, key, float(weights[query, key]), bool(seen.sieve[query, key])


def in_text(seen: WordAttention, marked: MarkedExample) -> str:
    """Write the largest weights of a sentence as ``word -> word 0.62``, those of the role first."""
    listed: dict[bool, list[str]] = {True: [], False: []}
    for query, key, weight, is_own in largest_weights(seen, marked):
        listed[is_own].append(f"{seen.labels[query]} -> {seen.labels[key]} {weight:.2f}")
    own, others = (", ".join(listed[is_own]) for is_own in (True, False))
    return f"{own}; elsewhere {others}" if own and others else own or others
