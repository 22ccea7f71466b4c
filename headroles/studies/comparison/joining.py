"""Score sets of the same examples, brought into one order; messages name what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from headroles.arrays import IndexArray
from headroles.errors import UsageError
from headroles.record import ScoresRecord
from headroles.roles import Role
from headroles.scoring.scores import HeadScores
from headroles.storage import plain

_POOLED = "relations"
"""Meaning of roles that pool relations; if relations differ, such roles are dropped alone."""

_Difference: TypeAlias = tuple[str, Any, Any]
"""What differs, and its two values."""


@dataclass(frozen=True)
class JoinedScores:
    """Score sets with the same examples and roles in the same order, under their names.

    ``dropped_examples`` and ``dropped_roles`` of each set are those that not all sets have.
    """

    sets: dict[str, HeadScores]
    dropped_examples: dict[str, int]
    dropped_roles: dict[str, list[str]]


def refuse_other_shape(
    first: str, shape: tuple[int, int], second: str, other: tuple[int, int]
) -> None:
    """Raise UsageError for two models with other numbers of layers, or of heads of each."""
    for counted, n, n_other in zip(("layers", "heads"), shape, other, strict=True):
        if n != n_other:
            raise UsageError(
                f"{first!r} and {second!r} differ in their number of {counted}: {n} and {n_other}; "
                "only models of one architecture can be compared head by head; count heads by "
                "layer with: headroles replicate"
            )


def join_scores(named: Mapping[str, HeadScores], on_mismatch: str = "error") -> JoinedScores:
    """Join the examples of two or more score sets by their ids and digests.

    Examples and roles come in the order of the first set, and documents are called as there.

    Args:
        named: score sets under the names that messages call them by, the first one first.
        on_mismatch: treatment of differing examples, relations or contrasts: ``"error"``, or
            ``"intersect"`` to keep shared ones. If relations differ, the roles that pool them
            are dropped.

    Raises:
        UsageError: models of another shape, scores of another meaning, sets that differ
            (``"error"``) or have nothing in common, or sets without digests of examples.
    """
    for name, scores in named.items():
        _check_digests(name, scores)
    (first_name, first), *others = named.items()
    for name, scores in others:
        refuse_other_shape(first_name, _shape(first), name, _shape(scores))
        _refuse(first_name, name, _deep_differences(first, scores), "score both alike")
        if on_mismatch == "error":
            _refuse(
                first_name,
                name,
                _role_differences(first, scores),
                f"score both alike, or {COMPARE_SHARED}",
            )
    roles = _shared_roles(list(named.values()))
    rows = _shared_rows(named)
    if on_mismatch == "error":
        _check_same_examples(named, rows)
    documents = tuple(first.documents[row] for row in rows[first_name])
    ids = [role.id for role in roles]
    return JoinedScores(
        sets={
            name: replace(scores.select(rows[name], ids), documents=documents)
            for name, scores in named.items()
        },
        dropped_examples={
            name: scores.n_examples - len(rows[name]) for name, scores in named.items()
        },
        dropped_roles={
            name: [role.id for role in scores.roles if role not in roles]
            for name, scores in named.items()
        },
    )


COMPARE_SHARED = "compare what both have: `on_mismatch='intersect'`"


def _shape(scores: HeadScores) -> tuple[int, int]:
    return scores.n_layers, scores.n_heads


def _check_digests(name: str, scores: HeadScores) -> None:
    if len(scores.digests) != scores.n_examples:
        raise UsageError(
            f"the scores {name!r} do not name their examples: they were made by hand; score again"
        )


def _refuse(first: str, second: str, differences: Iterator[_Difference], remedy: str) -> None:
    for name, one, other in differences:
        raise UsageError(f"{first!r} and {second!r} differ in {name}: {one} and {other}; {remedy}")


def _deep_differences(first: HeadScores, second: HeadScores) -> Iterator[_Difference]:
    """Yield differences that make scores of the same name incomparable."""
    if first.score != second.score:
        yield "their kind of score", repr(first.score.name), repr(second.score.name)
    yield from _differences_of_meaning(first, second)
    settings = [_settings(scores.record) for scores in (first, second)]
    for name in settings[0]:
        one, other = (own[name] for own in settings)
        if one != other:
            yield name, one or "none", other or "none"


def _settings(record: ScoresRecord) -> dict[str, Any]:
    return {
        "their pairing of sentences": record.pairing,
        "the label scheme of their corpus": record.corpus.scheme,
        "how far the attention of their layers reaches": record.reaches,
        "what their scores are rounded to": record.rounded,
    }


def _differences_of_meaning(first: HeadScores, second: HeadScores) -> Iterator[_Difference]:
    """Yield differences of meaning between roles of the same name."""
    others = {role.id: role.meaning for role in second.roles}
    for role in first.roles:
        for name, one in role.meaning.items():
            other = others.get(role.id, {}).get(name, one)
            if one != other and name != _POOLED:
                yield f"the {name} of {role.id}", one, other


def _role_differences(first: HeadScores, second: HeadScores) -> Iterator[_Difference]:
    one, other = (_relations(scores.roles) for scores in (first, second))
    if one != other:
        yield "their relations", one, other
    only_first = [name for name in first.role_ids if name not in second.role_ids]
    only_second = [name for name in second.role_ids if name not in first.role_ids]
    if only_first or only_second:
        one, other = (", ".join(only) or "none besides" for only in (only_first, only_second))
        yield "their roles", one, other
    others = {role.id: role for role in second.roles}
    for role in first.roles:
        if role != others[role.id]:
            one, other = (plain(own.to_record()) for own in (role, others[role.id]))
            yield f"what {role.id} means", one, other


def _relations(roles: Sequence[Role]) -> Any:
    """Return the relations that roles pool; None if none does."""
    return next((role.meaning[_POOLED] for role in roles if _POOLED in role.meaning), None)


def _shared_roles(sets: Sequence[HeadScores]) -> tuple[Role, ...]:
    """Return roles that all ``sets`` have with the same meaning, in the order of the first."""
    roles = tuple(role for role in sets[0].roles if all(role in other.roles for other in sets[1:]))
    if not roles:
        raise UsageError("the scores have no role in common; score the same roles with each model")
    return roles


def _shared_rows(named: Mapping[str, HeadScores]) -> dict[str, IndexArray]:
    """Return the places of the shared examples in each set, in the order of the first."""
    keys = [list(zip(scores.ids, scores.digests, strict=True)) for scores in named.values()]
    places = [{key: place for place, key in enumerate(own)} for own in keys]
    shared = [key for key in keys[0] if all(key in own for own in places[1:])]
    if not shared:
        raise UsageError(
            "the scores have no example in common, of the same name, tokens, tree and labels; "
            "score the same corpus with the same tokenizer, or test roles in both corpora with "
            "headroles replicate"
        )
    return {
        name: np.array([own[key] for key in shared], dtype=np.intp)
        for name, own in zip(named, places, strict=True)
    }


def _check_same_examples(named: Mapping[str, HeadScores], rows: Mapping[str, IndexArray]) -> None:
    for name, scores in named.items():
        shared = set(rows[name].tolist())
        left_out = [own for place, own in enumerate(scores.ids) if place not in shared]
        if not left_out:
            continue
        lacking = [other for other in named if left_out[0] not in named[other].ids]
        why = f"{lacking[0]!r} lacks it" if lacking else "its tokens, its tree or its labels differ"
        raise UsageError(
            f"not all score sets have the same examples: {len(left_out)} of the "
            f"{scores.n_examples} of {name!r} have no match, first {left_out[0]!r} ({why}); "
            f"score the same corpus with the same tokenizer, or {COMPARE_SHARED}"
        )
