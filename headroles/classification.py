"""The main job: score the heads of an encoder over a corpus, test, and keep both tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headroles import storage
from headroles.corpus import Corpus, Sentence, Skipped
from headroles.errors import UsageError
from headroles.hypotheses import DEFAULT, ONE_DOCUMENT, PUBLISHED, TestOptions
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
    threshold: float | None = None,
    alpha: float = 0.05,
    test: str = "t",
    correction: str = "fdr_bh",
    family: str = "all",
    groups: str = "auto",
    interval: str = "t",
    resamples: int = 10_000,
    seed: int = 0,
    preset: str = DEFAULT,
    **scoring: Any,
) -> Classification:
    """`score_heads`, then `assign_roles`.

    Options of the tests are named here; all others go to `score_heads`. ``preset="published"``
    also scores as the released notebooks do: with their band edge, and without contrasts.
    """
    tests: dict[str, Any] = {
        "threshold": threshold,
        "alpha": alpha,
        "test": test,
        "correction": correction,
        "family": family,
        "groups": groups,
        "interval": interval,
        "resamples": resamples,
        "seed": seed,
    }
    if TestOptions.of_preset(preset, **tests).groups == "document":  # refused before long work
        corpus = _of_several_documents(corpus)
    if preset == PUBLISHED:
        scoring |= {"published_edge": True, "beyond_offset": False}
    scores = score_heads(model, corpus, tokenizer, **scoring)
    return Classification(scores, assign_roles(scores, preset=preset, **tests))


def _of_several_documents(corpus: Corpus) -> Corpus:
    """The same corpus; reading it to its end raises UsageError if it is one document."""

    def read(skipped: Skipped) -> Iterator[Sentence]:
        documents = set()
        for sentence in corpus.read(skipped):
            documents.add(sentence.document)
            yield sentence
        if len(documents) == 1:
            raise UsageError(ONE_DOCUMENT)

    return replace(corpus, read=read)
