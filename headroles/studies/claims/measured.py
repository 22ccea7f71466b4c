"""Measurements that claims are tested on, each made once, when the first claim asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles import storage
from headroles.arrays import Float32Array, FloatArray, IndexArray
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

Arrays = dict[str, NDArray[Any]]

OBJECTS, DETERMINERS, POSSESSIVES = ("obj", "dobj"), ("det",), ("nmod:poss", "poss")
"""Names that relations have in UD and in CLEAR."""
BIAS, HIT = "bias", "hit"
WAYS = ("to_governor", "to_dependent")


class Measured:
    """Measurements of a model over a corpus, of a second model over the same corpus, and of tasks.

    With a folder ``saved``, measurements are saved there, and the next run reads them;
    ``after_saved`` is the folder for those of the second model.
    """

    def __init__(
        self,
        model: Attending,
        corpus: Corpus,
        options: ClaimOptions,
        after: Attending | None = None,
        tasks: Sequence[str | Path] = (),
        saved: Path | None = None,
        after_saved: Path | None = None,
    ) -> None:
        self.model, self.corpus, self.options = model, as_corpus(corpus), options
        self._after, self._tasks = after, tuple(tasks)
        self._saved, self._after_saved = saved, after_saved
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
        """Bias scores of the usual roles, with their answers."""
        options = self.options.as_group(TestOptions, correction="fdr_bh")
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
        """Return hits (examples, heads) of a role. Raises NotTestable if no example has it."""
        if (
            role not in self.hits.role_ids
            or not self.hits.counts[:, self.hits.role_ids.index(role)].any()
        ):
            raise NotTestable(f"no example has a score for the role {role}")
        return self.hits.column(role).astype(np.float64)

    def relation(self, names: Sequence[str]) -> str:
        """Return the name of a relation in this corpus. Raises NotTestable if it has none."""
        for name in names:
            if name in self.relations:
                return name
        raise NotTestable(f"the corpus has no relation {' or '.join(names)}; pass a treebank")

    def gains_of(self, role: str) -> FloatArray:
        """Return hits (examples, heads) of a role less those of the other half's best offset."""
        hits, rival = self.hits_of(role), rival_of(self.hits, role)
        assert rival is not None
        return np.asarray(hits - rival.hits[:, None])

    def of_relations(
        self, relations: Sequence[Sequence[str]], read: Callable[[str], FloatArray]
    ) -> dict[str, FloatArray]:
        """Return by relation what ``read`` gives of both directions (examples, twice the heads)."""
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
    def tokens(self) -> tuple[Float32Array, IndexArray | None]:
        """Quantities of tokens (examples, layers + 1, quantities), and documents of examples."""

        def make() -> Arrays:
            found = self._together.tokens
            if isinstance(found, HeadRolesError):
                raise NotTestable(str(found))
            return {"values": found}

        values = self._arrays("tokens", make)["values"]
        return values, clusters_in(self.scored.scores.documents, self.options)

    def share_of_tokens(self, group: str, quantity: str) -> FloatArray:
        """Return a quantity (examples, layers) of a group of tokens, as in `TokenGroups`."""
        values = self.tokens[0][:, :-1, QUANTITIES.index((group, quantity))]
        return values.astype(np.float64)

    @cached_property
    def divergences(self) -> tuple[FloatArray, tuple[int, int]]:
        """Jensen-Shannon divergences (examples, heads, heads), and layers and heads of each."""
        found = self._arrays(
            "divergences", lambda: divergences_of(self.model, self.corpus, self.options)
        )
        layers, heads = found["shape"].tolist()
        return found["values"].astype(np.float64), (layers, heads)

    @cached_property
    def dimensions(self) -> FloatArray:
        """Shared dimensions of the heads of a layer (layers, 1 + draws), observed and by chance."""
        return self._arrays("dimensions", lambda: dimensions_of(self.model, self.options))["shares"]

    @cached_property
    def later(self) -> Measured:
        """The second model. Raises NotTestable if there is none, or it reads other examples."""
        if self._after is None:
            raise NotTestable("pass a second model with after (--after)")
        few = replace(self.options, claims=())  # of the second model, scores alone are needed
        after = Measured(self._after, self.corpus, few, saved=self._after_saved)
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
            raise NotTestable("claims about tasks need a model, not its attention alone")
        model: Any = self.model
        return [TaskProbabilities.open(model, task, self.options) for task in self._tasks]

    def interval(
        self, statistic: Callable[[HeadAnswers], float], whole: float
    ) -> tuple[float, float]:
        """Return the interval of a count over heads, by leaving groups of documents out."""
        without = [statistic(one) for one in self.scored.without_groups]
        return jackknifed(whole, without, self.alpha)[:2]

    @cached_property
    def _together(self) -> Together:
        """Scores and tokens of one pass over the corpus; saved at once if there is a folder."""
        asked = list(self._asked.values())
        found = read_together(self.model, self.corpus, asked, self.options.as_group(TokenOptions))
        if self._saved is not None:
            for name, scores in zip(self._asked, found.scores, strict=True):
                scores.save(self._saved / name)
        return found

    def _scores(self, name: str) -> HeadScores:
        """Return saved scores; else read them with the others, or alone if few claims need them."""
        place = None if self._saved is None else self._saved / name
        if place is not None and place.exists():
            return HeadScores.load(place)
        if self._reads_all or "_together" in vars(self):
            return self._together.scores[list(self._asked).index(name)]
        found = score_heads(self.model, self.corpus, self._asked[name])
        if place is not None:
            found.save(place)
        return found

    @cached_property
    def _asked(self) -> dict[str, ScoreOptions]:
        """Options of both kinds of scores, with the relations that the corpus has."""
        defaults = [name for own in DEFAULT_RELATIONS.values() for name in own]
        folded = set(map(fold_subtype, self.relations))
        usual = tuple(name for name in dict.fromkeys(defaults) if name in folded)
        named = dict.fromkeys([*defaults, *OBJECTS, *DETERMINERS, *POSSESSIVES])
        full = tuple(name for name in named if name in self.relations)
        bias = self.options.as_group(
            ScoreOptions, relations=usual or "none", roles=None, frequencies=None
        )
        hit = self.options.as_group(
            ScoreOptions,
            score=HIT,
            relations=full or "none",
            roles=("position", "rare", "confidence", *(("syntactic",) if full else ())),
            keep_subtypes=bool(full),
        )
        return {BIAS: bias, HIT: hit}

    def _arrays(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        file = None if self._saved is None else self._saved / f"{name}.safetensors"
        if file is not None and file.exists():
            return decode_arrays(file.read_bytes())
        found = make()
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            storage.write_bytes(file, encode_arrays(found))
        return found
