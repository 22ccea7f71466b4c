"""LaTeX that compiles, and fits a page."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headroles import RoleTable, assign_roles
from headroles.formats import export_frame
from headroles.latex import latex_table
from headroles.roles import in_words
from tests.conftest import make_scores, role_ids


@pytest.fixture(scope="module")
def table() -> RoleTable:
    roles = role_ids(["nsubj", "obj"])
    values = np.random.default_rng(0).gamma(9, 0.4, (30, 3, 4, len(roles)))
    return assign_roles(make_scores(values, roles, [f"d{k}" for k in range(30)]))


@pytest.mark.parametrize("view", ["counts", "wide", "answers", "colocation"])
def test_compiles_and_fits_a_page(table: RoleTable, view: str, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex (Debian: texlive-latex-recommended, texlive-latex-extra)")
    content = table.export("latex", view).decode()
    packages = re.search(r"\\usepackage\{(.*?)\}", content)
    assert packages is not None
    (tmp_path / "page.tex").write_text(
        "\\documentclass{article}\\usepackage[margin=2cm]{geometry}"
        f"\\usepackage{{{packages[1]}}}\\begin{{document}}\n{content}\\end{{document}}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-2000:]
    assert "Overfull" not in made.stdout


def test_what_is_needed_is_named(table: RoleTable) -> None:
    first, second = table.export("latex", "wide").decode().splitlines()[:2]
    assert first.startswith("% wider than a page: choose columns")
    assert second == r"% needs \usepackage{booktabs,graphicx}"
    long = table.export("latex").decode()
    assert long.startswith(r"% needs \usepackage{booktabs,longtable}")


def test_a_long_table_has_four_columns_unless_asked(table: RoleTable) -> None:
    content = table.export("latex").decode()
    assert r"\begin{longtable}{llr@{}ll}" in content
    assert r"head & role & \multicolumn{2}{c}{mean} & answer \\" in content
    assert "rotatebox" not in content
    assert r"subject $\rightarrow$ its verb" in content
    row = table.frame.iloc[0]
    head = f"{row['layer']}-{row['head']}"
    told = f"{row['mean']:.4g}".replace(".", "&.")
    role = in_words(row["role"])
    assert f"{head} & {role} & {told} & {row['answer']}" in content
    yes = table.where(only_assigned=True).export("latex").decode()
    assert "& interval" in yes
    asked = table.export("latex", columns=["layer", "head", "role", "n", "sd"]).decode()
    assert asked.count("multicolumn{2}{c}") == 2 * 4  # above the first page, and above others


def test_caption_and_label(table: RoleTable) -> None:
    content = table.export("latex", "answers", caption="50% of heads", label="tab:a b").decode()
    assert r"\caption{50\% of heads}" in content
    assert r"\label{tab:a-b}" in content
    assert r"\label{tab:role-table}" in table.export("latex", "answers").decode()


def test_small_p_values_are_told_as_such() -> None:
    frame = pd.DataFrame({"p_value": [0.0004, 0.04321, 1.0, np.nan], "mean": [0.0004] * 4})
    content = export_frame(frame, "latex", {}).decode()
    assert [line.split(" \\\\")[0] for line in content.splitlines() if "0&.0004" in line] == [
        r"\multicolumn{2}{r}{\textless{}.001} & 0&.0004",
        "&.043 & 0&.0004",
        "1&.000 & 0&.0004",
        "& & 0&.0004",
    ]
    assert "0.0004,0.0004" in export_frame(frame, "csv", {}).decode()


def test_a_table_without_rows() -> None:
    empty = pd.DataFrame({"role": pd.Series([], dtype=str)})
    assert r"\begin{tabular}{l}" in latex_table(empty)
