"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headroles.errors import StorageError
from headroles.storage import (
    HIDDEN,
    changed_folder,
    check_files,
    check_result_folder,
    committed,
    digests_of,
    encode_json,
    kinds_in,
    open_regular,
    parts_beside,
    read_json,
    read_run,
    read_table,
    result_folder,
    whole_file,
    write_bytes,
    write_json,
    write_run,
)

FAILURES = [ValueError, KeyboardInterrupt, SystemExit]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def everything(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder."""
    return {
        str(place.relative_to(folder)): place.read_bytes() if place.is_file() else None
        for place in folder.rglob("*")
    }


def fail(draft: Path, failure: type[BaseException]) -> None:
    """What happens to a writer that is half done."""
    draft.write_text("half")
    raise failure


class TestWholeFile:
    def test_appears_when_the_block_succeeds(self, tmp_path: Path) -> None:
        with whole_file(tmp_path / "a.txt") as draft:
            draft.write_text("new")
            assert not (tmp_path / "a.txt").exists()
        assert names(tmp_path) == {"a.txt"}
        assert (tmp_path / "a.txt").read_text() == "new"

    @pytest.mark.parametrize("before", [{}, {"a.txt": b"old"}], ids=["nothing", "a file"])
    @pytest.mark.parametrize("failure", FAILURES)
    def test_a_failure_changes_nothing(
        self, tmp_path: Path, failure: type[BaseException], before: dict[str, bytes]
    ) -> None:
        for name, content in before.items():
            (tmp_path / name).write_bytes(content)
        with pytest.raises(failure), whole_file(tmp_path / "a.txt") as draft:
            fail(draft, failure)
        assert everything(tmp_path) == before

    def test_an_earlier_file_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("old and longer")
        write_bytes(tmp_path / "a.txt", b"new")
        assert (tmp_path / "a.txt").read_bytes() == b"new"

    @pytest.mark.parametrize("place", ["missing/a.txt", "file/a.txt", "n" * 300, "folder"])
    def test_a_place_that_cannot_be_written(self, tmp_path: Path, place: str) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir()
        with pytest.raises(StorageError, match=rf"{place} cannot be written"):
            write_bytes(tmp_path / place, b"")
        assert names(tmp_path) == {"file", "folder"}


class TestRegularFiles:
    @pytest.mark.parametrize("name", ["pipe", "link", "device"])
    def test_others_are_refused_at_once(self, tmp_path: Path, name: str) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "link").symlink_to("pipe")
        (tmp_path / "device").symlink_to("/dev/zero")
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(tmp_path / name)

    def test_files_and_links_to_them_are_read(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("text")
        (tmp_path / "link").symlink_to("a.txt")
        with open_regular(tmp_path / "link") as stream:
            assert stream.read() == b"text"
        for missing in (".", "missing"):
            with pytest.raises(OSError, match=r"\[Errno"):
                open_regular(tmp_path / missing)


class TestJson:
    def test_round_trip(self, tmp_path: Path) -> None:
        content = {"name": "Köln", "numbers": [1, 2.5, None]}
        write_json(tmp_path / "a.json", content)
        assert read_json(tmp_path / "a.json") == content
        assert "Köln" in (tmp_path / "a.json").read_text(encoding="utf-8")

    def test_file_names_that_are_not_utf8(self) -> None:
        content = {"file": os.fsdecode(b"caf\xe9.conllu")}
        assert json.loads(encode_json(content)) == content

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, r"no run\.json in .*; name a folder that headroles wrote"),
            (b"", r"run\.json cannot be read"),
            (b"{", r"run\.json cannot be read"),
            (b"\xff\xfe", r"run\.json cannot be read"),
            (b"[1]", r"run\.json is not a JSON object"),
        ],
    )
    def test_defects(self, tmp_path: Path, content: bytes | None, message: str) -> None:
        if content is not None:
            (tmp_path / "run.json").write_bytes(content)
        with pytest.raises(StorageError, match=message):
            read_json(tmp_path / "run.json")


class TestRun:
    """What a result folder says of itself."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "scores.parquet").write_text("scores")
        files = {"scores": digests_of(tmp_path, ["scores.parquet"])}
        write_run(tmp_path, {"model": "m"}, files)
        return tmp_path

    def test_round_trip(self, folder: Path) -> None:
        run = read_run(folder)
        assert run.content == {"model": "m"}
        assert kinds_in(folder) == tuple(run.files) == ("scores",)
        check_files(folder, run.files["scores"])

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"{}", "has format None, this version reads 3; score again"),
            (b'{"format": 99, "holds": {}}', "has format 99, this version reads 3"),
            (b'{"format": 2, "holds": {}}', "has format 2, this version reads 3; score again"),
            (b'{"format": 3}', "was changed after headroles wrote it"),
            (b'{"format": 3, "digest": "0"}', "was changed after headroles wrote it"),
        ],
    )
    def test_defects(self, tmp_path: Path, content: bytes, message: str) -> None:
        (tmp_path / "run.json").write_bytes(content)
        with pytest.raises(StorageError, match=message):
            read_run(tmp_path)

    def test_every_change_of_the_run_file_is_found(self, folder: Path) -> None:
        content = json.loads((folder / "run.json").read_text())
        for key in content:
            (folder / "run.json").write_text(json.dumps({**content, key: "other"}))
            with pytest.raises(StorageError, match=r"run\.json"):
                read_run(folder)
        (folder / "run.json").write_text(json.dumps({**content, "new": 1}))
        with pytest.raises(StorageError, match=r"run\.json was changed after headroles wrote it"):
            read_run(folder)

    @pytest.mark.parametrize("content", ["", "[]", '{"format": 2, "holds": 3}', "{}"])
    def test_a_folder_that_says_nothing_holds_nothing(self, tmp_path: Path, content: str) -> None:
        assert kinds_in(tmp_path) == ()
        (tmp_path / "run.json").write_text(content)
        assert kinds_in(tmp_path) == ()

    def test_a_changed_file_is_named(self, folder: Path) -> None:
        (folder / "scores.parquet").write_text("scored")
        with pytest.raises(StorageError, match=r"scores\.parquet was changed after"):
            check_files(folder, read_run(folder).files["scores"])
        (folder / "scores.parquet").unlink()
        with pytest.raises(StorageError, match=r"there is no scores\.parquet in"):
            check_files(folder, read_run(folder).files["scores"])

    def test_names_that_lead_elsewhere_are_not_followed(self, tmp_path: Path) -> None:
        """A run file made by others must not make us remove what is not ours."""
        (tmp_path / "precious").touch()
        folder = tmp_path / "out"
        folder.mkdir()
        write_run(folder, {}, {"scores": {"../precious": ""}})
        with result_folder(folder, overwrite=True) as staging:
            write_run(staging, {}, {})
        assert names(tmp_path) == {"out", "precious"}

    def test_files_are_added(self, folder: Path) -> None:
        (folder / "notes.txt").touch()
        with changed_folder(folder) as staging:
            (staging / "roles.csv").write_text("new")
            held = {**read_run(folder).files, "roles": digests_of(staging, ["roles.csv"])}
            write_run(staging, {"more": 1}, held)
            assert names(folder) > {"scores.parquet", "run.json", "notes.txt"}
            assert not (folder / "roles.csv").exists()
        assert names(folder) == {"scores.parquet", "run.json", "notes.txt", "roles.csv"}
        assert read_run(folder).content == {"more": 1}


