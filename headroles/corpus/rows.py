"""Rows of a treebank in a table, a sentence each, as in data sets of Universal Dependencies.

Their columns are those of CoNLL-U: lists of texts, with an entry for each word. Heads are numbers
of words from 1, and 0 for the root, often as texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from headroles.corpus.sentence import MISSING, Sentence, is_label, tree_defect
from headroles.corpus.spacing import spaces_in
from headroles.errors import CorpusError
from headroles.wording import has_halves, listed, shortened

NEEDED = TOKENS_COLUMN, HEAD, DEPREL = "tokens", "head", "deprel"
"""Columns of every row."""
_UPOS = "upos"
_ANNOTATIONS = {
    "lemmas": "lemma",
    _UPOS: _UPOS,
    "xpos": "xpos",
    "feats": "feats",
    "deps": "deps",
    "misc": "misc",
}
"""Columns that a row may have, and their names in `Sentence`."""
_IDS, _DOCUMENT, _TEXT, _CONTRACTIONS = ("sent_id", "idx", "id"), "document", "text", "mwt"
_READ = frozenset((*NEEDED, *_ANNOTATIONS, *_IDS, _DOCUMENT, _TEXT, _CONTRACTIONS))
_NO_CELLS = (None, "None", MISSING, "")
_NO_SPACE = re.compile(r"\bSpaceAfter\W+No\b")
"""An entry of misc, in the form of CoNLL-U or of a dictionary written as text."""
_NUMBER = re.compile(r"[0-9]{1,9}")


def has_trees(names: Iterable[object]) -> bool:
    """Tell whether the columns of a table, or the keys of a row, have sentences with trees."""
    return {*NEEDED} <= {*names}


def rows_of(table: Any, columns: Iterable[str]) -> list[dict[str, Any]]:
    """Return the rows of a `datasets.Dataset` or a data frame that has these columns.

    A data set numbers parts of speech, and knows their names.
    """
    read = [name for name in columns if name in _READ]
    rows = [
        dict(zip(read, cells, strict=True))
        for cells in zip(*(table[name] for name in read), strict=True)
    ]
    numbered = (getattr(table, "features", None) or {}).get(_UPOS)
    if names := getattr(getattr(numbered, "feature", None), "names", None):
        for row in rows:
            row[_UPOS] = [names[number] for number in row[_UPOS]]
    return rows


def sentence_of_row(row: Mapping[str, Any], name: str) -> Sentence:
    """Return the sentence of a row; ``name`` is its id if it has none of its own.

    An entry without a head and a relation is no word: a contraction whose words follow, or an empty
    node. Spaces are those of misc (``SpaceAfter``) or else of ``text``, if it has the words. Raises
    CorpusError for a row that is no sentence with a tree.
    """
    columns = {
        key: row[key] for key in (*NEEDED, *_ANNOTATIONS) if key in NEEDED or _is_list(row.get(key))
    }
    n_entries = _length_of(columns, name)
    places = [k for k in range(n_entries) if not _is_no_word(row, k)]
    cells = {key: [column[k] for k in places] for key, column in columns.items()}
    _check_texts(cells, name)
    governors = tuple(_number_of(head, name) - 1 for head in cells[HEAD])
    if not places or (defect := tree_defect(governors)):
        raise CorpusError(f"{name} {defect if places else 'has no words'}; correct it")
    contractions = row.get(_CONTRACTIONS)
    return Sentence(
        id=next((row[key] for key in _IDS if _is_name(row.get(key))), name),
        document=row[_DOCUMENT] if _is_name(row.get(_DOCUMENT)) else "",
        position=0,
        words=tuple(cells[TOKENS_COLUMN]),
        governors=governors,
        relations=tuple(cells[DEPREL]),
        annotations={
            _ANNOTATIONS[key]: tuple(_text_of(cell, key, name) for cell in column)
            for key, column in cells.items()
            if key in _ANNOTATIONS
        },
        n_multiword=len(contractions) if _is_list(contractions) else n_entries - len(places),
        spaces=_spaces_of(cells, row.get(_TEXT)),
    )


def _spaces_of(cells: Mapping[str, Sequence[Any]], text: object) -> tuple[bool, ...]:
    """Tell of each word whether a space follows it; empty if neither misc nor the text tells."""
    spaces = [not _NO_SPACE.search(str(cell)) for cell in cells.get("misc", ())]
    if all(spaces) and isinstance(text, str):
        spaces = spaces_in(text, cells[TOKENS_COLUMN]) or spaces
    return tuple(spaces)


def _is_name(cell: object) -> TypeGuard[str]:
    return isinstance(cell, str) and cell != "" and not has_halves(cell)


def _check_texts(cells: Mapping[str, Iterable[Any]], name: str) -> None:
    """Raise CorpusError for tokens or relations that are none."""
    for word in cells[TOKENS_COLUMN]:
        if not isinstance(word, str) or not word.strip() or has_halves(word):
            raise CorpusError(f"{name}: the token {shortened(repr(word))} is no text; correct it")
    for label in cells[DEPREL]:
        if not is_label(label):
            raise CorpusError(
                f"{name}: the relation {shortened(repr(label))} is no label; correct it"
            )


def _length_of(columns: Mapping[str, Any], name: str) -> int:
    """Return the number of entries, which all columns have. Raises CorpusError if they differ."""
    for key, column in columns.items():
        if not _is_list(column):
            raise CorpusError(
                f"{name}: {key} is {shortened(repr(column))}; give a list with an entry for each "
                "word"
            )
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        sizes = listed([f"{key} {length}" for key, length in lengths.items()])
        raise CorpusError(f"{name} has lists of different lengths ({sizes}); correct them")
    return lengths[TOKENS_COLUMN]


def _is_list(column: object) -> TypeGuard[Sequence[Any]]:
    return hasattr(column, "__len__") and not isinstance(column, str | bytes | Mapping)


def _is_no_word(row: Mapping[str, Any], place: int) -> bool:
    return row[HEAD][place] in _NO_CELLS and row[DEPREL][place] in _NO_CELLS


def _number_of(head: object, name: str) -> int:
    """Read the number of a governor: a whole number, or a text of one. Raises CorpusError."""
    text = str(head)
    if not _NUMBER.fullmatch(text):
        raise CorpusError(
            f"{name}: the head {shortened(repr(head))} is no number; give the number of a word, "
            "from 1, and 0 for the root"
        )
    return int(text)


def _text_of(cell: object, key: str, name: str) -> str:
    """Return an annotation of a word as text, ``_`` if it is missing. Raises CorpusError."""
    if cell in _NO_CELLS:
        return MISSING
    if isinstance(cell, str):
        return cell
    raise CorpusError(
        f"{name}: {key} has the entry {shortened(repr(cell))}; give texts, or for numbers of parts "
        "of speech the whole data set, which has their names"
    )
