"""The list of all roles, and the options that choose which of them are scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

from headroles.corpus import Sentence, make_examples
from headroles.errors import CorpusError, UsageError
from headroles.options import DEFAULT, PUBLISHED, Convert, Field, fields_of
from headroles.role_names import POOLED, relations_meant_by
from headroles.roles import aligned, catalogue, repeated, syntactic
from headroles.roles.catalogue import FrequencyOptions, LocalOptions, is_position, offset_of
from headroles.roles.competitors import contrasts_of
from headroles.roles.own import SAME, Find, names_of_roles, own_roles, same_roles
from headroles.roles.pairs import BACK, EARLIER, FORTH, Pairs
from headroles.roles.role import Context, OnlyFor, Role
from headroles.roles.rules import ClassRules, most_frequent
from headroles.roles.score import BIAS, Score
from headroles.roles.syntactic import SyntacticOptions
from headroles.roles.word_classes import classes_in
from headroles.wording import listed

ROLE_GROUPS: dict[str, tuple[Role, ...] | Callable[[Any, Context], Iterator[Role]]] = {
    "local": catalogue.local_roles,
    "delimiter": catalogue.DELIMITERS,
    "block": catalogue.block_roles,
    "syntactic": syntactic.roles,
    "position": catalogue.position_roles,
    "self": catalogue.SELF,
    "first": repeated.FIRST,
    "duplicate": repeated.DUPLICATE,
    "induction": repeated.INDUCTION,
    "punctuation": catalogue.punctuation_roles,
    "rare": catalogue.rare_roles,
    SAME: same_roles,
    aligned.ALIGNED: aligned.roles,
    "confidence": catalogue.CONFIDENCE,
    "entropy": catalogue.ENTROPIES,
    "distance": catalogue.DISTANCE,
}
"""Groups of roles, by the name that users give: their roles, or the function that yields them; in
the order of every table.
"""
DEFAULT_GROUPS = ("local", "delimiter", "block", "syntactic")
"""Groups scored by default; each further role is a further test to correct for."""
ALL = "all"
ENTRY_POINT = "headroles.roles"
"""Group of the entry points by which installed packages name their roles."""


def _names(chosen_roles: str | Find | Iterable[str | Find]) -> tuple[str, ...]:
    """Return names of groups or roles, with positions written as in tables."""
    names = names_of_roles(chosen_roles)
    if not names:
        raise UsageError("`roles` names no role; name at least one, or omit it")
    return tuple(dict.fromkeys(map(_in_full, names)))  # a role named twice would be tested twice


def _in_full(name: str) -> str:
    """Return a name as tables have it: positions with a sign, roles of packages as their place."""
    if is_position(name):
        return f"{catalogue.POSITION}:{offset_of(name):+d}"
    if ":" in name or name in ROLE_GROUPS or name == ALL:
        return name
    from importlib.metadata import entry_points

    return next((point.value for point in entry_points(group=ENTRY_POINT, name=name)), name)


@dataclass(frozen=True, kw_only=True)
class RoleOptions(SyntacticOptions, LocalOptions, FrequencyOptions):
    """Options that choose the roles to score."""

    in_texts: ClassVar[Mapping[str, str]] = {
        "groups": ", ".join(ROLE_GROUPS),
        "defaults": ", ".join(DEFAULT_GROUPS),
    }

    roles: Annotated[Sequence[str] | None, Convert(_names)] = None
    """Roles to score, separated by commas: groups ({groups}), ids such as position:-2, all,
    or MODULE:FUNCTION for a function of yours; left out: {defaults}.

    A group stands for all of its roles: delimiter
    also scores delimiter:cls and delimiter:sep. In Python, a function of yours may stand in the
    list itself. Installed packages may name roles by the entry point headroles.roles.
    """

    def check(self) -> None:
        """Reject options of roles that are not scored. Raises UsageError."""
        super().check()
        groups = {name.partition(":")[0] for name in self.roles or DEFAULT_GROUPS}
        for field in fields_of(RoleOptions):
            group = only_for(field)
            is_used = not group or groups & {group, ALL}
            if not is_used and getattr(self, field.name) not in (field.default, ()):
                raise UsageError(
                    f"{field.name} ({field.flag}) has no effect without the role {group}; add the "
                    "role to `roles`, or omit the option"
                )


def only_for(field: Field) -> str:
    """Return the only group of roles that an option has an effect on; empty for other options."""
    return next((mark.group for mark in field.marks if isinstance(mark, OnlyFor)), "")


def choose_roles(
    options: RoleOptions,
    relations: tuple[str, ...],
    score: Score,
    sentences: Iterable[Sentence] = (),
    is_causal: bool = False,
    is_across: bool = False,
) -> tuple[Role, ...]:
    """Choose the roles to score, in the order of tables; each with its contrasts and measures.

    ``relations`` are the relations whose arcs are scored. ``sentences`` are the sentences of the
    corpus, which some roles need. In a model that ``is_causal`` arcs have a direction more; links
    have contrasts of their own in attention that ``is_across``, from targets to sources. Raises
    UsageError for a name of no role, of a contrast, or of a group without any role here, and
    CorpusError if the corpus lacks the annotation of a role.
    """
    chosen_names = DEFAULT_GROUPS if options.roles is None else options.roles
    context = Context(relations, score, sentences, is_causal, is_across)
    chosen: list[Role] = []
    for group, roles_of_group in ROLE_GROUPS.items():
        names = {name for name in chosen_names if name == ALL or name.partition(":")[0] == group}
        if not names:
            continue
        roles = (
            roles_of_group
            if isinstance(roles_of_group, tuple)
            else tuple(roles_of_group(options, context))
        )
        _check_names(names - {ALL}, group, roles)
        if not roles and group in (options.roles or ()):
            raise UsageError(
                f"`roles` asks for {group}, but no relation is scored; name relations with "
                "`relations`, or other roles"
            )
        chosen += _named_in(roles, names, group)
    for name in chosen_names:
        if name != ALL and name.partition(":")[0] not in ROLE_GROUPS:
            _check_own_name(name, context)
            chosen += own_roles(name, context, options)
    return tuple(chosen)


def _named_in(roles: Sequence[Role], names: Collection[str], group: str) -> list[Role]:
    """Return the roles of a group that are named, each with its contrasts and measures.

    The measure of all arcs in a direction goes with each role of arcs in this direction.
    """
    chosen = [role for role in roles if {*names} & {group, ALL, *role.names_with_it}]
    ends = {role.sieve.direction for role in chosen if isinstance(role.sieve, Pairs)}
    return [
        role
        for role in roles
        if role in chosen
        or (role.measure_of and isinstance(role.sieve, Pairs) and role.sieve.direction in ends)
    ]


def with_class_rules(
    roles: Iterable[Role], sentences: Iterable[Sentence], source: str, across: bool = False
) -> tuple[Role, ...]:
    """Return roles, of which those of pairs are compared with the nearest word of a class.

    The classes, from a ``source`` as in `classes_in`, are those of most partners in the
    ``sentences``. Links are those within sentences, or ``across`` from targets to their sources.
    """
    every = tuple(roles)
    pairs = {
        id(role): role.sieve
        for role in every
        if isinstance(role.sieve, Pairs) and not role.measure_of
    }
    finders = {sieve.find for sieve in pairs.values() if across or not sieve.find.is_across}
    counts = {find: Counter[tuple[int, int, str]]() for find in finders}
    examples = make_examples(sentences, "adjacent" if across else "none")
    n_sentences = 2 if across else 1
    for example in examples if finders else ():
        if len(example.sentences) < n_sentences:
            continue
        by_sentence = [classes_in(sentence, source) for sentence in example.sentences]
        of_firsts, of_seconds = by_sentence[0], by_sentence[-1]
        for find in finders:
            of_example = find.of_pair if across else find.of_sentence
            for first, second, label in of_example(*example.sentences):
                counts[find][FORTH, label, of_seconds[second]] += 1
                counts[find][BACK, label, of_firsts[first]] += 1
                if not across:
                    counts[find][EARLIER, label, of_firsts[min(first, second)]] += 1
    found = []
    for role in every:
        if (sieve := pairs.get(id(role))) is None or sieve.find not in finders:
            found.append(role)
            continue
        partners = Counter[str]()
        for (direction, label, name), n in counts[sieve.find].items():
            partners[name] += n * (direction == sieve.direction and label in sieve.labels)
        rules = ClassRules(most_frequent(+partners), source)
        found.append(replace(role, sieve=replace(sieve, rules=rules)))
    return tuple(found)


def classes_of_rules(roles: Iterable[Role]) -> dict[str, list[str]]:
    """Return the classes of the rules that roles are compared with, by role; others are missing."""
    return {
        role.id: list(role.sieve.rules.classes)
        for role in roles
        if isinstance(role.sieve, Pairs) and role.sieve.rules.classes
    }


def _check_names(names: Iterable[str], group: str, roles: Sequence[Role]) -> None:
    """Raise UsageError for a name that is neither the group nor a role in it that can be named."""
    parents = {role.id: role.parent for role in roles}
    choices = [group, *(name for name, parent in parents.items() if not parent)]
    for name in names:
        if parents.get(name):
            raise UsageError(
                f"{name} is the contrast of a role and is scored with it; name {parents[name]}"
            )
        if name not in choices:
            near = get_close_matches(name, choices, n=3) or choices
            raise UsageError(f"there is no role {name!r}; did you mean {listed(near)}?")


_SOME = ("nsubj", "obj")
"""Relations whose arcs are pooled in ``syntactic:any``: it takes several."""


def role_of(name: str, score: Score) -> Role:
    """Return the role with an id, without its sieve; of a user's own role only the id.

    Raises UsageError for an id that no role has.

    >>> from headroles.roles import BIAS
    >>> role_of("syntactic:nsubj:to_governor:beyond_offset", BIAS).baseline
    0.0
    """
    if is_own(name):
        return Role(name, words=name, function=function_in(name))
    relation = syntactic.relation_in(name)
    options = RoleOptions(
        roles=(name if is_position(name) else name.partition(":")[0],),
        columns=relation is not None and score.of_first_choice,
        preset=PUBLISHED if (name, score) == ("block", BIAS) else DEFAULT,
    )
    relations = _SOME if relation in (None, POOLED) else (relation,)
    try:
        candidates = choose_roles(options, relations, score, is_causal=True)
    except CorpusError:  # the role needs a corpus to be scored, not to be tested
        candidates = (Role(name, words=name),)
    for role in candidates:
        if role.id == name:
            return replace(role, meaning={}, sieve=None)
    raise UsageError(f"there is no role {name!r}; give an id as in tables, or MODULE:FUNCTION")


def roles_of(names: Sequence[str], score: Score) -> tuple[Role, ...]:
    """Return the roles with some ids, as `role_of`; those of users with contrasts."""
    contrasts = {
        contrast.id: contrast
        for name in names
        if is_own(name)
        for contrast in contrasts_of(role_of(name, score))
    }
    return tuple(contrasts.get(name) or role_of(name, score) for name in names)


def fields_of_groups(names: Iterable[str]) -> list[Field]:
    """Return the options that have an effect on roles of some names."""
    groups = {name.partition(":")[0] for name in names}
    return [field for field in fields_of(RoleOptions) if only_for(field) in {"", *groups}]


def function_in(name: str) -> str:
    """Return the MODULE:FUNCTION in the name or the id of a user's role; empty for other roles."""
    return ":".join(name.split(":")[:2]) if is_own(name) else ""


