from .classification import (
    Classification as Classification,
)
from .classification import (
    classify as classify,
)
from .classification import (
    classify_heads as classify_heads,
)
from .comparison import RoleShifts as RoleShifts
from .comparison import compare as compare
from .comparison import compare_roles as compare_roles
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
    PlanOptions as PlanOptions,
)
from .options import (
    ReplicateOptions as ReplicateOptions,
)
from .options import (
    UntilOptions as UntilOptions,
)
from .planning import PowerPlan as PowerPlan
from .planning import plan as plan
from .planning import plan_examples as plan_examples
from .replication import LayerCounts as LayerCounts
from .replication import Replication as Replication
from .replication import kind_of as kind_of
from .replication import replicate as replicate
from .replication import replicate_roles as replicate_roles
from .role_table import RoleTable as RoleTable
from .role_table import assign as assign
from .role_table import assign_roles as assign_roles
from .stopping import Stopping as Stopping
