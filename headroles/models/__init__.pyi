from .attention import AttentionReader as AttentionReader
from .attention import open_norms as open_norms
from .attention import open_reader as open_reader
from .devices import choose_device as choose_device
from .families import FAMILIES as FAMILIES
from .families import REFUSED as REFUSED
from .families import Family as Family
from .families import encoder_of as encoder_of
from .loading import Attending as Attending
from .loading import (
    LoadedEncoder as LoadedEncoder,
)
from .loading import Model as Model
from .loading import (
    load_encoder as load_encoder,
)
from .loading import (
    load_model as load_model,
)
from .loading import (
    load_whole as load_whole,
)
from .measures import MEASURES as MEASURES
from .measures import NORMS as NORMS
from .measures import WEIGHTS as WEIGHTS
from .norms import NormReader as NormReader
from .options import ModelOptions as ModelOptions
from .own import OWN as OWN
from .saved import SavedAttention as SavedAttention
from .weights import load_config as load_config
