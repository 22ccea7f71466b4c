"""Figures and one page to read, made from results alone: no model, no network."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
