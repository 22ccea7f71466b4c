"""Encoders and tokenizers from a folder or the hub, checked before they are used."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from headroles.encoding import (
    AlignedEncoder,
    Alignment,
    EncodedExample,
    ExampleEncoder,
    PairEncoder,
    Targets,
)
from headroles.errors import ModelError, UsageError
from headroles.models.attention.functions import (
    FORMATS,
    AttentionFunction,
    FunctionAttention,
    SavedAttention,
    UnpaddedWords,
    lacks_weights,
    make_attention,
    name_of,
)
from headroles.models.attention.reader import open_reader
from headroles.models.families import check_supported
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.stack import Stack, find_stack
from headroles.models.loading.folders import languages_of
from headroles.models.loading.targets import (
    TargetTokenizer,
    load_for_targets,
    target_of,
    target_of_own,
    with_languages,
)
from headroles.models.loading.tokenizers import (
    check_tokenizer,
    doubts_about,
    fit_to_words,
    limit_of,
    load_tokenizer,
    n_embeddings,
    read_tokenizer,
    stand_in_tokenizer,
    tokenizer_digest,
    without_dropout,
)
from headroles.models.loading.weights import ENCODER, check_head, is_unused, read_model
from headroles.models.loading.wrapped import check_full_precision, unwrapped, with_plain_layers
from headroles.models.options import ENCODER as OF_ENCODER
from headroles.models.options import ModelOptions, TargetOptions, WeightOptions
from headroles.options import takes
from headroles.record import NO_MODEL, RecordedModel
from headroles.storage import is_file, plain

_OF_OUTPUTS = ("class", "dtype", "weights_sha256", "config_sha256")
_NOT_COMPUTED = (
    "_name_or_path",
    "architectures",
    "dtype",
    "id2label",
    "label2id",
    "transformers_version",
)
"""Settings of a configuration that do not change outputs, or are recorded otherwise."""

_WITH_SEGMENTS = ("xlnet", "xlm", "flaubert")
"""Models with segments of which their configurations have no number."""

Model: TypeAlias = str | Path | PreTrainedModel
"""A folder, a hub id, or a loaded model in evaluation mode, which a known wrapper may hold."""
Attending: TypeAlias = Model | AttentionFunction | SavedAttention
"""A model, or attention of the user's own."""


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready to be scored. ``max_tokens`` includes special tokens."""

    attention: Stack | FunctionAttention
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int
    takes_token_types: bool
    description: RecordedModel
    alignment: Mapping[str, Alignment] | None = None
    """Alignment of word pieces that no tokenizer makes."""
    target: TargetTokenizer | None = None
    """How targets are cut, if the decoder of an encoder-decoder runs."""
    own_for_targets: PreTrainedTokenizerBase | None = None
    """The tokenizer of targets as it was loaded, if it is not that of the model."""
    several: tuple[Stack, ...] = ()
    """Layers of several kinds of attention whose heads are looked at, as `with_heads_of` counts."""

    @property
    def stack(self) -> Stack:
        """Its layers of attention. Raises UsageError if only attention is known."""
        if isinstance(self.attention, FunctionAttention):
            raise lacks_weights(self.attention.source)
        return self.attention

    @property
    def sites(self) -> HeadSites:
        """Sites of the heads that are looked at, as the model has them at present."""
        return HeadSites(*(self.several or (self.stack,)))

    def with_heads_of(self, kinds: Sequence[str]) -> LoadedModel:
        """Return the model for the heads of several kinds of attention, which a trial counts.

        The trial also finds the layers in which no token sees a later one. Raises ModelSupportError
        as `open_reader`.
        """
        stacks = []
        for kind in kinds:
            with open_reader(find_stack(self.model, kind)) as reader:
                stacks.append(cast(Stack, reader.source))
        return replace(self, several=tuple(stacks))

    @property
    def model(self) -> PreTrainedModel:
        """The model itself. Raises UsageError if only attention is known."""
        return self.stack.whole

    def example_encoder(self) -> ExampleEncoder:
        """Return the encoder of examples as word pieces."""
        if self.alignment is not None:
            by_words = AlignedEncoder(self.alignment)
            if self.target is None:
                return by_words
            # the words of a target are those of the rows of its array
            return PairEncoder(by_words, AlignedEncoder(self.alignment), Targets(0, True))
        make = partial(
            ExampleEncoder,
            max_tokens=self.max_tokens,
            with_token_types=self.takes_token_types,
        )
        source = make(self.tokenizer, n_embeddings=self.n_embeddings)
        if self.target is None:
            return source
        target = make(self.target.tokenizer, n_embeddings=self._n_target_embeddings)
        return PairEncoder(source, target, self.target.targets)

    def tokens_of(self, example: EncodedExample) -> list[str]:
        """Return the texts of the tokens of an example."""
        ids, n = example.input_ids.tolist(), example.n_source
        tokens = [*self.tokenizer.convert_ids_to_tokens(ids[:n])]
        if self.target is not None and n is not None:
            tokens += self.target.tokenizer.convert_ids_to_tokens(ids[n:])
        return list(map(str, tokens))

    @property
    def n_embeddings(self) -> int | None:
        """Number of pieces that the model has embeddings for; None if only attention is known."""
        is_function = isinstance(self.attention, FunctionAttention)
        return None if is_function else n_embeddings(self.model)

    @property
    def _n_target_embeddings(self) -> int | None:
        """Number of pieces that the decoder has embeddings for; None if that is not known."""
        own: Any = getattr(getattr(self.attention, "part", None), "embed_tokens", None)
        return self.n_embeddings if own is None else len(own.weight)

    @property
    def device(self) -> torch.device:
        """Device that the inputs have to be on."""
        return self.attention.device

    @property
    def identity(self) -> dict[str, Any]:
        """Digests of everything that outputs for a text depend on, for the settings of a run.

        Names of models and files are not included.
        """
        return {
            "model": {name: plain(self.description)[name] for name in _OF_OUTPUTS},
            "tokenizer": {
                "digest": tokenizer_digest(self.tokenizer),
                "longest input": self.max_tokens,
            },
            **({} if self.target is None else {"target": self.target.identity}),
        }


def load_encoder(
    model: Attending,
    options: ModelOptions | None = None,
    head: str | None = ENCODER,
    of: TargetOptions = TargetOptions(),  # noqa: B008 - it cannot change
) -> LoadedModel:
    """Load a checked encoder with its tokenizer, from a folder, a hub id or a loaded model.

    The path of an ``.npz`` or ``.safetensors`` file stands for the attention that is saved in it.

    Removed heads of a model stay removed. With ``head`` of ``HEADS`` the model comes with the head
    trained on top of its encoder, with None whole, as the class that wrote it; then the tokenizer
    is unchanged. A loaded model is used on its
    device, in its own precision; a tokenizer must come with it unless it knows where it was loaded
    from. Weights are read from safetensors files only, and code from the hub runs only with
    ``trust_remote_code``. A function is tried on two sentences; it needs a tokenizer. The encoder
    of an encoder-decoder is read alone, unless ``of`` names other attention.

    Raises:
        ModelError: no such model, no safetensors weights, or weights missing or not finite.
        ModelSupportError: not an encoder that can be scored.
        TokenizerError: no tokenizer.
        UsageError: a device that this machine does not have.
    """
    options = options or ModelOptions()
    model, of_wrapper = unwrapped(model)
    if (function := function_of(model)) is not None:
        if head != ENCODER:
            raise lacks_weights(function)
        return _load_function(function, options, of)
    doubts: list[str] = []
    if isinstance(model, PreTrainedModel):
        check_full_precision(model)
        network, source = with_plain_layers(model), model.config._name_or_path
        check_supported(network.config)
        if head:
            check_head(network, source or type(network).__name__, head)
    else:
        source = str(model)
        network, doubts = read_model(source, options, head, of.attention)
        cast(nn.Module, network).to(choose_device(options.device))
    name = source or type(network).__name__
    stack = find_stack(network, of.attention)
    _check_finite(stack, name)
    tokenizer, of_file = read_tokenizer(options.tokenizer or of_wrapper or source, options)
    check_tokenizer(tokenizer, network, name)
    doubts = [*doubts, *of_file, *doubts_about(tokenizer, network, options.tokenizer or source)]
    limits = (stack.longest_input, limit_of(tokenizer))
    read = stack.base if head == ENCODER else network
    tokenizer = with_languages(tokenizer, of)
    own = load_for_targets(source, options, of.target_tokenizer)
    fit = fit_to_words if head == ENCODER else without_dropout
    return LoadedModel(
        attention=stack,
        tokenizer=fit(tokenizer),
        target=target_of(stack, tokenizer, own, of, fit) if stack.takes_targets else None,
        max_tokens=min(int(limit) for limit in limits if limit is not None),
        takes_token_types=not stack.takes_targets and _takes_token_types(stack.base, tokenizer),
        description=RecordedModel(
            model=name,
            revision=getattr(network.config, "_commit_hash", None) or options.revision,
            class_=type(network).__name__,
            model_type=network.config.model_type,
            dtype=str(network.dtype).removeprefix("torch."),
            weights_sha256=weight_digest(read),
            config_sha256=config_digest(read.config),
            tokenizer=tokenizer.name_or_path,
            tokenizer_class=type(tokenizer).__name__,
            target_tokenizer=_named(own),
            languages=languages_of(source),
            warnings=doubts,
        ),
        own_for_targets=own,
    )


def _named(tokenizer: Any) -> str:
    """Return where a tokenizer that a user gives is from; empty without one."""
    return "" if tokenizer is None else str(getattr(tokenizer, "name_or_path", tokenizer))


def function_of(model: Any) -> AttentionFunction | SavedAttention | None:
    """Return attention of the user's own that stands in place of a model; None for a model."""
    if isinstance(model, str | Path):
        is_saved = Path(model).suffix in FORMATS and is_file(model)
        return SavedAttention(model) if is_saved else None
    model, _ = unwrapped(model)
    return None if isinstance(model, PreTrainedModel) else model


