"""Progress where no terminal is."""

from __future__ import annotations

import pytest

from headroles.cli import console
from headroles.corpus import make_corpus


def test_reading_has_progress_like_scoring(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(console.err, "_file", None)  # to set file would bind this stream
    corpus = make_corpus([(["x"], [-1], ["root"])] * 300)
    with console.progress_bar("scoring") as report:
        assert len(list(console.watched(corpus, report))) == 300
        report(100, 300)
        assert console.watched("no corpus", report) == "no corpus"
    assert capsys.readouterr().err == "reading: 256 sentences\nscoring: 100 of 300 sentences\n"


def test_a_new_round_starts_at_its_own_speed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(console.err, "_file", None)
    with console.progress_bar("roles", "passes") as report:
        for done, total in ((0, 30), (15, 30), (0, 8), (8, 8)):
            report(done, total)
    assert capsys.readouterr().err.splitlines() == [
        f"roles: {count} passes" for count in ("0 of 30", "15 of 30", "0 of 8", "8 of 8")
    ]
