"""Options of reading a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from headroles.corpus.table_files import SEPARATORS, named_columns
from headroles.errors import UsageError
from headroles.options import Option, seed_option, split_names, whole_number
from headroles.passes.options import PassOptions

AUTO, CLASSIFICATION, REGRESSION, MASKED_LM = OBJECTIVES = (
    "auto",
    "classification",
    "regression",
    "masked_lm",
)


def _columns(given: Any) -> tuple[str | int, ...]:
    return named_columns((given,) if isinstance(given, int) else given)


def _column(given: Any) -> str | int:
    number = whole_number(str(given))
    return str(given) if number is None else number


def _labels(given: Any) -> tuple[str, ...]:
    """Read classes of labels as ``("label=class", ...)``."""
    if isinstance(given, Mapping):
        given = [f"{label}={number}" for label, number in given.items()]
    pairs = split_names(given)
    for pair in pairs:
        label, _, number = pair.rpartition("=")
        if not label or whole_number(number) is None:
            raise UsageError(
                f"{pair!r} is not a label with its class; give both, as in entailment=0,neutral=1"
            )
    return pairs


@dataclass(frozen=True, kw_only=True)
class TaskOptions(PassOptions):
    """Options of reading and running a task."""

    title: ClassVar[str] = "Task"

    text_columns: Annotated[
        Sequence[str | int] | None,
        Option(
            "Columns with the text, by header name or from 0: one, or two for pairs.",
            more="If left out, those of GLUE files are found by their names.",
            words="the text columns",
            convert=_columns,
        ),
    ] = None
    label_column: Annotated[
        str | None,
        Option(
            "Column with the label, by header name or from 0.",
            more="If left out, those of GLUE files are found by their names.",
            words="the label column",
            convert=_column,
        ),
    ] = None
    labels: Annotated[
        str | Sequence[str] | Mapping[str, int] | None,
        Option(
            "Class of each label, by the model's numbers: entailment=0,not_entailment=1.",
            more="If left out, the names of classes in the model's configuration.",
            words="the labels",
            convert=_labels,
        ),
    ] = None
    header: Annotated[bool, Option("Whether the file has a header line.")] = True
    separator: Annotated[
        str | None,
        Option(
            "Separator of columns; left out: tab, in .csv files as in the first line.",
            words="the separator",
            choices=SEPARATORS,
        ),
    ] = None
    objective: Annotated[
        str,
        Option(
            "Objective of the model's training; auto: as its configuration says.",
            more="masked_lm takes plain text, one text a line.",
            words="the objective",
            choices=OBJECTIVES,
        ),
    ] = AUTO
    examples: Annotated[
        int | None,
        Option(
            "Largest number of examples, chosen at random, the same examples every time.",
            words="the number of examples",
            least=2,
        ),
    ] = None
    masked_share: Annotated[
        float, Option("Share of the tokens that masked_lm masks.", above=0, below=1)
    ] = 0.15
    mask_seed: Annotated[
        int, seed_option("Seed of the tokens that masked_lm masks.", "the seed of the masks")
    ] = 0
    max_tokens: Annotated[
        int | None,
        Option("Truncate texts to this many tokens; by default to the model's limit.", least=8),
    ] = None
