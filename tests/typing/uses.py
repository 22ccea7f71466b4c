"""Right and wrong uses of the public names, for type checkers; nothing here is run.

A line with a mistake ends in ``# wrong``; a type checker finds a mistake there, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import headroles as hr
from headroles.report import draw_role, make_report, write_report

TREEBANK = Path("treebank.conllu")


def attend(pieces: dict[str, NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return attention of a user's own."""
    return np.ones((*pieces["input_ids"].shape, 1))


def negation(sentence: hr.Sentence) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a role of a user's own."""
    yield 0, len(sentence.words) - 1


def read_corpora(table: pd.DataFrame, docs: list[hr.Sentence]) -> None:
    """Read corpora from files and objects."""
    hr.read_conllu(TREEBANK, on_bad_sentence="skip", documents="sent_id:^.{6}")
    hr.read_conllu(["one.conllu", TREEBANK])
    hr.read_conllu(3)  # wrong
    hr.read_conllu(TREEBANK, on_bad_sentence="ignore")  # wrong
    hr.read_text("text.txt", "en_core_web_sm", lines=True, keep_parses=Path("parses.conllu"))
    hr.read_text("text.txt", lines=True)  # wrong
    hr.read_pairs("pairs.tsv", "en_core_web_sm", ["sentence1", 1], header=True)
    hr.read_arcs("contacts.jsonl", least_distance=6)
    hr.read_arcs("contacts.jsonl", least_distance="six")  # wrong
    hr.make_corpus(docs)
    hr.make_corpus(table, text_columns=["text"], parser="en_core_web_sm")
    hr.make_corpus([(("Dogs", "bark"), (1, -1), ("nsubj", "root"))])


