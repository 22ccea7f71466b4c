"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Sequence
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
    digests_of,
    encode_json,
    finish_swap,
    kinds_in,
    read_json,
    read_run,
    read_table,
    result_folder,
    whole_file,
    write_bytes,
    write_json,
    write_run,
)
from headroles.storage.swaps import Swap

FAILURES = [ValueError, KeyboardInterrupt, SystemExit]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


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

    @pytest.mark.parametrize("failure", FAILURES)
    def test_nothing_is_left_behind(self, tmp_path: Path, failure: type[BaseException]) -> None:
        with pytest.raises(failure), whole_file(tmp_path / "a.txt") as draft:
            fail(draft, failure)
        assert names(tmp_path) == set()

    @pytest.mark.parametrize("failure", FAILURES)
    def test_an_earlier_file_survives(self, tmp_path: Path, failure: type[BaseException]) -> None:
        (tmp_path / "a.txt").write_text("old")
        with pytest.raises(failure), whole_file(tmp_path / "a.txt") as draft:
            fail(draft, failure)
        assert names(tmp_path) == {"a.txt"}
        assert (tmp_path / "a.txt").read_text() == "old"

    def test_an_earlier_file_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("old and longer")
        write_bytes(tmp_path / "a.txt", b"new")
        assert (tmp_path / "a.txt").read_bytes() == b"new"

    @pytest.mark.parametrize("place", ["missing/a.txt", "file/a.txt", "n" * 300])
    def test_a_place_that_cannot_be_written(self, tmp_path: Path, place: str) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StorageError, match=r"cannot be written"):
            write_bytes(tmp_path / place, b"")
        assert names(tmp_path) == {"file"}

    def test_a_folder_is_not_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        with pytest.raises(StorageError, match="folder cannot be written"):
            write_bytes(tmp_path / "folder", b"")
        assert names(tmp_path) == {"folder"}


class TestJson:
    def test_round_trip(self, tmp_path: Path) -> None:
        content = {"name": "Köln", "numbers": [1, 2.5, None]}
        write_json(tmp_path / "a.json", content)
        assert read_json(tmp_path / "a.json") == content
        assert "Köln" in (tmp_path / "a.json").read_text(encoding="utf-8")

    def test_file_names_that_are_not_utf8(self) -> None:
        content = {"file": os.fsdecode(b"caf\xe9.conllu")}
        assert json.loads(encode_json(content)) == content

    def test_nothing_is_left_of_what_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError):
            write_json(tmp_path / "a.json", {"schema": object()})
        assert names(tmp_path) == set()

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

    def test_a_file_in_place_of_the_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StorageError, match="cannot be read"):
            read_json(tmp_path / "file" / "run.json")


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
            (b'{"schema": 1, "scores": 7}', "has format 1, this version reads 3; score again"),
            (b'{"format": 2, "holds": {}}', "has format 2, this version reads 3; score again"),
            (b'{"format": 3}', "was changed after headroles wrote it"),
            (b'{"format": 3, "digest": "0"}', "was changed after headroles wrote it"),
        ],
    )
    def test_defects(self, tmp_path: Path, content: bytes, message: str) -> None:
        (tmp_path / "run.json").write_bytes(content)
        with pytest.raises(StorageError, match=message):
            read_run(tmp_path)

    @pytest.mark.parametrize(
        "held",
        [None, ["scores"], {"scores": 3}, {"scores": {"a": 3}}, {"scores": {"../a": ""}}],
    )
    def test_what_a_folder_cannot_hold(self, tmp_path: Path, held: Any) -> None:
        write_run(tmp_path, {}, held)
        with pytest.raises(StorageError, match="does not list the files of the folder"):
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

    def test_spaces_and_order_are_no_change(self, folder: Path) -> None:
        content = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(dict(reversed(content.items()))))
        assert read_run(folder).content == {"model": "m"}

    def test_scores_of_an_earlier_format_are_scores(self, tmp_path: Path) -> None:
        (tmp_path / "run.json").write_text('{"schema": 1, "scores": 7}')
        assert kinds_in(tmp_path) == ("scores",)

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
        with changed_folder(folder, ()) as staging:
            (staging / "roles.csv").write_text("new")
            write_run(staging, {"more": 1}, {"roles": digests_of(staging, ["roles.csv"])})
            assert names(folder) > {"scores.parquet", "run.json", "notes.txt"}
            assert not (folder / "roles.csv").exists()
        assert names(folder) == {"scores.parquet", "run.json", "notes.txt", "roles.csv"}
        assert read_run(folder).content == {"more": 1}

    @pytest.mark.parametrize("failure", FAILURES)
    def test_nothing_is_added_by_half(self, folder: Path, failure: type[BaseException]) -> None:
        before = (folder / "run.json").read_bytes()
        with pytest.raises(failure), changed_folder(folder, ()) as staging:
            fail(staging / "run.json", failure)
        assert names(folder) == {"scores.parquet", "run.json"}
        assert (folder / "run.json").read_bytes() == before


