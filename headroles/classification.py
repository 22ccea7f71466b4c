"""The main job: score the heads of an encoder over a corpus, test, and keep both tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headroles import storage
from headroles.corpus import Corpus
from headroles.roles import RoleTable, assign_roles
from headroles.scores import HeadScores
from headroles.scoring import score_heads


@dataclass(frozen=True, repr=False)
class Classification:
    """Scores of every example and the role table that they led to."""

    scores: HeadScores
    roles: RoleTable

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write scores, role table and ``run.json`` into ``folder``, all of them or none.

        Raises StorageError if the folder holds files already and ``overwrite`` is not set.
        """
        with storage.result_folder(folder, overwrite) as staging:
            self.scores.write_into(staging)
            self.roles.write_into(staging)  # last: its run.json has the tests too
        return Path(folder)

    def __repr__(self) -> str:
        return f"{self.scores!r}\n{self.roles!r}"

    def _repr_html_(self) -> str:
        return f"<p>{self.scores!r}</p>{self.roles._repr_html_()}"


def classify_heads(
    model: Any,
    corpus: Corpus,
    tokenizer: Any = None,
    *,
    threshold: float = 3.0,
    alpha: float = 0.05,
    correction: str = "fdr_bh",
    family: str = "all",
    preset: str = "default",
    **scoring: Any,
) -> Classification:
    """`score_heads`, then `assign_roles`.

    Options of the tests are named here; all others go to `score_heads`. ``preset="published"``
    also takes the band edge of the released notebooks.
    """
    scores = score_heads(model, corpus, tokenizer, published_edge=preset == "published", **scoring)
    roles = assign_roles(
        scores,
        threshold=threshold,
        alpha=alpha,
        correction=correction,
        family=family,
        preset=preset,
    )
    return Classification(scores, roles)
