"""Result folders: claimed by one run at a time, and changed whole or not at all.

While a run works, it writes to the hidden sub-folder ``.headroles`` of its result folder. At the
end its files replace earlier results.
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
"""Seconds to wait for the renames of another process, which take a moment."""


@contextmanager
def result_folder(
    folder: str | Path, overwrite: bool = False, resume: bool | None = None
) -> Iterator[Path]:
    """Yield a folder to write into, whose files become those of ``folder`` if the block succeeds.

    Results may also lie in sub-folders; all are put into place together. ``folder`` belongs to this
    run until then. If the block fails or is interrupted, the folder is unchanged, except for the
    parts that the block saved in `parts_beside`. With ``overwrite``, earlier results are replaced;
    other files stay. New results that cannot be put into place are saved beside the old ones. Parts
    of an unfinished run are left to the block with ``resume``, and removed if it is False.

    Raises StorageError at once if ``folder`` is not empty and ``overwrite`` is not set, if it holds
    an unfinished run and ``resume`` is None, if it is a file, if it cannot be written, or if
    another run is writing into it.
    """
    with claimed(folder) as claim:
        claim.keep_parts(resume)
        if not overwrite and claim.holds_anything():
            is_finished = resume and not claim.parts.count
            nothing = ", and has no unfinished run to resume" if is_finished else ""
            raise StorageError(
                f"folder {claim.folder} is not empty{nothing}; "
                "name another one, or pass overwrite=True (--overwrite)"
            )
        try:
            yield from claim.fill(replaced=None)
        except OSError as error:
            raise claim.noted(cannot_be_written(claim.folder, error)) from error
        except HeadRolesError as error:
            claim.noted(error)
            raise


def parts_beside(staging: Path) -> Parts:
    """Return the place where work into a folder of `result_folder` can save its parts."""
    return Parts(staging.parent / PARTS)


@contextmanager
def changed_folder(folder: str | Path, replaced: Iterable[str]) -> Iterator[Path]:
    """Yield a folder to write into, whose files join those of ``folder`` if the block succeeds.

    The files called ``replaced`` are removed, and files of the same names replaced. Otherwise as
    `result_folder`.
    """
    with claimed(folder) as claim:
        yield from claim.fill(replaced=tuple(replaced))


def check_result_folder(
    folder: str | Path, overwrite: bool = False, resume: bool | None = None
) -> None:
    """Raise StorageError if `result_folder` would reject ``folder``; call before long work."""
    with contextlib.suppress(_NothingToDo), result_folder(folder, overwrite, resume):
        raise _NothingToDo


def parts_in(folder: str | Path) -> Parts:
    """Return the place where another process that fills ``folder`` saves its parts."""
    return Parts(Path(folder).absolute() / HIDDEN / PARTS)


class _NothingToDo(Exception):
    """Exception that leaves a claimed folder unchanged."""


def finish_swap(folder: Path) -> None:
    """Finish interrupted renames in ``folder`` or its parent; call before reading it."""
    for place in (folder.absolute().parent, folder):
        claim = Claim(place)
        if claim.hidden.is_symlink() or claim.swap.is_begun:
            with claimed(place, patience=_PATIENCE):
                pass
