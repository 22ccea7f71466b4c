"""Queries and keys of low rank in decoders and across, against the model that they replace."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from transformers import PreTrainedModel

from headroles import collaborate_heads, load_model, read_bitext
from headroles.errors import ModelSupportError, UsageError
from headroles.models.heads.stack import find_stack
from headroles.models.options import FACTOR_METHODS
from headroles.models.shared.factorisation import InputMoments, factorise
from headroles.models.shared.sites import find_sites, install, reading_inputs
from tests.commands import run, run_well
from tests.conftest import save
from tests.models.decoders import make_decoder
from tests.rounding import WEIGHTS, assert_same_outputs, near, tolerance
from tests.scoring.test_targets import bitext as bitext
from tests.tasks.test_writing import make_translator

KINDS = ("decoder", "cross")


def inputs_of(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Two sources and targets of different lengths, with padding."""
    generator = torch.Generator().manual_seed(0)
    ids = {name: torch.randint(5, 90, (2, n), generator=generator) for name, n in SIZES.items()}
    masks = {name: torch.ones_like(values) for name, values in ids.items()}
    masks["source"][1, 4:] = 0
    masks["target"][1, 3:] = 0
    if not model.config.is_encoder_decoder:
        return {"input_ids": ids["target"], "attention_mask": torch.ones_like(masks["target"])}
    return {
        "input_ids": ids["source"],
        "attention_mask": masks["source"],
        "decoder_input_ids": ids["target"],
        "decoder_attention_mask": masks["target"],
    }


SIZES = {"source": 7, "target": 5}


def low_rank(model: PreTrainedModel, method: str, kind: str) -> PreTrainedModel:
    changed = copy.deepcopy(model)
    for site in find_sites(find_stack(changed, kind)):
        moments = InputMoments.none(site.maps.query.shape[2])
        install(changed, site, factorise(site.maps, moments, site.maps.full_rank, method))
    return changed


def written(model: PreTrainedModel, **how: Any) -> list[list[int]]:
    inputs = inputs_of(model)
    source = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    return model.generate(**source, max_new_tokens=6, do_sample=False, **how).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", FACTOR_METHODS)
def test_full_rank_is_the_original(kind: str, method: str, tmp_path: Path) -> None:
    """Its translations too, which are written with a cache; and after it was saved."""
    original = make_translator("marian" if method == "shared" else "bart").double()
    made = low_rank(original, method, kind)
    inputs = inputs_of(original)
    with torch.no_grad():
        before, after = (model(**inputs).logits for model in (original, made))
    assert_same_outputs(after, before)
    assert type(made).__name__ == type(original).__name__
    for beams in (1, 2):
        assert written(made, num_beams=beams) == written(original, num_beams=beams)
    save(made.float(), tmp_path / "model")
    with torch.no_grad():
        again = load_model(tmp_path / "model")(**inputs).logits
        assert_same_outputs(again, made(**inputs).logits)


def test_decoders_alone() -> None:
    original = make_decoder("opt").double()
    made = low_rank(original, "shared", "encoder")
    with torch.no_grad():
        inputs = inputs_of(original)
        assert_same_outputs(made(**inputs)[0], original(**inputs)[0])


@pytest.mark.parametrize("kind", ["encoder", *KINDS])
def test_positions_in_scores_are_refused_by_name(kind: str) -> None:
    with pytest.raises(
        ModelSupportError, match=r"attention scores of T5 have a bias of relative p"
    ):
        find_sites(find_stack(make_translator("t5"), kind))


@pytest.mark.parametrize("name", ["gpt_neo", "gpt2", "llama"])
def test_other_decoders_are_refused_by_name(name: str) -> None:
    with pytest.raises(ModelSupportError, match=r"attention of GPT-Neo cannot be run|GPT-2|rotary"):
        find_sites(find_stack(make_decoder(name)))


def test_moments_across_are_of_queries_and_of_keys() -> None:
    model = make_translator("bart")
    stack, inputs = find_stack(model, "cross"), inputs_of(model)
    sites = find_sites(stack)
    states: list[torch.Tensor] = []
    attention = model.model.decoder.layers[1].encoder_attn

    def keep(module: Any, given: Any) -> None:
        states.append(given[0].detach().double())

    hooks = [one.register_forward_pre_hook(keep) for one in (attention.q_proj, attention.k_proj)]
    with reading_inputs(stack, sites) as read:
        sums = dict(read(inputs))
    for hook in hooks:
        hook.remove()
    masks = (inputs["decoder_attention_mask"].bool(), inputs["attention_mask"].bool())
    queries, keys = (
        [own[real] for own, real in zip(both, mask, strict=True)]
        for both, mask in zip(states, masks, strict=True)
    )
    mean = torch.cat(queries).mean(0)
    assert sums[1].moments().mean == near(mean.numpy(), 10 * WEIGHTS)
    apart = torch.cat([own - own.mean(0) for own in keys])
    within = (apart.T @ apart / len(apart)).numpy()
    assert sums[len(sites) + 1].moments().within == near(within, 10 * WEIGHTS)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(make_translator("bart"), tmp_path_factory.mktemp("models") / "bart")


@pytest.mark.parametrize("kind", KINDS)
def test_heads_of_a_translation_model_share(kind: str, translator: Path, bitext: Path) -> None:
    pairs, full = read_bitext(bitext), 32
    _, table = collaborate_heads(translator, pairs, attention=kind, rank=full)
    errors = table.frame.loc[:, "tensor_error":"divergence_held_out"]
    assert errors.abs().to_numpy().max() < tolerance()
    made, table = collaborate_heads(translator, pairs, attention=kind, rank=8)
    assert (table.frame["rank"] == 8).all()
    assert (table.frame["divergence"] > 0).all()
    assert isinstance(made.model, hf.BartForConditionalGeneration)
    assert table.record.model.attention == kind


def test_the_command_takes_a_bitext(translator: Path, bitext: Path, tmp_path: Path) -> None:
    out = tmp_path / "shared"
    asked = ["collaborate", translator, "--attention", "cross", "--rank", "8", "--out", out]
    run_well(*map(str, asked), "--sample", str(bitext))
    run_well("align", str(out), str(bitext), "--out", str(tmp_path / "aligned"))
    done = run(*map(str, asked), "--overwrite")
    assert done.exit_code == 2
    assert "give a bitext (.bitext) as --sample" in " ".join(done.output.split())
    with pytest.raises(UsageError, match="reads sentences and their translations"):
        collaborate_heads(translator, None, attention="decoder", rank=8)
