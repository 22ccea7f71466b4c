"""From values to answers: hypotheses about means, evidence, notes. Knows no model, no corpus."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
