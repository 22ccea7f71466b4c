"""The one loop that runs a model over batches, sorted by length, smaller if memory runs out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
