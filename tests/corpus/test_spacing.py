"""Spaces between words: where they are read from, how they are saved, and what users ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headroles.corpus import Sentence, make_corpus, prepared, read_arcs, read_conllu
from headroles.corpus.spacing import spaces_in
from headroles.corpus.treebanks import save_parses
from headroles.errors import CorpusError, UsageError

NO = "SpaceAfter=No"


def lines(*rows: tuple[str, str, str], text: str = "") -> str:
    """Rows of CoNLL-U: number, form and MISC, under the first word."""
    cells = [
        [number, form, "_", "X", "_", "_", *_arc(number), "_", misc] for number, form, misc in rows
    ]
    comment = f"# text = {text}\n" if text else ""
    return comment + "\n".join(map("\t".join, cells)) + "\n\n"


def _arc(number: str) -> tuple[str, str]:
    if not number.isdigit():
        return "_", "_"
    return ("0", "root") if number == "1" else ("1", "dep")


def read(folder: Path, text: str, **options: Any) -> Sentence:
    (folder / "t.conllu").write_text(text, encoding="utf-8")
    (sentence,) = read_conllu(folder / "t.conllu", **options)
    return sentence


def shown(sentence: Sentence) -> str:
    """The text that words and spaces make."""
    return "".join(
        word + " " * space for word, space in zip(sentence.words, sentence.spaces, strict=True)
    ).strip()


DONT, DO = ("1-2", "don't", NO), [("1", "do", "_"), ("2", "n't", "_")]
DEM, AB = ("2", "dem", "_"), [("1", "a", "_"), ("2", "b", "_")]


@pytest.mark.parametrize(
    ("rows", "text", "expected"),
    [
        ([("1", "Hi", NO), ("2", "!", "_")], "Hi !", "Hi!"),  # MISC before the text
        ([("1", "Hi", f"x=1|{NO}"), ("2", "!", "_")], "", "Hi!"),
        ([("1", "Hi", "SpaceAfter=Nope"), ("2", "!", "_")], "", "Hi !"),
        ([("1", "Hi", "_"), ("2", "!", "_")], "Hi!", "Hi!"),
        ([("1", "Hi", "_"), ("2", "!", "_")], "Ho!", "Hi !"),  # another text
        ([("1", "Hi", "_"), ("2", "!", "_")], "Hi!!", "Hi !"),
        ([("1", "26 000", "_"), ("2", "%", "_")], "26\u00a0000%", "26 000%"),
        # the words spell the token
        ([DONT, *DO, ("3", ".", "_")], "", "don't."),
        ([("1-2", "Don't", "_"), *DO, ("3", ".", "_")], "Don't.", "don't."),
        # they do not
        ([("1-2", "im", "_"), ("1", "in", NO), DEM, ("3", "Haus", "_")], "", "in dem Haus"),
        ([("1-2", "im", NO), ("1", "in", "_"), DEM, ("3", ".", "_")], "", "in dem."),
        ([("1-2", "im", "_"), ("1", "in", "_"), DEM, ("3", ".", "_")], "im.", "in dem."),
        # lines of tokens in odd places
        ([("2-3", "ab", NO), *AB], "", "a b"),
        ([("1-9", "ab", NO), *AB], "", "a b"),
        ([("1-2", "ab", "_"), AB[0], ("2-3", "bc", NO), AB[1], ("3", "c", "_")], "", "ab c"),
        ([("1", "a", NO), ("1.1", "x", NO), ("2", "b", NO)], "", "ab"),
    ],
)
def test_spaces_of_treebanks(
    rows: list[tuple[str, str, str]], text: str, expected: str, tmp_path: Path
) -> None:
    assert shown(read(tmp_path, lines(*rows, text=text))) == expected


IM = [("1", "Er", "_"), ("2-3", "im", NO), ("2", "in", "_"), ("3", "dem", "_"), ("4", "Haus", "_")]


def test_contractions_are_words_of_the_tree_or_one_word(tmp_path: Path) -> None:
    both = [*IM, ("5-6", "gehts", NO), ("5", "geht", "_"), ("6", "s", "_"), ("7", ".", "_")]
    text = lines(*both).replace("\t1\tdep\t_\t_\n7", "\t3\tdep\t_\t_\n7")
    words, surface = (read(tmp_path, text, contractions=way) for way in ("words", "surface"))
    assert (words.words, shown(words)) == (
        ("Er", "in", "dem", "Haus", "geht", "s", "."),
        "Er in demHaus gehts.",
    )
    assert (surface.words, shown(surface)) == (
        ("Er", "im", "Haus", "geht", "s", "."),
        "Er imHaus gehts.",
    )
    assert surface.governors == (-1, 0, 0, 0, 1, 0)  # s depended on dem
    assert surface.n_multiword == words.n_multiword == 2
    assert surface.relations == ("root", *["dep"] * 5)


def test_the_highest_word_stands_for_a_contraction(tmp_path: Path) -> None:
    """It keeps the tree a tree, where another word of the token would close a circle."""
    rows = "1-3 abx _ _\n1 a 4 dep\n2 b 0 root\n3 c 2 dep\n4 d 2 dep"
    cells = [row.split() for row in rows.split("\n")]
    text = "\n".join("\t".join([n, w, "l" + w, *"___", h, r, "_", "_"]) for n, w, h, r in cells)
    sentence = read(tmp_path, text + "\n\n", contractions="surface")
    assert (sentence.words, sentence.governors) == (("abx", "d"), (-1, 0))
    assert sentence.lemmas == ("lb", "ld")


def test_parses_that_are_saved_keep_their_spaces(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    nlp, Doc = spacy.blank("en"), spacy.tokens.Doc
    words, spaces = ["It", "'s", " ", "a", "dog", "."], [False, True, False, True, False, False]
    tree: dict[str, Any] = {
        "heads": [1, 1, 1, 4, 1, 1],
        "deps": ["nsubj", "root", "dep", *["det"] * 3],
    }
    doc = Doc(nlp.vocab, words=words, spaces=spaces, **tree)
    corpus = make_corpus([doc])
    (sentence,) = corpus
    assert shown(sentence) == "It's a dog."
    (again,) = read_saved(corpus, tmp_path)
    assert again.spaces == sentence.spaces
    glued = Doc(
        nlp.vocab,
        words=["a", "\n\n", "b"],
        spaces=[False] * 3,
        heads=[0, 0, 0],
        deps=["root", "dep", "dep"],
    )
    assert shown(next(iter(make_corpus([glued])))) == "a b"


def read_saved(corpus: Any, folder: Path) -> list[Sentence]:
    list(save_parses(corpus, folder / "saved.conllu"))
    return list(read_conllu(folder / "saved.conllu"))


def test_spaces_of_objects_and_json_lines(tmp_path: Path) -> None:
    tree = (["M", "K", "T"], [-1, 0, 0], ["n"] * 3)
    record = {"tokens": ["M", "K", "T"], "arcs": []}
    given = [{**record, "spaces": False}, {**record, "spaces": [True, False, False]}, record]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, given)))
    for corpus in (read_arcs(tmp_path / "a.jsonl"), make_corpus(given)):
        assert [sentence.spaces for sentence in corpus] == [(False,) * 3, (True, False, False), ()]
    (spaced,) = make_corpus([(*tree, [True, False, True])])
    (plain,) = make_corpus([tree])
    assert (spaced.spaces, plain.spaces) == ((True, False, True), ())
    for wrong in ([True], [1, 0, 0], "no", {"a": 1}):
        with pytest.raises(
            CorpusError, match=r"spaces is .*; give true or false for each of the 3"
        ):
            make_corpus([{**record, "spaces": wrong}])
    with pytest.raises(CorpusError, match="tree-1: spaces is"):
        make_corpus([(*tree, [True])])


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ({"misc": [NO, "_"]}, (False, True)),
        ({"misc": ["{'SpaceAfter': 'No'}", "None"]}, (False, True)),
        ({"misc": ["_", "_"], "text": "Hi!"}, (False, True)),
        ({"text": "Hi !"}, (True, True)),
        ({"text": "Ho!"}, ()),
        ({"misc": ["_", None], "text": 3}, (True, True)),
        ({}, ()),
    ],
)
def test_spaces_of_rows(beside: dict[str, Any], expected: tuple[bool, ...]) -> None:
    row = {"tokens": ["Hi", "!"], "head": ["0", "1"], "deprel": ["root", "punct"], **beside}
    (sentence,) = make_corpus([row])
    assert sentence.spaces == expected


def test_spacing_is_recorded_and_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.conllu").write_text(lines(("1", "sinh viên", NO), ("2", "!", "_")))
    for spacing, joint, words in (
        ("text", None, ("sinh viên", "!")),
        ("words", "_", ("sinh_viên", "!")),
    ):
        corpus = read_conllu(tmp_path / "t.conllu", spacing=spacing, join_spaces=joint)
        (sentence,) = corpus
        assert sentence.words == words
        assert bool(sentence.spaces) == (spacing == "text")
        with prepared(corpus) as ready:
            record = ready.record
            assert (record.spacing, record.join_spaces) == (spacing, joint)
            assert next(iter(ready)).spaces == sentence.spaces
    (again,) = make_corpus([sentence, sentence][:1], spacing="words", join_spaces="-")
    assert again.words == ("sinh_viên", "!")
    for wrong in ("", " ", "a b", 3):
        with pytest.raises(UsageError, match=r"join_spaces is .*; pass a text without spaces"):
            read_conllu(tmp_path / "t.conllu", join_spaces=wrong)


def test_spaces_are_found_where_the_text_has_the_words() -> None:
    assert spaces_in(" a  b c", ["a", "b", "c"]) == [True, True, True]
    assert spaces_in("犬が吠える", ["犬", "が", "吠える"]) == [False, False, True]
    assert spaces_in("a b", ["a", "c"]) is None
