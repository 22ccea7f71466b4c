"""Folders that were sent: whatever they hold, nothing outside of them changes."""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroles import collaborate_heads, read_conllu, score_heads
from headroles.errors import StorageError
from headroles.models.saved_models import PrunedModel, PrunedRecord
from headroles.storage import (
    HIDDEN,
    changed_folder,
    digests_of,
    encode_json,
    finish_swap,
    parts_beside,
    read_json,
    read_run,
    result_folder,
    whole_file,
    write_bytes,
    write_run,
)
from headroles.storage.names import is_result_name, is_result_path
from tests.conftest import make_bert, make_tokenizer

REMOVE = "Remove it, and run the command again"


def everything(folder: Path) -> dict[str, Any]:
    """All that is in a folder, without following links."""
    found: dict[str, Any] = {}
    for place in sorted(folder.rglob("*")):
        name = str(place.relative_to(folder))
        if place.is_symlink():
            found[name] = place.readlink()
        else:
            found[name] = place.read_bytes() if place.is_file() else None
    return found


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
    (folder / "roles.csv").write_text("old")
    write_run(folder, {"run": "old"}, {"roles": digests_of(folder, ["roles.csv"])})
    return folder


def replace(folder: Path, resume: bool | None = False) -> None:
    with result_folder(folder, overwrite=True, resume=resume) as staging:
        (staging / "roles.csv").write_text("new")
        write_run(staging, {"run": "new"}, {"roles": digests_of(staging, ["roles.csv"])})


def add(folder: Path) -> None:
    with changed_folder(folder, []) as staging:
        write_run(staging, {"run": "added"}, {})


@pytest.mark.parametrize("change", [replace, add, finish_swap])
def test_a_link_in_the_place_of_the_hidden_folder(results: Path, victim: Path, change: Any) -> None:
    (results / HIDDEN).symlink_to("../victim")
    before = everything(victim.parent)
    with pytest.raises(StorageError, match=rf"\.headroles is a symbolic link, .*{REMOVE}"):
        change(results)
    assert everything(victim.parent) == before


@pytest.mark.parametrize("name", ["parts", "new", "old", "swap.json", "lock", "parts/plan/part-0"])
@pytest.mark.parametrize("change", [replace, add])
def test_links_in_the_hidden_folder(results: Path, victim: Path, change: Any, name: str) -> None:
    place = results / HIDDEN / name
    place.parent.mkdir(parents=True)
    place.symlink_to(victim / "thesis.txt" if "." in name or name == "lock" else victim)
    before = everything(victim.parent)
    with pytest.raises(StorageError, match=f"{name} is a symbolic link, which .*{REMOVE}"):
        change(results)
    assert everything(victim.parent) == before


@pytest.mark.parametrize(
    ("name", "make", "described"),
    [
        ("lock", Path.mkdir, "a folder"),
        ("swap.json", Path.mkdir, "a folder"),
        ("lock", os.mkfifo, "a device, a pipe or the like"),
        ("parts", Path.touch, "a file"),
        ("new/x", os.mkfifo, "a device, a pipe or the like"),
    ],
)
def test_what_no_run_makes_there(results: Path, name: str, make: Any, described: str) -> None:
    place = results / HIDDEN / name
    place.parent.mkdir(parents=True)
    make(place)
    with pytest.raises(StorageError, match=f"{name} is {described}, which .*{REMOVE}"):
        replace(results)
    (place.rmdir if place.is_dir() else place.unlink)()
    replace(results)
    assert read_run(results).content == {"run": "new"}


def test_a_sub_folder_that_is_a_link_is_not_written_through(results: Path, victim: Path) -> None:
    write_run(victim, {}, {"x": {"roles.csv": ""}})
    (victim / "roles.csv").write_text("mine")
    (results / "before").symlink_to(victim)
    before = everything(victim)

    def write() -> None:
        with result_folder(results, overwrite=True) as staging:
            (staging / "before").mkdir()
            (staging / "before" / "roles.csv").write_text("new")
            write_run(staging, {"run": "new"}, {})

    with pytest.raises(StorageError, match=r"before is a symbolic link, .* unchanged"):
        write()
    assert everything(victim) == before
    assert read_run(results).content == {"run": "old"}


