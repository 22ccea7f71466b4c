"""Folders of models that headroles made: written, read by anyone, damaged, and as hostile input."""

from __future__ import annotations

import inspect
import json
import resource
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from transformers import PreTrainedModel

from headroles import HeadScores, assign_roles, read_conllu, score_heads
from headroles.errors import ModelError, ModelSupportError, StorageError
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.low_rank import RECORD_FILE, WEIGHTS_FILE
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads, zero_heads
from headroles.models.loading.encoder import load_encoder, load_model
from headroles.models.loading.saved_models import CollaborativeModel, PrunedModel, model_folder
from headroles.models.loading.weights import ENCODER, read_model
from headroles.models.options import ModelOptions
from headroles.record import Record
from headroles.results.stored import new_folder
from headroles.storage import HIDDEN
from headroles.studies.importance.importance import Importance
from headroles.studies.sharing.collaborate import collaborate_heads
from tests.commands import contents, names
from tests.conftest import change_json, make_bert, make_tokenizer
from tests.models.families import HALVES, NAMES, PROJECTED, make_whole
from tests.models.test_loading import QUERY, Spoil, changed, saying, with_weights
from tests.models.test_surgery import A_LAYER, INPUTS, SOME, of_family
from tests.rounding import assert_same_outputs, assert_same_sums, sizes_of_scores
from tests.tasks.conftest import make_task_model


@pytest.fixture
def pruned(tmp_path: Path) -> Path:
    """A saved classifier without some of its heads."""
    model = make_task_model()
    remove_heads(model, SOME)
    return PrunedModel(model, make_tokenizer(), Record()).save(tmp_path / "pruned")


@pytest.fixture(scope="module")
def low_rank(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("low") / "rank"
    return collaborate_heads(bert_folder, None, rank=16)[0].save(folder)


@pytest.fixture
def copied(low_rank: Path, tmp_path: Path) -> Path:
    """A folder of a model of low rank that a test may spoil."""
    return shutil.copytree(low_rank, tmp_path / "copy")


def test_what_is_on_top_comes_along(pruned: Path) -> None:
    model = make_task_model()
    remove_heads(model, SOME)
    with torch.no_grad():
        expected = model(**INPUTS).logits
        assert torch.equal(load_model(pruned)(**INPUTS).logits, expected)
        read = load_encoder(pruned, head="classification").model
        assert torch.equal(read(**INPUTS).logits, expected)
    config = json.loads((pruned / "config.json").read_text())
    assert config["pruned_heads"] == {"0": [1], "1": [0, 3], "2": [2]}
    assert config["architectures"] == ["BertForSequenceClassification"]


def test_it_is_scored_by_the_old_numbers(treebank: Path, tmp_path: Path) -> None:
    model, corpus = make_bert(), read_conllu(treebank)
    full = score_heads(model, corpus, tokenizer=make_tokenizer())
    remove_heads(model, SOME + A_LAYER)
    PrunedModel(model, make_tokenizer(), Record()).save(tmp_path / "pruned")
    pruned = score_heads(tmp_path / "pruned", corpus)
    for layer, head in np.ndindex(3, 4):
        is_removed = (layer, head) in SOME + A_LAYER
        assert np.isnan(pruned.values[:, layer, head]).all() == is_removed
    # Below the first removed head everything is as it was.
    there = np.s_[:, 0, [0, 2, 3]]
    assert_same_sums(pruned.values[there], full.values[there], sizes_of_scores(full)[there])
    pruned.save(tmp_path / "scores")
    table = assign_roles(HeadScores.load(tmp_path / "scores"))
    notes = table.frame.query("layer == 2 and head == 2")["note"]
    assert set(notes) == {"untestable: the head was removed from the model"}


def test_a_class_that_nobody_knows(pruned: Path) -> None:
    (pruned / "run.json").unlink()
    change_json(pruned / "config.json", architectures=["BertForTea"])
    with pytest.raises(ModelSupportError, match="written by BertForTea"):
        load_model(pruned)
    assert not hasattr(hf, "BertForTea")


def test_an_exchanged_head_is_found(pruned: Path) -> None:
    change_json(pruned / "config.json", pruned_heads={"0": [2], "1": [2]})
    with pytest.raises(StorageError, match=r"config\.json was changed after headroles wrote it"):
        load_encoder(pruned)


def test_a_missing_record_is_warned_of(pruned: Path) -> None:
    (pruned / "run.json").unlink()
    assert "has no run record" in " ".join(load_encoder(pruned).description.warnings)


def test_weights_of_another_model_beside(pruned: Path, copied: Path) -> None:
    shutil.copy(pruned / "model.safetensors", copied)
    with pytest.raises(StorageError, match=r"holds model\.safetensors, which run\.json does not"):
        load_encoder(copied)


def test_weights_that_headroles_did_not_write_are_not_written_beside(
    bert_folder: Path, low_rank: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bert_folder, tmp_path / "theirs")
    before = contents(folder)
    with pytest.raises(StorageError, match=r"holds model\.safetensors, which headroles did not"):
        CollaborativeModel.load(low_rank).save(folder, overwrite=True)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            lambda folder: model_folder(folder, str(folder), [PrunedModel], overwrite=True),
            "is the folder of the model itself",
        ),
        (
            lambda folder: new_folder(folder, [Importance], overwrite=True),
            "holds pruned model, which would be replaced; name another folder for the importance",
        ),
    ],
)
def test_a_model_is_not_replaced_by_itself_or_by_a_table(
    block: Any, message: str, pruned: Path
) -> None:
    with pytest.raises(StorageError, match=message), block(pruned):
        pytest.fail("the block must not run")


