"""Text models of the installed transformers that can be read, with the errors of reading.

python -m benchmarks.text_models [--types bert t5 ...] [--markdown]

For each type of model that the mappings of transformers name, and that reads text, a small model
with random weights is made and scored on the sample treebank. Its row:

read through   how its attention weights are reached
each token sees  the span of keys of each kind of layers; "(others)" where weights say otherwise
difference     the largest difference of a weight from what the model returns with
               ``output_attentions=True`` under its own eager attention, over real tokens
beside it      the same differences of decoder and cross-attention of an encoder-decoder, or the
               reason why one is not read
scored         examples of the sample that have a score
why not        the reason, where the model is not read
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import PreTrainedTokenizerFast
from transformers.models.auto import modeling_auto

import headroles as hr
from benchmarks.fuzz import make_tokenizer
from headroles.encoding import DECODER_INPUTS
from headroles.errors import HeadRolesError
from headroles.models.attention.functions import masks_of
from headroles.models.attention.reader import RETURNED_AS, open_reader
from headroles.models.families import REFUSED, check_supported, is_encoder_decoder
from headroles.models.heads.stack import Stack, find_stack
from headroles.models.options import ATTENTIONS
from headroles.reach import Reach

_MAPPINGS = (
    "CAUSAL_LM",
    "MASKED_LM",
    "SEQ_TO_SEQ_CAUSAL_LM",
    "TEXT_ENCODING",
    "SEQUENCE_CLASSIFICATION",
    "TOKEN_CLASSIFICATION",
    "QUESTION_ANSWERING",
)
"""Tasks of which each has models of text."""
_WIDTH, _LAYERS, _HEADS, _LONGEST = 32, 2, 4, 512
_SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "dim", "emb_dim", "embedding_size"), _WIDTH),
    **dict.fromkeys(("input_embedding_size", "output_embedding_size", "entity_emb_size"), _WIDTH),
    **dict.fromkeys(("intermediate_size", "d_ff", "hidden_dim", "encoder_ffn_dim"), 48),
    **dict.fromkeys(("decoder_ffn_dim",), 48),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layers", "encoder_layers"), _LAYERS),
    **dict.fromkeys(("decoder_layers", "num_decoder_layers", "num_encoder_layers"), _LAYERS),
    **dict.fromkeys(("n_embd", "word_embed_proj_dim"), _WIDTH),
    **dict.fromkeys(("ffn_dim", "moe_intermediate_size"), 48),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_heads"), _HEADS),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), _HEADS),
    **dict.fromkeys(("num_encoder_attention_heads", "num_decoder_attention_heads"), _HEADS),
    **dict.fromkeys(("d_kv", "head_dim"), _WIDTH // _HEADS),
    "n_layer": _LAYERS,
    "n_head": _HEADS,
    "num_key_value_heads": _HEADS,
    "sliding_window": 6,
    "intra_bottleneck_size": _WIDTH,
    "max_position_embeddings": _LONGEST,
    "pad_token_id": 0,
    "entity_vocab_size": 10,
    "num_local_experts": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "rotary_dim": 4,
    "window_size": 6,
    "default_language": "en_XX",
}
"""What small models have, by the names of their configurations."""
_FITTING: dict[str, dict[str, Any]] = {
    "lilt": {"hidden_size": 48},
    "layoutlmv3": {"hidden_size": 48, "coordinate_size": 8, "shape_size": 8},
    "neomme": {"head_dim": 16},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "big_bird": {"attention_type": "original_full"},
    "bigbird_pegasus": {"attention_type": "original_full"},
    "nystromformer": {"num_landmarks": 64, "segment_means_seq_len": 64},
}
"""Settings with which a small model of some types can be made and read."""
_TEXT_ALONE = ("bert-generation", "dpr", "embedding_gemma2_text")
"""Encoders of text that no task has."""
_SCORES = ("squeezebert", "prophetnet")
"""Types that return as attentions what goes into the softmax."""
_SPREAD = ("initializer_range", "init_std", "embed_init_std")
_PART = ("vision", "image", "audio", "speech")


@dataclass(frozen=True)
class Row:
    """The outcome of one type."""

    type: str
    read_through: str = ""
    sees: str = ""
    difference: float | None = None
    beside: str = ""
    scored: int | None = None
    why_not: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        difference = "" if self.difference is None else f"{self.difference:.0e}"
        scored = "" if self.scored is None else str(self.scored)
        beside = self.beside
        return self.type, self.read_through, self.sees, difference, beside, scored, self.why_not


def text_models(types: list[str]) -> Iterator[tuple[str, type[Any]]]:
    """Yield types that read text, with their configuration classes."""
    names: set[str] = set()
    for task in _MAPPINGS:
        names |= set(getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES"))
    names |= {name for name in modeling_auto.MODEL_MAPPING_NAMES if name in _TEXT_ALONE}
    for name in sorted(types or names):
        if name not in transformers.CONFIG_MAPPING:
            continue
        kind = transformers.CONFIG_MAPPING[name]
        model = transformers.MODEL_MAPPING.get(kind, None)
        parts = " ".join(getattr(kind, "sub_configs", {}))
        if getattr(model, "main_input_name", "") != "input_ids" or any(map(parts.count, _PART)):
            continue
        yield name, kind


def make_config(kind: type[Any], n_pieces: int) -> Any:
    """Make a small configuration with the settings that ``kind`` knows."""
    default = kind()
    known = set(vars(default))
    sizes = {**_SIZES, "vocab_size": n_pieces, "n_words": n_pieces}
    sizes |= dict.fromkeys(_SPREAD, 0.2)
    sizes |= _FITTING.get(kind.model_type, {})
    made = {name: value for name, value in sizes.items() if name in known}
    for part in getattr(kind, "sub_configs", {}):
        own = getattr(default, part, None)
        if own is not None:
            made[part] = make_config(type(own), n_pieces)
    return kind(**made)


def try_type(name: str, kind: type[Any], tokenizer: PreTrainedTokenizerFast) -> Row:
    """Try to read a model of one type, and return its row."""
    try:
        if name in REFUSED and name not in _FITTING:
            check_supported(kind())  # before a model is made, which may fail in words of its own
    except HeadRolesError as error:
        return Row(name, why_not=_short(error))
    except Exception as error:
        return Row(name, why_not=f"no configuration: {_short(error)}")
    try:
        config = make_config(kind, len(tokenizer))
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(config, attn_implementation="eager").eval()
    except Exception as error:
        return Row(name, why_not=f"no small model: {_short(error)}")
    try:
        stack = find_stack(model)
        with open_reader(stack) as reader:
            way, sees = reader.read_through, _sees(reader.reaches)
            difference, fits = _largest_difference(stack, reader)
        scores = hr.score_heads(model, hr.sample_treebank(), tokenizer=tokenizer)
        sees += "" if fits else " (others)"
        beside = _beside_encoder(model) if is_encoder_decoder(model.config) else ""
        return Row(name, way, sees, difference, beside, scores.values.shape[0])
    except HeadRolesError as error:
        return Row(name, why_not=_short(error))
    except Exception as error:
        return Row(name, why_not=f"{type(error).__name__}: {_short(error)}")


def _beside_encoder(model: Any) -> str:
    """Try to read decoder and cross-attention, and say what was found."""
    found = []
    for kind in ATTENTIONS[1:]:
        try:
            stack = find_stack(model, kind)
            with open_reader(stack) as reader:
                difference, fits = _largest_difference(stack, reader)
            found.append(f"{kind} {difference:.0e}{'' if fits else ' (others)'}")
        except HeadRolesError as error:
            found.append(f"{kind}: {_short(error)}")
    return "; ".join(found)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:240]


def _sees(reaches: tuple[Reach, ...]) -> str:
    """Say which tokens each token sees, for each kind of layers."""
    words = {
        (None, None): "all",
        (None, 0): "earlier",
    }
    named = [words.get(reach[:2], f"{reach.back} before, {reach.ahead} after") for reach in reaches]
    return "; ".join(dict.fromkeys(named))


def _largest_difference(stack: Stack, reader: Any) -> tuple[float, bool]:
    """Return the largest difference over real tokens of two sequences, the second shorter.

    Tell as well whether tokens of the first see exactly the spans of the ``reader``.
    """
    ids = torch.arange(5, 53).view(2, 24)
    mask = torch.ones_like(ids)
    mask[1, 15:] = 0
    inputs = {"input_ids": ids * mask, "attention_mask": mask}
    if stack.takes_targets:  # shorter ones
        inputs |= {f"{DECODER_INPUTS}{name}": values[:, 1:20] for name, values in inputs.items()}
    ours: list[Tensor] = []
    reader.read(inputs, lambda layer, weights: ours.append(weights.clone()))
    stack.whole.set_attn_implementation("eager")
    with torch.no_grad():
        outputs = stack.base(**inputs, **stack.settings, output_attentions=True, return_dict=True)
        theirs = getattr(outputs, RETURNED_AS[stack.kind])
    if stack.config.model_type in _SCORES:
        theirs = [one.softmax(-1) for one in theirs]
    queries, keys = masks_of(inputs, stack.kind)
    real = queries[:, None, :, None].bool()
    pairs = zip(ours, theirs, strict=True)
    distances = torch.arange(keys.shape[1]) - torch.arange(queries.shape[1])[:, None]
    fits = [
        torch.equal(one[0].amax(0) > 0, reach.sees(distances))
        for one, reach in zip(ours, reader.reaches, strict=True)
    ]
    largest = max(float(((one - other) * real).abs().max()) for one, other in pairs)
    return largest, all(fits)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--types", nargs="*", default=[])
    parser.add_argument("--markdown", action="store_true")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    letters = "".join(sorted(set(hr.sample_treebank().read_text(encoding="utf-8").lower())))
    tokenizer = make_tokenizer(letters, model_max_length=_LONGEST)
    mark = "{:<22} {:<21} {:<28} {:<11} {:<28} {:<7} {}"
    if asked.markdown:
        mark = "| {} | {} | {} | {} | {} | {} | {} |"
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    titles = ("type", "read through", "each token sees", "difference", "beside it", "scored")
    titles += ("why not",)
    print(mark.format(*titles), flush=True)
    if asked.markdown:
        print(mark.format(*(["---"] * len(titles))))
    found = (try_type(name, kind, tokenizer) for name, kind in text_models(asked.types))
    n_read = n_types = 0
    for row in found:
        print(mark.format(*row.cells()).rstrip(), flush=True)
        n_read += bool(row.read_through)
        n_types += 1
    print(f"\n{n_read} of {n_types} types are read")


if __name__ == "__main__":
    main()
