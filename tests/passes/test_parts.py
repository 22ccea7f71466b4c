"""What is kept of batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headroles.errors import StorageError
from headroles.passes import KeptBatches
from headroles.storage import Parts


def refuse() -> dict[str, np.ndarray]:
    raise AssertionError("computed again")


def kept_in(folder: Path) -> KeptBatches:
    return KeptBatches(Parts(folder / "hidden" / "parts").open({"study": "x"}))


def test_what_was_kept_is_not_computed_again(tmp_path: Path) -> None:
    made = {"losses": np.arange(6.0).reshape(2, 3).T, "tokens": np.array([1, 2])}
    assert kept_in(tmp_path).get("one", lambda: made) is made
    found = kept_in(tmp_path).get("one", refuse)
    assert np.array_equal(found["losses"], made["losses"])
    assert found["tokens"].dtype == made["tokens"].dtype
    with pytest.raises(AssertionError):  # nothing is kept of what failed
        kept_in(tmp_path).get("other", refuse)
    assert Parts(tmp_path / "hidden" / "parts").count == 1


def test_nothing_is_kept_without_a_place() -> None:
    kept = KeptBatches()
    assert kept.get("one", lambda: {"a": np.ones(1)}) == {"a": np.ones(1)}
    with pytest.raises(AssertionError):
        kept.get("one", refuse)


def test_what_is_no_array_is_named(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    assert kept.parts is not None
    kept.parts.write("one", b"no arrays")
    with pytest.raises(StorageError, match=r"part one in .* cannot be read"):
        kept.get("one", refuse)
