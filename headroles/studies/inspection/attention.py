"""Where does a head look in these words? Examples behind its scores, read again with its attention.

Examples are chosen by their scores, and their words read again from the treebank that was scored;
attention comes from the model, read again too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import (
    GIVEN,
    NEWDOC,
    Example,
    Skipped,
    make_examples,
    prepared,
    read_arcs,
    read_conllu,
)
from headroles.corpus.arcs import KEY as ARCS
from headroles.drawing.grids import draw_grid
from headroles.drawing.style import BRIGHT, DARK, figure_of, new_axes, plain, role_label
from headroles.encoding import SPECIAL, AlignedEncoder, EncodedExample
from headroles.encoding.encoder import Cut
from headroles.errors import CorpusError, ModelError, UsageError
from headroles.models.options import WEIGHTS, ModelOptions
from headroles.options import CIRCUMSTANCE, Convert, fields_of, split_names, takes
from headroles.roles import PaddedBatch, Role, RoleOptions, choose_roles, is_own
from headroles.scoring.scores import HeadScores
from headroles.studies.options import ImportOptions
from headroles.wording import head_name, listed, printable, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from headroles.models.loading.encoder import LoadedEncoder
    from headroles.passes.examples import ExampleBatch

LARGEST: Final = "largest"
MEDIAN: Final = "median"
SMALLEST: Final = "smallest"
LEAST = 0.1
"""Smaller attention has no arc."""
_GREY = "0.65"
_MANY = 48  # words, from which on they are written smaller
_LONGEST_WORD = 24
_DEPTH = 1.8  # inches that arcs take on either side of the words
_WIDEST_LINE = 4.0  # points, of an attention of 1


def _paths(given: Any) -> tuple[Path, ...]:
    if isinstance(given, PathLike):
        return (Path(given),)
    return tuple(map(Path, split_names(given) if isinstance(given, str) else given))


@dataclass(frozen=True, kw_only=True)
class ExampleOptions(ImportOptions):
    """Options of the choice of examples."""

    title: ClassVar[str] = "Output"

    n: Annotated[int, Meta(ge=1)] = 5
    """Number of examples."""
    which: Literal["largest", "median", "smallest"] = "median"
    """Typical ones, with scores nearest the median, or those with the largest or smallest."""
    example: str | None = None
    """The example with this id, with any score, and no other."""
    corpus: Annotated[Sequence[Path] | None, Convert(_paths), CIRCUMSTANCE] = None
    """Treebank that was scored, files or folders, if it has moved."""

    def check(self) -> None:
        """Reject a choice among examples where one is named."""
        super().check()
        if self.example is not None and self.which != MEDIAN:
            raise UsageError("`example` names the one to show; leave `which` out")


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(ExampleOptions, ModelOptions):
    """Options of the choice of examples, and of the model that reads them."""

    title: ClassVar[str] = "Model"

    model: Annotated[Any, CIRCUMSTANCE] = None
    """Model that was scored, if it has moved.

    A folder, a hub id or, from Python, a loaded model in evaluation mode.
    """


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
    return attention_in(scores, read_again(scores, [(head, role, options)]), options)[0]


Wanted = tuple[tuple[int, int], str, ExampleOptions]
"""Head, role, and which examples of them."""


class ExamplesAgain(NamedTuple):
    """Examples of a head and a role, read again from the treebank; ``rows`` are their places."""

    head: tuple[int, int]
    role: Role
    rows: list[int]
    examples: list[Example]


def read_again(scores: HeadScores, wanted: Sequence[Wanted]) -> list[ExamplesAgain]:
    """Choose examples of several heads and roles, and read them in one pass over the treebank.

    A role of a user is read only if its ``MODULE:FUNCTION`` is among ``roles`` of the options:
    scores may come from elsewhere, and the name that they record must not decide which code runs.

    Raises UsageError for scores of parsed text or made by hand and for roles that were not scored,
    and CorpusError for a treebank that is missing or has changed.
    """
    chosen = []
    for head, named, options in wanted:
        name = scores.role_of(head, named)
        rows = choose_examples(scores, head, name, options)
        chosen.append(((int(head[0]), int(head[1])), name, rows))
    corpus, recorded = scores.record.corpus, scores.record.options
    is_listed = corpus.format == ARCS and bool(corpus.files)
    if corpus.format != "conllu" and not is_listed:
        raise UsageError(
            "sentences come from the files that were scored, and these scores are of parsed text "
            "or made by hand; score a treebank, or a file of tokens and arcs"
        )
    first = wanted[0][2] if wanted else ExampleOptions()
    known = {field.name for field in fields_of(RoleOptions)} - {"relations"}
    given = RoleOptions(**{name: value for name, value in recorded.items() if name in known})
    names = _that_may_run(given.roles, first.roles or ())
    files = first.corpus or list(map(Path, corpus.files))
    for file in [] if first.corpus else files:
        if not file.exists():
            here = " in this folder" * (not file.is_absolute())
            raise CorpusError(
                f"{file}, which was scored, does not exist{here}; name it with `corpus`"
            )
    if is_listed:
        source = read_arcs(files, least_distance=corpus.least_distance or 1)
    else:
        by = {"documents": corpus.documents_by or NEWDOC, "ids": corpus.ids_by or GIVEN}
        source = read_conllu(files, on_bad_sentence="skip", **by)
    with prepared(source) as ready:
        if ready.record.digest != corpus.digest:
            raise CorpusError(
                f"{', '.join(map(str, files))} has other sentences than when it was scored; name "
                "the file that was scored with `corpus`, or score again"
            )
        ids = {scores.ids[row] for _, _, rows in chosen for row in rows}
        made = make_examples(ready, scores.record.pairing or "adjacent")
        examples = {example.id: example for example in made if example.id in ids}
        relations = tuple(recorded.get("relations") or ())
        roles: Sequence[Role] = ()
        if names != []:
            again = replace(given, roles=names)
            roles = choose_roles(again, relations, scores.score, ready)
    by_id = {role.id: role for role in roles}
    return [
        ExamplesAgain(head, _sieve(by_id, name), rows, [examples[scores.ids[row]] for row in rows])
        for head, name, rows in chosen
    ]


def _that_may_run(recorded: Sequence[str] | None, imported: Sequence[str]) -> list[str] | None:
    """Return the recorded names of roles; of users' roles only those ``imported``."""
    of_users = [name for name in recorded or () if is_own(name)]
    for name in imported:
        if name not in of_users:
            known = f"; name one of: {listed(of_users)}" if of_users else ""
            raise UsageError(f"{name!r} is no user's role that was scored{known}")
    if recorded is None:
        return None
    return [name for name in recorded if name not in of_users or name in imported]


