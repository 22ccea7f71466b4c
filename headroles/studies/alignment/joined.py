"""Links of two directions -> links of both: intersection, union, and growth from one to the other.

Och and Ney 2003; grow-diag-final as in Koehn et al. 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

Link: TypeAlias = tuple[int, int]
Links: TypeAlias = frozenset[Link]
"""Links of a pair, each a source word and a target word."""
_BESIDE = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


class _Growing:
    """Links that grow, with the words that have one."""

    def __init__(self, links: Links) -> None:
        self.links = set(links)
        self.words = [{link[side] for link in links} for side in (0, 1)]

    def add(self, link: Link, needed: Callable[[Iterable[bool]], bool]) -> None:
        """Add a link if any, or all, of its two words have none."""
        if needed(word not in words for word, words in zip(link, self.words, strict=True)):
            self.links.add(link)
            for word, words in zip(link, self.words, strict=True):
                words.add(word)


def _in_order(links: Iterable[Link]) -> list[Link]:
    """Return links by their target words, then by their source words."""
    return sorted(links, key=lambda link: link[::-1])


def _grown(forward: Links, backward: Links) -> _Growing:
    """Grow the links of both directions by links of either beside them, to words without one."""
    growing, either = _Growing(forward & backward), forward | backward
    size = -1
    while size != len(growing.links):
        size = len(growing.links)
        for source, target in _in_order(either):
            if (source, target) in growing.links:
                for step, other in _BESIDE:
                    if (link := (source + step, target + other)) in either:
                        growing.add(link, any)
    return growing


def _finished(forward: Links, backward: Links, needed: Callable[[Iterable[bool]], bool]) -> Links:
    """Add the remaining links of one direction, then of the other, to words without one."""
    growing = _grown(forward, backward)
    for direction in (forward, backward):
        for link in _in_order(direction):
            growing.add(link, needed)
    return frozenset(growing.links)


METHODS: dict[str, Callable[[Links, Links], Links]] = {
    "forward": lambda forward, backward: forward,
    "backward": lambda forward, backward: backward,
    "intersection": lambda forward, backward: forward & backward,
    "union": lambda forward, backward: forward | backward,
    "grow-diag": lambda forward, backward: frozenset(_grown(forward, backward).links),
    "grow-diag-final": lambda forward, backward: _finished(forward, backward, any),
    "grow-diag-final-and": lambda forward, backward: _finished(forward, backward, all),
}
"""Each way to make links of those of two directions."""
