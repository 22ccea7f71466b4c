"""Roles of arcs: attention from a word to its governor, or to its dependents.

Arcs are those of the dependency tree, of enhanced dependencies, or of a key of the column MISC.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple

from headroles.corpus import (
    DEFAULT_RELATIONS,
    MISSING,
    PARTS,
    ROOT,
    Sentence,
    fold_subtype,
    part_of,
)
from headroles.errors import CorpusError, UsageError
from headroles.options import Convert, PresetOptions, split_names, whole_number
from headroles.role_names import (
    ENDS,
    GROUP,
    POOLED,
    TO_EARLIER,
    arc_in_words,
    every_arc_of,
    names_of_arcs,
    path_of,
    role_of_arcs,
    whole_of,
)
from headroles.roles.batch import ATTENDING
from headroles.roles.competitors import contrasts_of
from headroles.roles.diagonal import contrasts_across
from headroles.roles.pairs import BACK, EARLIER, FORTH, FindLinks, Link, Pairs
from headroles.roles.role import ARCS, Context, OnlyFor, Role
from headroles.roles.word_classes import UPOS, check_classes
from headroles.wording import it_has, shortened

# Arcs

BASIC, ENHANCED, MISC = "basic", "enhanced", "misc:"
LISTED = "misc:arcs"
"""Source of a corpus of tokens and arcs (`read_arcs`), which lists all arcs that there are."""


class Arc(NamedTuple):
    """A dependent and its governor, both as indices in the sentence from 0, and the arc's label."""

    dependent: int
    governor: int
    label: str


def check_source(name: str) -> str:
    """Return ``name`` if it names a source of arcs. Raises UsageError otherwise."""
    source = str(name)
    if source not in (BASIC, ENHANCED) and (not source.startswith(MISC) or source == MISC):
        raise UsageError(
            f"`arcs={source!r}` is no source of arcs; pass {BASIC}, {ENHANCED} or "
            f"{MISC}KEY, with a key of the column MISC"
        )
    return source


_RECENT = 1024
"""Sentences whose arcs are kept, as all roles of a batch ask for them; labels likewise."""


@lru_cache(maxsize=_RECENT)
def arcs_of_tree(governors: tuple[int, ...], relations: tuple[str, ...]) -> tuple[Arc, ...]:
    """Return the arcs of a dependency tree, without those to the root."""
    tree = enumerate(zip(governors, relations, strict=True))
    return tuple(Arc(k, governor, label) for k, (governor, label) in tree if governor != ROOT)


@lru_cache(maxsize=_RECENT)
def ends_of_arcs(arcs: tuple[Arc, ...]) -> frozenset[frozenset[int]]:
    """Return the pairs of words that arcs join, in either direction."""
    return frozenset(frozenset(arc[:2]) for arc in arcs)


def arcs_of(source: str, sentence: Sentence) -> tuple[Arc, ...]:
    """Return the arcs of a sentence, without those to the root.

    In DEPS, arcs from or to empty nodes are ignored, and a repeated arc counts once. In MISC,
    ``KEY=4`` is an arc from the word to word 4, ``KEY=4:label`` an arc with its own label, and
    commas separate several arcs. Raises CorpusError for text that does not describe an arc.
    """
    if source == BASIC:
        return arcs_of_tree(sentence.governors, sentence.relations)
    if source == ENHANCED:
        texts, separator = sentence.annotations.get("deps", ()), "|"
        columns = [text if text != MISSING else "" for text in texts]
    else:
        key, separator = source.removeprefix(MISC), ","
        columns = [misc.get(key, "") for misc in sentence.misc]
    parsed = (
        arc
        for dependent, text in enumerate(columns)
        for part in text.split(separator)
        if part and (arc := _arc(source, sentence, dependent, part)) is not None
    )
    return tuple(dict.fromkeys(parsed))


def _arc(source: str, sentence: Sentence, dependent: int, text: str) -> Arc | None:
    number, _, label = text.partition(":")
    if source == ENHANCED and (number == "0" or "." in number):
        return None
    governor = whole_number(number) or 0
    if not 1 <= governor <= len(sentence.words) or governor == dependent + 1:
        raise CorpusError(
            f"sentence {shortened(sentence.id)!r}, word {dependent + 1}: {shortened(text)!r} "
            f"({source}) is not an arc; write the number of another word of the sentence, "
            "optionally with a colon and a label"
        )
    return Arc(dependent, governor - 1, label or source.removeprefix(MISC))