def test_a_folder_of_results_that_is_a_link_itself_is_filled(results: Path) -> None:
    link = results.with_name("link")
    link.symlink_to(results)
    replace(link)
    assert sorted(everything(results)) == ["roles.csv", "run.json"]
    assert read_run(results).content == {"run": "new"}


class TestJournal:
    """The list of renames of a folder that was sent."""

    @pytest.mark.parametrize(
        "content",
        [
            '{"old": ["../victim/thesis.txt"], "new": []}',
            '{"old": [], "new": ["../victim/thesis.txt"]}',
            '{"old": ["/nowhere/roles.csv"], "new": []}',
            '{"old": ["notes.txt"], "new": []}',
            '{"old": ["a/b/roles.csv"], "new": []}',
            '{"old": [".."], "new": ["."]}',
            '{"old": ["before/roles.csv"], "new": []}',
            '{"old": [], "new": ["gone.csv"]}',
            '{"old": 3}',
            '{"old": [], "new": [], "ends_parts": NaN}',
            "{",
            "[" * 100_000,
        ],
    )
    def test_is_refused_with_the_way_out(self, results: Path, victim: Path, content: str) -> None:
        (results / "notes.txt").write_text("mine")
        (results / "before").symlink_to(victim)
        (victim / "roles.csv").write_text("mine")
        (results / HIDDEN).mkdir()
        (results / HIDDEN / "swap.json").write_text(content)
        before = everything(victim.parent)
        message = rf"cannot be used \(.*\); copy .* from .*, remove {results / HIDDEN}, and run"
        for change in (finish_swap, replace, add):
            with pytest.raises(StorageError, match=message):
                change(results)
        after = everything(victim.parent)
        assert after == before

    NAMES = st.one_of(
        st.sampled_from(
            [
                *("run.json", "roles.csv", "within/roles.csv", "within", "link", "link/roles.csv"),
                *("../victim/roles.csv", "../victim", "..", ".", "", "/", "notes.txt", "a//b.csv"),
                *(".headroles/lock", ".headroles/old/roles.csv", "within/../../victim/roles.csv"),
            ]
        ),
        st.text(max_size=12),
    )
    PLACES = st.sampled_from(
        [
            *("run.json", "roles.csv", "notes.txt", "within/roles.csv", ".headroles/new/roles.csv"),
            *(".headroles/new/run.json", ".headroles/old/roles.csv", ".headroles/parts/p/part-0"),
            *(
                ".headroles/new/within/roles.csv",
                ".headroles/lock",
                ".headroles/new/link/roles.csv",
            ),
        ]
    )

    @given(
        old=st.lists(NAMES, max_size=3),
        new=st.lists(NAMES, max_size=3),
        ends=st.booleans(),
        files=st.sets(PLACES),
        links=st.sets(st.sampled_from(["link", "within", "roles.csv", ".headroles/old", "notes"])),
    )
    @settings(max_examples=200, deadline=None)
    def test_changes_nothing_outside(
        self, old: list[str], new: list[str], ends: bool, files: set[str], links: set[str]
    ) -> None:
        with TemporaryDirectory() as name:
            top = Path(name).resolve()
            victim, folder = top / "victim", top / "folder"
            for place in (victim, folder / HIDDEN):
                place.mkdir(parents=True)
            for file in ("roles.csv", "run.json", "lock", "part-0", "thesis.txt"):
                (victim / file).write_text(f"my {file}")
            for link in links:
                (folder / link).symlink_to(victim)
            for file in sorted(files):
                if not any(parent.is_symlink() for parent in (folder / file).parents):
                    (folder / file).parent.mkdir(parents=True, exist_ok=True)
                    if not (folder / file).is_symlink():
                        (folder / file).write_text(file)
            journal = {"old": old, "new": new, "ends_parts": ends}
            (folder / HIDDEN / "swap.json").write_bytes(encode_json(journal))
            before = everything(victim)
            with suppress(StorageError):
                finish_swap(folder)
                replace(folder, resume=False)
            assert everything(victim) == before
            assert {place.name for place in top.iterdir()} == {"victim", "folder"}
            if "notes.txt" in files:
                assert (folder / "notes.txt").read_text() == "notes.txt"


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "a/b.csv", "../roles.csv", "thesis.txt", "x.csv\n", "C:run.json", None, 3],
)
def test_names_that_no_result_has(tmp_path: Path, name: Any) -> None:
    assert not is_result_name(name)
    if isinstance(name, str):
        write_run(tmp_path, {}, {"role table": {name: ""}})
        with pytest.raises(StorageError, match="does not list the files of the folder"):
            read_run(tmp_path)


