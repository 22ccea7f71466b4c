"""Options: frozen dataclasses whose fields are typed, checked and described once.

    @dataclass(frozen=True, kw_only=True)
    class LocalOptions(Options):
        title = "Roles"
        window: Annotated[int, Meta(ge=0)] = 2
        \"\"\"Reach of the local sieve, in tokens.\"\"\"

msgspec checks values by the types. The text under a field describes it; its first paragraph is the
help of the flag. Functions take the options of a group as keyword arguments by `takes`, and the
command line makes its flags from the same fields.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import numbers
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from itertools import pairwise
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from headroles.errors import UsageError
from headroles.storage import PathLike, plain
from headroles.wording import addressed, as_given, know_options

R = TypeVar("R")
G = TypeVar("G", bound="Options")

TITLES = (
    *("Corpus", "Task", "Heads", "Fine-tuning", "Roles", "Tests", "Comparison"),
    *("Factorisation", "Model", "Output"),
)
"""Titles under which options are shown, in this order; each group of options has one."""
OPTIONS_FOLLOW = "Options, as keyword arguments:"
"""Line of a docstring before the options of a function."""
Seed = Annotated[int, Meta(ge=0, lt=2**32)]
"""Seed of random numbers, as NumPy and PyTorch accept it."""


_LARGEST = 2.0**1023
"""Bound of all numbers, which floats can hold."""


class Convert(NamedTuple):
    """Mark of an option whose value a function makes of the user's input, as of a flag.

    The annotation of the parameter of the function says what users may give.
    """

    function: Callable[[Any], Any]


class Flag(NamedTuple):
    """Mark of an option whose flag is not called as it is."""

    name: str


NO_FLAG = Flag("")
"""Mark of an option of Python alone, such as a function; its type is not checked."""
CIRCUMSTANCE = "circumstance"
"""Mark of an option that changes no number, and is not part of records."""


class Field(NamedTuple):
    """An option: its type without marks and without None, and the group that declares it."""

    name: str
    type: Any
    marks: tuple[Any, ...]
    default: Any
    group: type[Options]

    @property
    def title(self) -> str:
        """Title of the group."""
        return self.group.title

    @property
    def flag(self) -> str:
        """Flag on the command line; empty if it has none."""
        flags = [mark.name for mark in self.marks if isinstance(mark, Flag)]
        return flags[0] if flags else f"--{self.name.replace('_', '-')}"

    @property
    def text(self) -> str:
        """Description, whose first paragraph is the help of the flag; empty without its source."""
        text = _texts(self.group.__module__).get((self.group.__name__, self.name), "")
        for name, listing in self.group.in_texts.items():
            text = text.replace(f"{{{name}}}", listing)
        return text

    @property
    def choices(self) -> tuple[str, ...]:
        """Texts that the option may be, if its type lists them."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    def accept(self, value: Any) -> Any:
        """Return the checked value. Raises UsageError for an invalid one."""
        if value is None and self.default is None:
            return None
        for mark in self.marks:
            if isinstance(mark, Convert):
                return mark.function(value)
        if NO_FLAG in self.marks:
            return value
        meta = [mark for mark in self.marks if isinstance(mark, Meta)]
        kind = Annotated[self.type, meta[0]] if meta else self.type
        try:
            accepted = msgspec.convert(_of_python(value), kind)
        except (msgspec.ValidationError, OverflowError, UnicodeEncodeError):
            accepted = math.nan
        if isinstance(accepted, int | float) and not abs(accepted) < _LARGEST:  # nor NaN
            raise UsageError(f"`{self.name}` is {as_given(value)}; it must be {self._demand(meta)}")
        return accepted

    def _demand(self, meta: Sequence[Meta]) -> str:
        """Return the values that the option may have, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        words = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}
        bounds = [
            f"{word} {getattr(meta[0], bound)}"
            for bound, word in (("ge", "from"), ("gt", "above"), ("lt", "below"))
            if meta and getattr(meta[0], bound) is not None
        ]
        return f"{words.get(self.type, 'another')} {' and '.join(bounds)}".strip()


def _of_python(value: Any) -> Any:
    """Return numbers of NumPy as those of Python."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


