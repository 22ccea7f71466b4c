"""LaTeX that compiles, and fits a page."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.font_manager import findfont, get_font

from headroles import RoleTable, assign_roles
from headroles.formats import export_frame
from headroles.latex import latex_table, text_width
from headroles.roles import in_words
from tests.conftest import make_scores, role_ids


@pytest.fixture(scope="module")
def table() -> RoleTable:
    roles = role_ids(["nsubj", "obj"])
    values = np.random.default_rng(0).gamma(9, 0.4, (30, 3, 4, len(roles)))
    return assign_roles(make_scores(values, roles, [f"d{k}" for k in range(30)]))


VIEWS = ["long", "wide", "counts", "answers", "colocation", "beyond_position"]
CLASSES = ["", "[twocolumn]", "[12pt]"]


@pytest.fixture(scope="module")
def tables(table: RoleTable) -> dict[str, str]:
    """Tables in LaTeX by view, and one of sentences beside numbers."""
    made = {view: table.export("latex", view).decode() for view in VIEWS}
    sentence = "every head of the model attends to one word more than to all others"
    frame = pd.DataFrame({"claim": [sentence] * 3, "effect": [0.1, -2.5, np.inf]})
    frame["tiny"] = [-4.455e-16, 1e-7, 2.25]
    frame["found_in"] = sentence
    made["sentences"] = latex_table(_texts(frame), "Claims.", "tab:claims")
    return made


def _texts(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.map(lambda value: f"{value:.4g}" if isinstance(value, float) else str(value))


@pytest.mark.parametrize("kind", CLASSES)
def test_compiles_and_fits_a_page(tables: dict[str, str], kind: str, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex (Debian: texlive-latex-recommended, texlive-latex-extra)")
    packages = {re.search(r"\\usepackage\{(.*?)\}", one)[1] for one in tables.values()}  # type: ignore[index]
    (tmp_path / "page.tex").write_text(
        f"\\documentclass{kind}{{article}}\\usepackage{{{','.join(packages)}}}"
        "\\begin{document}\n" + "\\clearpage\n".join(tables.values()) + "\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-2000:]
    assert "Overfull \\hbox" not in made.stdout


def _measured(text: str) -> float:
    """Points of a text in the font of articles, which matplotlib has, at a size of 10."""
    font = get_font(findfont("cmr10"))
    font.set_size(10, 72)
    font.set_text(text)
    return float(font.get_width_height()[0]) / 64


def test_widths_are_estimated_from_above() -> None:
    relations = ["nsubj", "obj", "amod", "advmod", "punct", "case", "nummod", "prep", "cc", "xcomp"]
    roles = [
        in_words(f"syntactic:{one}:to_{end}")
        for one in relations
        for end in ("governor", "dependent")
    ]
    for text in [*roles, in_words("block"), "[CLS]", "punctuation", "undecided", "0.0624 to 0.125"]:
        assert 1 <= text_width(text) / _measured(text) < 1.25, text


def test_needed_packages_are_named(table: RoleTable) -> None:
    short = table.export("latex", "counts").decode()
    assert short.startswith("% needs \\usepackage{array,booktabs,dcolumn}\n")
    long = table.export("latex").decode()
    assert long.startswith("% needs \\usepackage{array,booktabs,dcolumn,longtable}\n")


def test_columns_beyond_a_page_go_into_further_tables() -> None:
    frame = pd.DataFrame({f"column {k}": [1.5, 22.25] for k in range(30)}, ["0-0", "0-1"])
    content = latex_table(_texts(frame.reset_index(names="head")), "Many.", "tab:many")
    n_tables = content.count(r"\toprule")
    assert n_tables > 1
    assert [content.count(f"{{column {k}}}") for k in range(30)] == [1] * 30
    assert content.count("\n0-0 & ") == n_tables
    assert rf"\caption{{Many. Part 1 of {n_tables}.}}" in content
    assert rf"\label{{tab:many-{n_tables}}}" in content


def test_numbers_are_aligned_at_the_point() -> None:
    frame = pd.DataFrame({"head": ["0-0"] * 3, "effect": ["-0.004", "12.5", "1.2e-05"]})
    content = latex_table(frame)
    assert r"\begin{tabular}{lD{.}{.}{2.6}}" in content
    assert [line for line in content.splitlines() if line.startswith("0-0")] == [
        r"0-0 & -0.004 \\",
        r"0-0 & 12.5 \\",
        r"0-0 & 1.2\mathrm{e}{-5} \\",
    ]


def test_a_long_table_has_four_columns_unless_asked(table: RoleTable) -> None:
    content = table.export("latex").decode()
    assert re.search(r"\\begin\{longtable\}\{l(l|>.*pt\})D\{\.\}\{\.\}\{\d\.\d\}l\}", content)
    for name in ("head", "role", r"\shortstack{mean (times \\ uniform)}", "answer"):
        assert name in content.split(r"\midrule")[0]
    assert "rotatebox" not in content
    assert r"subject $\rightarrow$ its verb" in content
    row = table.frame.iloc[0]
    head = f"{row['layer']}-{row['head']}"
    mean = f"{row['mean']:.4g}"
    role = in_words(row["role"])
    assert f"{head} & {role} & {mean} & {row['answer']}" in content
    yes = table.where(only_assigned=True).export("latex").decode()
    assert "& interval" in yes
    asked = table.export("latex", columns=["layer", "head", "role", "n", "sd"]).decode()
    heads = asked.split(r"\toprule")[1].split(r"\midrule")[0]
    assert re.findall(r"[a-z]{2,}|n", heads.replace("multicolumn", "")) == [
        "layer",
        "head",
        "role",
        "n",
        "sd",
    ]


def test_caption_and_label(table: RoleTable) -> None:
    content = table.export("latex", "answers", caption="50% of heads", label="tab:a b").decode()
    assert r"\caption{50\% of heads}" in content
    assert r"\label{tab:a-b}" in content
    assert r"\label{tab:role-table}" in table.export("latex", "answers").decode()


def test_small_p_values_have_no_digits() -> None:
    frame = pd.DataFrame({"p_value": [0.0004, 0.04321, 1.0, np.nan], "mean": [0.0004] * 4})
    content = export_frame(frame, "latex", {}).decode()
    rows = [line for line in content.splitlines() if "0.0004" in line]
    assert [row.split(" \\")[0] for row in rows] == [
        "<.001 & 0.0004",
        ".043 & 0.0004",
        "1.000 & 0.0004",
        " & 0.0004",
    ]
    assert "0.0004,0.0004" in export_frame(frame, "csv", {}).decode()


def test_a_table_without_rows() -> None:
    empty = pd.DataFrame({"role": pd.Series([], dtype=str)})
    assert r"\begin{tabular}{l}" in latex_table(empty)
