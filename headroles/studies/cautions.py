"""What to know of the corpus before relying on a study: its documents, and roles that it lacks."""

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
    """Warn of a corpus that does not name its documents, and say what to do.

    Nothing is said where examples were to be taken as independent, nor of scores made by hand, nor
    where the corpus itself is decided about, of which examples are drawn whatever they share.
    """
    if record.drawn_from is not None:
        return []
    corpus = record.corpus
    undivided, n_sentences = corpus.undivided, corpus.sentences
    if options.clusters == "none" or not n_sentences:
        return []
    if undivided > _MANY * n_sentences:
        return [_undivided(corpus, hypotheses.is_clustered)]
    if corpus.documents == 1:
        return [
            "all of the corpus is one document, so examples are taken as independent: answers are "
            "too sure if they are not; a file for each text makes documents, and "
            "clusters='none' (--clusters none) says that examples are meant to be independent"
        ]
    return []


def _undivided(corpus: RecordedCorpus, is_clustered: bool) -> str:
    undivided, n_sentences = corpus.undivided, corpus.sentences
    which = (
        "the treebank names"
        if undivided == n_sentences
        else (f"{undivided} of {n_sentences} sentences are of files, or parts of files, that name")
    )
    counted = (
        "each file counts as one document"
        if is_clustered
        else "examples are taken as independent, and answers are too sure if they are not"
    )
    rule = corpus.documents_by or NEWDOC
    named_by = "# newdoc" if rule == NEWDOC else f"documents={rule!r} (--documents {rule})"
    by_id = corpus.documents_by_id
    ways = (
        [f"documents='sent_id' (--documents sent_id), since ids speak of {by_id}"]
        if by_id > 1
        else []
    )
    ways.append("documents='comment:KEY' (--documents comment:KEY) if a comment does")
    ways.append("pairing='none' (--pairing none) if neighbours are of different texts")
    ways.append("clusters='none' (--clusters none) if examples are meant to be independent")
    return (
        f"{which} no documents ({named_by}): {counted}, and neighbours are paired as if of one "
        f"text; the ways out: {'; '.join(ways)}"
    )


def why_absent(roles: Sequence[Role], record: ScoresRecord) -> dict[str, str]:
    """Say for each of the roles, by its id, why no example has it."""
    return {role.id: _why_absent(role, record) for role in roles}


def _why_absent(role: Role, record: ScoresRecord) -> str:
    if role.needs != PAIRS:
        return role.needs and f"there are no {role.needs}"
    corpus = record.corpus
    if record.pairing == "none":
        return f"that takes {PAIRS}, and with pairing='none' (--pairing none) there are no pairs"
    if corpus.sentences and corpus.sentences == corpus.documents:
        return (
            f"that takes {PAIRS}, and each of the {corpus.sentences} sentences is a document of "
            "its own"
        )
    too_long = record.skipped.get(TOO_LONG, 0)
    return f"that takes {PAIRS}, and there are none" + (
        f" that the model takes: {too_long} examples are too long" if too_long else ""
    )
