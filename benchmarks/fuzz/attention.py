"""Attention that others saved, and objects around models: damaged, padded, wrapped anew."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers as hf
from torch import nn

from benchmarks.fuzz import ODD, Attempt, Surface, make_tokenizer, save_model
from headroles import make_corpus, score_attention, score_heads

WORDS = (("old", "dogs", "bark"), ("cats", "sleep"), ("a", "bone"))
GOVERNORS = ((1, 2, -1), (1, -1), (1, -1))
LABELS = (("amod", "nsubj", "root"), ("nsubj", "root"), ("det", "root"))
FORMS: tuple[Any, ...] = (
    lambda weights, chance: weights,
    lambda weights, chance: torch.from_numpy(weights).requires_grad_(),
    lambda weights, chance: torch.from_numpy(weights).bfloat16(),
    lambda weights, chance: torch.from_numpy(weights).to_sparse(),
    lambda weights, chance: torch.from_numpy(weights).to("meta"),
    lambda weights, chance: weights.astype(chance.choice(("f2", ">f4", "g", "c8", "O", "U", "?"))),
    lambda weights, chance: tuple(torch.from_numpy(layer[None]) for layer in weights),
    lambda weights, chance: SimpleNamespace(attentions=tuple(weights)),
    lambda weights, chance: SimpleNamespace(attentions=chance.choice(ODD)),
    lambda weights, chance: weights[None],
    lambda weights, chance: weights[:, None],
    lambda weights, chance: weights.tolist(),
    lambda weights, chance: weights[..., : chance.randrange(weights.shape[-1])],
    lambda weights, chance: np.pad(weights, [(0, 0), (0, 0), *[(0, chance.randrange(4))] * 2]),
    lambda weights, chance: np.pad(weights, [(0, 0), (0, 0), *[(chance.randrange(4), 0)] * 2]),
    lambda weights, chance: np.where(weights > chance.random(), weights, np.nan),
    lambda weights, chance: chance.choice(ODD),
)


def _spoil_words(words: list[Any], chance: random.Random) -> Any:
    draw = chance.random()
    if draw < 0.4:
        return words
    if draw < 0.6:
        return [*[None] * chance.randrange(3), *words, *[None] * chance.randrange(4)]
    if draw < 0.7:
        return chance.choice((np.array(words, object), tuple(words), iter(words), str(words)))
    if draw < 0.9:
        words[chance.randrange(len(words))] = chance.choice(ODD)
        return words
    return chance.choice(ODD)


def _saved(place: Path) -> Attempt:
    triples = list(zip(WORDS, GOVERNORS, LABELS, strict=True))
    tokenizer = make_tokenizer()

    def attempt(chance: random.Random) -> str:
        draws = np.random.default_rng(chance.randrange(10**9))
        arrays, aligned = [], []
        for words in WORDS:
            ids = tokenizer(list(words), is_split_into_words=True).word_ids()
            weights = draws.random((2, 2, len(ids), len(ids)), "f4") + np.float32(0.01)
            arrays.append(weights / weights.sum(-1, keepdims=True))
            aligned.append(ids)
        form = chance.choice(FORMS)
        for row in range(len(WORDS)):
            if chance.random() < 0.6:
                arrays[row] = form(arrays[row], chance)
                aligned[row] = _spoil_words(aligned[row], chance)
        known = tokenizer if chance.random() < 0.2 else aligned
        known = chance.choice(ODD) if chance.random() < 0.02 else known
        given = tuple(arrays) if chance.random() < 0.5 else arrays
        score_attention(given, make_corpus(triples), known, roles=["self", "syntactic"])
        return "scored"

    return attempt


class _Holder(nn.Module):
    def __init__(self, **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, pieces: Any) -> Any:
        return pieces


def _class_of(package: str, name: str) -> Any:
    return type(name, (_Holder,), {"__module__": package})


def _wrap(inner: Any, chance: random.Random) -> Any:
    """Put an object, mostly a model, into one of any kind of wrapper, known or unknown."""
    package = chance.choice(
        ("peft.peft_model", "peft.tuners.lora", "sentence_transformers.models", "torch._dynamo.x")
    )
    attribute = chance.choice(("model", "base_model", "module", "_orig_mod", "auto_model", "odd"))
    config = {"a": SimpleNamespace(is_prompt_learning=chance.random() < 0.2)}
    makers = (
        lambda: nn.DataParallel(inner),
        lambda: torch.compile(inner),
        lambda: _Holder(encoder=inner),
        lambda: _Holder(one=inner, two=copy.deepcopy(inner)),
        lambda: _class_of(package, "Theirs")(**{attribute: inner, "peft_config": config}),
        lambda: _class_of(package, "Theirs")(**{attribute: chance.choice(ODD)}),
        lambda: SimpleNamespace(**{attribute: inner, "tokenizer": chance.choice(ODD)}),
        lambda: type(inner),
        lambda: chance.choice((inner, [inner], {"model": inner})),
        lambda: chance.choice([odd for odd in ODD if not isinstance(odd, str)]),
    )
    return chance.choice(makers)()


def _wrapped(place: Path) -> Attempt:
    folder = save_model(place / "model")
    tokenizer = make_tokenizer()
    corpus = make_corpus(list(zip(WORDS, GOVERNORS, LABELS, strict=True)))

    def attempt(chance: random.Random) -> str:
        model: Any = hf.BertModel(hf.BertConfig.from_pretrained(folder)).eval()
        if chance.random() < 0.2:  # an adapter that lacks what adapters have
            layer = model.encoder.layer[chance.randrange(2)].attention.self
            theirs = _class_of("peft.tuners.lora", "Linear")
            layer.query = theirs(base_layer=layer.query, disable_adapters=chance.choice(ODD))
        for _ in range(1 + chance.randrange(2)):
            if isinstance(model, nn.Module):
                model = _wrap(model, chance)
        score_heads(model, corpus, tokenizer=tokenizer, pairing="none", roles=["self"])
        return "scored"

    return attempt


SURFACES = {"saved": Surface(1_000, _saved), "wrappers": Surface(1_000, _wrapped)}
