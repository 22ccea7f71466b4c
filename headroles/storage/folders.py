"""Result folders: of one run at a time, and changed whole or not at all.

A run writes into ``.headroles/new`` of its result folder. When all is written, one rename of that
folder commits it, and from then on readers find the results there (`committed`). Its files then get
their names in the result folder, and it is removed. These steps can be repeated: the next command
that writes into the folder finishes what a killed one began.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from headroles.errors import HeadRolesError, StorageError
from headroles.storage.files import check_name, keep_permissions, sync, written
from headroles.storage.hidden import (
    ADDED,
    DRAFT,
    HIDDEN,
    LOCK,
    NEW,
    PARTS,
    PLACED,
    REPLACED,
    check_hidden_folder,
)
from headroles.storage.parts import Parts
from headroles.storage.run_file import (
    RUN_FILE,
    check_free,
    check_in_the_way,
    result_files,
    unchanged_files,
)

_NEW_RESULTS = "the new results"


@contextmanager
def result_folder(
    folder: str | Path,
    overwrite: bool = False,
    resume: bool | None = None,
    names: Iterable[str] = (),
) -> Iterator[Path]:
    """Yield a folder to write into, whose files become those of ``folder`` if the block succeeds.

    With ``overwrite``, earlier results are replaced; files of others stay. If the block fails,
    ``folder`` is unchanged but for the parts that the block saved (`parts_beside`). ``resume``
    leaves the parts of an unfinished run to the block; False removes them. ``names`` are those of
    the files that the block will write, as far as they are known; * stands for anything.

    Raises StorageError at once for a folder that is not empty, without ``overwrite``; that holds an
    unfinished run, if ``resume`` is None; that has a file of others by one of the ``names``; that
    cannot be written, or that another run writes into.
    """
    with _claimed(folder) as place:
        parts = parts_in(place)
        if resume is False:
            parts.remove()
        elif resume is None and parts.count:
            raise StorageError(
                f"{place} holds the work of an unfinished run; to continue it, run the same "
                "command with --resume, to start anew with --no-resume"
            )
        if not overwrite and any(entry.name != HIDDEN for entry in place.iterdir()):
            nothing = ", and has no unfinished run to resume" if resume and not parts.count else ""
            raise StorageError(
                f"folder {place} is not empty{nothing}; name another one, or pass `overwrite=True`"
            )
        _check_names(place, names)
        yield from _fill(place, REPLACED)


@contextmanager
def changed_folder(folder: str | Path, names: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a folder to write into, whose files join those of ``folder`` if the block succeeds.

    Files that the new ``run.json`` no longer lists are removed. Raises StorageError for a folder
    that has a file of others by one of the ``names``, that cannot be written, or that another run
    writes into.
    """
    with _claimed(folder) as place:
        _check_names(place, names)
        yield from _fill(place, ADDED)


def _check_names(folder: Path, names: Iterable[str]) -> None:
    """Raise StorageError for a file of others in the way of the files that a run will write."""
    for name in (RUN_FILE, *names):
        for place in folder.glob(name):
            check_free(place, _NEW_RESULTS)


def parts_in(folder: str | Path) -> Parts:
    """Return the place where a run that fills ``folder`` saves its parts."""
    return Parts(Path(folder).absolute() / HIDDEN / PARTS)


def parts_beside(staging: Path) -> Parts:
    """Return the place where work into a folder of `result_folder` can save its parts."""
    return Parts(staging.parent / PARTS)


@contextmanager
def _claimed(folder: str | Path) -> Iterator[Path]:
    """Claim ``folder`` for this process alone; create it if necessary."""
    folder = Path(folder).absolute()
    check_name(folder)
    hidden = folder / HIDDEN
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    try:
        with written(folder):
            _make(folder)
            check_hidden_folder(hidden)
            hidden.mkdir(exist_ok=True)
            with _locked(hidden):
                _clear(folder)  # the remains of a killed run
                _finish(folder)
                try:
                    yield folder
                finally:
                    _clear(folder)
    finally:
        for place in (hidden, *missing):  # those that are still empty
            with contextlib.suppress(OSError):
                place.rmdir()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise StorageError(
            f"{folder} cannot be a folder: it, or one above it, is a file or a link that leads "
            "nowhere; name another folder for the results"
        ) from error


