"""Wording: what is listed for people."""

from __future__ import annotations

import pytest

from headroles.wording import listed


@pytest.mark.parametrize(
    ("names", "expected"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d"], "a, b, c, ...")],
)
def test_few_are_listed_whole(names: list[str], expected: str) -> None:
    assert listed(names) == expected
