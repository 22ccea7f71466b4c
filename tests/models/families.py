"""A small configuration of every family; one line each."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from transformers import PreTrainedModel

LAYERS, HEADS = 3, 4

_COMMON: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "initializer_range": 0.4,
}

_ONLY_EAGER = ("mpnet", "deberta", "deberta-v2", "roformer", "rembert", "megatron-bert", "splinter")

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", {}),
    "roberta": ("Roberta", {}),
    "xlm-roberta": ("XLMRoberta", {}),
    "camembert": ("Camembert", {}),
    "electra": ("Electra", {"embedding_size": 16}),
    "distilbert": (
        "DistilBert",
        {"dim": 32, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 48},
    ),
    "albert": ("Albert", {"embedding_size": 16}),
    "modernbert": ("ModernBert", {"local_attention": 8, "cls_token_id": 1, "sep_token_id": 2}),
    "mpnet": ("MPNet", {}),
    "deberta": ("Deberta", {}),
    "deberta-v2": ("DebertaV2", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "ernie": ("Ernie", {}),
    "mobilebert": ("MobileBert", {"embedding_size": 16, "intra_bottleneck_size": 16}),
    "splinter": ("Splinter", {}),
    "nomic_bert": ("NomicBert", {}),
    "eurobert": ("EuroBert", {"num_key_value_heads": 2}),
    "roformer": ("RoFormer", {"embedding_size": 16}),
    "rembert": ("RemBert", {"input_embedding_size": 16, "output_embedding_size": 16}),
    "megatron-bert": ("MegatronBert", {}),
}


def make_model(
    kind: str, task: str = "Model", attention: str = "eager", seed: int = 0
) -> PreTrainedModel:
    """A model of ``kind`` with random weights, ready to be read."""
    name, options = CONFIGS[kind]
    config = getattr(hf, f"{name}Config")(**{**_COMMON, **options})
    if kind in _ONLY_EAGER:
        attention = "eager"
    config._attn_implementation = attention
    torch.manual_seed(seed)
    model: PreTrainedModel = getattr(hf, f"{name}{task}")(config)
    return model.eval()
