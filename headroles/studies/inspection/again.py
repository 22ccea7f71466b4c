"""What was scored, read again: its sentences, the sieves of its roles, and its model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from headroles.corpus import (
    DEFAULT_RELATIONS,
    NEWDOC,
    Corpus,
    Example,
    make_corpus,
    make_examples,
    prepared,
    read_arcs,
    read_conllu,
    words_alone,
)
from headroles.corpus.arcs import KEY as ARCS
from headroles.errors import CorpusError, ModelError, UsageError
from headroles.models.options import ModelOptions
from headroles.options import CIRCUMSTANCE, Convert, Options, fields_of, split_names
from headroles.record import RecordedCorpus
from headroles.roles import Role, RoleOptions, choose_roles, is_own
from headroles.roles.choice import ALL, ONLY_FOR, needed_name
from headroles.roles.own import names_of_roles
from headroles.scoring.scores import HeadScores
from headroles.wording import head_name, listed, printable, shortened

if TYPE_CHECKING:
    from headroles.models.loading.encoder import LoadedEncoder

LARGEST: Final = "largest"
MEDIAN: Final = "median"
SMALLEST: Final = "smallest"
TYPED = -1
"""Row of a sentence that was not scored."""
_HEAD = re.compile(r"(\d{1,6})-(\d{1,6})")


def read_head(named: str) -> tuple[int, int]:
    """Read layer and head from their name, as in ``4-0``. Raises UsageError for another name.

    >>> read_head("4-0")
    (4, 0)
    """
    match = _HEAD.fullmatch(named.strip())
    if match is None:
        raise UsageError(f"the head is {shortened(named)!r}; it must be layer-head, as in 3-11")
    return int(match[1]), int(match[2])


@dataclass(frozen=True, kw_only=True)
class ImportOptions(Options):
    """Options of imports that reading results needs."""

    title: ClassVar[str] = "Roles"

    roles: Annotated[Sequence[str] | None, Convert(names_of_roles), CIRCUMSTANCE] = None
    """Roles of users that may be imported again, as MODULE:FUNCTION.

    Reading results imports no code unless it is named here. In Python, functions themselves.
    """


def _paths(given: Any) -> tuple[Path, ...]:
    if isinstance(given, PathLike):
        return (Path(given),)
    return tuple(map(Path, split_names(given) if isinstance(given, str) else given))


@dataclass(frozen=True, kw_only=True)
class AgainOptions(ImportOptions, ModelOptions):
    """Options of the text and the model that were scored."""

    title: ClassVar[str] = "Model"

    corpus: Annotated[Sequence[Path] | None, Convert(_paths), CIRCUMSTANCE] = None
    """Treebank that was scored, files or folders, if it has moved."""
    model: Annotated[Any, CIRCUMSTANCE] = None
    """Model that was scored, if it has moved.

    A folder, a hub id or, from Python, a loaded model in evaluation mode.
    """


def _words(given: Any) -> tuple[str, ...]:
    return tuple(given.split() if isinstance(given, str) else map(str, given))


@dataclass(frozen=True, kw_only=True)
class TypedOptions(Options):
    """Options of a sentence of the user's own."""

    title: ClassVar[str] = "Output"

    text: str | None = None
    """A sentence of yours, parsed by the pipeline of the run."""
    tokens: Annotated[Sequence[str] | None, Convert(_words)] = None
    """The words of a sentence of yours, with blanks between them; they have no tree."""
    parser: str | None = None
    """spaCy pipeline that parses `text`; left out: that of the run."""

    def check(self) -> None:
        """Reject two sentences, and a pipeline without text."""
        super().check()
        if self.text is not None and self.tokens is not None:
            raise UsageError("`text` names the one to show; leave `tokens` out")
        if self.parser is not None and self.text is None:
            raise UsageError("`parser` has no effect without `text`; omit it")

    @property
    def is_given(self) -> bool:
        """Whether there is a sentence of the user's own."""
        return self.text is not None or self.tokens is not None


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ImportOptions, TypedOptions):
    """Options of the sentences and weights of a page."""

    model: Annotated[str | None, CIRCUMSTANCE] = None
    """Model that was scored, for weights beside sentences; if left out, the folder that was scored,
    if it is still there."""