class TestTable:
    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match=r"there is no a\.parquet in"):
            read_table(tmp_path / "a.parquet")

    @pytest.mark.parametrize("kept", [0, 3, 50, -1])
    def test_damaged(self, tmp_path: Path, kept: int) -> None:
        file = tmp_path / "a.parquet"
        pq.write_table(pa.table({"n": range(1000)}), file)
        file.write_bytes(file.read_bytes()[:kept])
        with pytest.raises(StorageError, match=r"a\.parquet cannot be read: .*score again"):
            read_table(file)


class TestResultFolder:
    def test_appears_when_the_block_succeeds(self, tmp_path: Path) -> None:
        with result_folder(tmp_path / "out") as staging:
            (staging / "run.json").touch()
            assert names(tmp_path / "out") == {HIDDEN}
        assert names(tmp_path) == {"out"}
        assert names(tmp_path / "out") == {"run.json"}
        assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755

    @pytest.mark.parametrize("failure", FAILURES)
    @pytest.mark.parametrize("place", ["out", "new/parents/out"])
    def test_nothing_is_left_behind(
        self, tmp_path: Path, place: str, failure: type[BaseException]
    ) -> None:
        with pytest.raises(failure), result_folder(tmp_path / place) as staging:
            fail(staging / "run.json", failure)
        assert names(tmp_path) == set()

    @pytest.mark.parametrize("failure", FAILURES)
    def test_earlier_results_survive(self, tmp_path: Path, failure: type[BaseException]) -> None:
        (tmp_path / "run.json").write_text("old")
        with pytest.raises(failure), result_folder(tmp_path, overwrite=True) as staging:
            fail(staging / "run.json", failure)
        assert names(tmp_path) == {"run.json"}
        assert (tmp_path / "run.json").read_text() == "old"

    def test_parents_are_made(self, tmp_path: Path) -> None:
        with result_folder(tmp_path / "new" / "parents" / "out") as staging:
            (staging / "run.json").touch()
        assert names(tmp_path) == {"new"}
        assert names(tmp_path / "new" / "parents") == {"out"}

    def test_an_empty_folder_is_filled(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        with result_folder(tmp_path / "out") as staging:
            (staging / "run.json").touch()
        assert names(tmp_path) == {"out"}
        assert names(tmp_path / "out") == {"run.json"}

    @pytest.mark.parametrize("within", ["", "out"])
    def test_a_link_that_leads_nowhere_is_reported(self, tmp_path: Path, within: str) -> None:
        (tmp_path / "link").symlink_to("nowhere")
        with (
            pytest.raises(StorageError, match="link is a symbolic link to nowhere, which does not"),
            result_folder(tmp_path / "link" / within),
        ):
            pytest.fail("the block must not run")
        assert names(tmp_path) == {"link"}

    def test_a_link_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        with result_folder(tmp_path / "link" / "out") as staging:
            (staging / "run.json").touch()
        assert names(tmp_path / "real" / "out") == {"run.json"}

    def test_a_folder_with_files_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").touch()
        with (
            pytest.raises(StorageError, match=r"is not empty.*overwrite=True"),
            result_folder(tmp_path),
        ):
            pytest.fail("the block must not run")
        assert names(tmp_path) == {"notes.txt"}

    def test_overwriting_replaces_results_and_keeps_the_rest(self, tmp_path: Path) -> None:
        for name in ("a.csv", "b.parquet", "notes.txt"):
            (tmp_path / name).write_text("old")
        held = digests_of(tmp_path, ["a.csv", "b.parquet"])
        write_run(tmp_path, {}, {"anything": held})
        with result_folder(tmp_path, overwrite=True) as staging:
            (staging / "run.json").write_text("new")
        assert names(tmp_path) == {"run.json", "notes.txt"}
        assert (tmp_path / "run.json").read_text() == "new"
        assert (tmp_path / "notes.txt").read_text() == "old"

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
        assert names(Path(place)) == {"run.json"}
        assert not [name for name in names(here) | names(tmp_path) if name.startswith(".")]

    def test_the_working_directory_may_change_meanwhile(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with result_folder("out") as staging:
            (staging / "run.json").touch()
            monkeypatch.chdir("/")
        assert names(tmp_path / "out") == {"run.json"}

    def test_what_a_killed_run_left_is_no_result(self, tmp_path: Path) -> None:
        left = tmp_path / "out" / HIDDEN / "new"
        left.mkdir(parents=True)
        (left / "half").touch()
        with result_folder(tmp_path / "out") as staging:
            assert names(staging) == set()
        assert names(tmp_path / "out") == set()

    def test_belongs_to_one_run_at_a_time(self, tmp_path: Path) -> None:
        with (
            result_folder(tmp_path / "out"),
            pytest.raises(StorageError, match=r"another run is writing into .*out; wait for it"),
            result_folder(tmp_path / "out", overwrite=True),
        ):
            pytest.fail("the block must not run")
        assert names(tmp_path) == set()

    def test_new_results_that_find_no_place_are_kept(self, tmp_path: Path) -> None:
        write_run(tmp_path, {"run": "old"}, {})
        (tmp_path / "roles.csv").mkdir()

        def write() -> None:
            with result_folder(tmp_path, overwrite=True) as staging:
                (staging / "roles.csv").write_text("new")
                write_run(staging, {"run": "new"}, {})

        message = r"roles\.csv is a folder, .*; the old results are unchanged, "
        with pytest.raises(StorageError, match=message + r"and the new ones .* in .*new-results$"):
            write()
        assert names(tmp_path) == {"run.json", "roles.csv", "new-results"}
        assert read_run(tmp_path).content == {"run": "old"}
        assert read_run(tmp_path / "new-results").content == {"run": "new"}

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


STEPS = ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync", "open")


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
        result(staging, "new", ["a.csv", "c.csv"])


def replace_one(folder: Path) -> None:
    with changed_folder(folder, ["b.csv"]) as staging:
        (staging / "c.csv").write_text("new")
        held = {**read_run(folder).files, "c.csv": digests_of(staging, ["c.csv"])}
        del held["b.csv"]
        write_run(staging, {"run": "new"}, held)


def replace_within(folder: Path) -> None:
    with result_folder(folder, overwrite=True) as staging:
        result(staging, "new", ["a.csv", "c.csv"])
        for name in ("within", "other"):
            (staging / name).mkdir()
            result(staging / name, "new", ["a.csv", "c.csv"])


def whole_result(folder: Path) -> str:
    """Which run the results in ``folder`` are of, all of them."""
    finish_swap(folder)
    run = read_run(folder)
    for files in run.files.values():
        check_files(folder, files)
    own = {HIDDEN, "within", "other"}
    assert names(folder) - own == {"run.json", "notes.txt", *run.files}
    found: str = run.content["run"]
    return found


def check_within(folder: Path, change: Callable[[Path], None]) -> None:
    """Folders within are of the run that the folder is of, also if they are opened first."""
    finish_swap(folder / "within")
    found = whole_result(folder) if change is replace_within else "old"
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
                    said = str(error)
            if fault.count <= at:
                break
            new = copy / "new-results"
            if new.exists():
                assert "the new ones are complete in" in said
                assert read_run(new).content["run"] == "new"
                shutil.rmtree(new)
            check_within(copy, change)
            found = whole_result(copy)
            claims = {"old": "unchanged", "new": "are the new ones"}
            assert claims["old" if found == "new" else "new"] not in said
            assert found == "old" or not said.endswith("error")
            seen[found] += 1
            replace_within(copy)
            assert names(copy) == {"run.json", "notes.txt", "a.csv", "c.csv", "within", "other"}
        assert seen["old"] > 5
        assert seen["new"] > 1

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
            check_within(copy, change)
            seen[whole_result(copy)] += 1
            replace_within(copy)
            assert names(copy) == {"run.json", "notes.txt", "a.csv", "c.csv", "within", "other"}
        assert seen["old"] > 5
        assert seen["new"] > 5


def test_signals_wait_until_all_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result(tmp_path, "old", ["a.csv"])
    (tmp_path / "notes.txt").touch()
    monkeypatch.setattr(
        "headroles.storage.claims.Swap.put",
        lambda self, *given, put=Swap.put, **named: (
            signal.raise_signal(signal.SIGINT),
            put(self, *given, **named),
        )[-1],
    )
    with pytest.raises(KeyboardInterrupt, match="are the new ones, and complete"):
        replace_all(tmp_path)
    assert whole_result(tmp_path) == "new"
