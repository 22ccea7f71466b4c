"""What papers say of attention heads, as hypotheses that are tested on the model at hand."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
