"""The sentences behind heads, read again from the treebank, with weights if the model is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headroles import storage
from headroles.drawing.head_map import Quoted
from headroles.errors import CorpusError, HeadRolesError
from headroles.roles import is_own
from headroles.scoring.scores import HeadScores
from headroles.studies.inspection.examples import (
    Examples,
    examples_of,
    largest_weights,
    weights_again,
)
from headroles.studies.inspection.options import MEDIAN, AttentionOptions, ExampleOptions
from headroles.studies.inspection.sentences import MarkedExample, find_again, not_imported

if TYPE_CHECKING:
    from headroles.studies.inspection.attention import WordAttention

Asked = tuple[tuple[int, int], str, ExampleOptions]
Sentences = tuple[Quoted, ...]


@dataclass(frozen=True)
class Sources:
    """Sources of the sentences of results.

    ``imported`` are roles of users that may be imported; ``model`` is the model that was scored, if
    it has moved.
    """

    folder: Path
    imported: tuple[str, ...] = ()
    model: str | None = None


def quote(sources: Sources, asked: Sequence[Asked]) -> tuple[list[Sentences], tuple[str, ...]]:
    """Return sentences for each of ``asked``, and reasons for missing sentences or weights."""
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
    weights, no_weights = weights_again(again, AttentionOptions(model=sources.model))
    left = iter(zip(examples_of(again), weights, strict=True))
    found = [() if role in closed else tuple(_quoted(*next(left))) for _, role, _ in asked]
    why_not = [
        f"Sentences of {role} are not shown: {not_imported(role, '`roles`')}."
        for role in sorted(closed)
    ]
    return found, (*why_not, *no_weights)


def _may_be_read(role: str, imported: Sequence[str]) -> bool:
    """Tell whether the sieve of a role needs no code that the user did not name."""
    own = role.removesuffix(":beyond_offset")
    return not is_own(role) or any(own in (name, f"{name}:back") for name in imported)


def _quoted(examples: Examples, weights: Sequence[WordAttention] | None) -> Iterator[Quoted]:
    typical = ", typical" if examples.record.examples_of.which == MEDIAN else ""
    rows = zip(
        examples.frame["score"],
        examples.marked,
        weights if weights is not None else repeat(None, len(examples.marked)),
        strict=True,
    )
    for score, marked, seen in rows:
        score_text = f"{score:.3g}{typical}"
        if seen is None:
            arcs = tuple((query, key, np.nan, True) for query, key in marked.pairs)
            yield Quoted(score_text, marked.words, marked.keys, arcs)
        else:
            yield Quoted(
                score_text, seen.labels, _places(seen, marked), tuple(largest_weights(seen, marked))
            )


def _places(seen: WordAttention, marked: MarkedExample) -> tuple[int, ...]:
    """Return the places of the sieve's words among words and special tokens."""
    return tuple(np.flatnonzero(np.isin(seen.words, marked.keys)).tolist())
