"""Numbers of names: a dictionary, in less memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from headroles.corpus import Places, places


def test_places_are_those_of_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_RECENT", 10)
    rng = np.random.default_rng(0)
    found, oracle = Places(), dict[str, int]()
    for place, number in enumerate(rng.integers(700, size=2000)):
        name = f"sentence {number}"
        assert found.setdefault(name, place) == oracle.setdefault(name, place)
        assert len(found) == len(oracle)


def test_many_names_take_little_memory() -> None:
    tracemalloc.start()
    found = Places()
    for place in range(300_000):
        found.setdefault(f"sentence {place}", place)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 300_000
    # 16 bytes a name, but for at most 80,000 in a dictionary
    assert taken < 16 * 300_000 + 150 * 80_000
