"""Tokens and arcs without a tree: read as written, from files as from memory; contacts found."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headroles import assign_roles, make_corpus, read_arcs, score_attention
from headroles.corpus import CorpusOptions, open_corpus
from headroles.errors import CorpusError, UsageError
from headroles.roles.syntactic import LISTED, Arc, arcs_of

CODE = {
    "id": "f",
    "document": "a.py",
    "tokens": ["x", "=", "x", "+", "1"],
    "arcs": [[0, 2, "use"], [2, 0, "use"], [0, 4, "flow:value"], [0, 1, "next"], [0, 2, "use"]],
}


def write(folder: Path, *lines: Any) -> Path:
    file = folder / "t.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


@pytest.mark.parametrize("least", [1, 2, 3])
def test_files_and_objects_have_the_arcs_of_their_distance(tmp_path: Path, least: int) -> None:
    plain = {"tokens": ["a", "b"], "arcs": []}
    read = list(read_arcs(write(tmp_path, CODE, plain), least_distance=least))
    made = list(make_corpus([CODE, plain], least_distance=least))
    expected = [Arc(0, 2, "use"), Arc(0, 4, "flow:value"), Arc(0, 1, "next"), Arc(2, 0, "use")]
    for first, second in (read, made):
        assert arcs_of(LISTED, first) == [
            one for one in expected if abs(one.dependent - one.governor) >= least
        ]
        assert (first.id, first.document, first.words) == ("f", "a.py", tuple(CODE["tokens"]))
        assert not arcs_of(LISTED, second)
    assert [(one.id, one.document) for one in (read[1], made[1])] == [
        ("t-2", "t-2"),
        ("arcs-2", "arcs-2"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": []}, "give tokens, a list of texts, and arcs"),
        ({"arcs": None}, "give tokens, a list of texts, and arcs"),
        ({"tokens": ["a", 3]}, "3 is no text"),
        ({"id": ""}, "'' is no text"),
        ({"arcs": [[0, 1, "x"], [0, 5, "x"]]}, r"arc 1 is \[0, 5, 'x'\], but .* tokens of 0 to 4"),
        ({"arcs": [[-1, 1, "x"]]}, r"arc 0 is \[-1, 1, 'x'\], but an arc joins tokens of 0 to 4"),
        ({"arcs": [[1, 1, "x"]]}, "an arc joins two tokens"),
        ({"arcs": [[0, 1]]}, r"arc 0 is \[0, 1\], but an arc is \[from, to, label\]"),
        ({"arcs": [[0, 1, ""]]}, "with a label without commas"),
        ({"arcs": [[0, 1, "a,b"]]}, "with a label without commas"),
        ({"arcs": [[0, 1.5, "a"]]}, r"is \[from, to, label\]"),
    ],
)
def test_defects_are_named_with_their_place(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    bad = {**CODE, "id": "g", **change}
    with pytest.raises(CorpusError, match=rf"t\.jsonl, line 2: .*{message}") as caught:
        list(read_arcs(write(tmp_path, CODE, bad)))
    assert "\n" not in str(caught.value)
    with pytest.raises(CorpusError, match=f"arcs-2: .*{message}"):
        make_corpus([CODE, bad])


def test_repeated_ids_and_idle_options_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path, CODE, CODE)
    with pytest.raises(CorpusError, match="line 2: the id 'f' repeats"):
        list(open_corpus([file], CorpusOptions()))
    for options in ({"on_bad_sentence": "skip"}, {"lines": True}):
        with pytest.raises(UsageError, match="applies to"):
            open_corpus([file], CorpusOptions(**options))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="least_distance applies to files of tokens and arcs"):
        open_corpus(["t.conllu"], CorpusOptions(least_distance=4))


def proteins(n: int = 60, length: int = 24) -> list[dict[str, Any]]:
    """Chains with contacts far apart, in both directions."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(n):
        pairs = [(i, j) for i in range(length) for j in range(i + 6, length)]
        chosen = rng.permutation(len(pairs))[:8]
        contacts = [(*pairs[k][::side], "contact") for k in chosen for side in (1, -1)]
        letters = [str(one) for one in rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), length)]
        made.append({"id": f"p{number}", "tokens": letters, "arcs": [list(a) for a in contacts]})
    return made


def attend(protein: dict[str, Any]) -> np.ndarray:
    """Head 0 attends to contacts, head 1 to the token six places on, head 2 to all alike."""
    n = len(protein["tokens"])
    weights = np.full((1, 3, n, n), 0.1)
    for first, second, _ in protein["arcs"]:
        weights[0, 0, first, second] = 5
    weights[0, 1, np.arange(n - 6), np.arange(6, n)] = 5
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def beyond_distance(weights: np.ndarray, arcs: list[list[Any]]) -> float:
    """Attention along contacts less that to pairs at their distance that no arc joins, times n."""
    joined = {frozenset(arc[:2]) for arc in arcs}
    n, found = len(weights), []
    for first, second, label in arcs:
        starts = range(max(0, first - second), min(n, n + first - second))
        pairs = ((k, k + second - first) for k in starts)
        controls = [weights[pair] for pair in pairs if frozenset(pair) not in joined]
        if label == "contact" and controls:
            found.append(n * (weights[first, second] - np.mean(controls)))
    return float(np.mean(found))


def test_arcs_of_other_relations_are_no_controls() -> None:
    made, arrays, both = proteins(), {}, []
    for one, other in pairwise(made):
        bonds = [[*arc[:2], "bond"] for arc in other["arcs"]]
        arrays[one["id"]] = attend({**one, "arcs": bonds})
        both.append({**one, "arcs": one["arcs"] + bonds})
    alignment = {one["id"]: list(range(len(one["tokens"]))) for one in both}
    corpus = make_corpus(both, least_distance=6)
    scores = score_attention(arrays, corpus, alignment, relations="contact", pairing="none")
    frame = assign_roles(scores).frame.set_index(["head", "role"])
    expected = np.mean([beyond_distance(arrays[one["id"]][0, 0], one["arcs"]) for one in both])
    found = frame.loc[(0, "syntactic:contact:to_governor"), "beyond_distance"]
    assert found == pytest.approx(expected, abs=1e-5)