def is_own(name: str) -> bool:
    """Tell whether a name or id of a role names a user's Python function."""
    return ":" in name and name.partition(":")[0] not in ROLE_GROUPS


def _ids_in_words(words: str, context: Context) -> list[str]:
    """Return the ids of the roles whose words a user gives."""
    meant = []
    for roles_of_group in ROLE_GROUPS.values():
        with suppress(CorpusError):  # a role that this corpus cannot have
            roles = (
                roles_of_group
                if isinstance(roles_of_group, tuple)
                else tuple(roles_of_group(RoleOptions(), context))
            )
            meant += [role.id for role in roles if role.words.lower() == words.strip().lower()]
    return meant


def _check_own_name(name: str, context: Context) -> None:
    """Raise UsageError for a name that is neither a group nor written like a function."""
    if ":" not in name or get_close_matches(name.partition(":")[0], ROLE_GROUPS, cutoff=0.8):
        if relations := relations_meant_by(name):
            raise UsageError(
                f"there is no role {name!r}; pass `roles='syntactic'`, with the "
                f"relation {' or '.join(relations)} among `relations`"
            )
        groups = ", ".join((*ROLE_GROUPS, ALL))
        near = _ids_in_words(name, context) or get_close_matches(
            name.partition(":")[0], ROLE_GROUPS, n=1
        )
        meant = f" (did you mean {listed([*map(repr, near)])}?)" if near else ""
        raise UsageError(
            f"there is no role {name!r}{meant}; give one of {groups}, an id as in tables, or the "
            "MODULE:FUNCTION of a Python function"
        )
