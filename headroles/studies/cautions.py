"""Cautions about the corpus of a study: its documents, and the roles that it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from headroles.corpus import NEWDOC
from headroles.encoding import TOO_LONG
from headroles.record import RecordedCorpus, ScoresRecord
from headroles.roles import PAIRS, Role
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import LevelOptions

_MANY = 0.1  # share of sentences without a document that is reported


def warn_of_documents(
    record: ScoresRecord, hypotheses: Hypotheses, options: LevelOptions
) -> list[str]:
    """Warn of a corpus that does not name its documents, with advice.

    There is no warning if the user takes examples as independent, or if scores were made by hand.
    """
    corpus = record.corpus
    undivided, n_sentences = corpus.undivided, corpus.sentences
    if options.clusters == "none" or not n_sentences:
        return []
    if undivided > _MANY * n_sentences:
        return [_undivided(corpus, hypotheses.is_clustered)]
    if corpus.documents == 1:
        return [
            "the corpus is one document, so tests take examples as independent, and answers are "
            "too sure if they are not; put each text into its own file, or pass "
            "`clusters='none'` if examples are independent"
        ]
    return []


def _undivided(corpus: RecordedCorpus, is_clustered: bool) -> str:
    """Say that sentences are in no document, the consequences, and the options that help."""
    undivided, n_sentences = corpus.undivided, corpus.sentences
    which = "the treebank names"
    if undivided < n_sentences:
        which = f"{undivided} of {n_sentences} sentences are in files, or parts of files, that name"
    counted = "tests take examples as independent, and answers are too sure if they are not"
    if is_clustered:
        counted = "each file counts as one document"
    rule = corpus.documents_by or NEWDOC
    named_by = "# newdoc" if rule == NEWDOC else f"`documents={rule!r}`"
    by_id = f"`documents='sent_id'`, as ids name {corpus.documents_by_id}; "
    return (
        f"{which} no documents ({named_by}): {counted}, and neighbouring sentences are paired; "
        f"pass {by_id * (corpus.documents_by_id > 1)}`documents='comment:KEY'`"
        " if a comment names them; `pairing='none'` if "
        "neighbours are of different texts; or `clusters='none'` if examples are "
        "independent"
    )


def why_absent(roles: Sequence[Role], record: ScoresRecord) -> dict[str, str]:
    """Say for each of the roles, by its id, why no example has it."""
    return {role.id: _why_absent(role, record) for role in roles}


def _why_absent(role: Role, record: ScoresRecord) -> str:
    if role.needs != PAIRS:
        return role.needs and f"there are no {role.needs}"
    corpus = record.corpus
    if record.pairing == "none":
        return f"that takes {PAIRS}, and with `pairing='none'` there are no pairs"
    if corpus.sentences and corpus.sentences == corpus.documents:
        return (
            f"that takes {PAIRS}, and each of the {corpus.sentences} sentences is a document of "
            "its own"
        )
    too_long = record.skipped.get(TOO_LONG, 0)
    return f"that takes {PAIRS}, and there are none" + (
        f" that the model takes: {too_long} examples are too long" if too_long else ""
    )
