"""The digest of an example: changes that it shows, and changes that it ignores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headroles.encoding import SPECIAL, EncodedExample

EXAMPLE = EncodedExample(
    id="a+b",
    document="d",
    input_ids=np.array([2, 7, 8, 3, 9, 3]),
    token_type_ids=np.array([0, 0, 0, 0, 1, 1]),
    segments=np.array([SPECIAL, 0, 0, SPECIAL, 1, SPECIAL]),
    words=np.array([-1, 0, 1, -1, 2, -1]),
    starts=np.array([1, 2, 4]),
    sizes=np.array([1, 1, 1]),
    governors=np.array([1, -1, -1]),
    relations=("nsubj", "root", "root"),
)


@pytest.mark.parametrize(
    ("field", "place", "value"),
    [
        ("input_ids", 1, 6),
        ("token_type_ids", 4, 0),
        ("segments", 4, 0),
        ("words", 2, 0),
        ("governors", 2, 1),
        ("relations", 0, "obj"),
    ],
)
def test_input_words_and_tree_are_noticed(field: str, place: int, value: int | str) -> None:
    before = getattr(EXAMPLE, field)
    other = list(before)
    other[place] = value
    changed = tuple(other) if field == "relations" else np.array(other)
    assert replace(EXAMPLE, **{field: changed}).digest != EXAMPLE.digest


def test_arrays_do_not_run_into_each_other() -> None:
    """Moving the last number of one array to the next gives another digest."""
    moved = replace(
        EXAMPLE,
        words=EXAMPLE.words[:-1],
        governors=np.concatenate([EXAMPLE.words[-1:], EXAMPLE.governors]),
    )
    assert moved.digest != EXAMPLE.digest


def test_names_and_token_types_of_one_segment_are_no_content() -> None:
    assert replace(EXAMPLE, id="x", document="y").digest == EXAMPLE.digest
    bare = replace(EXAMPLE, token_type_ids=None)
    zeros = replace(EXAMPLE, token_type_ids=np.zeros(6, dtype=np.int64))
    assert bare.digest == zeros.digest != EXAMPLE.digest


def test_is_the_same_everywhere() -> None:
    """Stored digests are compared with those of other machines: this one must never change."""
    assert EXAMPLE.digest == "78cc090dfea9faf9"
