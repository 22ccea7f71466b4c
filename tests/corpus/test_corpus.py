"""Corpora: trees, examples, arcs, digest, schemes, and what is given where a corpus is wanted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroles import assign_roles, make_corpus, read_arcs, score_attention
from headroles.corpus import (
    ROOT,
    Corpus,
    CorpusOptions,
    Sentence,
    as_corpus,
    open_corpus,
    prepared,
    read_conllu,
)
from headroles.corpus.sentence import (
    CLEAR,
    OTHER,
    UD,
    find_cycle,
    make_examples,
    recognise_scheme,
    tree_defect,
)
from headroles.errors import CorpusError, UsageError
from headroles.record import RecordedCorpus
from headroles.roles.syntactic import LISTED, Arc, arcs_of
from tests.conftest import CAT, DOG, conllu_sentence


def corpus_of(*sentences: Sentence, **source: object) -> Corpus:
    return Corpus(source={"format": "test", **source}, read=lambda skipped: iter(sentences))


def sentence(name: str, *relations: str, document: str = "d", word: str = "w") -> Sentence:
    """A root with one dependent per relation."""
    governors = (ROOT, *(0 for _ in relations))
    words = (word,) * len(governors)
    return Sentence(name, document, 0, words, governors, ("root", *relations))


def test_counts(treebank: Path) -> None:
    with prepared(read_conllu(treebank)) as corpus:
        assert corpus.relations == Counter(nsubj=5, punct=3, amod=2, obj=2)
        assert corpus.skipped == {}
        arcs = {name: relation.arcs for name, relation in corpus.record.relations.items()}
        assert {name: n for name, n in arcs.items() if "/" not in name} == corpus.relations
        assert {name: n for name, n in arcs.items() if "/" in name} == corpus.parts
        assert corpus.record == RecordedCorpus(
            format="conllu",
            files=[str(treebank)],
            documents_by="newdoc",
            ids_by="given",
            scheme="ud",
            digest=corpus.record.digest,
            sentences=5,
            words=17,
            documents=2,
            spacing="text",
            contractions="words",
            relations=corpus.record.relations,
        )


@pytest.mark.parametrize("word", ["ни", "a\u2028b", "a\u0085b", "\r", "\n", '"', "\\", "😀", ""])
def test_spool_keeps_every_character(word: str) -> None:
    given = sentence("s", "obj", word=word)
    with prepared(corpus_of(given, given)) as corpus:
        assert list(corpus) == [given, given]


@pytest.mark.parametrize(
    "text",
    [
        conllu_sentence([("Rats", 2, "nsubj"), *CAT[1:]], "a") + conllu_sentence(DOG, "b"),
        conllu_sentence([("Cats", 2, "obj"), *CAT[1:]], "a") + conllu_sentence(DOG, "b"),
        conllu_sentence([*CAT[:2], (".", 1, "punct")], "a") + conllu_sentence(DOG, "b"),
        conllu_sentence(CAT, "x") + conllu_sentence(DOG, "b"),
        conllu_sentence(CAT, "a") + conllu_sentence(DOG, "b", newdoc="new"),
        conllu_sentence(DOG, "b") + conllu_sentence(CAT, "a"),
        conllu_sentence(CAT, "a"),
    ],
    ids=["word", "relation", "governor", "id", "document", "order", "length"],
)
def test_content_and_not_the_file_makes_the_digest(tmp_path: Path, text: str) -> None:
    same = conllu_sentence(CAT, "a") + conllu_sentence(DOG, "b")
    digests = []
    for number, content in enumerate((same, same, text)):
        file = tmp_path / f"{number}.conllu"
        file.write_text(content, encoding="utf-8")
        with prepared(read_conllu(file)) as corpus:
            digests.append(corpus.record.digest)
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == 64


def test_corpora_without_sentences(tmp_path: Path) -> None:
    file = tmp_path / "t.conllu"
    file.write_text("# only comments\n", encoding="utf-8")
    skipping = read_conllu(file, on_bad_sentence="skip")
    for corpus, message in (
        (corpus_of(files=[*"abcd"]), r"no sentences in a, b, c, and 1 more; check the paths"),
        (skipping, r"in .*t\.conllu; 1 defective sentences"),
    ):
        with pytest.raises(CorpusError, match=message), prepared(corpus):
            pass


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["nsubj", "obj", "root"], UD),
        (["nsubj:pass", "obl:tmod"], UD),
        (["nsubj", "amod"], UD),
        (["nsubj", "ROOT"], UD),
        ([], UD),
        (["nsubj", "dobj"], CLEAR),
        (["nsubj", "amod", "pobj", "ROOT"], CLEAR),
        (["SB", "OA", "NK"], OTHER),
        (["nsubj", "no_such_label"], OTHER),
    ],
)
def test_scheme_is_recognised(labels: list[str], scheme: str) -> None:
    assert recognise_scheme(labels) == scheme


def test_two_schemes_are_refused_with_the_sentences_that_show_them() -> None:
    mixed = [sentence("first", "nsubj"), sentence("second", "obj"), sentence("third", "dobj")]
    pattern = r"'obj' \(sentence 'second'\) and 'dobj' \(sentence 'third'\).*separate runs"
    with pytest.raises(CorpusError, match=pattern), prepared(corpus_of(*mixed)):
        pass


def ancestors(governors: tuple[int, ...], word: int) -> list[int]:
    """Every word met on the way up, as many steps as there are words."""
    met = []
    for _ in governors:
        word = governors[word]
        if word == ROOT:
            break
        met.append(word)
    return met


@given(st.integers(0, 7).flatmap(lambda n: st.tuples(*[st.integers(ROOT, n - 1)] * n)))
def test_cycles_and_defects_are_those_of_walks_to_the_root(governors: tuple[int, ...]) -> None:
    """The cycle is the one that the first lost word runs into; a tree has one root above all."""
    above = [ancestors(governors, word) for word in range(len(governors))]
    on_cycle = {word for word, met in enumerate(above) if word in met}
    lost = [met for met in above if on_cycle & set(met)]
    expected = tuple(sorted(on_cycle & set(lost[0]))) if lost else ()
    assert find_cycle(governors) == expected
    roots = [word for word, governor in enumerate(governors) if governor == ROOT]
    is_tree = len(roots) == 1 and all(
        word in roots or roots[0] in met for word, met in enumerate(above)
    )
    assert (tree_defect(governors) is None) == (is_tree or not governors)


def test_columns_of_a_sentence_must_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="sentence 's': words, governors and relations differ"):
        Sentence("s", "d", 0, ("a", "b"), (ROOT,), ("root", "obj"))


@pytest.mark.parametrize("ends_in_cycle", [True, False])
def test_long_chains_take_linear_time(ends_in_cycle: bool) -> None:
    """Quadratic work on so many words would take an hour."""
    n_words = 200_000
    last = n_words - 2 if ends_in_cycle else ROOT
    governors = (*range(1, n_words), last)
    assert find_cycle(governors) == ((n_words - 2, n_words - 1) if ends_in_cycle else ())


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ("", ""),
        ("a0", "a0"),
        ("a0 a1", "a0+a1"),
        ("a0 a1 a2 a3", "a0+a1 a2+a3"),
        ("a0 a1 a2 b0 b1", "a0+a1 a2 b0+b1"),
        ("a0 b1", "a0 b1"),
        ("a0 a2 a3", "a0 a2+a3"),
        ("a1 a0", "a1 a0"),
        ("a1 a2", "a1+a2"),
    ],
)
def test_adjacent_sentences_of_a_document_are_paired(places: str, expected: str) -> None:
    """The sentences are named by document and position."""
    given = [Sentence(one, one[0], int(one[1]), ("x",), (-1,), ("root",)) for one in places.split()]
    assert [example.id for example in make_examples(given, "adjacent")] == expected.split()
    alone = [(example.id, example.document) for example in make_examples(given, "none")]
    assert alone == [(place, place[0]) for place in places.split()]


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("x.conllu", {"text_columns": [0]}, "text must be parsed; name a spaCy pipeline"),
        *(
            (name, {}, "text must be parsed; name a spaCy pipeline with parser")
            for name in ("x.txt", "x.TSV", "x.csv", "x.txt.gz")
        ),
        ("x.conllu", {"parser": "p"}, "a treebank is parsed already; omit parser"),
        ("x.conll", {"parser": "p"}, "a treebank is parsed already; omit parser"),
        ("x.tsv", {"parser": "p"}, "no text columns were given"),
        ("x.tsv", {"parser": "p", "text_columns": [0, 1, 2]}, "3 text columns were given"),
        ("x.tsv", {"parser": "p", "text_columns": []}, "0 text columns were given"),
        ("x.conllu", {"on_bad_sentence": "drop"}, "on_bad_sentence is 'drop'"),
        ("x.cupt.xz", {"parser": "p"}, "a treebank is parsed already; omit parser"),
        *(("x.conllu", {"header": one}, "header applies to tables") for one in (True, False)),
        ("x.conllu", {"lines": True}, "lines applies to plain text"),
        (
            "x.tsv",
            {"parser": "p", "text_columns": [0], "lines": True},
            "lines applies to plain text; omit it, or omit text_columns",
        ),
        ("x.txt", {"parser": "p", "documents": "sent_id"}, "documents applies"),
        ("x.txt", {"parser": "p", "ids": "place"}, "ids applies"),
        ("x.txt", {"parser": "p", "on_bad_sentence": "skip"}, "on_bad_sentence applies"),
        ("x.conllu", {"keep_parses": "x"}, "keep_parses applies to text that is parsed"),
        ("x.conllu", {"parser_processes": 2}, "parser_processes applies to text that is parsed"),
        ("x.conllu", {"least_distance": 4}, "least_distance applies to files of tokens and arcs"),
    ],
)
def test_contradictions_are_refused(path: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_corpus(["fine", path], CorpusOptions(**options))


def test_paths_and_sentences_are_a_corpus(treebank: Path) -> None:
    for place in (treebank, str(treebank), [treebank], (str(treebank),), str(treebank.parent)):
        sentences = list(as_corpus(place))
        assert len(sentences) == 5
    with prepared(as_corpus(sentences)) as corpus:
        assert list(corpus) == sentences
        assert corpus.record.format == "sentences"
    with prepared(as_corpus(treebank)) as same:
        assert same.record.digest == corpus.record.digest


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ("Dogs sleep.", "the corpus is the text 'Dogs sleep.', and no file has that name; give"),
        ("Dogs sleep. " * 1000, "the corpus is the text 'Dogs sl.* sleep. '"),
        (["Dogs sleep.", "Cats eat."], r"the text 'Dogs sleep.'.* read_text\(FILE, parser="),
        ([], "the corpus is an empty list; it must come from read_conllu"),
        ([1, 2.0], "the corpus is a list of float, int; it must"),
        (None, "the corpus is a NoneType; it must"),
        (b"x", "the corpus is a bytes; it must"),
        ({"a": 1}, "the corpus is a dict; it must"),
    ],
)
def test_what_is_no_corpus_is_named(corpus: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        as_corpus(corpus)


ROW: dict[str, Any] = {
    "sent_id": "s-1",
    "tokens": ["10 000", "im", "in", "dem", "Haus"],
    "lemmas": ["10 000", "_", "in", "der", "Haus"],
    "upos": ["NUM", "_", "ADP", "DET", "NOUN"],
    "head": ["0", "None", "4", "4", "1"],
    "deprel": ["root", "_", "case", "det", "nmod"],
}
READ = Sentence(
    id="s-1",
    document="tree row 1",
    position=0,
    words=("10 000", "in", "dem", "Haus"),
    governors=(ROOT, 3, 3, 0),
    relations=("root", "case", "det", "nmod"),
)


def datasets_of(*rows: dict[str, Any]) -> Any:
    """A data set that numbers parts of speech, as those of Universal Dependencies do."""
    datasets = pytest.importorskip("datasets")
    names = ["NOUN", "NUM", "ADP", "DET", "_"]
    table = datasets.Dataset.from_list(list(rows))
    labels = datasets.Sequence(datasets.features.ClassLabel(names=names))
    return table.cast_column("upos", labels)


@pytest.mark.parametrize(
    "table",
    [
        lambda *rows: rows,
        lambda *rows: pd.DataFrame(rows),
        datasets_of,
        lambda *rows: [
            {**row, "head": [None if head == "None" else int(head) for head in row["head"]]}
            for row in rows
        ],
    ],
    ids=["mappings", "data frame", "datasets", "numbers"],
)
def test_rows_of_a_treebank_are_a_corpus(table: Callable[..., Any]) -> None:
    second = {**ROW, "sent_id": "s-2"}
    first, last = as_corpus(table(ROW, second))
    assert first == READ
    assert last == replace(READ, id="s-2", document="tree row 2")
    assert first.upos == ("NUM", "ADP", "DET", "NOUN")
    assert first.lemmas == ("10 000", "in", "der", "Haus")
    assert first.n_multiword == 1
    named = make_corpus(table(ROW, second), documents=["d", "d"])
    assert [(one.document, one.position) for one in named] == [("d", 0), ("d", 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"head": ["0", "None", "4", "4"]}, r"lists of different lengths \(.*head 4"),
        ({"head": "0 4 4 1"}, "head is '0 4 4 1'; give a list with an entry for each word"),
        ({"head": ["0", "None", "x", "4", "1"]}, "the head 'x' is no number; give the number"),
        ({"head": ["0", "None", "9", "4", "1"]}, "word 2 has head 9, but the sentence has 4"),
        ({"head": ["0", "0", "4", "4", "1"]}, "the relation '_' is no label; correct it"),
        ({"tokens": ["a", "b", " ", "d", "e"]}, "the token ' ' is no text; correct it"),
        ({"upos": [1, 17, 2, 3, 0]}, "upos has the entry 1; give texts, or .* the whole data set"),
        ({name: [] for name in ("tokens", "lemmas", "upos", "head", "deprel")}, "has no words"),
    ],
)
def test_rows_that_are_no_sentences_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CorpusError, match=f"tree-row-1.*{message}"):
        make_corpus([{**ROW, **change}])


CODE = {
    "id": "f",
    "document": "a.py",
    "tokens": ["x", "=", "x", "+", "1"],
    "arcs": [[0, 2, "use"], [2, 0, "use"], [0, 4, "flow:value"], [0, 1, "next"], [0, 2, "use"]],
}


def write(folder: Path, *lines: Any) -> Path:
    file = folder / "t.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


@pytest.mark.parametrize("least", [1, 2, 3])
def test_files_and_objects_have_the_arcs_of_their_distance(tmp_path: Path, least: int) -> None:
    plain = {"tokens": ["a", "b"], "arcs": []}
    read = list(read_arcs(write(tmp_path, CODE, plain), least_distance=least))
    made = list(make_corpus([CODE, plain], least_distance=least))
    expected = [Arc(0, 2, "use"), Arc(0, 4, "flow:value"), Arc(0, 1, "next"), Arc(2, 0, "use")]
    for (first, second), name in ((read, "t-2"), (made, "arcs-2")):
        assert list(arcs_of(LISTED, first)) == [
            one for one in expected if abs(one.dependent - one.governor) >= least
        ]
        assert (first.id, first.document, first.words) == ("f", "a.py", tuple(CODE["tokens"]))
        assert not arcs_of(LISTED, second)
        assert (second.id, second.document) == (name, name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": []}, "give tokens, a list of texts, and arcs"),
        ({"arcs": None}, "give tokens, a list of texts, and arcs"),
        ({"tokens": ["a", 3]}, "3 is no text"),
        ({"id": ""}, "'' is no text"),
        ({"arcs": [[0, 1, "x"], [0, 5, "x"]]}, r"arc 1 is \[0, 5, 'x'\], but .* tokens of 0 to 4"),
        ({"arcs": [[-1, 1, "x"]]}, r"arc 0 is \[-1, 1, 'x'\], but an arc joins tokens of 0 to 4"),
        ({"arcs": [[1, 1, "x"]]}, "an arc joins two tokens"),
        ({"arcs": [[0, 1]]}, r"arc 0 is \[0, 1\], but an arc is \[from, to, label\]"),
        ({"arcs": [[0, 1, ""]]}, "with a label without commas"),
        ({"arcs": [[0, 1, "a,b"]]}, "with a label without commas"),
        ({"arcs": [[0, 1.5, "a"]]}, r"is \[from, to, label\]"),
    ],
)
def test_defects_are_named_with_their_place(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    bad = {**CODE, "id": "g", **change}
    with pytest.raises(CorpusError, match=rf"t\.jsonl, line 2: .*{message}") as caught:
        list(read_arcs(write(tmp_path, CODE, bad)))
    assert "\n" not in str(caught.value)
    with pytest.raises(CorpusError, match=f"arcs-2: .*{message}"):
        make_corpus([CODE, bad])


def test_repeated_ids_and_idle_options_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path, CODE, CODE)
    with pytest.raises(CorpusError, match="line 2: the id 'f' repeats"):
        list(open_corpus([file], CorpusOptions()))
    for options in ({"on_bad_sentence": "skip"}, {"lines": True}):
        with pytest.raises(UsageError, match="applies to"):
            open_corpus([file], CorpusOptions(**options))


def proteins() -> list[dict[str, Any]]:
    """Chains with contacts far apart, in both directions."""
    rng, made = np.random.default_rng(0), []
    pairs = [(i, j) for i in range(24) for j in range(i + 6, 24)]
    for number in range(60):
        chosen = rng.permutation(len(pairs))[:8]
        contacts = [[*pairs[k][::side], "contact"] for k in chosen for side in (1, -1)]
        letters = rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 24).tolist()
        made.append({"id": f"p{number}", "tokens": letters, "arcs": contacts})
    return made


def attend(protein: dict[str, Any]) -> np.ndarray:
    """Head 0 attends to contacts, head 1 to the token six places on, head 2 to all alike."""
    n = len(protein["tokens"])
    weights = np.full((1, 3, n, n), 0.1)
    for first, second, _ in protein["arcs"]:
        weights[0, 0, first, second] = 5
    weights[0, 1, np.arange(n - 6), np.arange(6, n)] = 5
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def beyond_distance(weights: np.ndarray, arcs: list[list[Any]]) -> float:
    """Attention along contacts less that to pairs at their distance that no arc joins, times n."""
    joined = {frozenset(arc[:2]) for arc in arcs}
    n, found = len(weights), []
    for first, second, label in arcs:
        starts = range(max(0, first - second), min(n, n + first - second))
        pairs = ((k, k + second - first) for k in starts)
        controls = [weights[pair] for pair in pairs if frozenset(pair) not in joined]
        if label == "contact" and controls:
            found.append(n * (weights[first, second] - np.mean(controls)))
    return float(np.mean(found))


def test_arcs_of_other_relations_are_no_controls() -> None:
    made, arrays, both = proteins(), {}, []
    for one, other in pairwise(made):
        bonds = [[*arc[:2], "bond"] for arc in other["arcs"]]
        arrays[one["id"]] = attend({**one, "arcs": bonds})
        both.append({**one, "arcs": one["arcs"] + bonds})
    alignment = {one["id"]: list(range(len(one["tokens"]))) for one in both}
    corpus = make_corpus(both, least_distance=6)
    scores = score_attention(arrays, corpus, alignment, relations="contact", pairing="none")
    frame = assign_roles(scores).frame.set_index(["head", "role"])
    expected = np.mean([beyond_distance(arrays[one["id"]][0, 0], one["arcs"]) for one in both])
    found = frame.loc[(0, "syntactic:contact:to_governor"), "beyond_distance"]
    assert found == pytest.approx(expected, abs=1e-5)


def test_the_record_says_what_arcs_are_worth_in_different_dependents() -> None:
    """Four subjects of two words: (3 + 1)^2 / (3^2 + 1^2); a word in another case is the same."""
    sentences = [
        Sentence(
            "s", "d", 0, ("You", "see", subject), (1, -1, 1), ("nsubj", "root", "nsubj:pass"),
            {"upos": ("PRON", "VERB", "PRON")},
        )
        for subject in ("YOU", "Bob")
    ]  # fmt: skip
    with prepared(make_corpus(sentences)) as corpus:
        counted = corpus.record.relations
        assert corpus.relations == {"nsubj": 2, "nsubj:pass": 2}
        assert corpus.parts == {"nsubj/function": 2, "nsubj:pass/function": 2}
    assert set(counted) == {"nsubj", "nsubj/function"}
    for relation in counted.values():
        assert (relation.arcs, relation.dependents) == (4, 2)
        assert relation.effective_dependents == pytest.approx(16 / 10)
