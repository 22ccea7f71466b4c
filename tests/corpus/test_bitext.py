"""Bitexts in one file and in two, with links from 0 and from 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headroles import read_bitext
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
