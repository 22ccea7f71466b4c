"""What a model was trained for: labelled text or masked words in, a loss for every example out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
