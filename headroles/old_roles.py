"""Roles as version 0.2.0 recorded them: by ids alone, from which all else about them follows.

Later versions record all that has to be known about a role, and no other file reads ids.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headroles.role_names import (
    BEYOND_OFFSET,
    GROUP,
    OTHER_TREES,
    arc_in_words,
    names_of_arcs,
    offset_in_words,
)

_WORDS = {
    "local": "neighbouring words",
    "self": "the token itself",
    "delimiter": "special tokens",
    "delimiter:cls": "[CLS]",
    "delimiter:sep": "[SEP]",
    "punctuation": "punctuation",
    "rare": "the rarest word of the sentence",
    "block": "the same sentence",
    "block:ratio": "the same sentence",
    "block:evenness": "evenness within the same sentence",
    "same": "word -> the same word in the second text",
    "same:back": "word -> the same word in the first text",
    "confidence": "largest weight of a row",
    "entropy": "entropy of a row",
    "entropy:share": "entropy of a row, as a share of the largest",
    "distance": "distance to what is attended to",
}
_POSITION = "position"
_GROUPS = {_POSITION, GROUP, *(name.partition(":")[0] for name in _WORDS)}


def facts_of_old_id(name: str, ids: Collection[str]) -> dict[str, Any]:
    """Return what 0.2.0 did not record of the role with an id, among all ``ids`` of its scores.

    An id of a user's function may end as those of contrasts do; the ids of contrasts and controls
    continue the id of another role.

    >>> facts_of_old_id("mine:beyond_offset", ["mine:beyond_offset"])["function"]
    'mine:beyond_offset'
    >>> facts_of_old_id("mine:f:beyond_offset", ["mine:f", "mine:f:beyond_offset"])["parent"]
    'mine:f'
    """
    group, _, rest = name.partition(":")
    is_own = bool(rest) and group not in _GROUPS
    parent, ends = name, {}
    for end in (BEYOND_OFFSET, OTHER_TREES):
        stem = parent.removesuffix(f":{end}")
        if stem != parent and (not is_own or stem.count(":") > 0):
            parent, ends[end] = stem, True
    if is_own and parent not in ids:
        parent, ends = name, {}
    contrast, control = BEYOND_OFFSET in ends, OTHER_TREES in ends
    facts = _facts_of_root(parent, is_own)
    words = f"{facts['words']}{', beyond distance' * contrast}{', in other trees' * control}"
    return {
        **facts,
        "words": words,
        "parent": parent if ends else "",
        "contrast": BEYOND_OFFSET * contrast,
        "control": OTHER_TREES * control,
    }


def _facts_of_root(name: str, is_own: bool) -> dict[str, Any]:
    """Return words, relation, names and function of a role that is no contrast or control."""
    if is_own:
        module, function = name.split(":")[:2]
        return {"words": name, "function": f"{module}:{function}"}
    group, _, rest = name.partition(":")
    if group == GROUP and ":" in rest:
        relation, _, direction = rest.rpartition(":")
        words, names = arc_in_words(relation, direction), names_of_arcs(relation, direction)
        return {"words": words, "relation": relation, "names": list(names)}
    if group == _POSITION and (offset := _whole(rest)):
        return {"words": offset_in_words(offset)}
    return {"words": _WORDS.get(name, name)}


def _whole(text: str) -> int:
    """Return the number in a text of few digits, 0 for other texts."""
    sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    return sign * int(digits) if digits.isdecimal() and len(digits) < 10 else 0
