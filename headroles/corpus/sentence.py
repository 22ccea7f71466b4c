"""Sentences with their relations, corpora of them, and examples: the unit of every test."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from headroles.wording import listed, numbered

ANNOTATIONS = ("lemma", "upos", "xpos", "feats", "deps", "misc")
"""Further columns of CoNLL-U, whose texts are stored unchanged."""
MISSING = "_"
_FEW = 10  # words that a message names
ROOT = -1
"""Governor of a word that depends on no other word."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words of one sentence with their dependency arcs.

    ``governors[k]`` is the index (from 0) of the word that word ``k`` depends on, or ``ROOT``;
    ``relations[k]`` is the label of that arc. ``position`` counts the sentences of ``document``
    from 0: two sentences are adjacent if it differs by one.

    ``annotations`` has, for each known one of `ANNOTATIONS`, the texts of all words, ``_`` if
    empty. ``n_multiword`` is the number of multiword tokens, such as "im", whose words are among
    ``words``. ``spaces`` tells of each word whether a space follows it in the text, and is empty if
    that is not known. These three are ignored when sentences are compared.

    >>> Sentence("s-1", "letter", 0, ("Dogs", "bark"), (1, ROOT), ("nsubj", "root")).words
    ('Dogs', 'bark')
    """

    id: str
    document: str
    position: int
    words: tuple[str, ...]
    governors: tuple[int, ...]
    relations: tuple[str, ...]
    annotations: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    n_multiword: int = field(default=0, compare=False, repr=False)
    spaces: tuple[bool, ...] = field(default=(), compare=False, repr=False)

    @property
    def lemmas(self) -> tuple[str, ...]:
        """Lemma of each word, ``_`` if missing."""
        return self.column("lemma")

    @property
    def upos(self) -> tuple[str, ...]:
        """Universal part of speech of each word, ``_`` if missing."""
        return self.column("upos")

    @property
    def feats(self) -> tuple[Mapping[str, str], ...]:
        """Features of each word, such as ``Number`` and ``Plur``."""
        return tuple(map(_pairs, self.column("feats")))

    @property
    def misc(self) -> tuple[Mapping[str, str], ...]:
        """Entries of the column MISC for each word, by key."""
        return tuple(map(_pairs, self.column("misc")))

    def column(self, name: str) -> tuple[str, ...]:
        """Return the texts of all words in one of `ANNOTATIONS`, ``_`` if missing."""
        return self.annotations.get(name) or (MISSING,) * len(self.words)

    def __post_init__(self) -> None:
        if not len(self.words) == len(self.governors) == len(self.relations):
            raise ValueError(
                f"sentence {self.id!r}: words, governors and relations differ in length"
            )
        if len(self.spaces) not in (0, len(self.words)):
            raise ValueError(f"sentence {self.id!r}: words and spaces differ in length")


def _pairs(text: str) -> dict[str, str]:
    """Parse ``Key=Value|Key=Value`` to a mapping; a key alone has an empty value."""
    parts = (part.partition("=") for part in text.split("|") if text != MISSING)
    return {key: value for key, _, value in parts}


BEFORE_NUMBER = re.compile(r"^(.+?)[-_.:/](?:p\d+)?s?\d+\Z")
"""An id with the number of a sentence at its end, as weblog-0001, b101.1, dev-s12, -p2s1."""


def prefix_of(sentence_id: str) -> str:
    """Return the part of an id before the number of the sentence; empty without a number."""
    match = BEFORE_NUMBER.search(sentence_id)
    return match[1] if match else ""


def is_label(text: object) -> bool:
    """Tell whether a text may be the label of a relation."""
    return isinstance(text, str) and text not in ("", MISSING) and text.isprintable()


class Positions:
    """Positions of sentences in their documents.

    If a document resumes after another, it is still the same document, but its sentences before and
    after the break are not adjacent: their positions differ by two.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._current = ""

    def next(self, document: str, *, is_apart: bool = False) -> int:
        """Return the position of the next sentence, which may be apart from the one before it."""
        position = self._last.get(document, -1) + 1
        position += position > 0 and (is_apart or document != self._current)
        self._last[document], self._current = position, document
        return position


