"""What a comparison shows: views against counts by hand, summary, files, and known changes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles import RoleComparison, compare_roles, read_conllu, score_heads
from headroles.results.shown import Grid
from headroles.roles import contrast_of
from headroles.scoring.scores import HeadScores
from headroles.studies.comparison.compare import CHANGES, STATUSES, role_status
from headroles.testing.evidence import ANSWERS
from tests.conftest import flat, make_bert
from tests.studies.comparison.made import make_scores, random_scores, shifted

STATUS_OF = {
    ("yes", "yes"): "kept",
    ("no", "yes"): "gained",
    ("yes", "no"): "lost",
    ("no", "no"): "absent",
}
ARC = "syntactic:nsubj:to_governor"


def test_status_of_all_answers() -> None:
    """Not shown again is not shown to be gone, and not shown before is not shown to be new."""
    for pair in product(ANSWERS, ANSWERS):
        expected = "untestable" if "untestable" in pair else STATUS_OF.get(pair, "undecided")
        assert role_status(*([end] for end in pair)).tolist() == [expected]
        assert expected in STATUSES


@pytest.fixture(scope="module")
def shifts() -> RoleComparison:
    """Two checkpoints; ``block`` has one example and is not tested."""
    before = random_scores(n=60, documents=6)
    before.values[1:, ..., 1] = np.nan
    before.values[0, ..., 1] = 3
    before.counts[:, 1] = np.arange(60) == 0
    by = 1.5 * (3 - np.nanmean(before.values, axis=0))  # to the other side of the threshold
    checkpoints = shifted(before, by, noise=0.5), shifted(before, by / 3, noise=0.5, seed=2)
    return compare_roles(before, *checkpoints, clusters="none")


def test_counts_are_counts(shifts: RoleComparison) -> None:
    counts, frame = shifts.counts(), shifts.frame
    key = ["checkpoint", "role", "layer"]
    assert len(counts) == 2 * 3 * 2
    assert (counts[list(STATUSES)].sum(axis=1) == counts.heads).all()
    for _, row in counts.iterrows():
        mine = frame[(frame[key] == row[key]).all(axis=1)]
        expected = {"heads": 3, **{name: (mine.status == name).sum() for name in STATUSES}}
        expected |= {column: (mine.change == answer).sum() for column, answer in CHANGES.items()}
        assert row[[*expected]].to_dict() == expected
        assert (row.changed, row.equivalent) == (mine.changed.sum(), mine.equivalent.sum())
    assert counts[["gained", "lost"]].sum().min() > 0
    assert (counts[counts.role == "block"].untestable == 3).all()
    for part in ("60 examples that all models read", "Layers", "Moved"):
        assert part in shifts.in_full()
    changes = shifts.changes()
    kinds = changes["status"].where(changes["status"].isin(["lost", "gained"]), changes["change"])
    n = dict(kinds.value_counts())
    assert kinds.drop_duplicates().tolist() == ["lost", "gained", "changed"]
    assert (kinds != kinds.shift()).sum() == 3
    assert (n["lost"], n["gained"]) == (counts["lost"].sum(), counts["gained"].sum())
    is_shown = frame["changed"] | frame["status"].isin(["lost", "gained"])
    assert len(changes) == is_shown.sum() > n["lost"] + n["gained"]
    for _, rows in changes.groupby(kinds):
        assert rows["effect_size"].abs().is_monotonic_decreasing


def test_all_views_count_the_same_roles() -> None:
    """A role that pools relations counts their attention again: neither text nor view has it."""
    roles = ("syntactic:any:to_governor", "syntactic:obj:to_governor")
    rng = np.random.default_rng(0)
    before = make_scores(rng.normal([6.0, 1.0], 0.5, (40, 1, 2, 2)), roles)
    after = shifted(before, [-5.0, 0.0], noise=0.1)
    shifts = compare_roles(before, after)
    assert (shifts.frame["status"] == "lost").sum() == 2
    assert "No head was shown to lose or gain a role." in str(shifts)
    assert shifts.layers()[["gained", "lost"]].sum().tolist() == [0, 0]
    assert shifts.counts()["lost"].sum() == len(shifts.changes()) == 0
    assert shifts.moved()["changed"].tolist() == [0, 0]


def test_layers_hold_means_over_heads_and_roles(shifts: RoleComparison) -> None:
    layers, frame = shifts.layers(), shifts.frame
    assert layers[["checkpoint", "layer"]].values.tolist() == [[c, k] for c in "12" for k in (0, 1)]
    assert set(layers.tests) == {6}
    by_layer = frame[frame.change != "untestable"].groupby(["checkpoint", "layer"])
    for (_, row), (_, tested) in zip(layers.iterrows(), by_layer, strict=True):
        expected = {"tests": len(tested), "chance": np.sqrt(2 / np.pi / 60)}
        expected |= tested[["changed", "equivalent"]].mean()
        expected |= {"effect_size": tested.effect_size.abs().mean()}
        expected |= {"rms_difference": np.sqrt((tested.difference**2).mean())}
        expected |= {name: (tested.status == name).sum() for name in ("gained", "lost")}
        assert row[[*expected]].to_dict() == pytest.approx(expected)


@pytest.mark.parametrize("documents", [1, 30])
def test_chance_is_what_unchanged_means_give(documents: int) -> None:
    """With clusters too: their standard error is larger than sd / sqrt(n)."""
    rng = np.random.default_rng(0)
    own = rng.normal(0, 1, (90, 1, 400, 1))
    shared = rng.normal(0, 1, (90, 1, 400, 1))[np.arange(90) % documents]
    differences = own + (shared if documents > 1 else 0)
    before = make_scores(np.zeros_like(own), ("local",), documents=documents)
    layer = compare_roles(before, shifted(before, differences)).layers().iloc[0]
    # the mean of 400 absolute t values: a standard error of about 0.03 of it
    assert layer.effect_size == pytest.approx(layer.chance, rel=0.1)


def test_heads_that_moved_farthest_come_first(shifts: RoleComparison) -> None:
    before = random_scores(n=60)
    by = np.zeros((2, 3, 3))
    by[1, 2] = 0.1, 0.2, -2.0
    by[0, 1, 0] = 1.0
    found = compare_roles(before, shifted(before, by, noise=0.5))
    moved = found.moved(2)
    expected = [[1, 2, "syntactic:any:to_governor"], [0, 1, "local"]]
    assert moved[["layer", "head", "role"]].values.tolist() == expected
    mine = found.frame[(found.frame.layer == 1) & (found.frame["head"] == 2)]
    assert moved.effect_size[0] == pytest.approx(np.sqrt((mine.effect_size**2).mean()))
    assert moved.changed[0] == mine.changed.sum()
    assert moved.role_effect_size[0] == mine.effect_size.iloc[2] < 0
    assert moved.role_difference[0] == mine.difference.iloc[2]
    both = shifts.moved(5)
    assert both.checkpoint.tolist() == ["1"] * 5 + ["2"] * 5
    assert all(heads.is_monotonic_decreasing for _, heads in both.groupby("checkpoint").effect_size)
    assert not both["role"].eq("block").any()  # which is untestable


def test_the_summary_counts_and_names_roles_once() -> None:
    """A positional answer is one of a head without the role."""
    rng, roles = np.random.default_rng(5), ("local", ARC, contrast_of(ARC))
    shape = (60, 4, 12, len(roles))
    ends = []
    for _ in range(2):  # with and without an arc role, and its contrast
        means = rng.choice([2.0, 3.0, 4.0], size=shape[1:])
        means[..., 2] = rng.choice([-1.0, 0.0, 1.0], size=shape[1:3])
        ends.append(means + rng.normal(scale=0.3, size=shape))
    of_arcs = compare_roles(*(make_scores(values, roles) for values in ends))
    rows = of_arcs.rows_counted_once()
    assert set(rows["role"]) == {"local", ARC}
    ends = rows[["answer_before", "answer_after"]].replace("positional", "no")
    expected = [STATUS_OF.get(tuple(pair), "undecided") for pair in ends.itertuples(index=False)]
    assert rows["status"].tolist() == expected
    assert set(expected) >= {"kept", "lost", "gained", "absent", "undecided"}
    arcs = rows[rows["role"] == ARC]
    lines = repr(of_arcs).splitlines()
    row = next(line for line in lines if line.startswith("  grammatical partners")).split()[-6:]
    assert row[1:4] == [str((arcs["status"] == name).sum()) for name in ("kept", "lost", "gained")]
    first = arcs[arcs["status"] == "lost"].iloc[0]
    named = next(line for line in lines if line.startswith("Lost: "))
    assert f"{first['layer']}-{first['head']} subject -> its verb" in named
    lost, gained = (int((rows["status"] == name).sum()) for name in ("lost", "gained"))
    assert f"Heads lost {lost} roles and gained {gained}." in lines
    grid = next(part for part in of_arcs.shown if isinstance(part, Grid))
    total = np.sum([[*map(int, row[1:])] for row in grid.rows], axis=0)
    assert total[2:4].tolist() == [lost, gained]
    assert total[0] + total[4] == 2 * total[1] + lost + gained + total[5]
    now = f"*{first['answer_after']}* after"
    ends = [f"{first[name]:.1f}" for name in ("mean_before", "mean_after")]
    assert f"{first['head']} subject -> its verb ({now}, {' to '.join(ends)})" in flat(of_arcs)
    shown, n_changed = flat(of_arcs), rows["changed"].sum()
    n_same, n_open = ((rows["change"] == name).sum() for name in ("equivalent", "undecided"))
    assert (
        f"{n_changed} of {len(rows)} means (48 heads x 2 roles) changed by more than 0.5, {n_same} "
        f"by less, {n_open} undecided."
    ) in shown
    assert "Changed means are in layers 0, 1" in shown
    largest = rows.loc[rows["difference"].abs().idxmax()]
    assert f"The largest change: {largest['layer']}-{largest['head']} " in shown
    assert "to other words at the same distance by 0.5" in shown
    assert "Score with beyond_offset" not in shown
    # Distance was not controlled there, and nothing changed.
    scores = make_scores(random_scores(documents=6).values, ("local", "block", ARC))
    shown = flat(compare_roles(scores, scores))
    assert "No head was shown to lose or gain a role." in shown
    assert "Lost: " not in shown
    assert "Score with beyond_offset" in shown


# Comparisons whose answer is known, on arrays and on a small encoder.


LAYERS, HEADS = 2, 4
HEAD = 2  # the one that is changed, in the last layer: nothing comes after it


@pytest.fixture(scope="module")
def score(
    sample: Path, tokenizer: PreTrainedTokenizerBase, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., HeadScores]:
    """A function that scores ten documents of the sample treebank."""
    documents = sample.read_text(encoding="utf-8").split("# newdoc")
    file = tmp_path_factory.mktemp("part") / sample.name
    file.write_text("# newdoc".join(documents[:11]), encoding="utf-8")
    asked = {"tokenizer": tokenizer, "preset": "published"}
    return lambda model, **more: score_heads(model, read_conllu(file), **asked, **more)


def small_bert(noise: float = 0.0) -> PreTrainedModel:
    """The small BERT with noise on the query weights of one head of its last layer."""
    model = make_bert(layers=LAYERS, heads=HEADS)
    weight = model.encoder.layer[-1].attention.self.query.weight.data
    rows = slice(HEAD * weight.shape[0] // HEADS, (HEAD + 1) * weight.shape[0] // HEADS)
    generator = torch.Generator().manual_seed(1)
    weight[rows] += noise * weight.std() * torch.randn(weight[rows].shape, generator=generator)
    return model


def test_one_noisy_head_is_found_and_no_other(score: Callable[..., HeadScores]) -> None:
    before, *noisy = (score(small_bert(noise)) for noise in (0, 0.3, 3.0))
    shifts = compare_roles(before, noisy[-1], margin=1e-3)
    frame, moved = shifts.frame, shifts.moved(2)
    touched = (frame.layer == LAYERS - 1) & (frame["head"] == HEAD)
    assert (frame[touched].p_value < 0.05 / len(frame)).any()
    assert not frame[~touched].changed.any()
    assert (frame[~touched].difference == 0).all()
    assert moved.loc[0, ["layer", "head"]].tolist() == [LAYERS - 1, HEAD]
    assert moved.effect_size[1] == 0
    layers = compare_roles(before, *noisy).layers()
    assert (layers[layers.layer < LAYERS - 1].rms_difference == 0).all()
    with_little, with_much = layers[layers.layer == LAYERS - 1].rms_difference
    assert 0 < with_little < with_much


def test_nothing_changes_where_nothing_changed(score: Callable[..., HeadScores]) -> None:
    """Scored again, examples, scores and roles are identical; another batch rounds otherwise."""
    before, again = (score(small_bert()) for _ in range(2))
    assert again.digests == before.digests
    shifts = compare_roles(before, again)
    frame = shifts.frame
    assert (frame.difference == 0).all()
    assert set(frame.change) == {"equivalent"}
    assert "of them have the same scores before and after), 0 undecided." in flat(shifts)
    assert not frame.status.isin(["gained", "lost"]).any()
    other = score(small_bert(), batch_tokens=300)
    frame = compare_roles(before, other, margin=1e-4).frame
    assert (frame.difference.abs() < 1e-5).all()
    assert not frame.change.isin(["changed"]).any()
