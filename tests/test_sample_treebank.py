"""The bundled sample treebank: its size, its format, its trees, and what its README says."""

import unicodedata
from collections import Counter
from pathlib import Path

import conllu
import pytest
from conllu.models import Token, TokenList

DATA = Path(__file__).parents[1] / "data"
TREEBANK = DATA / "sample.conllu"
README = DATA / "README.md"

DEFAULT_RELATIONS = ("nsubj", "obj", "amod", "advmod")
RELATION_NAMES = """
    acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det
    discourse dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl
    orphan parataxis punct reparandum root vocative xcomp
"""
POS_NAMES = """
    ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X
"""
UNIVERSAL_RELATIONS = set(RELATION_NAMES.split())
UNIVERSAL_POS = set(POS_NAMES.split())
FUNCTION_RELATIONS = {"case", "mark", "cc", "det", "aux", "cop", "punct"}
ALLOWED_UNDER_FUNCTION_WORDS = {"fixed", "goeswith", "conj", "cc", "advmod", "punct", "obl"}
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
SENT_IDS: list[str] = [sentence.metadata["sent_id"] for sentence in SENTENCES]

each_sentence = pytest.mark.parametrize("sentence", SENTENCES, ids=SENT_IDS)


def words_of(sentence: TokenList) -> list[Token]:
    """Syntactic words only: no multiword ranges, no empty nodes."""
    return [token for token in sentence if isinstance(token["id"], int)]


def folded(token: Token) -> str:
    """Relation of a word without its subtype."""
    return str(token["deprel"]).split(":", maxsplit=1)[0]


def document_ids() -> list[str]:
    """Document ids in file order."""
    return [s.metadata["newdoc id"] for s in SENTENCES if "newdoc id" in s.metadata]


def genres() -> set[str]:
    """Genres, the middle part of ids such as sample-news-01."""
    return {document.split("-")[1] for document in document_ids()}


def relation_counts() -> Counter[str]:
    """How often each relation occurs, subtypes folded."""
    return Counter(folded(word) for sentence in SENTENCES for word in words_of(sentence))


def marker_count(marker: str) -> int:
    """Lines whose id is not a plain number: "-" counts ranges, "." counts empty nodes."""
    ids = (token["id"] for sentence in SENTENCES for token in sentence)
    return sum(not isinstance(identifier, int) and identifier[1] == marker for identifier in ids)


def surface_text(sentence: TokenList) -> str:
    """Text rebuilt from the forms of ranges and words and from SpaceAfter=No."""
    pieces = []
    covered_to = 0
    for token in sentence:
        identifier = token["id"]
        if isinstance(identifier, int):
            if identifier <= covered_to:
                continue
        elif identifier[1] == "-":
            covered_to = identifier[2]
        else:
            continue
        pieces.append(token["form"])
        if (token["misc"] or {}).get("SpaceAfter") != "No":
            pieces.append(" ")
    return "".join(pieces).rstrip(" ")


def readme_rows() -> list[list[str]]:
    """Cells of all table rows of the README."""
    lines = README.read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]


def test_treebank_is_large_and_varied_enough() -> None:
    assert len(SENTENCES) >= 120
    assert len(document_ids()) >= 15
    assert len(genres()) >= 5


@pytest.mark.parametrize("relation", DEFAULT_RELATIONS)
def test_default_relation_is_frequent_enough(relation: str) -> None:
    assert relation_counts()[relation] >= 60


def test_file_is_nfc_text_that_ends_in_a_blank_line() -> None:
    assert unicodedata.normalize("NFC", RAW) == RAW
    assert "\r" not in RAW
    assert RAW.endswith("\n\n")


def test_every_token_line_has_ten_filled_columns() -> None:
    for line in RAW.splitlines():
        if line and not line.startswith("#"):
            columns = line.split("\t")
            assert len(columns) == 10, line
            assert all(columns), line


def test_sentence_and_document_ids_are_unique() -> None:
    assert len(set(SENT_IDS)) == len(SENT_IDS)
    assert len(set(document_ids())) == len(document_ids())


def test_sentence_ids_number_the_sentences_of_their_document() -> None:
    expected = []
    document, number = "", 0
    for sentence in SENTENCES:
        if "newdoc id" in sentence.metadata:
            document, number = sentence.metadata["newdoc id"], 0
        number += 1
        expected.append(f"{document}-{number:02d}")
    assert expected == SENT_IDS


