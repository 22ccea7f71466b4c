"""Corpora: parsed text from CoNLL-U files, plain text and sentence pairs, as sentences and
examples.
"""

from headroles.corpus.conllu_files import read_conllu
from headroles.corpus.documents import NEWDOC
from headroles.corpus.files import read_lines
from headroles.corpus.objects import make_corpus
from headroles.corpus.opening import as_corpus, open_corpus
from headroles.corpus.options import GIVEN, CorpusOptions
from headroles.corpus.places import Places
from headroles.corpus.prepared import PreparedCorpus, find_prepared, prepared, prepared_in
from headroles.corpus.schemes import DEFAULT_RELATIONS, fold_subtype
from headroles.corpus.sentence import (
    MISSING,
    PAIRINGS,
    ROOT,
    Corpus,
    Example,
    Sentence,
    Skipped,
    make_examples,
)
from headroles.corpus.text import read_pairs, read_text

__all__ = [
    "DEFAULT_RELATIONS",
    "GIVEN",
    "MISSING",
    "NEWDOC",
    "PAIRINGS",
    "ROOT",
    "Corpus",
    "CorpusOptions",
    "Example",
    "Places",
    "PreparedCorpus",
    "Sentence",
    "Skipped",
    "as_corpus",
    "find_prepared",
    "fold_subtype",
    "make_corpus",
    "make_examples",
    "open_corpus",
    "prepared",
    "prepared_in",
    "read_conllu",
    "read_lines",
    "read_pairs",
    "read_text",
]
