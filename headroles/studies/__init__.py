"""What people come for, one file a study: role tables, comparisons, plans."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
