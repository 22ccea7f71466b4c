"""Scoring of attention that was computed elsewhere and saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from headroles.corpus import Corpus, as_corpus
from headroles.errors import UsageError
from headroles.models.attention.own import SavedAttention
from headroles.options import takes
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import score_heads
from headroles.scoring.scores import HeadScores

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class SavedOptions(ScoreOptions):
    """Options of scoring saved attention, in which every sentence is an example by default."""

    title: ClassVar[str] = "Roles"

    pairing: Literal["adjacent", "none"] = "none"
    """Whether two adjacent sentences make an example.

    A pair has one array, named by both sentence ids joined by a plus sign.
    """


@takes(SavedOptions)
def score_attention(
    arrays: Any, sentences: Corpus, alignment: Any, options: SavedOptions
) -> HeadScores:
    """Return the scores, for every role, of attention that was computed elsewhere and saved.

    Args:
        arrays: for each sentence its attention (layers, heads, query, key) between all pieces,
            special tokens included: a sequence in the order of the sentences, a mapping from their
            ids, or an ``.npz`` or ``.safetensors`` file with an array of the name of each.
        sentences: a corpus, as for `score_heads`.
        alignment: for each sentence a list with the number of its word, from 0, for each piece,
            and None for special tokens: a sequence or a mapping as before; or the tokenizer that
            made the pieces, loaded or as a folder or hub id.
        options: keyword arguments, described below.

    Returns:
        The scores, as of `score_heads`.

    Raises:
        ModelError: arrays that do not fit the pieces, or whose rows do not sum to 1.
        TokenizerError: pieces that do not fit the words, or no tokenizer.
        CorpusError, UsageError: as `score_heads`.

    >>> import numpy as np
    >>> from headroles import make_corpus
    >>> corpus = make_corpus([(("Dogs", "bark"), (1, -1), ("nsubj", "root"))])
    >>> uniform = np.full((1, 2, 4, 4), 1 / 4)  # one layer of two heads, four pieces
    >>> scores = score_attention([uniform], corpus, [[None, 0, 1, None]], relations="nsubj")
    >>> scores.of_head((0, 1), "nsubj")  # uniform attention has a bias score of 1
    array([1.], dtype=float32)
    """
    corpus = as_corpus(sentences)
    if not callable(alignment):  # no tokenizer
        alignment = _by_id(alignment, corpus, "alignment")
    return score_heads(SavedAttention(_by_id(arrays, corpus, "arrays"), alignment), corpus, options)


def _by_id(given: Any, corpus: Corpus, name: str) -> Any:
    """Turn a sequence in the order of the sentences into a mapping from their ids.

    Mappings, paths and other values are returned as they are. Raises UsageError.
    """
    if isinstance(given, Mapping | str | Path):
        return given
    if not isinstance(given, Sequence) and not hasattr(given, "shape"):
        raise UsageError(
            f"the {name} are a {type(given).__name__}; give a sequence with one for each sentence, "
            "or a mapping from the ids of the sentences"
        )
    ids = [sentence.id for sentence in corpus]
    if len(given) != len(ids):
        raise UsageError(
            f"there are {len(given)} {name} for {len(ids)} sentences; give one for each sentence"
        )
    return dict(zip(ids, given, strict=True))
