from .collaborate import collaborate_heads as collaborate_heads
from .options import CollaborateOptions as CollaborateOptions
from .options import RedundancyOptions as RedundancyOptions
from .redundancy import report_redundancy as report_redundancy
from .redundancy_result import Redundancy as Redundancy
from .result import Collaboration as Collaboration
from .result import CollaborativeModel as CollaborativeModel
