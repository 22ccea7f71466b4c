"""Numbers of names: a dictionary, in less memory."""

from __future__ import annotations

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
    found = Places()
    for place in range(300_000):
        found.setdefault(f"sentence {place}", place)
    assert len(found) == 300_000
    assert len(found._recent) < 80_000
    assert found._hashes.nbytes + found._places.nbytes < 16 * 300_000
