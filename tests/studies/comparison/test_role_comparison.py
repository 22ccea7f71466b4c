"""RoleComparison: what it shows, exports and stores, and where it came from."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headroles import Classification, HeadScores, RoleComparison, assign_roles, compare_roles
from headroles.errors import StorageError, UsageError
from headroles.results.formats import FORMATS
from headroles.results.stored import new_folder
from headroles.storage import RUN_FILE, plain
from headroles.studies.comparison.compare import name_sides
from headroles.studies.comparison.options import CompareOptions
from tests.conftest import flat, in_full
from tests.studies.comparison.made import make_scores, random_scores, reordered, shifted

VIEWS = RoleComparison.views
SHIFTS_CSV, SHIFTS_FILE = "comparison.csv", "comparison.parquet"


@pytest.fixture(scope="module")
def before() -> HeadScores:
    return random_scores(documents=6)


@pytest.fixture(scope="module")
def shifts(before: HeadScores) -> RoleComparison:
    """Heads gained and lost at two checkpoints, one head that stands still."""
    by = 2 * (3 - np.nanmean(before.values, axis=0))  # to the other side of the threshold
    after = shifted(before, by, noise=0.3)
    after.values[:, 0, 0] = before.values[:, 0, 0]
    found = compare_roles(before, after, shifted(after, -by, noise=0.3))
    assert found.frame.p_value.isna().any()
    return found


class TestViews:
    def test_by_status(self, shifts: RoleComparison) -> None:
        lost = shifts.with_status("lost")
        assert len(lost) == shifts.counts()["lost"].sum() > 0
        assert lost.effect_size.abs().is_monotonic_decreasing
        with pytest.raises(UsageError, match="status is 'gone'; it must be one of kept, gained"):
            shifts.with_status("gone")

    def test_unknown_view(self, shifts: RoleComparison) -> None:
        with pytest.raises(UsageError, match="view is 'heads'; it must be one of long, counts"):
            shifts.export("csv", "heads")

    def test_shows_itself(self, shifts: RoleComparison) -> None:
        shown = in_full(shifts)
        for part in ("40 examples of 6 documents that all models read", "Agreement", "Moved"):
            assert part in shown
        assert "<table" in shifts._repr_html_()

    def test_shows_what_arcs_have_to_exceed(self, before: HeadScores) -> None:
        arc = "syntactic:nsubj:to_governor"
        made = make_scores(before.values, ("local", arc, f"{arc}:beyond_offset"))
        beyond = "of arcs 0.5 beyond distance"
        assert beyond in flat(compare_roles(made, made))
        assert beyond not in flat(compare_roles(before, before))


@pytest.mark.parametrize("view", VIEWS)
class TestExport:
    def test_csv(self, shifts: RoleComparison, view: str) -> None:
        csv = io.BytesIO(shifts.export("csv", view))
        read = pd.read_csv(csv, dtype={"checkpoint": str}, float_precision="round_trip")
        expected = shifts.view(view)
        texts = [name for name in ("note", "certified") if name in read]
        read[texts] = read[texts].astype(object).fillna("")
        pd.testing.assert_frame_equal(read, expected, check_dtype=False, check_exact=True)

    def test_parquet(self, shifts: RoleComparison, view: str) -> None:
        table = pq.read_table(pa.BufferReader(shifts.export("parquet", view)))
        pd.testing.assert_frame_equal(table.to_pandas(), shifts.view(view), check_exact=True)
        noted = json.loads(table.schema.metadata[b"headroles"])
        said = plain(shifts.record)
        for one in (said, *said["sources"].values()):
            for name in ("created", "command"):
                del one[name]
        assert noted == said

    def test_json(self, shifts: RoleComparison, view: str) -> None:
        content = json.loads(
            shifts.export("json", view), parse_constant=lambda name: pytest.fail(name)
        )
        assert len(content["rows"]) == len(shifts.view(view))
        assert content["record"] == plain(shifts.record)

    @pytest.mark.parametrize("fmt", FORMATS)
    def test_every_format(self, shifts: RoleComparison, view: str, fmt: str) -> None:
        content = shifts.export(fmt, view)
        assert len(content) > 100
        assert content == shifts.export(fmt, view)


class TestFiles:
    def test_save_and_load(self, shifts: RoleComparison, tmp_path: Path) -> None:
        folder = shifts.save(tmp_path / "out")
        assert {file.name for file in folder.iterdir()} == {SHIFTS_CSV, SHIFTS_FILE, RUN_FILE}
        loaded = RoleComparison.load(folder)
        pd.testing.assert_frame_equal(loaded.frame, shifts.frame, check_exact=True)
        assert loaded.record == shifts.record
        for view in VIEWS:
            pd.testing.assert_frame_equal(loaded.view(view), shifts.view(view))

    def test_saving_twice_asks_for_overwrite(self, shifts: RoleComparison, tmp_path: Path) -> None:
        shifts.save(tmp_path)
        with pytest.raises(StorageError, match="overwrite"):
            shifts.save(tmp_path)
        shifts.save(tmp_path, overwrite=True)

    def test_scores_in_its_place_leave_no_shifts(
        self, shifts: RoleComparison, before: HeadScores, tmp_path: Path
    ) -> None:
        shifts.save(tmp_path)
        before.save(tmp_path, overwrite=True)
        assert not (tmp_path / SHIFTS_FILE).exists()
        with pytest.raises(
            StorageError, match=r"holds no comparison \(it holds: scores\); compare scores"
        ):
            RoleComparison.load(tmp_path)

    def test_no_folder_of_ours(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match=r"there is no run\.json"):
            RoleComparison.load(tmp_path)

    def test_files_of_two_comparisons(
        self, shifts: RoleComparison, before: HeadScores, tmp_path: Path
    ) -> None:
        shifts.save(tmp_path / "one")
        compare_roles(before, before).save(tmp_path / "two")
        (tmp_path / "two" / RUN_FILE).replace(tmp_path / "one" / RUN_FILE)
        with pytest.raises(StorageError, match=r"was changed after .*than run\.json"):
            RoleComparison.load(tmp_path / "one")


class TestRecord:
    def test_both_sides_and_all_options(self, shifts: RoleComparison, before: HeadScores) -> None:
        record = shifts.record
        assert list(record.sources) == ["before", "1", "2"]
        assert record.sources["before"] == before.record
        expected: dict[str, Any] = {
            "alpha": 0.05,
            "test": "t",
            "correction": "fdr_bh",
            "clusters": "auto",
            "on_mismatch": "error",
        }
        assert {key: record.options[key] for key in expected} == expected
        facts = {"threshold": 3.0, "margin": 0.5, "examples": 40, "clustered_by": "document"}
        assert {**record.facts, **facts, "n_clusters": 6} == record.facts

    def test_what_was_dropped(self, before: HeadScores) -> None:
        after = reordered(before, np.arange(30))
        shifts = compare_roles(before, after, on_mismatch="intersect")
        assert shifts.facts["dropped_examples"] == {"before": 10, "after": 0}
        assert shifts.facts["dropped_roles"] == {"before": [], "after": []}
        assert set(shifts.frame.n) <= {30, 15}

    def test_few_clusters_are_told(self, shifts: RoleComparison) -> None:
        assert any("fewer than 20 documents" in warning for warning in shifts.warnings)


def test_classifications_are_compared_by_their_scores(before: HeadScores) -> None:
    after = shifted(before, 0.5, noise=0.3)
    classified = [Classification(scores, assign_roles(scores)) for scores in (before, after)]
    expected = compare_roles(before, after).frame
    pd.testing.assert_frame_equal(compare_roles(*classified).frame, expected)


class TestFolders:
    def test_scores_are_never_replaced(
        self, shifts: RoleComparison, before: HeadScores, tmp_path: Path
    ) -> None:
        folder = before.save(tmp_path / "scores")
        held = {file.name: file.read_bytes() for file in folder.iterdir()}
        refused = pytest.raises(StorageError, match=r"holds scores, .* name another folder")
        with refused:
            shifts.save(folder, overwrite=True)
        with refused:
            new_folder(folder, [RoleComparison], overwrite=True).__enter__()
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == held

    def test_asked_before_long_work(self, shifts: RoleComparison, tmp_path: Path) -> None:
        folder = shifts.save(tmp_path / "old")
        with pytest.raises(StorageError, match="overwrite"), new_folder(folder, [RoleComparison]):
            pytest.fail("the work began")
        with new_folder(folder, [RoleComparison], overwrite=True) as staging:
            assert list(staging.iterdir()) == []


def test_names_are_those_of_the_comparison(shifts: RoleComparison) -> None:
    plain, named = CompareOptions(), CompareOptions(names="a, b")
    assert name_sides(3, plain) == tuple(shifts.record.sources) == ("before", "1", "2")
    assert name_sides(2, plain) == ("before", "after")
    assert name_sides(3, named) == ("before", "a", "b")
