"""Numbers of names: a dictionary, in less memory."""

from __future__ import annotations

import numpy as np
import pytest

from headroles.corpus import IdMap, id_map


def test_numbers_are_those_of_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_map, "_RECENT", 10)
    rng = np.random.default_rng(0)
    found, oracle = IdMap(), dict[str, int]()
    for place, number in enumerate(rng.integers(700, size=2000)):
        name = f"sentence {number}"
        assert found.setdefault(name, place) == oracle.setdefault(name, place)
        assert len(found) == len(oracle)
