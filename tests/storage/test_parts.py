"""Parts of long work: whole or not at all, of one plan, and there until the work is done."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from headroles.errors import StorageError
from headroles.storage import (
    HIDDEN,
    Parts,
    changed_folder,
    differences,
    parts_beside,
    result_folder,
    write_run,
)
from tests.storage.made import names

PLAN = {"model": {"name": "a", "layers": 2}, "window": 3}


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path / "out" / HIDDEN / "parts")


class TestParts:
    def test_are_read_as_they_were_written(self, parts: Parts) -> None:
        opened = parts.open(PLAN)
        opened.write(7, b"seven")
        again = parts.open(PLAN)
        assert (7 in again, 8 in again) == (True, False)
        assert again.read(7, bytes) == b"seven"
        assert parts.count == 1
        assert parts.open(PLAN, is_first=False) == again
        with pytest.raises(StorageError, match="other settings than the first one: window was 3"):
            parts.open({**PLAN, "window": 4}, is_first=False)

    def test_a_damaged_one_is_refused(self, parts: Parts) -> None:
        opened = parts.open(PLAN)
        opened.write(0, b"zero")
        file = opened.folder / "part-0"
        for content in (file.read_bytes()[:-1], b""):
            file.write_bytes(content)
            with pytest.raises(StorageError, match=r"part-0 .*it is damaged, .*; remove"):
                opened.read(0, bytes)
        with pytest.raises(StorageError, match=r"part-1 cannot be read .*No such file"):
            opened.read(1, bytes)
        opened.write(2, b"two")
        with pytest.raises(StorageError, match=r"part-2 cannot be read .invalid literal"):
            opened.read(2, int)

    def test_a_plan_that_cannot_be_read(self, parts: Parts) -> None:
        parts.open(PLAN).write(3, b"three")
        for content in ("{", '{"window": NaN}'):
            (parts.place / "plan.json").write_text(content)
            with pytest.raises(StorageError, match=r"cannot be read; run .* with --no-resume"):
                parts.open(PLAN)

    def test_one_that_was_renamed_or_is_of_another_plan_is_refused(self, parts: Parts) -> None:
        opened, other = parts.open(PLAN), parts.within("b").open({**PLAN, "model": "b"})
        for number in (0, 1):
            opened.write(number, b"content of %d" % number)
        other.write(0, b"of another model")
        first, second = (opened.folder / f"part-{number}" for number in (0, 1))
        kept = first.read_bytes()
        for foreign in (second, other.folder / "part-0"):
            first.write_bytes(foreign.read_bytes())
            with pytest.raises(StorageError, match=r"part-0 .*it is damaged, or belongs to"):
                opened.read(0, bytes)
        first.write_bytes(kept)
        assert opened.read(0, bytes) == b"content of 0"

    def test_another_plan_is_refused_by_name(self, parts: Parts) -> None:
        parts.open(PLAN).write(0, b"zero")
        with pytest.raises(
            StorageError, match="has other settings: window was 3 and is 4; run it with"
        ):
            parts.open({**PLAN, "window": 4})
        parts.remove()
        assert parts.count == 0
        parts.open({**PLAN, "window": 4})


def test_differences_are_named_one_by_one() -> None:
    before = {"a": {"b": 1, "c": "x" * 100}, "d": [1], "e": None}
    after = {"a": {"b": 2, "c": "y" * 100}, "d": [1, 2], "f": 0}
    message = differences(before, after)
    assert message.startswith("a b was 1 and is 2, a c was ")
    assert "d was [1] and is [1, 2], e was null and is missing, and 1 more" in message
    assert differences(before, before) == ""


def interrupted(folder: Path, resume: bool | None = None, overwrite: bool = False) -> str:
    """Return the message of a run that saves a part and is interrupted."""
    with pytest.raises(KeyboardInterrupt) as stopped:
        save_a_part(folder, KeyboardInterrupt(), resume, overwrite)
    return str(stopped.value)


def save_a_part(
    folder: Path,
    end: BaseException,
    resume: bool | None = None,
    overwrite: bool = False,
    n_parts: int = 1,
) -> None:
    with result_folder(folder, overwrite, resume) as staging:
        opened = parts_beside(staging).open(PLAN)
        for number in range(n_parts):
            opened.write(number, b"zero")
        raise end


class TestFolder:
    def test_says_which_parts_are_saved_and_how_to_continue(self, tmp_path: Path) -> None:
        message = interrupted(tmp_path)
        assert message == (
            f"the finished work is saved in {tmp_path}; to continue, run the same command with "
            "--resume"
        )

    def test_older_results_stay_beside_the_parts(self, tmp_path: Path) -> None:
        with result_folder(tmp_path) as staging:
            write_run(staging, {"run": "old"}, {})
        message = interrupted(tmp_path, overwrite=True)
        assert message.startswith(f"the results in {tmp_path} are unchanged, and the fin")
        with changed_folder(tmp_path) as staging:
            write_run(staging, {"run": "changed"}, {})
        with result_folder(tmp_path, overwrite=True, resume=True) as staging:
            assert parts_beside(staging).open(PLAN).read(0, bytes) == b"zero"

    def test_an_error_tells_too(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError) as failed:
            save_a_part(tmp_path, StorageError("no room"))
        assert failed.value.__notes__[0].endswith("run the same command with --resume")
        with pytest.raises(StorageError, match="cannot be written: No space left") as failed:
            save_a_part(tmp_path, OSError(errno.ENOSPC, "No space left on device"), resume=True)
        assert failed.value.__notes__[0].endswith("run the same command with --resume")

    def test_an_unfinished_run_is_refused_without_resume_or_no_resume(self, tmp_path: Path) -> None:
        interrupted(tmp_path)
        message = "the work of an unfinished run; .* --resume, to start anew with --no-resume"
        with pytest.raises(StorageError, match=message):
            save_a_part(tmp_path, ValueError(), overwrite=True)
        with result_folder(tmp_path, resume=False) as staging:
            assert parts_beside(staging).count == 0
        interrupted(tmp_path)
        with result_folder(tmp_path, resume=True) as staging:
            assert parts_beside(staging).count == 1
            write_run(staging, {}, {})
        assert names(tmp_path) == {"run.json"}

    def test_without_parts_nothing_can_be_continued(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt, match="nothing was written"):
            save_a_part(tmp_path / "out", KeyboardInterrupt(), n_parts=0)
        assert names(tmp_path) == set()
