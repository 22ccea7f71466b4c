from .assignment import assign as assign
from .assignment import assign_roles as assign_roles
from .assignment_in_blocks import assign_in_blocks as assign_in_blocks
from .best_heads import (
    BestHeads as BestHeads,
)
from .best_heads import (
    best_heads as best_heads,
)
from .best_heads import (
    find_best_heads as find_best_heads,
)
from .classification import (
    Classification as Classification,
)
from .classification import (
    classify as classify,
)
from .classification import (
    classify_heads as classify_heads,
)
from .collaboration import CollaborateOptions as CollaborateOptions
from .collaboration import Collaboration as Collaboration
from .collaboration import CollaborativeModel as CollaborativeModel
from .collaboration import Redundancy as Redundancy
from .collaboration import RedundancyOptions as RedundancyOptions
from .collaboration import collaborate as collaborate
from .collaboration import collaborate_heads as collaborate_heads
from .collaboration import redundancy as redundancy
from .collaboration import report_redundancy as report_redundancy
from .comparison import RoleShifts as RoleShifts
from .comparison import compare as compare
from .comparison import compare_roles as compare_roles
from .examples import (
    Examples as Examples,
)
from .examples import (
    examples as examples,
)
from .examples import (
    examples_of_heads as examples_of_heads,
)
from .examples import (
    find_examples as find_examples,
)
from .options import (
    AssignOptions as AssignOptions,
)
from .options import (
    ClassifyOptions as ClassifyOptions,
)
from .options import (
    CompareOptions as CompareOptions,
)
from .options import (
    ExampleOptions as ExampleOptions,
)
from .options import (
    PlanOptions as PlanOptions,
)
from .options import (
    ReplicateOptions as ReplicateOptions,
)
from .options import (
    UntilOptions as UntilOptions,
)
from .planning import plan as plan
from .planning import plan_examples as plan_examples
from .power_plan import PowerPlan as PowerPlan
from .quantities import Quantities as Quantities
from .quantities import describe as describe
from .quantities import describe_heads as describe_heads
from .replication import kind_of as kind_of
from .replication import replicate as replicate
from .replication import replicate_roles as replicate_roles
from .replication_tables import LayerCounts as LayerCounts
from .replication_tables import Replication as Replication
from .role_table import RoleTable as RoleTable
from .stopping import Stopping as Stopping
