"""Errors, in one hierarchy. Every message names the finding, its place, and the remedy."""

from __future__ import annotations

from headroles.wording import addressed, printable, shortened

_LONGEST = 1500
_NO_MEMORY = (
    *("out of memory", "allocate memory", "not enough memory", "alloc_failed", "map segment"),
    "could not create a primitive",  # of oneDNN, which says no more
    "start new thread",  # of Python, which has no memory for its stack
)
"""Parts of messages of PyTorch and its libraries about a lack of memory."""


class HeadRolesError(Exception):
    """Base of all errors that a user can cause and correct; never raised itself.

    Its message is one line of limited length, even with long names and values. It names
    arguments, and on the command line flags (`addressed`).

    >>> from headroles import read_conllu
    >>> try:
    ...     read_conllu("none.conllu")
    ... except HeadRolesError as error:
    ...     print(error)
    none.conllu does not exist; give a file or a folder of .conllu files
    """

    exit_code = 1

    def __str__(self) -> str:
        return shortened(printable(addressed(super().__str__())), _LONGEST)


class UsageError(HeadRolesError, ValueError):
    """An option or argument with an invalid value."""

    exit_code = 2


class CorpusError(HeadRolesError, ValueError):
    """A treebank or text that cannot be read: names the file and the line or the sentence."""


class ParserError(HeadRolesError):
    """A spaCy pipeline that cannot be loaded or does not parse."""


class TokenizerError(HeadRolesError):
    """A tokenizer that is missing or cannot tell which piece belongs to which word."""


class ModelError(HeadRolesError):
    """A model that cannot be loaded or whose weights are not usable."""


class ModelSupportError(ModelError):
    """A model that loads but has no encoder self-attention that could be read."""


class StatisticsError(HeadRolesError, ValueError):
    """Input that a statistical procedure is not defined for."""


class StorageError(HeadRolesError):
    """A result folder or file that cannot be written or read."""


def lacks_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out, of a device or of this machine."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError | ImportError) and any(
        words in said for words in _NO_MEMORY
    )


def is_panic(error: BaseException) -> bool:
    """Tell whether an error is the panic of a library in Rust, which is no Exception of Python."""
    return type(error).__name__ == "PanicException"
