"""What is told of a run: unknown pieces, folders, examples left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headroles import score_heads
from headroles.corpus import read_conllu
from headroles.encoding import TOO_LONG
from headroles.errors import CorpusError
from headroles.results import Warned
from headroles.scoring import describe_run, facts_of_run, warnings_of_run
from tests.conftest import CAT, DOG, conllu_sentence, make_bert, make_tokenizer


def counted(pieces: int, unknown: int, words: int, without: int) -> dict[str, Any]:
    names = ("pieces", "unknown_pieces", "words", "words_without_known_piece")
    return {"pieces": dict(zip(names, (pieces, unknown, words, without), strict=True))}


@pytest.mark.parametrize(
    ("provenance", "told"),
    [
        ({}, ""),
        (counted(100, 10, 50, 5), ""),
        (counted(100, 11, 50, 5), "does not know 11% of the word pieces, and no piece of 10% of"),
        (counted(100, 0, 50, 6), "does not know 0% of the word pieces, and no piece of 12% of"),
        (counted(0, 0, 3, 3), "no piece of 100% of"),
        ({"skipped": {TOO_LONG: 1}, "examples": 9}, ""),
        ({"skipped": {TOO_LONG: 24}, "examples": 11}, "24 of 35 examples are longer .* none\\):"),
        (
            {"skipped": {TOO_LONG: 24}, "examples": 11, "options": {"pairing": "none"}},
            "24 of 35 examples are longer than the model takes and were left out:",
        ),
    ],
)
def test_warnings_of_a_run(provenance: dict[str, Any], told: str) -> None:
    warnings = warnings_of_run(provenance)
    assert len(warnings) == bool(told)
    assert re.search(told, "".join(warnings))


def test_a_run_counts_what_the_tokenizer_does_not_know(tmp_path: Path) -> None:
    odd = [("猫", 2, "nsubj"), ("寝る", 0, "root"), (".", 2, "punct")]
    (tmp_path / "a.conllu").write_text(conllu_sentence(odd) + conllu_sentence(CAT))
    (tmp_path / "README").write_text("x")
    model = make_bert()
    scores = score_heads(model, read_conllu(tmp_path), tokenizer=make_tokenizer())
    provenance = scores.provenance
    # 猫, 寝 and る are cut apart; Cats and sleep are spelled out
    assert provenance["pieces"] == counted(3 + 1 + 4 + 5 + 1, 3, 6, 2)["pieces"]
    assert facts_of_run(provenance)["pieces"] == provenance["pieces"]
    shown = describe_run({**provenance, "absent_relations": []})
    assert (
        "pieces  14 from 6 words, 14 an example; unknown: 21.4% of the pieces, 33.3% of the words"
        in shown
    )
    assert f"{tmp_path}: 1 files taken, 1 left: README" in shown
    (warned,) = [one.text for one in scores.shown() if isinstance(one, Warned)]
    assert "does not know 21% of the word pieces, and no piece of 33% of the words" in warned


def test_pairs_that_are_all_too_long_have_a_cure(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_text(conllu_sentence(CAT) + conllu_sentence(DOG))
    model = make_bert(max_position_embeddings=20)
    with pytest.raises(CorpusError, match=r"no example could be scored: 1 .* \(.*--pairing none\)"):
        score_heads(model, read_conllu(file), tokenizer=make_tokenizer())
    scores = score_heads(
        model, read_conllu(file), tokenizer=make_tokenizer(), pairing="none", relations="none"
    )
    assert scores.n_examples == 2
    assert not any(role.startswith("syntactic") for role in scores.role_ids)
