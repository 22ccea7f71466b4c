from .answers import (
    answer as answer,
)
from .answers import (
    differs as differs,
)
from .answers import (
    is_equivalent as is_equivalent,
)
from .answers import (
    side_of as side_of,
)
from .certified import (
    Certified as Certified,
)
from .certified import (
    certify as certify,
)
from .evidence import (
    PValues as PValues,
)
from .evidence import (
    find_equivalence as find_equivalence,
)
from .evidence import (
    find_p_values as find_p_values,
)
from .evidence import (
    known_bounds as known_bounds,
)
from .hypotheses import ROUNDING as ROUNDING
from .hypotheses import Hypotheses as Hypotheses
from .hypotheses import families_of as families_of
from .hypotheses import without_rounding as without_rounding
from .intervals import (
    find_intervals as find_intervals,
)
from .notes import (
    SKEWED as SKEWED,
)
from .notes import (
    find_notes as find_notes,
)
from .notes import (
    find_warnings as find_warnings,
)
from .notes import (
    is_skewed as is_skewed,
)
from .options import (
    BETTING as BETTING,
)
from .options import (
    BOOTSTRAP_T as BOOTSTRAP_T,
)
from .options import (
    BY_T as BY_T,
)
from .options import (
    FCR as FCR,
)
from .options import (
    INTERVALS as INTERVALS,
)
from .options import (
    MAX_T as MAX_T,
)
from .options import (
    SIGN_FLIP as SIGN_FLIP,
)
from .options import (
    SIMULTANEOUS as SIMULTANEOUS,
)
from .options import (
    TEST_NAMES as TEST_NAMES,
)
from .options import (
    WILCOXON as WILCOXON,
)
from .options import (
    AlphaOptions as AlphaOptions,
)
from .options import (
    CorrectionOptions as CorrectionOptions,
)
from .options import (
    FlippedOptions as FlippedOptions,
)
from .options import (
    LevelOptions as LevelOptions,
)
from .options import (
    ResamplingOptions as ResamplingOptions,
)
from .options import (
    T as T,
)
from .options import (
    TestOptions as TestOptions,
)
from .options import (
    UnitOptions as UnitOptions,
)
from .options import (
    check_max_t as check_max_t,
)
from .options import (
    check_resamples as check_resamples,
)
from .options import (
    describe_correction as describe_correction,
)
from .options import (
    describe_interval as describe_interval,
)
from .running import RunningAnswers as RunningAnswers