def classify(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Classify heads of folders, hub ids, models and functions over corpora of every kind."""
    corpus = hr.read_conllu(TREEBANK)
    found = hr.classify_heads("bert-base-uncased", corpus, alpha=0.01, relations="nsubj,obj")
    assert_type(found, hr.Classification)
    assert_type(found.roles, hr.RoleTable)
    hr.classify_heads(model, corpus, tokenizer=tokenizer, relations=["nsubj"], roles=[negation])
    hr.classify_heads(attend, "treebank.conllu", tokenizer="bert-base-uncased", roles="local")
    hr.classify_heads(TREEBANK, [TREEBANK], controls="none", on_progress=lambda done, total: None)
    hr.classify_heads(model, [(("Dogs", "bark"), (1, -1), ("nsubj", "root"))], batch_tokens=512)
    hr.classify_heads(3, corpus)  # wrong
    hr.classify_heads(model, None)  # wrong
    hr.classify_heads(model, corpus, alhpa=0.01)  # wrong
    hr.classify_heads(model, corpus, alpha="seven")  # wrong
    hr.classify_heads(model, corpus, correction="bonferoni")  # wrong
    hr.classify_heads(model, corpus, nonsense=[1])  # wrong
    hr.classify_heads(model, corpus, roles=3)  # wrong
    hr.classify_heads(model, corpus, on_progress="bar")  # wrong
    hr.classify_heads(model, [3])  # wrong
    hr.classify_heads(model)  # wrong
    hr.classify_heads(model, corpus, 0.01)  # wrong
    hr.classify_heads(3, None, alhpa="seven", nonsense=[1])  # wrong


def score(model: PreTrainedModel, attention: NDArray[np.float32]) -> hr.HeadScores:
    """Score heads, and attention that was saved."""
    saved = hr.SavedAttention({"s-1": attention}, {"s-1": [None, 0, 1, None]})
    hr.score_heads(saved, TREEBANK, measure="weights", pairing="none")
    hr.score_attention([attention], TREEBANK, [[None, 0, None]], relations="nsubj")
    hr.score_attention("attention.npz", TREEBANK, "bert-base-uncased")
    hr.score_attention(3, TREEBANK, "bert-base-uncased")  # wrong
    hr.score_heads(model, TREEBANK, measure="weight")  # wrong
    hr.score_heads(model, TREEBANK).of_heads((0, 1))  # wrong
    return hr.score_heads(model, TREEBANK, precision="float16")


def assign(scores: hr.HeadScores, table: hr.RoleTable) -> None:
    """Test scores, and read tables."""
    assert_type(hr.assign_roles(scores, threshold=2), hr.RoleTable)
    assert_type(table.options.alpha, float)
    assert_type(table.facts["threshold"], float)
    assert_type(table.facts["controls"]["trees"]["local"], list[tuple[int, int]])
    hr.describe_heads(scores).options.alpha.upper()  # wrong
    table.facts["treshold"]  # wrong
    table.options.alhpa  # wrong
    table.heads_with("local")[0].upper()  # wrong
    hr.assign_roles(table)  # wrong
    compared = hr.compare_roles(scores, scores, scores, names=["one", "two"], margin=0.1)
    assert_type(compared.facts["dropped_roles"], dict[str, list[str]])
    hr.compare_roles(scores)  # wrong
    hr.compare_roles(scores, TREEBANK)  # wrong
    assert_type(hr.power_analysis(scores).facts["examples"], int)
    assert_type(hr.replicate_roles([scores, scores], ["a", "b"]).facts["names"], list[str])
    hr.replicate_roles([scores, scores])  # wrong
    hr.find_best_heads(scores, top=3)
    found = hr.find_examples(scores, (4, 0), "nsubj", n=3, model="model", corpus=[TREEBANK])
    assert_type(found.facts.layer, int)
    hr.find_examples(scores, "4-0", "nsubj")  # wrong
    hr.read_attention(scores, (4, 0), "nsubj", example="s-1")[0].labels
    hr.attention_of("model", ["Old", "dogs"], table.heads_with("local"), measure="norms")
    hr.attention_of("model", ["Old", "dogs"], 4)  # wrong
    hr.measure_token_groups("model", TREEBANK).facts["n_clusters"] + 1


def remove(model: PreTrainedModel) -> None:
    """Ablate, prune and gate heads, and make smaller models."""
    loss = hr.find_importance(model, "dev.tsv", labels={"no": 0, "yes": 1}).facts["measured"][
        "loss"
    ]
    assert_type(loss, float | None)
    ablations = hr.ablate_heads(model, "dev.tsv", sets=["single", "layers"], text_columns=[0, 1])
    hr.ablate_heads(model, "dev.tsv", parts="parts", label_column=2, header=False)
    hr.ablate_heads(model)  # wrong
    hr.ablate_heads(model, "dev.tsv", ablation="nought")  # wrong
    hr.ablate_heads(model, "dev.tsv", masked_share="half")  # wrong
    hr.drops_by_task([ablations, ablations], ["one", "other"], correction="holm")
    hr.drops_by_task(ablations, ["one"])  # wrong
    hr.importance_by_role(model, "dev.tsv", roles_from=Path("roles"), draws=99)
    hr.find_pruning_curves(model, "test.tsv", "dev.tsv", orders="importance,random", shares=[0.5])
    hr.find_pruning_curves(model, "test.tsv", shares=["half"])  # wrong
    pruned = hr.prune_heads("model", "out", task="dev.tsv", keep=12, protect=[(0, 1)])
    assert_type(pruned.removed, list[tuple[int, int]])
    assert_type(pruned.facts["parameters"]["after"], int)
    hr.prune_heads("model", "out", kep=12)  # wrong
    hr.prune_heads("model", keep=12)  # wrong
    gated = hr.gate_heads("model", "dev.tsv", "out", keep=12, seeds=3, overwrite=True)
    assert_type(gated.facts["chosen_seed"], int)
    assert_type(gated.options.keep, int | None)
    shared, table = hr.collaborate_heads("model", None, rank=192, task="dev.tsv")
    assert_type(shared, hr.CollaborativeModel)
    assert_type(table.facts["passes"][0]["multiplications"], float)
    hr.collaborate_heads("model", rank=192)  # wrong
    hr.find_redundancy(model, roles_from="roles").facts["chance"].is_integer()
    assert_type(hr.load_model("out", dtype="float16"), PreTrainedModel)
    hr.load_model("out", dtype="float64")  # wrong
    hr.load_model("out", device="cpu")  # wrong


def claim(model: PreTrainedModel, table: hr.ClaimTable) -> None:
    """Test claims."""
    hr.test_claims(model, TREEBANK, after="tuned", task=["dev.tsv"], claims=["voita"], alpha=0.1)
    hr.test_claims(model, TREEBANK, after=3)  # wrong
    combined = hr.combine_claims([table, table, table], ["a", "b", "c"], correction="fdr_bh")
    assert_type(combined.facts["model"], str)
    hr.combine_claims(table, ["a"])  # wrong


def read_results(folder: Path) -> None:
    """Load results, draw and show them."""
    assert_type(hr.load(folder, hr.RoleTable), hr.RoleTable)
    assert_type(hr.load(folder, hr.HeadScores), hr.HeadScores)
    found = hr.load(folder)
    assert_type(found.frame, pd.DataFrame)
    assert_type(found.facts, Any)
    if isinstance(found, hr.RoleTable):
        assert_type(draw_role(found, "local"), Axes)
    hr.load(3)  # wrong
    hr.load(folder, hr.ablate_heads)  # wrong
    assert_type(hr.RoleTable.load(folder), hr.RoleTable)
    assert_type(write_report(folder, text="Dogs bark.", parser="en_core_web_sm"), Path)
    make_report(folder, tokens=["Dogs", "bark"])
    write_report(folder, tokns=["Dogs"])  # wrong
    draw_role(folder, "local")  # wrong
    hr.no_such_name  # wrong
