"""What do translations lose without heads? BLEU and chrF, tested over sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import pandas as pd

from headroles.models.heads.remaining import Head
from headroles.models.options import ZERO
from headroles.results.shown import Grid, Shown, Title, in_digits
from headroles.storage import plain
from headroles.studies.removals import BETTER, WORSE, two_sided, without_each
from headroles.tasks.options import GenerateOptions
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import CorrectionOptions, TestOptions

if TYPE_CHECKING:
    from headroles.tasks.running import TaskRun
    from headroles.tasks.translating import Translations

WHOLE_MODEL = "nothing"
"""What the whole model is without."""
_ROWS = 6
"""Removals that a screen has room for."""
TRANSLATION_COLUMNS = tuple(
    "removed measure n value change ci_low ci_high p_value p_adjusted answer".split()
)


class TranslationFacts(TypedDict):
    """BLEU and chrF of translations, and how they were written and compared.

    ``rows`` are those of the view ``translations``; ``signatures`` are sacrebleu's. ``pieces`` are
    all pieces of the translations, for each of which the decoder ran once.
    """

    signatures: dict[str, str]
    beams: int
    texts: int
    pieces: int
    rows: list[dict[str, Any]]


def translations_without(
    run: TaskRun, removed: Iterable[Sequence[Head]], options: GenerateOptions, ablation: str = ZERO
) -> Translations:
    """Write the translations of a run without each set of heads."""
    from headroles.tasks.translating import translate

    return translate(run, without_each(removed, run.shape), options, ablation)


def compare_translations(
    names: Sequence[str],
    translations: Translations,
    options: GenerateOptions,
    tests: CorrectionOptions | None = None,
) -> TranslationFacts:
    """Compare translations with those of the whole model, which are the first ones.

    ``names`` are of the others. Changes of BLEU and chrF are tested as those of other metrics are:
    by t-tests over pseudo-values of the jackknife, corrected over ``names``, each metric by itself.
    """
    tests = tests or TestOptions(clusters="none")
    values, rows = translations.measures(), []
    for measure, units in translations.units().items():
        changes = Hypotheses.from_values(units[:, 1:] - units[:, :1], 0.0, size=np.abs(units).max())
        columns = "mean ci_low ci_high p_value p_adjusted answer"
        tested = two_sided(changes, tests, (BETTER, WORSE), columns)
        of_sets = pd.DataFrame({**tested, "removed": names, "value": values[measure][1:]})
        of_sets["change"] = of_sets["value"] - values[measure][0]
        bias = of_sets.pop("mean") - of_sets["change"]  # of the jackknife
        of_sets["ci_low"], of_sets["ci_high"] = of_sets["ci_low"] - bias, of_sets["ci_high"] - bias
        whole = pd.DataFrame([{"removed": WHOLE_MODEL, "value": values[measure][0], "answer": ""}])
        rows.append(pd.concat([whole, of_sets]).assign(measure=measure, n=len(translations.pieces)))
    frame = pd.concat(rows, ignore_index=True)[list(TRANSLATION_COLUMNS)]
    return {
        "signatures": translations.signatures(),
        "beams": options.beams,
        "texts": translations.pieces.size,
        "pieces": int(translations.pieces.sum()),
        "rows": plain(frame.to_dict("records")),
    }


def as_frame(facts: TranslationFacts | None) -> pd.DataFrame:
    """Return the view ``translations``; empty if none were written."""
    return pd.DataFrame(facts["rows"] if facts else None, columns=list(TRANSLATION_COLUMNS))


def describe_translations(
    facts: TranslationFacts | None, words: Mapping[str, str] | None = None
) -> Iterator[Shown]:
    """Tabulate BLEU and chrF without heads, and say what they cost; nothing if none were written.

    ``words`` has names of removals for people.
    """
    if not facts:
        return
    by_removal: dict[str, dict[str, Any]] = {}
    for row in facts["rows"]:
        by_removal.setdefault(row["removed"], {})[row["measure"]] = row
    search = "greedy" if facts["beams"] == 1 else f"{facts['beams']} beams"
    yield Title(
        f"Translations ({search}): {facts['texts']:,} texts, for whose {facts['pieces']:,} pieces "
        "the decoder ran one by one"
    )
    cells = tuple(
        (
            (words or {}).get(removed, removed),
            *(cell for row in of_removal.values() for cell in _cells(row)),
        )
        for removed, of_removal in by_removal.items()
    )
    measures = [*facts["signatures"]]
    titles = [cell for measure in measures for cell in (_TITLES[measure], "change (interval)")]
    yield Grid(("without", *titles), cells[: _ROWS + 1], view="translations")


_TITLES = {"bleu": "BLEU", "chrf": "chrF"}


def _cells(row: Mapping[str, Any]) -> tuple[str, str]:
    """Write a value, and its change with the interval."""
    if row["change"] is None:
        return in_digits(row["value"], 1), ""
    low, high = (in_digits(row[end], 1) for end in ("ci_low", "ci_high"))
    return in_digits(row["value"], 1), f"{row['change']:+z.1f} ({low} to {high})"
