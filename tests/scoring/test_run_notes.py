"""Descriptions of runs: unknown pieces, folders, skipped examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headroles import score_heads
from headroles.corpus import read_conllu
from headroles.encoding import NO_PIECES, TOO_LONG
from headroles.errors import CorpusError
from headroles.record import PieceCounts, Record
from headroles.results.shown import Warned
from headroles.scoring.run_notes import describe_run, warnings_of_run
from tests.conftest import CAT, DOG, conllu_sentence, make_bert, make_tokenizer


def counted(
    pieces: int, unknown: int, words: int, without: int, no_pieces: int = 0
) -> dict[str, Any]:
    names = (
        *("pieces", "unknown_pieces", "words", "words_without_known_piece"),
        "words_without_pieces",
    )
    counts = (pieces, unknown, words, without, no_pieces)
    return {"pieces": dict(zip(names, counts, strict=True))}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, ""),
        (counted(100, 10, 50, 5), ""),
        (counted(100, 11, 50, 5), "knows no piece of 10% of the words: .* 11% of all pieces"),
        (counted(100, 0, 50, 6), "knows no piece of 12% of the words: these results mean little"),
        (counted(3, 3, 3, 3), "no piece of 100% of"),
        (counted(180, 0, 100, 0), ""),
        (
            counted(181, 0, 100, 0),
            "into 1.8 pieces on average: .* Score a model for the language and script",
        ),
        (counted(181, 0, 99, 0), ""),
        (counted(100, 75, 100, 0), "75% of all pieces are unknown"),
        (counted(9, 0, 10, 1, 1), ""),
        (counted(12, 0, 16, 4, 4), "makes no piece of 25% of the words"),
        (counted(12, 2, 16, 8, 1), "no piece of 44% of the words"),
        ({"skipped": {TOO_LONG: 1}, "examples": 9}, ""),
        (
            {"skipped": {TOO_LONG: 24}, "examples": 11},
            "24 of 35 examples are too long .* `pairing=.none'`",
        ),
        (
            {"skipped": {TOO_LONG: 24}, "examples": 11, "options": {"pairing": "none"}},
            "24 of 35 examples are too long for the model and were skipped",
        ),
    ],
)
def test_warnings_of_a_run(said: dict[str, Any], message: str) -> None:
    warnings = warnings_of_run(Record.read({"options": said.pop("options", {}), "corpus": said}))
    assert len(warnings) == bool(message)
    assert re.search(message, "".join(warnings))


def test_a_run_counts_what_the_tokenizer_does_not_know(tmp_path: Path) -> None:
    odd = [("猫", 2, "nsubj"), ("寝る", 0, "root"), (".", 2, "punct")]
    (tmp_path / "a.conllu").write_text(conllu_sentence(odd) + conllu_sentence(CAT))
    (tmp_path / "README").write_text("x")
    model = make_bert()
    scores = score_heads(model, read_conllu(tmp_path), tokenizer=make_tokenizer())
    # 猫, 寝 and る are cut apart; Cats and sleep are spelled out
    pieces = counted(3 + 1 + 4 + 5 + 1, 3, 6, 2)["pieces"]
    assert scores.record.corpus.pieces == PieceCounts(**pieces)
    shown = describe_run(scores.record)
    assert (
        "pieces  14 from 6 words, 14 an example; unknown: 21.4% of the pieces, 33.3% of the words"
        in shown
    )
    assert f"{tmp_path}: 1 files read, 1 ignored: README" in shown
    (warned,) = [one.text for one in scores.summarize() if isinstance(one, Warned)]
    assert "knows no piece of 33% of the words" in warned


def test_sentences_without_pieces_are_reported(tmp_path: Path) -> None:
    """The zero-width space alone is no example; beside a sentence it is no second one."""
    nothing = [("\u200b", 0, "root")]
    texts = [conllu_sentence(words, newdoc=name) for name, words in (("a", nothing), ("b", CAT))]
    texts += [conllu_sentence(nothing), conllu_sentence(nothing, newdoc="c"), conllu_sentence(CAT)]
    file = tmp_path / "a.conllu"
    file.write_text("".join(texts))
    for score in ("bias", "excess", "hit"):
        asked = {"tokenizer": make_tokenizer(), "score": score}
        scores = score_heads(make_bert(), read_conllu(file), **asked)
        assert scores.ids == ("a-2+a-3", "a-4+a-5")
        assert scores.record.corpus.skipped == {NO_PIECES: 1}
        is_there = {role: not np.isnan(scores.column(role)).any() for role in scores.role_ids}
        assert is_there["delimiter"]
        assert is_there["local"]
        block = "block:ratio" if score == "bias" else "block"
        assert np.isnan(scores.column(block)).all()
    message = describe_run(scores.record)
    assert "unknown: 0.0% of the pieces, 0.0% of the words; without a piece: 25.0% of" in message
    assert "skipped examples without word pieces: 1" in message
    (warned,) = [one.text for one in scores.summarize() if isinstance(one, Warned)]
    assert warned.startswith("the tokenizer makes no piece of 25% of the words")


def test_pairs_that_are_all_too_long(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_text(conllu_sentence(CAT) + conllu_sentence(DOG))
    model = make_bert(max_position_embeddings=20)
    with pytest.raises(CorpusError, match=r"no example could be scored: 1 .* \(.*pairing='none'\)"):
        score_heads(model, read_conllu(file), tokenizer=make_tokenizer())
    scores = score_heads(
        model, read_conllu(file), tokenizer=make_tokenizer(), pairing="none", relations="none"
    )
    assert scores.n_examples == 2
    assert not any(role.startswith("syntactic") for role in scores.role_ids)
