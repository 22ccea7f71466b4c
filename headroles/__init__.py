"""What the attention heads of a BERT-style encoder do, with a test for every head and role.

Importing this package loads neither torch nor spaCy; its names load what they need when used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
