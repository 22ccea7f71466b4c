"""LaTeX for papers: booktabs, numbers aligned by siunitx, roles in words."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headroles import RoleTable, assign_roles
from headroles.results.formats import latex_table
from tests.conftest import make_scores, role_ids


@pytest.fixture(scope="module")
def table() -> RoleTable:
    roles = role_ids(["nsubj", "obj"])
    values = np.random.default_rng(0).gamma(9, 0.4, (30, 3, 4, len(roles)))
    return assign_roles(make_scores(values, roles, [f"d{k}" for k in range(30)]))


def cells(content: str) -> list[list[str]]:
    rows = [line for line in content.splitlines() if re.match(r"[^\\].* \\\\$", line)]
    return [row.removesuffix(r" \\").split(" & ") for row in rows]


@pytest.mark.parametrize("kind", ["", "[twocolumn]"])
def test_compiles(table: RoleTable, kind: str, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex (Debian: texlive-latex-recommended, texlive-science)")
    views = ["counts", "answers", "colocation", *(["long"] * (not kind))]
    pages = [table.export("latex", view).decode() for view in views]
    (tmp_path / "page.tex").write_text(
        f"\\documentclass{kind}{{article}}\\usepackage{{array,booktabs,siunitx,longtable}}"
        "\\begin{document}\n" + "\\clearpage\n".join(pages) + "\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-2000:]


def test_numbers_of_a_column_have_the_same_decimals() -> None:
    frame = pd.DataFrame(
        {
            "head": ["0-0", "0-1", "0-2"],
            "effect": [-0.004, 12.5, np.nan],
            "needed": [108.0, np.inf, 4.0],
            "p_value": [0.0004, 0.04321, 1.0],
            "flag": [True, False, True],
            "tiny": [2.5e-5, 1e-5, 0.0],
        }
    )
    content = latex_table(frame)
    assert (
        r"\begin{tabular}{lS[table-format=-2.1]S[table-format=3.0]S[table-format=1.3]l"
        r"S[table-format=1.7]}"
    ) in content
    header, *rows = cells(content)
    assert header == ["{head}", "{effect}", "{needed}", r"{p\_value}", "{flag}", "{tiny}"]
    assert rows == [
        ["0-0", "-0.0", "108", r"{$<$.001}", "x", "0.0000250"],
        ["0-1", "12.5", r"{$\infty$}", "0.043", "", "0.0000100"],
        ["0-2", "", "4", "1.000", "x", "0.0000000"],
    ]


def test_caption_and_label(table: RoleTable) -> None:
    content = table.export("latex", "answers", caption="50% of heads", label="tab:a b").decode()
    assert r"\caption{50\% of heads}" in content
    assert r"\label{tab:a-b}" in content
    assert r"\label{tab:role-table}" in table.export("latex", "answers").decode()


def test_a_table_without_rows() -> None:
    empty = pd.DataFrame({"role": pd.Series([], dtype=str)})
    assert r"\begin{tabular}{l}" in latex_table(empty)


def test_a_name_never_begins_the_height_of_a_row() -> None:
    content = latex_table(pd.DataFrame({"word": ["[CLS]", "[SEP]"]}))
    assert not re.search(r"^\[", content, re.M)
