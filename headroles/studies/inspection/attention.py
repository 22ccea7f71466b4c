"""Where does a head look in these words? Its attention, read from the model again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import Example
from headroles.drawing.grids import draw_grid
from headroles.drawing.style import (
    BRIGHT,
    DARK,
    figure_of,
    new_axes,
    plain,
    role_label,
)
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
from headroles.studies.inspection.sentences import AttentionOptions, FoundAgain, find_again

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST = 0.1
"""Smaller attention has no arc."""
_GREY = "0.65"
_MANY = 48  # words, from which on they are written smaller
_LONGEST_WORD = 24
_DEPTH = 1.8  # inches that arcs take on either side of the words
_WIDEST_LINE = 4.0  # points, of an attention of 1


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
    return attention_of_heads(find_again(scores, [(head, role, options)]), options)[0]


def attention_of_heads(again: FoundAgain, options: AttentionOptions) -> list[list[WordAttention]]:
    """Read the attention of several heads in their examples; each example is read once.

    Returns a list for each of ``again.wanted``. ``options`` name the model. Raises ModelError for
    another model or tokenizer than was scored.
    """
    scores = again.scores
    sieves = {role: again.sieve(role) for _, role, _ in again.wanted}
    encoder = _load_again(scores, options)
    rows = np.unique(np.concatenate([*again.rows, np.zeros(0, dtype=np.int64)])).tolist()
    places = {
        row: [k for k, of_head in enumerate(again.rows) if row in of_head.tolist()] for row in rows
    }
    measure = scores.record.measure or WEIGHTS
    encoded = _encode_again(scores, rows, again.examples, encoder)
    heads = [{again.wanted[k][0] for k in places[row]} for row in rows]
    made: dict[tuple[int, int], WordAttention] = {}
    read = _read(encoder, encoded, heads, measure)
    for row, example, (weights, reaches) in zip(rows, encoded, read, strict=True):
        for k in places[row]:
            (layer, head), role, _ = again.wanted[k]
            made[k, row] = WordAttention(
                example=example.id,
                layer=layer,
                head=head,
                role=role,
                score=float(scores.of_head((layer, head), role)[row]),
                score_name=scores.score.name,
                measure=measure,
                **_between_words(
                    example, weights[layer, head], sieves[role], reaches[layer], encoder
                ),
            )
    return [[made[k, row] for row in of_head.tolist()] for k, of_head in enumerate(again.rows)]


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
    rows: list[int],
    examples: dict[str, Example],
    encoder: LoadedEncoder,
) -> list[EncodedExample]:
    """Return the examples at ``rows`` in word pieces. Raises ModelError for other pieces."""
    pieces = encoder.example_encoder()
    encoded = pieces.encode([examples[scores.ids[row]] for row in rows], Counter())
    digests = [scores.digests[row] for row in rows] if scores.digests else []
    if len(encoded) != len(rows) or (
        digests and digests != [example.digest for example in encoded]
    ):
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

            reader.read(batch.inputs, take, [example.id for example in batch.examples])
            return held

        passes = passes_over(encoded, encoder, Budget.of(encoder.device, asked=1))
        alone = (passes.make([row]) for row in range(len(encoded)))
        for _, weights in passes.run(alone, read):
            yield weights, reader.reaches


def _between_words(
    example: EncodedExample,
    weights: Float32Array,
    role: Role,
    reach: int | None,
    encoder: LoadedEncoder,
) -> dict[str, Any]:
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


def draw_attention(attention: WordAttention, least: float = LEAST) -> Figure:
    """Draw arcs and matrix side by side, as `draw_arcs` and `draw_matrix` make them.

    The figure grows with the example: its words stay readable.

    With ``attention`` as `read_attention` returns it:

    >>> from headroles.report import draw_attention
    >>> len(draw_attention(attention[0]).axes)
    3
    """
    from headroles.drawing.own_figures import new_figure

    row, width = _row_height(attention), float(_widths(attention).max())
    sizes = (width + 2 * _DEPTH, width + row * len(attention) + 1.2)
    height = row * len(attention) + width + 1.3
    figure = new_figure(sum(sizes), height, "constrained")
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
    height = _row_height(attention) * len(attention) + 1.4
    width = float(_widths(attention).max())
    ax = new_axes(ax, width + 2 * _DEPTH, height)
    for place, label in enumerate(attention.labels):
        text = plain(label, _LONGEST_WORD)
        ax.text(0, place, text, ha="center", va="center", fontsize=_font_size(attention))
    is_large = attention.weights >= least
    is_missed = attention.sieve & ~is_large & (attention.sieve.sum(axis=1).max(initial=0) <= 1)
    arcs = (
        ("missed", is_missed, f"in the sieve, less than {least:g}", BRIGHT, "dotted"),
        ("elsewhere", is_large & ~attention.sieve, "elsewhere", _GREY, "solid"),
        ("sieve", is_large & attention.sieve, "in the sieve", DARK, "solid"),
    )
    for name, chosen, label, color, look in arcs:
        if chosen.any():
            _add_arcs(ax, attention, chosen, name, color, look)
            ax.plot([], [], color=color, linestyle=look, linewidth=2, label=label)
    edge = width / 2 + _DEPTH
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
    row, width = _row_height(attention), float(_widths(attention).max())
    side = row * len(attention)
    ax = new_axes(ax, side + width + 1.2, side + width + 1.3)
    mesh = draw_grid(ax, attention.weights, "Greys")
    mesh.set_rasterized(len(attention) > _MANY)  # thousands of cells would make a large file
    _draw_border(ax, attention.sieve)
    names = [plain(label, _LONGEST_WORD) for label in attention.labels]
    places, size = range(len(attention)), _font_size(attention)
    ax.set_xticks(places, names, rotation=90, fontsize=size)
    ax.set_yticks(places, names, fontsize=size)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.xaxis.set_label_position("top")
    ax.set(xlabel="looked at (lines: the sieve)", ylabel="looks", aspect="equal")
    measure = attention.measure
    label = "attention" if measure == WEIGHTS else f"share of {measure}"
    figure_of(ax).colorbar(mesh, ax=ax, label=label, shrink=0.6, aspect=25)
    return ax


def _add_arcs(
    ax: Axes,
    attention: WordAttention,
    chosen: BoolArray,
    name: str,
    color: str,
    look: str,
) -> None:
    """Draw arcs of the ``chosen`` (U, U), dots where words look at themselves."""
    from matplotlib.collections import LineCollection

    queries, keys = np.nonzero(chosen)
    weights = attention.weights[queries, keys]
    widths = _WIDEST_LINE * weights if look == "solid" else np.ones(len(weights))
    apart = np.abs(keys - queries)
    depth = 0.2 + (_DEPTH - 0.3) * np.sqrt(apart / max(1, len(attention) - 1))
    edge = _widths(attention) / 2 + 0.05
    angle = np.linspace(0, np.pi, 40)
    way = (1 - np.cos(angle)) / 2  # from query to key
    x = (
        edge[queries] + np.outer(way, edge[keys] - edge[queries]) + np.outer(np.sin(angle), depth)
    ).T
    y = queries[:, None] + np.outer(keys - queries, way)
    lines = np.stack([np.where(keys > queries, 1, -1)[:, None] * x, y], axis=-1)
    other = apart > 0
    ax.add_collection(
        LineCollection(
            list(lines[other]), linewidths=widths[other], colors=color, linestyles=look, gid=name
        )
    )
    itself = queries[~other]
    ax.scatter(-edge[itself], itself, s=30 * attention.weights[itself, itself], color=color)


def _draw_border(ax: Axes, chosen: BoolArray) -> None:
    """Draw lines around the cells that are ``chosen``, wherever they end."""
    from matplotlib.collections import LineCollection

    around = np.pad(chosen, 1)
    row, column = np.nonzero(around[1:-1, 1:] != around[1:-1, :-1])
    upright = np.stack([[column - 0.5, row - 0.5], [column - 0.5, row + 0.5]]).transpose(2, 0, 1)
    row, column = np.nonzero(around[1:, 1:-1] != around[:-1, 1:-1])
    level = np.stack([[column - 0.5, row - 0.5], [column + 0.5, row - 0.5]]).transpose(2, 0, 1)
    lines = list(np.concatenate([upright, level]))
    ax.add_collection(LineCollection(lines, colors=BRIGHT, linewidths=1.5))


def _row_height(attention: WordAttention) -> float:
    """Return the inches from one word to the next."""
    return 0.2 if len(attention) <= _MANY else 0.14


def _font_size(attention: WordAttention) -> float:
    return 8.5 if len(attention) <= _MANY else 6.5


def _widths(attention: WordAttention) -> FloatArray:
    """Estimate the width (U,) of words in inches; some scripts have characters twice as wide."""
    from rich.cells import cell_len

    cells = [cell_len(plain(label, _LONGEST_WORD)) for label in attention.labels]
    return (0.2 + 0.08 * np.array(cells)) * _font_size(attention) / 8.5
