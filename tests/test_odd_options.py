"""Options that no machine can follow, or that do nothing, are refused in words before any work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForSequenceClassification, BertForSequenceClassification

from headroles import read_conllu, score_heads
from headroles.corpus.tables import named_columns, place_of
from headroles.errors import CorpusError, ModelError, TokenizerError, UsageError
from headroles.models.loading.encoder import load_encoder
from headroles.options import whole_number
from headroles.roles import RoleOptions
from headroles.roles.catalogue import read_frequencies
from headroles.scoring.options import ScoreOptions
from headroles.studies.importance.ablate import AblateOptions
from headroles.studies.pruning.gate import GateOptions
from headroles.studies.pruning.prune import PruneOptions
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import open_run
from tests.conftest import make_bert, make_tokenizer
from tests.tasks.conftest import make_task_model, save

DIGITS = "9" * 5000  # more than Python makes a number of


def test_numbers_of_any_length(tmp_path: Path) -> None:
    assert whole_number("7") == 7
    assert whole_number(DIGITS) is whole_number("-1") is whole_number("x") is None
    assert named_columns(DIGITS) == (DIGITS,)
    with pytest.raises(CorpusError, match="t has no column"):
        place_of("t", DIGITS, ["a"], 1)
    assert TaskOptions(label_column=DIGITS).label_column == DIGITS
    with pytest.raises(UsageError, match="it must be layer-head"):
        PruneOptions(keep=3, protect=f"0-{DIGITS}")
    with pytest.raises(UsageError, match="has no valid offset"):
        RoleOptions(roles=f"position:{DIGITS}")
    with pytest.raises(UsageError, match="seed is a value of type int; it must be a whole"):
        GateOptions(keep=3, seed=10**5000)
    (tmp_path / "f").write_text(f"the\t{DIGITS}\n")
    with pytest.raises(CorpusError, match=r"f, line 1: .* is not a word, a tab and a count"):
        read_frequencies(tmp_path / "f")


def test_roles_without_the_set_that_they_are_for() -> None:
    for sets in ("single", "layers,thirds"):
        with pytest.raises(UsageError, match="does nothing without the set roles; add it to sets"):
            AblateOptions(sets=sets, roles_from="roles")
    assert AblateOptions(sets="single,roles", roles_from="roles").roles_from == "roles"


@pytest.mark.parametrize("seed", [-1, 2**32, 2**64])
def test_seeds_are_those_that_every_generator_takes(seed: int) -> None:
    for make in (GateOptions, PruneOptions):
        with pytest.raises(UsageError, match="from 0 and below 4294967296"):
            make(keep=3, seed=seed)


@pytest.mark.parametrize(
    ("given", "group"),
    [
        ({"frequencies": "f.tsv"}, "rare"),
        ({"roles": "delimiter", "window": 3}, "local"),
        ({"roles": "local", "relations": "nsubj"}, "syntactic"),
        ({"roles": "local", "arcs": "enhanced"}, "syntactic"),
        ({"roles": "local", "keep_subtypes": True}, "syntactic"),
        ({"roles": "local", "columns": True}, "syntactic"),
    ],
)
def test_options_of_roles_that_are_not_scored(given: dict[str, Any], group: str) -> None:
    with pytest.raises(UsageError, match=f"has no effect without the role {group}"):
        ScoreOptions(**given)
    ScoreOptions(**{**given, "roles": "all"})


def test_options_without_their_work_are_refused() -> None:
    with pytest.raises(UsageError, match="does nothing to frozen weights"):
        GateOptions(keep=3, weight_rate=0.1)
    with pytest.raises(UsageError, match=r"epochs .* name examples with fine_tune_on"):
        PruneOptions(keep=3, order="top", epochs=2.0)


def test_positions_beyond_any_input(bert_folder: Path, treebank: Path) -> None:
    corpus = read_conllu(treebank)
    with pytest.raises(UsageError, match=r"position:\+9999999 looks farther than the model reads"):
        score_heads(bert_folder, corpus, roles="position:9999999")
    with pytest.raises(CorpusError, match=r"no example has a score for position:\+400"):
        score_heads(bert_folder, corpus, roles="position:400")


@pytest.mark.parametrize("kind", ["pad_token", "unk_token", "cls_token", "sep_token"])
def test_special_tokens_without_an_embedding(kind: str, tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    make_bert(vocab_size=len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    load_encoder(tmp_path)
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        file = tmp_path / name
        content = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**content, kind: "[NOPE]"}))
    with pytest.raises(TokenizerError, match=r"the piece '\[NOPE\]' .* has number"):
        load_encoder(tmp_path)


def test_an_objective_that_a_loaded_model_was_not_trained_for(tmp_path: Path) -> None:
    folder = save(make_task_model(), tmp_path / "model")
    network = AutoModelForSequenceClassification.from_pretrained(folder)
    assert isinstance(network, BertForSequenceClassification)
    (tmp_path / "text").write_text("the cat\nthe dog\n")
    with pytest.raises(ModelError, match=r"nothing trained .* for masked lm"):
        open_run(network.eval(), tmp_path / "text", TaskOptions(objective="masked_lm"))