def _sieve(roles: Mapping[str, Role], name: str) -> Role:
    """Return a role with its sieve. Raises UsageError for one that was not made again."""
    if name in roles:
        return roles[name]
    if is_own(name):
        raise UsageError(not_imported(name))
    raise UsageError(f"the recorded options make no role {name!r}; score again")


def not_imported(role: str) -> str:
    """Return the reason why a user's role has no sentences, with advice."""
    name = printable(":".join(role.split(":")[:2]))
    return (
        f"{name} is a Python function, and reading results imports none by itself; if you trust "
        "it, name it with `roles`"
    )


def choose_examples(
    scores: HeadScores, head: tuple[int, int], role: str, options: ExampleOptions
) -> list[int]:
    """Return places of the wanted examples among all of ``scores``.

    Raises UsageError for a head or role that the scores do not have, and an example without score.
    """
    values = scores.of_head(head, role)
    if list(head) in map(list, scores.record.removed_heads or ()):
        raise UsageError(
            f"head {head_name(head)} was removed from the model and has no scores; name another"
        )
    if (name := options.example) is not None:
        if name not in scores.ids or np.isnan(values[scores.ids.index(name)]):
            raise UsageError(
                f"head {head_name(head)} has no score of {role} in an example {shortened(name)!r}; "
                "name one from the column example of: headroles examples"
            )
        return [scores.ids.index(name)]
    rows = np.flatnonzero(~np.isnan(values))
    values = values[rows]
    if options.which == MEDIAN and len(rows):
        values = np.abs(values - np.median(values))
    order = np.argsort(-values if options.which == LARGEST else values, kind="stable")
    return [int(row) for row in rows[order][: options.n]]


class MarkedExample(NamedTuple):
    """The words of an example, and those of a role, numbered from 0.

    ``keys`` are the words in its sieve, in ascending order; ``pairs`` are its (query, key). Both
    are empty for sieves of places or of special tokens.
    """

    words: tuple[str, ...]
    keys: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]


def mark(example: Example, role: Role) -> MarkedExample:
    """Return the words of an example, with those of the role marked."""
    words = tuple(word for sentence in example.sentences for word in sentence.words)
    assert role.sieve is not None
    keys, pairs = role.sieve.words(PaddedBatch(_WordByWord({}).encode([example], Counter())))
    return MarkedExample(words, tuple(sorted(keys)), tuple(pairs))


class _WordByWord(AlignedEncoder):
    """Encoder of examples of any length whose words are one token each."""

    def encode(self, examples: Iterable[Example], skipped: Skipped) -> list[EncodedExample]:
        """Encode examples, with special tokens around their sentences."""
        encoded = []
        for example in examples:
            segments, words = [SPECIAL], [-1]
            for segment, sentence in enumerate(example.sentences):
                segments += [segment] * len(sentence.words) + [SPECIAL]
                words += [*range(len(sentence.words)), -1]
            cut = Cut(np.zeros(len(words), np.int64), None, np.array(segments), np.array(words))
            encoded.append(self._encoded(example, cut))
        return encoded


