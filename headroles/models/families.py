"""Families of models: the paths at which each stores its attention. No other module knows them.

Most families of transformers pass queries and keys to a function that can be replaced by name (its
attention interface); others are read through the attentions that they return. Either needs an entry
only to be listed, not to be scored. `models.heads.projections` reads the projections of queries,
keys, values and outputs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from headroles.errors import ModelSupportError
from headroles.models.options import ATTENTIONS, ENCODER
from headroles.wording import listed

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


@dataclass(frozen=True)
class Paths:
    """Paths of the projections of one layer's attention, below the base model.

    ``{}`` stands for the layer and ``{group}`` for the group of layers that share a module.
    """

    query: str
    key: str
    value: str
    output: str
    fused: Literal["", "thirds", "heads"] = ""
    """Whether query, key and value are one linear: ``thirds`` has all queries, then all keys, then
    all values; ``heads`` has the query, key and value of one head, then those of the next.
    """
    query_bias: str = ""
    value_bias: str = ""
    positions: tuple[str, ...] = ()
    """Further linears with rows for every head, for positions, if a model has any."""

    @property
    def attention(self) -> str:
        """Path of the module whose forward computes attention."""
        return self.query.rpartition(".")[0]

    @property
    def across(self) -> Paths:
        """Paths of cross-attention in a decoder whose own attention has these paths."""
        moved = {
            name: getattr(self, name).replace(*names)
            for names in _CROSS
            if names[0] in self.query
            for name in ("query", "key", "value", "output")
        }
        return replace(self, **moved)


def _inside(attention: str, query: str, key: str, value: str, output: str) -> Paths:
    query, key, value, output = (f"{attention}.{name}" for name in (query, key, value, output))
    return Paths(query, key, value, output)


def _fused(
    projection: str, output: str, fused: Literal["thirds", "heads"], **settings: Any
) -> Paths:
    return Paths(projection, projection, projection, output, fused, **settings)


_CROSS = (
    (".self_attn.", ".encoder_attn."),
    (".layer.0.SelfAttention.", ".layer.1.EncDecAttention."),
)
"""In paths, the module of a decoder's own attention, and that of its cross-attention."""
_ALBERT = "encoder.albert_layer_groups.{group}.albert_layers.0.attention"
_SELF = "encoder.layer.{}.attention.self"
_BERT_PATHS = _inside(
    "encoder.layer.{}.attention", "self.query", "self.key", "self.value", "output.dense"
)
_LLAMA_PATHS = _inside("layers.{}.self_attn", "q_proj", "k_proj", "v_proj", "o_proj")
_BART_PATHS = _inside("layers.{}.self_attn", "q_proj", "k_proj", "v_proj", "out_proj")
_T5_PATHS = _inside("block.{}.layer.0.SelfAttention", "q", "k", "v", "o")
_XLM_PATHS = _inside("attentions.{}", "q_lin", "k_lin", "v_lin", "out_lin")


INTERFACE, RETURNED = "attention interface", "returned attentions"
"""Ways to reach attention weights."""


@dataclass(frozen=True)
class Family:
    """One family of models."""

    name: str
    paths: Paths | None = _BERT_PATHS
    """Paths of its projections; None if unknown, or if they do not reach the heads."""
    why_no_paths: str = ""
    """Reason why norms, gates and the removal of heads are not possible with linear maps alone."""
    read_through: str = INTERFACE
    """Short description of how its attention weights are reached."""
    position_bias: str = ""
    """Argument of its attention module with a bias for every head and pair of positions."""
    note: str = ""
    is_decoder: bool = False
    """Whether its tokens see earlier ones alone, whatever its configuration says."""
    reads: tuple[str, ...] = (ENCODER,)
    """Which attention of its models is read, of ``ATTENTIONS``."""
    positions: str = ""
    """Description of the position terms of its scores, beside the product of queries and keys."""
    position_embedding: str = ""
    """Embedding of its attention module with a bias for every head and distance. If only the first
    layer has one, it passes its bias to the others.
    """
    has_own_forward: bool = False
    """Whether its attention module fails without heads, and with queries of low rank."""
    needs_heads: bool = False
    """Whether its attention module fails without heads, though it uses the attention interface."""
    returns_scores: bool = False
    """Whether the attentions that it returns are inputs of the softmax instead of its outputs."""
    mixes_padding: bool = False
    """Whether its convolutions mix the padding of a batch into the words: it reads sequences alone.
    """


