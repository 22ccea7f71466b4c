"""What was scored, read again: its sentences, the sieves of its roles, and its model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from os import PathLike as OsPathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

import numpy as np
from msgspec import Meta

from headroles.corpus import (
    DEFAULT_RELATIONS,
    Corpus,
    Example,
    Sentence,
    can_reopen,
    make_corpus,
    make_examples,
    prepared,
    reopen_corpus,
    typed_pair,
    words_alone,
)
from headroles.corpus.files import STANDARD_INPUT
from headroles.corpus.text import is_spacys_own
from headroles.encoding import SPECIAL, AlignedEncoder, Cut, EncodedExample
from headroles.errors import CorpusError, ModelError, UsageError
from headroles.models.heads.remaining import Head
from headroles.models.options import CROSS, ENCODER, WEIGHTS, ModelOptions, TargetOptions
from headroles.options import CIRCUMSTANCE, Convert, Options, split_names
from headroles.record import NO_MODEL, RecordedCorpus
from headroles.roles import PaddedBatch, Role, RoleOptions, choose_roles, is_own
from headroles.roles.choice import fields_of_groups
from headroles.roles.own import names_of_roles
from headroles.scoring.scores import HeadScores
from headroles.storage import PathLike
from headroles.wording import head_name, listed, printable, shortened

if TYPE_CHECKING:
    from headroles.models.loading.encoder import LoadedModel, Model

LARGEST: Final = "largest"
MEDIAN: Final = "median"
SMALLEST: Final = "smallest"
TYPED = -1
"""Row of a sentence that was not scored."""
_HEAD = re.compile(r"(\d{1,6})-(\d{1,6})")


def read_head(text: str) -> tuple[int, int]:
    """Read layer and head from their name, as in ``4-0``. Raises UsageError for another name.

    >>> read_head("4-0")
    (4, 0)
    """
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"the head is {shortened(text)!r}; it must be layer-head, as in 3-11")
    return int(match[1]), int(match[2])


def _paths(value: PathLike | Iterable[PathLike]) -> tuple[Path, ...]:
    if isinstance(value, OsPathLike):
        return (Path(value),)
    return tuple(map(Path, split_names(value) if isinstance(value, str) else value))


def _any_model(model: Model) -> Model:
    return model


@dataclass(frozen=True, kw_only=True)
class OriginOptions(ModelOptions):
    """Options of the text, the roles and the model that were scored."""

    title: ClassVar[str] = "Model"

    roles: Annotated[Sequence[str] | None, Convert(names_of_roles), CIRCUMSTANCE] = None
    """Roles of users that may be imported again, as MODULE:FUNCTION.

    Reading results imports no code unless it is named here. In Python, functions themselves.
    """
    corpus: Annotated[Sequence[Path] | None, Convert(_paths), CIRCUMSTANCE] = None
    """Treebank that was scored, files or folders, if it has moved."""
    model: Annotated[Any, Convert(_any_model), CIRCUMSTANCE] = None
    """Model that was scored, if it has moved.

    A folder, a hub id or, from Python, a loaded model in evaluation mode.
    """


def _words(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(value.split() if isinstance(value, str) else map(str, value))


@dataclass(frozen=True, kw_only=True)
class TypedOptions(Options):
    """Options of a sentence of the user's own."""

    title: ClassVar[str] = "Output"

    text: str | None = None
    """A sentence of yours, parsed by the pipeline of the run; of bitexts: source ||| target."""
    tokens: Annotated[Sequence[str] | None, Convert(_words)] = None
    """The words of a sentence of yours, with blanks between them; they have no tree."""
    parser: str | None = None
    """spaCy pipeline that parses `text`; left out: that of the run."""

    def check(self) -> None:
        """Reject a pipeline without text."""
        super().check()
        if self.parser is not None and self.text is None:
            raise UsageError("`parser` has no effect without `text`; omit it")

    @property
    def is_given(self) -> bool:
        """Whether there is a sentence of the user's own."""
        return self.text is not None or self.tokens is not None