@contextmanager
def _locked(hidden: Path) -> Iterator[None]:
    try:
        with warnings.catch_warnings():  # of a file system without locks, which has another way
            warnings.simplefilter("ignore")
            lock = FileLock(hidden / LOCK).acquire(timeout=0)
    except Timeout:
        raise StorageError(
            f"another run is writing into {hidden.parent}; wait for it, or name another folder"
        ) from None
    with lock:
        try:
            yield
        finally:  # while it is held: the next process makes a new one
            (hidden / LOCK).unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    """Remove what is neither a result nor a part of a run."""
    for name in (NEW, PLACED):
        shutil.rmtree(folder / HIDDEN / name, ignore_errors=True)
    with contextlib.suppress(OSError):
        (folder / HIDDEN / DRAFT).unlink()
    if not parts_in(folder).count:
        parts_in(folder).remove()


def _fill(folder: Path, commit: str) -> Iterator[Path]:
    """Yield the folder to write into; then commit it by a rename to the hidden name ``commit``."""
    hidden, had_results = folder / HIDDEN, (folder / RUN_FILE).exists()
    new = hidden / NEW
    new.mkdir()
    try:
        with written(folder):
            yield new
            _prepare(new, folder)
            new.rename(hidden / commit)
            sync(hidden)
            _finish(folder)
    except KeyboardInterrupt as stop:
        stop.args = stop.args or (_state(folder, had_results),)
        raise
    except HeadRolesError as error:
        if parts_in(folder).count or not new.exists():
            error.add_note(_state(folder, had_results))
        raise


def _prepare(new: Path, folder: Path) -> None:
    """Make ``new`` complete, on the disk. Raises StorageError for what is in the way of it."""
    _check_files_alone(new)
    check_in_the_way(folder, new, _NEW_RESULTS)
    for file in sorted(new.iterdir()):
        keep_permissions(folder / file.name, file)
        sync(file)
    for name in result_files(new):  # those that stay as they are
        if not (new / name).exists() and (folder / name).is_file():
            _give_name(folder / name, new / name)
    sync(new)


def _finish(folder: Path) -> None:
    """Give the files of committed results their names in ``folder``."""
    hidden = folder / HIDDEN
    for results in (hidden / REPLACED, hidden / ADDED):
        if not os.path.lexists(results):
            continue
        if results.name == REPLACED:
            parts_in(folder).remove()
        _check_files_alone(results)
        check_in_the_way(folder, results, f"results that wait in {results}")
        _replace(folder, results, hidden / DRAFT)
        results.rename(hidden / PLACED)
        _clear(folder)


def _check_files_alone(source: Path) -> None:
    """Raise StorageError for a folder in ``source``: results are files alone."""
    for file in source.iterdir():
        if file.is_dir():
            raise StorageError(
                f"{file} is a folder, which headroles does not make there; remove it"
            )


def _replace(target: Path, source: Path, draft: Path) -> None:
    """Replace the results in ``target`` by those in ``source``, which keeps its files."""
    for name in unchanged_files(target).difference(result_files(source)):
        (target / name).unlink()
    for file in sorted(source.iterdir(), key=lambda file: file.name == RUN_FILE):
        place = target / file.name
        if not (place.exists() and place.samefile(file)):
            _give_name(file, draft)
            draft.replace(place)
    sync(target)


def _give_name(file: Path, name: Path) -> None:
    """Give a file a second name; where the file system has no such links, copy it."""
    name.unlink(missing_ok=True)
    try:
        os.link(file.resolve(), name)
    except OSError:
        shutil.copy2(file, name)
        sync(name)


def _state(folder: Path, had_results: bool) -> str:
    """Say what ``folder`` holds if the run ends now."""
    if not (folder / HIDDEN / NEW).exists():
        return f"the results in {folder} are the new ones"
    clauses = [f"the results in {folder} are unchanged"] if had_results else []
    if parts_in(folder).count:
        clauses.append(
            f"the finished work is saved in {folder}; to continue, run the same command with "
            "--resume"
        )
    return ", and ".join(clauses) or f"nothing was written to {folder}"
