"""Choice of the relations that are scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

from headroles.corpus import DEFAULT_RELATIONS, Sentence, fold_subtype
from headroles.errors import CorpusError, UsageError
from headroles.options import Convert, Options, split_names
from headroles.roles.arc_sources import BASIC, MISC, check_source, count_arcs
from headroles.wording import listed

ALL_RELATIONS, NO_RELATIONS = "all", "none"


def _relations(given: Any) -> str | tuple[str, ...]:
    named = split_names(given)
    if isinstance(given, str) and not named:
        raise UsageError(
            "`relations` names no relation; omit it for the defaults, or pass none to "
            "score without syntax"
        )
    if named == (NO_RELATIONS,):
        return ()
    return ALL_RELATIONS if named == (ALL_RELATIONS,) else named


@dataclass(frozen=True, kw_only=True)
class RelationOptions(Options):
    """Options that choose relations and the source of arcs."""

    title: ClassVar[str] = "Roles"

    relations: Annotated[str | Sequence[str] | None, Convert(_relations)] = None
    """Relations to score, separated by commas, or all of them (all), or not one (none).

    By default four relations of the corpus's label scheme: nsubj, obj, amod, advmod in UD; nsubj,
    dobj, amod, advmod in CLEAR.
    """
    keep_subtypes: bool = False
    """Treat nsubj:pass as a relation of its own."""
    arcs: Annotated[str, Convert(check_source)] = BASIC
    """Where arcs come from: basic, enhanced (DEPS), or misc:KEY (MISC).

    A key of MISC names the other word by its number, with or without a label (Coref=4,
    Coref=4:label), with commas between several. All labels are scored unless relations are named.
    Only basic arcs have contrasts.
    """


def choose_relations(
    options: RelationOptions,
    scheme: str,
    arcs: Mapping[str, int],
    sentences: Iterable[Sentence] = (),
) -> tuple[str, ...]:
    """Choose the relations to score, in order; defaults absent from the corpus are skipped.

    ``arcs`` counts the basic arcs of the corpus by full label; ``scheme`` is their label scheme.
    Arcs of another source are counted in the ``sentences``.

    Raises CorpusError if the corpus lacks a named relation, or if its label scheme has no defaults.
    """
    present: Counter[str] = Counter()
    if options.arcs != BASIC:
        arcs = count_arcs(options.arcs, sentences)
    for relation, count in arcs.items():
        present[relation if options.keep_subtypes else fold_subtype(relation)] += count
    if options.relations is None and options.arcs.startswith(MISC):
        return tuple(sorted(present))
    if options.relations is None:
        if scheme not in DEFAULT_RELATIONS:
            raise CorpusError(
                "the labels of the corpus are neither UD nor CLEAR, so there are no default "
                f"relations; name some with `relations`: {listed(sorted(present), 50)}; or pass "
                "none to score without syntax"
            )
        return tuple(name for name in DEFAULT_RELATIONS[scheme] if present[name])
    if options.relations == ALL_RELATIONS:
        return tuple(sorted(present))
    for relation in options.relations:
        if not present[relation]:
            raise CorpusError(_absent(relation, present))
    return tuple(dict.fromkeys(options.relations))


def absent_defaults(options: RelationOptions, scheme: str, chosen: Sequence[str]) -> list[str]:
    """List default relations that the corpus lacks; empty if relations were named."""
    if options.relations is not None or options.arcs.startswith(MISC):
        return []
    defaults = DEFAULT_RELATIONS.get(scheme, ())
    return [relation for relation in defaults if relation not in chosen]


def _absent(relation: str, present: Counter[str]) -> str:
    if fold_subtype(relation) != relation and present[fold_subtype(relation)]:
        return (
            f"relation {relation!r} has a subtype, but subtypes are folded; "
            "pass `keep_subtypes=True`"
        )
    if relation in (ALL_RELATIONS, NO_RELATIONS):
        every = "every relation" if relation == ALL_RELATIONS else "no relation"
        return f"{relation!r} stands for {every}; give it alone, or give only names"
    near = get_close_matches(relation, present, n=1)
    hint = f"did you mean {near[0]!r}? It has" if near else "it has"
    return f"the corpus has no relation {relation!r}; {hint}: {listed(sorted(present), 50)}"
