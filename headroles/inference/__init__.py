"""Statistics on plain arrays: knows no model and no corpus."""

from headroles.inference._columns import ALTERNATIVES, DEGENERATE, OK, UNTESTABLE, Alternative
from headroles.inference.bootstrap import bca_interval, bootstrap_t_interval, bootstrap_t_test
from headroles.inference.corrections import CORRECTIONS, adjust_p_values
from headroles.inference.decisions import ANSWERS, decide
from headroles.inference.intervals import Intervals
from headroles.inference.one_sample import OneSampleResult, one_sample_t
from headroles.inference.paired import EquivalenceResult, equivalence_t, paired_t
from headroles.inference.power import power_of, required_examples
from headroles.inference.resampling import sign_flip_test, simultaneous_intervals, step_down_max_t
from headroles.inference.wilcoxon import WilcoxonResult, wilcoxon_signed_rank

__all__ = [
    "ALTERNATIVES",
    "ANSWERS",
    "CORRECTIONS",
    "DEGENERATE",
    "OK",
    "UNTESTABLE",
    "Alternative",
    "EquivalenceResult",
    "Intervals",
    "OneSampleResult",
    "WilcoxonResult",
    "adjust_p_values",
    "bca_interval",
    "bootstrap_t_interval",
    "bootstrap_t_test",
    "decide",
    "equivalence_t",
    "one_sample_t",
    "paired_t",
    "power_of",
    "required_examples",
    "sign_flip_test",
    "simultaneous_intervals",
    "step_down_max_t",
    "wilcoxon_signed_rank",
]
