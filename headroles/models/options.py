"""Options of loading a model; names of measures, ablations, factorisations. Cheap to import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from headroles.options import CIRCUMSTANCE, Convert, Options

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WEIGHTS, NORMS = MEASURES = ("weights", "norms")
"""Attention weights: where a head looks; norms: the vectors that it takes from there."""
ENCODER, DECODER, CROSS = ATTENTIONS = ("encoder", "decoder", "cross")
"""Attention of an encoder-decoder: in its encoder, in its decoder, and from the decoder to the
encoder. All other models have one kind of attention, which goes by the first name.
"""
ZERO, MEAN, UNIFORM = ("zero", "mean", "uniform")
"""Replacements for the output of a head."""
FactorMethod: TypeAlias = Literal["shared", "per-head"]
FACTOR_METHODS: tuple[FactorMethod, FactorMethod] = ("shared", "per-head")
"""Methods that factorise queries and keys: for all heads of a layer together, or for each."""
SHARED, PER_HEAD = FACTOR_METHODS


@dataclass(frozen=True, kw_only=True)
class WeightOptions(Options):
    """Options of reading a model."""

    title: ClassVar[str] = "Model"

    dtype: Annotated[Literal["float32", "bfloat16", "float16"], CIRCUMSTANCE] = "float32"
    """Precision of the model; scores are float32 throughout."""
    revision: Annotated[str | None, CIRCUMSTANCE] = None
    """Revision of the model on the hub; left out: main."""
    trust_remote_code: Annotated[bool, CIRCUMSTANCE] = False
    """Run code that comes with the model."""


def _any_tokenizer(tokenizer: str | Path | PreTrainedTokenizerBase) -> str | Path | Any:
    return tokenizer


@dataclass(frozen=True, kw_only=True)
class LanguageOptions(Options):
    """Options of cutting sources and targets of an encoder-decoder."""

    title: ClassVar[str] = "Model"

    target_tokenizer: Annotated[Any, Convert(_any_tokenizer), CIRCUMSTANCE] = None
    """Folder or hub id of the tokenizer of targets, if it is not that of the model."""
    source_language: str | None = None
    """Language of sources, by its code in the tokenizer, such as zh_CN or zho_Hans."""
    target_language: str | None = None
    """Language of targets, by its code in the tokenizer."""


@dataclass(frozen=True, kw_only=True)
class TranslationOptions(LanguageOptions):
    """Options of reading the targets of an encoder-decoder."""

    title: ClassVar[str] = "Model"

    target_rows: Literal["input", "output"] = "input"
    """Row of a target word: that of the step that reads it, or of the one that writes it."""


@dataclass(frozen=True, kw_only=True)
class KindOptions(LanguageOptions):
    """Options that choose the attention of an encoder-decoder."""

    title: ClassVar[str] = "Model"

    attention: Literal["encoder", "decoder", "cross"] = "encoder"
    """Attention of an encoder-decoder that is read: in its encoder, in its decoder, or from the
    decoder to the encoder (cross); the last two need a bitext."""


@dataclass(frozen=True, kw_only=True)
class TargetOptions(KindOptions, TranslationOptions):
    """Options that choose the attention of an encoder-decoder, and the rows of target words."""

    title: ClassVar[str] = "Model"


@dataclass(frozen=True, kw_only=True)
class ModelOptions(WeightOptions):
    """Options of loading a model with its tokenizer."""

    tokenizer: Annotated[Any, Convert(_any_tokenizer), CIRCUMSTANCE] = None
    """Folder or hub id of the tokenizer, if it does not come with the model.

    From Python also a loaded one.
    """
    device: Annotated[str, CIRCUMSTANCE] = "auto"
    """Where it runs: auto, cpu, cuda, cuda:1, ..., or mps."""
