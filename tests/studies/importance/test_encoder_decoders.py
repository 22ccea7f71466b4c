"""T5 and BART with a task on top: importance of heads, and models without some heads."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headroles import ablate_heads, find_importance, load_model, prune_heads
from headroles.models.attention.reader import open_reader
from headroles.rounding import EPSILON
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import open_run
from tests.conftest import make_tokenizer
from tests.models.families import CONFIGS, HEADS, LAYERS, make_whole
from tests.rounding import near


@pytest.fixture(scope="module", params=["t5", "bart"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier whose vocabulary is that of the tokenizer, which ends texts as it must."""
    tokenizer = make_tokenizer()
    tokenizer.eos_token = tokenizer.sep_token
    sizes = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id}
    sizes |= {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
    sizes["decoder_start_token_id"] = 0
    with pytest.MonkeyPatch.context() as patch:
        name, own = CONFIGS[request.param]
        patch.setitem(CONFIGS, request.param, (name, {**own, **sizes}))
        model = make_whole(request.param, "ForSequenceClassification")
    made = tmp_path_factory.mktemp("models") / request.param
    model.save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


def test_importance_is_of_the_heads_of_the_encoder(folder: Path, labelled: Path) -> None:
    """Derivatives by gates are slopes of the loss, found by moving one gate."""
    found = find_importance(folder, labelled)
    assert (found.of("absolute").shape, found.of("absolute").min() > 0) == ((LAYERS, HEADS), True)
    assert found.record.model.read_through == "outputs of heads"
    opened, step = open_run(folder, labelled, TaskOptions()), 3e-3
    opened.encoder.model.double()
    gates = torch.ones(2, LAYERS, HEADS, dtype=torch.float64)
    gates[:, 1, 2] += torch.tensor([step, -step])
    up, down = opened.outcomes(gates).losses.mean(0)
    slope = opened.derivatives().by_gate.mean(0)[1, 2]
    # Losses are float32, and the error of the difference falls with the square of the step.
    assert slope == pytest.approx((up - down) / (2 * step), rel=step, abs=EPSILON / step)


def test_a_pruned_model_has_the_loss_that_ablation_found(
    folder: Path, labelled: Path, tmp_path: Path
) -> None:
    frame = ablate_heads(folder, labelled).frame
    least = frame.loc[frame["loss"].idxmin()]
    head = (int(least["layer"]), int(least["head"]))
    out = tmp_path / "out"
    asked = {"task": labelled, "test": labelled, "order": "ablation"}
    pruned = prune_heads(folder, out, **asked, keep=LAYERS * HEADS - 1)
    assert list(pruned.removed) == [head]
    assert pruned.facts["after"]["loss"] == near(least["loss"])
    with open_reader(load_model(out)) as reader:
        assert reader.removed == (head,)
