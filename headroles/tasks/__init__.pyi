from .metrics import measure as measure
from .options import TaskOptions as TaskOptions
from .outcomes import Derivatives as Derivatives
from .outcomes import Outcomes as Outcomes
from .reading import Task as Task
from .reading import read_task as read_task
from .running import TaskRun as TaskRun
from .running import open_run as open_run
