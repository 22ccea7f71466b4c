"""Models of shared queries and keys, from a model and a sample, and back through every command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from headroles import Collaboration, CollaborativeModel, collaborate_heads, read_conllu
from headroles.errors import CorpusError, TokenizerError
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads
from headroles.passes.loop import Budget, ExampleBatch, Passes
from headroles.studies.sharing.collaborate import divergences, multiplications
from tests.models.families import make_model
from tests.models.test_attention import make_inputs
from tests.models.test_low_rank import low_rank, weights_of, with_vocabulary
from tests.rounding import WEIGHTS, assert_same_sums, tolerance

Made = tuple[CollaborativeModel, Collaboration]
FEW = {"sample_examples": 24}


@pytest.fixture(scope="module")
def made(sample: Path, bert_folder: Path) -> Made:
    return collaborate_heads(bert_folder, read_conllu(sample), rank=16, **FEW)


def assert_same_weights(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert all(torch.equal(values, found[name]) for name, values in expected.items())


@pytest.mark.parametrize("method", ["shared", "per-head"])
def test_full_rank_changes_nothing(method: str, bert_folder: Path) -> None:
    _, table = collaborate_heads(bert_folder, None, rank=32, method=method, **FEW)
    errors = table.frame.loc[:, "tensor_error":"divergence_held_out"]
    assert errors.abs().to_numpy().max() < tolerance()


def test_parameters_are_those_of_the_modules(made: Made, bert_folder: Path) -> None:
    per_head = collaborate_heads(bert_folder, None, rank=16, method="per-head", **FEW)
    for model, table in (made, per_head):
        for layer, row in zip(model.model.encoder.layer, table.frame.itertuples(), strict=True):
            own = sum(values.numel() for values in layer.attention.self.scores.parameters())
            assert row.parameters == own
            assert row.parameters_before == 2 * (32 * 32 + 32)
        whole = sum(values.numel() for values in model.model.parameters())
        assert table.facts["parameters_after"] == whole
        saved = sum(table.frame["parameters_before"] - table.frame["parameters"])
        assert table.facts["parameters_before"] - whole == saved


def test_weighting_by_inputs_lowers_the_error_of_scores(bert_folder: Path) -> None:
    by_inputs, by_none = (
        collaborate_heads(bert_folder, None, rank=16, weighting=weighting, **FEW)[1].frame
        for weighting in ("inputs", "none")
    )
    assert (by_inputs["score_error"] < by_none["score_error"]).all()
    assert (by_inputs["tensor_error"] > by_none["tensor_error"]).all()


@pytest.mark.parametrize(("method", "step"), [("shared", 1), ("per-head", 4)])
def test_an_error_gives_each_layer_the_least_rank_that_meets_it(
    bert_folder: Path, treebank: Path, method: str, step: int
) -> None:
    sample = read_conllu(treebank)
    _, table = collaborate_heads(bert_folder, sample, error=0.2, method=method)
    assert (table.frame["score_error"] <= 0.2).all()
    rank = int(table.frame["rank"][0])
    _, below = collaborate_heads(bert_folder, sample, rank=rank - step, method=method)
    assert below.frame["score_error"][0] > 0.2


def test_the_same_seed_and_the_folder_give_the_same_model(
    made: Made, sample: Path, bert_folder: Path, tmp_path: Path
) -> None:
    again, table = collaborate_heads(bert_folder, read_conllu(sample), rank=16, **FEW)
    for model in (again, CollaborativeModel.load(made[0].save(tmp_path / "model"))):
        assert_same_weights(model.model.state_dict(), made[0].model.state_dict())
    assert table.frame.equals(made[1].frame)


def test_layers_that_share_a_module_share_a_fit(tokenizer: PreTrainedTokenizerFast) -> None:
    """And a model that is passed stays as it is."""
    albert = with_vocabulary(make_model("albert"))
    before = {name: values.clone() for name, values in albert.state_dict().items()}
    _, table = collaborate_heads(albert, None, rank=16, tokenizer=tokenizer, **FEW)
    assert table.frame["score_error"].nunique() == 1
    assert table.frame["divergence"].nunique() == 3
    assert_same_weights(albert.state_dict(), before)


@pytest.mark.parametrize(("tokens", "expected"), [(32, 0.73), (128, 1.29), (512, 2.70)])
def test_multiplications_at_half_the_rank(tokens: int, expected: float) -> None:
    """Of 12 heads of 32 dimensions, written out."""
    before = 2 * tokens * 384 * 384 + 12 * tokens**2 * 32
    after = 2 * tokens * 384 * 192 + 12 * tokens * 192 + 12 * tokens**2 * 192
    assert multiplications(384, 384, tokens) == before
    assert multiplications(384, 192, tokens, sharing=12) == after
    assert after / before == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("removed", [[], [(0, 1), (1, 2), (2, 0)]])
def test_divergence_is_that_of_all_real_rows(removed: list[tuple[int, int]]) -> None:
    model = make_model("bert")
    remove_heads(model, removed)
    other = low_rank(model, "shared", 12)
    for read in (model, other):
        read.set_attn_implementation("eager")
    batch = make_inputs()
    lengths, expected = batch["attention_mask"].sum(1).tolist(), np.zeros(3)
    for row, n in enumerate(lengths):
        one = {name: values[row : row + 1, :n] for name, values in batch.items()}
        with torch.no_grad():
            first, second = (
                torch.stack(read(**one, output_attentions=True).attentions)[:, 0].double()
                for read in (model, other)
            )
        expected += (first * (first / second).log()).sum(-1).mean(1).sum(-1).numpy()

    def make(rows: list[int]) -> ExampleBatch:
        return ExampleBatch(rows, [], {name: values[rows] for name, values in batch.items()})

    stacks = find_stack(model), find_stack(other)
    found = divergences(*stacks, Passes(lengths, make, str, Budget(1)))
    assert_same_sums(found, expected / sum(lengths), of=WEIGHTS)
    assert weights_of(model)[0].shape[1] == 7


# What is refused, and warned of.


def test_samples_that_are_too_small_or_unknown(bert_folder: Path, treebank: Path) -> None:
    _, table = collaborate_heads(bert_folder, read_conllu(treebank), rank=16)
    assert any("tokens for inputs of 32 dimensions" in one for one in table.warnings)
    korean = "".join(f"{k}\t\ud55c\uae00\t_\tNOUN\t_\t_\t{k - 1}\tdep\t_\t_\n" for k in (1, 2, 3))
    for text, error, message in (
        (treebank.read_text().split("\n\n")[0], CorpusError, r"has 1 examples.*2 or more"),
        ("\n".join([korean] * 4), TokenizerError, "100% of the word pieces of the sample"),
    ):
        treebank.write_text(f"{text}\n\n", encoding="utf-8")
        with pytest.raises(error, match=message):
            collaborate_heads(bert_folder, read_conllu(treebank), rank=16)
