"""Statistics on plain arrays: knows no model and no corpus."""

from headroles.inference._columns import (
    ALTERNATIVES,
    DEGENERATE,
    OK,
    UNTESTABLE,
    Alternative,
    resolution_of,
)
from headroles.inference.bootstrap import bca_interval, bootstrap_t_interval, bootstrap_t_test
from headroles.inference.corrections import CORRECTIONS, adjust_p_values
from headroles.inference.decisions import ANSWERS, NO, UNDECIDED, YES, decide
from headroles.inference.intervals import Intervals
from headroles.inference.one_sample import OneSampleResult, one_sample_t, p_of_t
from headroles.inference.paired import EquivalenceResult, equivalence_t, paired_t
from headroles.inference.power import design_effect, power_of, required_examples, smallest_n
from headroles.inference.resampling import sign_flip_test, simultaneous_intervals, step_down_max_t
from headroles.inference.wilcoxon import WilcoxonResult, wilcoxon_signed_rank

__all__ = [
    "ALTERNATIVES",
    "ANSWERS",
    "CORRECTIONS",
    "DEGENERATE",
    "NO",
    "OK",
    "UNDECIDED",
    "UNTESTABLE",
    "Alternative",
    "EquivalenceResult",
    "Intervals",
    "OneSampleResult",
    "WilcoxonResult",
    "YES",
    "adjust_p_values",
    "bca_interval",
    "bootstrap_t_interval",
    "bootstrap_t_test",
    "decide",
    "design_effect",
    "equivalence_t",
    "one_sample_t",
    "p_of_t",
    "paired_t",
    "power_of",
    "required_examples",
    "resolution_of",
    "sign_flip_test",
    "simultaneous_intervals",
    "smallest_n",
    "step_down_max_t",
    "wilcoxon_signed_rank",
]
