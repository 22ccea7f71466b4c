"""Texts about a role table to quote: a card for the README of its model, the method for a paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from headroles.formats import as_markdown
from headroles.roles import BIAS, EXCESS, HIT, contrast_of, is_contrast
from headroles.studies.classification.answers import find_answers
from headroles.studies.classification.summary import (
    about_level,
    describe_units,
    in_words_of_score,
)
from headroles.testing.catalogue import TESTS
from headroles.testing.options import describe_correction
from headroles.wording import head_name, listed

if TYPE_CHECKING:
    from headroles.studies.classification.role_table import RoleTable

_VERSIONS = ("headroles", "torch", "transformers")
_SCORES = {
    BIAS.name: (
        "The sieve bias score of a head for a role is the attention that it gives to the words of "
        "the role, over what uniform attention would give them (Pande et al., 2021).",
        "pande",
    ),
    EXCESS.name: (
        "The excess score of a head for a role is its attention to the words of the role beyond "
        "uniform attention, over the largest possible excess.",
        "pande",
    ),
    HIT.name: (
        "The score of a head for a role is the share of words whose largest attention goes where "
        "the role looks (Clark et al., 2019).",
        "clark",
    ),
}


def card_of(table: RoleTable) -> str:
    """Name the model, the corpus and the versions, and the heads of each role."""
    name = table.record.model.name
    facts = pd.DataFrame([*_facts(table)], columns=["", name])
    roles = pd.DataFrame([*_roles(table)], columns=["role", "id", "heads", "which"])
    level = about_level(table.tests, table.record.score, bool(table.rivals), table.roles)
    parts = (
        "## Roles of attention heads",
        as_markdown(facts),
        f"{' '.join(level.split())} Heads are layer-head, counted from 0; those with a star attend "
        "there more than to other words at the same distance.",
        as_markdown(roles) if len(roles) else "No head was shown to have a role.",
        "Made with [headroles](https://pypi.org/project/headroles/): `headroles classify` and "
        "`headroles export --view card`.",
    )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _facts(table: RoleTable) -> Iterator[tuple[str, str]]:
    """Name the model, the corpus and the versions behind the table."""
    record = table.record
    model, corpus = record.model, record.corpus
    yield "encoder", f"{model.family}, {record.layers} layers x {record.heads} heads"
    if model.revision:
        yield "revision", model.revision
    yield "weights (SHA-256)", model.weights_sha256 or "unknown"
    yield "corpus", listed([Path(file).name for file in corpus.files]) or "sentences in memory"
    yield "corpus (SHA-256)", corpus.digest or "unknown"
    counts = {"sentences": corpus.sentences, "documents": corpus.documents}
    counts["examples"] = record.examples
    yield "size", ", ".join(f"{count:,} {unit}" for unit, count in counts.items())
    versions = record.versions
    known = [f"{one} {versions[one]}" for one in _VERSIONS if one in versions]
    yield "versions", ", ".join(known) or "unknown"


def _roles(table: RoleTable) -> Iterator[tuple[str, str, str, str]]:
    """Name the heads of each role; a star marks those that have it beyond distance."""
    for role in table.roles:
        heads = [] if is_contrast(role) else table.heads_with(role)
        if not heads:
            continue
        contrast = contrast_of(role)
        beyond = set(table.heads_with(contrast)) if contrast in table.roles else set()
        which = ", ".join(head_name(one) + "*" * (one in beyond) for one in sorted(heads))
        yield in_words_of_score(role, table.record.score), role, str(len(heads)), which


def method_of(table: RoleTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sentences on score and tests, and the key of the work that defines the score."""
    sentence, work = _SCORES[table.record.score]
    tests = table.tests
    correction = describe_correction(tests.correction, tests.family)
    tested = (
        f"{TESTS[tests.test].words} over {describe_units(tests)}, alpha {tests.alpha:g}, "
        f"{correction.replace('fdr_bh', 'Benjamini-Hochberg')}"
    )
    beyond = ""
    if table.rivals:
        beyond = f", and of arcs {tests.offset_margin:g} above that of the best fixed offset"
    said = [
        sentence,
        f"A head has a role if its mean score is above {tests.threshold:g}{beyond} ({tested}).",
    ]
    if find_answers(table).controls_distance:
        said.append(
            "Of roles of arcs we report heads that also score higher on arcs than on other words "
            "at the same distance."
        )
    return tuple(said), (work,)
