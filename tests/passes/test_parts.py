"""What is kept of batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headroles.errors import StorageError
from headroles.passes.saved_batches import SavedBatches
from headroles.storage import Parts

FORMS = {"losses": (np.float64, (2,)), "tokens": (np.int64, ())}


def refuse() -> dict[str, np.ndarray]:
    raise AssertionError("computed again")


def kept_in(folder: Path) -> SavedBatches:
    return SavedBatches(Parts(folder / "hidden" / "parts").open({"study": "x"}))


def test_what_was_kept_is_not_computed_again(tmp_path: Path) -> None:
    made = {"losses": np.arange(6.0).reshape(2, 3).T, "tokens": np.array([1, 2, 3])}
    assert kept_in(tmp_path).get("one", lambda: made, FORMS, 3) is made
    found = kept_in(tmp_path).get("one", refuse, FORMS, 3)
    assert np.array_equal(found["losses"], made["losses"])
    assert found["tokens"].dtype == made["tokens"].dtype
    with pytest.raises(AssertionError):  # nothing is kept of what failed
        kept_in(tmp_path).get("other", refuse, FORMS, 3)
    assert Parts(tmp_path / "hidden" / "parts").count == 1


def test_nothing_is_kept_without_a_place() -> None:
    kept = SavedBatches()
    assert kept.get("one", lambda: {"a": np.ones(1)}, {}, 1) == {"a": np.ones(1)}
    with pytest.raises(AssertionError):
        kept.get("one", refuse, {}, 1)


def test_what_is_no_array_is_named(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    assert kept.parts is not None
    kept.parts.write("one", b"no arrays")
    with pytest.raises(StorageError, match=r"part one in .* cannot be read"):
        kept.get("one", refuse, {}, 1)


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
def test_arrays_of_other_forms_are_refused(tmp_path: Path, forged: dict[str, np.ndarray]) -> None:
    kept_in(tmp_path).get("one", lambda: forged, FORMS, 3)
    with pytest.raises(StorageError, match=r"cannot be read .* instead of"):
        kept_in(tmp_path).get("one", refuse, FORMS, 3)
