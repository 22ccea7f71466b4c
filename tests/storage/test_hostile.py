"""Folders that were sent: whatever they hold, nothing outside of them changes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from headroles import (
    HeadScores,
    collaborate_heads,
    find_importance,
    load,
    make_corpus,
    prune_heads,
    read_conllu,
    score_heads,
    storage,
)
from headroles.errors import HeadRolesError, StorageError
from headroles.models.loading.saved_models import PrunedModel
from headroles.record import Record
from headroles.storage import HIDDEN
from tests.commands import run
from tests.conftest import make_bert, make_tokenizer
from tests.storage.made import everything, make_result, replace

REMOVE = "Remove it, and run the command again"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder beside the results, with files and a sub-folder."""
    folder = tmp_path / "victim"
    (folder / "deep").mkdir(parents=True)
    (folder / "thesis.txt").write_text("three years")
    (folder / "deep" / "part-0").write_text("of work")
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    make_result(folder, "old", ["roles.csv"])
    return folder


def resume(folder: Path) -> None:
    replace(folder, resume=True)


def add(folder: Path) -> None:
    with storage.changed_folder(folder) as staging:
        storage.write_run(staging, {"run": "added"}, {})


@pytest.mark.parametrize("name", ["", "parts", "new", "done", "added", "lock", "parts/plan/part-0"])
@pytest.mark.parametrize(
    "change", [replace, resume, add, storage.committed, storage.kinds_in, storage.read_run]
)
def test_links_in_the_hidden_folder(results: Path, victim: Path, change: Any, name: str) -> None:
    """Links in it, or in its place, are not written through, and not read through either."""
    place = results / HIDDEN / name
    place.parent.mkdir(parents=True, exist_ok=True)
    is_file = name in ("lock", "parts/plan/part-0")
    place.symlink_to(victim / "thesis.txt" if is_file else victim)
    before = everything(victim.parent)
    if change in (replace, resume, add) or name in ("done", "added"):
        with pytest.raises(StorageError, match=f"{place.name} is a symbolic link, .*{REMOVE}"):
            change(results)
    else:
        change(results)
    assert everything(victim.parent) == before


def test_a_sub_folder_that_is_a_link_is_not_written_through(results: Path, victim: Path) -> None:
    storage.write_run(victim, {}, {"x": {"roles.csv": ""}})
    (victim / "roles.csv").write_text("mine")
    (results / "before").symlink_to(victim)
    before = everything(victim)

    def write() -> None:
        with storage.result_folder(results, overwrite=True) as staging:
            (staging / "before").mkdir()
            (staging / "before" / "roles.csv").write_text("new")
            storage.write_run(staging, {"run": "new"}, {})

    with pytest.raises(StorageError, match=r"before is a folder, which headroles does not make"):
        write()
    assert everything(victim) == before
    assert storage.read_run(results).content == {"run": "old"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((name, "a folder") for name in ("lock", "draft")),
        *((name, "a file, a pipe") for name in ("new", "parts", "placed", "done", "added")),
    ],
)
@pytest.mark.parametrize("change", [replace, resume, add])
def test_folders_and_files_in_place_of_each_other(
    results: Path, change: Any, name: str, said: str
) -> None:
    (results / HIDDEN).mkdir()
    place = results / HIDDEN / name
    place.mkdir() if said == "a folder" else place.touch()
    before = everything(results)
    with pytest.raises(StorageError, match=f"{HIDDEN}/{name} is {said}.*{REMOVE}"):
        change(results)
    assert everything(results) == before