def test_a_model_that_a_killed_run_committed_is_read_where_it_lies(
    pruned: Path, tmp_path: Path
) -> None:
    before, out = names(pruned), tmp_path / "out"
    (out / HIDDEN).mkdir(parents=True)
    shutil.copytree(pruned, out / HIDDEN / "done")
    assert load_encoder(out).identity == load_encoder(pruned).identity
    assert names(out) == {HIDDEN}
    shutil.copy(pruned / "model.safetensors", out)  # the run was killed later
    with model_folder(out, None, [PrunedModel], overwrite=True):
        assert names(out) == {HIDDEN, *before}


def test_a_hidden_model_does_not_stand_in_for_the_one_in_sight(
    bert_folder: Path, pruned: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bert_folder, tmp_path / "sent")
    shutil.copytree(pruned, folder / HIDDEN / "done")
    with pytest.raises(StorageError, match=r"model\.safetensors is in the way of results"):
        load_encoder(folder)
    (folder / HIDDEN / "done" / "run.json").unlink()
    assert load_encoder(folder).identity == load_encoder(bert_folder).identity


QUERIES = f"bert.{QUERY}"


def of_rank(rank: Any) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        modules = json.loads((folder / RECORD_FILE).read_text())["modules"]
        path, own = next(iter(modules.items()))
        change_json(folder / RECORD_FILE, modules={**modules, path: {**own, "rank": rank}})

    return spoil


def of_sizes_without_weights(folder: Path) -> None:
    """Without weights to compare with, no memory is taken for what config.json asks for."""
    change_json(folder / "config.json", vocab_size=10**8)
    (folder / WEIGHTS_FILE).unlink()


