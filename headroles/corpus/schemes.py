"""Label schemes of dependency relations: recognising them, and their default relations."""

from __future__ import annotations

from collections.abc import Iterable

UD = "ud"
CLEAR = "clear"
OTHER = "other"

DEFAULT_RELATIONS = {
    UD: ("nsubj", "obj", "amod", "advmod"),
    CLEAR: ("nsubj", "dobj", "amod", "advmod"),
}
"""Relations scored by default, per scheme."""

_UD_RELATIONS = frozenset(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse "
    "dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis "
    "punct reparandum root vocative xcomp".split()
)
_CLEAR_ONLY = frozenset(
    "acomp agent attr auxpass csubjpass dative dobj intj meta neg npadvmod nsubjpass oprd pcomp "
    "pobj poss preconj predet prep prt quantmod relcl".split()
)
_UD_ONLY = frozenset(
    "clf cop discourse dislocated fixed flat goeswith iobj list obj obl orphan reparandum "
    "vocative".split()
)


def fold_subtype(relation: str) -> str:
    """Return the universal part of a relation: ``nsubj:pass`` becomes ``nsubj``."""
    return relation.split(":", 1)[0]


def distinctive_labels(labels: Iterable[str]) -> dict[str, str]:
    """Return, for each scheme that some label belongs to alone, the first such label."""
    shown: dict[str, str] = {}
    for label in sorted({fold_subtype(label) for label in labels}):
        if label in _UD_ONLY:
            shown.setdefault(UD, label)
        elif label in _CLEAR_ONLY:
            shown.setdefault(CLEAR, label)
    return shown


def recognise_scheme(labels: Iterable[str]) -> str:
    """Return the scheme that ``labels`` belong to: ``"ud"``, ``"clear"`` or ``"other"``.

    Labels of both schemes (``nsubj``, ``amod``) do not decide; a set of such labels alone counts as
    UD. The labels must not show two schemes at once: see `distinctive_labels`.
    """
    labels = {fold_subtype(label) for label in labels}
    shown = distinctive_labels(labels)
    if CLEAR in shown:
        return CLEAR
    if UD in shown or {label.lower() for label in labels} <= _UD_RELATIONS:
        return UD
    return OTHER
