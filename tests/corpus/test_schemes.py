"""Label schemes: UD, CLEAR or another, and subtypes."""

from __future__ import annotations

import pytest

from headroles.corpus.schemes import (
    CLEAR,
    DEFAULT_RELATIONS,
    OTHER,
    UD,
    distinctive_labels,
    fold_subtype,
    recognise_scheme,
)


@pytest.mark.parametrize(
    ("relation", "folded"),
    [("nsubj:pass", "nsubj"), ("nsubj", "nsubj"), ("obl:arg:x", "obl"), ("", "")],
)
def test_folding_keeps_the_universal_part(relation: str, folded: str) -> None:
    assert fold_subtype(relation) == folded


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["nsubj", "obj", "root"], UD),
        (["nsubj:pass", "obl:tmod"], UD),
        (["nsubj", "amod"], UD),
        (["nsubj", "ROOT"], UD),
        ([], UD),
        (["nsubj", "dobj"], CLEAR),
        (["nsubj", "amod", "pobj", "ROOT"], CLEAR),
        (["SB", "OA", "NK"], OTHER),
        (["nsubj", "no_such_label"], OTHER),
    ],
)
def test_scheme_is_recognised(labels: list[str], scheme: str) -> None:
    assert recognise_scheme(labels) == scheme


def test_distinctive_labels_name_one_label_per_scheme() -> None:
    assert distinctive_labels(["nsubj", "amod", "punct"]) == {}
    assert distinctive_labels(["obl:tmod", "nsubj"]) == {UD: "obl"}
    assert distinctive_labels(["pobj", "obj", "dobj"]) == {CLEAR: "dobj", UD: "obj"}


@pytest.mark.parametrize("scheme", [UD, CLEAR])
def test_default_relations_are_of_their_scheme(scheme: str) -> None:
    assert recognise_scheme(DEFAULT_RELATIONS[scheme]) == scheme
