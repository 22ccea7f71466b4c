"""Streams examples through an encoder and keeps one number per example, layer, head and role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles import storage
from headroles.contraction import SieveTensors, contract
from headroles.corpus import (
    DEFAULT_RELATIONS,
    PAIRINGS,
    Corpus,
    PreparedCorpus,
    Skipped,
    fold_subtype,
    make_examples,
    prepared,
)
from headroles.encoding import ExampleEncoder
from headroles.errors import CorpusError, ModelError, UsageError
from headroles.memory import HeldMemory
from headroles.models import AttentionReader, LoadedEncoder, load_encoder, open_reader
from headroles.provenance import new_provenance
from headroles.scores import HeadScores, ScoreBlock, ScoreWriter
from headroles.shared_controls import SharedControls, count_controls
from headroles.sieves import (
    SCORES,
    Controls,
    Sieves,
    build_sieves,
    find_controls,
    role_ids,
)
from headroles.tokens import EncodedExample, pad

ALL_RELATIONS = "all"
# Examples that are sorted by length together: enough for batches of about equal length, few enough
# that a small corpus needs as much memory as a large one.
WINDOW_EXAMPLES = 192
_LINEAR_WIDTH = 64
_MEMORY_SLACK = 64 * 2**20  # what is given back has to be asked for again
_BATCH_TOKENS = {"cpu": 1024, "cuda": 65536, "mps": 8192}

OnProgress = Callable[[int, int], None]
"""Called with the number of sentences done and the number of all sentences."""


@dataclass(frozen=True)
class ScoringOptions:
    """What is scored. ``relations`` None means the defaults of the corpus's label scheme.

    ``batch_tokens`` bounds the tokens of a batch, padding included; None fits it to the device.
    ``published_edge`` is described at `build_sieves`.
    """

    relations: tuple[str, ...] | str | None = None
    window: int = 2
    pairing: str = "adjacent"
    keep_subtypes: bool = False
    published_edge: bool = False
    batch_tokens: int | None = None
    score: str = "bias"
    beyond_offset: bool = True

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise UsageError(f"the score is {self.score!r}; it must be one of {', '.join(SCORES)}")
        if self.published_edge and self.score != "bias":
            raise UsageError("published numbers are bias scores; pass score='bias' (--score bias)")
        if self.window < 0:
            raise UsageError(f"the window is {self.window}; it must be 0 or more")
        if self.pairing not in PAIRINGS:
            raise UsageError(
                f"the pairing is {self.pairing!r}; it must be one of {', '.join(PAIRINGS)}"
            )
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise UsageError(f"batch_tokens is {self.batch_tokens}; it must be 1 or more")


def score_heads(
    model: str | Path | PreTrainedModel,
    corpus: Corpus,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    *,
    relations: Iterable[str] | str | None = None,
    window: int = 2,
    pairing: str = "adjacent",
    keep_subtypes: bool = False,
    published_edge: bool = False,
    batch_tokens: int | None = None,
    score: str = "bias",
    beyond_offset: bool = True,
    device: str = "auto",
    dtype: str = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    on_progress: OnProgress | None = None,
) -> HeadScores:
    """Score every head of an encoder on every role, over every example of a corpus.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode.
        corpus: from `read_conllu`, `read_text` or `read_pairs`.
        tokenizer: only if it does not come with the model.
        relations: labels to score, ``"all"`` for every one of the corpus, None for the defaults
            of its label scheme (``nsubj, obj, amod, advmod`` in UD).
        window: how far the sieve of ``local`` reaches to either side, in tokens.
        pairing: ``"adjacent"`` (two sentences an example) or ``"none"`` (one).
        keep_subtypes: whether ``nsubj:pass`` is a relation apart from ``nsubj``.
        published_edge: the band of the released notebooks, for comparison with them only.
        batch_tokens: most tokens in a batch, padding included.
        score: ``"bias"``, the published one, how many times as much attention as uniform; or
            ``"excess"``, the share of attention inside the sieve beyond uniform: 0 is uniform, 1
            is all of it, for every role and length.
        beyond_offset: whether each syntactic role gets its contrast with other pairs of words at
            the same offset.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        dtype: precision of the model; weights and scores are float32 throughout.
        revision: of the model on the hub.
        trust_remote_code: run code that comes with the model.
        on_progress: called with the number of sentences done and of all.

    Returns:
        The scores, NaN where an example has no score for a role: no arc of the relation, or one
        sentence only (``block``). Examples too long for the model are left out and counted.

    Raises:
        CorpusError: defective input, or a relation that the corpus does not have.
        ModelError, TokenizerError, UsageError: as `load_encoder`.
    """
    options = ScoringOptions(
        relations=relations
        if relations is None or isinstance(relations, str)
        else tuple(relations),
        window=window,
        pairing=pairing,
        keep_subtypes=keep_subtypes,
        published_edge=published_edge,
        batch_tokens=batch_tokens,
        score=score,
        beyond_offset=beyond_offset,
    )
    loading = {
        "device": device,
        "dtype": dtype,
        "revision": revision,
        "trust_remote_code": trust_remote_code,
    }
    with open_scoring(model, corpus, tokenizer, options, **loading) as run:
        return HeadScores.from_blocks(run.blocks(on_progress), run.roles, run.provenance)


def score_to_folder(
    run: ScoringRun, folder: Path, on_progress: OnProgress | None = None
) -> dict[str, Any]:
    """Write the scores of ``run`` into an existing folder as they come, and its provenance.

    For corpora of any size: memory does not grow with the number of examples. The files are
    those of `HeadScores.save`. Returns the provenance.
    """
    with ScoreWriter(folder, run.roles) as writer:
        for block in run.blocks(on_progress):
            writer.write(block)
    storage.write_json(folder / storage.RUN_FILE, run.provenance)
    return run.provenance


@contextmanager
def open_scoring(
    model: str | Path | PreTrainedModel,
    corpus: Corpus,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    options: ScoringOptions | None = None,
    **loading: Any,
) -> Iterator[ScoringRun]:
    """A scoring run that gives its results block by block.

    The corpus is read through, and its relations checked, before the model is loaded.
    ``loading`` goes to `load_encoder`; errors are those of `score_heads`.
    """
    options = options or ScoringOptions()
    with prepared(corpus) as ready:
        check_relations(ready, options)
        encoder = load_encoder(model, tokenizer, **loading)
        with open_reader(encoder.model) as reader:
            yield ScoringRun(encoder, reader, ready, options)


def check_relations(corpus: PreparedCorpus, options: ScoringOptions) -> tuple[str, ...]:
    """The relations to score, in order; defaults that the corpus does not have are left out.

    Raises CorpusError for a relation asked for by name that the corpus does not have, and where
    no defaults are known for its label scheme.
    """
    present: Counter[str] = Counter()
    for relation, count in corpus.relations.items():
        present[relation if options.keep_subtypes else fold_subtype(relation)] += count
    if options.relations is None:
        if corpus.scheme not in DEFAULT_RELATIONS:
            raise CorpusError(
                f"the parser's labels are neither UD nor CLEAR, so there are no default relations; "
                f"name some of: {', '.join(sorted(present))}"
            )
        return tuple(name for name in DEFAULT_RELATIONS[corpus.scheme] if present[name])
    if options.relations == ALL_RELATIONS:
        return tuple(sorted(present))
    asked = (options.relations,) if isinstance(options.relations, str) else options.relations
    for relation in asked:
        if not present[relation]:
            raise CorpusError(_absent(relation, present))
    return tuple(dict.fromkeys(asked))


def _absent(relation: str, present: Counter[str]) -> str:
    if fold_subtype(relation) != relation and present[fold_subtype(relation)]:
        return (
            f"relation {relation!r} has a subtype, and subtypes are folded; "
            "pass keep_subtypes=True (--keep-subtypes)"
        )
    if relation == ALL_RELATIONS:
        return f"{relation!r} stands for every relation; give it alone, or only names"
    near = get_close_matches(relation, present, n=1)
    hint = f"did you mean {near[0]!r}? It has" if near else "it has"
    return f"the corpus has no relation {relation!r}; {hint}: {', '.join(sorted(present))}"


class ScoringRun:
    """One encoder over one corpus. ``provenance`` is complete when the blocks are exhausted."""

    def __init__(
        self,
        encoder: LoadedEncoder,
        reader: AttentionReader,
        corpus: PreparedCorpus,
        options: ScoringOptions,
    ) -> None:
        self._encoder = encoder
        self._reader = reader
        self._corpus = corpus
        self._options = options
        self._skipped: Skipped = Counter(corpus.skipped)
        self._held_memory = HeldMemory(_MEMORY_SLACK)
        self._places: Counter[str] = Counter()
        self.relations = check_relations(corpus, options)
        self.roles = role_ids(self.relations, options.score, options.beyond_offset)
        self.n_sentences = corpus.n_sentences
        self.batch_tokens = options.batch_tokens or _BATCH_TOKENS.get(encoder.device.type, 4096)
        self.provenance: dict[str, Any] = new_provenance(
            model={**encoder.description, "family": reader.family.name},
            corpus=corpus.describe(),
            options={
                **asdict(options),
                "relations": list(self.relations),
                "device": encoder.device.type,
                "batch_tokens": self.batch_tokens,
            },
        )
        self.provenance |= {
            "roles": list(self.roles),
            "layers": reader.n_layers,
            "heads": reader.n_heads,
            "reaches": list(reader.reaches),
            "absent_relations": self._absent_defaults(),
        }

    def blocks(self, on_progress: OnProgress | None = None) -> Iterator[ScoreBlock]:
        """Scores of all examples in corpus order, some examples at a time."""
        example_encoder = ExampleEncoder(
            self._encoder.tokenizer,
            self._encoder.max_tokens,
            self.relations,
            self._options.keep_subtypes,
            self._encoder.takes_token_types,
        )
        examples = make_examples(self._corpus, self._options.pairing)
        n_scored = n_scores = sentences_done = 0
        seen: set[str] = set()
        while window := list(islice(examples, WINDOW_EXAMPLES)):
            encoded = example_encoder.encode(window, self._skipped)
            _refuse_repeats(encoded, seen)
            n_scored += len(encoded)
            sentences = sum(len(example.sentences) for example in window)
            report = partial(self._report, on_progress, sentences_done, sentences, len(encoded))
            if encoded:
                block = self._score(encoded, report)
                n_scores += int(np.count_nonzero(~np.isnan(block.values)))
                yield block
            sentences_done += sentences
        self.provenance["examples"] = n_scored
        self.provenance["scores"] = n_scores
        self.provenance["skipped"] = dict(self._skipped)
        self.provenance["controls"] = dict(self._places)
        if not n_scored:
            raise CorpusError(
                "no example could be scored: "
                + "; ".join(f"{count} {reason}" for reason, count in self._skipped.items())
            )

    def _absent_defaults(self) -> list[str]:
        """Default relations that the corpus does not have, if the defaults were asked for."""
        if self._options.relations is not None:
            return []
        defaults = DEFAULT_RELATIONS.get(self._corpus.scheme, ())
        return [relation for relation in defaults if relation not in self.relations]

    def _report(
        self, on_progress: OnProgress | None, before: int, sentences: int, examples: int, done: int
    ) -> None:
        """Tell of ``done`` of the ``examples`` that a window of so many ``sentences`` made."""
        if on_progress is not None:
            on_progress(before + sentences * done // examples, self.n_sentences)

    def _score(self, examples: list[EncodedExample], report: Callable[[int], None]) -> ScoreBlock:
        values = np.empty(
            (len(examples), self._reader.n_layers, self._reader.n_heads, len(self.roles)),
            dtype=np.float32,
        )
        counts = np.empty((len(examples), len(self.roles)), dtype=np.int64)
        lengths = np.array([len(example) for example in examples])
        by_length = batches_by_length(examples, self.batch_tokens)
        waiting = [self._batch(examples, rows) for rows in reversed(by_length)]
        shared = self._shared_controls(waiting)
        done = 0
        while waiting:
            batch = waiting.pop()
            try:
                values[batch.rows], counts[batch.rows] = self._score_batch(batch, shared)
            except torch.OutOfMemoryError:
                waiting += [self._batch(examples, rows) for rows in self._halve(batch)]
                continue
            done += len(batch.rows)
            report(done)
            self._held_memory.release()
        if shared is not None:
            shared.complete(values)
        counts[np.isnan(values).all(axis=(1, 2))] = 0
        return ScoreBlock(
            ids=[example.id for example in examples],
            documents=[example.document for example in examples],
            lengths=lengths,
            values=values,
            counts=counts,
            digests=[example.digest for example in examples],
        )

    def _batch(self, examples: list[EncodedExample], rows: list[int]) -> _Batch:
        """The ``examples`` at places ``rows``, which are to run together."""
        chosen = [examples[row] for row in rows]
        contrasted = self._options.beyond_offset and self.relations
        return _Batch(rows, chosen, find_controls(chosen) if contrasted else None)

    def _shared_controls(self, batches: Sequence[_Batch]) -> SharedControls | None:
        """For all examples that are read together; None if no contrasts are asked for."""
        controls = [batch.controls for batch in batches if batch.controls is not None]
        if not controls:
            return None
        self._places += count_controls(controls)
        rows = [batch.rows for batch in batches]
        return SharedControls(rows, controls, self._reader.n_layers, self._reader.n_heads)

    def _score_batch(
        self, batch: _Batch, shared: SharedControls | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Values (B, layers, heads, roles), and how much is behind them.

        The latter (B, roles) is that of the layers with the widest reach. To ``shared`` goes what
        contrasts lend and borrow.
        """
        reaches = self._reader.reaches
        sieves = self._sieves(batch, None if shared is None else shared.lacking)
        values, sums = self._contracted(batch, sieves)
        for layer, reach in enumerate(reaches):
            values[:, layer].swapaxes(1, 2)[sieves[reach].counts == 0] = np.nan
        if shared is not None:
            shared.lend(batch.rows, sums)
            for reach, of_reach in sieves.items():
                if of_reach.contrasts is not None:
                    alike = np.flatnonzero([other == reach for other in reaches])
                    shared.borrow(batch.rows, alike, of_reach.contrasts.borrowed)
        return values, np.max([of_reach.counts for of_reach in sieves.values()], axis=0)

    def _sieves(self, batch: _Batch, lacking: NDArray[np.int64] | None) -> dict[int | None, Sieves]:
        """The sieves by how far the attention of a layer reaches."""
        return {
            reach: build_sieves(
                batch.examples,
                len(self.relations),
                self._options.window,
                self._options.published_edge,
                reach,
                self._options.score,
                batch.controls,
                lacking,
            )
            for reach in dict.fromkeys(self._reader.reaches)
        }

    def _contracted(
        self, batch: _Batch, sieves: dict[int | None, Sieves]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Both results of `contract`, layer by layer (B, layers, ...)."""
        device, reaches = self._encoder.device, self._reader.reaches
        tensors = {reach: SieveTensors.of(sieves[reach], device) for reach in sieves}
        layers: list[tuple[Tensor, Tensor]] = []
        self._reader.read(
            collate(batch.examples, device, self._encoder.tokenizer.pad_token_id or 0),
            lambda layer, attention: layers.append(contract(attention, tensors[reaches[layer]])),
        )
        values, sums = (
            torch.stack(part, dim=1).cpu().numpy() for part in zip(*layers, strict=True)
        )
        if not np.isfinite(values).all():
            row, layer = np.argwhere(~np.isfinite(values))[0, :2]
            raise ModelError(
                f"attention of layer {layer} is not finite for example {batch.examples[row].id!r}; "
                f"run the model in float32 (it ran in {self._encoder.model.dtype})"
            )
        return values, sums

    def _halve(self, batch: _Batch) -> list[list[int]]:
        rows = batch.rows
        if len(rows) == 1:
            (example,) = batch.examples
            raise ModelError(
                f"memory ran out for the single example {example.id!r} of {len(example)} tokens; "
                "use a device with more memory"
            )
        torch.cuda.empty_cache()
        self.batch_tokens = max(1, self.batch_tokens // 2)
        middle = len(rows) // 2
        return [rows[middle:], rows[:middle]]


@dataclass(frozen=True)
class _Batch:
    """Examples that run together, their places among those read together, their controls."""

    rows: list[int]
    examples: list[EncodedExample]
    controls: Controls | None


def _refuse_repeats(examples: list[EncodedExample], seen: set[str]) -> None:
    """Raise CorpusError for an id that is in ``seen``; add those of ``examples`` to it."""
    for example in examples:
        if example.id in seen:
            raise CorpusError(
                f"two examples would be called {example.id!r}; rename their sentences so that "
                "ids joined by + stay different"
            )
        seen.add(example.id)


def batches_by_length(examples: list[EncodedExample], batch_tokens: int) -> list[list[int]]:
    """Places of ``examples`` in batches of about equal length, the longest first.

    A batch holds at most ``batch_tokens`` tokens, padding included; of examples longer than
    ``_LINEAR_WIDTH`` fewer, as attention then outweighs what is linear in the tokens. A single
    example may exceed the bound. With the longest first, what they needed serves all others.
    """
    batches: list[list[int]] = []
    room = 0.0
    for row in sorted(range(len(examples)), key=lambda row: -len(examples[row])):
        if room < 1:
            width = len(examples[row])
            room = batch_tokens / (width * max(1.0, width / _LINEAR_WIDTH))
            batches.append([])
        batches[-1].append(row)
        room -= 1
    return batches


def collate(examples: list[EncodedExample], device: torch.device, pad_id: int) -> dict[str, Tensor]:
    """Inputs of the model, padded at the end to the longest example."""
    input_ids = pad([example.input_ids for example in examples], pad_id)
    lengths = torch.tensor([len(example) for example in examples])
    inputs = {
        "input_ids": torch.from_numpy(input_ids),
        "attention_mask": (torch.arange(input_ids.shape[1]) < lengths[:, None]).long(),
    }
    type_ids = [example.token_type_ids for example in examples]
    if all(ids is not None for ids in type_ids):
        padded = pad([ids for ids in type_ids if ids is not None], 0)
        inputs["token_type_ids"] = torch.from_numpy(padded)
    return {name: tensor.to(device, non_blocking=True) for name, tensor in inputs.items()}
