"""Tiny encoders with random weights, their tokenizer, and small treebanks."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer.testing
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import BertConfig, BertModel, PreTrainedModel, PreTrainedTokenizerFast

from headroles import HeadScores, Role, sample_treebank
from headroles.record import Record, RecordedRole, whole_roles
from headroles.results.showing import Showing
from headroles.results.shown import Grid, Shown, Verbatim, as_text, brief
from headroles.roles import SCORES, RoleOptions, choose_roles
from headroles.storage import encode_json, plain
from tests import noise


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--noise", type=float, default=0.0, help="noise of attention that is read")


def pytest_configure(config: pytest.Config) -> None:
    context = noise.added(config.getoption("--noise"))
    context.__enter__()
    config.add_cleanup(lambda: context.__exit__(None, None, None))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With noise that is a mistake, tests of numbers pass by failing."""
    if config.getoption("--noise") >= noise.MISTAKE:
        for item in items:
            if item.get_closest_marker("numbers"):
                item.add_marker(pytest.mark.xfail(strict=True, raises=AssertionError))


@pytest.fixture(autouse=True, scope="session")
def summaries_fit_a_screen() -> Iterator[None]:
    """Let every summary that any test prints or shows fit a screen, of whatever command it is.

    With the next steps, the folder and the report, 24 lines are full. Names of files in temporary
    folders are longer than any that people have.
    """

    def checked(shown: Iterable[Shown]) -> list[Shown]:
        parts = brief(shown)
        if not any(isinstance(one, Verbatim) for one in parts):  # sentences may be of any length
            lines = as_text(parts).splitlines()
            assert len(lines) <= 21, "\n".join(lines)
            assert not [one for one in lines if len(one.rstrip()) > 100 and "/pytest-" not in one]
        return parts

    with pytest.MonkeyPatch.context() as patched:
        for module in map(import_module, (Grid.__module__, Showing.__module__)):
            patched.setattr(module, "brief", checked)
        yield


# What a shell runs in its background ignores SIGINT, what nohup runs SIGHUP, and so would the
# commands under test.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

# Commands are made once: making all of them takes as long as a short one runs.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'-$"
FREQUENT = "the of and to a in is it was for on with as at by from that this".split()
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A BERT-style tokenizer that keeps frequent words whole and spells the others out."""
    entries = [*SPECIALS, *LETTERS, *(f"##{letter}" for letter in LETTERS), *FREQUENT]
    vocabulary = {entry: number for number, entry in enumerate(dict.fromkeys(entries))}
    backend = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        **{f"{name[1:-1].lower()}_token": name for name in SPECIALS},
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def make_bert(seed: int = 0, layers: int = 3, heads: int = 4, **config: int) -> PreTrainedModel:
    """A BERT with random weights, large enough for attention to differ between heads."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": 8 * heads, "num_hidden_layers": layers, "num_attention_heads": heads}
    sizes |= {"intermediate_size": 32, "vocab_size": 128, **config}
    return BertModel(BertConfig(**sizes, initializer_range=0.5)).eval()


def save(model: PreTrainedModel, folder: Path) -> Path:
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer()


@pytest.fixture
def bert() -> PreTrainedModel:
    return make_bert()


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with its tokenizer; tests must not change it."""
    return save(make_bert(), tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 20 documents of the sample treebank, 140 sentences."""
    sentences = sample_treebank().read_text(encoding="utf-8").split("\n\n")
    file = tmp_path_factory.mktemp("corpus") / "sample.conllu"
    file.write_text("\n\n".join([*sentences[:140], ""]), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def small(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 24 sentences of the sample: enough for tests to have some power."""
    file = tmp_path_factory.mktemp("corpora") / "small.conllu"
    blocks = sample.read_text(encoding="utf-8").split("\n\n")[:24]
    file.write_text("\n\n".join([*blocks, ""]), encoding="utf-8")
    return file


def conllu_sentence(
    words: list[tuple[str, int, str]], sent_id: str | None = None, newdoc: str | None = None
) -> str:
    """Lines of one sentence from (form, head, relation); heads count from 1, 0 is the root."""
    lines = [f"# newdoc id = {newdoc}"] if newdoc else []
    lines += [f"# sent_id = {sent_id}"] if sent_id else []
    lines += [
        "\t".join([str(k), form, form.lower(), "X", "_", "_", str(head), relation, "_", "_"])
        for k, (form, head, relation) in enumerate(words, start=1)
    ]
    return "\n".join(lines) + "\n\n"


CAT = [("Cats", 2, "nsubj"), ("sleep", 0, "root"), (".", 2, "punct")]
DOG = [("Old", 2, "amod"), ("dogs", 3, "nsubj"), ("eat", 0, "root"), ("bones", 3, "obj")]


def flat(result: Showing) -> str:
    """What --full prints of a result, in one line."""
    return " ".join(result.in_full().split())


def write_treebank(folder: Path) -> Path:
    """Write two documents of three and two short sentences."""
    file = folder / "small.conllu"
    first = (conllu_sentence(CAT, "a-1", newdoc="a"), conllu_sentence(DOG, "a-2"))
    second = (conllu_sentence(DOG, "b-1", newdoc="b"), conllu_sentence(CAT, "b-2"))
    sentences = [*first, conllu_sentence(CAT, "a-3"), *second]
    file.write_text("".join(sentences), encoding="utf-8")
    return file


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    """Two documents of three and two short sentences."""
    return write_treebank(tmp_path)


def role_ids(
    relations: Sequence[str], score: str = "bias", beyond_offset: bool = True
) -> tuple[str, ...]:
    """Ids of all roles, in the order of every table."""
    options = RoleOptions(beyond_offset=beyond_offset)
    return tuple(role.id for role in choose_roles(options, tuple(relations), SCORES[score]))


_KNOWN = {
    role.id: role
    for score in SCORES.values()
    for role in choose_roles(RoleOptions(), ("nsubj", "obj"), score)
}


def make_roles(ids: Sequence[str]) -> tuple[Role, ...]:
    """The roles of these ids, made up where there is none."""
    made = whole_roles(RecordedRole(name, unit="tokens") for name in ids)
    return tuple(_KNOWN.get(role.id, Role.from_record(role)) for role in made)


def make_scores(
    values: Any,
    roles: Sequence[str],
    documents: Sequence[str] | None = None,
    score: str = "bias",
    **said: Any,
) -> HeadScores:
    """Scores made by hand from (examples, layers, heads, roles); one document if not named."""
    table = np.asarray(values, dtype=np.float32)
    n_examples = len(table)
    there = ~np.isnan(table).all(axis=(1, 2))
    return HeadScores(
        ids=tuple(f"e{k}" for k in range(n_examples)),
        documents=tuple(documents or ["d"] * n_examples),
        lengths=np.full(n_examples, 12),
        roles=make_roles(roles),
        values=table,
        counts=9 * there.astype(np.int64),
        score=SCORES[score],
        record=Record.read(said),
    )


def change_json(file: Path, **changes: Any) -> None:
    """Change entries of the object in a file; ``...`` removes one."""
    content = {**json.loads(file.read_text("utf-8")), **changes}
    kept = {name: value for name, value in content.items() if value is not ...}
    file.write_text(json.dumps(kept), "utf-8")


def changed(made: Any, **said: Any) -> Any:
    """A result whose record says something else; entries of objects are changed one by one."""
    record = plain(made.record)
    for name, value in said.items():
        record[name] = {**record.get(name, {}), **value} if isinstance(value, dict) else value
    return replace(made, record=Record.read(json.loads(encode_json(record))))
