"""Files whole or not at all, JSON, tables, run files, and parts of long work."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headroles import storage
from headroles.errors import StorageError
from headroles.storage import HIDDEN, Parts
from headroles.storage.files import open_regular
from tests.commands import names
from tests.storage.made import everything, make_result, replace


def write_half(file: Path, failure: type[BaseException]) -> None:
    with storage.whole_file(file) as draft:
        draft.write_text("half")
        raise failure


class TestWholeFile:
    @pytest.mark.parametrize("before", [{}, {"a.txt": b"old and longer"}], ids=["new", "replaced"])
    def test_appears_when_the_block_succeeds(
        self, tmp_path: Path, before: dict[str, bytes]
    ) -> None:
        for name, content in before.items():
            (tmp_path / name).write_bytes(content)
        for failure in (ValueError, KeyboardInterrupt, SystemExit):
            with pytest.raises(failure):
                write_half(tmp_path / "a.txt", failure)
            assert everything(tmp_path) == before
        storage.write_bytes(tmp_path / "a.txt", b"new")
        assert everything(tmp_path) == {"a.txt": b"new"}

    @pytest.mark.parametrize("place", ["missing/a.txt", "file/a.txt", "n" * 300, "folder"])
    def test_a_place_that_cannot_be_written(self, tmp_path: Path, place: str) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir()
        with pytest.raises(StorageError, match=rf"{place} cannot be written"):
            storage.write_bytes(tmp_path / place, b"")
        assert names(tmp_path) == {"file", "folder"}

    def test_permissions_and_links_stay(self, tmp_path: Path) -> None:
        make_result(tmp_path, "old", ["roles.csv"])
        for name in ("roles.csv", "run.json"):
            (tmp_path / name).chmod(0o600)
        replace(tmp_path)
        (tmp_path / "link").symlink_to("roles.csv")
        storage.write_bytes(tmp_path / "link", b"newer")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "roles.csv").read_bytes() == b"newer"
        for name in ("roles.csv", "run.json"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600

    def test_a_name_in_use_for_a_draft_is_reported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("secrets.token_hex", lambda n: "0")
        (tmp_path / ".a.csv-0").symlink_to(tmp_path / "victim")
        with pytest.raises(StorageError, match=os.strerror(errno.EEXIST)):
            storage.write_bytes(tmp_path / "a.csv", b"")
        assert names(tmp_path) == {".a.csv-0"}


def test_regular_files_alone_are_opened(tmp_path: Path) -> None:
    """Pipes, devices and links to them are refused at once; links to files are read."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "link", "device"):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(tmp_path / name)
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "good link").symlink_to("a.txt")
    with open_regular(tmp_path / "good link") as stream:
        assert stream.read() == b"text"
    for missing in (".", "missing"):
        with pytest.raises(OSError, match=r"\[Errno"):
            open_regular(tmp_path / missing)


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    content = {"name": "Köln", "numbers": [1, 2.5, None], "file": os.fsdecode(b"caf\xe9")}
    (tmp_path / "a.json").write_bytes(storage.encode_json(content))
    assert storage.read_json(tmp_path / "a.json") == content
    assert "Köln" in (tmp_path / "a.json").read_text(encoding="utf-8")


