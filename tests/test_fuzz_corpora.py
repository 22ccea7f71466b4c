"""Damaged treebanks end in sieves or in an error of one line; the long run is in benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fuzz_corpora import GOOD, Case, go_through, run


def test_no_damaged_treebank_ends_in_a_traceback() -> None:
    outcomes, _ = run(200, first=1)
    assert set(outcomes) <= {"prepared", "CorpusError", "UsageError"}
    assert min(outcomes["prepared"], outcomes["CorpusError"]) >= 20  # both sides are tried


def case(content: bytes, **reading: str) -> Case:
    return Case(content, reading, {}, "adjacent")


def test_the_unchanged_corpus_is_good(tmp_path: Path) -> None:
    assert go_through(case(GOOD), tmp_path) == "prepared"
    assert go_through(case(b"\xff" + GOOD), tmp_path) == "CorpusError"


def test_tracebacks_are_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("benchmarks.fuzz_corpora.make_readout", broken)
    with pytest.raises(ZeroDivisionError):
        go_through(case(GOOD), tmp_path)