@dataclass(frozen=True, kw_only=True)
class ExampleOptions(TypedOptions):
    """Options of the choice of examples."""

    title: ClassVar[str] = "Output"

    n: Annotated[int, Meta(ge=1)] = 5
    """Number of examples."""
    which: Literal["largest", "median", "smallest"] = "median"
    """Typical ones, with scores nearest the median, or those with the largest or smallest."""
    example: str | None = None
    """The example with this id, with any score, and no other."""

    def check(self) -> None:
        """Reject a choice among examples where one is named or given."""
        super().check()
        named = [name for name in ("example", "text", "tokens") if getattr(self, name) is not None]
        if len(named) > 1 or (named and self.which != MEDIAN):
            other = named[1] if len(named) > 1 else "which"
            raise UsageError(f"`{named[0]}` names the one to show; leave `{other}` out")


Head = tuple[int, int]
Wanted = tuple[Head, str, ExampleOptions]
"""Head, role, and which examples of them."""


class Chosen(NamedTuple):
    """An example to show of a head and a role; ``row`` is its place among the scores.

    A sentence that was not scored has the row `TYPED`, and the score NaN.
    """

    head: Head
    role: Role
    row: int
    score: float
    example: Example


def read_examples(
    scores: HeadScores, wanted: Sequence[Wanted], options: AgainOptions
) -> list[list[Chosen]]:
    """Choose examples of several heads and roles, and read them in one pass over the treebank.

    Raises UsageError for a head or role that the scores do not have, and an example without score;
    other errors as `read_again`.
    """
    if not wanted:
        return []
    typed = _typed_corpus(scores, wanted[0][2])
    chosen = []
    for head, named, choice in wanted:
        role = scores.role_of(head, named)
        rows = _choose(scores, head, role, choice)
        chosen.append(((int(head[0]), int(head[1])), role, {TYPED: np.nan} if typed else rows))
    every = {row for *_, rows in chosen for row in rows}
    roles, examples = read_again(scores, [role for _, role, _ in chosen], every, options, typed)
    return [
        [Chosen(head, roles[role], row, score, examples[row]) for row, score in rows.items()]
        for head, role, rows in chosen
    ]


def _choose(scores: HeadScores, head: Head, role: str, options: ExampleOptions) -> dict[int, float]:
    """Return scores of the wanted examples by their places among all of ``scores``."""
    values = scores.of_head(head, role)
    if list(head) in map(list, scores.record.model.removed_heads):
        raise UsageError(
            f"head {head_name(head)} was removed from the model and has no scores; name another"
        )
    rows = np.flatnonzero(~np.isnan(values))
    if (name := options.example) is not None:
        rows = rows[[scores.ids[row] == name for row in rows]]
        if not len(rows):
            raise UsageError(
                f"head {head_name(head)} has no score of {role} in an example {shortened(name)!r}; "
                "name one from the column example of: headroles examples"
            )
    ranks = values[rows]
    if options.which == MEDIAN and len(rows):
        ranks = np.abs(ranks - np.median(ranks))
    order = np.argsort(-ranks if options.which == LARGEST else ranks, kind="stable")
    return {int(row): float(values[row]) for row in rows[order][: options.n]}


def read_again(
    scores: HeadScores,
    roles: Collection[str],
    rows: Iterable[int],
    options: AgainOptions,
    typed: Corpus | None = None,
) -> tuple[dict[str, Role], dict[int, Example]]:
    """Return roles with their sieves, and the examples at ``rows``, or the one of ``typed``.

    A role of a user is read only if its ``MODULE:FUNCTION`` is among ``roles`` of the options:
    scores may come from elsewhere, and the name that they record must not decide which code runs.

    Raises UsageError for scores of parsed text or made by hand and for roles that were not scored,
    and CorpusError for a treebank that is missing or has changed.
    """
    recorded = scores.record.options
    names = _names_again(roles, recorded, options)
    groups = {ALL, *(name.partition(":")[0] for name in names)}
    known = {field.name for field in fields_of(RoleOptions)} - {"relations", "roles"}
    known &= {name for name in recorded if ONLY_FOR.get(name, ALL) in groups}
    given = RoleOptions(roles=names, **{name: recorded[name] for name in known})
    with prepared(typed or _source(scores, options)) as ready:
        if typed is None and ready.record.digest != scores.record.corpus.digest:
            raise CorpusError(
                f"{', '.join(ready.record.files)} has other sentences than when it was scored; "
                "name the file that was scored with `corpus`, or score again"
            )
        pairing = "none" if typed else scores.record.options.get("pairing") or "adjacent"
        by_id = {scores.ids[row]: row for row in rows if row != TYPED}
        examples = {
            TYPED if typed else by_id[example.id]: example
            for example in make_examples(ready, pairing)
            if typed or example.id in by_id
        }
        if typed:
            examples[TYPED] = _relabelled(examples[TYPED], ready.record, scores.record.corpus)
        relations = tuple(recorded.get("relations") or ())
        made = choose_roles(given, relations, scores.score, ready) if names else ()
    roles_made = {role.id: role for role in made}
    for role in roles:
        if role not in roles_made:
            raise UsageError(f"the recorded options make no role {role!r}; score again")
    return roles_made, examples


