"""Options, each written once: name, type, default, help, allowed values, check.

A group of options is a frozen dataclass whose fields are annotated with `Option`:

    @dataclass(frozen=True, kw_only=True)
    class LocalOptions(Options):
        title = "Roles"
        window: Annotated[int, Option("Reach of the local sieve, in tokens.", least=0)] = 2

An instance checks its values. Groups are combined by inheritance. A function takes the options of a
group as keyword arguments by `takes`, and the command line makes its flags from the same fields.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from itertools import takewhile
from typing import (
    Annotated,
    Any,
    ClassVar,
    ParamSpec,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from headroles.errors import UsageError
from headroles.storage import plain
from headroles.wording import addressed, as_given

A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)
B = TypeVar("B")
B_contra = TypeVar("B_contra", contravariant=True)
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
G = TypeVar("G", bound="Options")
G_contra = TypeVar("G_contra", bound="Options", contravariant=True)

TITLES = (
    "Corpus",
    "Task",
    "Heads",
    "Fine-tuning",
    "Roles",
    "Tests",
    "Comparison",
    "Factorisation",
    "Model",
    "Output",
)
"""Titles under which options are shown, in this order; each group of options has one."""
OPTIONS_FOLLOW = "Options, as keyword arguments:"
"""Line of a docstring before the options of a function."""


@dataclass(frozen=True)
class Option:
    """Properties of an option beside its name, type and default.

    ``help`` is a line for the command line, to which a longer description adds ``more``. ``words``
    is its name in messages, by default the option's name. A text must be one of ``choices``; a
    number at least ``least``, above ``above`` and below ``below``. ``convert`` makes the value from
    the user's input, which may be the text of a flag. On the command line its ``flag`` is made from
    its name by default, and missing if ``has_flag`` is not set. An option that is not ``recorded``
    changes no number, and is not part of records.
    """

    help: str
    more: str = ""
    words: str = ""
    choices: tuple[str, ...] = ()
    least: float | None = None
    above: float | None = None
    below: float | None = None
    convert: Callable[[Any], Any] | None = None
    flag: str = ""
    has_flag: bool = True
    recorded: bool = True


@dataclass(frozen=True)
class Field:
    """One option; ``type`` is without None, ``title`` that of its group."""

    name: str
    option: Option
    type: type
    default: Any
    title: str

    @property
    def flag(self) -> str:
        """Flag on the command line."""
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    @property
    def words(self) -> str:
        """Name in messages."""
        return self.option.words or self.name

    def accept(self, value: Any) -> Any:
        """Return the checked value. Raises UsageError for an invalid one."""
        if value is None and self.default is None:
            return None
        if self.option.convert is not None:
            return self.option.convert(value)
        if must := self._demand(value):
            raise UsageError(f"{self.words} is {as_given(value)}; it must {must}")
        return value

    def _demand(self, value: Any) -> str:
        """Return the demand that ``value`` fails, empty if there is none."""
        kind, called = _KINDS.get(self.type, (object, ""))
        if not isinstance(value, kind) or (isinstance(value, bool) and self.type is not bool):
            return f"be {called}"
        if self.option.choices and value not in self.option.choices:
            return f"be one of {', '.join(self.option.choices)}"
        return self._demand_of_number(value) if self.type in (int, float) else ""

    def _demand_of_number(self, value: Any) -> str:
        least, above, below = self.option.least, self.option.above, self.option.below
        if above is not None and below is not None and not above < value < below:
            return f"lie between {above:g} and {below:g}"
        if least is not None and below is not None and not least <= value < below:
            return f"be at least {least} and below {below}"
        if least is not None and not least <= value:
            return f"be {least:g} or more"
        if above is not None and not above < value < math.inf:
            return f"be a number above {above:g}"
        if below is not None and not -math.inf < value < below:
            return f"be a number below {below:g}"
        return "" if abs(value) <= sys.float_info.max else "be a finite number"


_KINDS: dict[type, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "a text"),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all groups of options."""

    title: ClassVar[str] = ""
    _fields: ClassVar[tuple[Field, ...]]

    def __post_init__(self) -> None:
        for one in fields_of(type(self)):
            object.__setattr__(self, one.name, one.accept(getattr(self, one.name)))
        self.check()

    def check(self) -> None:
        """Raise UsageError for options that contradict each other; groups extend this."""

    def as_group(self, group: type[G], **given: Any) -> G:
        """Return the options of another group: ``given``, else from this group, else defaults."""
        own = {one.name for one in fields_of(type(self))}
        shared = {one.name: getattr(self, one.name) for one in fields_of(group) if one.name in own}
        return group(**{**shared, **given})

    def record(self) -> dict[str, Any]:
        """Return the options as a record has them."""
        names = (one.name for one in fields_of(type(self)) if one.option.recorded)
        return {name: plain(getattr(self, name)) for name in names}


def fields_of(group: type[Options]) -> tuple[Field, ...]:
    """Return the options of a group, in the order of their titles."""
    if "_fields" not in group.__dict__:
        group._fields = _find_fields(group)
    return group._fields