def _t5(name: str, **settings: Any) -> Family:
    return Family(
        name,
        _T5_PATHS,
        reads=ATTENTIONS,
        positions="a bias of relative positions",
        position_embedding="relative_attention_bias",
        **settings,
    )


def _bart(name: str) -> Family:
    return Family(name, _BART_PATHS, reads=ATTENTIONS)


def _decoder(name: str, paths: Paths | None, **settings: Any) -> Family:
    note = "a decoder: each token sees itself and earlier ones"
    return Family(name, paths, is_decoder=True, note=note, **settings)


def _llama(name: str) -> Family:
    return _decoder(name, _LLAMA_PATHS, positions="rotary positions")


_HALF = "an encoder-decoder, of which its encoder is read"

FAMILIES = {
    "bert": Family("BERT"),
    "roberta": Family("RoBERTa"),
    "xlm-roberta": Family("XLM-RoBERTa"),
    "xlm-roberta-xl": Family("XLM-RoBERTa-XL"),
    "roberta-prelayernorm": Family("RoBERTa-PreLayerNorm"),
    "data2vec-text": Family("data2vec (text)"),
    "camembert": Family("CamemBERT"),
    "electra": Family("ELECTRA"),
    "distilbert": Family(
        "DistilBERT",
        _inside("transformer.layer.{}.attention", "q_lin", "k_lin", "v_lin", "out_lin"),
    ),
    "albert": Family(
        "ALBERT",
        _inside(_ALBERT, "query", "key", "value", "dense"),
        note="layers share one module; their attention differs all the same",
    ),
    "modernbert": Family(
        "ModernBERT",
        _fused("layers.{}.attn.Wqkv", "layers.{}.attn.Wo", "thirds"),
        note="layers with a sliding window: local by construction",
        positions="rotary positions",
    ),
    "mpnet": Family(
        "MPNet",
        _inside("encoder.layer.{}.attention.attn", "q", "k", "v", "o"),
        read_through=RETURNED,
        position_bias="position_bias",
        positions="a bias of relative positions",
    ),
    "deberta": Family(
        "DeBERTa",
        _fused(
            f"{_SELF}.in_proj",
            "encoder.layer.{}.attention.output.dense",
            "heads",
            query_bias=f"{_SELF}.q_bias",
            value_bias=f"{_SELF}.v_bias",
            positions=(f"{_SELF}.pos_proj", f"{_SELF}.pos_q_proj"),
        ),
        read_through=RETURNED,
        positions="terms of relative positions",
    ),
    "deberta-v2": Family(
        "DeBERTa-v2",
        Paths(
            f"{_SELF}.query_proj",
            f"{_SELF}.key_proj",
            f"{_SELF}.value_proj",
            "encoder.layer.{}.attention.output.dense",
            positions=(f"{_SELF}.pos_key_proj", f"{_SELF}.pos_query_proj"),
        ),
        read_through=RETURNED,
        positions="terms of relative positions",
    ),
    "ernie": Family("ERNIE"),
    "mobilebert": Family("MobileBERT"),
    "splinter": Family("Splinter"),
    "roc_bert": Family("RoCBert"),
    "layoutlm": Family("LayoutLM"),
    "esm": Family("ESM", positions="rotary positions"),
    "nomic_bert": Family("NomicBERT", _LLAMA_PATHS, positions="rotary positions"),
    "eurobert": Family(
        "EuroBERT",
        _LLAMA_PATHS,
        note="grouped keys are repeated for the heads that share them",
        positions="rotary positions",
    ),
    "roformer": Family("RoFormer", read_through=RETURNED, positions="rotary positions"),
    "rembert": Family("RemBERT", read_through=RETURNED),
    "megatron-bert": Family("MegatronBERT", read_through=RETURNED),
    "t5": _t5("T5"),
    "mt5": _t5("mT5"),
    "umt5": _t5("UMT5", has_own_forward=True, read_through=RETURNED),
    "bart": _bart("BART"),
    "mbart": _bart("mBART"),
    "marian": _bart("Marian"),
    "m2m_100": _bart("M2M100, NLLB"),
    "pegasus": _bart("Pegasus"),
    "blenderbot": _bart("Blenderbot"),
    "blenderbot-small": _bart("Blenderbot-small"),
    "plbart": _bart("PLBart"),
    "xlm": Family("XLM", _XLM_PATHS, has_own_forward=True, read_through=RETURNED),
    "flaubert": Family("FlauBERT", _XLM_PATHS, has_own_forward=True, read_through=RETURNED),
    "ibert": Family("I-BERT", None, "its projections are quantised", read_through=RETURNED),
    "squeezebert": Family(
        "SqueezeBERT",
        None,
        "its projections are grouped convolutions",
        read_through=RETURNED,
        returns_scores=True,
    ),
    "luke": Family("LUKE", has_own_forward=True, read_through=RETURNED),
    "xmod": Family("X-MOD", note="its language is default_language of its configuration"),
    "convbert": Family(
        "ConvBERT",
        None,
        "its output projection takes up convolutions beside the heads",
        read_through=RETURNED,
        note="half of the output of a layer comes from convolutions, which have no attention",
        mixes_padding=True,
    ),
    "fsmt": Family(
        "FSMT",
        None,
        "it has the tokens before the sequences of a batch",
        reads=ATTENTIONS,
        read_through=RETURNED,
    ),
    "prophetnet": Family(
        "ProphetNet",
        None,
        "its modules cannot do with fewer heads",
        note=_HALF,
        read_through=RETURNED,
        returns_scores=True,
    ),
    "nystromformer": Family(
        "Nyströmformer",
        None,
        "convolutions of its values are added to the outputs of its heads",
        note="where num_landmarks is segment_means_seq_len, as in config.json of its checkpoints",
        read_through=RETURNED,
        mixes_padding=True,
    ),
    "xlnet": Family(
        "XLNet", None, "its projections are tensors and no linear maps", read_through=RETURNED
    ),
    "lilt": Family(
        "LiLT",
        None,
        "queries and keys of its heads have a part in attention to the layout",
        read_through=RETURNED,
    ),
    "layoutlmv3": Family(
        "LayoutLMv3",
        None,
        "biases of places on the page are made for all its heads together",
        read_through=RETURNED,
    ),
    "neomme": Family(
        "NeoMME", None, "the outputs of its heads go through gates before the output projection"
    ),
    "t5gemma2": Family(
        "T5Gemma 2", None, "its windows reach farther behind a token than before it", note=_HALF
    ),
    "bert-generation": Family("BERT for generation", note="its encoder, with is_decoder false"),
    "llama": _llama("Llama"),
    "mistral": _llama("Mistral"),
    "qwen2": _llama("Qwen2"),
    "qwen3": _llama("Qwen3"),
    "gemma": _llama("Gemma"),
    "gemma2": _llama("Gemma 2"),
    "olmo": _llama("OLMo"),
    "gpt_neox": _decoder(
        "GPT-NeoX",
        _fused("layers.{}.attention.query_key_value", "layers.{}.attention.dense", "heads"),
        positions="rotary positions",
    ),
    "gpt2": _decoder(
        "GPT-2",
        _fused("h.{}.attn.c_attn", "h.{}.attn.c_proj", "thirds"),
        has_own_forward=True,
    ),
    "gpt_neo": _decoder(
        "GPT-Neo",
        _inside("h.{}.attn.attention", "q_proj", "k_proj", "v_proj", "out_proj"),
        has_own_forward=True,  # whose scores have no scale
        read_through=RETURNED,
    ),
    "opt": _decoder(
        "OPT",
        _inside("decoder.layers.{}.self_attn", "q_proj", "k_proj", "v_proj", "out_proj"),
        needs_heads=True,
    ),
    "bloom": _decoder(
        "BLOOM",
        None,
        why_no_paths="its bias of distances is made for all its heads together",
        read_through=RETURNED,
    ),
}
"""Families that the tests check, by ``model_type``; others can be scored too, without norms."""

