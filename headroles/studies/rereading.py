"""Examples of scores that are there already: read again from the treebank that was scored."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

from headroles.corpus import GIVEN, NEWDOC, Example, make_examples, prepared, read_conllu
from headroles.errors import CorpusError, UsageError
from headroles.options import fields_of
from headroles.roles import Role, RoleOptions, choose_roles, is_own
from headroles.scoring import HeadScores
from headroles.wording import listed, printable


def read_again(
    scores: HeadScores,
    ids: Container[str],
    files: Sequence[Path] | None = None,
    imported: Sequence[str] = (),
) -> tuple[dict[str, Example], dict[str, Role]]:
    """The examples of these ids, and the roles with their sieves, by id.

    ``files`` are where the treebank is now; where it was when it was scored if None. A role of
    one's own is among the roles only if its ``MODULE:FUNCTION`` is ``imported``: scores may come
    from elsewhere, and the name that they record must not decide which code runs here.

    Raises UsageError for scores of parsed text or made by hand and for other roles than were
    scored, and CorpusError if the treebank is not there any more, or is another one now.
    """
    corpus, recorded = scores.record.corpus, scores.record.options
    if corpus.format != "conllu":
        raise UsageError(
            "the sentences are read again from the treebank that was scored, and these scores are "
            "of parsed text or made by hand; score a treebank"
        )
    own = {one.name for one in fields_of(RoleOptions)} - {"relations"}  # those found, below
    options = RoleOptions(**{name: value for name, value in recorded.items() if name in own})
    names = _without_own(options.roles, imported)
    if files is None:
        files = _where_they_were(corpus.files)
    source = read_conllu(
        files,
        on_bad_sentence="skip",
        documents=corpus.documents_by or NEWDOC,
        ids=corpus.ids_by or GIVEN,
    )
    with prepared(source) as ready:
        if ready.digest != corpus.digest:
            raise CorpusError(
                f"{', '.join(map(str, files))} is not what was scored: its sentences differ; "
                "score again"
            )
        made = make_examples(ready, scores.record.pairing or "adjacent")
        found = {example.id: example for example in made if example.id in ids}
        relations = tuple(recorded.get("relations") or ())
        roles: tuple[Role, ...] = ()
        if names != ():
            options = replace(options, roles=names)
            roles = choose_roles(options, relations, scores.score, ready)
    return found, {role.id: role for role in roles}


def _without_own(recorded: Sequence[str] | None, imported: Sequence[str]) -> tuple[str, ...] | None:
    """The recorded names without roles of one's own, but for those ``imported``."""
    own = [name for name in recorded or () if is_own(name)]
    for name in imported:
        if name not in own:
            known = f"; of one's own there are: {listed(own)}" if own else ""
            raise UsageError(f"{name!r} is no role of one's own that was scored{known}")
    if recorded is None:
        return None
    return tuple(name for name in recorded if name not in own or name in imported)


def not_imported(role: str, flag: str = "roles (--roles)") -> str:
    """Why a role of one's own has no sentences, and what to do."""
    name = printable(":".join(role.split(":")[:2]))
    return (
        f"{name} is a Python function, and reading results imports none by itself; if you trust "
        f"it, name it with {flag}"
    )


def _where_they_were(files: Sequence[str]) -> list[Path]:
    """The files of a treebank. Raises CorpusError for one that is not there."""
    found = list(map(Path, files))
    for file in found:
        if not file.exists():
            from_there = " in this folder; it was named from where it was scored"
            raise CorpusError(
                f"{file} does not exist{from_there * (not file.is_absolute())}. Say where it is "
                "now with corpus (--corpus FILE of headroles examples)"
            )
    return found
