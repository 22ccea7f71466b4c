"""Text that models write: losses, metrics, gates and ablations, against plain transformers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
import transformers as hf
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from headroles import load_model
from headroles.errors import CorpusError, ModelError, ModelSupportError, UsageError
from headroles.models.attention.reader import open_reader
from headroles.models.families import FAMILIES
from headroles.models.heads.linears import weight_of
from headroles.models.heads.shared_passes import order_of
from headroles.models.heads.surgery import remove_rows, zero_heads
from headroles.models.loading.encoder import load_encoder
from headroles.models.loading.saved_models import PrunedModel
from headroles.models.options import TargetOptions
from headroles.record import Record
from headroles.tasks.options import RunOptions
from headroles.tasks.outcomes import METRICS, Outcomes
from headroles.tasks.running import TaskRun, open_run
from tests.conftest import change_json, make_tokenizer, save
from tests.models.decoders import DECODERS, SIZES
from tests.rounding import WEIGHTS, near
from tests.scoring.test_targets import START, make_model

PAIRS = [
    ("the cat sat on the mat", "on the mat it was"),
    ("it is for that", "that"),
    ("a dog was in the house at night", "in the house was a dog and a cat"),
    ("this is as it was", "as it was"),
    ("to be of it", "be to it"),
    ("you and me", "me and you and that"),
]
CLASSES = {
    "marian": hf.MarianMTModel,
    "bart": hf.BartForConditionalGeneration,
    "mbart": hf.MBartForConditionalGeneration,
    "m2m_100": hf.M2M100ForConditionalGeneration,
    "t5": hf.T5ForConditionalGeneration,
}
"""Classes of models that write targets of sources."""
SMALL = {"batch_tokens": 40}


def make_translator(kind: str) -> PreTrainedModel:
    """A model that writes, with the weights of `make_model` below its head."""
    base = make_model(kind)
    base.config.activation_function = "gelu"  # which has derivatives everywhere
    torch.manual_seed(1)
    model = CLASSES[kind](base.config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.3)
    return model


def make_writer(**config: Any) -> PreTrainedModel:
    torch.manual_seed(1)
    sizes = {**SIZES, "is_decoder": True, **config}
    model = hf.BertLMHeadModel(hf.BertConfig(**sizes, initializer_range=0.5)).eval()
    model.config.architectures = ["BertLMHeadModel"]
    return model


@pytest.fixture(scope="module", params=CLASSES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(make_translator(request.param), tmp_path_factory.mktemp("models") / request.param)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(make_translator("marian"), tmp_path_factory.mktemp("models") / "marian")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tasks") / "pairs.tsv"
    file.write_text("".join(f"{s}\t{t}\n" for s, t in [("source", "target"), *PAIRS]), "utf-8")
    return file


def plain_loss(model: PreTrainedModel, source: str, target: str) -> tuple[float, int, int]:
    """The loss of a pair alone, its right tokens and all tokens, by ``labels`` of transformers."""
    tokenizer = make_tokenizer()
    labels = tokenizer(target, return_tensors="pt")["input_ids"]
    ids = tokenizer(source, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        outputs = model(input_ids=ids, labels=labels)
    right = int((outputs.logits.argmax(-1) == labels).sum())
    return float(outputs.loss), right, labels.numel()


def read(folder: Path) -> PreTrainedModel:
    return hf.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def n_decoder(model: PreTrainedModel) -> int:
    """Number of layers of the decoder."""
    return getattr(model.config, "decoder_layers", None) or model.config.num_decoder_layers


def settings(run: TaskRun, *removed: tuple[int, int]) -> torch.Tensor:
    gates = torch.ones(1, *run.shape)
    for head in removed:
        gates[0][head] = 0
    return gates


def test_losses_and_metrics_are_those_of_labels(folder: Path, pairs: Path) -> None:
    run, model = open_run(folder, pairs, RunOptions(**SMALL)), read(folder)
    found = run.outcomes_unmasked()
    losses, right, tokens = zip(*(plain_loss(model, *pair) for pair in PAIRS), strict=True)
    assert len(run.batches) > 1
    assert found.losses[:, 0] == near(np.array(losses), 10 * WEIGHTS)
    assert found.predictions[:, 0].tolist() == list(right)
    assert found.targets.tolist() == list(tokens)
    measured = run.measure(found)
    assert measured["loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    assert measured["token_accuracy"] == pytest.approx(sum(right) / sum(tokens))
    mean = np.dot(losses, tokens) / sum(tokens)
    assert measured["perplexity"] == pytest.approx(np.exp(mean), rel=1e-3)
    assert (run.objective, run.shape) == ("text_to_text", (3 + 2 * n_decoder(model), 4))
    layers = {"encoder": 3, "decoder": n_decoder(model), "cross": n_decoder(model)}
    assert run.sites.rows.layers == layers


@contextmanager
def hooked(model: PreTrainedModel, kind: str, layer: int, head: int, put: Any) -> Iterator[None]:
    """Change the slice of one head before the output projection; found by names alone."""
    names = {
        "encoder": (f"encoder.layers.{layer}.self_attn.out_proj", "encoder.block", 0, "Self"),
        "decoder": (f"decoder.layers.{layer}.self_attn.out_proj", "decoder.block", 0, "Self"),
        "cross": (f"decoder.layers.{layer}.encoder_attn.out_proj", "decoder.block", 1, "EncDec"),
    }
    ending, block, place, name = names[kind]
    n_heads = 4
    if kind != "encoder":  # which differ in families like BART
        n_heads = getattr(model.config, "decoder_attention_heads", n_heads)
    endings = (ending, f"{block}.{layer}.layer.{place}.{name}Attention.o")
    (linear,) = [one for path, one in model.named_modules() if path.endswith(endings)]
    size = linear.in_features // n_heads

    def change(_: nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        outputs = given[0].clone()
        outputs[..., head * size : (head + 1) * size] = put(outputs, head, size)
        return (outputs, *given[1:])

    with linear.register_forward_pre_hook(change):
        yield


HEADS = [("encoder", 1, 2), ("decoder", 0, 1), ("cross", 1, 1)]
"""One head of each kind, as kind, layer and number."""


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("alone", [True, False])
def test_a_removed_head_is_a_slice_of_zeros(
    alone: bool, kind: str, folder: Path, pairs: Path
) -> None:
    options = RunOptions(attention=kind if alone else None, **SMALL)
    run, model = open_run(folder, pairs, options), read(folder)
    names = run.sites.rows
    assert list(names.layers) == ([] if alone and kind == "encoder" else [kind]) or not alone
    for of_kind, layer, head in HEADS:
        if of_kind != kind:
            continue
        row = (names.parts[kind].start if names.layers else 0) + layer
        assert names.name((row, head)) == f"{kind if names.layers else ''} {layer}-{head}".lstrip()
        found = run.outcomes(torch.cat([settings(run), settings(run, (row, head))])).losses
        with hooked(model, kind, layer, head, lambda *_: 0):
            expected = [plain_loss(model, *pair)[0] for pair in PAIRS]
        assert found[:, 1] == near(np.array(expected), 10 * WEIGHTS)
        assert not np.allclose(found[:, 0], found[:, 1], rtol=1e-3)


def test_losses_do_not_depend_on_the_passes_before(folder: Path, pairs: Path) -> None:
    """Passes share the blocks that are the same: each setting alone has the same losses."""
    run = open_run(folder, pairs, RunOptions())
    n = n_decoder(run.encoder.model)
    in_blocks = [row for layer in range(n) for row in (3 + layer, 3 + n + layer)]
    assert order_of(run.sites) == [0, 1, 2, *in_blocks]
    removed = [[], [(0, 1)], [(1, 1)], [(3, 0)], [(5, 1)], [(4, 1)], [(6, 0)], [(4, 1), (6, 0)]]
    gates = torch.cat([settings(run, *heads) for heads in removed])
    assert run.n_passes(gates) < len(gates) - 1
    for ablation in ("zero", "mean", "uniform"):
        found = run.outcomes(gates, ablation).losses
        for place, one in enumerate(gates):
            assert np.array_equal(run.outcomes(one[None], ablation).losses[:, 0], found[:, place])
            assert not place or not np.allclose(found[:, 0], found[:, place], rtol=1e-6)


def test_uniform_is_attention_without_queries(translator: Path, pairs: Path) -> None:
    """Of the keys in view: all of the source, or the target up to the token."""
    run = open_run(translator, pairs, RunOptions(**SMALL))
    for row, head in ((1, 2), (3, 1), (6, 1)):
        uniform = run.outcomes(settings(run, (row, head)), "uniform").losses
        plain = open_run(translator, pairs, RunOptions(**SMALL))
        query = plain.sites.layers[row].query
        assert query is not None
        with torch.no_grad():
            for values in query.linear.parameters():
                values[query.rows[head]] = 0
        assert plain.outcomes_unmasked().losses == near(uniform, 10 * WEIGHTS)


def test_mean_outputs_are_those_of_real_tokens(translator: Path, pairs: Path) -> None:
    run, model = open_run(translator, pairs, RunOptions(**SMALL)), read(translator)
    for kind, layer, head in HEADS:
        seen: list[torch.Tensor] = []

        def note(outputs: torch.Tensor, head: int, size: int, seen: Any = seen) -> torch.Tensor:
            own = outputs[..., head * size : (head + 1) * size]
            seen.append(own[0])
            return own

        with hooked(model, kind, layer, head, note):
            for pair in PAIRS:
                plain_loss(model, *pair)
        mean = torch.cat(seen).mean(0)
        with hooked(model, kind, layer, head, lambda *_, mean=mean: mean):
            expected = [plain_loss(model, *pair)[0] for pair in PAIRS]
        row = run.sites.rows.parts[kind].start + layer
        found = run.outcomes(settings(run, (row, head)), "mean").losses[:, 0]
        assert found == near(np.array(expected), 20 * WEIGHTS)


def test_derivatives_are_those_of_finite_differences(folder: Path, pairs: Path) -> None:
    run = open_run(folder, pairs, RunOptions(**SMALL))
    run.encoder.model.double()
    found, step = run.derivatives(), 1e-3
    for head in ((1, 2), (3, 1), (6, 1)):
        sides = []
        for sign in (1, -1):
            gates = settings(run).double()
            gates[0][head] += sign * step
            sides.append(run.outcomes(gates).losses[:, 0])
        expected = (sides[0] - sides[1]) / (2 * step)
        assert found.by_gate[:, head[0], head[1]] == pytest.approx(expected, rel=0, abs=1e-3)
    sources, targets = (
        [len(make_tokenizer()(pair[side])["input_ids"]) for pair in PAIRS] for side in (0, 1)
    )
    assert found.tokens[:, 1].tolist() == sources
    assert found.tokens[:, 3].tolist() == found.tokens[:, 6].tolist() == targets


# Smaller models.


def test_models_without_heads_are_those_with_closed_gates(
    folder: Path, pairs: Path, tmp_path: Path
) -> None:
    """Heads keep their numbers; a layer of each kind may lose all its heads."""
    run = open_run(folder, pairs, RunOptions(**SMALL))
    names, n = run.sites.rows, len(run.sites.layers[-1].heads)
    first, last = names.first("decoder"), run.shape[0] - 1
    gone = [(0, 1), (2, 0), (2, 3), (first, 1), *((last, head) for head in range(n))]
    further = [(1, 2), (first + 1, 0), (names.first("cross"), 0)]
    masked = run.outcomes(torch.cat([settings(run, *gone), settings(run, *gone, *further)]))
    whole = run.outcomes_unmasked()
    remove_rows(run.sites, gone)
    assert set(run.heads).isdisjoint(gone)
    assert run.outcomes_unmasked().losses[:, 0] == near(masked.losses[:, 0], 10 * WEIGHTS)
    assert not np.allclose(masked.losses[:, :1], whole.losses, rtol=1e-4)
    tokenizer = make_tokenizer()
    PrunedModel(run.encoder.model, tokenizer, Record()).write_files(tmp_path / "small")
    smaller = open_run(tmp_path / "small", pairs, RunOptions(**SMALL))
    assert smaller.heads == run.heads
    assert smaller.outcomes_unmasked().losses[:, 0] == near(masked.losses[:, 0], 10 * WEIGHTS)
    gates = settings(smaller, *further)
    assert smaller.outcomes(gates).losses[:, 0] == near(masked.losses[:, 1], 10 * WEIGHTS)
    remove_rows(smaller.sites, further)
    assert smaller.outcomes_unmasked().losses[:, 0] == near(masked.losses[:, 1], 10 * WEIGHTS)
    with open_reader(load_encoder(tmp_path / "small").stack) as reader:
        assert reader.removed == ((0, 1), (2, 0), (2, 3))
    of = TargetOptions(attention="cross")
    with open_reader(load_encoder(tmp_path / "small", of=of).stack) as reader:
        assert reader.removed == tuple((reader.n_layers - 1, head) for head in range(n))
    model = load_model(tmp_path / "small")
    ids = tokenizer("the cat", return_tensors="pt")["input_ids"]
    found = [
        model.generate(ids, max_new_tokens=6, num_beams=1, do_sample=False, use_cache=has_cache)
        for has_cache in (True, False)
    ]
    assert found[0].tolist() == found[1].tolist()


def test_models_with_zeros_are_read_by_transformers_alone(
    folder: Path, pairs: Path, tmp_path: Path
) -> None:
    """Nothing is missing, and losses are those with closed gates."""
    run = open_run(folder, pairs, RunOptions(**SMALL))
    gone = [(0, 1), (2, 3), (run.sites.rows.first("decoder"), 1), (run.shape[0] - 1, 0)]
    expected = run.outcomes(settings(run, *gone)).losses
    zero_heads(run.sites, gone)
    PrunedModel(run.encoder.model, make_tokenizer(), Record()).write_files(tmp_path / "zeroed")
    kind = type(run.encoder.model)
    model, report = kind.from_pretrained(tmp_path / "zeroed", output_loading_info=True)
    assert not any(report[f"{how}_keys"] for how in ("missing", "unexpected", "mismatched"))
    losses = [plain_loss(model.eval(), *pair)[0] for pair in PAIRS]
    assert expected[:, 0] == near(np.array(losses), 10 * WEIGHTS)


def test_lists_of_removed_heads_that_cannot_be(folder: Path, pairs: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(folder, tmp_path / "model")
    change_json(copied / "config.json", pruned_cross_heads={"9": [0]})
    with pytest.raises(ModelError, match=r"pruned_cross_heads of the configuration names heads 0 "):
        open_run(copied, pairs, RunOptions())


# One sequence.


def test_decoders_are_asked_for_each_next_piece(tmp_path: Path) -> None:
    model = make_writer()
    file = tmp_path / "plain.txt"
    file.write_text("\n".join(source for source, _ in PAIRS) + "\n", "utf-8")
    run = open_run(save(model, tmp_path / "model"), file, RunOptions(**SMALL))
    assert (run.objective, run.shape) == ("causal_lm", (2, 4))
    assert not run.sites.rows.layers
    assert all(reach.is_causal for reach in run.sites.reaches)
    found, slopes = run.outcomes(torch.cat([settings(run), settings(run, (1, 2))])), None
    for row, (text, _) in enumerate(PAIRS):
        ids = make_tokenizer()(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, :-1]
        assert found.losses[row, 0] == near(float(cross_entropy(logits, ids[0, 1:])), WEIGHTS * 10)
        assert found.predictions[row, 0] == (logits.argmax(-1) == ids[0, 1:]).sum()
        assert found.targets[row] == ids.numel() - 1
    slopes = run.derivatives()
    assert slopes.losses == near(found.losses[:, 0])
    assert not np.allclose(found.losses[:, 0], found.losses[:, 1])


KINDS = [kind for kind, one in FAMILIES.items() if one.is_decoder and one.paths]


@pytest.mark.parametrize("kind", KINDS)
def test_heads_of_decoders_are_slices_before_the_output(kind: str, tmp_path: Path) -> None:
    """Their derivatives are those of finite differences, and removal is zero."""
    smooth = {"activation_function": "gelu"} if kind == "opt" else {}
    sizes = {**DECODERS.get(kind, (SIZES, ()))[0], **smooth}
    torch.manual_seed(1)
    model = hf.AutoModelForCausalLM.from_config(hf.CONFIG_MAPPING[kind](**sizes)).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.2)
    file = tmp_path / "plain.txt"
    file.write_text("\n".join(source for source, _ in PAIRS) + "\n", "utf-8")
    run = open_run(save(model, tmp_path / "model"), file, RunOptions(**SMALL))
    assert (run.objective, run.shape) == ("causal_lm", (2, 4))
    found = run.outcomes(torch.cat([settings(run), settings(run, (1, 2))])).losses
    path = run.encoder.stack.paths.output.format(1)
    linear = cast(nn.Linear, model.base_model.get_submodule(path))
    size = weight_of(linear).shape[1] // 4
    with linear.register_forward_pre_hook(
        lambda _, given: (given[0].index_fill(-1, torch.arange(2 * size, 3 * size), 0),)
    ):
        expected = []
        for text, _ in PAIRS:
            ids = make_tokenizer()(text, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                logits = model(input_ids=ids, use_cache=False).logits[0, :-1]
            expected.append(float(cross_entropy(logits, ids[0, 1:])))
    assert found[:, 1] == near(np.array(expected), 10 * WEIGHTS)
    assert not np.allclose(found[:, 0], found[:, 1], rtol=1e-5)
    slopes, step = run.derivatives(), 1e-2
    sides = []
    for sign in (1, -1):
        gates = settings(run)
        gates[0][1, 2] += sign * step
        sides.append(run.outcomes(gates).losses[:, 0])
    differences = (sides[0] - sides[1]) / (2 * step)
    assert slopes.by_gate[:, 1, 2] == pytest.approx(differences, rel=0.02, abs=2e-3)
    uniform = run.outcomes(settings(run, (1, 2)), "uniform").losses[:, 0]
    assert not np.allclose(uniform, found[:, 0], rtol=1e-5)
    remove_rows(run.sites, [(1, 2)])
    assert run.outcomes_unmasked().losses[:, 0] == near(found[:, 1], 10 * WEIGHTS)
    PrunedModel(run.encoder.model, make_tokenizer(), Record()).write_files(tmp_path / "small")
    smaller = open_run(tmp_path / "small", file, RunOptions(**SMALL))
    assert smaller.outcomes_unmasked().losses[:, 0] == near(found[:, 1], 10 * WEIGHTS)


def test_decoders_without_projections_of_heads_are_refused(tmp_path: Path) -> None:
    model = hf.BloomForCausalLM(hf.BloomConfig(**DECODERS["bloom"][0])).eval()
    file = tmp_path / "plain.txt"
    file.write_text("the cat\nit is\n", "utf-8")
    with pytest.raises(ModelSupportError, match=r"not possible for BLOOM: its bias of distances"):
        open_run(save(model, tmp_path / "model"), file, RunOptions()).outcomes_unmasked()


# Metrics, files, and bad input.


def test_metrics_by_hand() -> None:
    """Three of four and one of six tokens are right."""
    outcomes = Outcomes(np.array([[1.0], [2.0]]), np.array([[3.0], [1.0]]), np.array([4.0, 6.0]))
    assert METRICS["token_accuracy"](outcomes.predictions[:, 0], outcomes.targets) == 0.4
    measured = outcomes.measures(["token_accuracy", "perplexity"])
    assert measured["perplexity"] == pytest.approx(np.exp(1.6))
    units = outcomes.units(["token_accuracy", "perplexity"])
    assert units["perplexity"].mean() == pytest.approx(2 * np.exp(1.6) - (np.e + np.exp(2)) / 2)


def test_a_bitext_and_a_table_are_the_same_task(translator: Path, pairs: Path, tmp_path: Path):
    (tmp_path / "pairs.bitext").write_text(
        "".join(f"{source} ||| {target} ||| 0-0\n" for source, target in PAIRS), "utf-8"
    )
    (tmp_path / "pairs.csv").write_text(
        "".join(f"{k},{target},{source}\n" for k, (source, target) in enumerate(PAIRS)), "utf-8"
    )
    named = {"text_columns": "2,1", "header": False}
    runs = [
        open_run(translator, pairs, RunOptions()),
        open_run(translator, tmp_path / "pairs.bitext", RunOptions()),
        open_run(translator, tmp_path / "pairs.csv", RunOptions(**named)),
    ]
    assert {run.task.texts for run in runs} == {tuple(PAIRS)}


def test_long_texts_are_cut_and_counted(translator: Path, pairs: Path) -> None:
    run = open_run(translator, pairs, RunOptions(max_tokens=8))
    widths = dict.fromkeys(("input_ids", "decoder_input_ids"), 0)
    for batch in run.batches:
        for name in widths:
            widths[name] = max(widths[name], batch.inputs[name].shape[1])
    assert set(widths.values()) == {8}
    tokenizer = make_tokenizer()
    assert run.n_cut == sum(
        max(len(tokenizer(text)["input_ids"]) for text in pair) > 8 for pair in PAIRS
    )


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("source\ttarget\na\tit\n\tit\n", {}, r"line 3: the text has no word piece"),
        ("source\ttarget\na\tit\nit\t\n", {}, r"line 3: the text has no word piece"),
        ("a\tb\nthe\tit\nit\tthe\n", {}, r"needs two columns, of sources and of targets"),
        ("a\tb\nthe\tit\nit\tthe\n", {"text_columns": "a"}, r"needs two columns"),
        ("source\ttarget\n語\t言\n文\t字\n", {}, r"% of the word pieces of .* are unknown"),
        ("source\ttarget\na\tit\nit\ta\n", {"labels": "a=0"}, r"the objective is text_to_text"),
    ],
)
def test_tasks_that_are_no_pairs(
    content: str, options: Any, message: str, translator: Path, tmp_path: Path
) -> None:
    (tmp_path / "task.tsv").write_text(content, "utf-8")
    with pytest.raises(Exception, match=message):
        open_run(translator, tmp_path / "task.tsv", RunOptions(**options))


def test_a_line_of_a_bitext_without_a_target(translator: Path, tmp_path: Path) -> None:
    (tmp_path / "x.bitext").write_text("a ||| the\nit\n", "utf-8")
    with pytest.raises(CorpusError, match=r"x.bitext, line 2 has no \|\|\| between"):
        open_run(translator, tmp_path / "x.bitext", RunOptions())


def test_a_text_of_one_piece_has_none_to_predict(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.backend_tokenizer.post_processor = None
    make_writer().save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "x.txt").write_text("the cat\nthe\n", "utf-8")
    with pytest.raises(CorpusError, match=r"x.txt, line 2: the text has one word piece"):
        open_run(tmp_path / "model", tmp_path / "x.txt", RunOptions())


def test_kinds_of_attention_are_those_of_text_to_text(
    classifier: Path, labelled: Path, translator: Path, pairs: Path
) -> None:
    with pytest.raises(UsageError, match=r"the attention is 'self'; it must be of encoder, dec"):
        RunOptions(attention="self")
    assert RunOptions(attention="cross,encoder").attention == ("encoder", "cross")
    with pytest.raises(UsageError, match=r"heads of cross are looked at in models of text to t"):
        open_run(classifier, labelled, RunOptions(attention="cross"))
    assert open_run(classifier, labelled, RunOptions(attention="encoder")).shape == (3, 4)
    with pytest.raises(UsageError, match=r"knows no language 'xx'"):
        open_run(translator, pairs, RunOptions(source_language="xx"))


def test_targets_begin_as_the_model_says(translator: Path, pairs: Path) -> None:
    run = open_run(translator, pairs, RunOptions())
    for batch in run.batches:
        assert (batch.inputs["decoder_input_ids"][:, 0] == START).all()
