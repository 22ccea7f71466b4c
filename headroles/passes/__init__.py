"""The one loop that runs a model over batches: by length, halved where memory lacks, resumable."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
