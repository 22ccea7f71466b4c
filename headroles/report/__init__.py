"""Figures and pages of results, by public names; importing it loads none of them."""

from headroles import public_names

__getattr__, __dir__, __all__ = public_names.load_lazily(__name__, public_names.REPORT)