_BLOCK_SPARSE = (
    "its block-sparse attention never forms the weights of a whole row; with attention_type "
    '"original_full" in config.json it does'
)
_WINDOWED = "its windowed attention never forms the weights of a whole row"
REFUSED = {
    **dict.fromkeys(("big_bird", "bigbird_pegasus"), _BLOCK_SPARSE),
    **dict.fromkeys(("longformer", "longt5", "pegasus_x", "led"), _WINDOWED),
    "reformer": "its hashed attention never forms the weights of a whole row",
    "nystromformer": "its approximated attention never forms the weights of a whole row; with "
    "num_landmarks of as many as segment_means_seq_len it does",
    "yoso": "its sampled attention never forms the weights of a whole row",
    "mra": "its approximated attention never forms the weights of a whole row",
    "canine": "its deep layers attend between groups of four characters, not between word pieces",
    "encoder-decoder": "it is put together from two models; save its encoder alone, with "
    "model.encoder.save_pretrained, and give that",
    "fnet": "it mixes tokens by Fourier transforms and has no attention heads",
    "funnel": "it pools the sequence, so its queries and keys are not the tokens",
    "perceiver": "its queries are latent vectors, not tokens",
}
"""Reasons why some models cannot be scored, by ``model_type``."""


def find_family(model: PreTrainedModel) -> Family:
    """Return the family of ``model``; an unlisted one is assumed to use the attention interface.

    Raises ModelSupportError as `check_supported`.
    """
    config = model.config
    check_supported(config)
    kind = config.model_type.removesuffix("_text")  # of T5Gemma 2, taken out of its model
    return FAMILIES.get(kind, Family(config.model_type, paths=None))


