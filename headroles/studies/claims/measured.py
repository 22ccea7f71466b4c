"""What claims are tested on: each measurement made once, when the first claim asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles import storage
from headroles.corpus import DEFAULT_RELATIONS, Corpus, as_corpus, fold_subtype, prepared
from headroles.models import Attending, load_encoder, open_reader
from headroles.models.loading import is_own
from headroles.models.sites import find_sites
from headroles.roles.frequencies import count_words
from headroles.scoring import HeadScores, ScoreOptions, score_heads
from headroles.storage.parts import decode_arrays, encode_arrays
from headroles.studies.claims.answers import HeadAnswers, ScoredRoles
from headroles.studies.claims.claim import NotTestable
from headroles.studies.claims.kinds import jackknifed
from headroles.studies.claims.likeness import divergences_of
from headroles.studies.claims.options import ClaimOptions
from headroles.studies.claims.task_losses import TaskLosses
from headroles.studies.heads import clusters_in
from headroles.studies.offsets import second_half
from headroles.studies.options import TokenOptions
from headroles.studies.token_reading import QUANTITIES, TokenReading
from headroles.testing import TestOptions

FloatArray = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

OBJECTS, DETERMINERS, POSSESSIVES = ("obj", "dobj"), ("det",), ("nmod:poss", "poss")
"""Names that relations have in UD and in CLEAR."""


class Measured:
    """A model over a corpus; a second model over the same corpus, and tasks, if there are any.

    With a folder ``kept`` what is measured is kept there, and taken from there by the next run;
    with ``after_kept`` so is what is measured of the second model.
    """

    def __init__(
        self,
        model: Attending,
        corpus: Corpus,
        options: ClaimOptions,
        after: Attending | None = None,
        tasks: Sequence[str | Path] = (),
        kept: Path | None = None,
        after_kept: Path | None = None,
    ) -> None:
        self.model, self.corpus, self.options = model, as_corpus(corpus), options
        self._after, self._tasks = after, tuple(tasks)
        self._kept, self._after_kept = kept, after_kept

    @property
    def alpha(self) -> float:
        """The level of tests and intervals."""
        return self.options.alpha

    @cached_property
    def relations(self) -> dict[str, int]:
        """Arcs of the corpus by full label."""
        with prepared(self.corpus) as ready:
            return dict(ready.relations)

    @cached_property
    def scored(self) -> ScoredRoles:
        """Bias scores of the usual roles, with the answers they lead to."""
        folded = {fold_subtype(name) for name in self.relations}
        defaults = dict.fromkeys(name for own in DEFAULT_RELATIONS.values() for name in own)
        relations = tuple(name for name in defaults if name in folded)
        asked = self.options.part(
            ScoreOptions, relations=relations or "none", roles=None, frequencies=None
        )
        scores = self._scores("bias", asked)
        return ScoredRoles(scores, self.options.part(TestOptions, correction="fdr_bh"))

    @property
    def answers(self) -> HeadAnswers:
        """Which heads have which roles."""
        return self.scored.all

    @cached_property
    def hits(self) -> HeadScores:
        """First choices: one back, one ahead, arcs, rare words; and the confidence of heads."""
        named = [*DEFAULT_RELATIONS["ud"], *DEFAULT_RELATIONS["clear"]]
        named += [*OBJECTS, *DETERMINERS, *POSSESSIVES]
        relations = tuple(name for name in dict.fromkeys(named) if name in self.relations)
        roles = ("position", "rare", "confidence", *(("syntactic",) if relations else ()))
        asked = self.options.part(
            ScoreOptions,
            score="hit",
            relations=relations or "none",
            roles=roles,
            keep_subtypes=bool(relations),
        )
        return self._scores("hit", asked)

    def hits_of(self, role: str) -> FloatArray:
        """(examples, heads) of a role. Raises NotTestable for one that no example has."""
        if (
            role not in self.hits.role_ids
            or not self.hits.counts[:, self.hits.role_ids.index(role)].any()
        ):
            raise NotTestable(f"no example has a score for the role {role}")
        return self.hits.column(role).astype(np.float64)

    def relation(self, names: Sequence[str]) -> str:
        """The name that a relation has in this corpus. Raises NotTestable if it has none."""
        for name in names:
            if name in self.relations:
                return name
        raise NotTestable(f"the corpus has no relation {' or '.join(names)}; take a treebank")

    @property
    def shape(self) -> tuple[int, int]:
        """Layers, and heads of each."""
        return self.hits.n_layers, self.hits.n_heads

    @property
    def second_half(self) -> NDArray[np.bool_]:
        """(examples,) of ``hits``: those of the second half of the documents."""
        return second_half(self.hits)

    @property
    def hit_clusters(self) -> NDArray[np.intp] | None:
        """(examples,) of ``hits``: the document of each."""
        return clusters_in(self.hits.documents, self.options)

    @cached_property
    def tokens(self) -> tuple[NDArray[np.float32], NDArray[np.intp] | None]:
        """What tokens of each kind get (examples, layers + 1, quantities), and documents."""

        def make() -> Arrays:
            asked = self.options.part(TokenOptions)
            with prepared(self.corpus) as ready:
                counts = count_words(asked, ready)
                reading = TokenReading(load_encoder(self.model, asked), ready, counts, asked)
                values = reading.values()
            names = np.unique(reading.documents, return_inverse=True)[1]
            return {"values": values, "documents": names}

        found = self._arrays("tokens", make)
        return found["values"], clusters_in(list(map(str, found["documents"])), self.options)

    def share_of_tokens(self, group: str, quantity: str) -> FloatArray:
        """(examples, layers): a quantity of a group of tokens, as in `TokenGroups`."""
        values = self.tokens[0][:, :-1, QUANTITIES.index((group, quantity))]
        return values.astype(np.float64)

    @cached_property
    def divergences(self) -> tuple[FloatArray, IntShape]:
        """Jensen-Shannon divergences (examples, heads, heads), and layers and heads of each."""
        found = self._arrays(
            "divergences", lambda: divergences_of(self.model, self.corpus, self.options)
        )
        layers, heads = found["shape"].tolist()
        return found["values"].astype(np.float64), (layers, heads)

    @cached_property
    def maps(self) -> list[tuple[FloatArray, FloatArray]]:
        """Queries and keys of each layer, both (heads, size, width)."""
        encoder = load_encoder(self.model, self.options)
        with open_reader(encoder.model) as reader:
            n_heads = reader.n_heads
        return [(site.maps.query, site.maps.key) for site in find_sites(encoder.model, n_heads)]

    @cached_property
    def later(self) -> Measured:
        """The second model. Raises NotTestable if there is none, or it reads other examples."""
        if self._after is None:
            raise NotTestable("pass a second model with after (--after)")
        after = Measured(self._after, self.corpus, self.options, kept=self._after_kept)
        before, later = self.scored.scores, after.scored.scores
        if before.digests != later.digests or before.values.shape != later.values.shape:
            raise NotTestable(
                "the second model reads other word pieces, or has other layers or heads; give a "
                "fine-tuned copy of the first"
            )
        return after

    @cached_property
    def tasks(self) -> list[TaskLosses]:
        """Losses of each task. Raises NotTestable without any."""
        if not self._tasks:
            raise NotTestable("pass a task with task (--task)")
        if is_own(self.model):
            raise NotTestable("attention without a model has no task")
        model: Any = self.model
        return [TaskLosses.open(model, task, self.options) for task in self._tasks]

    def interval(
        self, statistic: Callable[[HeadAnswers], float], whole: float
    ) -> tuple[float, float]:
        """The interval of what is counted over heads, from groups of documents left out."""
        without = [statistic(one) for one in self.scored.without_groups]
        return jackknifed(whole, without, self.alpha)[:2]

    def _scores(self, name: str, asked: ScoreOptions) -> HeadScores:
        place = None if self._kept is None else self._kept / name
        if place is not None and place.exists():
            return HeadScores.load(place)
        found = score_heads(self.model, self.corpus, asked)
        if place is not None:
            found.save(place)
        return found

    def _arrays(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        file = None if self._kept is None else self._kept / f"{name}.safetensors"
        if file is not None and file.exists():
            return decode_arrays(file.read_bytes())
        found = make()
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            storage.write_bytes(file, encode_arrays(found))
        return found


IntShape = tuple[int, int]
