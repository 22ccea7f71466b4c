"""Runs of scoring: one number per example, layer, head and role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import structs

from headroles.corpus import (
    BITEXT,
    AnyCorpus,
    Corpus,
    PreparedCorpus,
    Sentence,
    Skipped,
    as_corpus,
    count_arcs,
    make_examples,
    prepared,
)
from headroles.encoding import TOO_LONG, EncodedExample, tokenizer_failures
from headroles.errors import CorpusError, UsageError
from headroles.models.attention.functions import SavedAttention
from headroles.models.attention.reader import AttentionReader, open_reader
from headroles.models.attention.stored import sentences_of_batch
from headroles.models.loading.encoder import Attending, LoadedModel, load_encoder
from headroles.models.options import CROSS, DECODER, TargetOptions
from headroles.options import fields_of, takes
from headroles.passes.loop import Budget
from headroles.passes.options import shown_in_notebooks
from headroles.record import PieceCounts, Record, RecordedCorpus, RecordedPart, versions
from headroles.role_names import GROUP
from headroles.roles import (
    BASIC,
    LISTED,
    SCORES,
    Role,
    absent_defaults,
    check_offsets,
    choose_relations,
    choose_roles,
    classes_of_rules,
    is_position,
    with_class_rules,
    with_other_trees,
)
from headroles.scoring.options import HALF, TREES, CorpusPart, ScoreOptions, is_read_as_bitext
from headroles.scoring.parts import ALONE, Sharing
from headroles.scoring.run_notes import advice_on_length
from headroles.scoring.scores import HeadScores, describe_scores, write_scores
from headroles.scoring.shares import Share, put_together
from headroles.scoring.windows import (
    WINDOW_BYTES,
    WINDOW_EXAMPLES,
    Window,
    WindowScorer,
    one_ahead,
    windows_of,
)
from headroles.storage import OpenParts, plain
from headroles.wording import listed, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase


@takes(ScoreOptions)
def score_heads(model: Attending, corpus: AnyCorpus, options: ScoreOptions) -> HeadScores:
    """Return the scores of every head of an encoder for every role and example of a corpus.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode; or, with a ``tokenizer``, a
            function from the pieces of a batch to attention, as in ``docs/own-attention.md``.
        corpus: from `read_conllu`, `read_text`, `read_pairs` or `make_corpus`; or the path of a
            treebank, or a list of spaCy's documents, of triples or of `Sentence`.
        options: keyword arguments, described below.

    Returns:
        The scores. An example without an arc of the relation, or without a second sentence
        (``block``), has no score for the role: NaN. Examples that are too long for the model are
        skipped and counted.

    Raises:
        CorpusError: defective input, or a relation that the corpus does not have.
        ModelError, TokenizerError, UsageError: as `load_encoder`.

    >>> import numpy as np
    >>> from headroles import SavedAttention, make_corpus
    >>> corpus = make_corpus([(("Dogs", "bark"), (1, -1), ("nsubj", "root"))])
    >>> uniform = np.full((1, 2, 4, 4), 1 / 4)  # one layer of two heads, four pieces
    >>> saved = SavedAttention({"tree-1": uniform}, {"tree-1": [None, 0, 1, None]})
    >>> scores = score_heads(saved, corpus, roles="syntactic", relations="nsubj", pairing="none")
    >>> scores.of_head((0, 1), "nsubj")  # uniform attention has a bias score of 1
    array([1.], dtype=float32)
    """
    with open_scoring(model, corpus, options) as run:
        return run.scores()


@dataclass(frozen=True, kw_only=True)
class SavedOptions(ScoreOptions):
    """Options of scoring saved attention, in which every sentence is an example by default."""

    title: ClassVar[str] = "Roles"

    pairing: Literal["adjacent", "none"] = "none"
    """Whether two adjacent sentences make an example.

    A pair has one array, named by both sentence ids joined by a plus sign.
    """


SavedArrays: TypeAlias = "Sequence[Any] | Mapping[str, Any] | NDArray[Any] | Tensor | str | Path"
"""Attention of sentences, or the file that holds it."""
WordsOfPieces: TypeAlias = (
    "Sequence[Any] | Mapping[str, Any] | PreTrainedTokenizerBase | str | Path"
)
"""The word of each piece of sentences, or the tokenizer that knows it."""


@takes(SavedOptions)
def score_attention(
    arrays: SavedArrays, sentences: AnyCorpus, alignment: WordsOfPieces, options: SavedOptions
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
    if corpus.source.get("format") == BITEXT:
        options = replace(options, pairing="adjacent")
    words: Any = alignment
    if not callable(alignment):  # no tokenizer
        words = _by_id(_of_sentences(alignment), corpus, "alignment")
        if corpus.source.get("format") == BITEXT and words is not alignment:
            words = _words_of_sides(words, corpus)
    arrays = sentences_of_batch(arrays, len(_ids_in(corpus)))
    return score_heads(
        SavedAttention(_by_id(arrays, corpus, "arrays"), words), corpus, options=options
    )


def _words_of_sides(by_pair: Mapping[str, Any], corpus: Corpus) -> dict[str, Any]:
    """Return the words of pieces by the ids of sources and targets. Raises UsageError."""
    words: dict[str, Any] = {}
    for pair in make_examples(corpus, "adjacent"):
        of_pair = by_pair[pair.id]
        if not isinstance(of_pair, Sequence) or len(of_pair) != len(pair.sentences):
            raise UsageError(
                f"the alignment of {pair.id!r} is {shortened(repr(of_pair))}; give the words of "
                "the pieces of its source, and those of the rows of its target"
            )
        words |= zip((sentence.id for sentence in pair.sentences), of_pair, strict=True)
    return words


def _of_sentences(encoding: Any) -> Any:
    """Return the words of pieces in each sentence of a tokenizer's encoding; other values as is."""
    if not callable(getattr(encoding, "word_ids", None)):
        return encoding
    with tokenizer_failures("the encoding does not know its words"):
        return [encoding.word_ids(row) for row in range(len(encoding["input_ids"]))]


