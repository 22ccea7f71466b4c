"""Measurements that claims are tested on, and their controls, each made when first asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.corpus import (
    BITEXT,
    DEFAULT_RELATIONS,
    AnyCorpus,
    Corpus,
    as_corpus,
    fold_subtype,
    prepared,
)
from headroles.errors import ModelSupportError
from headroles.models.heads.remaining import Head
from headroles.models.loading.encoder import Attending, Model, function_of, load_encoder
from headroles.models.options import ATTENTIONS, CROSS, LanguageOptions, TargetOptions
from headroles.options import Convert, Seed, split_names
from headroles.record import Record
from headroles.role_names import ENDS, role_of_arcs
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import score_heads
from headroles.scoring.scores import HeadScores
from headroles.studies import controls
from headroles.studies.alignment.align import AlignOptions, CountedPairs, count_pairs
from headroles.studies.alignment.evidence import AlignedPairs
from headroles.studies.claims.finding import DIFFERENCES, Halves, NotTestable, mean_beyond
from headroles.studies.classification.assignment import assign_roles
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.heads import clusters_in, second_half
from headroles.studies.importance.importance import ABSOLUTE, values_of
from headroles.studies.inspection.tokens import QUANTITIES, TokenOptions, read_corpus
from headroles.studies.removals import sorted_by, without_each
from headroles.tasks.options import CLASSIFICATION, TEXT_TO_TEXT, TaskOptions
from headroles.tasks.running import open_run
from headroles.testing.options import CorrectionOptions

RELATIONS = (("det",), ("obj", "dobj"), ("nmod:poss", "poss"))
"""Determiners, objects and possessives: their names in UD and in CLEAR."""
_USUAL = tuple(dict.fromkeys(name for names in DEFAULT_RELATIONS.values() for name in names))
N_CONTROLS = 5
"""Control models, and random sets of heads."""
CONTROL_SENTENCES = 300
"""Sentences that control models read at most; the model is compared with them on the same ones."""
ROWS = ("input", "output")
"""Rows of the steps that read target words, and of those that write them."""
FINE_TUNED = 0.5
"""Largest change of the weights of a fine-tuned copy, as a share of them."""


@dataclass(frozen=True, kw_only=True)
class ClaimOptions(CorrectionOptions, TokenOptions, TaskOptions, LanguageOptions):
    """The claims to test, and the options of their tests."""

    claims: Annotated[Sequence[str] | None, Convert(split_names)] = None
    """Claims to test, separated by commas: ids, as single-heads (docs/claims.md lists all), or
    MODULE:FUNCTION of your code; left out: all there are."""
    seed: Seed = 0
    """Seed of the controls."""
    probability_margin: Annotated[float, Meta(gt=0)] = 0.05
    """Smallest change of the probability of a task's right answers that matters.

    A model must lose more than this without any head, and a claim that heads can go is contradicted
    by a larger loss. Choose the margin before you see the data.
    """


class Measured:
    """Measurements of a model over a corpus, of its controls, of a second model and of tasks.

    ``model`` may be a function without arguments that makes the model each time it runs.
    """

    def __init__(
        self,
        model: Attending | Callable[[], Any],
        corpus: AnyCorpus,
        options: ClaimOptions,
        after: Attending | None = None,
        tasks: Sequence[str | Path] = (),
    ) -> None:
        self._model, self._corpus, self.options = model, as_corpus(corpus), options
        self._after, self._tasks, self.alpha = after, tuple(tasks), options.alpha

    @property
    def model(self) -> Any:
        """The model; controls are made anew each time, so that few are in memory."""
        return self._model() if isinstance(self._model, partial) else self._model

    @property
    def is_bitext(self) -> bool:
        """Whether the corpus is of sentences and their translations."""
        return self._corpus.source.get("format") == BITEXT

    @property
    def corpus(self) -> Corpus:
        """The sentences of one language. Raises NotTestable for a bitext."""
        if self.is_bitext:
            raise NotTestable("the corpus is a bitext; give sentences of one language")
        return self._corpus

    @property
    def record(self) -> Record:
        """The record of the first measurement."""
        if not self.is_bitext:
            return self.scores.record
        counted = self._counted["input"]
        return Record(model=counted.model, corpus=counted.corpus)

    # The controls: each is measured as the model is.

    @cached_property
    def few(self) -> Measured:
        """The same model over the sentences that control models read."""
        return Measured(self._model, few_documents(self.corpus, CONTROL_SENTENCES), self.options)

    @cached_property
    def permuted(self) -> list[Measured]:
        """Copies of the model with permuted weights."""
        return self._drawn(lambda seed: controls.with_permuted_weights(self._network, seed))

    @cached_property
    def shuffled(self) -> list[Measured]:
        """Copies of the model with heads shuffled over layers; none if its heads cannot move."""
        network = self._network
        try:
            controls.with_shuffled_heads(network, 0)
        except ModelSupportError:
            return []
        return self._drawn(lambda seed: controls.with_shuffled_heads(self._network, seed))

    @cached_property
    def reordered(self) -> Measured:
        """The same model over the corpus with permuted words."""
        corpus = controls.with_permuted_words(self.corpus, self.options.seed)
        reordered = Measured(self._model, corpus, self.options)
        if reordered.hits.documents != self.hits.documents:
            raise NotTestable("with permuted words other examples fit the model")
        return reordered

    @cached_property
    def noisy(self) -> list[Measured]:
        """Copies with as much noise in all layers as `later` has changes; it must be fine-tuned."""
        if self._after is None:
            raise NotTestable("pass a second model with `after`")
        after = load_encoder(self._after, self.options).model
        change = controls.change_of_weights(self._network, after)
        if not 0 < change <= FINE_TUNED:
            said = f"the weights of the second model differ by {change:.0%}"
            raise NotTestable(f"{said}; give a fine-tuned copy of the first")
        return self._drawn(lambda seed: controls.with_noise(self._network, change, seed))

    @property
    def _network(self) -> Any:
        return load_encoder(self.model, self.options).model

    def _drawn(self, make: Callable[[int], Any]) -> list[Measured]:
        seeds = range(self.options.seed, self.options.seed + N_CONTROLS)
        return [Measured(partial(make, seed), self.few.corpus, self.options) for seed in seeds]

    @cached_property
    def later(self) -> Measured:
        """The second model. Raises NotTestable if it reads other examples."""
        assert self._after is not None  # `noisy` is asked first
        after = Measured(self._after, self.corpus, self.options)
        if self.scores.digests != after.scores.digests:
            raise NotTestable("the second model reads other word pieces; give a fine-tuned copy")
        return after

    # Measurements over the corpus.

    @cached_property
    def scores(self) -> HeadScores:
        """Bias scores of the usual roles."""
        folded = set(map(fold_subtype, self._relations))
        return self._scored([name for name in _USUAL if name in folded], frequencies=None)

    @cached_property
    def hits(self) -> HeadScores:
        """First choices: one back, one ahead, arcs, rare words; and the confidence of heads."""
        names = dict.fromkeys(chain(_USUAL, *RELATIONS))
        full = [name for name in names if name in self._relations]
        roles = ["position", "rare", "confidence"]
        if full:
            roles.append("syntactic")
        return self._scored(full, score="hit", roles=roles, keep_subtypes=bool(full))

    def aligned(self, target_rows: str) -> AlignedPairs:
        """Return the errors of the links of words, by the rows of ``input`` or of ``output``.

        Raises NotTestable without a bitext whose words are aligned.
        """
        if not self.is_bitext:
            raise NotTestable("give a translation model, and a bitext whose words are aligned")
        pairs = self._counted[target_rows].pairs
        if not all(half.any() for half in pairs.halves):
            raise NotTestable("fewer than two pairs of the bitext are aligned")
        return pairs

    @cached_property
    def _counted(self) -> dict[str, CountedPairs]:
        options_by_rows = {
            rows: self.options.as_group(AlignOptions, target_rows=rows) for rows in ROWS
        }
        return {
            rows: count_pairs(self.model, self._corpus, each)
            for rows, each in options_by_rows.items()
        }

    @cached_property
    def across(self) -> FloatArray:
        """Quantities of tokens (pairs, layers, quantities) of the sources of a bitext.

        Raises NotTestable without one.
        """
        if not self.is_bitext:
            raise NotTestable("give a translation model, and a bitext")
        with prepared(self._corpus) as ready:
            reading = read_corpus(self.model, ready, self.options, self._across)
        return reading.values[:, :-1].astype(np.float64)

    @cached_property
    def permuted_across(self) -> list[Measured]:
        """Copies of the translation model with permuted weights, over few pairs of the bitext."""
        few = few_documents(self._corpus, CONTROL_SENTENCES)

        def make(seed: int) -> Any:
            network = load_encoder(self.model, self.options, of=self._across).model
            return controls.with_permuted_weights(network, seed)

        seeds = range(self.options.seed, self.options.seed + N_CONTROLS)
        return [Measured(partial(make, seed), few, self.options) for seed in seeds]

    @property
    def _across(self) -> TargetOptions:
        return self.options.as_group(TargetOptions, attention=CROSS)

    def _scored(self, relations: Sequence[str], roles: Any = None, **more: Any) -> HeadScores:
        more |= {"relations": tuple(relations) or "none", "roles": roles, "controls": ()}
        return score_heads(
            self.model, self.corpus, options=self.options.as_group(ScoreOptions, **more)
        )

    @cached_property
    def _relations(self) -> dict[str, int]:
        """Arcs of the corpus by full label."""
        with prepared(self.corpus) as ready:
            return dict(ready.relations)

    @cached_property
    def roles(self) -> RoleTable:
        """Which heads have which roles."""
        units = {name: getattr(self.options, name) for name in ("clusters", "duplicates")}
        return assign_roles(self.scores, **units)

    def has(self, role: str) -> BoolArray:
        """Tell which heads (layers, heads) have a role, or any role of a kind, as ``syntactic``."""
        role_ids = [role_id for role_id in self.roles.roles if f"{role_id}:".startswith(f"{role}:")]
        if not role_ids:
            raise NotTestable(f"no example has a score for the role {role}")
        having = {head for role in role_ids for head in self.roles.heads_with(role)}
        layers, heads = map(range, self.roles.record.shape)
        return np.array([[(layer, head) in having for head in heads] for layer in layers])

    def hits_of(self, role: str) -> FloatArray:
        """Return hits (examples, heads) of a role. Raises NotTestable if no example has it."""
        ids = self.hits.role_ids
        if role not in ids or not self.hits.counts[:, ids.index(role)].any():
            raise NotTestable(f"no example has a score for the role {role}")
        return self.hits.column(role).astype(np.float64)

    def hits_of_relation(self, names: Sequence[str]) -> FloatArray:
        """Return hits (examples, twice the heads) of a relation in both directions."""
        name = next((candidate for candidate in names if candidate in self._relations), None)
        if name is None:
            raise NotTestable(f"the corpus has no relation {' or '.join(names)}; pass a treebank")
        return np.concatenate([self.hits_of(role_of_arcs(name, end)) for end in ENDS], axis=1)

    @cached_property
    def halves(self) -> Halves:
        """The halves of the documents of ``hits``, their clusters, and the shape of the model."""
        hits = self.hits
        clusters = clusters_in(hits.clusters, self.options)
        return Halves(second_half(hits), clusters, (hits.n_layers, hits.n_heads))

    @cached_property
    def tokens(self) -> tuple[FloatArray, IndexArray | None]:
        """Quantities of tokens (examples, layers, quantities), and documents of examples."""
        with prepared(self.corpus) as ready:
            reading = read_corpus(self.model, ready, self.options)
            values = reading.values[:, :-1].astype(np.float64)
        return values, clusters_in(reading.clusters, self.options)

    def of_tokens(self, group: str, quantity: str) -> FloatArray:
        """Return a quantity (examples, layers) of a group of tokens, as in `TokenGroups`."""
        return self.tokens[0][..., QUANTITIES.index((group, quantity))]

    # Tasks.

    @cached_property
    def tasks(self) -> list[ClaimTask]:
        """Each task. Raises NotTestable without any, or if the model does not need its heads."""
        if not self._tasks:
            raise NotTestable("pass a task with `task`")
        if function_of(self._model):
            raise NotTestable("claims about tasks need a model, not its attention alone")
        options = self.options.as_group(TaskOptions)
        tasks = [ClaimTask(self.model, file, options) for file in self._tasks]
        for task in tasks:
            task.refuse_useless(self.options.probability_margin, self.alpha)
        return tasks

    @cached_property
    def translating(self) -> TranslationTask:
        """The task of a translation model. Raises NotTestable without one."""
        if not self._tasks:
            raise NotTestable("pass a task of sources and targets with `task`")
        return TranslationTask(self.model, self._tasks[0], self.options.as_group(TaskOptions))

    @cached_property
    def untrained_tasks(self) -> list[ClaimTask]:
        """Each task, for the same encoder with an untrained classifier."""
        return [task.untrained(self.options.seed) for task in self.tasks]


def few_documents(corpus: Corpus, most: int) -> Corpus:
    """Return whole documents that are evenly spread over the corpus, of ``most`` sentences."""
    with prepared(corpus) as ready:
        sizes = Counter(sentence.document for sentence in ready)
    chosen = frozenset(list(sizes)[:: -(-sizes.total() // most)])

    def read(skipped: Any) -> Iterator[Any]:
        return islice((each for each in corpus.read(skipped) if each.document in chosen), most)

    return replace(corpus, read=read)


class ClaimTask:
    """A model on a task with classes; its heads are chosen on the examples in ``first`` (n,)."""

    def __init__(self, model: Model, file: str | Path, options: TaskOptions) -> None:
        self._file, self._options = file, options
        self.run = open_run(model, file, options)
        if self.run.objective != CLASSIFICATION:
            raise NotTestable("claims about removed heads need a task with classes")
        self.heads: list[Head] = self.run.heads
        self.first: BoolArray = np.arange(len(self.run.task)) % 2 == 0

    def refuse_useless(self, margin: float, alpha: float) -> None:
        """Raise NotTestable for a model that is not shown to need its heads for this task."""
        outcomes = self.run.outcomes(without_each([[], self.heads], self.run.shape))
        classes = self.run.targets.astype(np.int64)
        is_right = outcomes.predictions[:, 0] == classes
        by_majority = classes == np.bincount(classes).argmax()
        better = mean_beyond(is_right * 1.0 - by_majority, 0.0, None, DIFFERENCES)
        if not better.shown.shows(alpha)[0]:
            shares = f"{is_right.mean():.3f} right, majority {by_majority.mean():.3f}"
            said = f"the model is not shown to beat the majority class ({shares})"
            raise NotTestable(f"{said}; give one trained for the task")
        right, without = np.exp(-outcomes.losses).T
        loss = mean_beyond(right - without, margin, None, DIFFERENCES)
        if not loss.shown.shows(alpha)[0]:
            raise NotTestable(
                f"without any head the probability of right answers falls by {loss.effect:.3f}, "
                f"not shown to be above the margin of {margin:g}: the model does not need its heads"
            )

    def falls(self, removed: Iterable[Iterable[Head]]) -> FloatArray:
        """Return the fall of the probability of the right answer (examples, sets) without heads."""
        outcomes = self.run.outcomes(without_each([[], *removed], self.run.shape))
        right = np.exp(-outcomes.losses)
        return np.asarray(right[:, :1] - right[:, 1:])

    @cached_property
    def one_by_one(self) -> FloatArray:
        """Mean falls (layers, heads) without each head, less the mean of its layer."""
        falls = np.full(self.run.shape, np.nan)
        indices = tuple(zip(*self.heads, strict=True))
        falls[indices] = self.falls([head] for head in self.heads).mean(axis=0)
        return np.asarray(np.nan_to_num(falls - np.nanmean(falls, axis=1, keepdims=True)))

    def least_important(self, share: float) -> list[Head]:
        """Return a share of the heads: the least important ones on half of the examples."""
        values = np.asarray(values_of(self.run.derivatives(), ABSOLUTE), dtype=np.float64)
        means = values[self.first].mean(axis=0).reshape(self.run.shape)
        return sorted_by(means, self.heads)[: round(share * len(self.heads))]

    def untrained(self, seed: int) -> ClaimTask:
        """Return the same encoder on the task with an untrained classifier: permuted weights."""
        network = self.run.encoder.model
        prefix = f"{network.base_model_prefix}."
        untrained = controls.with_permuted_weights(
            network, seed, lambda name: not name.startswith(prefix)
        )
        return ClaimTask(untrained, self._file, self._options)


class TranslationTask:
    """A translation model on a task; its heads are chosen on every other example, from the first.

    ``heads`` are those of each kind of attention.
    """

    def __init__(self, model: Model, file: str | Path, options: TaskOptions) -> None:
        self.run = open_run(model, file, options)
        if self.run.objective != TEXT_TO_TEXT:
            raise NotTestable("give a translation model, and its task of sources and targets")
        names = self.run.sites.rows
        self.heads: dict[str, list[Head]] = {
            kind: [head for head in self.run.heads if names.place(head[0])[0] == kind]
            for kind in ATTENTIONS
        }
        self.first: BoolArray = np.arange(len(self.run.task)) % 2 == 0

    def least_important(self, share: float) -> dict[str, list[Head]]:
        """Return a share of the heads of each kind: the least important ones on the first half."""
        values = np.asarray(values_of(self.run.derivatives(), ABSOLUTE), dtype=np.float64)
        means = values[self.first].mean(axis=0).reshape(self.run.shape)
        return {
            kind: sorted_by(means, heads)[: round(share * len(heads))]
            for kind, heads in self.heads.items()
        }

    def rises(self, removed: Iterable[Iterable[Head]]) -> FloatArray:
        """Return the rise of the mean loss (sets,) of the other half without each set of heads."""
        losses = self.run.outcomes(without_each([[], *removed], self.run.shape)).losses
        means = losses[~self.first].mean(axis=0)
        return np.asarray(means[1:] - means[0])
