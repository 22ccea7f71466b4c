"""Testing: from hypotheses about means to evidence, answers and notes; no model, no corpus."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
