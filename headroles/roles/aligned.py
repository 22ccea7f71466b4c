"""Words of a target that look for the words of the source that they translate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headroles.corpus import Sentence, links_in
from headroles.roles.pairs import (
    BACK,
    FindLinks,
    Link,
    Pairs,
)
from headroles.roles.role import ARCS, Context, Role
from headroles.roles.syntactic import SyntacticOptions

ALIGNED = "aligned"


@dataclass(frozen=True)
class Alignment(FindLinks):
    """Finder of links from a word of the source to one of the target: 0 if sure, 1 if possible."""

    @property
    def is_across(self) -> bool:
        """Whether links join words of the two sentences of an example, as all of these do."""
        return True

    def of_sentence(self, sentence: Sentence) -> list[Link]:
        """Return no link: all are across sentences."""
        return []

    def of_pair(self, first: Sentence, second: Sentence) -> list[Link]:
        """Return the links of a source and a target."""
        return links_in(len(first.words), second)


def roles(options: SyntacticOptions, context: Context) -> Iterator[Role]:
    """Yield the role of sure links, and its contrasts."""
    find = Alignment()
    role = Role(
        ALIGNED,
        ARCS,
        words="aligned words of the source",
        needs="aligned words",
        sieve=Pairs(find, frozenset([0]), BACK),
    )
    yield role
    # those of cross-attention, even where a role is made to be looked up
    yield from options.contrasts_of([role], replace(context, is_across=True))
