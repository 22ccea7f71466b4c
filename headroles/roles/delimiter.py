"""Delimiter heads: attention to the tokens that the tokenizer added."""

from __future__ import annotations

from collections.abc import Iterator

from headroles.options import Options
from headroles.roles.batch import PaddedBatch
from headroles.roles.key_sets import KeySets, Shared
from headroles.roles.role import Context, Role


def roles(options: Options, context: Context) -> Iterator[Role]:
    """Yield the roles whose tokens look for special tokens: all, the first, or separators."""
    yield Role("delimiter", "special tokens", sieve=KeySets(_special))
    yield Role("delimiter:cls", "the classifier token", sieve=KeySets(_classifier))
    yield Role("delimiter:sep", "separators", sieve=KeySets(_separators))


def _special(batch: PaddedBatch) -> list[Shared]:
    return [Shared(batch.real, batch.special)]


def _classifier(batch: PaddedBatch) -> list[Shared]:
    return [Shared(batch.real, batch.classifier)]


def _separators(batch: PaddedBatch) -> list[Shared]:
    return [Shared(batch.real, batch.separators)]
