"""Score sets of the same examples, brought into one order; whatever differs is told by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headroles.errors import UsageError
from headroles.scores import HeadScores
from headroles.sieves import BEYOND_OFFSET, TO_DEPENDENT

ON_MISMATCH = ("error", "intersect")
_SETTLED = {
    "score": "kind of score",
    "window": "window of local",
    "pairing": "pairing of sentences",
    "keep_subtypes": "keeping of subtypes",
    "published_edge": "published edge of local",
}
"""Options that give a role of the same name another meaning."""
_ROLES_CHOSEN = {"relations": "relations", "beyond_offset": "contrasts beyond the offset"}
"""Options that only say which roles there are."""
_POOLED = frozenset(
    name + contrast
    for name in ("syntactic", f"syntactic:{TO_DEPENDENT}")
    for contrast in ("", f":{BEYOND_OFFSET}")
)
_DIGITS_WITHOUT_ARCS = 8
"""So many digits of the digest of an example do not depend on the relations that were scored."""

_Difference: TypeAlias = tuple[str, Any, Any]
"""What differs, and its two values."""
_Rows: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class JoinedScores:
    """Score sets with the same examples and roles in the same order, under their names.

    ``dropped_examples`` and ``dropped_roles`` tell what each set had that not all of them have.
    """

    sets: dict[str, HeadScores]
    dropped_examples: dict[str, int]
    dropped_roles: dict[str, list[str]]


def join_scores(named: Mapping[str, HeadScores], on_mismatch: str = "error") -> JoinedScores:
    """Join the examples of two or more score sets by their ids and digests.

    Examples and roles come in the order of the first set, and documents are called as there.

    Args:
        named: score sets under the names that messages call them by, the first one first.
        on_mismatch: what to do where examples, relations or contrasts differ: ``"error"``, or
            ``"intersect"`` to keep what all sets have. Where relations differ, the roles that
            pool them go, and two examples are the same if they have the same tokens, words and
            governors, and as many arcs of each relation that is left.

    Raises:
        UsageError: models of another shape, scores that mean something else, sets that differ
            (``"error"``) or have nothing in common, or that do not tell what their examples were.
    """
    check_on_mismatch(on_mismatch)
    for name, scores in named.items():
        _check_digests(name, scores)
    (first_name, first), *others = named.items()
    for name, scores in others:
        _refuse(first_name, name, _deep_differences(first, scores), "score both alike")
        if on_mismatch == "error":
            _refuse(first_name, name, _role_differences(first, scores), _cure("score both alike"))
    roles = _shared_roles(list(named.values()))
    rows = _shared_rows(named, roles)
    if on_mismatch == "error":
        _check_same_examples(named, rows)
    documents = [first.documents[row] for row in rows[first_name]]
    return JoinedScores(
        sets={
            name: _select(scores, rows[name], roles, documents) for name, scores in named.items()
        },
        dropped_examples={
            name: scores.n_examples - len(rows[name]) for name, scores in named.items()
        },
        dropped_roles={
            name: [role for role in scores.roles if role not in roles]
            for name, scores in named.items()
        },
    )


def check_on_mismatch(on_mismatch: str) -> None:
    """Raise UsageError for anything that is not one of ``ON_MISMATCH``."""
    if on_mismatch not in ON_MISMATCH:
        raise UsageError(
            f"on_mismatch is {on_mismatch!r}; it must be one of {', '.join(ON_MISMATCH)}"
        )


def _cure(rather: str) -> str:
    return f"{rather}, or compare what both have: on_mismatch='intersect' (--on-mismatch intersect)"


def _check_digests(name: str, scores: HeadScores) -> None:
    if len(scores.digests) != scores.n_examples:
        raise UsageError(
            f"the scores {name!r} do not tell what their examples were: they were written by an "
            "earlier version; score again"
        )


def _refuse(first: str, second: str, differences: Iterator[_Difference], cure: str) -> None:
    for what, one, other in differences:
        raise UsageError(f"{first!r} and {second!r} differ in {what}: {one} and {other}; {cure}")


def _deep_differences(first: HeadScores, second: HeadScores) -> Iterator[_Difference]:
    """What makes heads or scores of the same name incomparable."""
    for what in ("layers", "heads"):
        one, other = (getattr(scores, f"n_{what}") for scores in (first, second))
        if one != other:
            yield f"their number of {what}", one, other
    for key, what in _SETTLED.items():
        one, other = (scores.provenance.get("options", {}).get(key) for scores in (first, second))
        if one != other:
            yield f"their {what}", repr(one), repr(other)
    one, other = (scores.provenance.get("corpus", {}).get("scheme") for scores in (first, second))
    if one != other:
        yield "the label scheme of their corpus", one, other
    one, other = (scores.provenance.get("reaches") for scores in (first, second))
    if one != other:
        yield "how far the attention of their layers reaches", one, other


def _role_differences(first: HeadScores, second: HeadScores) -> Iterator[_Difference]:
    for key, what in _ROLES_CHOSEN.items():
        one, other = (scores.provenance.get("options", {}).get(key) for scores in (first, second))
        if one != other:
            yield f"their {what}", one, other
    if set(first.roles) != set(second.roles):
        yield "their roles", ", ".join(first.roles), ", ".join(second.roles)


def _relations(scores: HeadScores) -> Any:
    return scores.provenance.get("options", {}).get("relations")


def _shared_roles(sets: Sequence[HeadScores]) -> tuple[str, ...]:
    """Roles that all ``sets`` have with the same meaning, in the order of the first."""
    pooled_alike = all(
        set(_relations(scores) or ()) == set(_relations(sets[0]) or ()) for scores in sets
    )
    shared = set.intersection(*(set(scores.roles) for scores in sets))
    roles = tuple(
        role for role in sets[0].roles if role in shared and (pooled_alike or role not in _POOLED)
    )
    if not roles:
        raise UsageError("the scores have no role in common; score the same roles with each model")
    return roles


def _shared_rows(named: Mapping[str, HeadScores], roles: Sequence[str]) -> dict[str, _Rows]:
    """For every set the places of the examples that all sets have, in the order of the first."""
    sets = list(named.values())
    # The arcs of a digest name relations by number: they agree only where all relations do.
    same_relations = all(_relations(scores) == _relations(sets[0]) for scores in sets)
    keys = [_keys(scores, roles, with_arcs=same_relations) for scores in sets]
    places = [{key: place for place, key in enumerate(own)} for own in keys]
    shared = [key for key in keys[0] if all(key in own for own in places[1:])]
    if not shared:
        raise UsageError(
            "the scores have no example in common, of the same name, tokens and tree; "
            "score the same corpus with the same tokenizer"
        )
    return {
        name: np.array([own[key] for key in shared], dtype=np.intp)
        for name, own in zip(named, places, strict=True)
    }


def _keys(scores: HeadScores, roles: Sequence[str], with_arcs: bool) -> list[tuple[object, ...]]:
    """What two sets must agree upon to have the same example, for every example."""
    if with_arcs:
        return list(zip(scores.ids, scores.digests, strict=True))
    counts = scores.counts[:, [scores.roles.index(role) for role in roles]]
    digests = (digest[:_DIGITS_WITHOUT_ARCS] for digest in scores.digests)
    return list(zip(scores.ids, digests, map(tuple, counts.tolist()), strict=True))


def _check_same_examples(named: Mapping[str, HeadScores], rows: Mapping[str, _Rows]) -> None:
    for name, scores in named.items():
        kept = set(rows[name].tolist())
        left_out = [own for place, own in enumerate(scores.ids) if place not in kept]
        if not left_out:
            continue
        lacking = [other for other in named if left_out[0] not in named[other].ids]
        why = f"{lacking[0]!r} lacks it" if lacking else "its tokens or its tree differ"
        raise UsageError(
            f"not all score sets have the same examples: {len(left_out)} of the "
            f"{scores.n_examples} of {name!r} have no match, first {left_out[0]!r} ({why}); "
            + _cure("score the same corpus with the same tokenizer")
        )


def _select(
    scores: HeadScores, rows: _Rows, roles: Sequence[str], documents: Sequence[str]
) -> HeadScores:
    """``scores`` of these examples and roles, its examples in ``documents``."""
    columns = [scores.roles.index(role) for role in roles]
    return HeadScores(
        ids=tuple(scores.ids[row] for row in rows),
        documents=tuple(documents),
        lengths=scores.lengths[rows],
        roles=tuple(roles),
        values=scores.values[rows][..., columns],
        counts=scores.counts[rows][:, columns],
        provenance=scores.provenance,
        digests=tuple(scores.digests[row] for row in rows),
    )
