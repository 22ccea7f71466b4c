"""Delimiter heads: attention to the tokens that the tokenizer added."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headroles.options import Options
from headroles.roles.batch import Batch
from headroles.roles.key_sets import KeySets, Shared
from headroles.roles.role import Context, Role


def delimiter(part: str = "") -> Role:
    """Return the role whose tokens look for special tokens: all, only ``cls``, or only ``sep``."""
    name, words, find = _PARTS[part]
    return Role(id=name, words=words, sieve=KeySets(find))


def roles(options: Options, context: Context) -> Iterator[Role]:
    """Yield all delimiter roles."""
    yield from map(delimiter, _PARTS)


def _special(batch: Batch) -> list[Shared]:
    return [Shared(batch.real, batch.special)]


def _classifier(batch: Batch) -> list[Shared]:
    return [Shared(batch.real, batch.classifier)]


def _separators(batch: Batch) -> list[Shared]:
    return [Shared(batch.real, batch.separators)]


_PARTS: dict[str, tuple[str, str, Callable[[Batch], list[Shared]]]] = {
    "": ("delimiter", "special tokens", _special),
    "cls": ("delimiter:cls", "the classifier token", _classifier),
    "sep": ("delimiter:sep", "separators", _separators),
}
