"""Files of corpora: compressed, from standard input, in folders, of odd names."""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import lzma
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from headroles.corpus import read_conllu
from headroles.corpus.files import find_files
from headroles.errors import CorpusError
from headroles.roles.catalogue import read_frequencies
from headroles.tasks.options import TaskOptions
from headroles.tasks.reading import read_task
from tests.conftest import CAT, DOG, conllu_sentence

TEXT = (conllu_sentence(CAT, "one") + conllu_sentence(DOG)).encode()
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


class _Input:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def ids(*paths: Path | str) -> list[str]:
    return [sentence.id for sentence in read_conllu(paths)]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("by_name", [True, False])
def test_compressed_files_are_read_whatever_they_are_called(
    tmp_path: Path, ending: str, by_name: bool
) -> None:
    file = tmp_path / f"t.conllu{ending if by_name else ''}"
    file.write_bytes(PACK[ending](TEXT))
    assert ids(file) == ["one", "t-2"]
    assert ids(tmp_path) == ["one", "t-2"]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_damaged_files_are_named(tmp_path: Path, ending: str, damage: str) -> None:
    packed = PACK[ending](b"" if damage == "empty" else os.urandom(3000).hex().encode())
    middle = len(packed) // 2
    other = bytes([packed[middle] ^ 255])
    bad = {"cut": b"", "changed": other + packed[middle + 1 :], "empty": packed[middle:]}[damage]
    file = tmp_path / f"t.conllu{ending}"
    file.write_bytes(packed[:middle] + bad)
    kinds = "is empty" if damage == "empty" else "(damaged|cannot be read|UTF-8)"
    with pytest.raises(CorpusError, match=rf"t\.conllu{ending}.*{kinds}"):
        ids(file)


@pytest.mark.parametrize("pack", [bytes, *PACK.values()], ids=["plain", *PACK])
def test_standard_input_is_read_as_often_as_asked(
    monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(sys, "stdin", _Input(pack(TEXT)))
    corpus = read_conllu("-")
    assert corpus.source["files"] == ["standard input"]
    for _ in range(2):
        assert [(s.id, s.document) for s in corpus] == [
            ("one", "stdin"),
            ("stdin-2", "stdin"),
        ]


def test_a_folder_says_what_it_left(tmp_path: Path) -> None:
    for name in ("b.conllu", "a.conllu.xz", "README.md", "LICENSE.txt", ".hidden", "c.conllup"):
        (tmp_path / name).write_bytes(TEXT)
    (tmp_path / "deeper").mkdir()
    files, source = find_files(tmp_path, ".conllu", ".conllup")
    assert [file.path.name for file in files] == ["a.conllu.xz", "b.conllu", "c.conllup"]
    assert source["folders"] == [
        {
            "folder": str(tmp_path),
            "taken": 3,
            "left": ["LICENSE.txt", "README.md", "deeper/"],
            "n_left": 3,
        }
    ]


def test_a_folder_without_treebanks(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds no \.conllu file; name the files themselves"):
        read_conllu(tmp_path)
    for name in ("UD_A", "UD_B", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "UD_B" / "b.conllu.gz").write_bytes(TEXT)
    with pytest.raises(CorpusError, match=r"no \.conllu file; its folders do: .*UD_B$"):
        read_conllu(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CorpusError, match="it holds a model; give the model first"):
        read_conllu(tmp_path)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "no corpus was given; give at least one"),
        (["no.conllu"], r"no\.conllu does not exist; give a file or a folder of .conllu files"),
        (["nsubj"], "nsubj does not exist; separate relations with commas"),
        (["{}/t.conllu", "{}"], r"t\.conllu was given twice; give every file once"),
        (["{0}/t.conllu", "{0}/../{0.name}/t.conllu"], "was given twice; give every file once"),
        (["x" * 300], "xxx.* cannot be read: File name too long"),
        (["x" * 5000], "xxx.* cannot be read: File name too long"),
        (["\ud800.conllu"], "cannot be read: .*surrogates not allowed"),
    ],
)
def test_paths_that_are_refused(tmp_path: Path, paths: list[str], message: str) -> None:
    (tmp_path / "t.conllu").write_bytes(TEXT)
    with pytest.raises(CorpusError, match=message):
        read_conllu([path.format(tmp_path) for path in paths])


READERS: dict[str, Callable[[Path], object]] = {
    "corpus": read_conllu,
    "task": lambda file: read_task(file, TaskOptions()),
    "text to mask": lambda file: read_task(file, TaskOptions(), labelled=False),
    "frequencies": read_frequencies,
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("link", [False, True])
def test_only_regular_files_are_read(tmp_path: Path, kind: str, link: bool) -> None:
    """A pipe would block, a device would end at once or never."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if link:
        pipe = tmp_path / "link"
        pipe.symlink_to("pipe")
    for file in (pipe, Path("/dev/null")):
        with pytest.raises(CorpusError, match=f"{file} is a pipe or a device.*; copy it to a file"):
            READERS[kind](file)


def test_files_of_one_name_give_their_sentences_different_ids(tmp_path: Path) -> None:
    files = [tmp_path / place / "t.conllu" for place in ("a/x", "b/x", "c")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text(conllu_sentence(CAT) + conllu_sentence(DOG))
    assert ids(*files[1:]) == ["x/t-1", "x/t-2", "c/t-1", "c/t-2"]
    assert ids(*files)[::2] == ["a/x/t-1", "b/x/t-1", "c/t-1"]
    assert ids(files[0]) == ["t-1", "t-2"]


@pytest.mark.skipif(sys.platform == "darwin", reason="its names are UTF-8")
def test_names_that_are_not_utf8_can_be_written_down(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\x1b.conllu"))
    file.write_bytes(conllu_sentence(CAT).encode())
    corpus = read_conllu(file)
    (sentence,) = corpus
    assert sentence.id == r"caf\udce9\x1b-1"
    for text in (sentence.id, sentence.document, *corpus.source["files"]):
        assert text.encode()
    file = file.rename(tmp_path / "a\x1b[1m.conllu")
    corpus = read_conllu(file)  # recorded as it is called, so that it is found again
    assert corpus.source["files"] == [str(file)]
    assert next(iter(read_conllu(corpus.source["files"]))).id == r"a\x1b[1m-1"


def test_files_may_change_before_they_are_read(tmp_path: Path) -> None:
    file = tmp_path / "t.conllu"
    file.write_bytes(TEXT)
    corpus = read_conllu(file)
    file.unlink()
    with pytest.raises(CorpusError, match=r"t\.conllu cannot be read: No such file"):
        list(corpus)
    os.mkfifo(file)
    with pytest.raises(CorpusError, match=r"t\.conllu is a pipe"):
        list(corpus)


def test_errors_of_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Input(b"1\tx\n"))
    with pytest.raises(CorpusError, match=r"standard input, line 1: .* 2 tab-separated columns"):
        list(read_conllu("-"))
    with pytest.raises(CorpusError, match=r"- was given twice"):
        read_conllu(["-", "-"])


def test_what_was_kept_of_standard_input_goes_with_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", _Input(TEXT))
    corpus = read_conllu("-")
    assert len(list(tmp_path.iterdir())) == 1
    del corpus
    gc.collect()
    assert not list(tmp_path.iterdir())
