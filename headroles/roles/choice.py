"""Which roles are scored: the list of all there are, and the options that choose among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

from headroles.corpus import Sentence
from headroles.errors import UsageError
from headroles.options import Option, fields_of, split_names
from headroles.roles import (
    block,
    delimiter,
    local,
    position,
    punctuation,
    quantities,
    rare,
    syntactic,
)
from headroles.roles.frequencies import FrequencyOptions
from headroles.roles.local import LocalOptions
from headroles.roles.own import own_roles
from headroles.roles.role import Context, Role
from headroles.roles.scores import Score
from headroles.roles.syntactic import SyntacticOptions
from headroles.wording import listed

ROLE_GROUPS: dict[str, Callable[[Any, Context], Iterator[Role]]] = {
    "local": local.roles,
    "delimiter": delimiter.roles,
    "block": block.roles,
    "syntactic": syntactic.roles,
    "position": position.roles,
    "self": position.itself,
    "punctuation": punctuation.roles,
    "rare": rare.roles,
    "confidence": quantities.confidence,
    "entropy": quantities.entropy,
    "distance": quantities.distance,
}
"""What users call groups of roles, and what gives the roles; in the order of every table."""
DEFAULT_GROUPS = ("local", "delimiter", "block", "syntactic")
"""What is scored if nothing is named: every role more is a test more to correct all others for."""
ALL = "all"


def _names(given: Any) -> tuple[str, ...]:
    """Names of groups or roles, positions as tables have them."""
    names = split_names(given)
    if not names:
        raise UsageError("--roles names no role; leave it out for the defaults")
    plain = (
        f"{position.GROUP}:{position.offset_of(name):+d}" if position.is_one(name) else name
        for name in names
    )
    return tuple(dict.fromkeys(plain))  # a role named twice would be tested twice


@dataclass(frozen=True, kw_only=True)
class RoleOptions(SyntacticOptions, LocalOptions, FrequencyOptions):
    """What any role can be asked for."""

    title: ClassVar[str] = "Roles"

    roles: Annotated[
        Sequence[str] | None,
        Option(
            "Roles to score, separated by commas: groups "
            f"({', '.join(ROLE_GROUPS)}), ids such as position:-2, all, or "
            "MODULE:FUNCTION of one's own.",
            more=f"If left out: {', '.join(DEFAULT_GROUPS)}. A group is all of its roles: "
            "delimiter is also delimiter:cls and delimiter:sep.",
            convert=_names,
        ),
    ] = None

    def check(self) -> None:
        """Refuse options of roles that are not scored."""
        super().check()
        named = {name.partition(":")[0] for name in self.roles or DEFAULT_GROUPS}
        for one in fields_of(RoleOptions):
            group = _ONLY_FOR.get(one.name, ALL)
            is_used = group == ALL or named & {group, ALL}
            if not is_used and getattr(self, one.name) not in (one.default, ()):
                raise UsageError(
                    f"{one.name} ({one.flag}) does nothing without the role {group}; add it to "
                    "roles (--roles), or leave the option out"
                )


_ONLY_FOR = {
    "frequencies": "rare",
    "window": "local",
    "relations": "syntactic",
    "arcs": "syntactic",
    "keep_subtypes": "syntactic",
    "columns": "syntactic",
}


def choose_roles(
    options: RoleOptions,
    relations: tuple[str, ...],
    score: Score,
    sentences: Iterable[Sentence] = (),
) -> tuple[Role, ...]:
    """The roles to score with a score, and arcs of these ``relations``, in the order of tables.

    ``sentences`` are those of the corpus; some roles need them. Raises UsageError for names of no
    role, and CorpusError for a corpus that has not what a role is made of.
    """
    named = DEFAULT_GROUPS if options.roles is None else options.roles
    context = Context(relations, score, sentences)
    chosen: list[Role] = []
    for group, make in ROLE_GROUPS.items():
        asked = [name for name in named if name == ALL or name.partition(":")[0] == group]
        if asked:
            chosen += _choose(group, tuple(make(options, context)), asked)
    for name in named:
        if name != ALL and name.partition(":")[0] not in ROLE_GROUPS:
            _refuse_unknown(name)
            chosen += own_roles(name, context)
    return tuple(chosen)


def is_own(name: str) -> bool:
    """Whether a name, or the id of a role, is that of a Python function."""
    return ":" in name and name.partition(":")[0] not in ROLE_GROUPS


def _choose(group: str, roles: Sequence[Role], asked: Sequence[str]) -> list[Role]:
    """Those of the ``roles`` of a group that are asked for."""
    known = [group, *(role.id for role in roles)]
    for name in asked:
        if name not in known and name != ALL:
            near = get_close_matches(name, known, n=3) or known
            raise UsageError(f"there is no role {name!r} to score; did you mean {listed(near)}?")
    return [role for role in roles if {group, ALL, role.id, role.measure_of} & set(asked)]


def _refuse_unknown(name: str) -> None:
    """Raise UsageError for a name that is neither a group nor like that of a function."""
    if ":" not in name or get_close_matches(name.partition(":")[0], ROLE_GROUPS, cutoff=0.8):
        groups = ", ".join((*ROLE_GROUPS, ALL))
        near = get_close_matches(name.partition(":")[0], ROLE_GROUPS, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise UsageError(
            f"there is no role {name!r} to score{meant}; it must be one of {groups}, an id that "
            "tables have, or the MODULE:FUNCTION of a Python function"
        )
