"""Statistics on plain arrays: knows no model and no corpus."""

from headroles.inference.corrections import CORRECTIONS, adjust_p_values
from headroles.inference.one_sample import (
    DEGENERATE,
    OK,
    UNTESTABLE,
    OneSampleResult,
    one_sample_t,
)

__all__ = [
    "CORRECTIONS",
    "DEGENERATE",
    "OK",
    "UNTESTABLE",
    "OneSampleResult",
    "adjust_p_values",
    "one_sample_t",
]
