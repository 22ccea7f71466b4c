"""The role table in the formats that programs and people read."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headroles import RoleTable, assign_roles
from headroles.results.formats import FORMATS
from headroles.role_names import in_words
from headroles.storage import plain
from tests.conftest import make_scores

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
    [("long", None), ("wide", None), *(("wide", v) for v in ("answer", "p_value", "assigned"))],
)
class TestRoundTrip:
    def test_csv(self, table: RoleTable, view: str, value: str | None) -> None:
        assert_same(read_csv(table.export("csv", view, value)), frame_of(table, view, value))

    def test_parquet(self, table: RoleTable, view: str, value: str | None) -> None:
        content = table.export("parquet", view, value)
        read = pq.read_table(pa.BufferReader(content)).to_pandas()
        pd.testing.assert_frame_equal(read, frame_of(table, view, value), check_exact=True)

    def test_json(self, table: RoleTable, view: str, value: str | None) -> None:
        content = json.loads(
            table.export("json", view, value), parse_constant=lambda name: pytest.fail(name)
        )
        frame = frame_of(table, view, value)
        assert_same(pd.DataFrame(content["rows"], columns=list(frame.columns)), frame)


def frame_of(table: RoleTable, view: str, value: str | None = None) -> pd.DataFrame:
    if view == "long":
        return table.frame
    return table.wide() if value is None else table.wide(value)


def test_json_has_null_for_what_is_missing_and_true_for_what_is_assigned(table: RoleTable) -> None:
    rows = json.loads(table.export("json"))["rows"]
    untested = [row for row in rows if row["role"] == ROLES[2]]
    assert {row["p_value"] for row in untested} == {None}
    assert {row["assigned"] for row in rows} == {True, False}


def test_the_record_goes_along(table: RoleTable) -> None:
    metadata = pq.read_schema(pa.BufferReader(table.export("parquet"))).metadata
    assert json.loads(table.export("json"))["record"] == plain(table.record)
    kept = json.loads(metadata[b"headroles"])
    scored = kept["sources"]["scores"]
    assert scored["model"]["model"] == MODEL["model"]
    assert not {"created", "command"} & {*kept, *scored}


@pytest.mark.parametrize("view", ["long", "wide"])
def test_html_escapes_names(table: RoleTable, view: str) -> None:
    content = table.export("html", view).decode()
    assert "<script>" not in content
    assert "&lt;script&gt;" in content
    assert "50%_a&amp;b" in content


def test_html_escapes_notes(table: RoleTable) -> None:
    noted = RoleTable(table.frame.assign(note="<script>x</script>"), table.record)
    assert "<script>" not in noted.export("html").decode()


@pytest.mark.parametrize("view", ["long", "wide"])
def test_latex_escapes_names(table: RoleTable, view: str) -> None:
    content = table.export("latex", view).decode()
    assert r"50\%\_a\&b" in content
    assert "50%" not in content
    assert r"\begin{tabular}" in content


@pytest.mark.parametrize("view", ["answers", "colocation"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_rows_keep_their_names(table: RoleTable, fmt: str, view: str) -> None:
    content = table.export(fmt, view)
    if fmt == "csv":
        assert read_csv(content)["role"].tolist() == list(table.roles)
    elif fmt == "parquet":
        assert pq.read_table(pa.BufferReader(content)).to_pandas()["role"].tolist() == list(ROLES)
    else:
        assert (in_words("local") if fmt == "latex" else "local").encode() in content


def test_saved_and_loaded_table_exports_the_same(table: RoleTable, tmp_path: Path) -> None:
    loaded = RoleTable.load(table.save(tmp_path / "out"))
    for fmt in FORMATS:
        assert loaded.export(fmt) == table.export(fmt)


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


def test_markdown_shows_names_as_they_are(marked: RoleTable) -> None:
    lines = marked.export("markdown", "answers").decode().splitlines()
    found = [line[2:].split(" |")[0].rstrip() for line in lines[2:]]
    assert found[4:] == [
        r"\\x1b\[31mred",
        r"\*b\* \`c\` \[l\](http://x) \_e\_ \$m\$",
        r'a&lt;b>\|c"d',
        "a_b",
    ]


def test_latex_sets_names_as_they_are(marked: RoleTable) -> None:
    content = marked.export("latex", "answers").decode()
    assert r"\textbackslash{}x1b{[}31mred" in content
    assert r"*b* `c` {[}l](http://x) \_e\_ \$m\$" in content
    assert r"a\textless{}b\textgreater{}\textbar{}c''d" in content
    assert "\x1b" not in content


@pytest.mark.parametrize("fmt", ["markdown", "latex", "html"])
def test_no_format_for_people_has_control_characters(marked: RoleTable, fmt: str) -> None:
    assert "\x1b" not in marked.export(fmt).decode()
