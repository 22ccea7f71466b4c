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
from .bootstrap import (
    bca_interval as bca_interval,
)
from .bootstrap import (
    bootstrap_t_interval as bootstrap_t_interval,
)
from .bootstrap import (
    bootstrap_t_test as bootstrap_t_test,
)
from .contrast import contrast_sample as contrast_sample
from .corrections import CORRECTIONS as CORRECTIONS
from .corrections import adjust_p_values as adjust_p_values
from .crossed import ENOUGH_DRAWS as ENOUGH_DRAWS
from .crossed import crossed_sample as crossed_sample
from .intervals import Intervals as Intervals
from .intervals import t_interval as t_interval
from .labels import Relabelled as Relabelled
from .labels import shuffle_labels as shuffle_labels
from .mcnemar import mcnemar_test as mcnemar_test
from .moments import Moments as Moments
from .one_sample import TTest as TTest
from .one_sample import t_test as t_test
from .partial_conjunction import partial_conjunction as partial_conjunction
from .payoffs import Bounds as Bounds
from .permutation import permute_within as permute_within
from .power import (
    design_effect as design_effect,
)
from .power import (
    power_of as power_of,
)
from .power import (
    smallest_n as smallest_n,
)
from .ranks import p_of_draws as p_of_draws
from .ranks import rank_test as rank_test
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
from .skewed import skewed_interval as skewed_interval
from .summing import MeansInBlocks as MeansInBlocks
from .summing import MomentsInBlocks as MomentsInBlocks
from .summing import SummedSample as SummedSample
from .wilcoxon import WilcoxonResult as WilcoxonResult
from .wilcoxon import wilcoxon_signed_rank as wilcoxon_signed_rank
from .wilson import difference_interval as difference_interval
from .wilson import wilson_interval as wilson_interval