def of_source(source: str) -> dict[str, Any]:
    """Return the fact that arcs are from another source than the tree."""
    return {} if source == BASIC else {"arcs": source}


def count_arcs(source: str, sentences: Iterable[Sentence]) -> tuple[Counter[str], Counter[str]]:
    """Count the arcs of the sentences by label, and by label and class of the dependent.

    Raises CorpusError if there are none.
    """
    counts: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    for sentence in sentences:
        for arc in arcs_of(source, sentence):
            counts[arc.label] += 1
            if part := part_of(arc.label, sentence.upos[arc.dependent]):
                parts[part] += 1
    if not counts:
        column = "DEPS" if source == ENHANCED else "MISC"
        raise CorpusError(
            f"no sentence of the corpus has arcs of the source {source!r} in its column {column}; "
            "give a treebank with such arcs, or omit `arcs`"
        )
    return counts, parts


@lru_cache(maxsize=_RECENT)
def names_of_arc(label: str, upos: str, keep_subtypes: bool) -> tuple[str, str]:
    """Return the relation of an arc, and the part of it by its dependent's part of speech."""
    relation = label if keep_subtypes else fold_subtype(label)
    return relation, part_of(relation, upos)


@dataclass(frozen=True)
class ByRelations(FindLinks):
    """Finder of links by ``relations`` of arcs of a ``source``.

    A relation may be a part of one (``nsubj/content``): the arcs of dependents of open classes, or
    of closed ones (``nsubj/function``). Subtypes are ignored unless ``keep_subtypes``.
    """

    relations: tuple[str, ...]
    keep_subtypes: bool = False
    source: str = BASIC

    @property
    def meaning(self) -> dict[str, Any]:
        """Facts that distinguish these links from others with the same names."""
        return {"keep_subtypes": self.keep_subtypes, **of_source(self.source)}

    @property
    def labels_by_class(self) -> frozenset[int]:
        """Labels of the relations that are parts of others."""
        names = enumerate(self.relations)
        return frozenset(number for number, name in names if whole_of(name) != name)


@dataclass(frozen=True)
class Arcs(ByRelations):
    """Finder of the arcs of some ``relations``: links from the dependent to its governor.

    Labels are indices in ``relations``.
    """

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {relation: number for number, relation in enumerate(self.relations)}

    def of_sentence(self, sentence: Sentence) -> list[Link]:
        """Return dependent, governor and label of each arc of a sentence, word by word.

        An arc is returned once for its relation, and once for its part.
        """
        numbers, classes = self._numbers, sentence.upos
        return [
            (dependent, governor, numbers[name])
            for dependent, governor, label in arcs_of(self.source, sentence)
            for name in names_of_arc(label, classes[dependent], self.keep_subtypes)
            if name in numbers
        ]

    def joined_in(self, sentence: Sentence) -> Set[frozenset[int]]:
        """Return the pairs of words that an arc of any relation joins."""
        return ends_of_arcs(arcs_of(self.source, sentence))


@dataclass(frozen=True)
class Paths(ByRelations):
    """Finder of links from the last dependent of a path of arcs to its first governor.

    The ``relations`` of the path are in order from the governor on: obl, case has the case markers
    of the obliques of a word. Labels are 0. The ends of a path are related words, as those of an
    arc.
    """

    @property
    def labels_by_class(self) -> frozenset[int]:
        """Return the label of all paths, if the last relation is a part of one."""
        last = self.relations[-1]
        return frozenset({0} if whole_of(last) != last else ())

    def of_sentence(self, sentence: Sentence) -> list[Link]:
        """Return dependent and governor of each path of a sentence."""
        arcs, classes = arcs_of(self.source, sentence), sentence.upos
        names = [
            names_of_arc(arc.label, classes[arc.dependent], self.keep_subtypes) for arc in arcs
        ]
        links = [(word, word) for word in range(len(sentence.words))]
        for relation in self.relations:
            links = [
                (arc.dependent, governor)
                for end, governor in links
                for arc, of_arc in zip(arcs, names, strict=True)
                if arc.governor == end and relation in of_arc
            ]
        return [(dependent, governor, 0) for dependent, governor in dict.fromkeys(links)]

    def joined_in(self, sentence: Sentence) -> Set[frozenset[int]]:
        """Return the pairs of words that an arc of any relation, or the path, joins."""
        return ends_of_arcs(arcs_of(self.source, sentence)) | super().joined_in(sentence)


