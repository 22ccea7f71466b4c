from .collaborate import collaborate as collaborate
from .collaborate import collaborate_heads as collaborate_heads
from .options import CollaborateOptions as CollaborateOptions
from .result import Collaboration as Collaboration
from .result import CollaborativeModel as CollaborativeModel
