"""Beginnings of words: how a tokenizer cuts a word after a space, and one that no space precedes.

Tokenizers of SentencePiece and of bytes mark the space before a word (``▁dog``, ``Ġdog``), so that
a word after a space has other pieces than one without. WordPiece and most others see no spaces.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tokenizers import Tokenizer, normalizers, pre_tokenizers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Ids: TypeAlias = list[int]
Cutter: TypeAlias = Callable[[list[str]], list[Ids]]

_ADDED = {"type": "Prepend", "prepend": " "}
"""The step that `with_prefix_space` adds to a tokenizer, as its file would have it."""
_MARK, _MARK_OF_BYTES = "▁", "Ġ"
"""Marks of a space before a word, in SentencePiece and among bytes."""
_STRANGER = "\ue000"
"""A character of private use, which no piece joins to other characters."""
_MOST_WORDS = 200_000
"""Number of words whose pieces are remembered."""


class JoinedWords:
    """Cutter of words that no space precedes, which remembers their pieces.

    ``begins_text`` tells whether the tokenizer takes the first word of a text for such a word.
    """

    def __init__(self, cut: Cutter, begins_text: bool) -> None:
        self._cut, self.begins_text = cut, begins_text
        self._pieces: dict[str, Ids] = {}

    def pieces_of(self, words: Iterable[str]) -> Mapping[str, Ids]:
        """Return the numbers of the pieces of each word."""
        if len(self._pieces) > _MOST_WORDS:
            self._pieces.clear()
        wanted = dict.fromkeys(words)
        new = [word for word in wanted if word not in self._pieces]
        self._pieces.update(zip(new, self._cut(new) if new else [], strict=True))
        return self._pieces

    def places(self, spaces: tuple[bool, ...]) -> list[int]:
        """Return the places of the words that no space precedes, from the known ``spaces``."""
        first = [0] if self.begins_text else []
        return first + [k for k, space in enumerate(spaces[:-1], start=1) if not space]


def joined_words(tokenizer: PreTrainedTokenizerBase) -> JoinedWords | None:
    """Return the cutter of words without a space; None for a tokenizer that sees no spaces.

    A fast ``tokenizer`` is one that `with_prefix_space` returned.
    """
    if not tokenizer.is_fast:
        cut = _marked_cutter(tokenizer)
        return None if cut is None else JoinedWords(cut, begins_text=False)
    backend = tokenizer.backend_tokenizer
    joined = _without_prefix(backend)
    if joined is None:
        return None

    def cut_fast(words: list[str]) -> list[Ids]:
        encodings = joined.encode_batch_fast(words, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    return JoinedWords(cut_fast, begins_text=_ADDED in _leaves(_content(backend.normalizer)))


def lone_spaces(tokenizer: PreTrainedTokenizerBase) -> Ids:
    """Return the numbers of the pieces that are the mark of a space alone."""
    numbers = map(tokenizer.convert_tokens_to_ids, (_MARK, _MARK_OF_BYTES))
    return [
        number for number in numbers if isinstance(number, int) and number != tokenizer.unk_token_id
    ]


def with_prefix_space(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return ``tokenizer``, or a copy that puts a space before every word.

    Some tokenizers (of RoBERTa, ModernBERT, Gemma) tell the beginning of a word by the space before
    it, and add none to the first. Words that they get one by one would all be taken for
    continuations.
    """
    spaced = _prepared(tokenizer.backend_tokenizer, " b")
    if _prepared(tokenizer.backend_tokenizer, "b") != "b" or spaced == "b":
        return tokenizer
    tokenizer = copy.deepcopy(tokenizer)
    backend = tokenizer.backend_tokenizer
    # Before any other step cuts the word: the byte-level step's own add_prefix_space would put
    # a space before every part that a step ahead of it has cut off, as in "Ġdon Ġ't".
    steps = [] if backend.normalizer is None else [backend.normalizer]
    space = normalizers.Prepend(" ")
    backend.normalizer = normalizers.Sequence([*steps, space])
    if _prepared(backend, "b") != spaced:  # a step makes marks of spaces, as Gemma's does
        backend.normalizer = normalizers.Sequence([space, *steps])
    return tokenizer


def _prepared(backend: Tokenizer, text: str) -> str:
    """Return a text as the model of a tokenizer gets it."""
    if backend.normalizer is not None:
        text = backend.normalizer.normalize_str(text)
    if backend.pre_tokenizer is not None:
        text = "".join(part for part, _ in backend.pre_tokenizer.pre_tokenize_str(text))
    return text


# Tokenizers without the space before words

Content: TypeAlias = dict[str, Any] | None
"""A step of a tokenizer, as its file has it."""


def _without_prefix(backend: Tokenizer) -> Tokenizer | None:
    """Return a tokenizer with the same model that adds no space; None if ``backend`` adds none."""
    steps = _content(backend.normalizer), _content(backend.pre_tokenizer)
    normalizer, pre_tokenizer = map(_bare, steps)
    if (normalizer, pre_tokenizer) == steps:
        return None
    joined = Tokenizer(backend.model)  # the model is shared
    if normalizer is not None:
        joined.normalizer = _step(normalizers.Sequence([]), normalizer)
    if pre_tokenizer is not None:
        joined.pre_tokenizer = _step(pre_tokenizers.Sequence([]), pre_tokenizer)
    added = backend.get_added_tokens_decoder()
    joined.add_tokens([added[number] for number in sorted(added)])
    return joined


def _content(step: Any) -> Content:
    """Return the content of a step; None without one, and for one that is a Python object."""
    try:
        return None if step is None else cast(Content, json.loads(step.__getstate__()))
    except Exception:  # tokenizers raises bare Exception
        return None


def _step(empty: Any, content: Content) -> Any:
    """Make a step of its content."""
    empty.__setstate__(json.dumps(content).encode())
    return empty


def _bare(step: Content) -> Content:
    """Return a step that adds no space before words; None if it did nothing else."""
    if step is None or step["type"] == "Prepend":
        return None
    if step["type"] == "Metaspace":
        return {**step, "prepend_scheme": "never"}
    if step["type"] == "ByteLevel":
        return {**step, "add_prefix_space": False}
    if step["type"] == "Sequence":
        (name,) = step.keys() - {"type"}  # "normalizers" or "pretokenizers"
        return {**step, name: [bare for part in step[name] if (bare := _bare(part)) is not None]}
    return step


def _leaves(step: Content) -> list[Content]:
    """Return the steps of a sequence, or a step alone."""
    if step is None or step["type"] != "Sequence":
        return [step]
    return [leaf for part in step["normalizers"] for leaf in _leaves(part)]


# Tokenizers in Python only


def _marked_cutter(tokenizer: PreTrainedTokenizerBase) -> Cutter | None:
    """Return a cutter of words after a character that is cut off; None without marks of spaces."""
    if not any(piece.startswith(_MARK) for piece in tokenizer.tokenize("a")):
        return None
    ahead = tokenizer.tokenize(_STRANGER)
    last = len(ahead) - 1

    def cut(word: str) -> list[str]:
        pieces = tokenizer.tokenize(_STRANGER + word)
        if pieces[:last] != ahead[:last] or not pieces[last].startswith(ahead[last]):
            return tokenizer.tokenize(word)
        # a character that the vocabulary lacks is in one piece with the stranger
        rest = pieces[last].removeprefix(ahead[last])
        return [rest, *pieces[last + 1 :]] if rest else pieces[last + 1 :]

    def cut_each(words: list[str]) -> list[Ids]:
        return [cast(Ids, tokenizer.convert_tokens_to_ids(cut(word))) for word in words]

    return cut_each
