"""Where does a head look in these words? Attention in any sentence, as arrays and as pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import Example, typed_pair
from headroles.drawing.style import BRIGHT, DARK, new_axes, plain, words_label
from headroles.encoding import EncodedExample
from headroles.errors import ModelError, UsageError
from headroles.models.heads.remaining import Head
from headroles.models.options import CROSS, ENCODER, ModelOptions, TargetOptions
from headroles.options import takes
from headroles.reach import EVERYTHING
from headroles.roles import PaddedBatch, Scope
from headroles.scoring.scores import HeadScores
from headroles.storage import Count
from headroles.studies.inspection.origin import (
    TYPED,
    Chosen,
    ExampleOptions,
    Origin,
    OriginOptions,
    typed_corpus,
)
from headroles.wording import head_name, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch import Tensor

    from headroles.models.loading.encoder import LoadedModel, Model
    from headroles.passes.loop import ExampleBatch

Arc = tuple[Count, Count, Annotated[float, Meta(ge=0, le=1.1)], bool]
"""Numbers of a query and a key, the weight (rounded, some lie above 1), and whether the role has
the arc in its sieve."""
LEAST = 0.1
"""Smaller attention has no arc, and is not listed, except that of the role."""
_GREY = "0.65"
_MANY = 48  # words, from which on they are written smaller
_LONGEST_WORD = 24
_DEPTH = 1.8  # inches that arcs take on either side of the words


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(ExampleOptions, OriginOptions):
    """Options of the choice of examples, and of the model that reads them."""

    title: ClassVar[str] = "Model"


@dataclass(frozen=True, eq=False)
class WordAttention:
    """Attention of a head in an example, between U words and special tokens, in their order.

    ``weights`` (U, U): attention to a word is the sum over its pieces, attention from a word the
    mean over its pieces, so that rows sum to 1. Those of a source and its target follow one
    another; rows of words that the head does not read as queries are 0. ``sieve`` (U, U) marks the
    words that each word looks at in the ``role``, from any of its pieces to any of theirs.
    ``words`` (U,) are numbers of the words in the example, -1 for special tokens; words without
    pieces are left out. ``labels`` (U,) are the texts of both. ``score`` is the score of the head
    in this example, of the kind ``score_name``. ``measure`` is weights, or norms in their place.

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
    role_in_words: str = ""

    def __len__(self) -> int:
        """Return the number of words and special tokens."""
        return len(self.labels)

    def arcs(self, chosen: BoolArray) -> list[Arc]:
        """Return the arcs of the ``chosen`` (U, U), those with the largest weights first."""
        order = np.argsort(-self.weights[chosen], kind="stable")
        return [
            (query, key, float(self.weights[query, key]), bool(self.sieve[query, key]))
            for query, key in np.argwhere(chosen)[order].tolist()
        ]

    def drawn(self, least: float = LEAST) -> list[Arc]:
        """Return large arcs, and small ones of the role if it has one at most for each word."""
        has_single_keys = self.sieve.sum(axis=1).max(initial=0) <= 1
        return self.arcs((self.weights >= least) | (self.sieve & has_single_keys))


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
    origin = Origin(scores, options)
    (chosen,) = origin.examples([(head, role, options)])
    return attention_in(origin, chosen) if chosen else []


def attention_in(origin: Origin, chosen: Sequence[Chosen]) -> list[WordAttention]:
    """Read the attention of heads in their examples, each example once.

    Raises errors as `read_heads`.
    """
    examples = {shown.row: shown.example for shown in chosen}
    heads = [shown.head for shown in chosen]
    scores = origin.scores
    read = dict(read_heads(origin.encoder, examples, heads, origin.measure, scores.digests))
    reaches = dict(enumerate(scores.record.model.reaches_of_layers))

    def made(shown: Chosen) -> WordAttention:
        layer, head = shown.head
        example, weights = read[shown.row]
        assert shown.role.sieve is not None
        reach = reaches.get(layer, EVERYTHING)
        scope = Scope(PaddedBatch([example]), reach, scores.score)
        cells = shown.role.sieve.cells(scope) & scope.seen[0]
        starts = (example.words < 0) | (np.diff(example.words, prepend=-1) != 0)
        units, numbers = np.cumsum(starts) - 1, example.words[starts]
        words = shown.words
        tokens = origin.encoder.tokens_of(example)
        labels = zip(numbers, np.array(tokens, dtype=object)[starts], strict=True)
        return WordAttention(
            example=example.id,
            layer=layer,
            head=head,
            role=shown.role.id,
            role_in_words=shown.role.words,
            score=shown.score,
            score_name=scores.score.name,
            measure=origin.measure,
            labels=tuple(words[k] if k >= 0 else token for k, token in labels),
            words=numbers,
            weights=between(units, len(numbers), weights[shown.head]),
            sieve=between(units, len(numbers), cells) > 0,
        )

    return list(map(made, chosen))