def _by_id(items: Any, corpus: Corpus, name: str) -> Any:
    """Turn a sequence in the order of the sentences into a mapping from their ids.

    Mappings, paths and other values are returned as they are. Raises UsageError.
    """
    if isinstance(items, Mapping | str | Path):
        return items
    if not isinstance(items, Sequence) and not hasattr(items, "shape"):
        raise UsageError(
            f"the {name} are a {type(items).__name__}; give a sequence with one for each sentence, "
            "or a mapping from the ids of the sentences"
        )
    ids = _ids_in(corpus)
    if len(items) != len(ids):
        raise UsageError(
            f"there are {len(ids)} sentences, and {len(items)} entries in the {name}; give one for "
            "each sentence"
        )
    return dict(zip(ids, items, strict=True))


def _ids_in(corpus: Corpus) -> list[str]:
    """Return the ids of all sentences of a corpus; of a bitext those of its pairs."""
    if corpus.source.get("format") == BITEXT:
        return [pair.id for pair in make_examples(corpus, "adjacent")]
    return [sentence.id for sentence in corpus]


@contextmanager
def open_scoring(
    model: Attending,
    corpus: AnyCorpus,
    options: ScoreOptions,
    sharing: Sharing = ALONE,
) -> Iterator[ScoringRun]:
    """Open a scoring run that yields its results block by block.

    The corpus is read, and its relations checked, before the model is loaded. ``sharing`` is that
    of `ScoringRun`. Errors are those of `score_heads`.
    """
    with shown_in_notebooks(options) as options, prepared(as_corpus(corpus)) as ready:
        if ready.record.format == "arcs" and options.arcs == BASIC:
            options = replace(options, arcs=LISTED)
        options = _for_targets(options, ready)
        chosen = _choose(options, ready, options.attention == DECODER)
        encoder = load_encoder(model, options, of=options.as_group(TargetOptions))
        with open_reader(encoder.attention, options.measure) as reader:
            if reader.is_causal and options.attention != DECODER:  # as the trial found
                chosen = _choose(options, ready, is_causal=True)
            yield ScoringRun(encoder, reader, ready, options, sharing, chosen)


OF_BITEXTS = {
    CROSS: ("aligned", "delimiter", "position", "punctuation"),
    DECODER: ("local", "delimiter", "first", "duplicate", "induction"),
}
"""Roles that are scored by default, by the attention to targets."""


def _for_targets(options: ScoreOptions, corpus: PreparedCorpus) -> ScoreOptions:
    """Return the options with the defaults of bitexts. Raises errors as `is_read_as_bitext`."""
    if not is_read_as_bitext(corpus.record, options.attention, options.pairing):
        return options
    roles = options.roles or OF_BITEXTS[options.attention]
    if options.attention == CROSS or not corpus.relations:
        return replace(options, relations=(), roles=roles)
    return replace(options, roles=options.roles or (*roles, GROUP))


