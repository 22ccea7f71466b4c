"""Encoders and tokenizers from folders: those that are read, and the errors for others."""

from __future__ import annotations

import os
import re
import resource
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headroles import find_importance, make_corpus, score_heads
from headroles.corpus import Sentence
from headroles.errors import ModelError, ModelSupportError, TokenizerError, UsageError
from headroles.models.heads.stack import find_stack
from headroles.models.loading.encoder import choose_device, load_encoder, weight_digest
from headroles.models.loading.weights import ENCODER, load_config, read_model
from headroles.models.options import ModelOptions
from headroles.studies.sharing.collaborate import collaborate_heads
from tests.conftest import change_json, make_bert, make_tokenizer
from tests.models.families import make_model, make_whole
from tests.rounding import assert_same_outputs

GENERATION = "ForConditionalGeneration"
QUERY = "encoder.layer.1.attention.self.query.weight"


@pytest.fixture
def folder(bert_folder: Path, tmp_path: Path) -> Path:
    """A copy of the saved model that a test may spoil."""
    return shutil.copytree(bert_folder, tmp_path / "spoilt")


Spoil = Callable[[Path], object]


def with_weights(change: Callable[[dict[str, Tensor]], object]) -> Spoil:
    """Change the weights."""

    def spoil(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return spoil


def changed(name: str, change: Callable[[bytes], bytes]) -> Spoil:
    def spoil(folder: Path) -> None:
        before = (folder / name).read_bytes()
        assert change(before) != before
        (folder / name).write_bytes(change(before))

    return spoil


def cut(kept: int) -> Spoil:
    """Keep so many bytes of the weights, or all but so many."""
    return changed("model.safetensors", lambda content: content[:kept])


def holding(*values: float) -> Spoil:
    """Put these numbers among the weights."""
    first = slice(len(values))
    return with_weights(lambda weights: weights[QUERY][3, first].copy_(Tensor(values)))


def saying(**changes: object) -> Spoil:
    """Change entries of the configuration; ``...`` removes one."""
    return lambda folder: change_json(folder / "config.json", **changes)


def written(name: str, content: str) -> Spoil:
    return lambda folder: (folder / name).write_text(content)


def tokenizing(**changes: object) -> Spoil:
    """Change parts of tokenizer.json."""
    return lambda folder: change_json(folder / "tokenizer.json", **changes)


def without(pattern: str) -> Spoil:
    return lambda folder: [file.unlink() for file in folder.glob(pattern)]


def within(name: str) -> Spoil:
    """Move the files into a folder inside, as sentence-transformers did."""

    def move(folder: Path) -> None:
        files = list(folder.iterdir())
        (folder / name).mkdir()
        for file in files:
            file.rename(folder / name / file.name)
        (folder / "modules.json").write_text("[]")

    return move


def pickled(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


NOT_LOADED = r"weights of .*spoilt cannot be loaded.*; copy or"
NO_CONFIGURATION = "configuration of .*spoilt cannot be read"
TEXT_A = {"Sequence": {"id": "A", "type_id": 0}}
SPOILT: list[tuple[Spoil, str]] = [
    (without("model.safetensors"), "weights of .*spoilt cannot be loaded"),
    *((cut(kept), NOT_LOADED) for kept in (0, 4, 1000, -1000)),
    (written("model.safetensors", "no weights at all" * 100), NOT_LOADED),
    (with_weights(lambda weights: weights.pop(QUERY)), rf"spoilt lacks weights .*\({QUERY}\)"),
    (saying(num_hidden_layers=5), r"encoder\.layer\.3\.[^,]+, [^,]+, [^,]+, and 29 more\)"),
    (saying(intermediate_size=48), r"encoder\.layer\.0\.intermediate.* of another shape"),
    *(
        (holding(*values), f"spoilt: the weights {QUERY} hold NaN or infinity")
        for values in ([torch.nan], [torch.inf], [-torch.inf], [torch.inf, -torch.inf])
    ),
    (without("config.json"), r"spoilt holds no config\.json"),
    (
        written("adapter_config.json", '{"base_model_name_or_path": "theirs"}'),
        r"spoilt holds an adapter of PEFT .* beside a model; merge it into theirs with",
    ),
    (
        lambda folder: (written("adapter_config.json", "{}")(folder), without("model*")(folder)),
        r"spoilt holds an adapter of PEFT .* and no model; merge it into its base model with",
    ),
    (within("0_Transformer"), r"sentence-transformers, whose .*; give .*spoilt/0_Transformer$"),
    *(
        (written("config.json", content), NO_CONFIGURATION)
        for content in ("", "{", "{}", "[]", "null", '{"model_type": "no-such-type"}')
    ),
    (saying(hidden_size="wide"), NO_CONFIGURATION),
    (saying(num_hidden_layers=None), NO_CONFIGURATION),
    (saying(model_type=...), 'names no model_type: add it, as in "model_type"'),
    *(
        (saying(architectures=named), "has architectures .*; it must be a list of names")
        for named in (True, [3], "BertModel")
    ),
    (saying(pad_token_id=4000), "spoilt cannot be"),
    (saying(num_hidden_layers=10**9), r"num_hidden_layers 1e\+"),
    (saying(num_labels=10**9), r"num_labels 1e\+"),
    (saying(hidden_size=10**12), r"hidden_size 1e\+"),
    (saying(vocab_size=-1), "vocab_size -1"),
    (pickled, r"headroles reads model\.safetensors, and this folder has pickled weights"),
    (without("tokenizer*"), "spoilt holds no tokenizer; give one with"),
    *(
        (written("tokenizer.json", content), "tokenizer of .*spoilt cannot be loaded")
        for content in ("", "{", "{}", "[]")
    ),
    *(
        (
            lambda folder, name=name: change_json(
                folder / "tokenizer_config.json", tokenizer_class=name
            ),
            f"the tokenizer_class in the files of .*spoilt is {name}, no tokenizer of text",
        )
        for name in ("RagTokenizer", "BertModel")
    ),
    # a panic of the tokenizers library, which is no Exception
    (
        tokenizing(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        "tokenizer of .*spoilt cannot be loaded .*charsmap.*; check its files",
    ),
    (
        tokenizing(
            post_processor={"type": "BertProcessing", "sep": ["[SEP]", 900], "cls": ["[CLS]", 2]}
        ),
        "adds the piece with number 900 to texts, and .* has piece embeddings for 128",
    ),
    (
        tokenizing(
            post_processor={
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 7}}, TEXT_A],
                "pair": [TEXT_A, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}},
            }
        ),
        "adds the segment with number 7 to texts, and .* has segment embeddings for 2",
    ),
]