def read_heads(
    encoder: LoadedModel,
    examples: Mapping[int, Example],
    heads: Iterable[Head],
    measure: str,
    digests: Sequence[str] = (),
) -> Iterator[tuple[int, tuple[EncodedExample, dict[Head, Float32Array]]]]:
    """Yield the key of each example, with its word pieces and attention (pieces, pieces) of heads.

    The keys of examples are their rows among scores with these ``digests``, or `TYPED`.

    Raises ModelError for other pieces than were scored; UsageError for a sentence of the user's own
    that the model cannot read, for no head, and for heads that the model does not have.
    """
    from headroles.models.attention.reader import open_reader  # which imports torch
    from headroles.passes.loop import Budget, passes_over

    keys, wanted = sorted(examples), set(heads)
    encoded = encoder.example_encoder().encode([examples[key] for key in keys], Counter())
    recorded = [digests[row] for row in keys if digests and row != TYPED]
    if recorded and recorded != [cut.digest for cut in encoded]:
        raise ModelError(
            f"the tokenizer of {encoder.description.model} cuts words into other pieces than were "
            "scored; name the one that was used with `tokenizer`, or score again"
        )
    if len(encoded) < len(keys):
        raise UsageError(
            f"the sentence has no word pieces, or more than the {encoder.max_tokens} that the "
            "model reads; give another"
        )
    if not wanted:
        raise UsageError("no head was given; name some as (layer, head), from 0")

    def read(batch: ExampleBatch) -> dict[Head, Float32Array]:
        of_heads: dict[Head, Float32Array] = {}

        def take(layer: int, weights: Tensor) -> None:
            for head in wanted:
                if head[0] == layer:
                    of_heads[head] = weights[0, head[1]].float().cpu().numpy().copy()

        reader.read(batch.inputs, take, [example.id for example in batch.examples])
        return of_heads

    with open_reader(encoder.attention, measure) as reader:
        there = {(k, head) for k, remaining in enumerate(reader.remaining) for head in remaining}
        if lacking := [head_name(head) for head in sorted(wanted - there)]:
            raise UsageError(f"the model has no head {listed(lacking)}; name others")
        passes = passes_over(encoded, encoder, Budget.for_device(encoder.device, tokens=1))
        for batch, weights in passes.over_all(read):  # one example each
            place = batch.indices[0]
            yield keys[place], (encoded[place], weights)


def between(groups: IntArray, n: int, cells: BoolArray | Float32Array) -> Float32Array:
    """Return attention between ``n`` words (n, n), from that between their pieces (N, N).

    ``groups`` (N,) numbers the word of each piece. To a word it is the sum over its pieces, from a
    word the mean; those without pieces have zeros.
    """
    pieces = np.asarray(groups[:, None] == np.arange(n), dtype=np.float32)
    summed: Float32Array = (pieces / np.maximum(pieces.sum(axis=0), 1)).T @ cells @ pieces
    return summed


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(TargetOptions, ModelOptions):
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
        sentence: its words; or text, with a ``parser``. For the ``attention`` of a decoder, and
            cross-attention, the words of a source and a target: ``"a cat ||| eine Katze"``.
        heads: pairs (layer, head), from 0, as `RoleTable.heads_with` returns them.
        options: keyword arguments, described below.

    Returns:
        An array (words, words), whose rows are the words that attend. Of a decoder these are the
        words of the target, and of cross-attention (words of the target, words of the source).

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

    example = _typed_example(sentence, options)
    try:
        wanted = [(index(layer), index(head)) for layer, head in heads]
    except (TypeError, ValueError):
        raise UsageError("heads are pairs (layer, head) of whole numbers; give such") from None
    encoder = load_encoder(model, options, of=options.as_group(TargetOptions))
    ((_, (cut, read)),) = read_heads(encoder, {TYPED: example}, wanted, options.measure)
    attention = average_between_words(cut, [read[head] for head in wanted])
    if options.attention == ENCODER:
        return attention
    n = len(example.sentences[0].words)
    return attention[n:, :n] if options.attention == CROSS else attention[n:, n:]


def _typed_example(sentence: str | Sequence[str], options: ReadingOptions) -> Example:
    """Return an example of a sentence of the user's own, or of a source and a target."""
    if options.attention != ENCODER:
        if options.parser is not None:
            raise UsageError("`parser` has no effect on a source and a target; omit it")
        text = sentence if isinstance(sentence, str) else " ".join(sentence)
        return Example(tuple(typed_pair(text)))
    if isinstance(sentence, str) and options.parser is None:
        raise UsageError("the sentence is one text; give its words, or name a `parser`")
    if not (sentences := tuple(typed_corpus(sentence, options.parser))):
        raise UsageError("the sentence has no words; give another")
    return Example(sentences[:1])