def _find_fields(group: type[Options]) -> tuple[Field, ...]:
    hints = get_type_hints(group, include_extras=True)
    found = [
        _field(group, one.name, hints[one.name], one.default)
        for one in fields(group)
        if get_origin(hints[one.name]) is Annotated
    ]
    return tuple(sorted(found, key=lambda one: TITLES.index(one.title)))


def _field(group: type[Options], name: str, hint: Any, default: Any) -> Field:
    kind, option = get_args(hint)[:2]
    kinds = [one for one in (get_args(kind) or (kind,)) if one is not type(None)]
    owner: Any = next(base for base in group.__mro__ if name in inspect.get_annotations(base))
    return Field(name, option, kinds[0] if len(kinds) == 1 else object, default, owner.title)


def split_names(given: str | Sequence[str | int]) -> tuple[str, ...]:
    """Split a text at commas, or a sequence, into names."""
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, Iterable):
        raise UsageError(f"{given!r} is no list of names; give names, with commas between them")
    return tuple(name for part in parts if (name := str(part).strip()))


def whole_number(text: str) -> int | None:
    """Return the number in a text of at most 18 digits, None for any other text."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


_MOST_DIGITS = 18  # of what fits 64 bits


def seed_option(text: str, words: str = "the seed", more: str = "") -> Option:
    """Make an option for a seed of random numbers, as NumPy and PyTorch accept them."""
    return Option(text, more=more, words=words, least=0, below=2**32)


class Of1(Protocol[A_contra, G_contra, P, R_co]):
    """Function of one subject, and of options as keyword arguments or as their group."""

    @overload
    def __call__(self, a: A_contra, options: G_contra, /, **internal: Any) -> R_co: ...
    @overload
    def __call__(self, a: A_contra, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Of2(Protocol[A_contra, B_contra, G_contra, P, R_co]):
    """As `Of1`, of two subjects."""

    @overload
    def __call__(self, a: A_contra, b: B_contra, options: G_contra, /, **internal: Any) -> R_co: ...
    @overload
    def __call__(self, a: A_contra, b: B_contra, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Takes(Protocol[P, G]):
    """Decorator that lets a function of a group of options take them as keyword arguments."""

    @overload
    def __call__(self, function: Callable[[A, G], R], /) -> Of1[A, G, P, R]: ...
    @overload
    def __call__(self, function: Callable[[A, B, G], R], /) -> Of2[A, B, G, P, R]: ...
    @overload
    def __call__(self, function: Callable[..., R], /) -> Callable[..., R]: ...


def takes(group: Callable[P, G]) -> Takes[P, G]:
    """Decorate a function that has a parameter ``options`` for a group of options.

    Callers pass keyword arguments instead of the group, or the group; signature and documentation
    of the function show every option, with type and default. Parameters after ``options`` are for
    callers that pass the group, and are not shown.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters
        subjects = [parameters[name] for name in takewhile(lambda one: one != _GROUP, parameters)]
        signature = _signature(function, subjects, options)

        @functools.wraps(function)
        def accepting(*args: Any, **given: Any) -> Any:
            if args and isinstance(args[-1], options):  # may be a keyword-only parameter
                args, given = args[:-1], {**given, _GROUP: args[-1]}
            if isinstance(given.get(_GROUP), options):
                return function(*args, **given)
            bound = _bind(function.__name__, signature, args, given)
            named = {one.name for one in fields_of(options)} & set(given)
            made = options(**{name: bound.arguments.pop(name) for name in named})
            return function(*bound.args, **{**bound.kwargs, _GROUP: made})

        accepting.__signature__ = signature  # type: ignore[attr-defined]
        accepting.__doc__ = f"{inspect.getdoc(function)}\n\n{describe(options)}"
        return accepting

    options: type[Options] = group  # type: ignore[assignment]
    return decorate


_GROUP = "options"
"""Name of the parameter that a group of options is given to."""


def _bind(
    function: str, signature: inspect.Signature, args: Any, given: dict[str, Any]
) -> inspect.BoundArguments:
    """Bind arguments to names. Raises TypeError, as Python does, for invalid ones."""
    for name in given:
        near = get_close_matches(name, signature.parameters, n=1)
        if name not in signature.parameters and near:
            raise TypeError(f"{function}() has no option {name!r}; did you mean {near[0]!r}?")
    try:
        return signature.bind(*args, **given)
    except TypeError as error:
        raise TypeError(f"{function}(): {error}") from None


def _signature(
    function: Callable[..., Any], subjects: list[inspect.Parameter], group: type[Options]
) -> inspect.Signature:
    hints = get_type_hints(group)
    options = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=hints[one.name],
        )
        for one in fields_of(group)
    ]
    returned = inspect.signature(function).return_annotation
    return inspect.Signature([*subjects, *options], return_annotation=returned)


def describe(group: type[Options]) -> str:
    """Describe the options of a group under their titles."""
    lines, title = [OPTIONS_FOLLOW], ""
    for one in fields_of(group):
        if one.title != title:
            title = one.title
            lines += ["", f"{title}:"]
        allowed = f"One of {', '.join(one.option.choices)}." if one.option.choices else ""
        text = " ".join(part for part in (one.option.help, one.option.more, allowed) if part)
        lines += textwrap.wrap(
            f"{one.name}: {addressed(text)}", 92, initial_indent="    ", subsequent_indent=" " * 8
        )
    return "\n".join(lines)
