"""A small configuration of every family; one line each."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from transformers import PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from headroles.models.families import FAMILIES, Paths
from headroles.models.heads.stack import find_stack

LAYERS, HEADS = 3, 4


def paths_of(kind: str) -> Paths:
    """The paths of a family whose projections are known."""
    paths = FAMILIES[kind].paths
    assert paths is not None
    return paths


COMMON: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "initializer_range": 0.4,
}

_T5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": LAYERS,
    "num_heads": HEADS,
    "feed_forward_proj": "gated-gelu",
}
_BART = {
    "d_model": 32,
    "init_std": 0.4,
    "encoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "encoder_ffn_dim": 48,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 16,
    "decoder_start_token_id": 2,
}
_GEMMA = {
    **COMMON,
    "head_dim": 8,
    "num_key_value_heads": 2,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "sliding_window": 8,
    "query_pre_attn_scalar": 8,
    "dropout_rate": 0.0,
}
_XLNET = {
    **dict.fromkeys(("max_position_embeddings", "hidden_size", "num_hidden_layers")),
    "d_model": 32,
    "n_layer": LAYERS,
    "n_head": HEADS,
    "d_inner": 48,
}
_XLM = {"emb_dim": 32, "n_layers": LAYERS, "n_heads": HEADS, "pad_index": 0, "embed_init_std": 0.4}

_LLAMA = {"num_key_value_heads": 2, "head_dim": 8}
_AS_BERT = (
    *("bert", "roberta", "xlm-roberta", "camembert", "mpnet", "deberta", "ernie", "splinter"),
    *("nomic_bert", "megatron-bert", "ibert", "bert-generation", "data2vec-text"),
    *("roberta-prelayernorm", "xlm-roberta-xl", "layoutlm"),
)
_AS_BART = (
    *("bart", "mbart", "marian", "m2m_100", "pegasus", "plbart"),
    *("blenderbot", "blenderbot-small"),
)
CONFIGS: dict[str, dict[str, Any]] = {
    **{kind: {} for kind in _AS_BERT},
    **dict.fromkeys(("t5", "mt5", "umt5"), _T5),
    **dict.fromkeys(_AS_BART, _BART),
    **dict.fromkeys(("xlm", "flaubert"), _XLM),
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "olmo"), _LLAMA),
    "gpt_neox": {},
    "gpt2": {"n_inner": 48},
    "gpt_neo": {
        **dict.fromkeys(("num_hidden_layers", "num_attention_heads")),
        "attention_types": [[["global"], LAYERS]],
        "num_layers": LAYERS,
        "num_heads": HEADS,
    },
    "opt": {
        "ffn_dim": 48,
        "word_embed_proj_dim": 32,
        "init_std": 0.4,
        "activation_function": "gelu",
    },
    "bloom": {"n_layer": LAYERS, "n_head": HEADS},
    "electra": {"embedding_size": 16},
    "roc_bert": {"enable_pronunciation": False, "enable_shape": False},
    "esm": {"position_embedding_type": "rotary", "mask_token_id": 3},
    "distilbert": {"dim": 32, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 48},
    "albert": {"embedding_size": 16},
    "modernbert": {"local_attention": 8, "cls_token_id": 1, "sep_token_id": 2},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "mobilebert": {"embedding_size": 16, "intra_bottleneck_size": 16},
    "eurobert": {"num_key_value_heads": 2},
    "roformer": {"embedding_size": 16},
    "rembert": {"input_embedding_size": 16, "output_embedding_size": 16},
    "squeezebert": {"embedding_size": 32},
    "luke": {"entity_vocab_size": 10, "entity_emb_size": 8},
    "xmod": {"languages": ["en_XX", "de_DE"], "default_language": "en_XX"},
    "convbert": {"num_attention_heads": 2 * HEADS, "embedding_size": 32, "initializer_range": 0.2},
    "fsmt": {**_BART, "src_vocab_size": 60, "tgt_vocab_size": 60},
    "prophetnet": {
        "num_hidden_layers": None,  # of which it has two
        "init_std": 0.4,
        "num_encoder_layers": LAYERS,
        "num_encoder_attention_heads": HEADS,
        "encoder_ffn_dim": 48,
        "num_decoder_layers": 1,
        "num_decoder_attention_heads": 2,
        "decoder_ffn_dim": 16,
    },
    "nystromformer": {"conv_kernel_size": 3},
    "xlnet": _XLNET,
    "lilt": {"hidden_size": 48},
    "layoutlmv3": {"hidden_size": 48, "coordinate_size": 8, "shape_size": 8},
    "neomme": {"num_key_value_heads": 2, "head_dim": 16},
    "t5gemma2": {
        **dict.fromkeys(COMMON),
        "encoder": {
            "text_config": _GEMMA,
            "vision_config": {**COMMON, "image_size": 8, "patch_size": 4},
            "image_token_id": 1,
            "boi_token_index": 2,
            "eoi_token_index": 3,
        },
        "decoder": _GEMMA,
        "image_token_index": 1,
        "eoi_token_index": 3,
        "initializer_range": 0.4,
    },
}
UNKNOWN = () if "neomme" in CONFIG_MAPPING else ("neomme",)
"""Families that transformers of this version lacks."""
CONFIGS = {kind: sizes for kind, sizes in CONFIGS.items() if kind not in UNKNOWN}
NAMES = {kind: CONFIG_MAPPING[kind].__name__.removesuffix("Config") for kind in CONFIGS}
"""How the names of their classes begin."""
HALVES = tuple(
    kind for kind in CONFIGS if getattr(CONFIG_MAPPING[kind], "is_encoder_decoder", False)
)
"""Encoders of encoder-decoders."""
OLD_T5 = () if hf.T5Model._supports_sdpa else ("t5", "mt5", "umt5")
"""Families without the attention interface in older versions, read by their returned attentions."""
PROJECTED = tuple(kind for kind in CONFIGS if FAMILIES[kind].paths is not None)
"""Families whose projections are known."""
UNPROJECTED = tuple(kind for kind in CONFIGS if kind not in PROJECTED)
"""Families that have no norms, and whose heads are not gated or removed."""
ONE_MODULE = tuple(kind for kind in PROJECTED if "{group}" in paths_of(kind).query)
"""Families whose layers are one module."""
WITH_POSITION_BIAS = tuple(
    kind
    for kind in PROJECTED
    if FAMILIES[kind].position_bias or FAMILIES[kind].position_embedding or paths_of(kind).positions
)
"""Families whose attention is not equal where queries are 0, as positions add to the scores."""
ALONE = tuple(kind for kind in CONFIGS if FAMILIES[kind].mixes_padding)
"""Families whose convolutions see the padding: each of their sequences is run by itself."""
TASKS = ("ForQuestionAnswering", "ForTokenClassification", "ForMaskedLM")


def task_of(kind: str) -> str:
    """The first task for which transformers has a model of a family, else no task."""
    tasks = () if kind in HALVES else TASKS
    return next((task for task in tasks if hasattr(hf, f"{NAMES[kind]}{task}")), "Model")


def make_whole(
    kind: str, task: str = "Model", attention: str = "eager", seed: int = 0, **sizes: Any
) -> PreTrainedModel:
    """A model of ``kind`` with random weights, an encoder-decoder with its decoder."""
    given = {**COMMON, **CONFIGS[kind], **sizes}
    config = CONFIG_MAPPING[kind](**{k: size for k, size in given.items() if size is not None})
    made = getattr(hf, f"{NAMES[kind]}{task}", None) or getattr(hf, f"{NAMES[kind]}Encoder")
    config._attn_implementation = attention if made._supports_sdpa else "eager"
    torch.manual_seed(seed)
    model: PreTrainedModel = made(config)
    return model.eval()


def make_model(kind: str, *given: Any, **named: Any) -> PreTrainedModel:
    """The same, ready to be read; of some the encoder alone."""
    made = make_whole(kind, *given, **named)
    return find_stack(made).base if kind in HALVES else made


def randomise_biases(model: PreTrainedModel, deviation: float) -> PreTrainedModel:
    """Return ``model`` with biases that are not 0, so that a lost one would show."""
    generator = torch.Generator().manual_seed(1)
    for name, values in model.named_parameters():
        if "bias" in name:
            torch.nn.init.normal_(values, std=deviation, generator=generator)
    return model
