"""The sentences behind heads, read again from the treebank, with weights where the model is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headroles import storage
from headroles.errors import CorpusError, HeadRolesError, UsageError
from headroles.report.head_map import Quoted
from headroles.roles import is_own
from headroles.scoring import HeadScores
from headroles.studies.examples import Examples, FoundAgain, MarkedExample, find_again
from headroles.studies.options import MEDIAN, AttentionOptions, ExampleOptions
from headroles.studies.rereading import not_imported

if TYPE_CHECKING:
    from headroles.studies.attention import WordAttention

Asked = tuple[tuple[int, int], str, ExampleOptions]
Sentences = tuple[Quoted, ...]
_LEAST = 0.1  # attention that is smaller is not listed
_OWN, _OTHERS = 8, 4
"""Arcs of a role, and others, that are listed for a sentence."""


@dataclass(frozen=True)
class Sources:
    """Where the sentences of results come from.

    ``imported`` are roles of one's own that may be imported; ``model`` is the one that was scored
    if it is not where it was then.
    """

    folder: Path
    imported: tuple[str, ...] = ()
    model: str | None = None


def quote(sources: Sources, asked: Sequence[Asked]) -> tuple[list[Sentences], tuple[str, ...]]:
    """Return sentences for each of ``asked``, and why there are none or no weights in them."""
    closed = {role for _, role, _ in asked if not _may_be_read(role, sources.imported)}
    open_ones = [
        (head, role, replace(options, roles=sources.imported or None))
        for head, role, options in asked
        if role not in closed
    ]
    try:
        if HeadScores.kind not in storage.kinds_in(sources.folder):
            raise CorpusError("the scores are not in the folder")
        again = find_again(HeadScores.load(sources.folder), open_ones)
    except HeadRolesError as error:
        return [()] * len(asked), (f"The sentences cannot be shown: {error}.",)
    weights, no_weights = _weights(again, sources.model)
    left = iter(zip(again.examples(), weights, strict=True))
    found = [() if role in closed else tuple(_quoted(*next(left))) for _, role, _ in asked]
    why_not = [
        f"Sentences of {role} are not shown: {not_imported(role, '--roles of headroles report')}."
        for role in sorted(closed)
    ]
    return found, (*why_not, *no_weights)


def _weights(
    again: FoundAgain, model: str | None
) -> tuple[Sequence[Sequence[WordAttention] | None], tuple[str, ...]]:
    """Attention in the sentences, from a model that is on this machine, or why there is none."""
    if not again.asked:
        return (), ()
    from headroles.studies.attention import attention_of_heads  # which loads torch

    recorded = str((again.scores.provenance.get("model") or {}).get("model"))
    try:
        if model is None and not Path(recorded).is_dir():
            raise UsageError(f"{recorded} is no folder here; name it with headroles report --model")
        return attention_of_heads(again, AttentionOptions(model=model)), ()
    except HeadRolesError as error:
        return [None] * len(again.asked), (f"Weights are not shown: {error}.",)


def _may_be_read(role: str, imported: Sequence[str]) -> bool:
    """Tell whether the sieve of a role is made without code that the user did not name."""
    return not is_own(role) or any(role in (name, f"{name}:back") for name in imported)


def _quoted(examples: Examples, weights: Sequence[WordAttention] | None) -> Iterator[Quoted]:
    typical = ", typical" if examples.provenance["examples_of"]["which"] == MEDIAN else ""
    rows = zip(
        examples.frame["score"],
        examples.marked,
        weights if weights is not None else repeat(None, len(examples.marked)),
        strict=True,
    )
    for score, marked, seen in rows:
        told = f"{score:.3g}{typical}"
        if seen is None:
            arcs = tuple((query, key, np.nan, True) for query, key in marked.pairs)
            yield Quoted(told, marked.words, marked.keys, arcs)
        else:
            yield Quoted(told, seen.labels, _places(seen, marked), tuple(_arcs(seen, marked)))


def _places(seen: WordAttention, marked: MarkedExample) -> tuple[int, ...]:
    """Where the words of the sieve stand among words and special tokens."""
    return tuple(np.flatnonzero(np.isin(seen.words, marked.keys)).tolist())


def _arcs(seen: WordAttention, marked: MarkedExample) -> Iterator[tuple[int, int, float, bool]]:
    """The largest weights: of the role, then elsewhere; without arcs the largest of all."""
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
