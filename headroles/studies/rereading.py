"""Examples of scores that are there already: read again from the treebank that was scored."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from headroles.corpus import GIVEN, NEWDOC, Example, make_examples, prepared, read_conllu
from headroles.errors import CorpusError, UsageError
from headroles.options import fields_of
from headroles.roles import Role, RoleOptions, choose_roles
from headroles.scoring import HeadScores


def read_again(
    scores: HeadScores, ids: Container[str]
) -> tuple[dict[str, Example], dict[str, Role]]:
    """The examples of these ids, and all roles with their sieves, by id.

    Raises UsageError for scores of parsed text or made by hand, and CorpusError if the treebank is
    not there any more, or is another one now.
    """
    corpus, recorded = (scores.provenance.get(name, {}) for name in ("corpus", "options"))
    if corpus.get("format") != "conllu":
        raise UsageError(
            "the sentences are read again from the treebank that was scored, and these scores are "
            "of parsed text or made by hand; score a treebank"
        )
    own = {one.name for one in fields_of(RoleOptions)}
    options = RoleOptions(**{name: value for name, value in recorded.items() if name in own})
    source = read_conllu(
        [Path(file) for file in corpus["files"]],
        on_bad_sentence="skip",
        documents=corpus.get("documents_by", NEWDOC),
        ids=corpus.get("ids_by", GIVEN),
    )
    with prepared(source) as ready:
        if ready.digest != corpus["digest"]:
            raise CorpusError(
                f"{', '.join(corpus['files'])} is not what was scored: its sentences differ; "
                "score again"
            )
        made = make_examples(ready, recorded.get("pairing", "adjacent"))
        found = {example.id: example for example in made if example.id in ids}
        relations = tuple(recorded.get("relations") or ())
        roles = choose_roles(options, relations, scores.score, ready)
    return found, {role.id: role for role in roles}