@pytest.mark.parametrize("change", [replace, resume, add])
class TestLocks:
    """A lock that was sent may be a second name of a file of the user."""

    def test_a_hard_link_is_refused(self, results: Path, victim: Path, change: Any) -> None:
        (results / HIDDEN).mkdir()
        os.link(victim / "thesis.txt", results / HIDDEN / "lock")
        before = everything(results.parent)
        with pytest.raises(StorageError, match=f"lock is a second name of another.*{REMOVE}"):
            change(results)
        assert everything(results.parent) == before

    def test_content_is_refused(self, results: Path, change: Any) -> None:
        (results / HIDDEN).mkdir()
        (results / HIDDEN / "lock").write_text("mine")
        with pytest.raises(StorageError, match=f"lock is a file with content.*{REMOVE}"):
            change(results)
        assert (results / HIDDEN / "lock").read_text() == "mine"

    @pytest.mark.filterwarnings("ignore:flock not supported")
    def test_where_the_file_system_has_none_a_lock_names_its_process(
        self, results: Path, change: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def flock(*_: object) -> None:
            raise OSError(errno.ENOSYS, "flock is not implemented")

        monkeypatch.setattr("fcntl.flock", flock)
        (results / HIDDEN).mkdir()
        with FileLock(results / HIDDEN / "lock"):
            assert (results / HIDDEN / "lock").stat().st_size
            with pytest.raises(StorageError, match="another run is writing into"):
                change(results)
        change(results)
        assert not (results / HIDDEN).exists()

    def test_an_empty_one_of_a_killed_run_is_taken(self, results: Path, change: Any) -> None:
        (results / HIDDEN).mkdir()
        (results / HIDDEN / "lock").touch()
        change(results)
        assert not (results / HIDDEN).exists()


class TestFilesOfTheUser:
    """Files that headroles did not write keep their names, though run files list these."""

    @pytest.mark.parametrize("waiting", ["done", "added"])
    @pytest.mark.parametrize("sent", ["roles.csv", "thesis.txt", "run.json"])
    def test_results_to_be_moved_replace_none(
        self, tmp_path: Path, waiting: str, sent: str
    ) -> None:
        source = tmp_path / HIDDEN / waiting
        source.mkdir(parents=True)
        make_result(source, "theirs", ["roles.csv", "thesis.txt"])
        if sent != "run.json":
            storage.write_run(tmp_path, {}, {"role table": {sent: "0" * 64}})
        (tmp_path / sent).write_text("three years")
        before = everything(tmp_path)
        message = f"{sent} is in the way of results that wait in .*{waiting}: headroles did not"
        for act in (replace, resume, add, storage.committed, storage.kinds_in, storage.read_run):
            with pytest.raises(StorageError, match=message):
                act(tmp_path)
            assert everything(tmp_path) == before

    @pytest.mark.parametrize("name", ["roles.csv", "run.json"])
    def test_what_is_in_the_way_is_refused_before_the_work(self, results: Path, name: str) -> None:
        (results / name).write_text("mine")
        before = everything(results)
        for claimed in (
            storage.result_folder(results, overwrite=True, resume=False, names=["roles.*"]),
            storage.changed_folder(results, names=["roles.*"]),
        ):
            with (
                pytest.raises(StorageError, match=f"{name} is in the way of the new results"),
                claimed,
            ):
                pytest.fail("the work began")
        assert everything(results) == before


HIDDEN_FILES = ("done/run.json", "added/run.json", "done/roles.csv", "done/notes.txt", "done/link")


class TestResultsOfOthersToBeMoved:
    """A folder that was sent may hold results that wait to be moved into place."""

    @given(
        files=st.sets(st.sampled_from([*HIDDEN_FILES, "done/within/roles.csv", "new/x", "lock"])),
        links=st.sets(st.sampled_from(["link", "within", "roles.csv", ".headroles/done/link"])),
        listed=st.sampled_from(["../victim/roles.csv", "/victim", "..", "notes.txt", "link"]),
    )
    @settings(max_examples=100, deadline=None)
    def test_change_nothing_outside(self, files: set[str], links: set[str], listed: str) -> None:
        with TemporaryDirectory() as name:
            top = Path(name).resolve()
            victim, folder = top / "victim", top / "folder"
            for place in (victim, folder / HIDDEN / "done" / "within"):
                place.mkdir(parents=True)
            for file in ("roles.csv", "run.json", "thesis.txt"):
                (victim / file).write_text(f"my {file}")
            for link in links:
                (folder / link).symlink_to(victim)
            for place in (folder / HIDDEN / file for file in files):
                place.parent.mkdir(parents=True, exist_ok=True)
                if place.name == "run.json":
                    storage.write_run(place.parent, {}, {"role table": {listed: ""}})
                elif not place.is_symlink():
                    place.write_text("theirs")
            before = everything(top)
            with suppress(StorageError):
                storage.kinds_in(folder)
                storage.read_run(folder)
            assert everything(top) == before
            with suppress(StorageError):
                replace(folder)
            assert everything(victim) == {
                name.removeprefix("victim/"): content
                for name, content in before.items()
                if name.startswith("victim/")
            }
            assert {place.name for place in top.iterdir()} == {"victim", "folder"}


def test_a_folder_among_results_to_be_moved_is_refused_until_it_is_removed(results: Path) -> None:
    done = results / HIDDEN / "done"
    (done / "within").mkdir(parents=True)
    make_result(done, "sent", ["roles.csv"])
    before = everything(results)
    message = "done/within is a folder, which headroles does not make there; remove it$"
    for change in (replace, add):
        with pytest.raises(StorageError, match=message):
            change(results)
        assert everything(results) == before
    assert storage.read_run(results).content == {"run": "sent"}
    (done / "within").rmdir()
    replace(results)
    assert everything(results).keys() == {"roles.csv", "run.json"}
    assert storage.read_run(results).content == {"run": "new"}


def test_reading_results_changes_nothing_beside_them(results: Path) -> None:
    """A list of renames, in the folder or above it, is a file as any other."""
    top = results.parent
    (top / HIDDEN / "new" / "pkg").mkdir(parents=True)
    (top / "pkg").mkdir()
    for file in ("notes.csv", "pkg/train.csv"):
        (top / file).write_text("mine")
    (top / HIDDEN / "new" / "pkg" / "modeling_mine.py").write_text("theirs")
    journal = {"old": ["notes.csv", "pkg/train.csv"], "new": ["pkg/modeling_mine.py"]}
    for place in (top, results):
        (place / HIDDEN).mkdir(exist_ok=True)
        (place / HIDDEN / "swap.json").write_text(json.dumps(journal))
    before = everything(top)
    assert storage.read_run(results).content == {"run": "old"}
    with pytest.raises(StorageError, match="holds no table of results"):
        load(results)
    assert run("export", results).exit_code == 1
    assert everything(top) == before


def refused(*command: object) -> str:
    """Return the line that a command prints in place of results."""
    done = run(*command)
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    return done.stderr


@pytest.fixture
def in_time() -> Iterator[None]:
    """Ends a test that waits for a pipe."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waited for a pipe"))
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("target", [None, "/dev/zero"])
@pytest.mark.parametrize("name", ["run.json", "roles.parquet", "scores.parquet"])
def test_pipes_and_devices_in_place_of_results(tested: Path, name: str, target: str | None) -> None:
    (tested / name).unlink()
    os.mkfifo(tested / name) if target is None else (tested / name).symlink_to(target)
    for command in ("assign",) if name == "scores.parquet" else ("export", "report"):
        line = refused(command, tested)
        assert line.startswith(f"error: {tested / name} cannot be read: it is a pipe")


def test_forged_examples_without_documents(tested: Path) -> None:
    table, record = pq.read_table(tested / "examples.parquet"), storage.read_run(tested)
    place = table.column_names.index("document")
    nothing = pa.array([None] * len(table), pa.string())
    pq.write_table(table.set_column(place, "document", nothing), tested / "examples.parquet")
    files = {kind: storage.digests_of(tested, own) for kind, own in record.files.items()}
    storage.write_run(tested, record.content, files)
    assert "does not match run.json" in refused("assign", tested)


@pytest.mark.usefixtures("in_time")
def test_a_pipe_in_place_of_a_corpus_that_a_record_names(tested: Path, treebank: Path) -> None:
    treebank.unlink()
    os.mkfifo(treebank)
    done = run("examples", tested, "--head", "0-0", "--role", "local")
    assert (done.exit_code, done.stderr.count("is a pipe or a device")) == (1, 1)


@pytest.fixture
def tested(bert_folder: Path, treebank: Path, tmp_path: Path) -> Path:
    out = tmp_path / "out"
    assert run("classify", bert_folder, treebank, "--out", out).exit_code == 0
    return out


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux alone")
def test_folders_whose_names_are_not_utf8(
    bert_folder: Path, treebank: Path, tmp_path: Path
) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    for words in (("score", "no-such-model", treebank, "--out", odd), ("export", odd)):
        assert "is not UTF-8, which the files in it need; rename the folder" in refused(*words)
    assert not odd.exists()
    shutil.copytree(bert_folder, odd)
    assert "is not UTF-8" in refused("score", odd, treebank, "--out", tmp_path / "out")


@pytest.mark.parametrize("name", ["a" * 3000, "a\0b"])
def test_names_that_no_system_has(name: str, bert_folder: Path) -> None:
    corpus = make_corpus([(("Dogs", "bark"), (1, -1), ("nsubj", "root"))])
    scores = HeadScores.by_hand(np.ones((2, 1, 1, 1)), ["local"])
    for ask in (
        lambda: score_heads(name, corpus),
        lambda: score_heads(bert_folder, corpus, tokenizer=name),
        lambda: score_heads(bert_folder, corpus, roles="rare", frequencies=name),
        lambda: find_importance(bert_folder, name),
        lambda: load(name),
        lambda: scores.save(name),
        lambda: prune_heads(bert_folder, name, keep=2),
    ):
        with pytest.raises(HeadRolesError):
            ask()


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
def test_permissions_are_those_of_the_user(
    bert_folder: Path, sample: Path, tmp_path: Path, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        corpus = read_conllu(sample)
        score_heads(bert_folder, corpus, roles="local").save(tmp_path / "scores")
        PrunedModel(make_bert(), make_tokenizer(), Record()).save(tmp_path / "model")
        made, _ = collaborate_heads(bert_folder, None, rank=16)
        made.save(tmp_path / "shared")
    finally:
        os.umask(before)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    made = {file.name for file in files}
    assert {"scores.parquet", "model.safetensors", "low_rank.safetensors"} <= made
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {mode}


def test_a_folder_of_results_that_is_a_link_itself_is_filled(results: Path) -> None:
    link = results.with_name("link")
    link.symlink_to(results)
    replace(link)
    assert sorted(everything(results)) == ["roles.csv", "run.json"]
    assert storage.read_run(results).content == {"run": "new"}