@functools.cache
def _texts(module: str) -> dict[tuple[str, str], str]:
    """Return the text under each field of the classes of a module.

    Frozen programs, installations of compiled files alone, and classes typed at a prompt have no
    source, and so no texts.
    """
    try:
        source = inspect.getsource(sys.modules[module])
    except (OSError, TypeError):
        return {}
    return {
        (group.name, field.target.id): inspect.cleandoc(text.value.value)
        for group in ast.parse(source).body
        if isinstance(group, ast.ClassDef)
        for field, text in pairwise(group.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all groups of options."""

    title: ClassVar[str] = ""
    in_texts: ClassVar[Mapping[str, str]] = {}
    """What the descriptions of the options have in place of names in braces."""

    def __init_subclass__(cls) -> None:
        know_options(inspect.get_annotations(cls))

    def __post_init__(self) -> None:
        for field in fields_of(type(self)):
            object.__setattr__(self, field.name, field.accept(getattr(self, field.name)))
        self.check()

    def check(self) -> None:
        """Raise UsageError for options that contradict each other; groups extend this."""

    def as_group(self, group: type[G], **values: Any) -> G:
        """Return the options of another group: ``values``, else from this group, else defaults."""
        common = {field.name for field in fields(self)} & {field.name for field in fields(group)}
        return group(**{**{name: getattr(self, name) for name in common}, **values})

    def record(self) -> dict[str, Any]:
        """Return the options as a record has them."""
        return {
            field.name: plain(getattr(self, field.name))
            for field in fields_of(type(self))
            if CIRCUMSTANCE not in field.marks
        }


_FIELDS: dict[type, tuple[Field, ...]] = {}


def fields_of(group: type[Options]) -> tuple[Field, ...]:
    """Return the options of a group, in the order of their titles."""
    if group not in _FIELDS:
        _FIELDS[group] = _find_fields(group)
    return _FIELDS[group]


def _find_fields(group: type[Options]) -> tuple[Field, ...]:
    hints = get_type_hints(group, include_extras=True)
    declared = []
    for field in fields(group):
        hint = hints[field.name]
        is_marked = get_origin(hint) is Annotated
        kind, marks = (hint.__origin__, hint.__metadata__) if is_marked else (hint, ())
        owners = (base for base in group.__mro__ if field.name in inspect.get_annotations(base))
        owner: Any = next(owners)
        declared.append(Field(field.name, _without_none(kind), marks, field.default, owner))
    return tuple(sorted(declared, key=lambda field: TITLES.index(field.title)))


def _without_none(kind: Any) -> Any:
    types = [part for part in get_args(kind) if part is not type(None)]
    return types[0] if len(types) == 1 and len(get_args(kind)) == 2 else kind


def split_names(names: str | Sequence[str | int]) -> tuple[str, ...]:
    """Split a text at commas, or a sequence, into names."""
    parts = names.split(",") if isinstance(names, str) else names
    if not isinstance(parts, Iterable):
        raise UsageError(f"{names!r} is no list of names; give names, with commas between them")
    return tuple(name for part in parts if (name := str(part).strip()))


def path_text(path: PathLike) -> str:
    """Return a path as text, as records have it."""
    return str(path)


def whole_number(text: str) -> int | None:
    """Return the number in a text of at most 18 digits, which fit 64 bits, None for other texts."""
    return int(text) if text.isdecimal() and len(text) <= 18 else None


def takes(group: type[Options]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorate a function that has a parameter ``options`` for a group of options.

    Callers pass keyword arguments instead of the group, or the group as ``options``; signature and
    documentation of the function show every option. ``options`` is the last parameter.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        signature = inspect.signature(function)
        *subjects, last = signature.parameters.values()
        if last.name != "options":
            raise TypeError(f"the last parameter of {function.__name__} is not called options")
        options = fields_of(group)
        keywords = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=field.type | None if field.default is None else field.type,
            )
            for field in options
        ]
        shown = signature.replace(parameters=[*subjects, *keywords])

        @functools.wraps(function)
        def accepting(*args: Any, **arguments: Any) -> R:
            if not isinstance(arguments.get("options"), group):
                _refuse_unknown(function.__name__, shown, args, arguments)
                chosen = {field.name for field in options} & arguments.keys()
                arguments["options"] = group(**{name: arguments.pop(name) for name in chosen})
            return function(*args, **arguments)

        accepting.__signature__ = shown  # type: ignore[attr-defined]
        accepting.options = group  # type: ignore[attr-defined]
        accepting.__doc__ = f"{inspect.getdoc(function) or ''}\n\n{describe(group)}"
        return accepting

    return decorate


def _refuse_unknown(function: str, signature: inspect.Signature, args: Any, keywords: Any) -> None:
    """Raise TypeError, as Python does, for invalid arguments."""
    for name in keywords:
        near = get_close_matches(name, signature.parameters, n=1)
        if name not in signature.parameters and near:
            raise TypeError(f"{function}() has no option {name!r}; did you mean {near[0]!r}?")
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeError(f"{function}(): {error}") from None


def describe(group: type[Options]) -> str:
    """Describe the options of a group under their titles."""
    lines, title = [OPTIONS_FOLLOW], ""
    for field in fields_of(group):
        if field.title != title:
            title = field.title
            lines += ["", f"{title}:"]
        allowed = f" One of {', '.join(field.choices)}." if field.choices else ""
        text = f"{field.name}: {addressed(' '.join(field.text.split()))}{allowed}".rstrip()
        lines += textwrap.wrap(text, 92, initial_indent="    ", subsequent_indent=" " * 8)
    return "\n".join(lines)


DEFAULT: Final = "default"
PUBLISHED: Final = "published"


@dataclass(frozen=True, kw_only=True)
class PresetOptions(Options):
    """Option that chooses a preset."""

    title: ClassVar[str] = "Tests"

    preset: Literal["default", "published"] = "default"
    """published: as the released notebooks, without correction.

    For comparison with them only: their band edge and no contrasts in scoring; t-tests of
    independent examples with the population standard deviation.
    """

    @property
    def is_published(self) -> bool:
        """Whether scores and tests are those of the released notebooks."""
        return self.preset == PUBLISHED
