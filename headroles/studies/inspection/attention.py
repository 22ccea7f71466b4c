"""Where does a head look in these words? Attention between words of any sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.corpus import Example, Sentence, make_corpus, words_alone
from headroles.encoding import EncodedExample
from headroles.errors import ModelError, UsageError
from headroles.models.options import WEIGHTS, ModelOptions
from headroles.options import takes
from headroles.roles import PaddedBatch
from headroles.scoring.scores import HeadScores
from headroles.studies.inspection.again import (
    TYPED,
    AgainOptions,
    Chosen,
    ExampleOptions,
    Head,
    load_again,
    read_examples,
)
from headroles.wording import head_name, listed

if TYPE_CHECKING:
    from torch import Tensor

    from headroles.models.loading.encoder import LoadedEncoder, Model
    from headroles.passes.loop import ExampleBatch


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(ExampleOptions, AgainOptions):
    """Options of the choice of examples, and of the model that reads them."""

    title: ClassVar[str] = "Model"


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
        role: as `find_examples` takes it.
        options: keyword arguments, described below.

    Raises:
        UsageError: a head or role that the scores do not have, or scores of parsed text.
        CorpusError: the treebank is missing or has changed.
        ModelError: the model is missing, or the model or its tokenizer has changed.

    With ``model`` an encoder with random weights:

    >>> from headroles import read_attention, read_conllu, sample_treebank, score_heads
    >>> treebank = read_conllu(sample_treebank())
    >>> scores = score_heads(model, treebank, roles="local", pairing="none")
    >>> (attention,) = read_attention(scores, (0, 0), "local", n=1)
    >>> attention.labels[0], attention.weights.shape == 2 * (len(attention),)
    ('[CLS]', True)
    """
    return attention_in(scores, read_examples(scores, [(head, role, options)], options), options)[0]


def attention_in(
    scores: HeadScores, shown: Sequence[Chosen], options: AgainOptions
) -> list[list[WordAttention]]:
    """Read the attention of heads in their examples, a list for each of ``shown``.

    Each example is read once. ``options`` name the model. Raises ModelError for another model or
    tokenizer than was scored.
    """
    encoder, measure = load_again(scores, options), scores.record.options.get("measure") or WEIGHTS
    examples = {
        row: example
        for chosen in shown
        for row, example in zip(chosen.rows, chosen.examples, strict=True)
    }
    cut = encode_again(encoder, examples, scores.digests)
    wanted = [chosen.head for chosen in shown]
    found = read_heads(encoder, cut, wanted, measure)
    read = {row: (weights, reaches) for row, weights, reaches in found}

    def made(chosen: Chosen, row: int) -> WordAttention:
        (layer, head), role, example = chosen.head, chosen.role.id, cut[row]
        assert chosen.role.sieve is not None
        cells, (weights, reaches) = chosen.role.sieve.cells(PaddedBatch([example])), read[row]
        reach = reaches[layer]
        if reach is not None:
            place = np.arange(len(example))
            cells &= np.abs(place[:, None] - place) <= reach
        pieces = pieces_of(example)
        first = pieces.argmax(axis=0)
        words = [word for sentence in example.sentences for word in sentence.words]
        tokens = encoder.tokenizer.convert_ids_to_tokens(example.input_ids[first].tolist())
        places = example.words[first]
        return WordAttention(
            example=example.id,
            layer=layer,
            head=head,
            role=role,
            score=chosen.scores(scores)[chosen.rows.index(row)],
            score_name=scores.score.name,
            measure=measure,
            labels=tuple(
                words[place] if place >= 0 else str(token)
                for place, token in zip(places, tokens, strict=True)
            ),
            words=places,
            weights=between_units(pieces, weights[layer, head]),
            sieve=pieces.T @ cells @ pieces > 0,
        )

    return [[made(chosen, row) for row in chosen.rows] for chosen in shown]


def encode_again(
    encoder: LoadedEncoder, examples: Mapping[int, Example], digests: Sequence[str] = ()
) -> dict[int, EncodedExample]:
    """Cut examples into word pieces, by their rows among scores with these ``digests``.

    Raises ModelError for other pieces than were scored, UsageError for a sentence of the user's own
    that the model cannot read.
    """
    encoded = encoder.example_encoder().encode(examples.values(), Counter())
    known = [digests[row] for row in examples if digests and row != TYPED]
    if known and [example.digest for example in encoded] != known:
        raise ModelError(
            f"the tokenizer of {encoder.description.model} cuts words into other pieces than were "
            "scored; name the one that was used with `tokenizer`, or score again"
        )
    if len(encoded) < len(examples):
        raise UsageError(
            f"the sentence has no word pieces, or more than the {encoder.max_tokens} that the "
            "model reads; give another"
        )
    return dict(zip(examples, encoded, strict=True))