@dataclass(frozen=True)
class EveryArc(FindLinks):
    """Finder of the arcs of all relations of a ``source``, those that are not scored too.

    Their pieces and controls are counted with the scored arcs.
    """

    is_control: ClassVar[bool] = True

    source: str = BASIC

    @property
    def meaning(self) -> dict[str, Any]:
        """Facts that distinguish these arcs from others with the same names."""
        return of_source(self.source)

    def of_sentence(self, sentence: Sentence) -> list[Link]:
        """Return dependent and governor of each arc of a sentence, word by word."""
        return [(arc.dependent, arc.governor, 0) for arc in arcs_of(self.source, sentence)]


# Roles

ALL_RELATIONS, NO_RELATIONS = "all", "none"
_ID = re.compile(rf"{GROUP}:(.+?):(?:to_governor|to_dependent|from_governor|to_earlier)")
_WAYS = tuple(zip(ENDS, (FORTH, BACK), strict=True))
_WAYS_OF_DECODERS = (*_WAYS, (TO_EARLIER, EARLIER))
"""Ends of ids with the directions of arcs; a decoder sees all arcs in the last one alone."""
_WHOLE_ARCS = "arcs between words that have pieces, in examples that are not too long"


def _relations(chosen: str | Sequence[str]) -> str | tuple[str, ...]:
    relation_names = split_names(chosen)
    if isinstance(chosen, str) and not relation_names:
        raise UsageError(
            "`relations` names no relation; omit it for the defaults, or pass none to "
            "score without syntax"
        )
    if relation_names == (NO_RELATIONS,):
        return ()
    return ALL_RELATIONS if relation_names == (ALL_RELATIONS,) else relation_names


@dataclass(frozen=True, kw_only=True)
class SyntacticOptions(PresetOptions):
    """Options that choose the syntactic roles."""

    title: ClassVar[str] = "Roles"

    relations: Annotated[str | Sequence[str] | None, Convert(_relations), OnlyFor(GROUP)] = None
    """Relations to score, separated by commas, or all of them (all), or not one (none); left out:
    nsubj, obj, amod, advmod (in the label scheme CLEAR dobj in place of obj), subjects and objects
    that are nouns apart from pronouns.

    REL/content has the arcs of a relation whose dependent is of an open class, REL/function those
    of a closed class: nsubj/content, nsubj/function. A relation that is named is scored as one.
    REL+REL is a path of two or three arcs: obl+case joins a word to the case marker of its oblique.
    """
    keep_subtypes: Annotated[bool, OnlyFor(GROUP)] = False
    """Treat nsubj:pass as a relation of its own."""
    arcs: Annotated[str, Convert(check_source), OnlyFor(GROUP)] = BASIC
    """Where arcs come from: basic, enhanced (DEPS), or misc:KEY (MISC).

    A key of MISC names the other word by its number, with or without a label (Coref=4,
    Coref=4:label), with commas between several. All labels are scored unless relations are named.
    Only basic arcs, and those of files of tokens and arcs, have contrasts.
    """
    beyond_offset: bool = True
    """Contrast roles of pairs of words with other words at the same offset, and with nearer words
    of the same class."""
    classes: Annotated[str, Convert(check_classes)] = UPOS
    """Where the classes of words come from, for contrasts with words of the same class: upos, xpos,
    lemma, feats:KEY or misc:KEY.

    A word that has nothing there is of the class of its form.
    """
    columns: Annotated[bool, OnlyFor(GROUP)] = False
    """With `score='hit'`, also test whether the governor is the word that attends most to its
    dependent.

    Adds the roles ...:from_governor: attention is read by columns, between words, as one of the
    two readings of Clark et al. (2019). The roles ...:to_governor read it by rows.
    """

    def check(self) -> None:
        """Reject classes of words that nothing is contrasted with. Raises UsageError."""
        super().check()
        if self.classes != UPOS and not self.has_contrasts:
            raise UsageError(
                "`classes` has no effect without contrasts; pass `beyond_offset=True`, or omit it"
            )

    @property
    def has_contrasts(self) -> bool:
        """Whether roles of pairs are contrasted; those of the published preset are not."""
        return self.beyond_offset and not self.is_published

    def contrasts_of(self, roles: Iterable[Role], context: Context) -> Iterator[Role]:
        """Yield the contrasts of roles of pairs.

        First choices have none, since they are compared with the best rule.
        """
        if not self.has_contrasts or context.score.of_first_choice:
            return
        for role in roles:
            is_across = isinstance(role.sieve, Pairs) and role.sieve.find.is_across
            of_role = contrasts_across if context.is_across and is_across else contrasts_of
            yield from of_role(role, self.classes)


