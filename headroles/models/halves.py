"""Encoders of encoder-decoders as models."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel


class EncoderHalf(PreTrainedModel):  # type: ignore[no-untyped-call]
    """Encoder of an encoder-decoder that has no configuration of its own (FSMT)."""

    def __init__(self, config: PreTrainedConfig, encoder: nn.Module) -> None:
        super().__init__(config)
        self.encoder = encoder
        self.training = encoder.training

    def get_encoder(self, modality: str | None = None) -> EncoderHalf:
        """Return the model itself, which has no decoder."""
        return self

    def get_input_embeddings(self) -> nn.Module:
        """Return the embeddings of the encoder."""
        return self.encoder.get_submodule("embed_tokens")

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **others: Any) -> Any:
        """Run the encoder."""
        return self.encoder(input_ids, attention_mask, **others)