def find_cycle(governors: tuple[int, ...]) -> tuple[int, ...]:
    """Return the word indices of the first cycle, in ascending order; empty if there is none."""
    done = [False] * len(governors)
    for start in range(len(governors)):
        path: dict[int, int] = {}  # words on the path from the start upwards
        word = start
        while word != ROOT and not done[word]:
            if word in path:
                return tuple(sorted(list(path)[path[word] :]))
            path[word] = len(path)
            word = governors[word]
        for word in path:
            done[word] = True
    return ()


def tree_defect(governors: tuple[int, ...], n_trees: int = 1) -> str | None:
    """Describe why ``governors`` is not a tree with a single root; None if it is one.

    With ``n_trees`` trees, as many roots are allowed. Word numbers in the description count from 1,
    as in a CoNLL-U file.
    """
    for word, governor in enumerate(governors):
        if not ROOT <= governor < len(governors):
            return (
                f"word {word + 1} has head {governor + 1}, "
                f"but the sentence has {len(governors)} words"
            )
    if cycle := find_cycle(governors):
        through = listed([word + 1 for word in cycle], _FEW)
        return f"has a cycle through word{'s' if len(cycle) > 1 else ''} {through}"
    roots = [word + 1 for word, governor in enumerate(governors) if governor == ROOT]
    if len(roots) > n_trees:
        return f"has {len(roots)} roots (words {listed(roots, _FEW)}) instead of one"
    return None


CorpusSource: TypeAlias = dict[str, Any]
"""Origin of a corpus, as far as it is known before reading: fields of `RecordedCorpus`."""
Skipped = Counter[str]
"""Counts of skipped sentences or examples by reason, in words."""


@dataclass(frozen=True, repr=False)
class Corpus:
    """Parsed text that is read when iterated, from `read_conllu`, `read_text`, `make_corpus`, ...

    Iterating reads the sources from the start, one sentence at a time. ``source`` describes the
    origin of the sentences and becomes part of the record of every result. ``undivided`` are the
    documents of a treebank that are whole files because the files name no documents. ``frequent``
    are frequent words, in lower case, of the language that a parser takes the text for. A corpus
    of objects in memory has its ``sentences``, and their number as its length.
    """

    source: CorpusSource
    read: Callable[[Skipped], Iterator[Sentence]]
    undivided: frozenset[str] = frozenset()
    frequent: frozenset[str] = frozenset()
    sentences: tuple[Sentence, ...] | None = None

    def __iter__(self) -> Iterator[Sentence]:
        return self.read(Counter())

    def __bool__(self) -> bool:
        return True  # of any length, known or not

    def __len__(self) -> int:
        if self.sentences is None:
            raise TypeError("sentences of files are read one by one; count them with list(corpus)")
        return len(self.sentences)

    def __repr__(self) -> str:
        if self.sentences is None:
            files = listed(self.source.get("files") or [self.source.get("format")])
            return f"Corpus({files}: read when it is iterated)"
        documents = len({sentence.document for sentence in self.sentences})
        return f"Corpus({numbered(len(self), 'sentence')}, {numbered(documents, 'document')})"

    def watched(self, on_read: Callable[[int], None]) -> Corpus:
        """Return the same corpus, which reports the number of sentences read from time to time."""

        def read(skipped: Skipped) -> Iterator[Sentence]:
            for count, sentence in enumerate(self.read(skipped), start=1):
                if count % 256 == 0:
                    on_read(count)
                yield sentence

        return replace(self, read=read)


@dataclass(frozen=True, slots=True)
class Example:
    """One input of the model, with one or two sentences as its segments."""

    sentences: tuple[Sentence, ...]

    @property
    def id(self) -> str:
        """Ids of the sentences, joined by ``+``."""
        return "+".join(sentence.id for sentence in self.sentences)

    @property
    def document(self) -> str:
        """Document of all sentences of the example."""
        return self.sentences[0].document


