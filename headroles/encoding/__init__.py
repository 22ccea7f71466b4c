"""Encoding of examples as word pieces, each with its segment and its word."""

from headroles.encoding.aligned import AlignedEncoder, Alignment
from headroles.encoding.encoded import SPECIAL, EncodedExample, IntArray, pad
from headroles.encoding.encoder import NO_PIECES, TOO_LONG, ExampleEncoder, refuse_unknown

__all__ = [
    "NO_PIECES",
    "SPECIAL",
    "TOO_LONG",
    "AlignedEncoder",
    "Alignment",
    "EncodedExample",
    "ExampleEncoder",
    "IntArray",
    "pad",
    "refuse_unknown",
]
