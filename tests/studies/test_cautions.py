"""What a study tells of documents that a corpus does not name, and of roles that it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headroles import RoleTable, classify_heads
from tests.conftest import CAT, DOG, conllu_sentence, flat, make_bert, make_tokenizer

NO_DOCUMENTS = "no documents (# newdoc)"


def write(folder: Path, *names: str, newdoc: str = "", file: str = "t.conllu") -> Path:
    """A treebank of sentences of these ids; ``newdoc`` has a letter for the document of each."""
    sentences = [
        conllu_sentence(CAT if k % 2 else DOG, name, f"d{newdoc[k]}" if newdoc else None)
        for k, name in enumerate(names)
    ]
    (folder / file).write_text("".join(sentences))
    return folder / file


def classified(corpus: Any, **options: Any) -> RoleTable:
    return classify_heads(make_bert(), corpus, tokenizer=make_tokenizer(), **options).roles


def warning(table: RoleTable, text: str = NO_DOCUMENTS) -> str:
    return "".join(one for one in table.warnings if text in one)


IDS = ("a-1", "a-2", "a-3", "b-1")


START = "the treebank names no documents (# newdoc): tests take examples as ind"
HELP = ("documents='sent_id', as ids name 2;", "documents='comment:KEY'", "clusters='none'")


@pytest.mark.parametrize(
    ("ids", "newdoc", "options", "parts"),
    [
        (IDS, "", {}, (START, *HELP)),
        (("s-1", "s-2", "s-3"), "", {}, (START,)),  # ids that name one document do not help
        (IDS, "aaab", {}, ()),
        (IDS, "", {"clusters": "none"}, ()),
    ],
)
def test_a_treebank_without_documents_comes_with_options_that_help(
    tmp_path: Path, ids: tuple[str, ...], newdoc: str, options: dict[str, Any], parts: Any
) -> None:
    told = warning(classified(write(tmp_path, *ids, newdoc=newdoc), **options))
    assert bool(told) == bool(parts)
    assert all(part in told for part in parts)
    assert ("sent_id" in told) == (len(parts) > 1)


def test_files_that_name_no_document_count_as_one_each(tmp_path: Path) -> None:
    write(tmp_path, *IDS)
    write(tmp_path, "c-1", "c-2", "c-3", file="u.conllu")
    assert "each file counts as one document" in warning(classified(tmp_path))


def test_one_document_with_a_name_is_a_warning_too(tmp_path: Path) -> None:
    assert warning(classified(write(tmp_path, *IDS, newdoc="aaaa")), "is one document")


@pytest.mark.parametrize(
    ("newdoc", "options", "why"),
    [
        ("abcd", {}, "each of the 4 sentences is a document of its own"),
        ("aabb", {"pairing": "none"}, "with pairing='none' there are no pairs"),
    ],
)
def test_roles_that_are_left_out_come_with_the_reason(
    tmp_path: Path, newdoc: str, options: dict[str, Any], why: str
) -> None:
    table = classified(write(tmp_path, *IDS, newdoc=newdoc), **options)
    assert list(table.tests.left_out)[:1] == ["block:ratio"]
    assert "No example has the same sentence: that takes pairs of" in flat(table)
    assert why in flat(table)


def test_contrasts_that_nothing_can_be_compared_with(tmp_path: Path) -> None:
    words = [("dogs", 2, "nsubj"), ("sleep", 0, "root")]
    file = tmp_path / "t.conllu"
    file.write_text(conllu_sentence(words, "a") + conllu_sentence(words, "b"))
    frame = classified(file, pairing="none", threshold=0.01).frame
    arcs = frame[frame["role"].str.startswith("syntactic")]
    assert arcs["beyond_distance"].isna().all()
    assert set(arcs["answer"]) <= {"undecided", "no"}