class TestRun:
    """What a result folder says of itself."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "scores.parquet").write_text("scores")
        files = {"scores": storage.digests_of(tmp_path, ["scores.parquet"])}
        storage.write_run(tmp_path, {"model": "m"}, files)
        return tmp_path

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, r"no run\.json in .*; name a folder that headroles wrote"),
            *((text, r"run\.json cannot be read") for text in ("", "{", "\udcff")),
            ("[1]", r"run\.json is not a JSON object"),
            ('{"a": NaN}', "NaN is not JSON"),
            ('{"a": [-Infinity]}', "-Infinity is not JSON"),
            *(
                (f'{{"a": {"[" * depth}{"]" * depth}}}', r"run\.json cannot be read")
                for depth in (60, 900, 100_000)
            ),
            ("{}", "has format None, this version reads 4; score again"),
            ('{"format": 2, "holds": {}}', "has format 2, this version reads 4; score again"),
            ('{"format": 4}', "was changed after headroles wrote it"),
            ('{"format": 4, "digest": "0"}', "was changed after headroles wrote it"),
        ],
    )
    def test_defects(self, tmp_path: Path, content: str | None, message: str) -> None:
        if content is not None:
            (tmp_path / "run.json").write_bytes(os.fsencode(content))
        assert storage.kinds_in(tmp_path) == ()
        with pytest.raises(StorageError, match=message):
            storage.read_run(tmp_path)

    def test_every_change_of_the_run_file_is_found(self, folder: Path) -> None:
        content = json.loads((folder / "run.json").read_text())
        for key in (*content, "new"):
            (folder / "run.json").write_text(json.dumps({**content, key: "other"}))
            with pytest.raises(StorageError, match=r"run\.json"):
                storage.read_run(folder)

    def test_a_changed_file_is_named(self, folder: Path) -> None:
        run = storage.read_run(folder)
        assert run.content == {"model": "m"}
        assert storage.kinds_in(folder) == tuple(run.files) == ("scores",)
        files = run.files["scores"]
        storage.check_files(folder, files)
        (folder / "scores.parquet").write_text("scored")
        with pytest.raises(StorageError, match=r"scores\.parquet was changed after"):
            storage.check_files(folder, files)
        (folder / "scores.parquet").unlink()
        with pytest.raises(StorageError, match=r"there is no scores\.parquet in"):
            storage.check_files(folder, files)

    @pytest.mark.parametrize(
        "held",
        [
            *({"role table": {name: ""}} for name in ("..", ".", "", "a/b.csv", "../roles.csv")),
            *({"role table": {name: ""}} for name in ("C:run.json", HIDDEN, "\ud800", "n" * 300)),
            *(None, ["scores"], {"scores": 3}, {"scores": {"a": 3}}),
        ],
    )
    def test_what_a_folder_cannot_hold(self, tmp_path: Path, held: Any) -> None:
        """Names that lead elsewhere, and what lists no names."""
        storage.write_run(tmp_path, {}, held)
        with pytest.raises(StorageError, match="does not list the files of the folder"):
            storage.read_run(tmp_path)

    def test_names_that_lead_elsewhere_are_not_followed(self, tmp_path: Path) -> None:
        """A run file made by others must not make us remove what is not ours."""
        (tmp_path / "precious").touch()
        (tmp_path / "out").mkdir()
        storage.write_run(tmp_path / "out", {}, {"scores": {"../precious": ""}})
        with storage.result_folder(tmp_path / "out", overwrite=True) as staging:
            storage.write_run(staging, {}, {})
        assert names(tmp_path) == {"out", "precious"}


@pytest.mark.parametrize("kept", [0, 3, 50, -1])
def test_damaged_tables(tmp_path: Path, kept: int) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": range(1000)}), file)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(StorageError, match=r"a\.parquet cannot be read: .*score again"):
        storage.read_table(file)


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

    def test_one_that_was_renamed_or_is_of_another_plan_is_refused(self, parts: Parts) -> None:
        opened, other = parts.open(PLAN), Parts(parts.place / "b").open({"model": "b"})
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

    def test_another_plan_or_a_broken_one_is_refused(self, parts: Parts) -> None:
        parts.open(PLAN).write(0, b"zero")
        message = "has other settings: window was 3 and is 4; run it with"
        with pytest.raises(StorageError, match=message):
            parts.open({**PLAN, "window": 4})
        for content in ("{", '{"window": NaN}'):
            (parts.place / "plan.json").write_text(content)
            with pytest.raises(StorageError, match=r"cannot be read; run .* with --no-resume"):
                parts.open(PLAN)
        parts.remove()
        assert parts.count == 0
        parts.open({**PLAN, "window": 4})


def test_differences_are_named_one_by_one() -> None:
    before = {"a": {"b": 1, "c": "x" * 100}, "d": [1], "e": None}
    after = {"a": {"b": 2, "c": "y" * 100}, "d": [1, 2], "f": 0}
    message = storage.differences(before, after)
    assert message.startswith("a b was 1 and is 2, a c was ")
    assert "d was [1] and is [1, 2], e was null and is missing, and 1 more" in message
    assert storage.differences(before, before) == ""


def interrupted(folder: Path, **options: bool) -> str:
    """Return the message of a run that saves a part and is interrupted."""
    with pytest.raises(KeyboardInterrupt) as stopped:
        save_a_part(folder, KeyboardInterrupt(), **options)
    return str(stopped.value)


def save_a_part(folder: Path, end: BaseException, n_parts: int = 1, **options: Any) -> None:
    with storage.result_folder(folder, **options) as staging:
        opened = storage.parts_beside(staging).open(PLAN)
        for number in range(n_parts):
            opened.write(number, b"zero")
        raise end


class TestFolder:
    def test_says_which_parts_are_saved_and_how_to_continue(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt, match="nothing was written"):
            save_a_part(tmp_path / "out", KeyboardInterrupt(), n_parts=0)
        assert names(tmp_path) == set()
        assert interrupted(tmp_path) == (
            f"the finished work is saved in {tmp_path}; to continue, run the same command with "
            "--resume"
        )

    def test_older_results_stay_beside_the_parts(self, tmp_path: Path) -> None:
        with storage.result_folder(tmp_path) as staging:
            storage.write_run(staging, {"run": "old"}, {})
        message = interrupted(tmp_path, overwrite=True)
        assert message.startswith(f"the results in {tmp_path} are unchanged, and the fin")
        with storage.changed_folder(tmp_path) as staging:
            storage.write_run(staging, {"run": "changed"}, {})
        with storage.result_folder(tmp_path, overwrite=True, resume=True) as staging:
            assert storage.parts_beside(staging).open(PLAN).read(0, bytes) == b"zero"

    def test_an_error_tells_too(self, tmp_path: Path) -> None:
        full = OSError(errno.ENOSPC, "No space left on device")
        for end, message, resume in (
            (StorageError("no room"), "no room", None),
            (full, "cannot be written: No space left", True),
        ):
            with pytest.raises(StorageError, match=message) as failed:
                save_a_part(tmp_path, end, resume=resume)
            assert failed.value.__notes__[0].endswith("run the same command with --resume")

    def test_an_unfinished_run_is_refused_without_resume_or_no_resume(self, tmp_path: Path) -> None:
        interrupted(tmp_path)
        message = "the work of an unfinished run; .* --resume, to start anew with --no-resume"
        with pytest.raises(StorageError, match=message):
            save_a_part(tmp_path, ValueError(), overwrite=True)
        with storage.result_folder(tmp_path, resume=False) as staging:
            assert storage.parts_beside(staging).count == 0
        interrupted(tmp_path)
        with storage.result_folder(tmp_path, resume=True) as staging:
            assert storage.parts_beside(staging).count == 1
            storage.write_run(staging, {}, {})
        assert names(tmp_path) == {"run.json"}