def read_heads(
    encoder: LoadedEncoder, encoded: dict[int, EncodedExample], heads: Iterable[Head], measure: str
) -> Iterator[tuple[int, dict[Head, Float32Array], Sequence[int | None]]]:
    """Yield the key of each example, the attention (pieces, pieces) of heads, and layers' reaches.

    Raises UsageError for no head, and for heads that the model does not have.
    """
    from headroles.models.attention.reader import open_reader  # which imports torch
    from headroles.passes.loop import Budget, passes_over

    keys, wanted = list(encoded), set(heads)
    if not wanted:
        raise UsageError("no head was given; name some as (layer, head), from 0")

    def read(batch: ExampleBatch) -> dict[Head, Float32Array]:
        found: dict[Head, Float32Array] = {}

        def take(layer: int, weights: Tensor) -> None:
            for head in wanted:
                if head[0] == layer:
                    found[head] = weights[0, head[1]].float().cpu().numpy().copy()

        reader.read(batch.inputs, take, [example.id for example in batch.examples])
        return found

    with open_reader(encoder.network, measure) as reader:
        there = {(layer, head) for layer, own in enumerate(reader.remaining) for head in own}
        if lacking := [head_name(one) for one in sorted(wanted - there)]:
            raise UsageError(f"the model has no head {listed(lacking)}; name others")
        passes = passes_over(list(encoded.values()), encoder, Budget.of(encoder.device, asked=1))
        for batch, weights in passes.over_all(read):  # one example each
            yield keys[batch.indices[0]], weights, reader.reaches


def pieces_of(example: EncodedExample) -> Float32Array:
    """Mark (N, U) the pieces of each word with pieces and special token."""
    first = (example.words < 0) | (np.diff(example.words, prepend=-1) != 0)
    pieces: Float32Array = np.eye(int(first.sum()), dtype=np.float32)[np.cumsum(first) - 1]
    return pieces


def between_units(pieces: Float32Array, weights: Float32Array) -> Float32Array:
    """Return attention (U, U) between words and special tokens, from that between their pieces."""
    between: Float32Array = (pieces / pieces.sum(axis=0)).T @ weights @ pieces
    return between


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(ModelOptions):
    """Options of the reading of a sentence."""

    title: ClassVar[str] = "Model"

    parser: str | None = None
    """spaCy pipeline that cuts text into words."""
    measure: Literal["weights", "norms"] = "weights"
    """weights: where heads look; norms: what they take from there."""


@takes(ReadingOptions)
def attention_of(
    model: Model,
    sentence: str | Sequence[str],
    heads: Sequence[tuple[int, int]],
    options: ReadingOptions,
) -> Float32Array:
    """Return the attention between the words of a sentence, averaged over heads.

    Attention to a word is the sum over its pieces, attention from a word the mean over its pieces.
    Rows sum to less than 1: special tokens get the rest. Words without pieces have rows and columns
    of zeros.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode.
        sentence: its words; or text, with a ``parser``.
        heads: pairs (layer, head), from 0, as `RoleTable.heads_with` returns them.
        options: keyword arguments, described below.

    Returns:
        An array (words, words), whose rows are the words that attend.

    Raises:
        UsageError: no head, one that the model does not have or lost, or a sentence that is empty
            or too long; CorpusError for a word that is no text.
        ModelError, TokenizerError, ParserError: as `score_heads`.

    With ``model`` an encoder with random weights:

    >>> from headroles import attention_of
    >>> attention_of(model, ["Old", "dogs", "sleep"], [(0, 0), (1, 2)]).shape
    (3, 3)
    """
    from headroles.models.loading.encoder import load_encoder

    if isinstance(sentence, str) and options.parser is None:
        raise UsageError("the sentence is one text; give its words, or name a `parser`")
    if not isinstance(sentence, str):
        made: Sentence | None = words_alone(sentence)
    else:
        made = next(iter(make_corpus([sentence], parser=options.parser, lines=True)), None)
    if made is None:
        raise UsageError("the sentence has no words; give another")
    try:
        wanted = [(index(layer), index(head)) for layer, head in heads]
    except (TypeError, ValueError):
        raise UsageError("heads are pairs (layer, head) of whole numbers; give such") from None
    encoder = load_encoder(model, options)
    encoded = encode_again(encoder, {TYPED: Example((made,))})
    ((_, read, _),) = read_heads(encoder, encoded, wanted, options.measure)
    return average_between_words(encoded[TYPED], [read[head] for head in wanted])


def average_between_words(example: EncodedExample, weights: Sequence[Float32Array]) -> Float32Array:
    """Return the mean of several heads' attention between all words of an example (W, W)."""
    n_words = len(example.sizes)
    pieces = pieces_of(example)
    words = example.words[pieces.argmax(axis=0)]
    between = between_units(pieces, np.mean(weights, axis=0))
    mean = np.zeros((n_words, n_words), dtype=np.float32)
    mean[np.ix_(words[words >= 0], words[words >= 0])] = between[np.ix_(words >= 0, words >= 0)]
    return mean
