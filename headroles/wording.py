"""Wording of messages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from itertools import accumulate

# Control characters, which terminals obey; line breaks; marks that change the direction of
# writing; and halves of characters, which no encoding can write.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LONGEST_NAME = 100
_LONGEST_LISTING = 160
_OPTION = re.compile(
    r"""`(?P<name>\.?[a-z_]+(?:\(\))?)(?:=(?P<value>'[^'`]*'|"[^"`]*"|[^`\s]+))?`""",
)
_FLAGS = {
    "written_as": "--as",
    "corpus_part": "--part",
    "heading": "--title",
    ".in_full()": "--full",
    ".warnings": "--full",
}
"""Flags that are not called as their arguments are."""
_options = {
    *_FLAGS,
    *("after", "beyond", "out", "overwrite", "sample", "schema", "task", "value", "view"),
}
"""Names of all options: these, and those of the groups that were imported."""
_of_flags: ContextVar[bool] = ContextVar("headroles_of_flags", default=False)


def know_options(names: Iterable[str]) -> None:
    """Let messages address these options. What others write between backticks stays as it is."""
    _options.update(names)


@contextmanager
def speaking_of_flags() -> Iterator[None]:
    """Let messages name flags of the command line in place of arguments of Python."""
    token = _of_flags.set(True)
    try:
        yield
    finally:
        _of_flags.reset(token)


def addressed(text: str) -> str:
    """Name options as the reader passes them: as arguments, or as flags.

    Messages name them as arguments between backticks: ``pass `test='t'` ``. Other names between
    backticks, as in messages of other libraries, stay as they are.

    >>> know_options(["test"])
    >>> addressed("pass `test='betting'`, or omit `test`")
    "pass test='betting', or omit test"
    >>> with speaking_of_flags():
    ...     addressed("pass `test='betting'`, or omit `test`")
    'pass --test betting, or omit --test'
    """
    return _OPTION.sub(_addressed_name, text)


def _addressed_name(match: re.Match[str]) -> str:
    if match["name"] not in _options:
        return match[0]
    return _as_flag(match) if _of_flags.get() else match[0].strip("`")


def _as_flag(match: re.Match[str]) -> str:
    name, value = match["name"], (match["value"] or "").strip("'\"")
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value == "False":
        return f"--no-{flag.removeprefix('--')}"
    return flag if value in ("", "True") else f"{flag} {shlex.quote(value)}"


def printable(text: object) -> str:
    """Make text from corpora or paths printable on a terminal and in UTF-8, in one line.

    Control characters and the like become Python escapes; all else stays.
    """
    return _UNPRINTABLE.sub(
        lambda match: match[0].encode("unicode_escape").decode("ascii"), str(text)
    )


def printable_lines(text: object) -> str:
    """Make text of several lines printable, each line as by `printable`."""
    return "\n".join(map(printable, str(text).split("\n")))


def json_lines(text: str) -> str:
    """Escape, in a JSON document of several lines, the characters that `printable` escapes."""
    return "\n".join(
        _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", line) for line in text.split("\n")
    )


def has_halves(text: str) -> bool:
    """Tell whether a text has halves of characters (surrogates), which no encoding can write."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def as_given(value: object) -> str:
    """Return a value as Python writes it, shortened; its type if Python cannot write it."""
    try:
        return shortened(repr(value))
    except Exception:  # a number of too many digits, or an object whose repr fails
        return f"a value of type {type(value).__name__}"


def shortened(text: object, most: int = _LONGEST_NAME) -> str:
    """Shorten text to at most ``most`` characters, with its beginning and its end."""
    text = str(text)
    if len(text) <= most:
        return text
    end = (most - 5) // 2
    return f"{text[: most - 5 - end]} ... {text[len(text) - end :]}"


def in_one_line(error: BaseException) -> str:
    """Return the message of an error in one line, without advice after an empty line."""
    try:
        message = str(error).strip()
    except Exception:  # the error of a foreign module may fail to describe itself
        message = ""
    message = message or type(error).__name__
    return " ".join(message.split("\n\n")[0].split())


def with_type(error: BaseException) -> str:
    """Return the type and the message of an error of a user's code, in one line."""
    return f"{type(error).__name__}: {in_one_line(error)}"


def listed(names: Sequence[object], most: int = 3) -> str:
    """List names with commas, blank ones in quotes; those beyond the first ``most`` are counted."""
    texts = (shortened(printable(name)) for name in names[:most])
    shown = ", ".join(text if text.strip() else repr(text) for text in texts)
    return f"{shown}, and {len(names) - most} more" if len(names) > most else shown


def it_has(names: Sequence[object], most: int = 12) -> str:
    """Say which names there are, as the end of a message about one that is not there.

    >>> it_has(["a", "b"]), it_has([])
    ('it has: a, b', 'it has none')
    """
    return f"it has: {listed(names, most)}" if names else "it has none"


def numbered(n: int, thing: str) -> str:
    """Count things, one of them in the singular.

    >>> numbered(1, "sentence"), numbered(0, "document")
    ('1 sentence', '0 documents')
    """
    return f"{n} {thing}{'s' if n != 1 else ''}"


def all_of(n: int, things: str) -> str:
    """Return what says that something is true of each of ``n`` things.

    >>> all_of(2, "corpora"), all_of(3, "corpora")
    ('both corpora', 'all 3 corpora')
    """
    return f"both {things}" if n == 2 else f"all {n} {things}"


def not_among(kind: str, name: object, names: Sequence[str], further: Sequence[str] = ()) -> str:
    """Return the message for a name that is not in ``names``, nor among ``further`` ones.

    It lists as many names as fit on two lines, and counts the others.
    """
    near = get_close_matches(str(name), [*names, *further], n=1)
    hint = f"did you mean {near[0]!r}? There is" if near else "there is"
    lengths = accumulate(len(entry) + 2 for entry in names)
    shown = names[: sum(length <= _LONGEST_LISTING for length in lengths)]
    more = [f"and {len(names) - len(shown)} more"] if len(shown) < len(names) else []
    listing = ", ".join([*shown, *more]) or "none"
    return f"there is no {kind} {shortened(name)!r}; {hint}: {listing}"


def head_name(head: Sequence[int]) -> str:
    """Name a head by layer and head, counted from 0.

    >>> head_name((4, 0))
    '4-0'
    """
    return f"{head[0]}-{head[1]}"


def named_heads(heads: Sequence[tuple[int, int]], n_layers: int = 0, most: int = 8) -> str:
    """Name heads, or only their layers if there are more than ``most`` heads.

    >>> named_heads([(0, 1), (0, 2), (1, 1)], most=2)
    'in layers 0 to 1'
    >>> named_heads([(0, 1), (4, 2), (5, 1)], most=2)
    'in layers 0, 4 to 5'
    """
    if len(heads) <= most:
        return " ".join(map(head_name, heads))
    layers = sorted({layer for layer, _ in heads})
    if len(layers) == n_layers:
        return "in all layers"
    runs = _runs(layers)
    return f"in layer{'s' if len(layers) > 1 else ''} {listed(runs, len(runs))}"


def _runs(numbers: Sequence[int]) -> list[str]:
    """Return ascending numbers with those that follow one another joined: 0, 4 to 6."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
