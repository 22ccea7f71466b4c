"""Heads of encoder, decoder and cross-attention in the tables, names and pictures of studies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModelForSeq2SeqLM

import headroles as hr
from headroles.errors import StorageError, UsageError
from headroles.head_rows import HeadRows
from headroles.record import Record
from headroles.studies.importance.ablate import Ablations
from headroles.studies.removals import without_each
from headroles.tasks.options import RunOptions
from headroles.tasks.running import TaskRun, open_run
from tests.commands import run_well
from tests.rounding import near
from tests.scoring.test_targets import PAIRS as ALIGNED
from tests.tasks.test_writing import pairs as pairs
from tests.tasks.test_writing import translator as translator

KINDS = {"encoder": 3, "decoder": 2, "cross": 2}


@pytest.fixture(scope="module")
def opened(translator: Path, pairs: Path) -> TaskRun:
    return open_run(translator, pairs, RunOptions())


@pytest.fixture(scope="module")
def ablated(translator: Path, pairs: Path) -> Ablations:
    return hr.ablate_heads(translator, pairs, sets="single,others,layers,thirds,kinds")


def test_rows_and_places_by_hand() -> None:
    rows = HeadRows(KINDS)
    assert [rows.place(row) for row in (0, 2, 3, 6)] == [
        *(("encoder", 0), ("encoder", 2), ("decoder", 0), ("cross", 1)),
    ]
    assert (rows.name((6, 5)), rows.name_of_layer(4)) == ("cross 1-5", "decoder layer 1")
    assert (HeadRows().name((6, 5)), HeadRows().name_of_layer(4)) == ("6-5", "layer 4")
    assert rows.with_column(["set", "layer", "head"]) == ("set", "attention", "layer", "head")
    assert HeadRows().with_column(["layer"]) == ("layer",)
    spoilt = ({"layers": 8, "stacks": KINDS}, {"layers": 7, "stacks": KINDS, "stack_heads": {}})
    for said, message in zip(spoilt, ("8 layers, of which", "heads of {}, and"), strict=True):
        with pytest.raises(ValueError, match=message):
            Record.read({"model": {"heads": 4, **said}})


def test_importance_names_heads_by_kind(
    translator: Path, pairs: Path, opened: TaskRun, tmp_path: Path
) -> None:
    found = hr.find_importance(translator, pairs)
    frame = found.frame[found.frame["estimator"] == "absolute"]
    assert frame["attention"].tolist() == [kind for kind, n in KINDS.items() for _ in range(4 * n)]
    assert frame["layer"].tolist() == [
        at for n in KINDS.values() for at in range(n) for _ in "1234"
    ]
    slopes = np.abs(opened.derivatives().by_gate).mean(0)
    known = ~np.isnan(found.of("absolute"))
    assert known.sum(1).tolist() == [4, 4, 4, 2, 2, 2, 2]
    assert found.of("absolute")[known] == near(slopes[known])
    most = found.record.model.rows.name(divmod(int(np.nanargmax(found.of("absolute"))), 4))
    assert most in str(found)
    assert hr.load(found.save(tmp_path / "importance")) == found
    titles = [grid.get_title() for grid in found.plot().child_axes]
    assert titles == list(KINDS)
    heads = found.export("latex", columns=["head", "importance"]).decode()
    assert "cross 1-1" in heads


def test_token_estimates_are_per_token_of_the_queries(
    translator: Path, pairs: Path, opened: TaskRun
) -> None:
    slopes = opened.derivatives()
    expected = slopes.by_token.mean(0) / slopes.tokens.mean(0)[:, None]
    found = hr.find_importance(translator, pairs).of("token")
    known = ~np.isnan(found)
    assert found[known] == near(expected[known])


def test_every_set_of_heads_is_removed(ablated: Ablations, opened: TaskRun, tmp_path: Path) -> None:
    counts = ablated.frame["set"].value_counts().to_dict()
    assert counts == {"single": 20, "others": 20, "layers": 7, "thirds": 7, "kinds": 3}
    rows = ablated.frame.set_index("removed")
    cross = [(row, head) for row in (5, 6) for head in (0, 1)]
    removed = {
        "cross 1-0": [(6, 0)],
        "cross layer 1": cross[2:],
        "cross layer 0 but 1": [(5, 0)],
        "encoder lower third": [(0, head) for head in range(4)],
        "cross": cross,
    }
    found = opened.outcomes(without_each(removed.values(), opened.shape)).losses.mean(0)
    assert rows.loc[[*removed], "loss"].to_numpy() == near(found)
    assert rows.loc["cross 1-0", ["attention", "layer", "head"]].tolist() == ["cross", 1, 0]
    assert rows.loc["cross", ["attention", "layer", "head"]].tolist() == ["", -1, -1]
    singles = ablated.frame.loc[ablated.frame["set"] == "single", "loss_change"]
    rises = ablated.rises()
    assert rises[~np.isnan(rises)].tolist() == singles.tolist()
    folder = ablated.save(tmp_path / "ablations")
    assert hr.load(folder) == ablated
    assert len(ablated.plot().child_axes) == 3
    run_well("report", folder)


def test_tables_that_contradict_themselves_are_refused(ablated: Ablations, tmp_path: Path) -> None:
    for number, change in enumerate(
        (
            {"attention": "encoder"},
            {"attention": "self"},
        )
    ):
        frame = ablated.frame.copy()
        row = frame.index[frame["removed"] == "cross 1-0"]
        for name, value in change.items():
            frame.loc[row, name] = value
        spoilt = type(ablated)(frame, ablated.record, ablated.outcomes)
        with pytest.raises(
            StorageError, match=r"removed names heads|texts other than|it has . of the"
        ):
            Ablations.load(spoilt.save(tmp_path / str(number)))


def test_one_kind_alone_has_the_losses_that_it_has_among_all(
    ablated: Ablations, translator: Path, pairs: Path
) -> None:
    alone = hr.ablate_heads(translator, pairs, attention="cross")
    assert alone.frame["removed"].tolist() == ["cross 0-0", "cross 0-1", "cross 1-0", "cross 1-1"]
    among = ablated.frame.set_index("removed").loc[alone.frame["removed"], "loss"]
    assert alone.frame["loss"].to_numpy() == near(among.to_numpy())


@pytest.fixture(scope="module")
def cross_roles(translator: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cross")
    lines = "".join(f"{' ||| '.join(pair)}\n" for pair in ALIGNED * 3)
    (folder / "pairs.bitext").write_text(lines, "utf-8")
    table = hr.classify_heads(
        translator, hr.read_bitext(folder / "pairs.bitext"), attention="cross", threshold=0.1,
        score="bias", roles="delimiter",
    )  # fmt: skip
    assert table.heads_with("delimiter")
    return table.save(folder / "roles")


def test_heads_with_roles_are_compared_with_those_of_their_kind(
    translator: Path, pairs: Path, cross_roles: Path
) -> None:
    having = hr.RoleTable.load(cross_roles).heads_with("delimiter")
    options = {"roles_from": cross_roles, "draws": 9, "permutations": 99}
    found = hr.importance_by_role(translator, pairs, **options)
    assert dict(found.record.model.stacks) == {"cross": 2}
    run = open_run(translator, pairs, RunOptions(attention="cross"))
    expected = run.outcomes(without_each([having], run.shape)).losses.mean(0)
    of_role = {"role": "delimiter"}
    assert found.where(**of_role).frame["removed_loss"].tolist() == near(expected)
    every = hr.importance_by_role(translator, pairs, attention="encoder,cross", **options)
    assert every.where(**of_role).frame["removed_loss"].tolist() == near(expected)
    with pytest.raises(UsageError, match=r"the roles are of cross attention; take its heads along"):
        hr.importance_by_role(translator, pairs, attention="decoder", **options)


def test_models_with_zeros_are_those_with_closed_gates(
    translator: Path, pairs: Path, opened: TaskRun, cross_roles: Path, tmp_path: Path
) -> None:
    """Plain transformers reads them, and nothing is missing."""
    zeroed = {"keep": 8, "written_as": "zeroed", "task": pairs, "test": pairs}
    pruning = hr.prune_heads(translator, tmp_path / "zeroed", **zeroed)
    gates = without_each([pruning.removed], opened.shape)
    expected = opened.outcomes(gates).losses
    model, report = AutoModelForSeq2SeqLM.from_pretrained(
        tmp_path / "zeroed", output_loading_info=True
    )
    assert not any(report[f"{how}_keys"] for how in ("missing", "unexpected", "mismatched"))
    plain = open_run(model.eval(), pairs, RunOptions(tokenizer=str(translator)))
    assert plain.outcomes_unmasked().losses == near(expected)
    loaded = hr.load(tmp_path / "zeroed")
    assert loaded == pruning
    assert len(loaded.kept) == 8
    assert loaded.frame["removed"].sum() == 12
    assert set(loaded.frame["attention"]) == set(KINDS)
    assert "heads kept cross" in str(loaded)
    stays = [
        sum(loaded.record.model.rows.place(row)[0] == kind for row, _ in loaded.kept)
        for kind in KINDS
    ]
    assert f"Heads that stay: {stays[0]} of 12 encoder ({stays[0] / 12:.0%})" in str(loaded)
    with_role = {**zeroed, "keep": 18, "order": "with_role", "role": "delimiter"}
    first = hr.prune_heads(
        translator, tmp_path / "roles", roles_from=cross_roles, **with_role
    ).removed
    having = hr.RoleTable.load(cross_roles).heads_with("delimiter")
    assert {(layer - 5, head) for layer, head in first} <= set(having)


def test_orders_by_layers_begin_in_every_kind(translator: Path, tmp_path: Path) -> None:
    options = {"written_as": "zeroed", "attention": "encoder,decoder,cross", "order": "bottom"}
    pruning = hr.prune_heads(translator, tmp_path / "bottom", keep=12, **options)
    assert {layer for layer, _ in pruning.removed} == {0, 3, 5}


def test_curves_and_gates_are_over_all_kinds(translator: Path, pairs: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.tsv"
    more.write_text(pairs.read_text("utf-8") + "\n".join(pairs.read_text("utf-8").split("\n")[1:]))
    curves = hr.find_pruning_curves(
        translator, pairs, more, orders="importance,random", shares="0.5"
    )
    assert set(curves.frame["measure"]) == {"loss", "token_accuracy", "perplexity"}
    assert hr.load(curves.save(tmp_path / "curves")) == curves
    kept = curves.view("kinds")
    assert kept["order"].tolist() == ["importance", "random"]
    n_kept = {kind: n * (4 if kind == "encoder" else 2) for kind, n in KINDS.items()}
    shares = kept[[*KINDS]].to_numpy() @ [n_kept[kind] for kind in KINDS]
    assert shares.tolist() == pytest.approx([10, 10])
    gating = hr.gate_heads(
        translator, pairs, tmp_path / "gated", keep=8, seeds=1, updates=3, attention="encoder"
    )
    assert len(gating.removed) == 4
