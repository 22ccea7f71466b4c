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


def test_every_round_announces_its_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 0.0, 60.0, 90.0, 100.0, 130.0, 200.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(console.err, "_file", None)
    with console.progress_bar("roles", "passes") as report:
        for done, total in ((0, 30), (10, 30), (15, 30), (0, 8), (1, 8), (8, 8)):
            report(done, total)
    assert capsys.readouterr().err.splitlines() == [
        "roles: takes about 3 minutes",
        "roles: 10 of 30 passes, 2 min left",
        "roles: 15 of 30 passes, 2 min left",  # 90 seconds
        "roles: takes about 4 minutes",
        "roles: 1 of 8 passes, 4 min left",
        "roles: 8 of 8 passes",
    ]
