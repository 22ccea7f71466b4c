from .blocks import ScoreBlock as ScoreBlock
from .forms import StoppedForm as StoppedForm
from .in_blocks import ScoresInBlocks as ScoresInBlocks
from .in_blocks import open_scores as open_scores
from .merging import merge_scores as merge_scores
from .options import (
    CorpusPart as CorpusPart,
)
from .options import (
    PairingOptions as PairingOptions,
)
from .options import (
    PartOptions as PartOptions,
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
    assist as assist,
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
from .run_notes import RunSummary as RunSummary
from .run_notes import about_length as about_length
from .run_notes import describe_run as describe_run
from .run_notes import facts_of_run as facts_of_run
from .run_notes import model_name as model_name
from .run_notes import warnings_of_run as warnings_of_run
from .saved import score_attention as score_attention
from .scores import HeadScores as HeadScores
from .sharing import ALONE as ALONE
from .sharing import Sharing as Sharing
from .tables import ScoreWriter as ScoreWriter
from .team import Team as Team
from .team import find_team as find_team
