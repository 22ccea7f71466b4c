"""Result folders that are changed whole or not at all, whatever fails."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from filelock import Timeout

from headroles import storage
from headroles.errors import StorageError
from headroles.storage import HIDDEN
from tests.commands import names
from tests.storage.made import everything, make_result


def write(folder: Path, overwrite: bool = False, end: BaseException | None = None) -> None:
    """Write a result into a folder, or half of it before the ``end``."""
    with storage.result_folder(folder, overwrite) as staging:
        (staging / "roles.csv").write_text("new")
        if end is not None:
            raise end
        make_result(staging, "new", ["roles.csv"])


class TestResultFolder:
    @pytest.mark.parametrize("place", ["out", "new/parents/out", "empty", "link", "link/out"])
    def test_appears_when_the_block_succeeds(self, tmp_path: Path, place: str) -> None:
        for name in ("empty", "real"):
            (tmp_path / name).mkdir()
        (tmp_path / "link").symlink_to("real")
        before = everything(tmp_path)
        for failure in (ValueError(), SystemExit(), KeyboardInterrupt()):
            with pytest.raises(type(failure)):
                write(tmp_path / place, end=failure)
            assert everything(tmp_path) == before
        with storage.result_folder(tmp_path / place) as staging:
            (staging / "run.json").touch()
            assert names(tmp_path / place) == {HIDDEN}
        assert names(tmp_path / place) == {"run.json"}
        assert names(tmp_path) == {"empty", "real", "link", place.split("/")[0]}
        assert (tmp_path / place).stat().st_mode & 0o777 == 0o755

    @pytest.mark.parametrize(
        ("place", "message"),
        [
            ("link", "link cannot be a folder: .* leads nowhere"),
            ("link/out", "out cannot be a folder: .* leads nowhere"),
            ("file", "file cannot be a folder"),
            ("file/out", "out cannot be a folder"),
            ("full", r"is not empty; name another one, or pass `?(overwrite=True|--overwrite)"),
            ("n" * 300, "cannot be written"),
            pytest.param(
                "closed/out",
                "cannot be written: Permission denied",
                marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere"),
            ),
        ],
    )
    def test_places_that_are_refused(self, tmp_path: Path, place: str, message: str) -> None:
        (tmp_path / "link").symlink_to("nowhere")
        (tmp_path / "file").write_text("kept")
        for name in ("full", "closed"):
            (tmp_path / name).mkdir()
        (tmp_path / "full" / "notes.txt").touch()
        (tmp_path / "closed").chmod(0o500)
        before = everything(tmp_path)
        with pytest.raises(StorageError, match=message):
            write(tmp_path / place)
        assert everything(tmp_path) == before

    @pytest.mark.parametrize("place", [".", "out", "../beside", "out/../out"])
    def test_relative_paths(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        here = tmp_path / "here"
        here.mkdir()
        monkeypatch.chdir(here)
        with storage.result_folder(place) as staging:
            (staging / "run.json").touch()
            monkeypatch.chdir("/")  # where a run is may change meanwhile
        assert names(here / place) == {"run.json"}
        assert not [name for name in names(here) | names(tmp_path) if name.startswith(".")]

    def test_belongs_to_one_run_at_a_time(self, tmp_path: Path) -> None:
        with (
            storage.result_folder(tmp_path / "out"),
            pytest.raises(StorageError, match=r"another run is writing into .*out; wait for it"),
        ):
            write(tmp_path / "out", overwrite=True)
        assert names(tmp_path) == set()
        with (
            pytest.raises(StorageError, match=r"other\.lock"),
            storage.result_folder(tmp_path / "out"),
        ):
            raise Timeout("other.lock")  # of the block, not of the folder

    def test_what_is_in_the_way_is_refused(self, tmp_path: Path) -> None:
        storage.write_run(tmp_path, {"run": "old"}, {})
        (tmp_path / "roles.csv").mkdir()
        with pytest.raises(StorageError, match=r"roles\.csv is in the way of"):
            write(tmp_path, overwrite=True)
        assert names(tmp_path) == {"run.json", "roles.csv"}
        assert storage.read_run(tmp_path).content == {"run": "old"}


Change: TypeAlias = Callable[[Path], None]
STEPS = ("rename", "replace", "link", "unlink", "rmdir", "mkdir", "fsync", "open")


@contextmanager
def fault(at: int, fail: Callable[[], None]) -> Iterator[list[str]]:
    """Let the system's ``at``-th step in files and folders fail, from 0; yield all steps."""
    made: list[str] = []

    def guarded(name: str, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        made.append(name)
        if len(made) == at + 1:
            fail()
        return step(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, partial(guarded, name, getattr(os, name)))
        yield made


def break_down() -> None:
    raise OSError(errno.EIO, "Input/output error")


def stop() -> None:
    raise KeyboardInterrupt


def replace_all(folder: Path) -> None:
    with storage.result_folder(folder, overwrite=True) as staging:
        storage.parts_beside(staging).open({}).write(0, b"zero")
        make_result(staging, "new", ["a.csv", "c.csv"])


def replace_one(folder: Path) -> None:
    with storage.changed_folder(folder) as staging:
        (staging / "c.csv").write_text("new")
        held = {**storage.read_run(folder).files, "c.csv": storage.digests_of(staging, ["c.csv"])}
        del held["b.csv"]
        storage.write_run(staging, {"run": "new"}, held)


def whole_result(folder: Path) -> str:
    """Which run the results in ``folder`` are of, all of them, as readers find them."""
    place, run = storage.committed(folder), storage.read_run(folder)
    for files in run.files.values():
        storage.check_files(place, files)
    if place == folder:
        assert names(folder) - {HIDDEN, "within"} == {"run.json", "notes.txt", *run.files}
    return run.content["run"]


@pytest.mark.parametrize("change", [replace_all, replace_one])
class TestEveryFault:
    """Whatever fails, and whenever: the old results or the new ones, whole."""

    @pytest.fixture(autouse=True)
    def without_disk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Processes end here, but not the machine: files need not reach its disk."""
        monkeypatch.setattr(os, "fsync", lambda handle: None)

    @pytest.fixture
    def copies(self, tmp_path: Path) -> Iterator[Path]:
        """Copies of a folder with old results, one for each step that fails."""
        for place in (tmp_path / "old", tmp_path / "old" / "within"):
            place.mkdir()
            make_result(place, "old", ["a.csv", "b.csv"])
            (place / "notes.txt").write_text("mine")
        return (
            shutil.copytree(tmp_path / "old", tmp_path / f"{at}" / "out")
            for at in itertools.count()
        )

    def check(self, copy: Path) -> str:
        """Return which results are found; the next run replaces them, and leaves nothing else."""
        found = whole_result(copy)
        resume = False if found == "old" else None
        with storage.result_folder(copy, overwrite=True, resume=resume) as staging:
            make_result(staging, "new", ["a.csv", "c.csv"])
        assert names(copy) == {"run.json", "notes.txt", "a.csv", "c.csv", "within"}
        assert whole_result(copy / "within") == "old"  # a folder of the user's own
        return found

    @pytest.mark.parametrize("fail", [break_down, stop])
    def test_of_a_step(
        self, copies: Iterator[Path], change: Change, fail: Callable[[], None]
    ) -> None:
        seen = Counter[str]()
        for at, copy in enumerate(copies):
            with fault(at, fail) as made:
                try:
                    change(copy)
                    said = "done"
                except (StorageError, KeyboardInterrupt) as error:
                    said = " ".join([str(error), *getattr(error, "__notes__", [])])
            if len(made) <= at:
                break
            found = self.check(copy)
            claims = {"old": "unchanged", "new": "are the new ones"}
            assert claims["old" if found == "new" else "new"] not in said
            seen[found] += 1
        assert seen["old"] > 5
        assert seen["new"] > 5

    def test_of_the_machine(self, copies: Iterator[Path], change: Change) -> None:
        seen = Counter[str]()
        for at, copy in enumerate(copies):
            child = os.fork()
            if not child:  # killed, it cleans nothing up
                with fault(at, lambda: os._exit(9)):
                    change(copy)
                    os._exit(0)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
                break
            seen[self.check(copy)] += 1
        assert seen["old"] > 5
        assert seen["new"] > 5


def test_reading_moves_nothing_also_after_a_kill(tmp_path: Path) -> None:
    """Committed results are read where they lie; the next run there puts them into place."""
    make_result(tmp_path, "old", ["a.csv", "b.csv"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headroles.storage.folders._replace", lambda *_: stop())
        with pytest.raises(KeyboardInterrupt, match="are the new ones"):
            replace_all(tmp_path)
    before = everything(tmp_path)
    assert (tmp_path / "a.csv").read_text() == "old"
    assert whole_result(tmp_path) == "new"
    assert storage.kinds_in(tmp_path) == ("a.csv", "c.csv")
    assert everything(tmp_path) == before
    with suppress(StorageError), storage.changed_folder(tmp_path):
        raise StorageError("nothing is written")
    after = everything(tmp_path)
    assert after.pop("run.json")
    assert after == {"a.csv": b"new", "c.csv": b"new"}


def test_where_files_cannot_have_two_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", lambda *_: break_down())
    make_result(tmp_path, "old", ["a.csv", "b.csv"])
    (tmp_path / "notes.txt").touch()
    for change in (replace_one, replace_all):
        change(tmp_path)
        assert whole_result(tmp_path) == "new"


def test_a_file_that_was_changed_is_not_removed(tmp_path: Path) -> None:
    """A sent folder may list files that are not of its results."""
    make_result(tmp_path, "old", ["a.csv", "b.csv", "d.csv"])
    (tmp_path / "b.csv").write_text("mine")
    replace_all(tmp_path)
    assert names(tmp_path) == {"run.json", "a.csv", "b.csv", "c.csv"}
    assert (tmp_path / "b.csv").read_text() == "mine"
