from ._columns import (
    ALTERNATIVES as ALTERNATIVES,
)
from ._columns import (
    DEGENERATE as DEGENERATE,
)
from ._columns import (
    OK as OK,
)
from ._columns import (
    UNTESTABLE as UNTESTABLE,
)
from ._columns import (
    Alternative as Alternative,
)
from ._columns import (
    resolution_of as resolution_of,
)
from .betting import (
    BettingTest as BettingTest,
)
from .betting import (
    RunningBets as RunningBets,
)
from .betting import (
    betting_test as betting_test,
)
from .bootstrap import (
    bca_interval as bca_interval,
)
from .bootstrap import (
    bootstrap_t_interval as bootstrap_t_interval,
)
from .bootstrap import (
    bootstrap_t_test as bootstrap_t_test,
)
from .contrast import Contrast as Contrast
from .contrast import contrast_test as contrast_test
from .corrections import CORRECTIONS as CORRECTIONS
from .corrections import adjust_p_values as adjust_p_values
from .crossed import CrossedTest as CrossedTest
from .crossed import crossed_t_test as crossed_t_test
from .decisions import (
    ANSWERS as ANSWERS,
)
from .decisions import (
    NO as NO,
)
from .decisions import (
    UNDECIDED as UNDECIDED,
)
from .decisions import (
    YES as YES,
)
from .decisions import (
    decide as decide,
)
from .intervals import Intervals as Intervals
from .labels import LabelTest as LabelTest
from .labels import label_permutation_test as label_permutation_test
from .mcnemar import mcnemar_test as mcnemar_test
from .moments import Moments as Moments
from .one_sample import TTest as TTest
from .one_sample import t_interval as t_interval
from .one_sample import t_test as t_test
from .partial_conjunction import partial_conjunction as partial_conjunction
from .payoffs import Bounds as Bounds
from .permutation import permutation_test_within as permutation_test_within
from .power import (
    design_effect as design_effect,
)
from .power import (
    power_of as power_of,
)
from .power import (
    required_examples as required_examples,
)
from .power import (
    smallest_n as smallest_n,
)
from .resampling import (
    sign_flip_test as sign_flip_test,
)
from .resampling import (
    simultaneous_intervals as simultaneous_intervals,
)
from .resampling import (
    step_down_max_t as step_down_max_t,
)
from .sample import Sample as Sample
from .summing import MeansInBlocks as MeansInBlocks
from .summing import MomentsInBlocks as MomentsInBlocks
from .wilcoxon import WilcoxonResult as WilcoxonResult
from .wilcoxon import wilcoxon_signed_rank as wilcoxon_signed_rank
from .wilson import difference_interval as difference_interval
from .wilson import wilson_interval as wilson_interval
