"""Options of reading a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike as OsPathLike
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from headroles.corpus.tables import named_column, named_columns
from headroles.errors import UsageError
from headroles.models.options import ATTENTIONS, LanguageOptions
from headroles.options import (
    CIRCUMSTANCE,
    NO_FLAG,
    Convert,
    Options,
    Seed,
    fields_of,
    split_names,
    whole_number,
)
from headroles.passes.options import PassOptions
from headroles.storage import Parts, PathLike

AUTO, CLASSIFICATION = "auto", "classification"
REGRESSION, MASKED_LM = "regression", "masked_lm"
CAUSAL_LM, TEXT_TO_TEXT = WRITING = "causal_lm", "text_to_text"
"""Objectives of models that write text."""
UNLABELLED = (MASKED_LM, *WRITING)
"""Objectives of text without labels."""


def _labels(chosen: str | Sequence[str] | Mapping[str, int]) -> tuple[str, ...]:
    """Read classes of labels as ``("label=class", ...)``."""
    if isinstance(chosen, Mapping):
        chosen = [f"{label}={number}" for label, number in chosen.items()]
    pairs = split_names(chosen)
    for pair in pairs:
        label, _, number = pair.rpartition("=")
        if not label or whole_number(number) is None:
            raise UsageError(
                f"{pair!r} is not a label with its class; give both, as in entailment=0,neutral=1"
            )
    return pairs


@dataclass(frozen=True, kw_only=True)
class TaskOptions(LanguageOptions, PassOptions):
    """Options of reading and running a task."""

    title: ClassVar[str] = "Task"

    text_columns: Annotated[Sequence[str | int] | None, Convert(named_columns)] = None
    """Columns with the text, by header name or from 0: one, or two for pairs, or for a source and
    its target.

    If left out, those of GLUE files are found by their names, and source and target.
    """
    label_column: Annotated[str | None, Convert(named_column)] = None
    """Column with the label, by header name or from 0.

    If left out, those of GLUE files are found by their names.
    """
    labels: Annotated[str | Sequence[str] | Mapping[str, int] | None, Convert(_labels)] = None
    """Class of each label, by the model's numbers: entailment=0,not_entailment=1.

    If left out, the names of classes in the model's configuration.
    """
    header: bool = True
    """Whether the file has a header line."""
    separator: Literal["tab", "comma", "semicolon"] | None = None
    """Separator of columns; left out: tab, in .csv files as in the first line."""
    objective: Literal[
        "auto", "classification", "regression", "masked_lm", "causal_lm", "text_to_text"
    ] = "auto"
    """Objective of the model's training; auto: as its configuration says.

    masked_lm and causal_lm take plain text, one text a line; text_to_text takes sources and
    targets, such as sentences and their translations.
    """
    examples: Annotated[int | None, Meta(ge=2)] = None
    """Largest number of examples of the task, chosen at random, the same ones every time; a test
    file is taken whole."""
    masked_share: Annotated[float, Meta(gt=0, lt=1)] = 0.15
    """Share of the tokens that masked_lm masks."""
    mask_seed: Seed = 0
    """Seed of the tokens that masked_lm masks."""
    max_tokens: Annotated[int | None, Meta(ge=8)] = None
    """Truncate texts to this many tokens; by default to the model's limit."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of attention whose heads are looked at; empty for all that the task reads."""
        return ()


def _kinds(chosen: str | Sequence[str]) -> tuple[str, ...]:
    """Read kinds of attention, in the order of the model. Raises UsageError for others."""
    names = split_names(chosen)
    for name in names:
        if name not in ATTENTIONS:
            raise UsageError(f"the attention is {name!r}; it must be of {', '.join(ATTENTIONS)}")
    return tuple(kind for kind in ATTENTIONS if kind in names)


def _as_parts(source: PathLike | Parts) -> Parts:
    if isinstance(source, Parts):
        return source
    if not isinstance(source, str | OsPathLike):
        raise UsageError(f"parts is {source!r}; it must be the name of a folder")
    return Parts(Path(source))


@dataclass(frozen=True, kw_only=True)
class RunOptions(TaskOptions):
    """Options of a long study of a task, which resumes where it was interrupted."""

    attention: Annotated[Sequence[str] | None, Convert(_kinds)] = None
    """Heads to look at in a model of text to text: those of encoder, decoder or cross, separated by
    commas; left out: all."""
    parts: Annotated[Parts | None, Convert(_as_parts), NO_FLAG, CIRCUMSTANCE] = None
    """Folder for finished batches, with which the same study resumes after an interruption."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of attention whose heads are looked at; empty for all that the task reads."""
        return tuple(self.attention or ())


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(Options):
    """Options of translations that are written, and compared with the targets."""

    title: ClassVar[str] = "Task"

    generate: bool = False
    """Also write translations before and after heads go, and measure BLEU and chrF.

    For models of text to text, by sacrebleu. It is dear: a translation runs the decoder once for
    each of its pieces, and takes as long as several losses.
    """
    beams: Annotated[int, Meta(ge=1)] = 1
    """Beams of the search for a translation; 1 is greedy."""
    longest_translation: Annotated[int, Meta(ge=1)] = 128
    """Most pieces of a translation; models without heads may never end one."""
    bleu_tokens: Literal["13a", "intl", "zh", "char", "none"] = "13a"
    """How sacrebleu cuts texts for BLEU: zh for Chinese, char where texts have no spaces."""
    ignore_case: bool = False
    """Compare translations with targets in lower case."""

    def check(self) -> None:
        """Reject options of translations without any."""
        super().check()
        for field in fields_of(GenerateOptions):
            if not self.generate and getattr(self, field.name) != field.default:
                raise UsageError(
                    f"`{field.name}` is about translations that are written; pass `generate=True`"
                )
