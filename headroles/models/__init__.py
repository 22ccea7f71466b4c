"""The only rooms that know transformers' internals: families, capture of attention, loading."""

from headroles.models.architectures import FAMILIES, REFUSED, Family
from headroles.models.capture import AttentionReader, open_reader
from headroles.models.loading import DTYPES, LoadedEncoder, choose_device, load_encoder

__all__ = [
    "DTYPES",
    "FAMILIES",
    "REFUSED",
    "AttentionReader",
    "Family",
    "LoadedEncoder",
    "choose_device",
    "load_encoder",
    "open_reader",
]
