"""Blocks of scores, cut where documents end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headroles.corpus import Places
from headroles.errors import UsageError
from headroles.scoring import ScoreBlock


def split_off_last(
    waiting: list[ScoreBlock], block: ScoreBlock
) -> tuple[list[ScoreBlock], list[ScoreBlock]]:
    """What is of documents that are read to their end, and what there is of the last one.

    ``waiting`` is what there was of the last one before ``block``.
    """
    last = block.documents.index(block.documents[-1])
    goes_on = bool(waiting) and waiting[0].documents[0] == block.documents[0]
    rest = block.part(slice(last, None))
    if last == 0 and (goes_on or not waiting):
        return [], [*waiting, rest]
    return [*waiting, block.part(slice(last))], [rest]


def in_whole_documents(blocks: Iterable[ScoreBlock]) -> Iterator[ScoreBlock]:
    """The same examples in blocks of whole documents, which take the memory of the largest one.

    Raises UsageError for a document that goes on after another.
    """
    seen = Places()
    waiting: list[ScoreBlock] = []
    for block in blocks:
        whole, waiting = split_off_last(waiting, block)
        if whole:
            yield _new(ScoreBlock.joined(whole), seen)
    if waiting:
        yield _new(ScoreBlock.joined(waiting), seen)


def _new(block: ScoreBlock, seen: Places) -> ScoreBlock:
    for document in dict.fromkeys(block.documents):
        place = len(seen)
        if seen.setdefault(document, place) != place:
            raise UsageError(
                f"document {document!r} goes on after others, and so many scores are tested "
                "document by document; order the corpus by documents, or take examples as "
                "independent (--clusters none)"
            )
    return block
