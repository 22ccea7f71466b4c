"""Names of roles: those of relations in words, and the roles that a user means by a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeAlias

from headroles.errors import UsageError
from headroles.wording import not_among

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
_NOMINAL = frozenset("dobj iobj nmod nsubj nsubjpass obj obl pobj".split())
"""Relations whose dependents are nouns, or pronouns."""
_OF_NOMINALS = {"content": "noun", "function": "pronoun"}
_OF_OTHERS = {"content": "open-class", "function": "closed-class"}
_ARROW = re.compile(r"\s*(?:->|\u2192)\s*")
GROUP, POOLED = "syntactic", "any"
"""The group of all roles of arcs, and what stands for a relation in those of all relations."""
ENDS = ("to_governor", "to_dependent")
"""The ends of the ids of roles of arcs, by the direction in which their arcs are followed."""
TO_EARLIER = "to_earlier"
"""The end of the ids of roles of arcs that lead from the later word to the earlier one."""
BEYOND_OFFSET, OTHER_TREES = "beyond_offset", "other_trees"
"""The contrast of a role with other words at the same offset, and the control of its arcs."""
NEAR, NEAR_BACK, BETWEEN = "near", "near:back", "between"
"""The contrasts of a role with competitors: words of the same class that are nearer."""
TOKENS, ARCS = "tokens", "arcs"
"""Units of counts behind scores."""
Kind: TypeAlias = Literal["tokens", "pairs", "arcs"]
"""What a role is of: tokens or words; pairs of words; arcs, which are pairs with a relation."""


class Named(Protocol):
    """What is needed of a role to find it by a name."""

    @property
    def id(self) -> str:
        """The name in tables."""

    @property
    def words(self) -> str:
        """What a head with the role does."""

    @property
    def parent(self) -> str:
        """The role of a contrast or control."""

    @property
    def relation(self) -> str:
        """The relation of a role of arcs."""

    @property
    def names(self) -> Sequence[str]:
        """Other names of the role."""


def whole_of(relation: str) -> str:
    """Return the relation that ``REL/content`` or ``REL/function`` is a part of, others as is."""
    whole, _, part = relation.rpartition("/")
    return whole if whole and part in _OF_NOMINALS else relation


def path_of(relation: str) -> tuple[str, ...]:
    """Return the relations of a path, from its governor on; a relation is a path of one arc.

    >>> path_of("obl+case")
    ('obl', 'case')
    """
    return tuple(relation.split("+"))


def kind_of(unit: str, relation: str) -> Kind:
    """Return the kind of a role with a unit of counts, and with a relation if it is of arcs."""
    if relation:
        return "arcs"
    return "pairs" if unit == ARCS else "tokens"


def contrast_of(role: str, contrast: str = BEYOND_OFFSET) -> str:
    """Return the id of a contrast of a role; without ``contrast`` that of the role."""
    return f"{role}:{contrast}" if contrast else role


def other_trees_of(role: str) -> str:
    """Return the id of the control of a role: its arcs in the trees of other sentences."""
    return f"{role}:{OTHER_TREES}"


def role_of_arcs(relation: str, end: str) -> str:
    """Return the id of the role of the arcs of a relation, ``POOLED`` for all together."""
    return f"{GROUP}:{relation}:{end}"


def every_arc_of(pooled: str) -> str:
    """Return the id of the attention along all arcs of the corpus, beside that of a pooled role."""
    return f"{pooled}:every_arc"


def names_of_arcs(relation: str, end: str = "") -> tuple[str, ...]:
    """Return the names of all roles of a relation: its label, and its dependent in words.

    The names of the relation mean its parts too; with ``end`` those of its role with this end.

    >>> names_of_arcs("nsubj/content")
    ('nsubj/content', 'noun subject', 'nsubj', 'subject')
    """
    names = [relation, _ends_of(relation)[0]] if _is_known(relation) else [relation]
    if (whole := whole_of(relation)) != relation:
        names += names_of_arcs(whole)
        if end:
            names += [f"{whole}:{end}", arc_in_words(whole, end)]
    return tuple(dict.fromkeys(names))


def _is_known(relation: str) -> bool:
    return whole_of(relation) in _ENDS


def _ends_of(relation: str) -> tuple[str, str]:
    """Return the names of the dependent and of the governor of a relation, or a part of one."""
    whole = whole_of(relation)
    dependent, governor = _ENDS.get(whole.partition(":")[0], (whole, "its governor"))
    if ":" in whole and whole not in _ENDS:
        dependent = f"{dependent} ({whole})"
    if whole == relation:
        return dependent, governor
    words = _OF_NOMINALS if whole.partition(":")[0] in _NOMINAL else _OF_OTHERS
    return f"{words[relation.rpartition('/')[2]]} {dependent}", governor


def is_relation(name: str) -> bool:
    """Tell whether a name is a common relation, with or without a subtype."""
    return whole_of(name).partition(":")[0] in _ENDS


def relations_meant_by(name: str) -> list[str]:
    """Return the relations that a name in words means.

    >>> relations_meant_by("subject"), relations_meant_by("noun -> its adjective")
    (['nsubj'], ['amod'])
    """
    wanted = _plain(name)
    return [
        relation
        for relation in _ENDS
        if wanted in (*names_of_arcs(relation), *(arc_in_words(relation, way) for way in ENDS))
    ]


def _plain(name: str) -> str:
    """Return a name that a user gives in lower case, with arrows written in one way."""
    return _ARROW.sub(" -> ", name.strip().lower())


def find_role(name: str, roles: Iterable[Named]) -> str:
    """Return the id of the role that a user names, as `find_roles`; of several the first."""
    return find_roles(name, roles)[0]


def find_roles(name: str, roles: Iterable[Named]) -> list[str]:
    """Return the ids of the roles that a user names by id, in words, or by relation.

    A relation alone (``amod``, ``syntactic:amod``), or its dependent, means all of its directions,
    and ``syntactic`` all roles of arcs. Contrasts and controls are found by their ids alone. Raises
    UsageError for another name.
    """
    wanted, candidates = _plain(name), list(roles)
    for role in candidates:
        if wanted in (role.id.lower(), role.words.lower()):
            return [role.id]
    plain = [role for role in candidates if not role.parent]
    arcs = [role for role in plain if role.relation]
    wanted = wanted.removeprefix(f"{GROUP}:")
    meant = [role.id for role in arcs if wanted == GROUP or wanted in _lower(role.names)]
    if not meant:
        relations = list(dict.fromkeys(role.relation for role in arcs))
        single = [relation for relation in relations if relation != POOLED]
        if single and is_relation(wanted):
            raise UsageError(not_among("relation", name, single))
        further = [*relations, *[role.words for role in plain]]
        if relations:
            further.insert(0, GROUP)
        raise UsageError(not_among("role", name, [role.id for role in candidates], further))
    return meant


def _lower(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def offset_in_words(offset: int) -> str:
    """Return what a head looks at that looks a fixed number of tokens on."""
    if abs(offset) == 1:
        return "the previous token" if offset < 0 else "the next token"
    return f"the token {abs(offset)} places {'back' if offset < 0 else 'ahead'}"


def arc_in_words(relation: str, direction: str) -> str:
    """Return what a head looks at along the arcs of a relation.

    The arrow goes from the attending word to the attended word, but of roles that are read by
    columns (``from_governor``).

    >>> arc_in_words("amod", "to_dependent")
    'noun -> its adjective'
    >>> arc_in_words("obl+case", "to_governor")
    'case marker -> verb of its oblique'
    >>> arc_in_words("amod", "to_earlier")
    'adjective and noun, later -> earlier'
    """
    if relation == POOLED:
        if direction == TO_EARLIER:
            return "later word of an arc -> the earlier one"
        dependents = "dependents" if direction == "to_dependent" else "governor"
        return f"word {'<-' if direction == 'from_governor' else '->'} its {dependents}"
    if len(path := path_of(relation)) > 1:
        return _path_in_words(path, direction)
    dependent, governor = _ends_of(relation)
    if direction == "to_governor":
        return f"{dependent} -> {governor}"
    source = _without_article(governor)
    if direction == TO_EARLIER:
        return f"{dependent} and {source}, later -> earlier"
    if direction == "to_dependent":
        return f"{source} -> its {dependent}"
    return f"{dependent} <- {governor}"


def _path_in_words(path: Sequence[str], direction: str) -> str:
    """Return what a head looks at from one end of a path of arcs to the other."""
    *between, last = (_ends_of(relation)[0] for relation in path)
    governor = _without_article(_ends_of(path[0])[1])
    if direction == "to_dependent":
        return f"{governor} -> {last} of its {_possessive(between)}"
    if direction == TO_EARLIER:
        return f"{last} and {governor} of its {_possessive(reversed(between))}, later -> earlier"
    arrow = "<-" if direction == "from_governor" else "->"
    return f"{last} {arrow} {governor} of its {_possessive(reversed(between))}"


def _possessive(names: Iterable[str]) -> str:
    return "'s ".join(names)


def _without_article(name: str) -> str:
    return name.removeprefix("its ").removeprefix("the ")
