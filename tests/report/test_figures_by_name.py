"""Figures by name from the command line: every kind is drawn, and wrong choices are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from headroles import RoleTable
from headroles.report.pages import draw_figure, write_figure
from headroles.studies.options import FigureOptions
from tests.commands import run


def titles(figure: Figure) -> list[str]:
    return [ax.get_title() for ax in figure.axes if ax.get_title()]


@pytest.mark.parametrize("kind", ["heads", "role", "roles", None])
def test_figures_of_a_role_table(table: RoleTable, tmp_path: Path, kind: str | None) -> None:
    file = write_figure(
        table.save(tmp_path / "roles"), tmp_path / "a.svg", FigureOptions(kind=kind)
    )
    assert file.stat().st_size > 1000


def test_figures_in_files(table: RoleTable, tmp_path: Path) -> None:
    folder = table.save(tmp_path / "roles")
    for name in ("a.pdf", "a.png"):
        assert write_figure(folder, tmp_path / name, FigureOptions()).stat().st_size > 1000
    text = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type3" not in text
    assert b"/CIDFontType2" in text


def test_title_width_and_role(table: RoleTable, tmp_path: Path) -> None:
    folder = table.save(tmp_path / "roles")
    plain = draw_figure(folder, FigureOptions(kind="role", role="special tokens"))
    assert titles(plain) == ["special tokens"]
    options = FigureOptions(kind="role", role="local", heading="Neighbours", width=3.3)
    figure = draw_figure(folder, options)
    assert titles(figure) == ["Neighbours\nneighbouring words"]  # the role is always named
    assert figure.get_size_inches()[0] == pytest.approx(3.3)
    head = draw_figure(folder, FigureOptions(kind="head", head="1-2"))
    assert "1-2" in titles(head)[0]


def test_the_command(table: RoleTable, tmp_path: Path) -> None:
    folder, out = table.save(tmp_path / "roles"), tmp_path / "f.svg"
    arguments = ["figure", str(folder), "--kind", "role", "--role", "local"]
    done = run(*arguments, "--title", "Neighbours", "--out", out)
    assert done.exit_code == 0, done.output
    assert "Neighbours" in out.read_text()