@dataclass(frozen=True, kw_only=True)
class ReportOptions(TypedOptions, OriginOptions):
    """Options of the sentences and weights of a page."""

    title: ClassVar[str] = "Output"


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
        choices = [
            name for name in ("example", "text", "tokens") if getattr(self, name) is not None
        ]
        if self.which != MEDIAN:
            choices.append("which")
        if len(choices) > 1:
            raise UsageError(f"`{choices[0]}` names the one to show; leave `{choices[1]}` out")


Wanted = tuple[Head, str, ExampleOptions]
"""Head, role, and which examples of them."""


@dataclass(frozen=True)
class Chosen:
    """An example to show of a head and a role; ``row`` is its place among the scores.

    A sentence that was not scored has the row `TYPED`, and the score NaN.
    """

    head: Head
    role: Role
    row: int
    score: float
    example: Example

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all sentences."""
        return sum((sentence.words for sentence in self.example.sentences), ())

    @cached_property
    def marks(self) -> tuple[list[int], list[tuple[int, int]]]:
        """Numbers of the words in the sieve of the role, and its pairs (query, key) of words.

        Both are empty for sieves of places or of special tokens.
        """
        assert self.role.sieve is not None
        keys, pairs = self.role.sieve.words(PaddedBatch([_WordByWord({}).of(self.example)]))
        return sorted(keys), pairs


class _WordByWord(AlignedEncoder):
    """Encoder of examples of any length whose words are one token each."""

    def of(self, example: Example) -> EncodedExample:
        """Encode an example, with special tokens around its sentences."""
        segments, words = [SPECIAL], [-1]
        for segment, sentence in enumerate(example.sentences):
            segments += [segment] * len(sentence.words) + [SPECIAL]
            words += [*range(len(sentence.words)), -1]
        cut = Cut(np.zeros(len(words), np.int64), None, np.array(segments), np.array(words))
        return self._encoded(example, cut)


def _first_with_words(several: Sequence[Chosen]) -> Chosen:
    """Return the first whose role has words in its example; the first of all if none has any."""
    return next((one for one in several if any(one.marks)), several[0])


@dataclass(frozen=True)
class Origin:
    """What scores come from, read again: sentences, roles with their sieves, the model."""

    scores: HeadScores
    options: OriginOptions

    def examples(self, wanted: Sequence[Wanted]) -> list[list[Chosen]]:
        """Choose examples of several heads and roles, and read them in one pass over the treebank.

        All are of the treebank, or all are the same sentence of the user's own. Of the roles that a
        relation names, a sentence is an example of the one in which the head is strongest among
        those that it has words for.

        Raises UsageError for a head or role that the scores do not have, and an example without
        score; other errors as `read`.
        """
        typed, chosen = self._typed(wanted[0][2]), []
        for head, role_name, choice in wanted:
            several = self.scores.roles_of(head, role_name)[: 1 if typed is None else None]
            rows = self._choose(head, several[0], choice)
            chosen.append(((int(head[0]), int(head[1])), several, rows))
        every = {row for *_, rows in chosen for row in rows}
        names = [role for _, several, _ in chosen for role in several]
        roles, examples = self.read(names, every, typed)
        return [
            [
                _first_with_words(
                    [Chosen(head, roles[role], row, score, examples[row]) for role in several]
                )
                for row, score in rows.items()
            ]
            for head, several, rows in chosen
        ]

    def _typed(self, choice: ExampleOptions) -> Corpus | None:
        """Return a corpus of the sentence that a user gives; None without one."""
        if self.scores.record.model.attention != ENCODER:
            return self._typed_pair(choice)
        recorded = (self.scores.record.corpus.parser or "").partition(" ")[0]
        parser = choice.parser or recorded
        if choice.text is not None and not parser:
            raise UsageError(
                "no pipeline parsed the text that was scored; name one with `parser`, or give "
                "`tokens`"
            )
        is_known = is_spacys_own(parser) and find_spec(parser) is not None
        if choice.text is not None and not choice.parser and not is_known:
            raise UsageError(
                f"run.json names the pipeline {shortened(printable(parser))!r}, which is none of "
                "spaCy's that is installed, and reading results loads no other by itself; if you "
                "trust it, name it with `parser`"
            )
        text = choice.tokens if choice.text is None else choice.text
        return None if text is None else typed_corpus(text, parser)

    def _typed_pair(self, choice: ExampleOptions) -> Corpus | None:
        """Return a corpus of the source and the target that a user gives; None without one."""
        if choice.parser is not None:
            raise UsageError("`parser` has no effect on a pair of words; omit it")
        text = choice.text or " ".join(choice.tokens or ())
        scored = self.scores.record.corpus
        return typed_pair(text, scored.links_from, scored.spacing) if choice.is_given else None

    def _choose(self, head: Head, role: str, choice: ExampleOptions) -> dict[int, float]:
        """Return scores of the wanted examples by their places among all."""
        scores, values = self.scores, self.scores.of_head(head, role)
        if list(head) in map(list, scores.record.model.removed_heads):
            raise UsageError(
                f"head {head_name(head)} was removed from the model and has no scores; name another"
            )
        if choice.is_given:
            return {TYPED: np.nan}
        rows = np.flatnonzero(~np.isnan(values))
        if (name := choice.example) is not None:
            rows = rows[[scores.ids[row] == name for row in rows]]
            if not len(rows):
                raise UsageError(
                    f"head {head_name(head)} has no score of {role} in an example "
                    f"{shortened(name)!r}; name one from the column example of: headroles examples"
                )
        ranks = values[rows]
        if choice.which == MEDIAN and len(rows):
            ranks = np.abs(ranks - np.median(ranks))
        order = np.argsort(-ranks if choice.which == LARGEST else ranks, kind="stable")
        return {int(row): float(values[row]) for row in rows[order][: choice.n]}

    def read(
        self, roles: Collection[str], rows: Iterable[int], typed: Corpus | None = None
    ) -> tuple[dict[str, Role], dict[int, Example]]:
        """Return roles with their sieves, and the examples at ``rows``, or the one of ``typed``.

        A role of a user is read only if its ``MODULE:FUNCTION`` is among ``roles`` of the options:
        scores may come from elsewhere, and the name that they record must not decide which code
        runs.

        Raises UsageError for scores of parsed text or made by hand and for roles that were not
        scored, and CorpusError for a treebank that is missing or has changed.
        """
        scored, recorded = self.scores.record.corpus, self.scores.record.options
        names = self._names_again(roles)
        used = [field.name for field in fields_of_groups(names) if field.name in recorded]
        as_scored = {name: recorded[name] for name in used if name not in ("relations", "roles")}
        role_options = RoleOptions(roles=names, **as_scored)
        with prepared(typed or self._treebank()) as ready:
            if typed is not None:
                sentences = [_relabelled(sentence, ready.record, scored) for sentence in ready]
                examples = {TYPED: Example(tuple(sentences))}
            elif ready.record.digest != scored.digest:
                raise CorpusError(
                    f"{', '.join(ready.record.files)} has other sentences than when it was scored; "
                    "name the file that was scored with `corpus`, or score again"
                )
            else:
                by_id = {self.scores.ids[row]: row for row in rows}
                examples = {
                    by_id[example.id]: example
                    for example in make_examples(ready, recorded.get("pairing") or "adjacent")
                    if example.id in by_id
                }
            relations = tuple(recorded.get("relations") or ())
            model = self.scores.record.model
            setting = self.scores.score, ready, model.is_causal, model.attention == CROSS
            chosen = choose_roles(role_options, relations, *setting) if names else ()
        words = {role.id: role.words for role in self.scores.roles}  # as of sources, or as renamed
        roles_made = {
            role.id: replace(role, words=words.get(role.id, role.words)) for role in chosen
        }
        for role in roles:
            if role not in roles_made:
                raise UsageError(f"the recorded options make no role {role!r}; score again")
        return roles_made, examples

    def _treebank(self) -> Corpus:
        """Return the treebank that was scored. Raises UsageError or CorpusError without one."""
        corpus = self.scores.record.corpus
        if not can_reopen(corpus):
            raise UsageError(
                "sentences come from the files that were scored, and these scores are of parsed "
                "text or made by hand; score a treebank, or a file of tokens and arcs"
            )
        if not self.options.corpus and STANDARD_INPUT in corpus.files:
            raise CorpusError(
                "standard input was scored, which cannot be read again; name a file with the same "
                "sentences with `corpus`"
            )
        files = self.options.corpus or list(map(Path, corpus.files))
        for file in [] if self.options.corpus else files:
            if not file.exists():
                here = " in this folder" if not file.is_absolute() else ""
                raise CorpusError(
                    f"{file}, which was scored, does not exist{here}; name it with `corpus`"
                )
        return reopen_corpus(files, corpus)

    def _names_again(self, roles: Iterable[str]) -> list[str]:
        """Return names that make roles again; of users' roles those that may be imported."""
        scored = [name for name in self.scores.record.options.get("roles") or () if is_own(name)]
        imported = {str(name): name for name in self.options.roles or ()}
        for name in imported:
            if name not in scored:
                advice = f"; name one of: {listed(scored)}" if scored else ""
                raise UsageError(f"{name!r} is no user's role that was scored{advice}")
        by_id, names = {role.id: role for role in self.scores.roles}, dict[str, None]()
        for role in map(by_id.__getitem__, roles):
            if role.function and role.function not in imported:
                raise UsageError(not_imported(role.function))
            names[role.function or role.parent or role.measure_of or role.id] = None
        return [imported.get(name, name) for name in names]

    @property
    def measure(self) -> str:
        """What the scores were read of: weights, or norms in their place."""
        return self.scores.record.options.get("measure") or WEIGHTS

    @cached_property
    def encoder(self) -> LoadedModel:
        """The model that was scored. Raises ModelError for another one."""
        from headroles.models.loading.encoder import load_encoder

        recorded, usual, options = self.scores.record.model, ModelOptions(), self.options
        advice = "name the model that was scored with `model`"
        if options.model is None:
            if recorded.model_type == NO_MODEL:
                raise ModelError(
                    f"{recorded.model} that was scored is a {recorded.class_}, which results do "
                    "not hold; pass it again as model, with its tokenizer"
                )
            as_scored = {
                name: getattr(recorded, name) or getattr(usual, name)
                for name in ("dtype", "revision", "tokenizer")
                if getattr(options, name) == getattr(usual, name)
            }
            options = replace(options, model=recorded.model or "", **as_scored)
        try:
            encoder = load_encoder(options.model, options, of=self._targets)
        except ModelError as error:
            raise ModelError(f"{error}; or {advice}") from error
        now = encoder.description
        if now.weights_sha256 != recorded.weights_sha256:
            raise ModelError(
                f"{now.model} is not the model that was scored: its weights differ (scored: "
                f"{recorded.model} in {recorded.dtype}, now in {now.dtype}); {advice}, or score "
                "again"
            )
        return encoder

    @property
    def _targets(self) -> TargetOptions:
        """How the attention that was scored reads targets."""
        model, recorded = self.scores.record.model, self.scores.record.options
        names = ("target_rows", "source_language", "target_language")
        return TargetOptions(
            attention=model.attention,
            target_tokenizer=model.target_tokenizer or None,
            **{name: recorded[name] for name in names if name in recorded},
        )


def typed_corpus(text: str | Sequence[str], parser: str | None) -> Corpus:
    """Return a corpus of a sentence of the user's own: text to be parsed, or words."""
    if isinstance(text, str):
        return make_corpus([text], parser=parser, lines=True)
    return make_corpus([words_alone(text)])


def _relabelled(sentence: Sentence, parsed: RecordedCorpus, scored: RecordedCorpus) -> Sentence:
    """Give a sentence the labels of the corpus that was scored, for the usual relations."""
    schemes = (DEFAULT_RELATIONS.get(corpus.scheme, ()) for corpus in (parsed, scored))
    labels = dict(zip(*schemes, strict=False))
    return replace(sentence, relations=tuple(labels.get(name, name) for name in sentence.relations))


def not_imported(function: str) -> str:
    """Return the reason why the role of a user's function has no sentences, with advice."""
    return (
        f"{printable(function)} is a Python function, and reading results imports none by "
        "itself; if you trust it, name it with `roles`"
    )