NO_NUMBERS: list[Any] = [
    *({"0": [1.5]}, {"0": [1, 1]}, {"0": [True]}, {"0": ["1"]}, {"0": "12"}, {"x": [1]}, [1]),
    {"0": [float("inf")]},
]
RANKS = (17, -1, 1.5, "x", None)
SIZES = ({"pad_token_id": 10**9}, {"vocab_size": 0}, {"hidden_size": 0})
BROKEN: list[tuple[str, Callable[[bytes], bytes], str]] = [
    (WEIGHTS_FILE, lambda content: b"", ""),
    (WEIGHTS_FILE, lambda content: content[: len(content) // 2], ""),
    (RECORD_FILE, lambda content: content.replace(b'"rank": 16', b'"rank": 9'), ""),
    (RECORD_FILE, lambda content: b"{}", "missing required field .?modules"),
    (RECORD_FILE, lambda content: b'{"modules": 3}', r"got `int` - at `\$\.modules"),
    (RECORD_FILE, lambda content: content.replace(b'"rank": 16', b'"rank": -1'), r"\.rank"),
    (
        RECORD_FILE,
        lambda content: content.replace(b'"method": "', b'"method": "x'),
        r"at .\$\.modules\[\.\.\.\]\.method",
    ),
]
LOW_RANK = "low rank in .*cannot be loaded.*{}.*collaborate"


@pytest.mark.parametrize(
    ("kind", "spoil", "message"),
    [
        ("pruned", with_weights(lambda weights: weights.pop(QUERIES)), "lacks weights of its"),
        (
            "pruned",
            saying(pruned_heads={"0": [], "1": [0, 3], "2": [2]}),
            r"cannot be loaded|another shape",
        ),
        *(
            ("pruned", saying(pruned_heads=own), "it must name heads by layer")
            for own in NO_NUMBERS
        ),
        (
            "pruned",
            with_weights(lambda weights: weights.update({QUERIES: weights[QUERIES].char()})),
            r"query\.weight in .* is of type I8; weights must be",
        ),
        *(("copied", of_rank(rank), "make it again with") for rank in RANKS),
        ("copied", of_rank(50_000_000_000), r"asks for \d+.* weights"),
        ("copied", of_sizes_without_weights, r"asks for \d+.* weights"),
        *(("copied", saying(**own), r"cannot be loaded .*; make it again with") for own in SIZES),
        *(("copied", changed(*one), LOW_RANK.format(found)) for *one, found in BROKEN),
        ("copied", lambda folder: (folder / WEIGHTS_FILE).unlink(), LOW_RANK.format("")),
    ],
)
def test_a_spoilt_folder_is_refused(
    kind: str, spoil: Spoil, message: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    (folder / "run.json").unlink()
    spoil(folder)
    for read in (load_model, load_encoder, partial(load_encoder, head="classification")):
        with pytest.raises(ModelError, match=message):
            read(folder)


def test_a_full_disk_is_reported(low_rank: Path, tmp_path: Path) -> None:
    whole = PrunedModel(make_bert(), make_tokenizer(), Record())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for made in (whole, CollaborativeModel.load(low_rank)):
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        try:
            with pytest.raises(StorageError, match=r"cannot be written: .*File too large"):
                made.save(tmp_path / "out")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert not (tmp_path / "out").exists()


def test_overwriting_leaves_no_weights_of_another_kind(pruned: Path, low_rank: Path) -> None:
    CollaborativeModel.load(low_rank).save(pruned, overwrite=True)
    assert [file.name for file in pruned.glob("*.safetensors")] == ["low_rank.safetensors"]


TOKENIZER = make_tokenizer()
OTHERS = (
    *("Decoder", "ForCausalLM"),  # without an encoder
    *("Entity", "MultipleChoice", "PreTraining", "Pretrained", "PreTrainedModel"),
    *("QuestionAnswering", "TokenClassification", "NextSentence"),  # heads as of sequences
)


def classes_of(kind: str) -> list[str]:
    """Classes of a family that have an encoder and can be run on tokens."""
    name = NAMES[kind]
    base = getattr(hf, f"{name}Model", None) or getattr(hf, f"{name}Encoder")
    public = {word: getattr(hf, word) for word in sys.modules[base.__module__].__all__}
    return [
        word.removeprefix(name)
        for word, made in public.items()
        if isinstance(made, type)
        and issubclass(made, PreTrainedModel)
        and made.config_class.__name__ == f"{name}Config"
        and not any(map(word.count, OTHERS))
    ]


CLASSES = [(kind, task) for kind in PROJECTED for task in classes_of(kind)]


def outputs(model: PreTrainedModel) -> torch.Tensor:
    """First outputs of a model on two sequences, the second one with padding."""
    ids = torch.arange(8, 32).view(2, 12)
    if "ForSequenceClassification" in type(model).__name__ and model.config.is_encoder_decoder:
        ids[:, -1] = model.config.eos_token_id
    given: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if "decoder_input_ids" in inspect.signature(model.forward).parameters:
        given["decoder_input_ids"] = ids
    with torch.no_grad():
        return model(**given)[0]


@pytest.mark.parametrize(("kind", "task"), CLASSES)
def test_every_class_is_read_as_it_was_written(kind: str, task: str, tmp_path: Path) -> None:
    zeroed, heads = make_whole(kind, task), of_family(kind, SOME + A_LAYER)
    zero_heads(HeadSites(find_stack(zeroed)), heads)
    PrunedModel(zeroed, TOKENIZER, Record()).write_files(tmp_path / "zeroed")
    read, report = type(zeroed).from_pretrained(tmp_path / "zeroed", output_loading_info=True)
    assert not any(report[f"{how}_keys"] for how in ("missing", "unexpected", "mismatched"))
    assert_same_outputs(outputs(read), outputs(zeroed))
    if task != classes_of(kind)[0]:
        return
    removed = make_whole(kind, task)
    remove_heads(removed, heads)
    PrunedModel(removed, TOKENIZER, Record()).write_files(tmp_path / "removed")
    smaller = load_model(tmp_path / "removed")
    assert type(smaller) is type(zeroed)
    assert_same_outputs(outputs(smaller), outputs(removed))
    encoder = read_model(str(tmp_path / "removed"), ModelOptions(), ENCODER)[0]
    assert find_stack(encoder).base is encoder or kind not in HALVES


def test_a_tokenizer_writes_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = make_tokenizer()
    tokenizer.chat_template = {"default": "{{ one }}", "tools": "{{ two }}"}
    made = PrunedModel(make_bert(), tokenizer, Record())
    assert load_encoder(made.save(tmp_path / "out")).tokenizer.chat_template["tools"] == "{{ two }}"
    monkeypatch.setattr(tokenizer, "save_pretrained", lambda at, **_: (at / "own").mkdir())
    with pytest.raises(StorageError, match=r"the tokenizer saves folders \(own\)"):
        made.save(tmp_path / "other")
    assert names(tmp_path) == {"out"}
