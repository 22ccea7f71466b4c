"""Tables in the formats that programs and people read."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headroles import RoleTable, assign_roles
from headroles.results.formats import for_paper, latex_table
from headroles.storage import plain
from tests.conftest import make_scores, role_ids

ROLES = ("local", "50%_a&b", "<script>alert(1)</script>", "conj|and")
MODEL = {"model": "Köln/bert"}


@pytest.fixture(scope="module")
def table() -> RoleTable:
    """Two layers of two heads; the third role has one example only and is not tested."""
    values = np.random.default_rng(3).gamma(9, 0.4, (12, 2, 2, len(ROLES))).astype(np.float32)
    values[1:, ..., 2] = np.nan
    scores = make_scores(values, ROLES, model=MODEL)
    table = assign_roles(scores)
    assert 0 < table.frame["assigned"].sum() < 12
    assert table.frame["p_value"].isna().sum() == 4
    return table


def read_csv(content: bytes) -> pd.DataFrame:
    # pandas 2 reads decimals to the last bit only if it is asked to
    exact = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}
    return pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=[""], **exact)


def assert_same(read: pd.DataFrame, frame: pd.DataFrame) -> None:
    assert list(read.columns) == list(frame.columns)
    for column in frame:
        for one, other in zip(read[column], frame[column], strict=True):
            assert one == other or (pd.isna(one) and (pd.isna(other) or other == ""))


@pytest.mark.parametrize(
    ("view", "value"),
    [
        *((view, None) for view in ("long", "wide", "answers", "colocation")),
        *(("wide", value) for value in ("answer", "p_value", "assigned")),
    ],
)
def test_programs_read_the_same_numbers(table: RoleTable, view: str, value: str | None) -> None:
    frame = table.view(view, value)
    frame = frame.reset_index() if frame.index.name == "role" else frame
    assert_same(read_csv(table.export("csv", view, value)), frame)
    read = pq.read_table(pa.BufferReader(table.export("parquet", view, value))).to_pandas()
    pd.testing.assert_frame_equal(read, frame, check_exact=True)
    content = json.loads(table.export("json", view, value), parse_constant=pytest.fail)
    assert_same(pd.DataFrame(content["rows"], columns=list(frame.columns)), frame)


def test_json_has_null_for_what_is_missing_and_the_record_goes_along(table: RoleTable) -> None:
    content = json.loads(table.export("json"))
    untested = [row for row in content["rows"] if row["role"] == ROLES[2]]
    assert {row["p_value"] for row in untested} == {None}
    assert {row["assigned"] for row in content["rows"]} == {True, False}
    assert content["record"] == plain(table.record)
    kept = json.loads(
        pq.read_schema(pa.BufferReader(table.export("parquet"))).metadata[b"headroles"]
    )
    scored = kept["sources"]["scores"]
    assert scored["model"]["model"] == MODEL["model"]
    assert not {"created", "command"} & {*kept, *scored}


@pytest.mark.parametrize("view", ["long", "wide", "answers", "colocation"])
def test_html_and_latex_escape_names(table: RoleTable, view: str) -> None:
    content = table.export("html", view).decode()
    assert "<script>" not in content
    assert "&lt;script&gt;" in content
    assert "50%_a&amp;b" in content
    noted = RoleTable(table.frame.assign(note="<script>x</script>"), table.record)
    assert "<script>" not in noted.export("html").decode()
    content = table.export("latex", view).decode()
    assert r"50\%\_a\&b" in content
    assert "50%" not in content
    assert r"\begin{tabular}" in content


MARKED = (
    "=1+1",
    "@x",
    "+1",
    "-x",
    "\x1b[31mred",
    "*b* `c` [l](http://x) _e_ $m$",
    'a<b>|c"d',
    "a_b",
)


@pytest.fixture(scope="module")
def marked() -> RoleTable:
    """Roles whose names mean something to what shows them."""
    values = np.random.default_rng(4).gamma(9, 0.4, (12, 1, 2, len(MARKED))).astype(np.float32)
    return assign_roles(make_scores(values, MARKED, model=MODEL))


@pytest.mark.parametrize("view", ["long", "wide", "answers"])
def test_no_cell_of_csv_is_a_formula(marked: RoleTable, view: str) -> None:
    content = marked.export("csv", view).decode()
    cells = [cell.strip('"') for line in content.splitlines() for cell in line.split(",")]
    suspect = {cell for cell in cells if cell[:1] in tuple("=+-@\t\r")}
    assert all(re.fullmatch(r"-?[0-9.e-]+", cell) for cell in suspect), suspect
    assert {"'=1+1", "'@x", "'+1", "'-x", "a_b"} <= set(cells)


def test_formats_for_people_show_names_as_they_are(marked: RoleTable) -> None:
    lines = marked.export("markdown", "answers").decode().splitlines()
    found = [line[2:].split(" |")[0].rstrip() for line in lines[2:]]
    assert found[4:] == [
        r"\\x1b\[31mred",
        r"\*b\* \`c\` \[l\](http://x) \_e\_ \$m\$",
        r'a&lt;b>\|c"d',
        "a_b",
    ]
    content = marked.export("latex", "answers").decode()
    assert r"\textbackslash{}x1b{[}31mred" in content
    assert r"*b* `c` {[}l](http://x) \_e\_ \$m\$" in content
    assert r"a\textless{}b\textgreater{}\textbar{}c''d" in content
    assert "\x1b" not in content
    for fmt in ("markdown", "latex", "html"):
        assert "\x1b" not in marked.export(fmt).decode()


@pytest.fixture(scope="module")
def relations() -> RoleTable:
    roles = role_ids(["nsubj", "obj"])
    values = np.random.default_rng(0).gamma(9, 0.4, (30, 3, 4, len(roles)))
    return assign_roles(make_scores(values, roles, [f"d{k}" for k in range(30)]))


def cells(content: str) -> list[list[str]]:
    rows = [line for line in content.splitlines() if re.match(r"[^\\].* \\\\$", line)]
    return [row.removesuffix(r" \\").split(" & ") for row in rows]


LATEX_PACKAGES = ("array", "booktabs", "siunitx", "longtable", "graphicx")
ARTICLE = r"""
\documentclass[twocolumn]{article}
\setlength{\textwidth}{6.9in}\setlength{\columnsep}{.3in}
\usepackage{PACKAGES}
\begin{document}
\typeout{column \the\columnwidth}
TABLES
\end{document}
"""
"""An article with columns of 3.3 inches."""


def has_latex_packages() -> bool:
    """Whether TeX finds all packages that tables use; those of pdflatex alone are not enough."""
    command = ["kpsewhich", *(f"{name}.sty" for name in LATEX_PACKAGES)]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return len(found.splitlines()) == len(LATEX_PACKAGES)


def test_latex_fits_columns_and_pages(relations: RoleTable, tmp_path: Path) -> None:
    """Tables of heads fit a column of 3.3 inches; those with a column for each role fit a page."""
    if shutil.which("pdflatex") is None or not has_latex_packages():
        pytest.skip(
            f"needs pdflatex with {', '.join(LATEX_PACKAGES)} "
            "(Debian: texlive-latex-recommended, texlive-science)"
        )
    having = relations.where("obj", only_assigned=True)
    assert 0 < len(having) < 40
    narrow = [relations.where("obj", layer=0), having, having.where("syntactic:obj:to_governor")]
    pages = [table.export("latex").decode() for table in narrow]
    assert all(r"\begin{table}" in page for page in pages)
    pages += [
        relations.export("latex", view).decode() for view in ("answers", "colocation", "wide")
    ]
    long = relations.export("latex").decode()
    assert r"\begin{longtable}" in long
    pages.append(f"\\onecolumn {long}")
    tables = "\\clearpage\n".join(pages)
    article = ARTICLE.replace("PACKAGES", ",".join(LATEX_PACKAGES)).replace("TABLES", tables)
    (tmp_path / "page.tex").write_text(article.strip())
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-2000:]
    assert "column 238.4" in made.stdout  # 3.3 inches of 72.27 points
    assert not re.findall("Overfull.*", made.stdout)


def test_a_table_with_a_column_for_each_role_fits_a_plain_article(tmp_path: Path) -> None:
    """19 roles, as of the default relations, under upright headers in the 4.8 inches of article."""
    if shutil.which("pdflatex") is None or not has_latex_packages():
        pytest.skip("needs pdflatex, as the test above")
    roles = [*(f"head to role {n}" for n in range(18)), "xxxxxxxxxxxxxxxxxxxxxx of role"]
    counts = {role: [31 if n < 4 else 7] * len(roles) for n, role in enumerate(roles)}
    frame = pd.DataFrame({"role": roles, **counts})
    tables = latex_table(frame)
    article = ARTICLE.replace("PACKAGES", ",".join(LATEX_PACKAGES)).replace("TABLES", tables)
    plain = article.replace("[twocolumn]", "").replace(r"\setlength{\textwidth}{6.9in}", "")
    (tmp_path / "page.tex").write_text(plain.strip())
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-2000:]
    assert "column 345.0" in made.stdout
    assert not re.findall("Overfull.*", made.stdout)


def test_latex_numbers_of_a_column_have_the_same_decimals() -> None:
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
        r"\begin{tabular}{@{}lS[table-format=-2.1]S[table-format=3.0]S[table-format=1.3]l"
        r"S[table-format=1.7]@{}}"
    ) in content
    header, *rows = cells(content)
    assert header == ["{head}", "{effect}", "{needed}", r"{p\_value}", "{flag}", "{tiny}"]
    assert rows == [
        ["0-0", "-0.0", "108", r"{$<$.001}", "x", "0.0000250"],
        ["0-1", "12.5", r"{$\infty$}", "0.043", "", "0.0000100"],
        ["0-2", "", "4", "1.000", "x", "0.0000000"],
    ]


def test_papers_get_names_values_answers_or_else_intervals(relations: RoleTable) -> None:
    rows = relations.where("obj", layer=0)
    header, first, *_ = cells(rows.export("latex").decode())
    mean = r"{\shortstack[r]{mean\\(times\\uniform)}}"
    assert header[:4] == ["{head}", "{role}", mean, "{answer}"]
    assert "{interval}" not in header
    numbers = rows.frame.nlargest(1, "beyond_distance").iloc[0]
    words = relations.in_words(numbers["role"]).replace("->", r"$\rightarrow$")
    assert first[:3] == [f"0-{numbers['head']}", words, f"{numbers['mean']:.2f}"]
    having = rows.where(only_assigned=True)
    header, first, *_ = cells(having.export("latex").decode())
    its = r"{\shortstack[r]{its\\interval}}"
    assert header == ["{head}", "{role}", mean, r"{\shortstack[r]{beyond\\distance}}", its]
    best = having.frame.nlargest(1, "beyond_distance").iloc[0]
    assert first[0] == f"{best['layer']}-{best['head']}"
    assert first[3:] == [
        f"{best['beyond_distance']:.2f}",
        f"{{[}}{best['beyond_low']:.2f}, {best['beyond_high']:.2f}]",
    ]
    without_answers = for_paper(rows.frame.drop(columns="answer"))
    assert [*without_answers][2:5] == ["mean", "beyond_distance", "its_interval"]
    assert "{role}" not in rows.where("syntactic:obj:to_governor").export("latex").decode()


def test_latex_has_caption_and_label(relations: RoleTable) -> None:
    content = relations.export("latex", "answers", caption="50% of heads", label="tab:a b").decode()
    assert r"\caption{50\% of heads}" in content
    assert r"\label{tab:a-b}" in content
    assert r"\label{tab:role-table}" in relations.export("latex", "answers").decode()
    empty = pd.DataFrame({"role": pd.Series([], dtype=str)})
    assert r"\begin{tabular}{@{}l@{}}" in latex_table(empty)
    # A name never begins the height of a row.
    content = latex_table(pd.DataFrame({"word": ["[CLS]", "[SEP]"]}))
    assert not re.search(r"^\[", content, re.M)