def check_supported(config: PreTrainedConfig) -> None:
    """Raise ModelSupportError, with the reason, if such a model cannot be scored."""
    kind = config.model_type
    if kind in REFUSED and not _forms_whole_rows(config):
        raise ModelSupportError(f"{kind} models cannot be scored: {REFUSED[kind]}")
    if getattr(config, "num_hidden_layers", None) == 0:
        raise ModelSupportError(
            f"the {kind} model has no layers (num_hidden_layers is 0), and so no attention heads; "
            "check its config.json"
        )
    if kind == "xmod" and not config.default_language:
        raise ModelSupportError(
            "the xmod model has weights of its own for each language: set default_language in "
            f"config.json to one of its languages ({listed(config.languages)})"
        )
    if is_encoder_decoder(config):
        _check_reads_text(config)
        if getattr(config, "is_decoder", False):
            raise cut_out_of(config)


def cut_out_of(config: PreTrainedConfig) -> ModelSupportError:
    """Make the error for a decoder without the encoder that it attends to."""
    return ModelSupportError(
        f"this is the decoder of a {config.model_type} model, cut out of it; give the whole model"
    )


def _forms_whole_rows(config: Any) -> bool:
    """Tell whether a model of ``REFUSED`` is configured to attend to all tokens after all."""
    if config.model_type == "nystromformer":
        return bool(config.num_landmarks == config.segment_means_seq_len)
    return getattr(config, "attention_type", "") == "original_full"


def is_encoder_decoder(config: PreTrainedConfig) -> bool:
    """Tell whether models of this configuration have a decoder beside their encoder.

    This also holds for the encoder of such a model after it was taken out.
    """
    return bool(getattr(type(config), "is_encoder_decoder", False))


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence progress bars and load reports; their relevant content is checked and raised."""
    from transformers.utils import logging as reports

    bars, level = reports.is_progress_bar_enabled(), reports.get_verbosity()
    reports.disable_progress_bar()  # type: ignore[no-untyped-call]
    reports.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        reports.set_verbosity(level)
        if bars:
            reports.enable_progress_bar()  # type: ignore[no-untyped-call]


def _check_reads_text(config: PreTrainedConfig) -> None:
    """Raise ModelSupportError for an encoder-decoder whose encoder does not read text."""
    from transformers import MODEL_MAPPING

    kind: Any = MODEL_MAPPING.get(type(config), None)
    if kind is None and getattr(config, "auto_map", None):
        return  # code that comes with the model
    if kind is None or kind.main_input_name != "input_ids":
        raise ModelSupportError(
            f"{config.model_type} is an encoder-decoder whose encoder does not read text alone; "
            "headroles scores encoders of text, such as bert, or those of t5 and bart"
        )
