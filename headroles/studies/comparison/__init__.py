"""HeadScores before and after -> RoleShifts: what changed in which heads, and is it to be believed.

Needs the scores only, no model.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
