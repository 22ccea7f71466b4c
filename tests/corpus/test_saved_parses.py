"""What a parser made of text, kept as CoNLL-U."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headroles.corpus import (
    Corpus,
    CorpusOptions,
    Sentence,
    make_corpus,
    open_corpus,
    prepared,
    read_conllu,
)
from headroles.corpus.saved_parses import save_parses, to_conllu
from headroles.errors import CorpusError, UsageError

ANNOTATIONS = {"lemma": ("cat", "_"), "upos": ("NOUN", "VERB"), "feats": ("Number=Plur", "_")}
CATS = Sentence("t-1", "t.txt", 0, ("cats", "sleep"), (1, -1), ("nsubj", "root"), ANNOTATIONS)
TWO_TREES = Sentence("t-2", "t.txt", 1, ("Yes", "no"), (-1, -1), ("ROOT", "ROOT"))
OTHER = Sentence("u-1", "u.txt", 0, ("\u00a0x|y=z", "#"), (-1, 0), ("root", "punct"))


def test_kept_sentences_are_read_back(tmp_path: Path) -> None:
    file = tmp_path / "kept.conllu"
    with prepared(save_parses(make_corpus([CATS, TWO_TREES, OTHER]), file)) as first:
        assert not list(first)[1].annotations
    with prepared(read_conllu(file)) as again:
        assert again.digest == first.digest
        assert again.documents == 2
        read = list(again)
    assert [one.words for one in read] == [CATS.words, TWO_TREES.words, OTHER.words]
    assert read[0].lemmas == ("cat", "_")
    assert read[0].feats[0] == {"Number": "Plur"}
    assert list(tmp_path.iterdir()) == [file]


def test_columns_are_those_of_conllu() -> None:
    assert to_conllu(CATS, begins_document=True) == (
        "# newdoc id = t.txt\n# sent_id = t-1\n"
        "1\tcats\tcat\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n"
        "2\tsleep\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    )
    assert "newdoc" not in to_conllu(CATS, begins_document=False)


def test_several_trees_are_said_to_be_several(tmp_path: Path) -> None:
    kept = to_conllu(TWO_TREES, begins_document=True)
    file = tmp_path / "t.conllu"
    file.write_text(kept)
    assert next(iter(read_conllu(file))).governors == (-1, -1)
    file.write_text(kept.replace("trees = 2", "trees = x"))
    with pytest.raises(CorpusError, match="has 2 roots"):
        list(read_conllu(file))


@pytest.mark.parametrize("skips", [[0, 0, 0, 0], [2, 0, 1, 3], [0, 0, 0, 1], [1, 1, 0, 0]])
def test_scheme_and_what_was_skipped_are_kept(tmp_path: Path, skips: list[int]) -> None:
    """The labels alone would pass for UD; cells may be empty before and after all sentences."""

    def read(skipped: Counter[str]) -> Iterator[Sentence]:
        for place, sentence in enumerate([CATS, TWO_TREES, OTHER, None]):
            if skips[place]:
                skipped["cells without words"] += skips[place]
            if sentence is not None:
                yield sentence

    file = tmp_path / "kept.conllu"
    corpus = Corpus({"format": "pairs", "scheme": "clear"}, read)
    with prepared(save_parses(corpus, file)) as first, prepared(read_conllu(file)) as again:
        assert again.digest == first.digest
        assert first.scheme == again.scheme == again.describe().scheme == "clear"
        assert again.skipped == first.skipped
        assert again.skipped.total() == sum(skips)


def test_a_scheme_is_that_of_all_files_or_guessed(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.conllu" for name in ("clear", "ud", "none")]
    for name, file in zip(("clear", "ud", ""), files, strict=True):
        list(save_parses(Corpus({"scheme": name}, lambda _: iter([CATS])), file))
        file.write_text(file.read_text().replace("t-1", file.stem))
    for chosen, scheme in (([files[0]], "clear"), ([files[0], files[2]], "ud")):
        with prepared(read_conllu(chosen)) as ready:
            assert ready.scheme == scheme
    with pytest.raises(CorpusError, match=r"two .*: .*clear.conllu \(clear\) and .* \(ud"):
        list(read_conllu(files[:2]))


@pytest.mark.parametrize("said", ["", "x", "[1]", '{"a": "b"}', '{"a": -1}', '{"a": true}', "NaN"])
def test_comments_that_say_nothing_are_passed_over(tmp_path: Path, said: str) -> None:
    comments = {"headroles.scheme": said, "headroles.skipped": said}
    file = tmp_path / "t.conllu"
    file.write_text(to_conllu(CATS, comments, begins_document=True))
    with prepared(read_conllu(file)) as ready:
        assert (ready.scheme, dict(ready.skipped)) == ("ud", {})


def test_nothing_is_left_of_a_corpus_that_was_not_read_to_its_end(tmp_path: Path) -> None:
    def fail(skipped: object) -> Iterator[Sentence]:
        yield CATS
        raise CorpusError("defective")

    with pytest.raises(CorpusError):
        list(save_parses(Corpus({}, fail), tmp_path / "kept.conllu"))
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "kept.conllu"
    file.write_text("mine")
    with pytest.raises(UsageError, match="already exists; give it as the corpus"):
        save_parses(make_corpus([CATS]), file)
    assert file.read_text() == "mine"
    file.unlink()
    file.symlink_to("/dev/null")  # which root could replace
    with pytest.raises(UsageError, match="already exists; give it as the corpus"):
        save_parses(make_corpus([CATS]), file)


@pytest.mark.parametrize("idle", [{"keep_parses": "x"}, {"parser_processes": 2}])
def test_what_is_of_parsers_needs_one(sample: Path, idle: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="applies to text that is parsed"):
        open_corpus([sample], CorpusOptions(**idle))  # type: ignore[arg-type]
