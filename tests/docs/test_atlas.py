"""The atlas: its table holds what results say, and its page what the table holds."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import headroles as hr
from docs.studies.atlas import (
    COLUMNS,
    CONTROLS,
    atlas_of,
    by_step,
    by_target,
    make_of_targets,
    rounded,
    write,
)
from docs.studies.atlas_figure import bars_of, draw_steps
from docs.studies.copies import copies, pairs_in
from headroles.studies.evidence import STEPS
from tests.docs.pages import REPOSITORY
from tests.scoring.test_targets import make_model
from tests.tasks.conftest import make_task_model, save

PAGE = REPOSITORY / "docs" / "atlas.md"


def cells_of(page: str, begin: str) -> dict[str, list[str]]:
    """The cells of the table of a page whose head begins so, by the first cell of their row."""
    lines = page[page.index(begin) :].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {row[0]: row[1:] for row in rows}


def test_the_page_has_the_counts_of_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    of_encoders = cells_of(page, "| encoder | heads |")
    total = of_encoders.pop("all")
    rows = [{name: str(cell) for name, cell in row.items()} for row in by_step(hr.atlas())]
    shown = ["heads", *STEPS]
    assert of_encoders == {row["encoder"]: [row[name] for name in shown] for row in rows}
    for place, name in enumerate(shown):
        numbers = [re.findall(r"\d+", row[name]) for row in rows]
        sums = [str(sum(map(int, several))) for several in zip(*numbers, strict=True)]
        assert re.findall(r"\d+", total[place].replace(",", "")) == sums
    for control in ("words", "trees"):
        in_all = sum(int(row[f"other {control}"]) for row in rows)
        assert f"{in_all} heads" in page or f"trees {in_all}" in page
    of_targets = cells_of(page, "| model, attention |")
    for row in by_target(hr.atlas()):
        cells = of_targets[f"{row['model']}, {row['attention']}"]
        assert cells[:4] == [str(row[name]) for name in ("heads", *STEPS)]
        assert cells[5] == row["fewest"]


def test_steps_of_the_table_rest_on_one_another() -> None:
    atlas = hr.atlas()
    assert set(COLUMNS) < {*atlas}
    heads = atlas[atlas["head"].notna()]
    yes = heads["answer"] == "yes"
    assert not (heads["evidence"] != "").to_numpy()[~yes].any()
    for before, step in pairwise(("", *STEPS)):
        reached = heads["evidence"] == step
        assert reached.any()
        if before:
            assert (heads[f"{step}_answer"][reached] == "yes").all()
    assert (heads["beyond_class"][heads["evidence"] == "class"] > 0).all()
    is_cross = heads["attention"] == "cross"
    assert (heads["aer"].notna() == (is_cross & (heads["role"] == "aligned"))).all()
    named = set(",".join(heads["controls"]).split(",")) - {""}
    assert named <= set(CONTROLS)


def test_counts_are_those_of_loops() -> None:
    for row in by_step(hr.atlas()):
        rows = hr.atlas()
        rows = rows[(rows["encoder"] == row["encoder"]) & (rows["attention"] == "encoder")]
        reached: dict[str, set[tuple[int, int]]] = {step: set() for step in STEPS}
        for one in rows[rows["role"].str.startswith("syntactic")].itertuples():
            for step in STEPS[: STEPS.index(one.evidence) + 1] if one.evidence else ():
                reached[step].add((one.layer, one.head))
        counts = {step: int(str(row[step]).split(" ")[0]) for step in STEPS}
        assert counts == {step: len(heads) for step, heads in reached.items()}


def test_copies_link_each_word_to_itself_and_share_no_sentence() -> None:
    treebank = hr.read_conllu(hr.sample_treebank())
    bitext = [*copies(hr.sample_treebank())]
    ids = [sentence.id for pair in pairs_in(treebank) for sentence in pair]
    assert len(ids) == len({*ids}) == len(bitext)
    sources, targets = bitext[::2], bitext[1::2]
    for (first, second), source, target in zip(pairs_in(treebank), sources, targets, strict=True):
        assert source.document == target.document == first.document == second.document
        assert (source.words, target.words) == (first.words + second.words, second.words)
        assert source.upos == first.upos + second.upos
        assert target.governors == second.governors
        linked = [int(misc["Sure"]) - 1 for misc in target.misc]
        assert linked == [*range(len(first.words), len(source.words))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a small encoder and of a small model of text to text."""
    folder = tmp_path_factory.mktemp("atlas")
    corpus = hr.make_corpus([*hr.read_conllu(hr.sample_treebank())][:40])
    encoder, own = save(make_task_model(), folder / "models" / "tiny"), ("trees", "words")
    hr.classify_heads(encoder, corpus, controls=own).save(folder / "tiny-roles")
    hr.test_claims(encoder, corpus, claims="separators-middle").save(folder / "tiny-claims")
    translator = save(make_model("bart"), folder / "models" / "bart")
    sentences = hr.sample_treebank().read_text(encoding="utf-8").split("\n\n")[:40]
    (folder / "some.conllu").write_text("\n\n".join(sentences) + "\n\n", encoding="utf-8")
    make_of_targets(str(translator), copies(folder / "some.conllu"), folder)
    return folder


