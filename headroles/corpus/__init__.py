"""Corpora: sentences and examples from CoNLL-U files, plain text and sentence pairs."""

from headroles.corpus.arcs import read_arcs as read_arcs
from headroles.corpus.arcs import words_alone as words_alone
from headroles.corpus.files import read_lines as read_lines
from headroles.corpus.objects import make_corpus as make_corpus
from headroles.corpus.opening import AnyCorpus as AnyCorpus
from headroles.corpus.opening import CorpusOptions as CorpusOptions
from headroles.corpus.opening import as_corpus as as_corpus
from headroles.corpus.opening import can_reopen as can_reopen
from headroles.corpus.opening import open_corpus as open_corpus
from headroles.corpus.opening import reopen_corpus as reopen_corpus
from headroles.corpus.prepared import PreparedCorpus as PreparedCorpus
from headroles.corpus.prepared import prepared as prepared
from headroles.corpus.sentence import DEFAULT_RELATIONS as DEFAULT_RELATIONS
from headroles.corpus.sentence import MISSING as MISSING
from headroles.corpus.sentence import ROOT as ROOT
from headroles.corpus.sentence import Corpus as Corpus
from headroles.corpus.sentence import Example as Example
from headroles.corpus.sentence import Sentence as Sentence
from headroles.corpus.sentence import Skipped as Skipped
from headroles.corpus.sentence import fold_subtype as fold_subtype
from headroles.corpus.sentence import make_examples as make_examples
from headroles.corpus.text import read_pairs as read_pairs
from headroles.corpus.text import read_text as read_text
from headroles.corpus.treebanks import NEWDOC as NEWDOC
from headroles.corpus.treebanks import read_conllu as read_conllu