def check_is_model(model: Any) -> None:
    """Raise UsageError for attention of the user's own, where a model itself is needed."""
    if (function := function_of(model)) is not None:
        raise lacks_weights(function)


def _load_function(
    source: AttentionFunction | SavedAttention, options: ModelOptions, of: TargetOptions
) -> LoadedModel:
    """Load attention of the user's own in place of a model."""
    device, alignment = choose_device(options.device), getattr(source, "alignment", None)
    by_words: Mapping[str, Alignment] | None = None
    if isinstance(source, SavedAttention) and source.words is not None:
        # arrays of pairs have other names than the lists of words of their sentences
        by_words = UnpaddedWords(source) if of.attention == OF_ENCODER else source.words
        tokenizer = stand_in_tokenizer()
    else:
        tokenizer = fit_to_words(load_tokenizer(options.tokenizer or alignment or "", options))
    target = None
    if of.attention != OF_ENCODER:
        tokenizer = with_languages(tokenizer, of)
        target = target_of_own(tokenizer, options, of)
    is_alone = by_words is None and target is None
    takes_types = is_alone and "token_type_ids" in tokenizer.model_input_names
    network = make_attention(
        source,
        tokenizer,
        takes_types,
        device,
        of.attention,
        None if target is None else (target.tokenizer, target.targets),
    )
    return LoadedModel(
        attention=network,
        tokenizer=tokenizer,
        max_tokens=limit_of(tokenizer),
        takes_token_types=takes_types,
        description=RecordedModel(
            model=name_of(source),
            revision=None,
            class_="saved attention" if isinstance(source, SavedAttention) else "function",
            model_type=NO_MODEL,
            dtype="float32",
            weights_sha256=network.digest,
            config_sha256=None,
            tokenizer=tokenizer.name_or_path,
            tokenizer_class=type(tokenizer).__name__,
            target_tokenizer=_named(of.target_tokenizer),
            warnings=[],
        ),
        alignment=by_words,
        target=target,
    )