def attention_in(
    scores: HeadScores, again: Sequence[ExamplesAgain], options: AttentionOptions
) -> list[list[WordAttention]]:
    """Read the attention of heads in their examples, a list for each of ``again``.

    Each example is read once. ``options`` name the model. Raises ModelError for another model or
    tokenizer than was scored.
    """
    from headroles.models.attention.reader import open_reader  # which imports torch
    from headroles.passes.examples import passes_over
    from headroles.passes.loop import Budget

    encoder = _load_again(scores, options)
    examples = {
        row: example
        for of_head in again
        for row, example in zip(of_head.rows, of_head.examples, strict=True)
    }
    rows = sorted(examples)
    encoded = encoder.example_encoder().encode([examples[row] for row in rows], Counter())
    digests = [example.digest for example in encoded]
    if len(encoded) != len(rows) or digests != [
        scores.digests[row] if scores.digests else digest
        for row, digest in zip(rows, digests, strict=True)
    ]:
        raise ModelError(
            f"the tokenizer of {encoder.description.model} cuts words into other pieces than were "
            "scored; name the one that was used with `tokenizer`, or score again"
        )
    heads = [[one.head for one in again if row in one.rows] for row in rows]
    made: dict[tuple[int, int], WordAttention] = {}
    measure = scores.record.measure or WEIGHTS
    with open_reader(encoder.network, measure) as reader:

        def read(batch: ExampleBatch) -> dict[tuple[int, int], Float32Array]:
            read: dict[tuple[int, int], Float32Array] = {}

            def take(layer: int, weights: Tensor) -> None:
                for of_layer, head in heads[batch.indices[0]]:
                    if of_layer == layer:
                        read[layer, head] = weights[0, head].float().cpu().numpy().copy()

            reader.read(batch.inputs, take, [example.id for example in batch.examples])
            return read

        passes = passes_over(encoded, encoder, Budget.of(encoder.device, asked=1))
        for batch, weights in passes.over_all(read):  # one example each
            row, example = rows[batch.indices[0]], batch.examples[0]
            for k, one in enumerate(again):
                if row in one.rows:
                    reach = reader.reaches[one.head[0]]
                    made[k, row] = WordAttention(
                        example=example.id,
                        layer=one.head[0],
                        head=one.head[1],
                        role=one.role.id,
                        score=float(scores.of_head(one.head, one.role.id)[row]),
                        score_name=scores.score.name,
                        measure=measure,
                        **_between_words(example, weights[one.head], one.role, reach, encoder),
                    )
    return [[made[k, row] for row in one.rows] for k, one in enumerate(again)]


def _load_again(scores: HeadScores, options: AttentionOptions) -> LoadedEncoder:
    """Return the model that was scored. Raises ModelError for another one."""
    from headroles.models.attention.own import OWN
    from headroles.models.loading.encoder import load_encoder

    recorded, usual = scores.record.model, ModelOptions()
    advice = "name the model that was scored with `model`"
    if options.model is None:
        if recorded.model_type == OWN:
            raise ModelError(
                f"{recorded.model} that was scored is a {recorded.class_}, which results do not "
                "hold; pass it again as model, with its tokenizer"
            )
        as_scored = {
            name: getattr(recorded, name) or getattr(usual, name)
            for name in ("dtype", "revision", "tokenizer")
            if getattr(options, name) == getattr(usual, name)
        }
        options = replace(options, model=recorded.model or "", **as_scored)
    try:
        encoder = load_encoder(options.model, options)
    except ModelError as error:
        raise ModelError(f"{error}; or {advice}") from error
    now = encoder.description
    if now.weights_sha256 != recorded.weights_sha256:
        raise ModelError(
            f"{now.model} is not the model that was scored: its weights differ (scored: "
            f"{recorded.model} in {recorded.dtype}, now in {now.dtype}); {advice}, or score again"
        )
    return encoder


def _between_words(
    example: EncodedExample,
    weights: Float32Array,
    role: Role,
    reach: int | None,
    encoder: LoadedEncoder,
) -> dict[str, Any]:
    """Return the fields of `WordAttention` about words, from weights (N, N) between pieces."""
    assert role.sieve is not None
    cells = role.sieve.cells(PaddedBatch([example]))
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

    labels = _labels_of(attention)
    side, width = labels.side, labels.widest
    sizes = (width + 2 * _DEPTH, width + side + 1.2)
    figure = new_figure(sum(sizes), side + width + 1.3, "constrained")
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