def test_paths_of_results() -> None:
    for path in ("run.json", "before/scores.parquet", "model-00001-of-00002.safetensors"):
        assert is_result_path(path)
    for path in (
        "/run.json",
        "a/b/run.json",
        ".headroles/run.json",
        "../run.json",
        "a\\b/run.json",
    ):
        assert not is_result_path(path)


class TestPermissions:
    @pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
    def test_new_files_have_those_that_the_system_gives(
        self, tmp_path: Path, umask: int, mode: int
    ) -> None:
        before = os.umask(umask)
        try:
            write_bytes(tmp_path / "a.csv", b"new")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == mode

    @pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
    def test_scores_and_models_have_them_too(
        self, bert_folder: Path, sample: Path, tmp_path: Path, umask: int, mode: int
    ) -> None:
        before = os.umask(umask)
        try:
            corpus = read_conllu(sample)
            score_heads(bert_folder, corpus, roles="local").save(tmp_path / "scores")
            PrunedModel(make_bert(), make_tokenizer(), PrunedRecord(removed=[])).save(
                tmp_path / "model"
            )
            made, _ = collaborate_heads(bert_folder, None, rank=16)
            made.save(tmp_path / "shared")
        finally:
            os.umask(before)
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert {"scores.parquet", "model.safetensors", "low_rank.safetensors"} <= {
            file.name for file in files
        }
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {mode}

    def test_replaced_files_pass_theirs_on(self, results: Path) -> None:
        for name in ("roles.csv", "run.json"):
            (results / name).chmod(0o600)
        replace(results)
        write_bytes(results / "roles.csv", b"newer")
        for name in ("roles.csv", "run.json"):
            assert stat.S_IMODE((results / name).stat().st_mode) == 0o600


def test_a_name_in_use_for_a_draft_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda n: "0")
    (tmp_path / ".a.csv-0").symlink_to(tmp_path / "victim")
    with (
        pytest.raises(StorageError, match=os.strerror(errno.EEXIST)),
        whole_file(tmp_path / "a.csv"),
    ):
        pytest.fail("the block must not run")
    assert not (tmp_path / "victim").exists()


class TestNumbersThatJsonLacks:
    def test_are_null(self) -> None:
        content = {"a": float("nan"), "b": [float("inf"), (1.5, -float("inf"))]}
        assert json.loads(encode_json(content)) == {"a": None, "b": [None, [1.5, None]]}

    @pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": [-Infinity]}'])
    def test_are_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(StorageError, match="is not JSON"):
            read_json(tmp_path / "a.json")


def test_parts_of_a_folder_that_was_sent_are_not_followed(results: Path, victim: Path) -> None:
    """A part that is a link to a file of ours is not read either."""

    def save_a_part() -> None:
        with result_folder(results, overwrite=True) as staging:
            parts_beside(staging).open({"a": 1}).write(0, b"zero")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_a_part()
    (part,) = (results / HIDDEN).glob("parts/*/part-0")
    part.unlink()
    part.symlink_to(victim / "thesis.txt")
    with pytest.raises(StorageError, match="part-0 is a symbolic link"):
        replace(results, resume=True)