def test_the_table_has_the_rows_of_results(folder: Path, tmp_path: Path) -> None:
    write(atlas_of(folder), tmp_path / "atlas.parquet")
    atlas = pd.read_parquet(tmp_path / "atlas.parquet")
    roles = hr.load(folder / "tiny-roles", hr.RoleTable).frame
    own = atlas[(atlas["encoder"] == "tiny") & atlas["head"].notna()]
    assert own["role"].tolist() == roles["role"].tolist()
    assert own["answer"].tolist() == roles["answer"].tolist()
    assert own["mean"].to_numpy() == pytest.approx(roles["mean"].to_numpy(), rel=2**-10)
    (claim,) = atlas[atlas["role"].str.startswith("claim:")].itertuples()
    assert (claim.encoder, claim.role) == ("tiny", "claim:separators-middle")
    assert np.isfinite(claim.control)
    cross = atlas[(atlas["encoder"] == "bart") & (atlas["attention"] == "cross")]
    alignment = hr.load(folder / "bart-alignment", hr.WordAlignment)
    errors = alignment.rows_of("weights").set_index(["layer", "head"])["aer"]
    for one in cross[cross["role"] == "aligned"].itertuples():
        assert one.aer == pytest.approx(errors[one.layer, one.head], abs=1e-4)
    kinds = [row["attention"] for row in by_target(atlas)]
    assert kinds == ["cross", "decoder"]


def test_numbers_are_rounded_to_binary_digits() -> None:
    numbers = np.array([0.0, 1.0, -3.14159, 1e-30, 2047.3, np.nan, np.inf])
    found = rounded(numbers, 10)
    assert found[:5] == pytest.approx(numbers[:5], rel=2**-10)
    assert np.isnan(found[5])
    assert np.isinf(found[6])
    digits = np.frexp(found[:5])[0] * 2**10
    assert digits.tolist() == np.round(digits).tolist()


def test_the_figure_has_a_bar_for_each_encoder_and_step() -> None:
    atlas = hr.atlas()
    bars = {bar.encoder: bar for bar in bars_of(atlas)}
    assert len(bars) == 13
    panels = draw_steps(atlas).axes
    assert len(panels) == len(STEPS)
    names = [label.get_text().split(" ")[0] for label in panels[0].get_yticklabels()]
    for ax, step in zip(panels, STEPS, strict=True):
        shown, undecided = ax.containers
        for name, left, right in zip(names, shown, undecided, strict=True):
            bar = bars[name]
            heads, others = bar.counts[step]
            assert left.get_width() == pytest.approx(100 * heads / bar.n_heads)
            assert right.get_width() == pytest.approx(100 * others / bar.n_heads)
            assert right.get_x() == pytest.approx(left.get_width())