def make_examples(sentences: Iterable[Sentence], pairing: str) -> Iterator[Example]:
    """Group ``sentences`` (in corpus order) into examples.

    ``"adjacent"`` pairs the sentences of a document without overlap, 1+2, 3+4 and so on; a sentence
    left over, at the end or beside a skipped sentence, stays alone. ``"none"`` makes every sentence
    an example.
    """
    waiting: Sentence | None = None
    for sentence in sentences:
        if waiting is None:
            waiting = sentence
            continue
        is_next = (sentence.document, sentence.position) == (waiting.document, waiting.position + 1)
        if pairing == "adjacent" and is_next:
            yield Example((waiting, sentence))
            waiting = None
        else:
            yield Example((waiting,))
            waiting = sentence
    if waiting is not None:
        yield Example((waiting,))


# Label schemes of relations

UD = "ud"
CLEAR = "clear"
OTHER = "other"
SCHEMES = frozenset((UD, CLEAR, OTHER))

DEFAULT_RELATIONS = {
    UD: ("nsubj", "obj", "amod", "advmod"),
    CLEAR: ("nsubj", "dobj", "amod", "advmod"),
}
"""Relations scored by default, per scheme."""

_CLEAR_ONLY = frozenset(
    "acomp agent attr auxpass csubjpass dative dobj intj meta neg npadvmod nsubjpass oprd pcomp "
    "pobj poss preconj predet prep prt quantmod relcl".split()
)
_UD_ONLY = frozenset(
    "clf cop discourse dislocated fixed flat goeswith iobj list obj obl orphan reparandum "
    "vocative".split()
)
_UD_RELATIONS = _UD_ONLY | frozenset(
    "acl advcl advmod amod appos aux case cc ccomp compound conj csubj dep det expl mark nmod "
    "nsubj nummod parataxis punct root xcomp".split()
)


CONTENT, FUNCTION = PARTS = ("content", "function")
"""The parts of a relation: arcs of dependents of an open, or of a closed, class."""
OPEN_CLASSES = frozenset({"ADJ", "ADV", "INTJ", "NOUN", "PROPN", "VERB"})
"""Parts of speech that are open classes in Universal Dependencies."""


def part_of(relation: str, upos: str) -> str:
    """Return the part of a relation that a dependent's arc is in; empty without part of speech.

    >>> part_of("nsubj", "PRON"), part_of("nsubj", "PROPN")
    ('nsubj/function', 'nsubj/content')
    """
    if upos == MISSING:
        return ""
    return f"{relation}/{CONTENT if upos in OPEN_CLASSES else FUNCTION}"


def fold_subtype(relation: str) -> str:
    """Return the universal part of a relation: ``nsubj:pass`` becomes ``nsubj``."""
    return relation.split(":", 1)[0]


def distinctive_labels(labels: Iterable[str]) -> dict[str, str]:
    """Return, for each scheme that some label belongs to alone, the first such label."""
    shown: dict[str, str] = {}
    for label in sorted({fold_subtype(label) for label in labels}):
        if label in _UD_ONLY:
            shown.setdefault(UD, label)
        elif label in _CLEAR_ONLY:
            shown.setdefault(CLEAR, label)
    return shown


def recognise_scheme(labels: Iterable[str]) -> str:
    """Return the scheme that ``labels`` belong to: ``"ud"``, ``"clear"`` or ``"other"``.

    Labels of both schemes (``nsubj``, ``amod``) do not decide; a set of such labels alone counts as
    UD. The labels must not show two schemes at once: see `distinctive_labels`.
    """
    labels = {fold_subtype(label) for label in labels}
    shown = distinctive_labels(labels)
    if CLEAR in shown:
        return CLEAR
    if UD in shown or {label.lower() for label in labels} <= _UD_RELATIONS:
        return UD
    return OTHER
