"""Names of roles in words, made from their ids alone, so that any stored table has them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headroles.errors import UsageError
from headroles.wording import not_among

_NAMES = {
    "local": "neighbouring words",
    "self": "the token itself",
    "delimiter": "special tokens",
    "delimiter:cls": "[CLS]",
    "delimiter:sep": "[SEP]",
    "punctuation": "punctuation",
    "rare": "the rarest word of the sentence",
    "block": "the same sentence",
    "block:ratio": "the same sentence",
    "same": "word -> the same word in the second text",
    "same:back": "word -> the same word in the first text",
    "syntactic:any:to_governor": "word -> its governor",
    "syntactic:any:to_dependent": "word -> its dependents",
    "syntactic:any:from_governor": "word <- its governor",
    "confidence": "largest weight of a row",
    "entropy": "entropy of a row",
    "distance": "distance to what is attended to",
}
_ENDS = {
    "acl": ("clause", "the noun it modifies"),
    "advcl": ("adverbial clause", "its main verb"),
    "advmod": ("adverb", "the word it modifies"),
    "amod": ("adjective", "its noun"),
    "appos": ("apposition", "its noun"),
    "aux": ("auxiliary", "its verb"),
    "auxpass": ("passive auxiliary", "its verb"),
    "case": ("case marker", "its noun"),
    "cc": ("conjunction", "its conjunct"),
    "ccomp": ("clausal complement", "its verb"),
    "compound": ("compound part", "its noun"),
    "conj": ("conjunct", "the first conjunct"),
    "cop": ("copula", "its predicate"),
    "csubj": ("clausal subject", "its verb"),
    "det": ("determiner", "its noun"),
    "dobj": ("object", "its verb"),
    "iobj": ("indirect object", "its verb"),
    "mark": ("clause marker", "its verb"),
    "nmod": ("nominal modifier", "its noun"),
    "nsubj": ("subject", "its verb"),
    "nsubjpass": ("passive subject", "its verb"),
    "nummod": ("number", "its noun"),
    "obj": ("object", "its verb"),
    "obl": ("oblique", "its verb"),
    "pobj": ("object of preposition", "its preposition"),
    "poss": ("possessor", "its noun"),
    "prep": ("preposition", "its governor"),
    "prt": ("particle", "its verb"),
    "punct": ("punctuation mark", "its governor"),
    "xcomp": ("open complement", "its verb"),
}
"""Names of the dependent and of the governor as seen from the dependent, by relation."""
_OFFSET = re.compile(r"position:([+-]?)(\d+)$")
_ARROW = re.compile(r"\s*(?:->|\u2192)\s*")
GROUP, POOLED = "syntactic", "any"
"""The group of all roles of arcs, and what stands for a relation in those of all relations."""
_BEYOND_OFFSET = ":beyond_offset"
_OTHER_TREES = ":other_trees"


def contrast_of(role: str) -> str:
    """Return the id of the contrast of a role with other words at the same offset."""
    return f"{role}{_BEYOND_OFFSET}"


def is_contrast(role: str) -> bool:
    """Tell whether an id is that of a contrast."""
    return role.endswith(_BEYOND_OFFSET)


def other_trees_of(role: str) -> str:
    """Return the id of the control of a role: its arcs in the trees of other sentences."""
    return f"{role}{_OTHER_TREES}"


def is_other_trees(role: str) -> bool:
    """Tell whether an id is that of a control with other trees, or of its contrast."""
    return role.removesuffix(_BEYOND_OFFSET).endswith(_OTHER_TREES)


def without_other_trees(role: str) -> str:
    """Return the id of the role, or contrast, that a control with other trees belongs to."""
    return role.replace(_OTHER_TREES, "")


def in_words(role: str) -> str:
    """Name a role for people: ``subject -> its verb`` for ``syntactic:nsubj:to_governor``.

    The arrow goes from the attending word to the attended word. The name of a user's role is its
    id.

    >>> in_words("syntactic:amod:to_dependent")
    'noun -> its adjective'
    >>> in_words("position:-1")
    'the previous token'
    """
    if is_contrast(role):
        return f"{in_words(role.removesuffix(_BEYOND_OFFSET))}, beyond distance"
    if is_other_trees(role):
        return f"{in_words(role.removesuffix(_OTHER_TREES))}, in other trees"
    if match := _OFFSET.match(role):
        return _offset_in_words(-int(match[2]) if match[1] == "-" else int(match[2]))
    if role in _NAMES or not role.startswith(f"{GROUP}:"):
        return _NAMES.get(role, role)
    relation, _, direction = role.removeprefix(f"{GROUP}:").rpartition(":")
    return _arc_in_words(relation, direction)


def is_relation(name: str) -> bool:
    """Tell whether a name is a common relation, with or without a subtype."""
    return name.partition(":")[0] in _ENDS


def meant_by(name: str) -> tuple[list[str], list[str]]:
    """Return the ids of roles, and the relations, that a name in words means.

    >>> meant_by("subject"), meant_by("[cls]")
    (([], ['nsubj']), (['delimiter:cls'], []))
    """
    wanted = _ARROW.sub(" -> ", name.strip().lower())
    return (
        [role for role, words in _NAMES.items() if wanted == words.lower()],
        [
            relation
            for relation, (dependent, _) in _ENDS.items()
            if wanted in (relation, dependent)
            or wanted in (_arc_in_words(relation, way) for way in ("to_governor", "to_dependent"))
        ],
    )


def find_role(name: str, known: Sequence[str]) -> str:
    """Return the id in ``known`` of the role that a user names, as `find_roles`.

    Of several roles it is the first. Raises UsageError for another name.

    >>> find_role("amod", ["local", "syntactic:amod:to_governor", "syntactic:amod:to_dependent"])
    'syntactic:amod:to_governor'
    """
    return find_roles(name, known)[0]


def find_roles(name: str, known: Sequence[str]) -> list[str]:
    """Return the ids in ``known`` of the roles that a user names by id, in words, or by relation.

    A relation alone (``amod``, ``syntactic:amod``), or its dependent, means all of its directions,
    and ``syntactic`` all roles of arcs. Contrasts and controls are found by their ids alone. Raises
    UsageError for another name.

    >>> find_roles("amod", ["local", "syntactic:amod:to_governor", "syntactic:amod:to_dependent"])
    ['syntactic:amod:to_governor', 'syntactic:amod:to_dependent']
    """
    wanted = _ARROW.sub(" -> ", name.strip().lower())
    for role in known:
        if wanted in (role.lower(), in_words(role).lower()):
            return [role]
    plain = [role for role in known if not (is_contrast(role) or is_other_trees(role))]
    wanted = wanted.removeprefix(f"{GROUP}:")
    meant = [
        role
        for role in plain
        if is_arc(role) and wanted in (GROUP, relation_of(role).lower(), _dependent_of(role))
    ]
    if not meant:
        relations = list(dict.fromkeys(relation_of(role) for role in plain if is_arc(role)))
        single = [relation for relation in relations if relation != POOLED]
        if single and is_relation(wanted):
            raise UsageError(not_among("relation", name, single))
        others = [*[GROUP] * bool(relations), *relations, *map(in_words, plain)]
        raise UsageError(not_among("role", name, known, others))
    return meant


def is_arc(role: str) -> bool:
    """Tell whether a role is one of arcs, and no contrast or control."""
    return role.startswith(f"{GROUP}:") and not (is_contrast(role) or is_other_trees(role))


def relation_of(role: str) -> str:
    """Return the relation of a role of arcs, `POOLED` for all relations together."""
    return role.removeprefix(f"{GROUP}:").rpartition(":")[0]


def _dependent_of(role: str) -> str:
    return _ENDS.get(relation_of(role), ("",))[0]


def _offset_in_words(offset: int) -> str:
    if abs(offset) == 1:
        return "the previous token" if offset < 0 else "the next token"
    return f"the token {abs(offset)} places {'back' if offset < 0 else 'ahead'}"


def _arc_in_words(relation: str, direction: str) -> str:
    dependent, governor = _ENDS.get(relation.partition(":")[0], (relation, "its governor"))
    if ":" in relation and relation not in _ENDS:
        dependent = f"{dependent} ({relation})"
    if direction == "to_governor":
        return f"{dependent} -> {governor}"
    source = governor.removeprefix("its ").removeprefix("the ")
    if direction == "to_dependent":
        return f"{source} -> its {dependent}"
    return f"{dependent} <- {governor}"