def roles(options: SyntacticOptions, context: Context) -> Iterator[Role]:
    """Yield roles pooled over all relations and by relation, in both directions; then contrasts.

    Decoders, which see each arc in one direction, have roles from the later word to the earlier one
    too.
    Arcs from other sources than the tree have no contrasts, since the tree does not say which words
    such arcs do not join.
    """
    if not context.relations:
        return
    if options.columns and not context.score.of_first_choice:
        raise UsageError("`columns` need first choices; pass `score='hit'`, or omit them")
    syntactic = [*_roles_of_relations(options, context), *_roles_of_paths(options, context)]
    yield from syntactic
    if not options.is_published:
        yield from _every_arc(EveryArc(options.arcs), context)
    if options.columns:
        to_governor = (role for role in syntactic if role.id.endswith(ENDS[FORTH]))
        yield from map(_from_governor, to_governor)
    yield from options.contrasts_of(filter(has_contrast, syntactic), context)


def _roles_of_relations(options: SyntacticOptions, context: Context) -> Iterator[Role]:
    """Yield roles pooled over relations, if any is scored, and of each."""
    relations = tuple(name for name in context.relations if len(path_of(name)) == 1)
    if not relations:
        return
    arcs = Arcs(relations, options.keep_subtypes, options.arcs)
    # an arc is pooled once, though its relation and its part are scored
    wholes = [name for name in relations if whole_of(name) not in {*relations} - {name}]
    numbers = frozenset(map(relations.index, wholes))
    yield from _all_ways(arcs, POOLED, numbers, context, {"relations": sorted(wholes)})
    for number, name in enumerate(relations):
        yield from _all_ways(arcs, name, frozenset({number}), context)


def _roles_of_paths(options: SyntacticOptions, context: Context) -> Iterator[Role]:
    """Yield the roles of each path of arcs."""
    for name in context.relations:
        if len(path := path_of(name)) > 1:
            find = Paths(path, options.keep_subtypes, options.arcs)
            yield from _all_ways(find, name, frozenset({0}), context)


def _all_ways(
    find: Arcs | Paths,
    name: str,
    labels: frozenset[int],
    context: Context,
    meaning: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Role]:
    """Yield the roles of the links with some ``labels``, a role each direction."""
    for end, direction in _WAYS_OF_DECODERS if context.is_causal else _WAYS:
        yield Role(
            role_of_arcs(name, end),
            ARCS,
            meaning={**meaning, **find.meaning},
            words=arc_in_words(name, end),
            relation=name,
            names=names_of_arcs(name, end),
            needs=_WHOLE_ARCS if isinstance(find, Arcs) else f"paths {name}",
            sieve=Pairs(find, labels, direction),
        )


def _every_arc(find: EveryArc, context: Context) -> Iterator[Role]:
    """Yield the attention along all arcs of the corpus, measures beside the pooled roles."""
    for end, direction in _WAYS_OF_DECODERS if context.is_causal else _WAYS:
        pooled = role_of_arcs(POOLED, end)
        yield Role(
            every_arc_of(pooled),
            ARCS,
            measure_of=pooled,
            meaning=find.meaning,
            words=f"{arc_in_words(POOLED, end)}, along the arcs of all relations",
            sieve=Pairs(find, frozenset({0}), direction),
        )


def has_contrast(role: Role) -> bool:
    """Tell whether a role of arcs has contrasts: those of the tree have."""
    is_of_tree = role.meaning.get("arcs", BASIC) in (BASIC, LISTED)
    return role.unit == ARCS and role.is_tested and is_of_tree


def relation_in(name: str) -> str | None:
    """Return the relation in the id of a role of arcs; None for other ids."""
    match = _ID.match(name)
    return match[1] if match else None


def _from_governor(role: Role) -> Role:
    """Return a role to governors read by columns: the word that attends most to the dependent."""
    assert isinstance(role.sieve, Pairs)
    return replace(
        role,
        id=role_of_arcs(role.relation, "from_governor"),
        words=arc_in_words(role.relation, "from_governor"),
        sieve=replace(role.sieve, among=ATTENDING),
    )


