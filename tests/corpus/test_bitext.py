"""Bitexts in one file and in two, with links from 0 and from 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from headroles import make_corpus, read_bitext, read_conllu
from headroles.corpus import CorpusOptions, make_examples, open_corpus, prepared, reopen_corpus
from headroles.errors import CorpusError, UsageError

SOURCES, TARGETS = ("das alte Haus", "er kam an ."), ("the old house", "he arrived .")
LINKS = ("0-0 1-1 2-2", "0-0 1-1 2p1 3-2")
TREEBANK = """# newdoc id = letters
# sent_id = s-1
1\tdas\tder\tDET\t_\t_\t3\tdet\t_\t_
2\talte\talt\tADJ\t_\t_\t3\tamod\t_\tGloss=old
3\tHaus\tHaus\tNOUN\t_\t_\t0\troot\t_\t_

# sent_id = s-2
1\ter\ter\tPRON\t_\t_\t2\tnsubj\t_\t_
2\tkam\tkommen\tVERB\t_\t_\t0\troot\t_\t_
3\tan\tan\tADP\t_\t_\t2\tcompound:prt\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_
"""


def write(folder: Path, name: str, lines: tuple[str, ...]) -> Path:
    (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder / name


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    pairs = tuple(map(" ||| ".join, zip(SOURCES, TARGETS, LINKS, strict=True)))
    (tmp_path / "side.conllu").write_text(TREEBANK, "utf-8")
    return {
        "bitext": write(tmp_path, "a.bitext", pairs),
        "sources": write(tmp_path, "sources.de", SOURCES),
        "targets": write(tmp_path, "targets.en", TARGETS),
        "links": write(tmp_path, "links", LINKS),
        "treebank": tmp_path / "side.conllu",
    }


def linked(corpus: Any) -> list[Any]:
    return [(sentence.words, [*map(dict, sentence.misc)], sentence.upos[-1]) for sentence in corpus]


def test_two_files_are_read_as_one(files: dict[str, Path], tmp_path: Path) -> None:
    one = read_bitext(files["bitext"])
    two = read_bitext(files["sources"], translations=files["targets"], links=files["links"])
    assert linked(one) == linked(two)
    from_one = write(tmp_path, "from-1", ("1-1 2-2 3-3", "1-1 2-2 3p2 4-3"))
    asked: Any = {"translations": files["targets"], "links": from_one, "links_from": 1}
    assert linked(read_bitext(files["sources"], **asked)) == linked(one)
    (_, first), (source, target) = (pair.sentences for pair in make_examples(two, "adjacent"))
    assert first.document != source.document == target.document


def test_a_treebank_may_be_on_either_side(files: dict[str, Path], tmp_path: Path) -> None:
    asked: Any = {"translations": files["targets"], "links": files["links"]}
    pairs = list(make_examples(read_bitext(files["treebank"], **asked), "adjacent"))
    (source, target), (_, second) = (pair.sentences for pair in pairs)
    assert source.id == "s-1.source"
    assert target.id == "s-1.target"
    assert [pair.document for pair in pairs] == ["side#letters", "side#letters"]
    assert source.relations == ("det", "amod", "root")
    assert source.governors == (2, 2, -1)
    assert [one.get("Sure") for one in second.misc] == ["1", "2", "4"]
    turned = {"translations": files["treebank"], "links": files["links"]}
    source, target = next(
        make_examples(read_bitext(files["sources"], **turned), "adjacent")
    ).sentences
    assert target.governors == (2, 2, -1)
    assert target.misc[1] == {"Gloss": "old", "Sure": "2"}
    undivided = tmp_path / "undivided.conllu"
    undivided.write_text(TREEBANK.replace("# newdoc id = letters\n", ""), "utf-8")
    pairs = list(make_examples(read_bitext(undivided, **asked), "adjacent"))
    assert len({pair.document for pair in pairs}) == len(pairs) == 2


def test_it_is_opened_and_read_again_from_its_record(files: dict[str, Path]) -> None:
    options = CorpusOptions(translations=str(files["targets"]), links=str(files["links"]))
    for name in ("sources", "treebank"):
        with prepared(open_corpus([files[name]], options)) as ready:
            record = ready.record
            again = reopen_corpus(record.files, record)
            assert linked(again) == linked(ready)
        assert record.scheme == ("ud" if name == "treebank" else "other")


def test_links_may_be_left_out(files: dict[str, Path]) -> None:
    pairs = read_bitext(files["sources"], translations=files["targets"])
    assert not any(entries for sentence in pairs for entries in sentence.misc)


def test_defects_are_named(files: dict[str, Path], tmp_path: Path) -> None:
    def read(sources: str = "sources", **options: Any) -> None:
        asked: Any = {"translations": files["targets"], "links": files["links"], **options}
        list(read_bitext(files[sources], **asked))

    short, empty = write(tmp_path, "short", LINKS[:1]), write(tmp_path, "empty", ("", "a b ."))
    with pytest.raises(CorpusError, match=r"short has 1 lines, and .*sources\.de more sentences"):
        read(links=short)
    with pytest.raises(CorpusError, match="links3 has more lines than"):
        read(links=write(tmp_path, "links3", (*LINKS, "0-0")))
    with pytest.raises(CorpusError, match="differ in the number of their sentences"):
        read(translations=short)
    with pytest.raises(CorpusError, match="empty, line 1 is empty, and its translation is not"):
        read(translations=empty)
    with pytest.raises(CorpusError, match=r"links, line 1: '0-0' is no link .* source, 1 to 3"):
        read(links_from=1)
    with pytest.raises(CorpusError, match="nowhere"):
        read(translations=tmp_path / "nowhere")
    with pytest.raises(UsageError, match="has the translations of one file, and there are 2"):
        read_bitext([files["sources"], files["bitext"]], translations=files["targets"])


def test_options_of_bitexts_need_one(files: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="links applies to bitexts"):
        open_corpus([files["treebank"]], CorpusOptions(links="links"))
    options = CorpusOptions(translations=str(files["targets"]), parser="en")
    with pytest.raises(UsageError, match="translations applies to bitexts"):
        open_corpus([files["sources"]], options)


@pytest.mark.parametrize("first", [0, 1])
def test_links_that_are_counted_from_elsewhere_are_told(tmp_path: Path, first: Any) -> None:
    """All links of the pair are one too far, or only some of them."""
    path, there = tmp_path / "some.bitext", {0: ("1-1 2p2", "1-1 3-1"), 1: ("0-0 1p1", "0-0 3-1")}
    path.write_text("".join(f"a b ||| c d ||| {links}\n" for links in there[first]), "utf-8")
    other = 1 - first
    with pytest.raises(
        CorpusError, match=rf"line 1: .* counted from {other}: pass links_from={other}$"
    ):
        list(read_bitext(path, links_from=first))
    reasons = rf"1 pairs whose links .* \(pass links_from={other}\); 1 defective pairs"
    with (
        pytest.raises(CorpusError, match=rf"no sentences in .*; {reasons}"),
        prepared(read_bitext(path, links_from=first, on_bad_sentence="skip")),
    ):
        pass


def test_defective_pairs_may_be_skipped_and_counted(tmp_path: Path) -> None:
    """Links beyond the words, an empty side, a line of another form: others are read."""
    lines = ["a ||| b ||| 0-0", "a ||| b ||| 0-1", "a ||| ||| 0-0", "a", "a c ||| b ||| 1-0"]
    path = tmp_path / "some.bitext"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    skip = {"on_bad_sentence": "skip"}
    with pytest.raises(CorpusError, match=r"line 2.*correct it, or pass on_bad_sentence=.skip"):
        list(read_bitext(path))
    with prepared(read_bitext(path, **skip)) as ready:
        assert ready.skipped == {"defective pairs": 3}
        pairs = [example.sentences for example in make_examples(ready, "adjacent")]
    assert [[one.words for one in pair] for pair in pairs] == [
        [("a",), ("b",)],
        [("a", "c"), ("b",)],
    ]
    sources, targets = tmp_path / "some.de", tmp_path / "some.en"
    sources.write_text("a\n\na c\n", "utf-8")
    targets.write_text("b\nb\nd\n", "utf-8")
    with prepared(read_bitext(sources, translations=targets, **skip)) as ready:
        assert ready.skipped == {"defective pairs": 1}
        words = [sentence.words for sentence in ready]
        again = reopen_corpus([sources], ready.record)
    assert words == [("a",), ("b",), ("a", "c"), ("d",)]
    assert [sentence.words for sentence in again] == words


def test_files_of_unequal_length_are_no_bitext_however_defects_are_taken(tmp_path: Path) -> None:
    sources, targets = tmp_path / "some.de", tmp_path / "some.en"
    sources.write_text("a\nb\n", "utf-8")
    targets.write_text("a\n", "utf-8")
    with pytest.raises(CorpusError, match="differ in the number of their sentences"):
        list(read_bitext(sources, translations=targets, on_bad_sentence="skip"))


# Pairs in memory


def in_memory(links: Any = LINKS) -> list[dict[str, Any]]:
    return [
        {"source": source, "target": target, "links": of_pair}
        for source, target, of_pair in zip(SOURCES, TARGETS, links, strict=True)
    ]


@pytest.mark.parametrize(
    ("pairs", "options"),
    [
        (in_memory(), {}),
        (in_memory([link.split() for link in LINKS]), {}),
        (in_memory([[(0, 0), (1, 1), [2, 2]], [(0, 0), "1-1", "2p1", (3, 2)]]), {}),
        (in_memory(["1-1 2-2 3-3", "1-1 2-2 3p2 4-3"]), {"links_from": 1}),
        (
            [
                {name: part.split() if name != "links" else part for name, part in pair.items()}
                for pair in in_memory()
            ],
            {},
        ),
        (pd.DataFrame(in_memory()), {}),
    ],
    ids=["texts", "lists", "pairs", "from 1", "words", "data frame"],
)
def test_pairs_in_memory_are_those_of_a_file(
    files: dict[str, Path], pairs: Any, options: Any
) -> None:
    made = make_corpus(pairs, **options)
    assert linked(made) == linked(read_bitext(files["bitext"]))
    with prepared(made) as ready:
        assert (ready.record.format, ready.record.scheme) == ("bitext", "other")
        assert (ready.record.sentences, ready.record.documents) == (4, 2)


def test_a_data_set_may_hold_pairs(files: dict[str, Path]) -> None:
    table = pytest.importorskip("datasets").Dataset.from_list(in_memory())
    assert linked(make_corpus(table)) == linked(read_bitext(files["bitext"]))


def test_sides_in_memory_may_have_trees(files: dict[str, Path]) -> None:
    trees = list(read_conllu(files["treebank"]))
    triple = (("the", "old", "house"), (2, 2, -1), ("det", "amod", "root"))
    row = {
        "tokens": ["he", "arrived", "."],
        "head": ["2", "0", "2"],
        "deprel": ["nsubj", "root", "punct"],
    }
    pairs = [
        {"source": trees[0], "target": triple, "links": LINKS[0]},
        {"source": trees[1], "target": row, "links": None},
    ]
    first, second, third, fourth = corpus = [*make_corpus(pairs, documents=["d", "d"])]
    assert [one.id for one in corpus] == [
        f"pair-{k}.{side}" for k in (1, 2) for side in ("source", "target")
    ]
    assert [(one.document, one.position) for one in corpus] == [("d", k) for k in range(4)]
    assert first.relations == trees[0].relations
    assert first.misc[1] == {"Gloss": "old"}
    assert second.relations == triple[2]
    assert second.misc[2] == {"Sure": "3"}
    assert third.spaces == (True, True, False, True)
    assert fourth.governors == (1, -1, 1)
    with prepared(make_corpus(pairs)) as ready:
        assert ready.record.scheme == "ud"
        assert ready.relations["amod"] == 2


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([{"source": "a", "target": " "}], r"pair-1.target has no words; remove the pair"),
        (
            [{"source": ["a", ""], "target": "b"}],
            r"pair-1.source: '' is no word; give a text whose",
        ),
        ([{"source": 3, "target": "b"}], r"pair-1.source: 3 is no word"),
        ([{"source": "a", "target": "b", "links": "0-1"}], r"pair-1: '0-1' is no link of a word"),
        ([{"source": "a", "target": "b", "links": [(0, -1)]}], r"pair-1: '0--1' is no link"),
        ([{"source": "a", "target": "b", "links": [(0,)]}], r"pair-1: '0' is no link"),
        ([{"source": "a", "target": "b", "links": [3]}], r"pair-1: '3' is no link"),
        ([{"source": "a", "target": "b", "links": 3}], r"pair-1: links is 3; give a text, as"),
        ([{"source": "a", "target": "b"}, "c"], r"item 2 \(str\) is not a mapping with source and"),
        ([{"source": "\ud800", "target": "b"}], r"pair-1.source: '\\ud800' is no word"),
    ],
)
def test_defects_of_pairs_in_memory_are_named(pairs: Any, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        make_corpus(pairs)


def test_arguments_of_pairs_need_them() -> None:
    with pytest.raises(UsageError, match=r"links_from applies to pairs, but these are trees"):
        make_corpus([(("Dogs", "bark"), (1, -1), ("nsubj", "root"))], links_from=1)
    with pytest.raises(UsageError, match=r"pairs are parsed already; omit parser"):
        make_corpus(in_memory(), parser="any")
    with pytest.raises(UsageError, match=r"documents has 1 names for 2 items"):
        make_corpus(in_memory(), documents=["d"])


# Spaces


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("我 看 NBA Live 。", "我看NBA Live。"),
        ("私 は 「 猫 」 を 見 た", "私は「猫」を見た"),
        ("แมว กิน ปลา", "แมวกินปลา"),
        ("나는 고양이를 본다 .", "나는 고양이를 본다 ."),
        ("the cat , 2 dogs", "the cat , 2 dogs"),
        ("在 1997 年 a b", "在1997年a b"),
    ],
)
def test_scripts_without_spaces_are_joined_as_they_are_written(
    tmp_path: Path, text: str, written: str
) -> None:
    path = write(tmp_path, "a.bitext", (f"{text} ||| {text} ||| 0-0",))
    sides = [*read_bitext(path), *make_corpus([{"source": text, "target": text.split()}])]
    for side in sides:
        spaces = side.spaces or (True,) * len(side.words)
        joined = "".join(word + " " * space for word, space in zip(side.words, spaces, strict=True))
        assert joined.rstrip() == written
        # words that stand apart are given to tokenizers as those of any text
        assert (side.spaces == ()) == (" ".join(side.words) == written)
    for one in (
        read_bitext(path, spacing="words"),
        make_corpus([{"source": text, "target": text}], spacing="words"),
    ):
        assert {side.spaces for side in one} == {()}
    with prepared(read_bitext(path)) as ready:
        assert [*reopen_corpus([path], ready.record)] == [*read_bitext(path)]
        spaces = [side.spaces for side in reopen_corpus([path], ready.record)]
        assert spaces == [side.spaces for side in read_bitext(path)]