def _arcs_in_view(
    options: ScoreOptions, corpus: PreparedCorpus
) -> tuple[Counter[str], Counter[str], Iterable[Sentence]]:
    """Return counts of arcs, by label and by class of the dependent, and the sentences with them.

    The decoder of an encoder-decoder sees those of targets.
    """
    if options.attention != DECODER:
        return corpus.relations, corpus.parts, corpus
    targets = _targets_in(corpus) if corpus.relations else []  # else they have no trees
    counts = count_arcs(targets)
    return counts.relations, counts.parts, targets


def _targets_in(bitext: Iterable[Sentence]) -> list[Sentence]:
    """Return the targets of a bitext, each of which follows its source."""
    return [sentence for sentence in bitext if sentence.position % 2]


_WORDS = {
    CROSS: {
        "delimiter": "special tokens of the source",
        "delimiter:cls": "the beginning of the source",
        "delimiter:sep": "the end of the source",
        "first": "the first token of the source",
        "self": "the token at the same place",
        "punctuation": "punctuation of the source",
    },
    DECODER: {
        "delimiter": "special tokens of the target",
        "delimiter:cls": "the beginning of the target",
        "delimiter:sep": "the end of the target",
        "first": "the first token of the target",
        "punctuation": "punctuation of the target",
    },
}
"""Words of roles whose keys are in a source or in a target, by the attention."""


def _words_of(role: Role, attention: str) -> str:
    """Return the words of a role; across, places are along the diagonal."""
    if attention == CROSS and is_position(role.id):
        return f"{role.words} from the diagonal"
    return _WORDS.get(attention, {}).get(role.id, role.words)


_Chosen: TypeAlias = tuple[tuple[str, ...], tuple[Role, ...], int]
"""Relations, roles, and the number of sentences without a tree of another sentence."""


def _choose(options: ScoreOptions, corpus: PreparedCorpus, is_causal: bool) -> _Chosen:
    """Choose relations and roles, of a decoder if ``is_causal``.

    Raises errors where the corpus lacks what they need.
    """
    arcs, parts, sentences = _arcs_in_view(options, corpus)
    relations = choose_relations(options, corpus.record.scheme, arcs, parts, sentences)
    score, is_across = SCORES[options.score], options.attention == CROSS
    roles = choose_roles(options, relations, score, corpus, is_causal, is_across)
    roles = tuple(replace(role, words=_words_of(role, options.attention)) for role in roles)
    options.check_roles(roles)
    if score.of_first_choice:
        roles = with_class_rules(roles, sentences, options.classes, is_across)
    controlled = roles if TREES in options.scored_controls else ()
    lenders = _targets_in(sentences) if is_across and controlled else sentences
    controls, n_without_tree = with_other_trees(controlled, lenders)
    return relations, roles + controls, n_without_tree


@dataclass
class _Work:
    """A share of the run, a whole window or not, with the names of what its processes score of it.

    Of a divided window, ``places`` are those of the examples of the share in the window, and
    ``places_of_shares`` those of each process. The window itself is not kept.
    """

    is_whole: bool
    names: list[str]
    places: list[int] = field(default_factory=list)
    places_of_shares: list[list[int]] = field(default_factory=list)


Fetch: TypeAlias = Callable[[], HeadScores]
"""A function that waits for the scores of a share, or reads those that are saved."""
Launch: TypeAlias = Callable[[], Fetch]
"""A function that starts the work on a share."""

_OPTIONS = frozenset(field.name for field in fields_of(ScoreOptions))
_VERSIONS = ("headroles", "torch", "transformers", "tokenizers", "numpy")


