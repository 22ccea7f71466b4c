"""The bundled sample treebank: its size, its format, its trees, and what its README says."""

import unicodedata
from collections import Counter
from pathlib import Path

import conllu
from conllu.models import Token, TokenList

from headroles import read_conllu

DATA = Path(__file__).parents[1] / "data"
TREEBANK = DATA / "sample.conllu"
README = DATA / "README.md"

UNIVERSAL_RELATIONS = set(
    """acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det
    discourse dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl
    orphan parataxis punct reparandum root vocative xcomp""".split()
)
UNIVERSAL_POS = set(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
)
ALLOWED_UPOS = {
    "amod": {"ADJ"},
    "advmod": {"ADV", "PART"},
    "aux": {"AUX"},
    "case": {"ADP", "PART"},
    "cc": {"CCONJ"},
    "cop": {"AUX"},
    "det": {"DET"},
    "mark": {"SCONJ", "PART"},
    "nummod": {"NUM"},
    "punct": {"PUNCT"},
}

RAW = TREEBANK.read_text(encoding="utf-8")
SENTENCES: list[TokenList] = list(conllu.parse(RAW))


def words_of(sentence: TokenList) -> list[Token]:
    """Syntactic words only: no multiword ranges, no empty nodes."""
    return [token for token in sentence if isinstance(token["id"], int)]


def folded(token: Token) -> str:
    """Relation of a word without its subtype."""
    return str(token["deprel"]).split(":", maxsplit=1)[0]


def surface_text(sentence: TokenList) -> str:
    """Text rebuilt from the forms of ranges and words and from SpaceAfter=No."""
    text, covered_to = "", 0
    for token in sentence:
        identifier = token["id"]
        if isinstance(identifier, int):
            if identifier <= covered_to:
                continue
        elif identifier[1] == "-":
            covered_to = identifier[2]
        else:
            continue
        has_space = (token["misc"] or {}).get("SpaceAfter") != "No"
        text += token["form"] + " " * has_space
    return text.rstrip(" ")


def test_every_sentence_is_read_without_a_defect() -> None:
    """Read as users read it: columns, numbers, unique ids, and one tree a sentence."""
    ids = [sentence.metadata["sent_id"] for sentence in SENTENCES]
    assert [sentence.id for sentence in read_conllu(TREEBANK)] == ids
    assert unicodedata.normalize("NFC", RAW) == RAW


def test_text_is_reconstructible() -> None:
    for sentence in SENTENCES:
        assert surface_text(sentence) == sentence.metadata["text"]


def test_words_carry_known_tags_and_relations() -> None:
    for word in (word for sentence in SENTENCES for word in words_of(sentence)):
        assert word["form"]
        assert word["lemma"]
        assert word["upos"] in UNIVERSAL_POS, word
        assert folded(word) in UNIVERSAL_RELATIONS, word
        assert word["upos"] in ALLOWED_UPOS.get(folded(word), UNIVERSAL_POS), word


def test_readme_counts_are_those_of_the_file() -> None:
    words = [word for sentence in SENTENCES for word in words_of(sentence)]
    documents = [s.metadata["newdoc id"] for s in SENTENCES if "newdoc id" in s.metadata]
    ids = [token["id"] for sentence in SENTENCES for token in sentence]
    kinds = Counter(one[1] for one in ids if not isinstance(one, int))
    relations = Counter(map(folded, words))
    measured = {
        "documents": len(documents),
        "sentences": len(SENTENCES),
        "words": len(words),
        "genres": len({name.split("-")[1] for name in documents}),  # as in sample-news-01
        "multiword ranges": kinds["-"],
        "empty nodes": kinds["."],
    } | {relation: relations[relation] for relation in ("nsubj", "obj", "amod", "advmod")}
    lines = README.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    cells = [[cell.strip().strip("`") for cell in row] for row in rows]
    stated = {row[0]: int(row[1]) for row in cells if len(row) == 2 and row[1].isdigit()}
    assert stated == measured
