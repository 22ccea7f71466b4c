"""A small decoder of many kinds, with the spans of keys that the tokens of its layers see."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from transformers import CONFIG_MAPPING, PreTrainedModel

from headroles.reach import Reach, window_of_decoder

WINDOW = 6
SIZES: dict[str, Any] = {
    "vocab_size": 128,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
}
_GPT2 = {"vocab_size": 128, "n_embd": 32, "n_layer": 2, "n_head": 4}
WINDOWS: dict[str, Any] = {
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention"],
}
_GLOBAL = {"attention_types": [[["global", "local"], 1]], "num_layers": 2, "num_heads": 4}
WHOLE, NEAR = window_of_decoder(None), window_of_decoder(WINDOW)
DECODERS: dict[str, tuple[dict[str, Any], tuple[Reach, ...]]] = {
    "gpt2": (_GPT2, (WHOLE,) * 2),
    "llama": (SIZES, (WHOLE,) * 2),
    "mistral": ({**SIZES, "sliding_window": WINDOW}, (NEAR,) * 2),
    "qwen2": (SIZES, (WHOLE,) * 2),
    "qwen3": ({**SIZES, **WINDOWS, "use_sliding_window": True}, (NEAR, WHOLE)),
    "gemma2": ({**SIZES, **WINDOWS, "query_pre_attn_scalar": 8}, (NEAR, WHOLE)),
    "phi3": ({**SIZES, "sliding_window": WINDOW}, (NEAR,) * 2),
    "opt": ({**SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32}, (WHOLE,) * 2),
    "bloom": ({"vocab_size": 128, "hidden_size": 32, "n_layer": 2, "n_head": 4}, (WHOLE,) * 2),
    "gpt_neox": (SIZES, (WHOLE,) * 2),
    "gpt_neo": ({**SIZES, **_GLOBAL, "window_size": WINDOW}, (WHOLE, NEAR)),
    "bert": ({**SIZES, "is_decoder": True}, (WHOLE,) * 2),
    "xlm": ({"vocab_size": 128, "emb_dim": 32, "n_layers": 2, "causal": True}, (WHOLE,) * 2),
}


def make_decoder(kind: str, **others: Any) -> PreTrainedModel:
    sizes = {**DECODERS.get(kind, (SIZES, ()))[0], **others}
    torch.manual_seed(0)
    model: PreTrainedModel = hf.AutoModel.from_config(CONFIG_MAPPING[kind](**sizes)).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model