def choose_relations(
    options: SyntacticOptions,
    scheme: str,
    arcs: Mapping[str, int],
    parts: Mapping[str, int],
    sentences: Iterable[Sentence] = (),
) -> tuple[str, ...]:
    """Choose the relations to score, in order; defaults absent from the corpus are skipped.

    ``arcs`` counts the basic arcs of the corpus by full label, ``parts`` by label and class of the
    dependent; ``scheme`` is their label scheme. Arcs of another source are counted in the
    ``sentences``.

    Raises CorpusError if the corpus lacks a named relation, if its label scheme has no defaults, or
    if a chosen relation has the name of all relations together.
    """
    if options.arcs != BASIC:
        arcs, parts = count_arcs(options.arcs, sentences)
    present, halves = _folded(options, arcs), _folded(options, parts)
    chosen = _choose_relations(options, scheme, present, halves)
    if POOLED in chosen:
        raise CorpusError(
            f"the corpus has a relation called {POOLED!r}, which is the name of all relations "
            "together; rename it in the corpus, or leave it out of `relations`"
        )
    return chosen


def _folded(options: SyntacticOptions, counts: Mapping[str, int]) -> Counter[str]:
    """Add up counts by label or part of a label, without subtypes if these are ignored."""
    folded: Counter[str] = Counter()
    for name, count in counts.items():
        whole = whole_of(name)
        relation = whole if options.keep_subtypes else fold_subtype(whole)
        folded[relation + name.removeprefix(whole)] += count
    return folded


def _choose_relations(
    options: SyntacticOptions, scheme: str, present: Counter[str], parts: Counter[str]
) -> tuple[str, ...]:
    if options.relations is None and options.arcs.startswith(MISC):
        return tuple(sorted(present))
    if options.relations is None:
        if scheme not in DEFAULT_RELATIONS:
            raise CorpusError(
                "the labels of the corpus are neither UD nor CLEAR, so there are no default "
                f"relations ({it_has(sorted(present), 50)}); name some with `relations`, or pass "
                "none to score without syntax"
            )
        usual = [name for name in DEFAULT_RELATIONS[scheme] if present[name]]
        # the published relations are whole
        return tuple(usual) if options.is_published else _in_parts(usual, parts)
    if options.relations == ALL_RELATIONS:
        return _in_parts(sorted(present), parts)
    for relation in options.relations:
        for step in (path := path_of(relation)):
            if not present[step] and not parts[step]:
                raise CorpusError(_absent(step, present, parts))
        if len(path) > LONGEST_PATH:
            raise UsageError(
                f"the path {relation!r} has {len(path)} relations; give {LONGEST_PATH} at most"
            )
    return tuple(dict.fromkeys(options.relations))


LONGEST_PATH = 3
"""Most arcs of a path."""
_TWO = ("nsubj", "obj", "dobj")
"""Relations that are two by default: heads that follow pronouns need not follow nouns."""


def _in_parts(relations: Iterable[str], parts: Mapping[str, int]) -> tuple[str, ...]:
    """Put the parts that there are in the place of subjects and objects."""
    chosen: list[str] = []
    for relation in relations:
        halves = [f"{relation}/{part}" for part in PARTS if parts.get(f"{relation}/{part}")]
        chosen += halves if relation in _TWO and halves else [relation]
    return tuple(chosen)


def absent_defaults(options: SyntacticOptions, scheme: str, chosen: Sequence[str]) -> list[str]:
    """List default relations that the corpus lacks; empty if relations were named."""
    if options.relations is not None or options.arcs.startswith(MISC):
        return []
    wholes = set(map(whole_of, chosen))
    return [name for name in DEFAULT_RELATIONS.get(scheme, ()) if name not in wholes]


def _absent(relation: str, present: Counter[str], parts: Counter[str]) -> str:
    if (whole := whole_of(relation)) != relation and present[whole]:
        if not parts:
            return f"{relation!r} needs parts of speech, and the corpus has none; give {whole!r}"
        return f"the corpus has arcs of {whole!r}, and none of {relation!r}; give {whole!r}"
    if fold_subtype(relation) != relation and present[fold_subtype(relation)]:
        return (
            f"relation {relation!r} has a subtype, but subtypes are folded; "
            "pass `keep_subtypes=True`"
        )
    if relation in (ALL_RELATIONS, NO_RELATIONS):
        every = "every relation" if relation == ALL_RELATIONS else "no relation"
        return f"{relation!r} stands for {every}; give it alone, or give only names"
    near = get_close_matches(relation, present, n=1)
    relations = it_has(sorted(present), 50)
    hint = f"did you mean {near[0]!r}? I{relations[1:]}" if near else relations
    return f"the corpus has no relation {relation!r}; {hint}"
