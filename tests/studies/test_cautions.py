"""What a study tells of documents that a corpus does not name, and of roles that it lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headroles import RoleTable, classify_heads
from tests.conftest import CAT, DOG, conllu_sentence, flat, make_bert, make_tokenizer

SENT_ID = "documents='sent_id', as ids name 2;"
HELP = (SENT_ID, "documents='comment:KEY'", "clusters='none'")
START = "the treebank names no documents (# newdoc): tests take examples as ind"
IDS = ("a-1", "a-2", "a-3", "b-1")


def write(folder: Path, *names: str, newdoc: str = "", file: str = "t.conllu") -> Path:
    """A treebank of sentences of these ids; ``newdoc`` has a letter for the document of each."""
    sentences = [
        conllu_sentence(CAT if k % 2 else DOG, name, f"d{newdoc[k]}" if newdoc else None)
        for k, name in enumerate(names)
    ]
    (folder / file).write_text("".join(sentences))
    return folder / file


@pytest.fixture(scope="module")
def classified() -> Callable[..., RoleTable]:
    model, tokenizer = make_bert(layers=1), make_tokenizer()
    return lambda corpus, **options: (
        classify_heads(model, corpus, tokenizer=tokenizer, controls="none", **options).roles
    )


@pytest.mark.parametrize(
    ("ids", "newdoc", "options", "parts"),
    [
        (IDS, "", {}, (START, *HELP)),
        (("s-1", "s-2", "s-3"), "", {}, (START,)),  # ids that name one document do not help
        (IDS, "aaab", {}, ()),
        (IDS, "aaaa", {}, ("the corpus is one document",)),
        (IDS, "", {"clusters": "none"}, ()),
    ],
)
def test_a_treebank_without_documents_comes_with_options_that_help(
    classified: Any,
    tmp_path: Path,
    ids: tuple[str, ...],
    newdoc: str,
    options: dict[str, Any],
    parts: tuple[str, ...],
) -> None:
    table = classified(write(tmp_path, *ids, newdoc=newdoc), roles="local", **options)
    told = "".join(one for one in table.warnings if "document" in one and "fewer" not in one)
    assert bool(told) == bool(parts)
    assert all(part in told for part in parts)
    assert (SENT_ID in told) == (SENT_ID in parts)


def test_files_that_name_no_document_count_as_one_each(classified: Any, tmp_path: Path) -> None:
    write(tmp_path, *IDS)
    write(tmp_path, "c-1", "c-2", "c-3", file="u.conllu")
    table = classified(tmp_path, roles="local")
    assert any("each file counts as one document" in one for one in table.warnings)


@pytest.mark.parametrize(
    ("newdoc", "options", "why"),
    [
        ("abcd", {}, "each of the 4 sentences is a document of its own"),
        ("aabb", {"pairing": "none"}, "with pairing='none' there are no pairs"),
    ],
)
def test_roles_that_are_left_out_come_with_the_reason(
    classified: Any, tmp_path: Path, newdoc: str, options: dict[str, Any], why: str
) -> None:
    corpus = write(tmp_path, *IDS, newdoc=newdoc)
    table = classified(corpus, roles="local,block:ratio", **options)
    assert list(table.facts["left_out"]) == ["block:ratio"]
    assert "No example has the same sentence: that takes pairs of" in flat(table)
    assert why in flat(table)


def test_contrasts_that_nothing_can_be_compared_with(classified: Any, tmp_path: Path) -> None:
    words = [("dogs", 2, "nsubj"), ("sleep", 0, "root")]
    file = tmp_path / "t.conllu"
    file.write_text(conllu_sentence(words, "a") + conllu_sentence(words, "b"))
    frame = classified(file, roles="syntactic", pairing="none", threshold=0.01).frame
    assert frame["beyond_distance"].isna().all()
    assert set(frame["answer"]) <= {"undecided", "no"}
