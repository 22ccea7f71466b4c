"""Roles of the attention heads of a Transformer, with a test for every head and role.

Importing this package loads neither torch nor spaCy; its names load what they need when used.
"""

import sys
import warnings

_AS_A_MODULE = sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].endswith("headroles")
if _AS_A_MODULE and not sys.flags.safe_path:
    del sys.path[0]  # `python -m headroles` imports nothing from the current folder

from headroles import public_names  # noqa: E402

_load_name, __dir__, __all__ = public_names.load_lazily(__name__, public_names.HEADROLES)

_RENAMED: dict[str, str] = {}
"""Old public names, and the new ones; they go with the minor version after that of the new name."""


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        new = _RENAMED[name]
        text = f"headroles.{name} is now headroles.{new}; the next minor version drops the old name"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return _load_name(new)
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    return _load_name(name)