@takes(WeightOptions)
def load_model(folder: str | Path, options: WeightOptions) -> PreTrainedModel:
    """Return the model in ``folder`` in the class that wrote it, without its removed heads.

    Use it for folders that ``headroles prune`` or ``headroles collaborate`` wrote, which
    ``from_pretrained`` of transformers 5 rejects; others are read as it reads them. The model is in
    evaluation mode and on the CPU.

    Args:
        folder: a folder of a model, or a hub id.
        options: keyword arguments, described below.

    Raises ModelError for a folder without a model, or whose weights do not fit.

    >>> from tempfile import TemporaryDirectory
    >>> from transformers import BertConfig, BertModel
    >>> sizes = {"hidden_size": 8, "intermediate_size": 8, "vocab_size": 9}
    >>> model = BertModel(BertConfig(num_hidden_layers=1, num_attention_heads=2, **sizes))
    >>> with TemporaryDirectory() as folder:
    ...     model.save_pretrained(folder)
    ...     load_model(folder).config.num_attention_heads
    2
    """
    return read_model(str(folder), options)[0]


def weight_digest(model: torch.nn.Module) -> str:
    """Return the SHA-256 of names, shapes and values of the weights that affect attention.

    A pooler is excluded: if a checkpoint lacks one, transformers draws random weights for it.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if is_unused(name):
            continue
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def config_digest(config: PreTrainedConfig) -> str:
    """Return the SHA-256 of the settings of a configuration that change outputs."""
    settings = {
        name: value for name, value in config.to_dict().items() if name not in _NOT_COMPUTED
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()


def _check_finite(stack: Stack, name: str) -> None:
    for parameter, values in stack.base.named_parameters():
        # A finite sum has finite terms, and costs no memory; an infinite one may be an overflow.
        total = values.detach().sum(dtype=torch.float32)
        if not torch.isfinite(total) and not torch.isfinite(values).all():
            raise ModelError(
                f"{name}: the weights {parameter} hold NaN or infinity; the checkpoint is broken"
            )


def _takes_token_types(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Tell whether a model distinguishes the segments that its tokenizer numbers.

    Models of transformers whose configurations have no number of segments do not, such as GPT-2,
    which would look them up among its words; but for XLNet, XLM and FlauBERT.
    """
    config = encoder.config
    if hasattr(config, "type_vocab_sizes"):  # TAPAS numbers rows and columns of a table
        return False
    n_types = getattr(config, "type_vocab_size", None)
    is_of_transformers = type(encoder).__module__.startswith("transformers.")
    is_told_apart = config.model_type in _WITH_SEGMENTS or not is_of_transformers
    takes = is_told_apart and "token_type_ids" in inspect.signature(encoder.forward).parameters
    return (takes if n_types is None else n_types > 1) and (
        "token_type_ids" in tokenizer.model_input_names
    )


def choose_device(device: str) -> torch.device:
    """Return the device called ``device``; ``"auto"`` is the first of cuda, mps and cpu that works.

    Raises UsageError for a device that this machine does not have.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise UsageError(f"unknown device {device!r}; use auto, cpu, cuda or mps") from error
    absent_gpu = chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count()
    if not available.get(chosen.type, False) or absent_gpu:
        raise UsageError(f"this machine has no usable {device}; use `device='cpu'`")
    return chosen
