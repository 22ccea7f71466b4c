"""What claims are tested on: each measurement made once, when the first claim asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles import storage
from headroles.corpus import DEFAULT_RELATIONS, Corpus, as_corpus, fold_subtype, prepared
from headroles.errors import HeadRolesError
from headroles.models.loading import Attending, is_own
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import score_heads
from headroles.scoring.scores import HeadScores
from headroles.storage.parts import decode_arrays, encode_arrays
from headroles.studies.claims.answers import HeadAnswers, ScoredRoles
from headroles.studies.claims.claim import NotTestable
from headroles.studies.claims.dimensions import dimensions_of
from headroles.studies.claims.likeness import divergences_of
from headroles.studies.claims.means import Halves, jackknifed
from headroles.studies.claims.options import ClaimOptions
from headroles.studies.claims.reading import Together, read_together
from headroles.studies.claims.task_probabilities import TaskProbabilities
from headroles.studies.heads import clusters_in
from headroles.studies.inspection.options import TokenOptions
from headroles.studies.inspection.token_reading import QUANTITIES
from headroles.studies.offsets import rival_of, second_half
from headroles.testing.options import TestOptions

FloatArray = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

OBJECTS, DETERMINERS, POSSESSIVES = ("obj", "dobj"), ("det",), ("nmod:poss", "poss")
"""Names that relations have in UD and in CLEAR."""
BIAS, HIT = "bias", "hit"
WAYS = ("to_governor", "to_dependent")


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
        self._reads_all = options.claims is None

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
        options = self.options.part(TestOptions, correction="fdr_bh")
        return ScoredRoles(self._scores(BIAS), options)

    @property
    def answers(self) -> HeadAnswers:
        """Which heads have which roles."""
        return self.scored.all

    @cached_property
    def hits(self) -> HeadScores:
        """First choices: one back, one ahead, arcs, rare words; and the confidence of heads."""
        return self._scores(HIT)

    def hits_of(self, role: str) -> FloatArray:
        """Hits (examples, heads) of a role. Raises NotTestable for one that no example has."""
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

    def gains_of(self, role: str) -> FloatArray:
        """Hits (examples, heads) of a role less those of the best offset on the other half."""
        hits, rival = self.hits_of(role), rival_of(self.hits, role)
        assert rival is not None
        return np.asarray(hits - rival.hits[:, None])

    def of_relations(
        self, relations: Sequence[Sequence[str]], read: Callable[[str], FloatArray]
    ) -> dict[str, FloatArray]:
        """By relation what ``read`` gives of both directions (examples, twice the heads)."""
        return {
            name: np.concatenate([read(f"syntactic:{name}:{way}") for way in WAYS], axis=1)
            for name in map(self.relation, relations)
        }

    @cached_property
    def halves(self) -> Halves:
        """The halves of the documents of ``hits``, their clusters, and the shape of the model."""
        hits = self.hits
        clusters = clusters_in(hits.documents, self.options)
        return Halves(second_half(hits), clusters, (hits.n_layers, hits.n_heads), self.alpha)

    @cached_property
    def tokens(self) -> tuple[NDArray[np.float32], NDArray[np.intp] | None]:
        """What tokens of each kind get (examples, layers + 1, quantities), and documents."""

        def make() -> Arrays:
            found = self._together.tokens
            if isinstance(found, HeadRolesError):
                raise NotTestable(str(found))
            return {"values": found}

        values = self._arrays("tokens", make)["values"]
        return values, clusters_in(self.scored.scores.documents, self.options)

    def share_of_tokens(self, group: str, quantity: str) -> FloatArray:
        """A quantity (examples, layers) of a group of tokens, as in `TokenGroups`."""
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
    def dimensions(self) -> FloatArray:
        """Dimensions that the heads of a layer share (layers, 1 + draws), and by chance."""
        return self._arrays("dimensions", lambda: dimensions_of(self.model, self.options))["shares"]

    @cached_property
    def later(self) -> Measured:
        """The second model. Raises NotTestable if there is none, or it reads other examples."""
        if self._after is None:
            raise NotTestable("pass a second model with after (--after)")
        few = replace(self.options, claims=())  # of the second model, scores alone are needed
        after = Measured(self._after, self.corpus, few, kept=self._after_kept)
        before, later = self.scored.scores, after.scored.scores
        if before.digests != later.digests or before.values.shape != later.values.shape:
            raise NotTestable(
                "the second model reads other word pieces, or has other layers or heads; give a "
                "fine-tuned copy of the first"
            )
        return after

    @cached_property
    def tasks(self) -> list[TaskProbabilities]:
        """Each task with its answers. Raises NotTestable without any."""
        if not self._tasks:
            raise NotTestable("pass a task with task (--task)")
        if is_own(self.model):
            raise NotTestable("attention without a model has no task")
        model: Any = self.model
        return [TaskProbabilities.open(model, task, self.options) for task in self._tasks]

    def interval(
        self, statistic: Callable[[HeadAnswers], float], whole: float
    ) -> tuple[float, float]:
        """The interval of what is counted over heads, from groups of documents left out."""
        without = [statistic(one) for one in self.scored.without_groups]
        return jackknifed(whole, without, self.alpha)[:2]

    @cached_property
    def _together(self) -> Together:
        """One pass over the corpus for all that is read of it; kept at once if anything is."""
        asked = [self._asked(name) for name in (BIAS, HIT)]
        found = read_together(self.model, self.corpus, asked, self.options.part(TokenOptions))
        if self._kept is not None:
            for name, scores in zip((BIAS, HIT), found.scores, strict=True):
                scores.save(self._kept / name)
        return found

    def _scores(self, name: str) -> HeadScores:
        """Scores that were kept; else read with all the rest, or alone if few claims need them."""
        place = None if self._kept is None else self._kept / name
        if place is not None and place.exists():
            return HeadScores.load(place)
        if self._reads_all or "_together" in vars(self):
            return self._together.scores[(BIAS, HIT).index(name)]
        found = score_heads(self.model, self.corpus, self._asked(name))
        if place is not None:
            found.save(place)
        return found

    def _asked(self, name: str) -> ScoreOptions:
        return self._asked_of_hits() if name == HIT else self._asked_of_bias()

    def _asked_of_bias(self) -> ScoreOptions:
        folded = {fold_subtype(name) for name in self.relations}
        defaults = dict.fromkeys(name for own in DEFAULT_RELATIONS.values() for name in own)
        relations = tuple(name for name in defaults if name in folded)
        return self.options.part(
            ScoreOptions, relations=relations or "none", roles=None, frequencies=None
        )

    def _asked_of_hits(self) -> ScoreOptions:
        named = [*DEFAULT_RELATIONS["ud"], *DEFAULT_RELATIONS["clear"]]
        named += [*OBJECTS, *DETERMINERS, *POSSESSIVES]
        relations = tuple(name for name in dict.fromkeys(named) if name in self.relations)
        roles = ("position", "rare", "confidence", *(("syntactic",) if relations else ()))
        return self.options.part(
            ScoreOptions,
            score="hit",
            relations=relations or "none",
            roles=roles,
            keep_subtypes=bool(relations),
        )

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
