"""The attention of one head between the words of examples, read from the model again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from torch import Tensor

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.corpus import Example
from headroles.encoding import EncodedExample
from headroles.errors import ModelError
from headroles.models.attention.own import OWN
from headroles.models.attention.reader import open_reader
from headroles.models.loading.encoder import Attending, LoadedEncoder, load_encoder
from headroles.models.options import WEIGHTS, ModelOptions
from headroles.options import takes
from headroles.passes.examples import ExampleBatch, passes_over
from headroles.passes.loop import Budget
from headroles.record import RecordedModel
from headroles.roles import PaddedBatch, Role, sieve_cells
from headroles.scoring.scores import HeadScores
from headroles.studies.inspection.options import AttentionOptions
from headroles.studies.inspection.sentences import FoundAgain, find_again, sieve_among


@dataclass(frozen=True, eq=False)
class WordAttention:
    """Attention of a head in an example, between U words and special tokens, in their order.

    ``weights`` (U, U): attention to a word is the sum over its pieces, attention from a word the
    mean over its pieces, so that rows sum to 1. ``sieve`` (U, U) marks the words that each word
    looks at in the ``role``, from any of its pieces to any of theirs. ``words`` (U,) are numbers of
    the words in the example, -1 for special tokens; words without pieces are left out. ``labels``
    (U,) are the texts of both. ``score`` is the score of the head in this example, of the kind
    ``score_name``. ``measure`` is weights, or norms in their place.

    With ``attention`` as `read_attention` returns it:

    >>> attention[0].weights.shape == attention[0].sieve.shape
    True
    """

    example: str
    layer: int
    head: int
    role: str
    score: float
    score_name: str
    measure: str
    labels: tuple[str, ...]
    words: IntArray
    weights: Float32Array
    sieve: BoolArray

    def __len__(self) -> int:
        """Return the number of words and special tokens."""
        return len(self.labels)


@takes(AttentionOptions)
def read_attention(
    scores: HeadScores, head: tuple[int, int], role: str, options: AttentionOptions
) -> list[WordAttention]:
    """Return the attention of a head in the examples that `find_examples` finds.

    Words come from the treebank that was scored, and attention from the model that the record of
    the scores names, or from ``model``. Digests show that both are unchanged.

    Args:
        scores: from `score_heads`, of a treebank.
        head: layer and head, from 0.
        role: its id.
        options: keyword arguments, described below.

    Raises:
        UsageError: a head or role that the scores do not have, or scores of parsed text.
        CorpusError: the treebank is missing or has changed.
        ModelError: the model is missing, or the model or its tokenizer has changed.

    With ``model`` an encoder with random weights:

    >>> from headroles import read_attention, read_conllu, sample_treebank, score_heads
    >>> treebank = read_conllu(sample_treebank())
    >>> scores = score_heads(model, treebank, roles="local", pairing="none")
    >>> (found,) = read_attention(scores, (0, 0), "local", n=1)
    >>> found.labels[0], found.weights.shape == 2 * (len(found),)
    ('[CLS]', True)
    """
    return attention_of_heads(find_again(scores, [(head, role, options)]), options)[0]


def attention_of_heads(again: FoundAgain, options: AttentionOptions) -> list[list[WordAttention]]:
    """Read the attention of several heads in their examples; each example is read once.

    Returns a list for each of ``again.asked``. ``options`` name the model. Raises
    ModelError for another model or tokenizer than was scored.
    """
    scores = again.scores
    sieves = {role: sieve_among(again.roles, role) for _, role, _ in again.asked}
    encoder = _load_again(scores, options)
    rows = np.unique(np.concatenate([*again.chosen, np.zeros(0, dtype=np.int64)]))
    wanted: dict[int, list[tuple[int, int]]] = {int(row): [] for row in rows}
    for place, own in enumerate(again.chosen):
        for k, row in enumerate(own):
            wanted[int(row)].append((place, k))
    measure = scores.record.measure or WEIGHTS
    made: dict[tuple[int, int], WordAttention] = {}
    encoded = _encode_again(scores, rows, again.found, encoder)
    heads = [{again.asked[place][0] for place, _ in asked} for asked in wanted.values()]
    read = _read(encoder, encoded, heads, measure)
    for row, example, (weights, reaches) in zip(wanted, encoded, read, strict=True):
        for place, k in wanted[row]:
            head, role, _ = again.asked[place]
            made[place, k] = WordAttention(
                example=example.id,
                layer=head[0],
                head=head[1],
                role=role,
                score=float(scores.of_head(head, role)[row]),
                score_name=scores.score.name,
                measure=measure,
                **_between_words(example, weights[head], sieves[role], reaches[head[0]], encoder),
            )
    return [[made[place, k] for k in range(len(own))] for place, own in enumerate(again.chosen)]


def _load_again(scores: HeadScores, options: AttentionOptions) -> LoadedEncoder:
    """Return the model that was scored. Raises ModelError for another one."""
    recorded = scores.record.model
    advice = "name the model that was scored with `model`"
    model: Attending | None = options.model
    if model is None and recorded.model_type == OWN:
        raise ModelError(
            f"{recorded.model} that was scored is a {recorded.class_}, which results do not hold; "
            "pass it again as model, with its tokenizer"
        )
    if model is None:
        model, options = recorded.model or "", _as_scored(recorded, options)
    try:
        encoder = load_encoder(model, options)
    except ModelError as error:
        raise ModelError(f"{error}; or {advice}") from error
    if encoder.description.weights_sha256 != recorded.weights_sha256:
        raise ModelError(
            f"{encoder.description.model} is not the model that was scored: its weights differ "
            f"(scored: {recorded.model} in {recorded.dtype}, now in "
            f"{encoder.description.dtype}); {advice}, or score again"
        )
    return encoder


def _as_scored(recorded: RecordedModel, options: AttentionOptions) -> AttentionOptions:
    """Return the options, by default those that the model was loaded with."""
    usual = ModelOptions()
    given = {
        name: getattr(recorded, name) or getattr(usual, name)
        for name in ("dtype", "revision", "tokenizer")
        if getattr(options, name) == getattr(usual, name)
    }
    return replace(options, **given)


def _encode_again(
    scores: HeadScores,
    chosen: IntArray,
    found: dict[str, Example],
    encoder: LoadedEncoder,
) -> list[EncodedExample]:
    """Return the ``chosen`` examples in word pieces. Raises ModelError for other pieces."""
    pieces = encoder.example_encoder()
    encoded = pieces.encode([found[scores.ids[row]] for row in chosen], Counter())
    digests = [scores.digests[row] for row in chosen] if scores.digests else []
    if len(encoded) != len(chosen) or (digests and digests != [one.digest for one in encoded]):
        raise ModelError(
            f"the tokenizer of {encoder.description.model} cuts words into other pieces than were "
            "scored; name the one that was used with `tokenizer`, or score again"
        )
    return encoded


def _read(
    encoder: LoadedEncoder,
    encoded: list[EncodedExample],
    heads: list[set[tuple[int, int]]],
    measure: str,
) -> Iterator[tuple[dict[tuple[int, int], Float32Array], Sequence[int | None]]]:
    """Yield for each example the weights (N, N) of its ``heads``, and how far layers reach."""
    with open_reader(encoder.network, measure) as reader:

        def read(batch: ExampleBatch) -> dict[tuple[int, int], Float32Array]:
            held: dict[tuple[int, int], Float32Array] = {}
            wanted = heads[batch.indices[0]]

            def take(number: int, weights: Tensor) -> None:
                for layer, place in wanted:
                    if number == layer:
                        held[layer, place] = weights[0, place].float().cpu().numpy().copy()

            reader.read(batch.inputs, take, [one.id for one in batch.examples])
            return held

        passes = passes_over(encoded, encoder, Budget.of(encoder.device, asked=1))
        alone = (passes.make([row]) for row in range(len(encoded)))
        for _, weights in passes.run(alone, read):
            yield weights, reader.reaches


class _BetweenWords(TypedDict):
    """Fields of `WordAttention` about words."""

    words: IntArray
    labels: tuple[str, ...]
    weights: Float32Array
    sieve: BoolArray


def _between_words(
    example: EncodedExample,
    weights: Float32Array,
    role: Role,
    reach: int | None,
    encoder: LoadedEncoder,
) -> _BetweenWords:
    """Return the fields of `WordAttention` about words, from weights (N, N) between pieces."""
    cells = sieve_cells(role, PaddedBatch([example]))
    if reach is not None:
        place = np.arange(len(example))
        cells &= np.abs(place[:, None] - place) <= reach
    words = example.words
    first = (words < 0) | (np.diff(words, prepend=-1) != 0)
    pieces = np.eye(int(first.sum()), dtype=np.float32)[np.cumsum(first) - 1]  # (N, U)
    texts = [word for sentence in example.sentences for word in sentence.words]
    special = encoder.tokenizer.convert_ids_to_tokens(example.input_ids[first].tolist())
    return {
        "words": words[first],
        "labels": tuple(
            texts[word] if word >= 0 else str(token)
            for word, token in zip(words[first], special, strict=True)
        ),
        "weights": (pieces / pieces.sum(axis=0)).T @ weights @ pieces,
        "sieve": pieces.T @ cells @ pieces > 0,
    }
