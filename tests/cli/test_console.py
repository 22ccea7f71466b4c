"""Progress where no terminal is."""

from __future__ import annotations

import pytest

from headroles.cli import console
from headroles.corpus import make_corpus


def test_reading_is_told_of_like_the_work_that_follows(
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