def _relabelled(example: Example, parsed: RecordedCorpus, scored: RecordedCorpus) -> Example:
    """Give a sentence the labels of the corpus that was scored, for the usual relations."""
    schemes = (DEFAULT_RELATIONS.get(corpus.scheme or "", ()) for corpus in (parsed, scored))
    labels = dict(zip(*schemes, strict=False))
    (sentence,) = example.sentences
    relations = tuple(labels.get(name, name) for name in sentence.relations)
    return Example((replace(sentence, relations=relations),))


def _source(scores: HeadScores, options: AgainOptions) -> Corpus:
    """Return the treebank that was scored. Raises UsageError or CorpusError if there is none."""
    corpus = scores.record.corpus
    is_listed = corpus.format == ARCS and bool(corpus.files)
    if corpus.format != "conllu" and not is_listed:
        raise UsageError(
            "sentences come from the files that were scored, and these scores are of parsed text "
            "or made by hand; score a treebank, or a file of tokens and arcs"
        )
    files = options.corpus or list(map(Path, corpus.files))
    for file in [] if options.corpus else files:
        if not file.exists():
            here = " in this folder" * (not file.is_absolute())
            raise CorpusError(
                f"{file}, which was scored, does not exist{here}; name it with `corpus`"
            )
    if is_listed:
        return read_arcs(files, least_distance=corpus.least_distance or 1)
    by = {"documents": corpus.documents_by or NEWDOC, "ids": corpus.ids_by or "given"}
    return read_conllu(files, on_bad_sentence="skip", **by)


def _typed_corpus(scores: HeadScores, choice: ExampleOptions) -> Corpus | None:
    """Return a corpus of the sentence that a user gives; None without one."""
    if choice.tokens is not None:
        return make_corpus([words_alone(choice.tokens)])
    if choice.text is None:
        return None
    parser = choice.parser or (scores.record.corpus.parser or "").partition(" ")[0]
    if not parser:
        raise UsageError(
            "no pipeline parsed the text that was scored; name one with `parser`, or give `tokens`"
        )
    return make_corpus([choice.text], parser=parser, lines=True)


def _names_again(
    roles: Iterable[str], recorded: dict[str, Any], options: AgainOptions
) -> list[str]:
    """Return names that make these roles again; of users' roles those that may be imported."""
    of_users = [name for name in recorded.get("roles") or () if is_own(name)]
    imported = {str(name): name for name in options.roles or ()}
    for name in imported:
        if name not in of_users:
            known = f"; name one of: {listed(of_users)}" if of_users else ""
            raise UsageError(f"{name!r} is no user's role that was scored{known}")
    names = dict.fromkeys(map(needed_name, roles))
    for name in filter(is_own, names):
        if name not in imported:
            raise UsageError(not_imported(name))
    return [imported.get(name, name) for name in names]


def not_imported(role: str) -> str:
    """Return the reason why a user's role has no sentences, with advice."""
    name = printable(":".join(role.split(":")[:2]))
    return (
        f"{name} is a Python function, and reading results imports none by itself; if you trust "
        "it, name it with `roles`"
    )


def load_again(scores: HeadScores, options: AgainOptions) -> LoadedEncoder:
    """Return the model that was scored. Raises ModelError for another one."""
    from headroles.models.attention.functions import NO_MODEL
    from headroles.models.loading.encoder import load_encoder

    recorded, usual = scores.record.model, ModelOptions()
    advice = "name the model that was scored with `model`"
    if options.model is None:
        if recorded.model_type == NO_MODEL:
            raise ModelError(
                f"{recorded.model} that was scored is a {recorded.class_}, which results do not "
                "hold; pass it again as model, with its tokenizer"
            )
        as_scored = {
            name: getattr(recorded, name) or getattr(usual, name)
            for name in ("dtype", "revision", "tokenizer")
            if getattr(options, name) == getattr(usual, name)
        }
        options = replace(options, model=recorded.model or "", **as_scored)
    try:
        encoder = load_encoder(options.model, options)
    except ModelError as error:
        raise ModelError(f"{error}; or {advice}") from error
    now = encoder.description
    if now.weights_sha256 != recorded.weights_sha256:
        raise ModelError(
            f"{now.model} is not the model that was scored: its weights differ (scored: "
            f"{recorded.model} in {recorded.dtype}, now in {now.dtype}); {advice}, or score again"
        )
    return encoder
