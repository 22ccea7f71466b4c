"""The main job: score the heads of an encoder over a corpus, test, and return both tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headroles.corpus import Corpus, as_corpus
from headroles.models.loading.encoder import Attending, load_encoder
from headroles.options import takes
from headroles.results.stored import save_together
from headroles.scoring.options import PERMUTED_WEIGHTS, WORDS
from headroles.scoring.parts import ALONE, Sharing
from headroles.scoring.run import open_scoring, score_heads
from headroles.scoring.scores import HeadScores
from headroles.studies.classification.assignment import assign
from headroles.studies.classification.options import ClassifyOptions
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.controls import with_permuted_weights, with_permuted_words
from headroles.studies.heads import refuse_one_document

_SEED = 0
"""Seed of permuted words and weights."""


@dataclass(frozen=True, repr=False)
class Classification:
    """Scores of every example and the role table of their tests.

    With ``model`` and ``corpus`` as for `classify_heads`:

    >>> from headroles import classify_heads
    >>> found = classify_heads(model, corpus, roles="local,punctuation")
    >>> found.scores
    HeadScores(3 layers x 4 heads, 2 roles, 127 examples)
    >>> found.roles.roles
    ('local', 'punctuation')
    """

    scores: HeadScores
    roles: RoleTable

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write scores, role table and ``run.json`` into ``folder``, all of them or none.

        Raises StorageError if the folder holds files already and ``overwrite`` is not set.
        """
        return save_together(folder, [self.scores, self.roles], overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> Classification:
        """Read back what `save` wrote. Raises StorageError where that is not possible."""
        return cls(HeadScores.load(folder), RoleTable.load(folder))

    def __getattr__(self, name: str) -> Any:
        """Return what the role table has."""
        if name.startswith("_"):  # what copies ask for before they have a table
            raise AttributeError(name)
        return getattr(self.roles, name)

    def __dir__(self) -> list[str]:
        """Return the names for tab completion, those of the role table too."""
        return sorted({*super().__dir__(), *dir(self.roles)})

    def __repr__(self) -> str:
        return repr(self.roles)

    def _repr_html_(self) -> str:
        return self.roles._repr_html_()


@takes(ClassifyOptions)
def classify_heads(
    model: Attending, corpus: Corpus, options: ClassifyOptions, sharing: Sharing = ALONE
) -> Classification:
    """Return all scores and the table of roles: `score_heads`, then `assign_roles`.

    Arguments, options and errors are those of both functions. With ``model`` an encoder of 3 layers
    with 4 heads each, and random weights:

    >>> from headroles import classify_heads, read_conllu, sample_treebank
    >>> found = classify_heads(model, read_conllu(sample_treebank()), roles="local")
    >>> len(found.roles)
    12
    >>> found.roles.heads_with("local")
    []
    """
    with open_scoring(model, corpus, options, sharing) as run:
        refuse_one_document(run.corpus.record.documents, options.tests)  # before long work
        scores = run.scores()
    alone, controls = replace(options, controls=()), {}  # controls that take a pass of their own
    if WORDS in options.controls:
        controls[WORDS] = score_heads(model, with_permuted_words(as_corpus(corpus), _SEED), alone)
    if PERMUTED_WEIGHTS in options.controls:
        encoder = load_encoder(model, options)
        permuted = with_permuted_weights(encoder.model, _SEED)
        alone = replace(alone, tokenizer=encoder.tokenizer)
        controls[PERMUTED_WEIGHTS] = score_heads(permuted, corpus, alone)
    return Classification(scores, assign(scores, options, controls))
