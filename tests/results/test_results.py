"""Results: a new kind is a few lines, shows, saves and exports itself; records are typed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

from headroles import RoleTable, assign_roles
from headroles.errors import StorageError, UsageError
from headroles.options import Options
from headroles.record import Record, ScoreFacts
from headroles.registry import RESULTS, result_type
from headroles.results.columns import NUMBER, TEXT, Column, check_rows, declared
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.results.stored import joined_folder, write_together
from headroles.roles import SCORES, Role
from headroles.storage import RUN_FILE, digests_of, plain, read_run, write_run
from tests.commands import names
from tests.conftest import make_scores
from tests.storage.made import everything


class Cooked(TypedDict):
    """Facts of a new kind of result."""

    price: int


@dataclass(frozen=True, repr=False, eq=False)
class Recipes(Result[Options, Cooked]):
    """What a new kind of result has to say of itself."""

    kind: ClassVar[str] = "recipes"
    hint: ClassVar[str] = "cook into {folder} first"
    filename: ClassVar[str] = "recipes"
    columns: ClassVar[tuple[str, ...]] = ("dish", "minutes")
    schema: ClassVar[dict[str, Column]] = {
        "dish": Column(TEXT),
        "minutes": Column(NUMBER, gaps=True),
    }
    views: ClassVar[tuple[str, ...]] = ("long", "quick")

    def quick(self) -> pd.DataFrame:
        return self.frame[self.frame["minutes"] < 30]

    def summarize(self) -> Iterator[Shown]:
        yield f"{len(self)} recipes"
        yield Grid(("dish", "minutes"), (("soup <hot>", "20"), ("[bold]stew", "90")))
        yield Warned("stew takes long")


class Menu(Recipes):
    kind: ClassVar[str] = "menu"
    filename: ClassVar[str] = "menu"


def put_into(folder: Path, result: Result) -> None:
    """Put a result into the folder of the results that it was made from."""
    with joined_folder(folder, [type(result)]) as staging:
        write_together(staging, [result], folder)


@pytest.fixture
def recipes() -> Recipes:
    frame = pd.DataFrame({"dish": ["soup", "stew"], "minutes": [20.0, float("nan")]})
    return Recipes(frame, Record(facts={"price": 2}))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8"])
def test_columns_of_any_width_are_compared_with_their_bounds(kind: str) -> None:
    """Without a warning: bounds may be larger than any number of the type."""
    stored = pa.chunked_array([pa.array(np.array([1, 2], dtype=kind))])
    with warnings.catch_warnings(action="error"):
        Column(NUMBER).check(stored)
        with pytest.raises(ValueError, match="2 is not between 0 and 1"):
            Column(NUMBER, least=0, most=1).check(stored)


def test_comes_back_as_it_was_saved(recipes: Recipes, tmp_path: Path) -> None:
    again = Recipes.load(recipes.save(tmp_path / "out"))
    assert_frame_equal(again.frame, recipes.frame)
    assert again.record == recipes.record
    assert names(tmp_path / "out") == {RUN_FILE, "recipes.csv", "recipes.parquet"}


def test_a_result_goes_beside_what_it_was_made_from(recipes: Recipes, tmp_path: Path) -> None:
    recipes.save(tmp_path)
    for price in (3, 4):
        put_into(tmp_path, Menu(recipes.frame[: price - 2], Record(facts={"price": price})))
    assert len(Menu.load(tmp_path)) == 2
    assert Menu.load(tmp_path).facts == {"price": 4}
    assert len(Recipes.load(tmp_path)) == 2


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_nothing_is_replaced_unless_all_is_written(
    recipes: Recipes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nth: int,
    failure: type[BaseException],
) -> None:
    before = everything(recipes.save(tmp_path / "out"))
    write, written = Path.write_bytes, []

    def fail(file: Path, content: bytes) -> int:
        written.append(file)
        if len(written) == nth:
            raise failure
        return write(file, content)

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises((StorageError, KeyboardInterrupt)):
        put_into(tmp_path / "out", replace(recipes, frame=recipes.frame[:1]))
    assert len(written) == nth
    assert everything(tmp_path / "out") == before


@pytest.mark.parametrize("name", ["recipes.parquet", "recipes.csv"])
def test_changed_files_are_refused(recipes: Recipes, tmp_path: Path, name: str) -> None:
    recipes.save(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b" ")
    with pytest.raises(StorageError, match=f"{name} was changed after headroles wrote it"):
        Recipes.load(tmp_path)


def test_views(recipes: Recipes) -> None:
    assert recipes.view() is recipes.frame
    assert recipes.view("quick")["dish"].tolist() == ["soup"]
    assert recipes.export("csv", view="quick") == b"dish,minutes\nsoup,20.0\n"
    assert recipes.export("csv", columns=["minutes", "dish"]) == b"minutes,dish\n20.0,soup\n,stew\n"
    with pytest.raises(UsageError, match="no column 'dich'; did you mean 'dish'"):
        recipes.export("csv", columns=["dich"])
    with pytest.raises(UsageError, match="the view is 'slow'; it must be one of long, quick"):
        recipes.view("slow")
    with pytest.raises(UsageError, match="value chooses the cells of a wide table"):
        recipes.view("quick", value="minutes")


def test_full_text_has_the_first_rows_of_long_tables_and_no_empty_ones(recipes: Recipes) -> None:
    dishes = [f"soup{k}" for k in range(70)]
    many = replace(recipes, frame=pd.DataFrame({"dish": dishes, "minutes": 90.0}))
    vars(many)["shown"] = [Grid(("dish",), tuple((dish,) for dish in dishes))]  # is no table's
    lines = many.in_full().splitlines()
    assert [line.split()[0] for line in lines if line[:4] == "soup"] == dishes + dishes[:60]
    assert "10 more rows; see headroles export DIR --view long." in lines
    assert ("Long" in lines, "Quick" in lines) == (True, False)


def test_shows_itself_as_text_also_in_a_notebook_and_as_html(
    recipes: Recipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, html = repr(recipes), recipes._repr_html_()
    *shown, go_on = text.splitlines()
    assert go_on.startswith("Go on with .frame")
    assert [line.split() for line in shown] == [
        ["2", "recipes"],
        ["dish", "minutes"],
        ["soup", "<hot>", "20"],
        ["[bold]stew", "90"],
        ["warning:", "stew", "takes", "long"],
    ]
    assert "soup &lt;hot&gt;" in html
    assert "<hot>" not in html
    assert recipes.warnings == ("stew takes long",)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert repr(recipes) == text


def test_a_wide_table_has_a_row_for_each_head_also_without_values() -> None:
    none = float("nan")
    rows = [(1, 0, "self", none), (0, 2, "self", 2.0), (1, 0, "local", none), (0, 2, "local", 3.0)]
    long = pd.DataFrame(rows, columns=["layer", "head", "role", "mean"])
    wide = pd.DataFrame({"layer": [0, 1], "head": [2, 0], "self": [2, none], "local": [3, none]})
    assert_frame_equal(RoleTable(long).wide("mean"), wide)


@pytest.mark.parametrize("layer", [0, "0", np.int64(0), [0], ("0",)])
def test_layers_are_named_by_number_or_text(layer: Any) -> None:
    for layers in ([0, 1], ["0", "all"]):
        found = Recipes(pd.DataFrame({"layer": layers})).where(layer=layer)
        assert found.frame["layer"].tolist() == layers[:1]


def test_a_star_stands_for_anything() -> None:
    roles = ["local", "syntactic:any:to_governor", "syntactic:obj:to_governor", "position:+1"]
    table = RoleTable(pd.DataFrame({"role": roles, "layer": range(4)}))
    for asked, expected in (
        ("syntactic*", roles[1:3]),
        ("syntactic:obj*", roles[2:3]),
        (["syntactic:any:to_governor", "*+1"], [roles[1], roles[3]]),
        ("*", roles),
    ):
        assert table.where(role=asked).frame["role"].tolist() == expected
    with pytest.raises(UsageError, match="there is no role 'block"):
        table.where(role="block*")


def forged(table: RoleTable, folder: Path, **changes: Any) -> Path:
    """A folder whose digests fit the table that somebody changed."""
    return replace(table, frame=table.frame.assign(**changes)).save(folder)


class TestForgedTables:
    @pytest.fixture
    def table(self) -> RoleTable:
        values = np.random.default_rng(0).gamma(9, 0.35, (12, 2, 2, 1))
        return assign_roles(make_scores(values, ["local"]))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"threshold": np.nan}, "column threshold: values are missing"),
            ({"p_value": 1.5}, "column p_value: 1.5 is not between 0 and 1"),
            ({"mean": "high"}, r"column mean: it holds \w*string instead of numbers"),
            ({"role": 3}, "column role: it holds int64 instead of text"),
            ({"answer": "perhaps"}, "column answer: it holds texts other than 'yes', 'pos"),
            ({"n": -1}, "column n: -1 is not between 0 and"),
            ({"layer": [0, 0, 7, 7]}, "column layer: 7 is not between 0 and 1"),
            ({"layer": [0.5, 0.5, 1, 1]}, "column layer: it holds double instead of whole numbers"),
            ({"mean": np.inf}, "column mean: inf is not between"),
            ({"head": 0}, "two rows are of the same role, layer, head"),
            (
                {"assigned": lambda rows: ~rows["assigned"]},
                "assigned says whether answer is yes, but a row has assigned ",
            ),
            ({"mean": 99.0}, "mean lies in the middle of ci_low and ci_high, but a row has "),
            ({"ci_low": np.nan}, "a row has both ci_low and ci_high, or none"),
            ({"n": 0}, "n_clusters is at most n"),
            ({"n": 0, "n_clusters": 0}, "mean takes 1 or more of n"),
            ({"p_adjusted": 0.0}, "p_value is at most p_adjusted"),
            ({"p_value": 0.0, "p_adjusted": 0.0}, "answer is yes where p_adjusted is at most"),
            ({"threshold": 100.0}, "effect_size follows from mean and sd and threshold"),
            ({"df": 500.0}, "df follows from df and n_clusters"),
        ],
    )
    def test_are_refused(
        self, table: RoleTable, tmp_path: Path, changes: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(StorageError, match=message):
            RoleTable.load(forged(table, tmp_path / "out", **changes))

    def test_lacking_rows_and_another_csv_file_are_refused(
        self, table: RoleTable, tmp_path: Path
    ) -> None:
        replace(table, frame=table.frame.drop(index=2)).save(tmp_path / "out")
        with pytest.raises(StorageError, match="it has 3 rows for 4 combinations of role, layer"):
            RoleTable.load(tmp_path / "out")
        folder = table.save(tmp_path / "other")
        copy = folder / "roles.csv"
        copy.write_text(copy.read_text().replace(",local,", ",self,", 1))
        run = read_run(folder)
        files = {"role table": digests_of(folder, ["roles.csv", "roles.parquet"])}
        write_run(folder, run.content, files)
        with pytest.raises(StorageError, match=r"roles\.csv and roles\.parquet in .* differ"):
            RoleTable.load(folder)

    def test_parts_of_tables_are_read(self, tmp_path: Path) -> None:
        values = np.random.default_rng(0).gamma(9, [[0.7], [0.1]], (12, 2, 2))
        table = assign_roles(make_scores(values[..., None], ["local"]))
        parts = {"layer": table.where(layer=1), "assigned": table.where(only_assigned=True)}
        for name, part in parts.items():
            assert len(part) < len(table)
            assert RoleTable.load(part.save(tmp_path / name)) == part

    def test_texts_that_are_no_utf8_are_refused(self, table: RoleTable, tmp_path: Path) -> None:
        file = table.save(tmp_path / "out") / "roles.parquet"
        stored = pq.read_table(file)
        wrong = pa.array([b"\xed\xa0\x80"] * len(stored), pa.binary()).view(pa.string())
        place = stored.column_names.index("note")
        pq.write_table(stored.set_column(place, "note", wrong), file)
        run = read_run(file.parent)
        write_run(file.parent, run.content, {"role table": digests_of(file.parent, [file.name])})
        with pytest.raises(StorageError, match=r"roles\.parquet cannot be read: .*UTF8"):
            RoleTable.load(file.parent)

    @pytest.mark.parametrize(
        ("said", "message"),
        [
            ({"model": {"removed_heads": None}}, "got 'null' - at '$.model.removed_heads'"),
            ({"model": {"layers": []}}, "Expected 'int', got 'array' - at '$.model.layers'"),
            ({"facts": {}}, "missing required field"),
            ({"options": None}, "Expected 'object', got 'null' - at '$.options'"),
            ({"oven": 3}, "Object contains unknown field 'oven'"),
            ({"model": {"oven": 3}}, "Object contains unknown field 'oven' - at '$.model'"),
        ],
    )
    def test_records_of_another_form_are_refused(
        self, table: RoleTable, tmp_path: Path, said: dict[str, Any], message: str
    ) -> None:
        folder = table.save(tmp_path / "out")
        run = read_run(folder)
        write_run(folder, {"role table": run.content["role table"] | said}, run.files)
        with pytest.raises(StorageError, match=message.replace("$", r"\$")):
            RoleTable.load(tmp_path / "out")

    def test_one_that_nobody_changed_is_read_if_it_has_rows(
        self, table: RoleTable, tmp_path: Path
    ) -> None:
        assert RoleTable.load(forged(table, tmp_path / "out")) == table
        replace(table, frame=table.frame[:0]).save(tmp_path / "none")
        with pytest.raises(StorageError, match=r"roles\.parquet: it has no rows; test scores with"):
            RoleTable.load(tmp_path / "none")


def test_every_column_of_every_table_is_declared() -> None:
    for kind in map(result_type, RESULTS):
        assert all(name in kind.schema or declared(name) for name in kind.columns)
    with pytest.raises(LookupError, match="no column is called minutes; say in `schema`"):
        declared("minutes")


def test_rows_that_a_table_lacks_are_named() -> None:
    frame = pd.DataFrame({"task": ["a", "a", "b"], "set": ["x", "y", "x"]})
    check_rows(frame[:2], {("task",): [("a",)], ("set",): []})
    with pytest.raises(ValueError, match="it has 3 rows for 4 combinations of task, set"):
        check_rows(frame, {("task",): [], ("set",): []})
    with pytest.raises(ValueError, match="it has no row of task and set"):
        check_rows(frame, {("task", "set"): [("b", "y")]})


SCORED: dict[str, Any] = {"score": "bias", "roles": [], "scores": 4}


def test_every_score_and_every_piece_of_a_role_is_recorded() -> None:
    for name in SCORES:
        assert ScoreFacts.read({**SCORED, "score": name}).score == name
    role = Role("local", unit="tokens", thresholds={"bias": 2.0})
    written = plain(role.to_record())
    expected = {"id": "local", "unit": "tokens", "thresholds": {"bias": 2}, "words": "local"}
    assert written == expected
    (recorded,) = ScoreFacts.read({**SCORED, "roles": [written]}).roles
    assert Role.from_record(recorded) == role


@pytest.mark.parametrize(
    ("form", "content", "message"),
    [
        (Record, {"model": {"layers": 10**6, "heads": 2}}, "1000000 layers of 2 heads"),
        (Record, {"corpus": {"examples": -1}}, r"\$.corpus.examples"),
        (ScoreFacts, {**SCORED, "score": "best"}, r"Invalid enum value 'best' - at `\$.score`"),
        (ScoreFacts, {**SCORED, "roles": [{"id": "a"}] * 2}, "two roles of one id"),
        (ScoreFacts, {**SCORED, "roles": [{"id": "a", "sieve": "print"}]}, "field `sieve`"),
    ],
)
def test_invalid_records_are_refused(form: Any, content: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        form.read(content)


def test_records_are_read_back() -> None:
    source = Record.now(kind="scores", options={"relations": ["obj"], "seed": None})
    record = Record.now(kind="power", facts={"offsets": (1, 2)}, sources={"pilot": source})
    assert record.created
    assert Record.read(plain(record)) == record