@pytest.mark.parametrize(("spoil", "message"), SPOILT)
def test_a_spoilt_folder_is_refused_in_one_line(folder: Path, spoil: Spoil, message: str) -> None:
    spoil(folder)
    with pytest.raises((ModelError, TokenizerError), match=message) as caught:
        load_encoder(folder)
    assert "\n" not in str(caught.value)


class TestWeights:
    def test_those_of_a_loaded_model_are_checked_too(
        self, tokenizer: PreTrainedTokenizerFast
    ) -> None:
        bert, options = make_bert(), ModelOptions(tokenizer=tokenizer)
        bert.get_parameter(QUERY).data[0, :8] = 3e38  # their sum is beyond float32
        assert load_encoder(bert, options).model is bert
        bert.get_parameter(QUERY).data[0, 0] = torch.nan
        with pytest.raises(ModelError, match=QUERY):
            load_encoder(bert, options)

    def test_no_pooler_is_needed(self, bert_folder: Path, folder: Path) -> None:
        pooler = ("pooler.dense.weight", "pooler.dense.bias")
        with_weights(lambda weights: [*map(weights.pop, pooler)])(folder)
        loaded = [load_encoder(folder) for _ in range(2)]
        digests = {one.description.weights_sha256 for one in loaded}
        assert digests == {load_encoder(bert_folder).description.weights_sha256}
        # Folders that commands write from it have the same bytes after every run.
        first, again = (one.model.state_dict() for one in loaded)
        assert all(torch.equal(again[name], values) for name, values in first.items())

    def test_weights_of_a_task_model(self, folder: Path) -> None:
        task = hf.BertForSequenceClassification(make_bert(seed=5).config).eval()
        task.save_pretrained(folder)
        loaded = load_encoder(folder).model
        assert isinstance(loaded, hf.BertModel)
        assert torch.equal(loaded.get_parameter(QUERY), task.bert.get_parameter(QUERY))
        assert weight_digest(loaded) == weight_digest(task.bert)

    @pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16])
    def test_half_precision_is_loaded_as_float32(self, folder: Path, stored: torch.dtype) -> None:
        half = make_bert().to(stored)
        half.save_pretrained(folder)
        loaded = load_encoder(folder)
        assert (loaded.model.dtype, loaded.description.dtype) == (torch.float32, "float32")
        assert torch.equal(loaded.model.get_parameter(QUERY), half.get_parameter(QUERY).float())


