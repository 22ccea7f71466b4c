"""Links of both directions, joined: against the published procedure, and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headroles as hr
from headroles.errors import CorpusError, UsageError
from headroles.studies.alignment.joined import METHODS, Links
from tests.commands import run_well

PAIRS = [
    ("a b c", "x y z", "0-0 1-1 2p2"),
    ("a b", "x", "1-0"),
    ("a b c d", "x y z", "0-1 3-2"),
]
FORWARD = ["0-0 1-1 2-1", "0-0", "0-1 1-0 3-2"]
BACKWARD = ["0-0 1-1 2-2", "1-0", "0-1 2-2 3-2"]


def published(forward: Links, backward: Links, final: str) -> Links:
    """grow-diag-final of Koehn et al. 2005, over a matrix (target, source)."""
    one, other = np.zeros((2, 8, 8), dtype=bool)
    for matrix, links in ((one, forward), (other, backward)):
        for source, target in links:
            matrix[target, source] = True
    found = one & other
    steps = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    is_growing = True
    while is_growing:
        is_growing = False
        for e, f in np.ndindex(8, 8):
            for f_step, e_step in steps if found[e, f] else ():
                near = e + e_step, f + f_step
                if not all(0 <= place < 8 for place in near) or found[near]:
                    continue
                is_free = not found[near[0]].any() or not found[:, near[1]].any()
                if is_free and (one | other)[near]:
                    found[near] = is_growing = True
    for matrix in (one, other) if final else ():
        for e, f in np.argwhere(matrix):
            free = [not found[e].any(), not found[:, f].any()]
            found[e, f] |= any(free) if final == "final" else all(free)
    return frozenset((int(f), int(e)) for e, f in np.argwhere(found))


@pytest.mark.parametrize(
    ("name", "final"),
    [("grow-diag", ""), ("grow-diag-final", "final"), ("grow-diag-final-and", "and")],
)
def test_links_grow_as_published(name: str, final: str) -> None:
    rng, sizes = np.random.default_rng(0), set()
    for _ in range(200):
        both = [
            frozenset((int(f), int(e)) for f, e in rng.integers(0, 8, size=(10, 2)))
            for _ in range(2)
        ]
        joined = METHODS[name](*both)
        assert joined == published(*both, final)
        assert both[0] & both[1] <= joined <= both[0] | both[1]
        sizes.add(len(joined))
    assert len(sizes) > 5


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    lines = ["", *(" ||| ".join(pair) for pair in PAIRS)]  # a line of the bitext without a pair
    return {
        "bitext": write(tmp_path / "pairs.bitext", lines),
        "forward": write(tmp_path / "forward.links", ["", *FORWARD]),
        "backward": write(tmp_path / "backward.links", ["", *BACKWARD]),
    }


def join(files: dict[str, Path], **options: Any) -> Any:
    names = {name: files[name] for name in ("forward", "backward")}
    return hr.symmetrize_links(hr.read_bitext(files["bitext"]), **{**names, **options})


def test_errors_are_those_of_links_by_hand(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "joined.links"
    found = join(files, by="intersection", write_links=out)
    frame = found.frame.set_index("set")
    assert out.read_text() == "\n0-0 1-1\n\n0-1 3-2\n"
    # |A|, |A and S|, |A and P| over the three pairs; |S| = 5
    for name, links, sure, possible in [
        ("forward", 7, 4, 4),
        ("backward", 7, 5, 6),
        ("intersection", 4, 4, 4),
        ("union", 10, 5, 6),
    ]:
        row = frame.loc[name]
        assert row["links"] == links
        assert row["aer"] == pytest.approx(1 - (sure + possible) / (links + 5))
        assert row["precision"] == pytest.approx(possible / links)
        assert row["recall"] == pytest.approx(sure / 5)
    assert frame["gain"].to_dict() == pytest.approx(
        (frame.loc["backward", "aer"] - frame["aer"]).to_dict()
    )
    assert (frame["n"] == 3).all()
    assert "Links of 3 pairs, in % beside 5 sure links" in str(found)


def test_without_links_by_hand_links_are_joined_alone(files: dict[str, Path]) -> None:
    lines = ["", *(" ||| ".join(pair[:2]) for pair in PAIRS)]
    found = join({**files, "bitext": write(files["bitext"], lines)})
    assert found.frame["aer"].isna().all()
    assert found.frame["links"].tolist()[:4] == [7, 7, 4, 10]
    assert "errors cannot be counted" in str(found)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["", *FORWARD[:2]], "line 4 does not have the links of a pair"),
        (["", *FORWARD, "0-0"], "line 5 has links, and the bitext no pair there"),
        (FORWARD, "line 1 has links, and the bitext no pair there"),
        (["", "0-0", "0-1", ""], r"line 3: '0-1' is no link of 2 words with 1, counted from 0"),
    ],
)
def test_links_that_do_not_fit_are_named(
    files: dict[str, Path], lines: list[str], message: str
) -> None:
    write(files["forward"], lines)
    with pytest.raises(CorpusError, match=message):
        join(files)


def test_both_directions_are_needed(files: dict[str, Path], sample: Path) -> None:
    with pytest.raises(UsageError, match="name their files with forward and backward"):
        join(files, backward=None)
    with pytest.raises(UsageError, match="links are of a bitext"):
        hr.symmetrize_links(sample, forward=files["forward"], backward=files["backward"])


def test_the_command_joins_what_align_writes(files: dict[str, Path], tmp_path: Path) -> None:
    out, joined = tmp_path / "out", tmp_path / "joined.links"
    directions = ["--forward", files["forward"], "--backward", files["backward"]]
    made = run_well(
        "symmetrize", files["bitext"], *directions, "--write-links", joined, "--out", out
    )
    assert "grow-diag-final" in made.stdout
    assert len(joined.read_text().splitlines()) == 4
    assert hr.load(out).frame["links"].tolist()[:4] == [7, 7, 4, 10]
