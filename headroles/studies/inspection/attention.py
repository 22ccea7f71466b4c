"""Where does a head look in these words? Attention in any sentence, as arrays and as pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import Example, Sentence, make_corpus, words_alone
from headroles.drawing.style import BRIGHT, DARK, draw_grid, figure_of, new_axes, plain, role_label
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from headroles.models.loading.encoder import LoadedEncoder, Model
    from headroles.passes.loop import ExampleBatch

LEAST = 0.1
"""Smaller attention has no arc, and is not listed, except that of the role."""
_GREY = "0.65"
_MANY = 48  # words, from which on they are written smaller
_LONGEST_WORD = 24
_DEPTH = 1.8  # inches that arcs take on either side of the words
_WIDEST_LINE = 4.0  # points, of an attention of 1


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
    shown = read_examples(scores, [(head, role, options)], options)
    return attention_in(scores, shown, load_again(scores, options))[0]


def attention_in(
    scores: HeadScores, shown: Sequence[Chosen], encoder: LoadedEncoder
) -> list[list[WordAttention]]:
    """Read the attention of heads in their examples, a list for each of ``shown``.

    Each example is read once. Raises ModelError for another tokenizer than was scored.
    """
    measure = scores.record.options.get("measure") or WEIGHTS
    examples = {
        row: example
        for chosen in shown
        for row, example in zip(chosen.rows, chosen.examples, strict=True)
    }
    cut = encode_again(encoder, examples, scores.digests)
    wanted = [chosen.head for chosen in shown]
    rows = read_heads(encoder, cut, wanted, measure)
    read = {row: (weights, reaches) for row, weights, reaches in rows}

    def made(chosen: Chosen, row: int, score: float) -> WordAttention:
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
        numbers = example.words[first]
        return WordAttention(
            example=example.id,
            layer=layer,
            head=head,
            role=role,
            score=score,
            score_name=scores.score.name,
            measure=measure,
            labels=tuple(
                words[place] if place >= 0 else str(token)
                for place, token in zip(numbers, tokens, strict=True)
            ),
            words=numbers,
            weights=between_units(pieces, weights[layer, head]),
            sieve=pieces.T @ cells @ pieces > 0,
        )

    return [
        [made(chosen, *row) for row in zip(chosen.rows, chosen.scores(scores), strict=True)]
        for chosen in shown
    ]


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
        of_heads: dict[Head, Float32Array] = {}

        def take(layer: int, weights: Tensor) -> None:
            for head in wanted:
                if head[0] == layer:
                    of_heads[head] = weights[0, head[1]].float().cpu().numpy().copy()

        reader.read(batch.inputs, take, [example.id for example in batch.examples])
        return of_heads

    with open_reader(encoder.network, measure) as reader:
        there = {(k, head) for k, remaining in enumerate(reader.remaining) for head in remaining}
        if lacking := [head_name(head) for head in sorted(wanted - there)]:
            raise UsageError(f"the model has no head {listed(lacking)}; name others")
        passes = passes_over(list(encoded.values()), encoder, Budget.of(encoder.device, tokens=1))
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


def draw_attention(attention: WordAttention, least: float = LEAST) -> Figure:
    """Draw arcs and matrix side by side, as `draw_arcs` and `draw_matrix` make them.

    The figure grows with the example: its words stay readable.

    With ``attention`` as `read_attention` returns it:

    >>> from headroles.report import draw_attention
    >>> len(draw_attention(attention[0]).axes)
    3
    """
    from headroles.drawing.own_figures import new_figure

    labels = _labels_of(attention)
    side, width = labels.side, labels.widest
    sizes = (width + 2 * _DEPTH, width + side + 1.2)
    figure = new_figure(sum(sizes), side + width + 1.3)
    left, right = figure.subplots(1, 2, width_ratios=sizes)
    draw_arcs(attention, least, ax=left)
    draw_matrix(attention, ax=right)
    return figure


def draw_arcs(attention: WordAttention, least: float = LEAST, ax: Axes | None = None) -> Axes:
    """Draw words below one another, and arcs from those that look to those looked at.

    An arc to the left leads to a word before, one to the right to a word after; a dot is a word
    that looks at itself. Arcs are as wide as the attention is large, dark where the role has them
    in its sieve, grey elsewhere; those below ``least`` are left out. Where the sieve has a key for
    each word at most, dotted arcs lead to those that get less.

    With ``attention`` as `read_attention` returns it:

    >>> from headroles.report import draw_arcs
    >>> len(draw_arcs(attention[0]).texts) == len(attention[0])
    True
    """
    labels = _labels_of(attention)
    ax = new_axes(ax, labels.widest + 2 * _DEPTH, labels.side + 1.4)
    for place, text in enumerate(labels.texts):
        ax.text(0, place, text, ha="center", va="center", fontsize=labels.size)
    is_large = attention.weights >= least
    is_missed = attention.sieve & ~is_large & (attention.sieve.sum(axis=1).max(initial=0) <= 1)
    arcs = (
        ("missed", is_missed, f"in the sieve, less than {least:g}", BRIGHT, "dotted"),
        ("elsewhere", is_large & ~attention.sieve, "elsewhere", _GREY, "solid"),
        ("sieve", is_large & attention.sieve, "in the sieve", DARK, "solid"),
    )
    for name, chosen, label, color, look in arcs:
        if chosen.any():
            _add_arcs(ax, attention, chosen, gid=name, colors=color, linestyles=look)
            ax.plot([], [], color=color, linestyle=look, linewidth=2, label=label)
    edge = labels.widest / 2 + _DEPTH
    ax.set(xlim=(-edge, edge), ylim=(len(attention) - 0.5, -0.5))
    ax.set_axis_off()
    title = (
        f"head {attention.layer}-{attention.head}, {role_label(attention.role)}: "
        f"{attention.score_name} score {attention.score:.3g}\n{plain(attention.example)}"
    )
    ax.set_title(f"{title}\n<  to words before    |    to words after  >", fontsize=9)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), fontsize="small", ncols=2)
    return ax


def draw_matrix(attention: WordAttention, ax: Axes | None = None) -> Axes:
    """Draw words that look as rows, words looked at as columns; lines go around the sieve.

    With ``attention`` as `read_attention` returns it:

    >>> from headroles.report import draw_matrix
    >>> draw_matrix(attention[0]).get_ylabel()
    'looks'
    """
    labels = _labels_of(attention)
    width = labels.side + labels.widest
    ax = new_axes(ax, width + 1.2, width + 1.3)
    mesh = draw_grid(ax, attention.weights, "Greys")
    mesh.set_rasterized(len(attention) > _MANY)  # thousands of cells would make a large file
    _draw_border(ax, attention.sieve)
    ax.set_xticks(range(len(attention)), labels.texts, rotation=90, fontsize=labels.size)
    ax.set_yticks(range(len(attention)), labels.texts, fontsize=labels.size)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.xaxis.set_label_position("top")
    ax.set(xlabel="looked at (lines: the sieve)", ylabel="looks", aspect="equal")
    label = "attention" if attention.measure == WEIGHTS else f"share of {attention.measure}"
    figure_of(ax).colorbar(mesh, ax=ax, label=label, shrink=0.6, aspect=25)
    return ax


def _add_arcs(ax: Axes, attention: WordAttention, chosen: BoolArray, **look: Any) -> None:
    """Draw arcs of the ``chosen`` (U, U), dots where words look at themselves."""
    from matplotlib.collections import LineCollection

    queries, keys = np.nonzero(chosen)
    weights = attention.weights[queries, keys]
    widths = _WIDEST_LINE * weights if look["linestyles"] == "solid" else np.ones(len(weights))
    apart = np.abs(keys - queries)
    depth = 0.2 + (_DEPTH - 0.3) * np.sqrt(apart / max(1, len(attention) - 1))
    edge = _labels_of(attention).widths / 2 + 0.05
    angle = np.linspace(0, np.pi, 40)
    way = (1 - np.cos(angle)) / 2  # from query to key
    out = edge[queries] + np.outer(way, edge[keys] - edge[queries])
    x = (out + np.outer(np.sin(angle), depth)).T
    y = queries[:, None] + np.outer(keys - queries, way)
    lines = np.stack([np.where(keys > queries, 1, -1)[:, None] * x, y], axis=-1)
    other = apart > 0
    ax.add_collection(LineCollection(list(lines[other]), linewidths=widths[other], **look))
    itself = queries[~other]
    ax.scatter(-edge[itself], itself, s=30 * weights[~other], color=look["colors"])


def _draw_border(ax: Axes, chosen: BoolArray) -> None:
    """Draw lines around the cells that are ``chosen``, wherever they end."""
    from matplotlib.collections import LineCollection

    around, lines = np.pad(chosen, 1), []
    sides = ((0, 1), np.diff(around)[1:-1]), ((1, 0), np.diff(around, axis=0)[:, 1:-1])
    for step, changes in sides:
        start = np.argwhere(changes)[:, ::-1] - 0.5
        lines += list(np.stack([start, start + step], axis=1))
    ax.add_collection(LineCollection(lines, colors=BRIGHT, linewidths=1.5))


class _Labels(NamedTuple):
    """Texts of the words, the ``size`` of their font, and inches: of words, and of all rows."""

    texts: list[str]
    size: float
    widths: FloatArray
    side: float

    @property
    def widest(self) -> float:
        """The width of the longest word."""
        return float(self.widths.max())


def _labels_of(attention: WordAttention) -> _Labels:
    """Estimate the places that words take; some scripts have characters twice as wide."""
    from rich.cells import cell_len

    size, row = (8.5, 0.2) if len(attention) <= _MANY else (6.5, 0.14)
    texts = [plain(label, _LONGEST_WORD) for label in attention.labels]
    widths = (0.2 + 0.08 * np.array(list(map(cell_len, texts)))) * size / 8.5
    return _Labels(texts, size, widths, row * len(attention))
