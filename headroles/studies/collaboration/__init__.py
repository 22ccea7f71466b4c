"""Shared query and key projections: the model with fewer of them, and what it does differently."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