class ScoringRun:
    """One encoder over one corpus: its `blocks`, then its record (`make_record`)."""

    def __init__(
        self,
        encoder: LoadedModel,
        reader: AttentionReader,
        corpus: PreparedCorpus,
        options: ScoreOptions,
        sharing: Sharing = ALONE,
        chosen: _Chosen | None = None,
    ) -> None:
        """Open a run; ``sharing`` says where windows are saved and which processes score them.

        ``chosen`` are relations and roles, as `_Chosen`, if they are chosen already.
        """
        self._sharing = sharing
        self._encoder = encoder
        self._reader = reader
        self.corpus = corpus
        self.options = options
        chosen = chosen or _choose(options, corpus, reader.is_causal)
        self.relations, self.roles, self._n_without_tree = chosen
        check_offsets((role.id for role in self.roles), encoder.max_tokens)
        if options.columns and reader.is_causal:
            raise UsageError(
                "`columns` compares tokens by the attention that others give them, which needs "
                "tokens that see one another; in this model each token sees itself and earlier "
                "ones: omit `columns`"
            )
        budget = Budget.for_device(encoder.device, options.batch_tokens)
        self.batch_tokens = budget.tokens
        self.score = SCORES[options.score]
        self.scorer = WindowScorer(encoder, reader, self.roles, self.score, budget)
        self._pieces = encoder.example_encoder()
        self._work: list[_Work] = []
        self._counts = Record()
        """Counts of the examples scored so far, and of those that were skipped in cutting them."""
        self._sizes: list[int] = []
        """Numbers of examples of the windows scored so far."""

    def scores(self) -> HeadScores:
        """Return the scores of all examples, with their record."""
        blocks = list(self.blocks())
        return HeadScores.joined(blocks, self.make_record())

    def write(self, folder: Path) -> HeadScores:
        """Write all scores into an existing folder as they come; return them without examples."""
        is_half = self.options.precision == HALF
        return write_scores(folder, self.blocks(), is_half, self.make_record)

    def blocks(self) -> Iterator[HeadScores]:
        """Yield the scores of all examples in corpus order, a window at a time.

        Raises CorpusError at the end if there is no example, or none with a score.
        """
        for scores in self._scored():
            self._counts = self._counts.plus(scores.record)
            self._sizes.append(scores.n_examples)
            if scores.n_examples:
                yield scores
        self._check_scored()

    def make_record(self) -> Record:
        """Make the record of the run, once its blocks are exhausted.

        Raises UsageError for a part of a corpus without a batch.
        """
        facts = {
            **describe_scores(self.roles, self.score),
            "absent_relations": absent_defaults(
                self.options, self.corpus.record.scheme, self.relations
            ),
            "without_other_tree": self._n_without_tree,
        }
        if rules := classes_of_rules(self.roles):
            facts["class_rules"] = rules
        if self._sharing.corpus_part is not None:
            facts["part"] = plain(self._describe(self._sharing.corpus_part))
        return Record.now(
            facts,
            kind=HeadScores.kind,
            model=structs.replace(self._encoder.description, **self._reader.description),
            corpus=structs.replace(self.corpus.record, skipped=dict(self.corpus.skipped)),
            options=self._recorded_options(),
        ).plus(self._counts)

    def _recorded_options(self) -> dict[str, Any]:
        """Return the options of scores, with what this run made of them."""
        options = self.options.record()
        return {
            **{name: value for name, value in options.items() if name in _OPTIONS},
            "relations": list(self.relations),
            "device": self._encoder.device.type,
            "batch_tokens": self.batch_tokens,
        }

    def _describe(self, part: CorpusPart) -> RecordedPart:
        """Describe a part of a corpus. Raises UsageError for one without a batch of the corpus."""
        skipped, sizes = dict(self.corpus.skipped), self._sizes
        if not any(sizes) and not self._counts.corpus.skipped:
            raise UsageError(
                f"part {part.number} of {part.of} is empty because the corpus is too small; "
                "divide the corpus into fewer parts"
            )
        n_whole = sum(work.is_whole for work in self._work)
        return RecordedPart(
            **vars(part),
            sizes=list(sizes[:n_whole]),
            divided=[work.places for work in self._work[n_whole:]],
            skipped=skipped,
            plan=self._settings(),
        )

    def assist(self) -> None:
        """Score and save this process's windows of a run that the first process finishes.

        Raises StorageError if this process would score differently from that process.
        """
        for _ in self._score(self._sharing.open(self._settings)):
            pass
        self._sharing.wait()

    def _scored(self) -> Iterator[HeadScores]:
        """Yield the scores of each window of the run, in corpus order."""
        saved = self._sharing.open(self._settings)
        scored = self._score(saved)
        if saved is None or self._sharing.team is None:
            yield from scored
            return
        for _ in scored:
            pass
        self._sharing.wait()
        for work in self._work:
            shares = [self._read(saved, name) for name in work.names]
            yield put_together(shares, work.places_of_shares)

    def _score(self, saved: OpenParts | None) -> Iterator[HeadScores]:
        """Yield the scores of the shares of this process, which are saved.

        A share is fetched once the next one is launched, so that a device need not wait.
        """
        waiting: Fetch | None = None
        for launch in one_ahead(self._encoded(saved)):
            fetch = launch()
            if waiting is not None:
                yield waiting()
            waiting = fetch
        if waiting is not None:
            yield waiting()

    def _encoded(self, saved: OpenParts | None) -> Iterator[Launch]:
        """Cut each share of this process into word pieces; yield the function that launches it.

        Every process cuts divided windows, whose batches follow from the lengths of all examples.
        """
        windows = windows_of(self.corpus, self.options.pairing, self._n_examples_at_once)
        for share, taken in self._sharing.of_processes(self._sharing.of_run(windows)):
            shares, mine = [one for one in taken if one], taken[self._sharing.index]
            work = _Work(not share.divisions, [one.name for one in shares])
            self._work.append(work)
            is_divided = any(one.divisions for one in shares)
            is_saved = mine is not None and saved is not None and mine.name in saved
            if is_divided or not (is_saved or mine is None):
                examples, cut = self._cut(share.window)
                batches = Budget(self.batch_tokens).batches(list(map(len, examples)))
            if is_divided:
                work.places = share.places(batches)
                work.places_of_shares = [one.places(batches) for one in shares]
            if saved is not None and mine is not None and is_saved:
                yield self._launch_reading(saved, mine.name)
            elif mine is not None:
                counts = cut if mine.is_first else Record()
                yield partial(self._launch, mine, examples, batches, counts, saved)

    def _cut(self, window: Window) -> tuple[list[EncodedExample], Record]:
        """Cut a window into word pieces; return its examples, and counts of pieces and skips."""
        skipped: Skipped = Skipped()
        self._pieces.counts.clear()
        examples = self._pieces.encode(window.examples, skipped)
        pieces = PieceCounts(**self._pieces.counts) if self._pieces.counts else None
        return examples, Record(corpus=RecordedCorpus(skipped=dict(skipped), pieces=pieces))

    @property
    def _n_examples_at_once(self) -> int:
        """Most examples of a window."""
        bytes_each = 4 * self._reader.n_layers * self._reader.n_heads * len(self.roles)
        return max(1, min(WINDOW_EXAMPLES, WINDOW_BYTES // bytes_each))

    def _launch(
        self,
        share: Share,
        examples: list[EncodedExample],
        batches: Sequence[list[int]],
        cut: Record,
        saved: OpenParts | None,
    ) -> Fetch:
        """Run the encoder; return the function that waits for the scores, and saves them.

        ``examples`` and ``batches`` are those of the whole window. ``cut`` counts its word pieces,
        and what was skipped in cutting it.
        """
        places, window = share.places(batches), share.window
        index = {place: k for k, place in enumerate(places)}
        own = [[index[place] for place in batch] for batch in share.batches_of(batches)]

        def report(done: int) -> None:
            if self.options.on_progress is not None:
                sentences = window.first + window.n_sentences * done // len(places)
                self.options.on_progress(sentences, self.corpus.record.sentences)

        arrive = self.scorer.launch([examples[place] for place in places], report, cut, own)

        def fetch() -> HeadScores:
            scores = arrive()
            if self.options.precision == HALF:
                scores = scores.rounded()
            if saved is not None:
                saved.write(share.name, scores.encoded())
            return scores

        return fetch

    def _launch_reading(self, saved: OpenParts, name: str) -> Launch:
        """Return the function that has nothing to start, as the scores of the share are saved."""
        return lambda: partial(self._read, saved, name)

    def _read(self, saved: OpenParts, name: str) -> HeadScores:
        """Return the saved scores of a share. Raises StorageError if none are saved."""
        shape = self._reader.n_layers, self._reader.n_heads
        form = HeadScores.without_examples(shape, self.roles, self.score)
        return saved.read(name, form.decoded)

    def _settings(self) -> dict[str, Any]:
        """Return all that results of windows depend on.

        Files and folders are among them by content, not by path; a user's own roles by their ids
        alone.
        """
        corpus, options = self.corpus, self._recorded_options()
        # the roles describe the file of frequencies by its content, so its path does not matter
        options.pop("frequencies", None)
        used = versions()
        of_corpus = {name: plain(corpus.record)[name] for name in ("sentences", "spacing")}
        return {
            "corpus": {**of_corpus, "digest": corpus.content_digest()},
            **self._encoder.identity,
            "options": options,
            "roles": {role.id: plain(role.to_record()) for role in self.roles},
            "examples of a part": self._n_examples_at_once,
            "versions": {name: used[name] for name in _VERSIONS},
        }

    def _check_scored(self) -> None:
        """Raise CorpusError if there is no example, or none with a score.

        Raises UsageError for a part of a corpus without a batch.
        """
        if not self._counts.corpus.examples:
            record = self.make_record()
            self._sharing.forget()
            skipped = record.corpus.skipped
            raise CorpusError(
                "no example could be scored: "
                + "; ".join(f"{count} {reason}" for reason, count in skipped.items())
                + (advice_on_length(record) if TOO_LONG in skipped else "")
            )
        if not self._counts.facts["scores"] and self._sharing.corpus_part is None:
            self._sharing.forget()
            raise CorpusError(
                f"no example has a score for {listed([role.id for role in self.roles])}; choose "
                "other `roles` or another corpus"
            )
