from .blocks import ScoreBlock as ScoreBlock
from .forms import StoppedForm as StoppedForm
from .notebooks import shown_in_notebooks as shown_in_notebooks
from .options import (
    OnProgress as OnProgress,
)
from .options import (
    PairingOptions as PairingOptions,
)
from .options import (
    RunOptions as RunOptions,
)
from .options import (
    ScoreOptions as ScoreOptions,
)
from .options import (
    ScoringOptions as ScoringOptions,
)
from .run import (
    ScoringRun as ScoringRun,
)
from .run import (
    open_scoring as open_scoring,
)
from .run import (
    score as score,
)
from .run import (
    score_heads as score_heads,
)
from .run import (
    score_to_folder as score_to_folder,
)
from .run_notes import describe_run as describe_run
from .run_notes import facts_of_run as facts_of_run
from .run_notes import warnings_of_run as warnings_of_run
from .scores import HeadScores as HeadScores
from .tables import ScoreWriter as ScoreWriter