def average_between_words(example: EncodedExample, weights: Sequence[Float32Array]) -> Float32Array:
    """Return the mean of several heads' attention between all words of an example (W, W)."""
    return between(example.words, len(example.sizes), np.mean(weights, axis=0))


def draw_attention(attention: WordAttention, least: float = LEAST, ax: Axes | None = None) -> Axes:
    """Draw words below one another, and arcs from those that look to those looked at.

    An arc to the left leads to a word before, one to the right to a word after; a dot is a word
    that looks at itself. Arcs are as wide as the attention is large, dark where the role has them
    in its sieve, grey elsewhere; those below ``least`` are left out. Where the sieve has a key for
    each word at most, dotted arcs lead to those that get less. A figure of its own grows with the
    example: its words stay readable.

    With ``attention`` as `read_attention` returns it:

    >>> from headroles.report import draw_attention
    >>> len(draw_attention(attention[0]).texts) == len(attention[0])
    True
    """
    head = attention.layer, attention.head
    about = attention.score_name, attention.score, attention.example
    title = title_of(head, attention.role_in_words or attention.role, *about)
    arcs = attention.drawn(least)
    return draw_arcs(attention.labels, arcs, title, ax, least)


def title_of(head: Head, words: str, score_name: str, score: float, example: str) -> str:
    """Return the title of the attention of a head in an example."""
    scored = f"head {head_name(head)}, {words_label(words)}: {score_name} score {score:.3g}"
    return f"{scored}\n{plain(example)}"


def draw_arcs(
    labels: Sequence[str],
    arcs: Sequence[Arc],
    title: str,
    ax: Axes | None = None,
    least: float = LEAST,
) -> Axes:
    """Draw words and the arcs between them, as `draw_attention` does."""
    from rich.cells import cell_len  # some scripts have characters twice as wide

    size, row = (8.5, 0.2) if len(labels) <= _MANY else (6.5, 0.14)
    texts = [plain(label, _LONGEST_WORD) for label in labels]
    widths = (0.2 + 0.08 * np.array(list(map(cell_len, texts)))) * size / 8.5  # inches
    edge = widths.max() / 2 + _DEPTH
    ax = new_axes(ax, 2 * edge, row * len(texts) + 1.4)
    for place, text in enumerate(texts):
        ax.text(0, place, text, ha="center", va="center", fontsize=size)
    missed = [(query, key, 0.25) for query, key, weight, has in arcs if has and weight < least]
    elsewhere = [arc[:3] for arc in arcs if not arc[3] and arc[2] >= least]
    in_sieve = [arc[:3] for arc in arcs if arc[3] and arc[2] >= least]
    for name, drawn, label, color, look in (
        ("missed", missed, f"in the sieve, less than {least:g}", BRIGHT, "dotted"),
        ("elsewhere", elsewhere, "elsewhere", _GREY, "solid"),
        ("sieve", in_sieve, "in the sieve", DARK, "solid"),
    ):
        if drawn:
            _add_arcs(ax, drawn, widths / 2 + 0.05, gid=name, colors=color, linestyles=look)
            ax.plot([], [], color=color, linestyle=look, linewidth=2, label=label)
    ax.set(xlim=(-edge, edge), ylim=(len(texts) - 0.5, -0.5))
    ax.set_axis_off()
    ax.set_title(f"{title}\n<  to words before    |    to words after  >", fontsize=9)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), fontsize="small", ncols=2)
    return ax


def _add_arcs(
    ax: Axes, arcs: Sequence[tuple[int, int, float]], edge: FloatArray, **look: Any
) -> None:
    """Draw arcs (query, key, weight), dots where words look at themselves.

    They begin and end at the ``edge`` (U,) of the words.
    """
    from matplotlib.collections import LineCollection

    queries, keys, sizes = map(np.array, zip(*arcs, strict=True))
    apart = np.abs(keys - queries)
    depth = 0.2 + (_DEPTH - 0.3) * np.sqrt(apart / max(1, len(edge) - 1))
    angle = np.linspace(0, np.pi, 40)
    way = (1 - np.cos(angle)) / 2  # from query to key
    out = edge[queries] + np.outer(way, edge[keys] - edge[queries])
    x = (out + np.outer(np.sin(angle), depth)).T
    y = queries[:, None] + np.outer(keys - queries, way)
    lines = np.stack([np.where(keys > queries, 1, -1)[:, None] * x, y], axis=-1)
    other = apart > 0
    ax.add_collection(LineCollection(list(lines[other]), linewidths=4 * sizes[other], **look))
    itself = queries[~other]
    ax.scatter(-edge[itself], itself, s=30 * sizes[~other], color=look["colors"])