class TestTable:
    @pytest.mark.parametrize("kept", [0, 3, 50, -1])
    def test_damaged(self, tmp_path: Path, kept: int) -> None:
        file = tmp_path / "a.parquet"
        pq.write_table(pa.table({"n": range(1000)}), file)
        file.write_bytes(file.read_bytes()[:kept])
        with pytest.raises(StorageError, match=r"a\.parquet cannot be read: .*score again"):
            read_table(file)


class TestResultFolder:
    @pytest.mark.parametrize("place", ["out", "new/parents/out", "empty", "link", "link/out"])
    def test_appears_when_the_block_succeeds(self, tmp_path: Path, place: str) -> None:
        for name in ("empty", "real"):
            (tmp_path / name).mkdir()
        (tmp_path / "link").symlink_to("real")
        with result_folder(tmp_path / place) as staging:
            (staging / "run.json").touch()
            assert names(tmp_path / place) == {HIDDEN}
        assert names(tmp_path / place) == {"run.json"}
        assert names(tmp_path) == {"empty", "real", "link", place.split("/")[0]}
        assert (tmp_path / place).stat().st_mode & 0o777 == 0o755

    @pytest.mark.parametrize("failure", FAILURES)
    @pytest.mark.parametrize("place", ["out", "new/parents/out"])
    def test_nothing_is_left_behind(
        self, tmp_path: Path, place: str, failure: type[BaseException]
    ) -> None:
        with pytest.raises(failure), result_folder(tmp_path / place) as staging:
            fail(staging / "run.json", failure)
        assert names(tmp_path) == set()

    @pytest.mark.parametrize("within", ["", "out"])
    def test_a_link_that_leads_nowhere_is_reported(self, tmp_path: Path, within: str) -> None:
        (tmp_path / "link").symlink_to("nowhere")
        with (
            pytest.raises(StorageError, match=r"link.* cannot be a folder: .* leads nowhere"),
            result_folder(tmp_path / "link" / within),
        ):
            pytest.fail("the block must not run")
        assert names(tmp_path) == {"link"}

    def test_a_folder_with_files_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").touch()
        with (
            pytest.raises(StorageError, match=r"is not empty.*overwrite=True"),
            result_folder(tmp_path),
        ):
            pytest.fail("the block must not run")
        assert names(tmp_path) == {"notes.txt"}

    @pytest.mark.parametrize("place", ["file", "file/out"])
    def test_a_file_in_the_way(self, tmp_path: Path, place: str) -> None:
        (tmp_path / "file").write_text("kept")
        with pytest.raises(StorageError, match="file"), result_folder(tmp_path / place, True):
            pytest.fail("the block must not run")
        assert (tmp_path / "file").read_text() == "kept"

    def test_a_name_that_no_file_system_takes(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="cannot be written"):
            check_result_folder(tmp_path / ("n" * 300))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_parent_without_permission(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(StorageError, match="cannot be written: Permission denied"):
            check_result_folder(tmp_path / "out")

    @pytest.mark.parametrize("place", [".", "out", "../beside", "out/../out"])
    def test_relative_paths(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        here = tmp_path / "here"
        here.mkdir()
        monkeypatch.chdir(here)
        with result_folder(place) as staging:
            (staging / "run.json").touch()
            monkeypatch.chdir("/")  # where a run is may change meanwhile
        assert names(here / place) == {"run.json"}
        assert not [name for name in names(here) | names(tmp_path) if name.startswith(".")]

    def test_belongs_to_one_run_at_a_time(self, tmp_path: Path) -> None:
        with (
            result_folder(tmp_path / "out"),
            pytest.raises(StorageError, match=r"another run is writing into .*out; wait for it"),
            result_folder(tmp_path / "out", overwrite=True),
        ):
            pytest.fail("the block must not run")
        assert names(tmp_path) == set()

    def test_what_is_in_the_way_is_refused(self, tmp_path: Path) -> None:
        write_run(tmp_path, {"run": "old"}, {})
        (tmp_path / "roles.csv").mkdir()

        def write() -> None:
            with result_folder(tmp_path, overwrite=True) as staging:
                (staging / "roles.csv").write_text("new")
                write_run(staging, {"run": "new"}, {})

        with pytest.raises(StorageError, match=r"roles\.csv is in the way of"):
            write()
        assert names(tmp_path) == {"run.json", "roles.csv"}
        assert read_run(tmp_path).content == {"run": "old"}

    def test_an_interruption_says_what_is_there(self, tmp_path: Path) -> None:
        for said in ("nothing was written to", "the results in .* are unchanged"):
            with pytest.raises(KeyboardInterrupt, match=said), result_folder(tmp_path, True):
                raise KeyboardInterrupt
            with result_folder(tmp_path, overwrite=True) as staging:
                write_run(staging, {}, {})

    def test_checking_leaves_nothing(self, tmp_path: Path) -> None:
        check_result_folder(tmp_path / "new" / "out")
        check_result_folder(tmp_path)
        assert names(tmp_path) == set()


STEPS = ("rename", "replace", "link", "unlink", "rmdir", "mkdir", "fsync", "open")


class Fault:
    """Lets the system's ``at``-th step in files and folders fail, from 0."""

    def __init__(self, at: int, fail: Callable[[], None]) -> None:
        self.at, self.fail, self.count = at, fail, 0

    def put_into(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in STEPS:
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.count == self.at + 1:
                self.fail()
            return step(*args, **kwargs)

        return guarded


def break_down() -> None:
    raise OSError(errno.EIO, "Input/output error")


def stop() -> None:
    raise KeyboardInterrupt


def result(folder: Path, run: str, files: Sequence[str]) -> None:
    """Two kinds of results of a run, with files of their own."""
    for name in files:
        (folder / name).write_text(run)
    write_run(folder, {"run": run}, {name: digests_of(folder, [name]) for name in files})


def replace_all(folder: Path) -> None:
    with result_folder(folder, overwrite=True) as staging:
        parts_beside(staging).open({}).write(0, b"zero")
        result(staging, "new", ["a.csv", "c.csv"])


def replace_one(folder: Path) -> None:
    with changed_folder(folder) as staging:
        (staging / "c.csv").write_text("new")
        held = {**read_run(folder).files, "c.csv": digests_of(staging, ["c.csv"])}
        del held["b.csv"]
        write_run(staging, {"run": "new"}, held)


def replace_within(folder: Path, resume: bool | None = None) -> None:
    with result_folder(folder, overwrite=True, resume=resume) as staging:
        result(staging, "new", ["a.csv", "c.csv"])
        for name in ("within", "other"):
            (staging / name).mkdir()
            result(staging / name, "new", ["a.csv", "c.csv"])


def whole_result(folder: Path) -> str:
    """Which run the results in ``folder`` are of, all of them, as readers find them."""
    place, run = committed(folder), read_run(folder)
    for files in run.files.values():
        check_files(place, files)
    if place == folder:
        own = {HIDDEN, "within", "other"}
        assert names(folder) - own == {"run.json", "notes.txt", *run.files}
    found: str = run.content["run"]
    return found


def check_within(folder: Path, change: Callable[[Path], None]) -> None:
    """Folders within are of the run that the folder is of, or refused while they are replaced."""
    found = whole_result(folder) if change is replace_within else "old"
    if found == "new" and committed(folder) != folder:
        with suppress(StorageError, AssertionError):
            assert whole_result(folder / "within") in ("old", "new")
        return
    assert whole_result(folder / "within") == found
    if found == "new":
        assert names(folder / "other") == {"run.json", "a.csv", "c.csv"}
    else:
        assert not (folder / "other").exists() or names(folder / "other") == set()


@pytest.mark.parametrize("change", [replace_all, replace_one, replace_within])
class TestEveryFault:
    """Whatever fails, and whenever: the old results or the new ones, whole."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for place in (tmp_path, tmp_path / "within"):
            place.mkdir(exist_ok=True)
            result(place, "old", ["a.csv", "b.csv"])
            (place / "notes.txt").write_text("mine")
        return tmp_path

    def check(self, copy: Path, change: Callable[[Path], None]) -> str:
        """Return which results are found; the next run replaces them, and leaves nothing else."""
        check_within(copy, change)
        found = whole_result(copy)
        replace_within(copy, resume=False if found == "old" else None)
        assert names(copy) == {"run.json", "notes.txt", "a.csv", "c.csv", "within", "other"}
        return found

    @pytest.mark.parametrize("fail", [break_down, stop])
    def test_of_a_step(
        self,
        folder: Path,
        change: Callable[[Path], None],
        fail: Callable[[], None],
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        seen = Counter[str]()
        for at in itertools.count():
            copy = shutil.copytree(folder, tmp_path_factory.mktemp("copies") / "out")
            fault = Fault(at, fail)
            with pytest.MonkeyPatch.context() as patch:
                fault.put_into(patch)
                try:
                    change(copy)
                    said = "done"
                except (StorageError, KeyboardInterrupt) as error:
                    said = " ".join([str(error), *getattr(error, "__notes__", [])])
            if fault.count <= at:
                break
            found = self.check(copy, change)
            claims = {"old": "unchanged", "new": "are the new ones"}
            assert claims["old" if found == "new" else "new"] not in said
            seen[found] += 1
        assert seen["old"] > 5
        assert seen["new"] > 5

    def test_of_the_machine(
        self,
        folder: Path,
        change: Callable[[Path], None],
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        seen = Counter[str]()
        for at in itertools.count():
            copy = shutil.copytree(folder, tmp_path_factory.mktemp("copies") / "out")
            child = os.fork()
            if not child:  # killed, it cleans nothing up
                with pytest.MonkeyPatch.context() as patch:
                    Fault(at, lambda: os._exit(9)).put_into(patch)
                    change(copy)
                    os._exit(0)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
                break
            seen[self.check(copy, change)] += 1
        assert seen["old"] > 5
        assert seen["new"] > 5


def test_reading_moves_nothing_also_after_a_kill(tmp_path: Path) -> None:
    """Committed results are read where they lie; the next run there puts them into place."""
    result(tmp_path, "old", ["a.csv", "b.csv"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headroles.storage.folders._replace", lambda *_: stop())
        with pytest.raises(KeyboardInterrupt, match="are the new ones"):
            replace_all(tmp_path)
    before = everything(tmp_path)
    assert (tmp_path / "a.csv").read_text() == "old"
    assert whole_result(tmp_path) == "new"
    assert kinds_in(tmp_path) == ("a.csv", "c.csv")
    assert everything(tmp_path) == before
    check_result_folder(tmp_path, overwrite=True)
    assert {name: text for name, text in everything(tmp_path).items() if name != "run.json"} == {
        "a.csv": b"new",
        "c.csv": b"new",
    }


def test_where_files_cannot_have_two_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", lambda *_: break_down())
    result(tmp_path, "old", ["a.csv", "b.csv"])
    (tmp_path / "notes.txt").touch()
    for change in (replace_one, replace_all):
        change(tmp_path)
        assert whole_result(tmp_path) == "new"


def test_a_file_that_was_changed_is_not_removed(tmp_path: Path) -> None:
    """A sent folder may list files that are not of its results."""
    result(tmp_path, "old", ["a.csv", "b.csv", "d.csv"])
    (tmp_path / "b.csv").write_text("mine")
    replace_all(tmp_path)
    assert names(tmp_path) == {"run.json", "a.csv", "b.csv", "c.csv"}
    assert (tmp_path / "b.csv").read_text() == "mine"
