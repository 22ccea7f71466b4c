"""Score sets of the same examples, brought into one order; messages name what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from headroles.arrays import IndexArray
from headroles.corpus.spacing import TEXT
from headroles.errors import UsageError
from headroles.scoring.scores import HeadScores
from headroles.storage import plain
from headroles.wording import listed

_POOLED = "relations"
"""Meaning of roles that pool relations; if relations differ, such roles are dropped alone."""
_SCORE_ALIKE = "score both alike"
_COMPARE_SHARED = "compare what both have: `on_mismatch='intersect'`"
_OTHER_SHAPE = (
    "only models of one architecture can be compared head by head; count heads by layer with: "
    "headroles replicate"
)


def join_scores(
    scores_by_name: Mapping[str, HeadScores], on_mismatch: str = "error"
) -> dict[str, HeadScores]:
    """Return two or more score sets with the examples and roles that all have, in one order.

    Examples, joined by their ids and digests, and roles come in the order of the first set;
    documents are called as there.

    Args:
        scores_by_name: score sets under the names that messages call them by, the first one first.
        on_mismatch: treatment of differing examples, relations or contrasts: ``"error"``, or
            ``"intersect"`` to keep shared ones. If relations differ, the roles that pool them
            are dropped.

    Raises:
        UsageError: models of another shape, scores of another meaning, sets that differ
            (``"error"``) or have nothing in common, or sets without digests of examples.
    """
    for name, scores in scores_by_name.items():
        if len(scores.digests) != scores.n_examples:
            raise UsageError(
                f"the scores {name!r} do not name their examples: they were made by hand; score "
                "again"
            )
    (first_name, first), *rest = scores_by_name.items()
    for name, scores in rest:
        differences = [*_deep_differences(first, scores)]
        if on_mismatch == "error":
            differences += _role_differences(first, scores)
        if differences:
            raise UsageError(f"{first_name!r} and {name!r} differ in {differences[0]}")
    roles = [role for role in first.roles if all(role in other.roles for _, other in rest)]
    if not roles:
        raise UsageError("the scores have no role in common; score the same roles with each model")
    rows = _shared_rows(scores_by_name, on_mismatch)
    documents = tuple(first.documents[row] for row in rows[first_name])
    ids = [role.id for role in roles]
    return {
        name: replace(scores.select(rows[name], ids), documents=documents)
        for name, scores in scores_by_name.items()
    }


def _deep_differences(first: HeadScores, second: HeadScores) -> Iterator[str]:
    """Yield differences that make scores incomparable, with both values and a cure."""
    settings = [
        {
            "their number of layers": scores.n_layers,
            "their number of heads": scores.n_heads,
            "their kind of score": repr(scores.score.name),
            "their pairing of sentences": scores.record.options.get("pairing"),
            "the label scheme of their corpus": scores.record.corpus.scheme,
            "their attention": scores.record.model.attention,
            "their rows of a target word": scores.record.options.get("target_rows"),
            "how far the attention of their layers reaches": scores.record.model.reaches,
            "what their scores are rounded to": scores.record.options.get("precision"),
            **{
                f"the {name} of {role.id}": value
                for role in scores.roles
                for name, value in role.meaning.items()
                if name != _POOLED
            },
        }
        for scores in (first, second)
    ]
    for name, value in settings[0].items():
        other = settings[1].get(name, value)
        if value != other:
            this, that = ("none" if either in (None, "") else either for either in (value, other))
            cure = _OTHER_SHAPE if name.startswith("their number") else _SCORE_ALIKE
            yield f"{name}: {this} and {that}; {cure}"


def _role_differences(first: HeadScores, second: HeadScores) -> Iterator[str]:
    """Yield differences of the relations and the roles of scores, with both values and a cure."""
    cure = f"{_SCORE_ALIKE}, or {_COMPARE_SHARED}"
    pooled = [
        next((role.meaning[_POOLED] for role in scores.roles if _POOLED in role.meaning), None)
        for scores in (first, second)
    ]
    if pooled[0] != pooled[1]:
        yield f"their relations: {pooled[0]} and {pooled[1]}; {cure}"
    only = [
        ", ".join(name for name in side.role_ids if name not in other.role_ids) or "none besides"
        for side, other in ((first, second), (second, first))
    ]
    if set(only) != {"none besides"}:
        yield f"their roles: {only[0]} and {only[1]}; {cure}"
    by_id = {role.id: role for role in second.roles}
    for role in first.roles:
        if role != (other := by_id.get(role.id)) and other is not None:
            meanings = [plain(side.to_record()) for side in (role, other)]
            yield f"what {role.id} means: {meanings[0]} and {meanings[1]}; {cure}"


def _shared_rows(
    scores_by_name: Mapping[str, HeadScores], on_mismatch: str
) -> dict[str, IndexArray]:
    """Return the places of the shared examples in each set, in the order of the first.

    Raises UsageError without any, and with ``"error"`` for an example that is not shared.
    """
    rows = {
        name: {key: row for row, key in enumerate(zip(scores.ids, scores.digests, strict=True))}
        for name, scores in scores_by_name.items()
    }
    shared = dict.fromkeys(
        key for key in next(iter(rows.values())) if all(key in each for each in rows.values())
    )
    if not shared:
        raise UsageError(
            "the scores have no example in common, of the same name, tokens, tree and labels; "
            + (
                _other_spacing(scores_by_name)
                or "score the same corpus with the same tokenizer, or test roles in both corpora "
                "with headroles replicate"
            )
        )
    for name, of_set in rows.items():
        unmatched = [example for example, digest in of_set if (example, digest) not in shared]
        if on_mismatch == "error" and unmatched:
            lacking = [
                other for other in scores_by_name if unmatched[0] not in scores_by_name[other].ids
            ]
            why = "its tokens, its tree or its labels differ"
            raise UsageError(
                f"not all score sets have the same examples: {len(unmatched)} of the "
                f"{len(of_set)} of {name!r} have no match, first {unmatched[0]!r} "
                f"({f'{lacking[0]!r} lacks it' if lacking else why}); "
                + (
                    _other_spacing(scores_by_name)
                    or f"score the same corpus with the same tokenizer, or {_COMPARE_SHARED}"
                )
            )
    return {
        name: np.array([of_set[key] for key in shared], dtype=np.intp)
        for name, of_set in rows.items()
    }


def _other_spacing(scores_by_name: Mapping[str, HeadScores]) -> str:
    """Tell which scores are of words with the spaces of the text, if not all are; else nothing."""
    spacings = {name: scores.record.corpus.spacing for name, scores in scores_by_name.items()}
    if len(set(spacings.values())) == 1:
        return ""
    of_text = [name for name, spacing in spacings.items() if spacing == TEXT]
    return (
        f"the words of {listed(of_text)} have the spaces of the text, and those of the others "
        "have one before each, as in 0.2: score all with the same `spacing`"
    )
