"""Sources of arcs: the dependency tree, enhanced dependencies, or a key of the column MISC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from headroles.arrays import BoolArray, IntArray
from headroles.corpus import MISSING, ROOT, Sentence, fold_subtype
from headroles.encoding import EncodedExample, pad
from headroles.errors import CorpusError, UsageError
from headroles.options import whole_number
from headroles.roles.batch import PaddedBatch
from headroles.roles.pairs import FindLinks, Link
from headroles.wording import shortened

BASIC, ENHANCED, MISC = "basic", "enhanced", "misc:"
LISTED = "misc:arcs"
"""Source of a corpus of tokens and arcs (`read_arcs`), which lists all arcs that there are."""


class Arc(NamedTuple):
    """A dependent and its governor, both as places in the sentence from 0, and the arc's label."""

    dependent: int
    governor: int
    label: str


def check_source(given: Any) -> str:
    """Return ``given`` if it names a source of arcs. Raises UsageError otherwise."""
    source = str(given)
    if source not in (BASIC, ENHANCED) and (not source.startswith(MISC) or source == MISC):
        raise UsageError(
            f"`arcs={source!r}` is no source of arcs; pass {BASIC}, {ENHANCED} or "
            f"{MISC}KEY, with a key of the column MISC"
        )
    return source


def arcs_of(source: str, sentence: Sentence) -> list[Arc]:
    """Return the arcs of a sentence, without those to the root.

    In DEPS, arcs from or to empty nodes are ignored, and a repeated arc counts once. In MISC,
    ``KEY=4`` is an arc from the word to word 4, ``KEY=4:label`` an arc with its own label, and
    commas separate several arcs. Raises CorpusError for text that does not describe an arc.
    """
    if source == BASIC:
        arcs = map(Arc, range(len(sentence.words)), sentence.governors, sentence.relations)
        return [arc for arc in arcs if arc.governor != ROOT]
    if source == ENHANCED:
        texts, separator = sentence.annotations.get("deps", ()), "|"
        columns = [text if text != MISSING else "" for text in texts]
    else:
        key, separator = source.removeprefix(MISC), ","
        columns = [misc.get(key, "") for misc in sentence.misc]
    found = (
        arc
        for dependent, text in enumerate(columns)
        for part in text.split(separator)
        if part and (arc := _arc(source, sentence, dependent, part)) is not None
    )
    return list(dict.fromkeys(found))


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


def count_arcs(source: str, sentences: Iterable[Sentence]) -> Counter[str]:
    """Count the arcs of the sentences by label. Raises CorpusError if there are none."""
    counts = Counter(arc.label for sentence in sentences for arc in arcs_of(source, sentence))
    if not counts:
        column = "DEPS" if source == ENHANCED else "MISC"
        raise CorpusError(
            f"no sentence of the corpus has arcs of the source {source!r} in its column {column}; "
            "give a treebank with such arcs, or omit `arcs`"
        )
    return counts


@dataclass(frozen=True)
class _AllArcs(FindLinks):
    """Finder of the arcs of every relation."""

    source: str

    def of_sentence(self, sentence: Sentence) -> list[Link]:
        """Return dependent and governor of each arc of a sentence."""
        return [(arc.dependent, arc.governor, 0) for arc in arcs_of(self.source, sentence)]


@dataclass(frozen=True)
class Arcs(FindLinks):
    """Finder of the arcs of some ``relations``: links from the dependent to its governor.

    Labels are places in ``relations``. Subtypes are ignored unless ``keep_subtypes``.
    """

    relations: tuple[str, ...]
    keep_subtypes: bool = False
    source: str = BASIC

    @property
    def meaning(self) -> dict[str, Any]:
        """Facts that distinguish these arcs from others with the same names."""
        source = {} if self.source == BASIC else {"arcs": self.source}
        return {"keep_subtypes": self.keep_subtypes, **source}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {relation: number for number, relation in enumerate(self.relations)}

    def _number(self, relation: str) -> int:
        name = relation if self.keep_subtypes else fold_subtype(relation)
        return self._numbers.get(name, -1)

    def of_sentence(self, sentence: Sentence) -> list[Link]:
        """Return dependent, governor and label of each arc of a sentence."""
        numbered = [(arc, self._number(arc.label)) for arc in arcs_of(self.source, sentence)]
        return [(arc.dependent, arc.governor, label) for arc, label in numbered if label >= 0]

    def of_example(self, example: EncodedExample) -> IntArray:
        """Return dependent, governor and label (arcs, 3) of each arc, word by word."""
        if self.source != BASIC:
            return super().of_example(example)
        labels = np.array([self._number(label) for label in example.relations])
        dependents = np.flatnonzero((labels >= 0) & (example.governors != ROOT))
        return np.column_stack([dependents, example.governors[dependents], labels[dependents]])

    def joined_in(self, sentence: Sentence) -> set[frozenset[int]]:
        """Return the pairs of words that an arc of any relation joins."""
        return {frozenset(arc[:2]) for arc in arcs_of(self.source, sentence)}

    def joined(self, batch: PaddedBatch) -> BoolArray:
        """Mark the pairs of pieces of words that an arc joins, of any relation.

        Arcs are those of the tree, or of a corpus without trees those that it lists.
        """
        if self.source == LISTED:
            return _AllArcs(self.source).joined(batch)
        # the word -1 of special tokens reads the -1 appended
        governors = pad([np.append(one.governors, -1)[one.words] for one in batch.examples], -1)
        to_governor = governors[:, :, None] == batch.words[:, None]
        return np.asarray(to_governor | to_governor.swapaxes(1, 2))