def test_a_model_without_layers_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(ModelSupportError, match="the bert model has no layers"):
        load_encoder(make_bert(layers=0), ModelOptions(tokenizer=tokenizer))


class TestConfiguration:
    @pytest.mark.parametrize("kind", ["bert", "no-such-type"])
    def test_code_of_the_folder_is_not_run(self, folder: Path, kind: str) -> None:
        ran = folder / "ran"
        (folder / "theirs.py").write_text(f"open({str(ran)!r}, 'w')\nclass Theirs: pass\n")
        names = ("AutoConfig", "AutoModel", "AutoTokenizer")
        saying(model_type=kind, auto_map=dict.fromkeys(names, "theirs.Theirs"))(folder)
        mapped = {"AutoTokenizer": ["theirs.Theirs", None]}
        change_json(folder / "tokenizer_config.json", auto_map=mapped)
        with suppress(ModelError):
            load_encoder(folder)
        assert not ran.exists()
        with suppress(ModelError):
            load_encoder(folder, ModelOptions(trust_remote_code=True))
        assert ran.exists()  # as it was asked for

    def test_what_does_not_exist(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        for name in ("/no/such/folder", "./no-such-model", "no/such/folder"):
            with pytest.raises(ModelError, match=f"^there is no folder {name}; check the path$"):
                load_encoder(name)
        for name in ("no-such-model", "nobody/no-such-model"):
            missing = f"^there is no folder {name}, and the hub gives no model of that name .*$"
            with pytest.raises(ModelError, match=missing):
                load_encoder(name)

    @pytest.fixture
    def requests(self, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """Requests to a hub that is not reached, without those of telemetry, once per process."""
        requests: list[object] = []

        def fail(*given: object, **_: object) -> None:
            requests.append(given)
            raise OSError("no route to the hub")

        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY", True)
        monkeypatch.setattr("socket.getaddrinfo", fail)
        return requests

    def test_a_hub_that_is_not_reached_is_asked_once(self, requests: list[object]) -> None:
        """Its library would ask six times, for half a minute."""
        with pytest.raises(ModelError, match=r"no model of that name \(no route to the hub\)"):
            load_encoder("nobody/no-such-model")
        assert len(requests) == 1

    @pytest.mark.usefixtures("requests")
    def test_a_stored_revision_is_read_without_the_hub(
        self, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The cache has no other one, not even main, which is read by default."""
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        stored = tmp_path / "models--nobody--stored"
        shutil.copytree(bert_folder, stored / "snapshots" / "abc")
        (stored / "refs").mkdir()
        (stored / "refs" / "v1").write_text("abc")
        assert load_config("nobody/stored", ModelOptions(revision="v1")).model_type == "bert"
        with pytest.raises(ModelError, match="no route to the hub"):
            load_config("nobody/stored", ModelOptions())

    @pytest.mark.parametrize(
        ("config", "reason"),
        [
            (hf.BartConfig(is_decoder=True), "the decoder of a bart model, cut out of it"),
            (hf.WhisperConfig(), "whisper is an encoder-decoder whose encoder does not read text"),
            (hf.LEDConfig(), "led models cannot be scored: its windowed attention"),
            (hf.BigBirdPegasusConfig(), "bigbird_pegasus models cannot .*original_full"),
            (hf.CanineConfig(), "canine models cannot be scored: its deep layers attend between"),
            (hf.XmodConfig(), r"xmod .* language: set default_language .* \(en_XX\)"),
            (hf.BigBirdConfig(), "big_bird models cannot be scored: its block-sparse attention"),
        ],
        ids=lambda value: value.model_type if isinstance(value, hf.PreTrainedConfig) else "",
    )
    def test_refused_before_weights_are_read(
        self, tmp_path: Path, config: hf.PreTrainedConfig, reason: str
    ) -> None:
        config.save_pretrained(tmp_path)  # there are no weights that could be read
        with pytest.raises(ModelSupportError, match=reason):
            load_encoder(tmp_path)

    @pytest.mark.parametrize("head", ["classification", "masked_lm"])
    def test_a_head_that_no_model_of_the_family_has(self, tmp_path: Path, head: str) -> None:
        hf.MarianConfig().save_pretrained(tmp_path)
        with pytest.raises(ModelSupportError, match="marian models cannot be read as AutoModelFor"):
            read_model(str(tmp_path), ModelOptions(), head)


def test_a_tokenizer_is_given_apart(folder: Path, bert_folder: Path) -> None:
    without("tokenizer*")(folder)
    options = ModelOptions(tokenizer=bert_folder)
    assert load_encoder(folder, options).description.tokenizer == str(bert_folder)


def test_a_loaded_model_is_used_where_it_stands(
    bert: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, bert_folder: Path
) -> None:
    loaded = load_encoder(bert, ModelOptions(tokenizer=tokenizer, device="cpu"))
    assert (loaded.model, loaded.tokenizer) == (bert, tokenizer)
    assert loaded.description.model == "BertModel"
    assert loaded.takes_token_types
    knows_its_folder = load_encoder(hf.BertModel.from_pretrained(bert_folder)).description
    assert knows_its_folder.tokenizer == str(bert_folder)
    assert knows_its_folder.weights_sha256 == weight_digest(make_bert())


class TestDigest:
    def test_of_the_configuration_is_of_what_is_computed(
        self, bert_folder: Path, folder: Path
    ) -> None:
        """Names of labels are none of that; whether a task's runs know them is another matter."""
        encoder = load_encoder(bert_folder)
        before = encoder.identity
        encoder.tokenizer(["a b"], truncation=True, max_length=3, padding="max_length")
        assert encoder.identity == before  # use does not change a tokenizer
        names = {"id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}}
        saying(**names, transformers_version="5.0.0")(folder)
        assert load_encoder(folder).identity == before
        saying(hidden_act="relu")(folder)
        after = load_encoder(folder).identity
        assert after["model"].pop("config_sha256") != before["model"].pop("config_sha256")
        assert after == before

    @pytest.mark.parametrize("name", [QUERY, "embeddings.word_embeddings.weight"])
    def test_changes_with_one_weight(self, name: str) -> None:
        bert, other = make_bert(), make_bert()
        assert weight_digest(bert) == weight_digest(other)
        bert.get_parameter(name).data[2, 3] += 1e-3
        assert weight_digest(bert) != weight_digest(other)


@pytest.mark.parametrize(
    ("cuda", "mps", "auto", "absent"),
    [
        (1, False, "cuda", ("cuda:1", "mps")),
        (0, True, "mps", ("cuda", "cuda:0")),
        (1, True, "cuda", ("cuda:1",)),
        (0, False, "cpu", ("cuda", "cuda:0", "mps")),
    ],
)
def test_devices(
    monkeypatch: pytest.MonkeyPatch, cuda: int, mps: bool, auto: str, absent: tuple[str, ...]
) -> None:
    """So many devices of CUDA, counted from 0, and the one of Apple."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert choose_device("auto") == torch.device(auto)
    assert not cuda or choose_device("cuda:0") == torch.device("cuda:0")
    for device in absent:
        with pytest.raises(UsageError, match=f"no usable {device}; use device='cpu'"):
            choose_device(device)
    for device in ("tpu", "", "cpu:x", "gpu"):
        with pytest.raises(UsageError, match=f"unknown device '{device}'"):
            choose_device(device)


def test_the_longest_input_is_the_smaller_of_model_and_tokenizer(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    bert, short = make_bert(max_position_embeddings=40), make_tokenizer()
    for short.model_max_length, expected in ((512, 40), (24, 24)):
        assert load_encoder(bert, ModelOptions(tokenizer=short)).max_tokens == expected
    # RoBERTa counts positions from behind the padding index
    sizes = {"vocab_size": 128, "max_position_embeddings": 40, "pad_token_id": 1}
    roberta = make_model("roberta", **sizes)
    assert load_encoder(roberta, ModelOptions(tokenizer=tokenizer)).max_tokens == 38
    roberta(torch.full((1, 38), 7))
    with pytest.raises((IndexError, RuntimeError), match="index"):
        roberta(torch.full((1, 39), 7))


class TestFoldersAsOthersLeaveThem:
    @pytest.fixture
    def bare(self, folder: Path) -> Path:
        """A model with a vocabulary and nothing that says how it is used."""
        for file in folder.glob("*token*"):
            file.unlink()
        vocabulary = make_tokenizer().get_vocab()
        (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)))
        return folder

    def test_a_vocabulary_makes_the_tokenizer_that_transformers_makes(self, bare: Path) -> None:
        """With a warning of capitals without a setting."""
        loaded = load_encoder(bare)
        theirs = hf.AutoTokenizer.from_pretrained(bare)
        text = "The DOG, of course."
        assert loaded.tokenizer.tokenize(text) == theirs.tokenize(text)
        assert loaded.description.warnings == []
        vocabulary = bare / "vocab.txt"
        vocabulary.write_text(vocabulary.read_text().replace("\nthe\n", "\nThe\n"))
        (warning,) = load_encoder(bare).description.warnings
        assert "has capitals, and nothing beside it says whether they count: the tok" in warning
        (bare / "tokenizer_config.json").write_text('{"do_lower_case": false}')
        loaded = load_encoder(bare)
        assert loaded.description.warnings == []
        assert loaded.tokenizer.tokenize("The") == ["The"]

    def test_the_recipe_for_pickled_weights_works(self, bare: Path) -> None:
        pickled(bare)
        (bare / "vocab.txt").write_text((bare / "vocab.txt").read_text().replace("the", "The"))
        with pytest.raises(ModelError, match="convert them once: python -c") as caught:
            load_encoder(bare)
        recipe = re.search(r'python -c "(.*)"$', str(caught.value))
        assert recipe is not None
        exec(recipe[1], {})
        loaded = load_encoder(f"{bare}-safe")
        assert torch.equal(loaded.model.state_dict()[QUERY], make_bert().state_dict()[QUERY])
        assert loaded.tokenizer.tokenize("The") == ["The"]  # capitals are kept where there are any

    def test_a_lack_of_memory_is_no_damage(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        error = RuntimeError("unable to mmap 9 bytes from file: Cannot allocate memory (12)")
        monkeypatch.setattr(PreTrainedModel, "from_pretrained", Mock(side_effect=error))
        with pytest.raises(ModelError, match=r"cannot be loaded .* memory ran out: free some"):
            load_encoder(folder)

    def test_layers_that_the_configuration_leaves_out_are_named(self, folder: Path) -> None:
        saying(num_hidden_layers=2)(folder)
        (warning,) = load_encoder(folder).description.warnings
        assert "16 weights of layers that its configuration does not use (encoder.la" in warning

    def test_pieces_and_embeddings_of_other_numbers(self, folder: Path) -> None:
        make_bert(vocab_size=900).save_pretrained(folder)
        (warning,) = load_encoder(folder).description.warnings
        assert "has embeddings for 900: check that they belong together" in warning

    def test_a_piece_beyond_the_embeddings_is_refused_if_a_text_has_it(
        self, folder: Path, tmp_path: Path
    ) -> None:
        tokenizer = make_tokenizer()
        size = len(tokenizer)
        tokenizer.add_tokens(["<user>"])
        tokenizer.save_pretrained(folder)
        hf.BertForMaskedLM(make_bert(vocab_size=size).config).save_pretrained(folder)
        (warning,) = load_encoder(folder).description.warnings
        assert f"embeddings for {size} pieces, and none for <user> of the tokenizer" in warning
        finding = (
            r"{} has the piece '<user>', number {} of the tokenizer .*, and the model has "
            r"embeddings for {}: give the tokenizer that"
        )
        trees = {"s": "the dog sleeps", "t": "the <user> sleeps"}
        sentences = [
            Sentence(name, "", 0, tuple(text.split()), (1, 2, -1), ("det", "nsubj", "root"))
            for name, text in trees.items()
        ]
        few = {"pairing": "none", "roles": "local"}
        assert score_heads(folder, make_corpus(sentences[:1]), **few).n_examples == 1
        with pytest.raises(TokenizerError, match=finding.format("'t'", size, size)):
            score_heads(folder, make_corpus(sentences), **few)
        lines = tmp_path / "lines.txt"
        lines.write_text("\n".join(trees.values()))
        with pytest.raises(TokenizerError, match=finding.format(f"line 2 of {lines}", size, size)):
            find_importance(folder, lines)
        tokenizer.add_special_tokens({"pad_token": "<pad>"})
        tokenizer.save_pretrained(folder)
        with pytest.raises(TokenizerError, match=r"padding for .* has the piece '<pad>', number"):
            load_encoder(folder)


class TestHostileFolders:
    @pytest.mark.parametrize(
        ("how", "head"),
        [("task", "classification"), ("encoder", ""), ("whole", None), ("low rank", None)],
    )
    def test_attention_of_the_hub_is_not_asked_for(
        self,
        how: str,
        head: str | None,
        folder: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        if how == "task":
            hf.BertForSequenceClassification(make_bert().config).save_pretrained(folder)
        elif how == "low rank":
            collaborate_heads(folder, None, rank=16)[0].save(tmp_path / "low")
            folder = tmp_path / "low"
            (folder / "run.json").unlink()
        saying(_attn_implementation="nobody/kernel")(folder)
        asked: list[object] = []
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("socket.getaddrinfo", lambda *given, **_: asked.append(given))
        monkeypatch.setattr(
            "transformers.modeling_utils.lazy_import_flash_attention",
            lambda name, **_: asked.append(name),
        )
        loaded = load_encoder(folder, head=head)
        assert asked == []
        assert loaded.model.config._attn_implementation == "sdpa"

    def test_sizes_beyond_the_weights_take_no_memory(self, folder: Path) -> None:
        saying(vocab_size=8_000_000)(folder)  # 1 GB
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ModelError, match=r"asks for 256,\d+,\d+ weights, 256,000,000 of"):
            load_encoder(folder)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB

    def test_pipes_and_devices_are_not_read(self, folder: Path) -> None:
        makers = (os.mkfifo, lambda file: file.symlink_to("/dev/zero"))
        for name in ("README.md", "config.json", "model.safetensors", "tokenizer.json"):
            file = folder / name
            before = file.read_bytes() if file.exists() else b""
            for make in makers:
                file.unlink(missing_ok=True)
                make(file)
                with pytest.raises(ModelError, match=rf"{name}.* pipe or a device.*; replace"):
                    load_encoder(folder)
            file.unlink()
            file.write_bytes(before)


@pytest.mark.parametrize(
    ("kind", "task"),
    [
        *(("t5", task) for task in ("Model", "EncoderModel", GENERATION, "ForTokenClassification")),
        *(("bart", task) for task in ("Model", GENERATION, "ForSequenceClassification")),
        *(("umt5", "ForSequenceClassification"), ("marian", "MTModel"), ("m2m_100", GENERATION)),
    ],
)
def test_the_decoder_is_not_loaded(tmp_path: Path, kind: str, task: str) -> None:
    whole, inputs = make_whole(kind, task), torch.arange(5, 17)[None]
    encoder = find_stack(whole).base
    for name, model in (("whole", whole), ("alone", encoder)):
        model.save_pretrained(tmp_path / name)
        loaded, notes = read_model(str(tmp_path / name), ModelOptions(), ENCODER)
        assert (notes, type(loaded)) == ([], type(encoder))
        assert_same_outputs(loaded(inputs)[0], encoder(inputs)[0])
        assert weight_digest(loaded) == weight_digest(encoder)


def test_an_encoder_that_is_no_model_by_itself_is_made_one(tmp_path: Path) -> None:
    whole = make_whole("fsmt")
    whole.encoder.embed_tokens = torch.nn.Embedding(128, 32)
    whole.config.src_vocab_size = 128
    whole.save_pretrained(tmp_path)
    options = ModelOptions(tokenizer=make_tokenizer())
    loaded, folder = (load_encoder(one, options) for one in (whole, str(tmp_path)))
    assert loaded.description.weights_sha256 == folder.description.weights_sha256
    assert not folder.model.training
    assert not any("decoder" in name for name, _ in folder.model.named_parameters())
    assert find_stack(folder.model).base is folder.model
