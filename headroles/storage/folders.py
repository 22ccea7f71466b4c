"""Result folders: claimed by one run at a time, and changed as a whole or not at all.

While a run works, what it writes stands in the hidden folder ``.headroles`` of its result folder.
At the end it takes the place of earlier results.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headroles.errors import HeadRolesError, StorageError
from headroles.storage.claims import PARTS, Claim, claimed
from headroles.storage.files import cannot_be_written
from headroles.storage.names import HIDDEN
from headroles.storage.parts import Parts

_PATIENCE = 10.0
"""Seconds to wait for the renames of another process: they take a moment."""


@contextmanager
def result_folder(
    folder: str | Path, overwrite: bool = False, resume: bool | None = None
) -> Iterator[Path]:
    """A folder to write results into, which become those of ``folder`` when the block succeeds.

    In folders within it there may be results too; they take their place together with the others.
    ``folder`` belongs to this run until then. If the block fails or is interrupted, it is as it
    was before, but for the parts that the block kept in `parts_beside`. With ``overwrite``, the
    results that it held are replaced; other files in it stay. New results that cannot take their
    place are kept beside the old ones. Parts of an unfinished run are left to the block with
    ``resume``, and removed if it is False.

    Raises StorageError at once if ``folder`` is not empty and ``overwrite`` is not set, if it
    holds an unfinished run and ``resume`` is None, if it is a file, if it cannot be written, or if
    another run is writing into it.
    """
    with claimed(folder) as claim:
        claim.take_up(resume)
        if not overwrite and claim.holds_anything():
            raise StorageError(
                f"folder {claim.folder} is not empty; "
                "name another one or pass overwrite=True (--overwrite)"
            )
        try:
            yield from claim.fill(replaced=None)
        except OSError as error:
            raise claim.noted(cannot_be_written(claim.folder, error)) from error
        except HeadRolesError as error:
            claim.noted(error)
            raise


def parts_beside(staging: Path) -> Parts:
    """Where work into the folder that `result_folder` gave can keep what is done of it."""
    return Parts(staging.parent / PARTS)


@contextmanager
def changed_folder(folder: str | Path, replaced: Iterable[str]) -> Iterator[Path]:
    """A folder to write into, whose files join those of ``folder`` when the block succeeds.

    The files called ``replaced`` and those of the same names go. Otherwise as `result_folder`.
    """
    with claimed(folder) as claim:
        yield from claim.fill(replaced=tuple(replaced))


def check_result_folder(
    folder: str | Path, overwrite: bool = False, resume: bool | None = None
) -> None:
    """Raise StorageError if `result_folder` would refuse ``folder``: to ask before long work."""
    with contextlib.suppress(_NothingToDo), result_folder(folder, overwrite, resume):
        raise _NothingToDo


def parts_in(folder: str | Path) -> Parts:
    """Where another process that fills ``folder`` keeps the parts of its work."""
    return Parts(Path(folder).absolute() / HIDDEN / PARTS)


class _NothingToDo(Exception):
    """Leaves a claimed folder as it is."""


def finish_swap(folder: Path) -> None:
    """Go on with renames in ``folder`` that were cut short; to be called before it is read.

    They may be those of the folder that it is in.
    """
    for place in (folder.absolute().parent, folder):
        claim = Claim(place)
        if claim.hidden.is_symlink() or claim.swap.is_begun:
            with claimed(place, patience=_PATIENCE):
                pass