def test_no_sentence_occurs_twice() -> None:
    texts = Counter(sentence.metadata["text"] for sentence in SENTENCES)
    assert [text for text, count in texts.items() if count > 1] == []


def test_multiword_ranges_and_empty_nodes_occur() -> None:
    assert marker_count("-") >= 5
    assert marker_count(".") >= 1


@each_sentence
def test_word_ids_are_consecutive(sentence: TokenList) -> None:
    ids = [word["id"] for word in words_of(sentence)]
    assert ids == list(range(1, len(ids) + 1))


@each_sentence
def test_text_is_reconstructible(sentence: TokenList) -> None:
    assert surface_text(sentence) == sentence.metadata["text"]


@each_sentence
def test_words_carry_known_tags_and_relations(sentence: TokenList) -> None:
    for word in words_of(sentence):
        assert word["form"]
        assert word["lemma"]
        assert word["upos"] in UNIVERSAL_POS, word
        assert folded(word) in UNIVERSAL_RELATIONS, word
        assert word["upos"] in ALLOWED_UPOS.get(folded(word), UNIVERSAL_POS), word


def test_there_are_37_relations_and_17_tags() -> None:
    assert len(UNIVERSAL_RELATIONS) == 37
    assert len(UNIVERSAL_POS) == 17


@each_sentence
def test_only_one_word_is_the_root(sentence: TokenList) -> None:
    words = words_of(sentence)
    without_head = [word["id"] for word in words if word["head"] == 0]
    labelled_root = [word["id"] for word in words if word["deprel"] == "root"]
    assert len(without_head) == 1
    assert labelled_root == without_head


@each_sentence
def test_heads_form_a_tree(sentence: TokenList) -> None:
    heads = {word["id"]: word["head"] for word in words_of(sentence)}
    assert set(heads.values()) <= {0, *heads}
    for start in heads:
        seen = set()
        current = start
        while current != 0:
            assert current not in seen, f"cycle at word {start}"
            seen.add(current)
            current = heads[current]


@each_sentence
def test_function_words_are_leaves(sentence: TokenList) -> None:
    words = words_of(sentence)
    by_id = {word["id"]: word for word in words}
    for word in words:
        head = by_id.get(word["head"])
        if head is not None and folded(head) in FUNCTION_RELATIONS:
            assert folded(word) in ALLOWED_UNDER_FUNCTION_WORDS, (word, head)


@each_sentence
def test_punctuation_attaches_projectively(sentence: TokenList) -> None:
    heads = {word["id"]: word["head"] for word in words_of(sentence)}
    for word in words_of(sentence):
        if word["deprel"] != "punct":
            continue
        low, high = sorted((word["id"], word["head"]))
        inside = range(low + 1, high)
        assert all(low <= heads[position] <= high for position in inside), word
        spanning = [
            (dependent, head)
            for dependent, head in heads.items()
            if head and min(dependent, head) < word["id"] < max(dependent, head)
        ]
        assert all(min(arc) <= word["head"] <= max(arc) for arc in spanning), word


def test_readme_counts_are_those_of_the_file() -> None:
    relations = relation_counts()
    measured = {
        "documents": len(document_ids()),
        "sentences": len(SENTENCES),
        "words": sum(len(words_of(sentence)) for sentence in SENTENCES),
        "genres": len(genres()),
        "multiword ranges": marker_count("-"),
        "empty nodes": marker_count("."),
    } | {relation: relations[relation] for relation in DEFAULT_RELATIONS}
    stated = {row[0]: int(row[1]) for row in readme_rows() if len(row) == 2 and row[1].isdigit()}
    assert stated == measured


def test_readme_agreement_table_adds_up() -> None:
    relations = relation_counts()
    rows = {row[0]: row[1:] for row in readme_rows() if len(row) > 4 and row[1].isdigit()}
    assert set(rows) == {"nsubj", "amod", "advmod"}
    for relation, cells in rows.items():
        gold, parser, agreed = (int(cell) for cell in cells[:3])
        precision, recall = (float(cell) for cell in cells[3:5])
        disagreements, scheme, wrong, open_to_both = (int(cell) for cell in cells[5:9])
        assert gold == relations[relation]
        assert precision == pytest.approx(agreed / parser, abs=0.0006)
        assert recall == pytest.approx(agreed / gold, abs=0.0006)
        assert disagreements == scheme + wrong + open_to_both
        assert max(gold, parser) - agreed <= disagreements <= gold + parser - 2 * agreed
