"""A small configuration of every family; one line each."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from transformers import PreTrainedModel

from headroles.models.families import FAMILIES, encoder_of

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
    **_COMMON,
    "head_dim": 8,
    "num_key_value_heads": 2,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "sliding_window": 8,
    "query_pre_attn_scalar": 8,
    "dropout_rate": 0.0,
}
_SEEING = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "image_size": 8,
    "patch_size": 4,
}
_XLNET = {
    **dict.fromkeys(("max_position_embeddings", "hidden_size", "num_hidden_layers")),
    "d_model": 32,
    "n_layer": LAYERS,
    "n_head": HEADS,
    "d_inner": 48,
}
_XLM = {"emb_dim": 32, "n_layers": LAYERS, "n_heads": HEADS, "pad_index": 0, "embed_init_std": 0.4}

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
    "t5": ("T5", _T5),
    "mt5": ("MT5", _T5),
    "umt5": ("UMT5", _T5),
    "bart": ("Bart", _BART),
    "mbart": ("MBart", _BART),
    "marian": ("Marian", _BART),
    "m2m_100": ("M2M100", _BART),
    "pegasus": ("Pegasus", _BART),
    "blenderbot": ("Blenderbot", _BART),
    "blenderbot-small": ("BlenderbotSmall", _BART),
    "plbart": ("PLBart", _BART),
    "xlm": ("XLM", _XLM),
    "flaubert": ("Flaubert", _XLM),
    "ibert": ("IBert", {}),
    "squeezebert": ("SqueezeBert", {"embedding_size": 32}),
    "luke": ("Luke", {"entity_vocab_size": 10, "entity_emb_size": 8}),
    "xmod": ("Xmod", {"languages": ["en_XX", "de_DE"], "default_language": "en_XX"}),
    "convbert": (
        "ConvBert",
        {"num_attention_heads": 2 * HEADS, "embedding_size": 32, "initializer_range": 0.2},
    ),
    "fsmt": ("FSMT", {**_BART, "src_vocab_size": 60, "tgt_vocab_size": 60}),
    "prophetnet": (
        "ProphetNet",
        {
            "num_hidden_layers": None,  # of which it has two
            "init_std": 0.4,
            "num_encoder_layers": LAYERS,
            "num_encoder_attention_heads": HEADS,
            "encoder_ffn_dim": 48,
            "num_decoder_layers": 1,
            "num_decoder_attention_heads": 2,
            "decoder_ffn_dim": 16,
        },
    ),
    "nystromformer": ("Nystromformer", {"conv_kernel_size": 3}),
    "xlnet": ("XLNet", _XLNET),
    "lilt": ("Lilt", {"hidden_size": 48}),
    "layoutlmv3": ("LayoutLMv3", {"hidden_size": 48, "coordinate_size": 8, "shape_size": 8}),
    "neomme": ("NeoMME", {"num_key_value_heads": 2, "head_dim": 16}),
    "t5gemma2": (
        "T5Gemma2",
        {
            **dict.fromkeys(_COMMON),
            "encoder": {
                "text_config": _GEMMA,
                "vision_config": _SEEING,
                "image_token_id": 1,
                "boi_token_index": 2,
                "eoi_token_index": 3,
            },
            "decoder": _GEMMA,
            "image_token_index": 1,
            "eoi_token_index": 3,
            "initializer_range": 0.4,
        },
    ),
    "bert-generation": ("BertGeneration", {}),
}
UNKNOWN = () if hasattr(hf, "NeoMMEConfig") else ("neomme",)
"""Families that transformers of this version lacks."""
CONFIGS = {kind: one for kind, one in CONFIGS.items() if kind not in UNKNOWN}
HALVES = tuple(
    kind
    for kind, (name, _) in CONFIGS.items()
    if getattr(getattr(hf, f"{name}Config"), "is_encoder_decoder", False)
)
"""Encoders of encoder-decoders."""
OLD_T5 = () if hf.T5Model._supports_sdpa else ("t5", "mt5", "umt5")
"""Families without the attention interface in older versions, read by their returned attentions."""
PROJECTED = tuple(kind for kind in CONFIGS if FAMILIES[kind].paths is not None)
"""Families whose projections are known."""
UNPROJECTED = tuple(kind for kind in CONFIGS if kind not in PROJECTED)
"""Families that have no norms, and whose heads are not gated or removed."""


def make_whole(
    kind: str, task: str = "Model", attention: str = "eager", **sizes: int
) -> PreTrainedModel:
    """A model of ``kind`` with random weights, an encoder-decoder with its decoder."""
    return _make(kind, task, attention, 0, **sizes)


def make_model(
    kind: str, task: str = "Model", attention: str = "eager", seed: int = 0, **sizes: int
) -> PreTrainedModel:
    """A model of ``kind`` with random weights, ready to be read; of some the encoder alone."""
    made = _make(kind, task, attention, seed, **sizes)
    return encoder_of(made) if kind in HALVES else made


def _make(kind: str, task: str, attention: str, seed: int, **others: int) -> PreTrainedModel:
    name, options = CONFIGS[kind]
    given = {**_COMMON, **options, **others}
    sizes = {name: size for name, size in given.items() if size is not None}
    config = getattr(hf, f"{name}Config")(**sizes)
    made = getattr(hf, f"{name}{task}", None) or getattr(hf, f"{name}Encoder")
    config._attn_implementation = attention if made._supports_sdpa else "eager"
    torch.manual_seed(seed)
    model: PreTrainedModel = made(config)
    return model.eval()
