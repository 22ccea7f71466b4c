"""Encoders whose queries and keys are of low rank: their modules, and the folders they write.

A module of self-attention keeps its values and outputs; `LowRankScores` replace its query and key
projections, with queries and keys of another width than values. A folder of such a model has its
weights in a file of another name, so that transformers finds no weights and says so, instead of
inventing the missing projections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import msgspec
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import eager_attention_forward

from headroles import storage
from headroles.errors import HeadRolesError, ModelError
from headroles.models.families import INTERFACE, is_encoder_decoder
from headroles.models.heads.linears import take, unset
from headroles.models.heads.stack import find_stack
from headroles.models.options import DECODER, ENCODER, PER_HEAD, SHARED, FactorMethod
from headroles.storage import Count
from headroles.wording import in_one_line

if TYPE_CHECKING:
    from headroles.models.shared.factorisation import Factors

RECORD_FILE, WEIGHTS_FILE = "low_rank.json", "low_rank.safetensors"
_DAMAGE = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError),
    *(TypeError, ValueError, SafetensorError),
)
"""What transformers and PyTorch raise for a configuration that no model can have."""


class LowRankScores(nn.Module):
    """Queries and keys of low rank.

    With the method ``SHARED`` all heads share their dimensions, and each mixes the queries in its
    own way; with ``PER_HEAD`` every head has dimensions of its own. Weights are still to be set.
    """

    def __init__(self, method: FactorMethod, width: int, heads: int, rank: int) -> None:
        super().__init__()
        self.method, self.heads, self.rank = method, heads, rank
        self.query = unset(width, rank, bias=method == PER_HEAD)
        self.key = unset(width, rank, bias=False)
        if method == SHARED:
            self.mixing = nn.Parameter(torch.empty(heads, rank))
            self.bias = nn.Parameter(torch.empty(heads, rank))

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Compute queries and keys (batch, heads, tokens, size) of (batch, tokens, width).

        The size is the rank if heads share their dimensions, and else rank / heads.
        """
        query, key = self.query(queries), self.key(keys)
        if self.method == PER_HEAD:
            sizes = (self.heads, self.rank // max(self.heads, 1))
            query, key = (part.unflatten(-1, sizes) for part in (query, key))
            return query.transpose(1, 2), key.transpose(1, 2)
        mixed = torch.addcmul(self.bias[:, None], query[:, None], self.mixing[:, None])
        return mixed, key[:, None].expand(-1, self.heads, -1, -1)

    def set(self, factors: Factors) -> None:
        """Set the weights to these factors."""
        values = {"query.weight": factors.query, "key.weight": factors.key, "bias": factors.bias}
        if self.method == SHARED:
            values["mixing"] = factors.mixing
        else:
            values["query.bias"] = values.pop("bias")
        with torch.no_grad():
            for name, value in values.items():
                parameter = self.get_parameter(name)
                parameter.copy_(torch.from_numpy(np.ascontiguousarray(value)).view(parameter.shape))

    def keep(self, indices: Sequence[int]) -> None:
        """Keep only the heads at ``indices``, and the dimensions that any of them uses."""
        chosen = torch.tensor(indices, dtype=torch.long, device=self.key.weight.device)
        if self.method == PER_HEAD:
            rows = torch.arange(self.rank, device=chosen.device).view(self.heads, -1)
            used = rows[chosen].flatten()
        else:
            mixing, bias = (part.detach()[chosen] for part in (self.mixing, self.bias))
            used = ((mixing != 0) | (bias != 0)).any(dim=0).nonzero()[:, 0]
            tuned = self.mixing.requires_grad
            self.mixing, self.bias = (nn.Parameter(part[:, used], tuned) for part in (mixing, bias))
        self.query, self.key = (take(linear, used, dim=0) for linear in (self.query, self.key))
        self.heads, self.rank = len(indices), len(used)


class _LowRankAttention(nn.Module):
    """Self-attention of a family with other sources of queries and keys."""

    scores: LowRankScores
    value_name: str
    output_name: str
    through_interface: bool
    scaling: float
    attention_head_size: int
    layer_idx: int | None
    config: Any

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output of the module, and the attention weights, if any."""
        heads, weights = self.attend(hidden_states, hidden_states, attention_mask, options)
        if not self.output_name:
            return heads, weights
        module: Any = self
        output = getattr(module, self.output_name)(heads)
        if hasattr(module, "output_dropout"):  # of ALBERT
            output = module.LayerNorm(hidden_states + module.output_dropout(output))
        return output, weights

    def attend(
        self, states: Tensor, values: Tensor, mask: Tensor | None, options: dict[str, Any]
    ) -> tuple[Tensor, Tensor | None]:
        """Return the outputs of the heads side by side, and the attention weights, if any."""
        source, cache = (
            options.pop(name, None) for name in ("key_value_states", "past_key_values")
        )
        seen, values = (states, values) if source is None else (source, source)
        query, key = self.scores(states, seen)
        value: Tensor = getattr(self, self.value_name)(values)
        value = value.view(*value.shape[:2], -1, self.attention_head_size).transpose(1, 2)
        if cache is not None and source is None:
            own = getattr(cache, "self_attention_cache", cache)
            key, value = own.update(key, value, cast(int, self.layer_idx))
        if not self.through_interface:
            return self._attend_itself(query, key, value, mask)
        implementation = self.config._attn_implementation
        narrower = value.shape[-1] - query.shape[-1]
        if implementation == "sdpa" and narrower > 0:
            # Its fused functions want queries as wide as values; without them it is 4 times slower.
            query, key = (nn.functional.pad(part, (0, narrower)) for part in (query, key))
        interface = ALL_ATTENTION_FUNCTIONS.get_interface(implementation, eager_attention_forward)
        name = "attention_dropout" if hasattr(self, "attention_dropout") else "dropout"
        dropout: Any = getattr(self, name)  # a module, or a share
        heads, weights = interface(
            self,
            query,
            key,
            value,
            mask,
            dropout=getattr(dropout, "p", dropout) if self.training else 0.0,
            scaling=self.scaling,
            **options,
        )
        return heads.flatten(2), weights

    def _attend_itself(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Attend in families without the interface; weights pass the module's dropout."""
        weights = torch.matmul(query, key.transpose(2, 3)) * self.scaling
        weights = weights if mask is None else weights + mask
        weights = cast(nn.Dropout, self.dropout)(torch.softmax(weights, dim=-1))
        return torch.matmul(weights, value).transpose(1, 2).flatten(2), weights


class _MobileBertAttention(_LowRankAttention):
    def forward(  # type: ignore[override]  # queries, keys and values have inputs of their own
        self,
        query_tensor: Tensor,
        key_tensor: Tensor,
        value_tensor: Tensor,
        attention_mask: Tensor | None = None,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None]:
        return self.attend(query_tensor, value_tensor, attention_mask, options)


def is_low_rank(module: nn.Module) -> TypeGuard[_LowRankAttention]:
    """Tell whether a module is self-attention with queries and keys of low rank."""
    return isinstance(module, _LowRankAttention)


def low_rank_modules(
    model: PreTrainedModel, kind: str = ENCODER
) -> Iterator[tuple[str, _LowRankAttention]]:
    """Yield such modules with their paths below the encoder, or the decoder."""
    for path, module in find_stack(model, kind).part.named_modules():
        if is_low_rank(module):
            yield path, module


def replace_scores(
    model: PreTrainedModel, path: str, scores: LowRankScores, kind: str = ENCODER
) -> None:
    """Replace the query and key projections of the module at ``path`` by ``scores``.

    The path begins below the encoder, or the decoder, whose ``kind`` serves across too. The module
    stays an instance of its own class, with the same scale, values and outputs. Keys across are
    computed anew for each piece of a translation; those of the translation itself are cached.
    """
    stack = find_stack(model, kind)
    paths = stack.paths
    module: Any = stack.part.get_submodule(path)
    names = [at.rpartition(".")[2] for at in (paths.query, paths.key)]
    reference = getattr(module, names[0]).weight
    for name in names:
        delattr(module, name)
    above, _, output_name = paths.output.rpartition(".")
    is_mobile = model.config.model_type == "mobilebert"
    shell = _MobileBertAttention if is_mobile else _LowRankAttention
    original = type(module)
    module.__class__ = type(original.__name__, (shell, original), {"__module__": __name__})
    module.value_name = paths.value.rpartition(".")[2]
    module.output_name = output_name if above == paths.attention else ""
    module.through_interface = stack.family.read_through == INTERFACE
    if not hasattr(module, "attention_head_size"):
        module.attention_head_size = module.head_dim
    module.scaling = module.attention_head_size**-0.5
    module.scores = scores.to(reference.device, reference.dtype)


class LowRankShape(msgspec.Struct):
    """Shapes of queries and keys of a module, as `LowRankScores` takes them."""

    method: FactorMethod
    width: Count
    heads: Count
    rank: Count


class LowRankRecord(msgspec.Struct):
    """Content of ``low_rank.json``: modules of the encoder, and those of a decoder beside it."""

    modules: dict[str, LowRankShape]
    decoder: dict[str, LowRankShape] = {}


def is_collaborative(folder: str | Path) -> bool:
    """Tell whether a model of low rank wrote ``folder``."""
    return (Path(folder) / RECORD_FILE).is_file()


class _SavedWhole:
    """Mixin that models of low rank have before their transformers class."""

    def save_pretrained(
        self,
        save_directory: str | Path,
        is_main_process: bool = True,
        state_dict: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Write configuration and weights into a folder that `load_model` of headroles reads.

        Raises ModelError for a given ``state_dict``, such as that of a distributed model.
        """
        if state_dict is not None:
            raise ModelError("a model of low rank is written whole; save it from one process")
        if is_main_process:
            Path(save_directory).mkdir(parents=True, exist_ok=True)
            _write(cast(PreTrainedModel, self), Path(save_directory))


_KINDS: dict[type[Any], type[Any]] = {}


def saved_whole(model: PreTrainedModel) -> PreTrainedModel:
    """Return ``model``, whose ``save_pretrained`` now writes its queries and keys of low rank."""
    if not isinstance(model, _SavedWhole):
        kind: type[Any] = type(model)
        if kind not in _KINDS:
            # transformers looks at the source of the module that a class says it is from.
            namespace = {"__module__": kind.__module__}
            _KINDS[kind] = type(kind.__name__, (_SavedWhole, kind), namespace)
        model.__class__ = _KINDS[kind]
    return model


def _write(model: PreTrainedModel, folder: Path) -> None:
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    save_model(model, str(folder / WEIGHTS_FILE))
    (folder / WEIGHTS_FILE).chmod((folder / "config.json").stat().st_mode)
    record = LowRankRecord(_shapes(model, ENCODER))
    has_decoder = getattr(model.base_model, "decoder", None) is not None
    if is_encoder_decoder(model.config) and has_decoder:
        record.decoder = _shapes(model, DECODER)
    storage.write_bytes(folder / RECORD_FILE, storage.encode_json(record))


def _shapes(model: PreTrainedModel, kind: str) -> dict[str, LowRankShape]:
    return {
        path: LowRankShape(scores.method, scores.query.in_features, scores.heads, scores.rank)
        for path, scores in ((path, at.scores) for path, at in low_rank_modules(model, kind))
    }


def low_rank_model(folder: Path, model: PreTrainedModel) -> PreTrainedModel:
    """Return ``model`` with queries and keys as the record of ``folder`` says, without weights."""
    record = msgspec.convert(storage.read_json(folder / RECORD_FILE), LowRankRecord)
    for kind, modules in ((ENCODER, record.modules), (DECODER, record.decoder)):
        for path, shape in modules.items():
            replace_scores(model, path, LowRankScores(**msgspec.structs.asdict(shape)), kind)
    return model


def load_collaborative(folder: Path, make: Callable[[], PreTrainedModel]) -> PreTrainedModel:
    """Load the model of such a folder into a model that ``make`` makes from its configuration.

    Raises ModelError for a folder whose files do not fit together.
    """
    try:
        model = low_rank_model(folder, make())
        load_model(model, str(folder / WEIGHTS_FILE), strict=True)
    except HeadRolesError:
        raise
    except _DAMAGE as error:
        raise ModelError(
            f"the model of low rank in {folder} cannot be loaded ({in_one_line(error)}); "
            "make it again with: headroles collaborate"
        ) from error
    model.config._name_or_path = str(folder)
    return saved_whole(model)
