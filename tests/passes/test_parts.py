"""Saved results of batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headroles.errors import StorageError
from headroles.passes.saved_batches import SavedBatches
from headroles.storage import Parts

TYPES = {"losses": (np.float64, (2,)), "tokens": (np.int64, ())}


def refuse() -> dict[str, np.ndarray]:
    raise AssertionError("computed again")


def saved_in(folder: Path) -> SavedBatches:
    return SavedBatches(Parts(folder / "hidden" / "parts").open({"study": "x"}))


def test_saved_results_are_not_computed_again(tmp_path: Path) -> None:
    made = {"losses": np.arange(6.0).reshape(2, 3).T, "tokens": np.array([1, 2, 3])}
    assert saved_in(tmp_path).get("one", lambda: made, TYPES, 3) is made
    found = saved_in(tmp_path).get("one", refuse, TYPES, 3)
    assert np.array_equal(found["losses"], made["losses"])
    assert found["tokens"].dtype == made["tokens"].dtype
    with pytest.raises(AssertionError):  # nothing is saved of failures
        saved_in(tmp_path).get("other", refuse, TYPES, 3)
    assert Parts(tmp_path / "hidden" / "parts").count == 1


def test_other_content_is_reported(tmp_path: Path) -> None:
    saved = saved_in(tmp_path)
    assert saved.parts is not None
    saved.parts.write("one", b"no arrays")
    with pytest.raises(StorageError, match=r"part.one .*cannot be read"):
        saved.get("one", refuse, {}, 1)


@pytest.mark.parametrize(
    "forged",
    [
        {"losses": np.zeros((2, 2)), "tokens": np.zeros(3, int)},
        {"losses": np.zeros((3, 2), np.float32), "tokens": np.zeros(3, int)},
        {"losses": np.zeros((3, 2))},
        {"losses": np.zeros((3, 2)), "tokens": np.zeros((3, 1), int)},
        {"losses": np.zeros((3, 2)), "tokens": np.zeros(3, int), "odd": np.zeros(3)},
    ],
)
def test_arrays_of_other_types_are_refused(tmp_path: Path, forged: dict[str, np.ndarray]) -> None:
    saved_in(tmp_path).get("one", lambda: forged, TYPES, 3)
    with pytest.raises(StorageError, match=r"cannot be read .* instead of"):
        saved_in(tmp_path).get("one", refuse, TYPES, 3)
