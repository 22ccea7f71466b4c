"""Attention as arcs and matrix, and figures in files."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure

from headroles import WordAttention
from headroles.drawing import saving
from headroles.drawing.saving import save_figure
from headroles.studies.inspection.attention import draw_arcs, draw_attention, draw_matrix
from tests.commands import run_well

ROLE = "syntactic:obj:to_governor"
CHINESE = "\u4e2d\u56fd"


@pytest.fixture
def attention() -> WordAttention:
    """Words 0 to 2 between special tokens; word 1 is to look at word 2, and word 2 at word 0."""
    weights = np.array(
        [
            [0.96, 0.01, 0.01, 0.01, 0.01],
            [0.2, 0.2, 0.2, 0.2, 0.2],
            [0.05, 0.05, 0.05, 0.8, 0.05],
            [0.04, 0.06, 0.0, 0.4, 0.5],
            [0.02, 0.02, 0.02, 0.92, 0.02],
        ],
        dtype=np.float32,
    )
    sieve = np.zeros((5, 5), dtype=bool)
    sieve[2, 3] = sieve[3, 1] = True
    labels = ("[CLS]", "<script>", "\u05e9\u05dc\u05d5\u05dd", "$x$", "[SEP]")
    words = np.array([-1, 0, 1, 2, -1])
    return WordAttention("a-1", 2, 3, ROLE, 7.5, "bias", "weights", labels, words, weights, sieve)


def test_arcs_lead_where_attention_goes(attention: WordAttention) -> None:
    ax = draw_arcs(attention)
    drawn = {
        str(lines.get_gid()): sorted(
            (round(float(path.vertices[0, 1])), round(float(path.vertices[-1, 1])))
            for path in lines.get_paths()
        )
        for lines in ax.collections
        if hasattr(lines, "get_segments")
    }
    assert drawn == {
        "sieve": [(2, 3)],
        "missed": [(3, 1)],
        "elsewhere": [(1, 0), (1, 2), (1, 3), (1, 4), (3, 4), (4, 3)],
    }


def test_the_matrix_has_all_numbers_and_a_line_around_the_sieve(attention: WordAttention) -> None:
    ax = draw_matrix(attention)
    cells, border = ax.collections
    assert np.asarray(cells.get_array()) == pytest.approx(attention.weights)
    ends = {tuple(map(tuple, segment)) for segment in border.get_segments()}
    assert ((2.5, 1.5), (2.5, 2.5)) in ends
    assert ((2.5, 1.5), (3.5, 1.5)) in ends
    assert len(ends) == 8
    assert [text.get_text() for text in ax.get_yticklabels()][3] == r"\$x\$"


def test_svg_has_the_words_as_text_and_nothing_that_runs(
    attention: WordAttention, tmp_path: Path
) -> None:
    chinese = replace(attention, labels=(*attention.labels[:3], CHINESE, "[SEP]"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = save_figure(draw_attention(chinese), tmp_path / "a.svg").read_text("utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert CHINESE in text
    assert attention.labels[2] in text
    assert all(one.startswith(("#", "data:")) for one in re.findall(r'href="([^"]*)"', text))
    again = save_figure(draw_attention(chinese), tmp_path / "b.svg").read_text("utf-8")
    assert again == text


def test_fonts_are_found_for_what_the_usual_one_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = font_manager.findfont(font_manager.FontProperties())
    other = next(
        one
        for one in font_manager.fontManager.ttflist
        if one.fname != usual and "DejaVu" in one.name
    )
    monkeypatch.setattr(
        saving,
        "characters_of",
        lambda file: frozenset(CHINESE if file == other.fname else "abc"),
    )
    drawn: list[tuple[str, str]] = []
    monkeypatch.setattr(
        Figure,
        "savefig",
        lambda self, *args, **kwargs: drawn.extend(
            (text.get_text(), text.get_fontfamily()[-1]) for text in self.texts
        ),
    )
    figure = Figure()
    text = figure.text(0, 0, f"ab{CHINESE}\u05de")
    with pytest.warns(UserWarning, match="no font of this machine has \u05de;"):
        save_figure(figure, tmp_path / "a.png")
    assert drawn == [(f"ab{CHINESE}\\u05de", other.name)]
    assert text.get_text() == f"ab{CHINESE}\u05de"


def test_the_command_draws(bert_folder: Path, treebank: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "a.svg"
    run_well("score", bert_folder, treebank, "--out", out)
    asked = ["examples", out, "--layer", 0, "--head", 1, "--role", ROLE]
    run_well(*asked, "--figure", file, "--out", tmp_path / "kept")
    assert "bones" in file.read_text("utf-8")
    assert (tmp_path / "kept" / "examples.csv").is_file()
