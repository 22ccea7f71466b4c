"""Claims of papers about attention heads, tested on a model, each beside its control."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from textwrap import shorten
from typing import ClassVar, TypedDict

import msgspec
import numpy as np
import pandas as pd

from headroles.corpus import AnyCorpus
from headroles.errors import HeadRolesError, UsageError
from headroles.models.loading.encoder import Attending
from headroles.options import takes
from headroles.results.columns import NUMBER, TEXT, Column, one_of
from headroles.results.consistency import Rule, answers_by
from headroles.results.result import Result
from headroles.results.shown import SEE_FULL, Grid, Pointer, Shown, Title, Warned, in_digits
from headroles.roles.own import load_function
from headroles.studies.claims.finding import Finding, at_least, two_sides
from headroles.studies.claims.measured import ClaimOptions, Measured
from headroles.studies.claims.published import TEST_OF_CLAIM
from headroles.testing.evidence import PValues, answers, corrected_together
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import CorrectionOptions
from headroles.wording import listed, not_among, with_type

VERDICTS = ("shown", "contradicted", "undecided", "described", "not testable")
SHOWN, CONTRADICTED, _, DESCRIBED, NOT_TESTABLE = VERDICTS
P_VALUES = ("p_shown", "p_shown_adjusted", "p_contradicted", "p_contradicted_adjusted")
NUMBERS = ("effect", "control", "ci_low", "ci_high")
MEASURED = (*NUMBERS, "n", "unit", "note")
TEXT_COLUMNS = ("published", "effect_is", "control_is", "statement", "source", "rule")
_FEW_WORDS = 32
_FEWEST_MODELS = 3


class ClaimFacts(TypedDict):
    """The model, or the models, that claims were tested on, in words."""

    model: str


@dataclass(frozen=True, repr=False, eq=False)
class ClaimTable(Result[ClaimOptions, ClaimFacts]):
    """Claims of papers, tested on a model or on several.

    ``frame`` has a row for each claim. ``verdict`` is ``shown`` if the corrected p-value of the
    claim is at most alpha, ``contradicted`` if that of its opposite is, else ``undecided``;
    ``described`` without a test, ``not testable`` (``note`` has the reason) if the input does not
    suffice. ``effect`` is what ``effect_is`` describes and ``control`` what ``control_is`` does; a
    claim is shown only if its effect also differs from its control. ``ci_low`` and ``ci_high`` end
    the interval that belongs to the test (NaN if it has none). ``n`` is the number of random units,
    and ``unit`` their name. ``p_shown`` and ``p_contradicted`` are the p-values of the claim and of
    its opposite; ``..._adjusted`` are corrected over the claims, each direction separately.
    """

    kind: ClassVar[str] = "claims"
    question: ClassVar[str] = "What do papers say of attention heads, and does it hold here?"
    columns: ClassVar[tuple[str, ...]] = (
        *("claim", "verdict", *NUMBERS, "n", "unit", *P_VALUES, *TEXT_COLUMNS, "note"),
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "verdict": one_of(*VERDICTS),
        **dict.fromkeys(("claim", "unit", *TEXT_COLUMNS), Column(TEXT)),
        **dict.fromkeys(("effect", "control"), Column(NUMBER, gaps=True)),
        **dict.fromkeys(P_VALUES, Column(NUMBER, 0, 1, gaps=True)),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        answers_by("verdict", "p_shown_adjusted", SHOWN),
        answers_by("verdict", "p_contradicted_adjusted", CONTRADICTED, otherwise=(SHOWN,)),
    )

    def summarize(self) -> Iterator[Shown]:
        """Count the verdicts, and tabulate the effects beside their controls."""
        counts = self.frame["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        numbers = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
        yield f"{len(self.frame)} claims about {self.facts['model']}: {numbers}."
        yield f"Tests: alpha {self.options.alpha:g}, {self.options.correction} over the claims."
        by_verdict = self.frame.iloc[
            self.frame["verdict"].map(VERDICTS.index).argsort(kind="stable")
        ]
        tested = by_verdict[by_verdict["verdict"] != NOT_TESTABLE]
        limits = zip(tested["ci_low"], tested["ci_high"], strict=True)
        rows = tested.assign(
            **{name: [in_digits(number, 3) for number in tested[name]] for name in NUMBERS[:2]},
            interval=["" if np.isnan(low) else f"{low:.3f} to {high:.3f}" for low, high in limits],
            number=[shorten(text, _FEW_WORDS, placeholder=" ...") for text in tested["effect_is"]],
        )
        names = ("claim", "verdict", "effect", "control", "interval")
        cells = {name: f"{{{name}}}" for name in names} | {"the effect is": "{number}"}
        yield Grid.from_frame(rows, cells, ["verdict", "the effect is"])
        yield Pointer(
            f"What each claim and its control are, and why some have no verdict: {SEE_FULL}"
        )
        yield from map(Warned, self.record.warnings)

    def details(self) -> Iterator[Shown]:
        """Describe each claim, its effect and control, and its test or why it has none."""
        for row in self.frame.itertuples():
            yield Title(f"{row.claim}: {row.statement} ({row.source})")
            yield f"  effect: {row.effect_is}. Published: {row.published}."
            yield f"  control: {row.control_is}. {row.rule}"
            against = f"{row.p_contradicted_adjusted:.2g} against it"
            p_values = f"corrected p {row.p_shown_adjusted:.2g} for the claim, {against}"
            sample = f"{row.n} {row.unit}" if row.verdict != NOT_TESTABLE else ""
            parts = (p_values * (row.verdict in VERDICTS[:3]), sample, str(row.note))
            yield f"  {row.verdict}: {'; '.join(filter(None, parts))}"


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of a paper in the words of ``texts.toml``, and its test."""

    id: str
    statement: str
    test: Callable[[Measured], Finding]
    source: str = ""
    published: str = ""
    effect: str = ""
    control: str = ""
    rule: str = ""

    def find(self, measured: Measured) -> Finding:
        """Return the finding, without an effect if the claim cannot be tested."""
        try:
            finding = self.test(measured)
        except HeadRolesError as error:
            return Finding(note=str(error))
        except Exception as error:  # any error of a user's code
            if self.id in CLAIMS:
                raise
            return Finding(note=f"the claim fails: {with_type(error)}")
        if not isinstance(finding, Finding):
            return Finding(note=f"the claim returned {type(finding).__name__}, not a Finding")
        return finding


_TEXTS = tomllib.loads(files(__package__).joinpath("texts.toml").read_text("utf-8"))
CLAIMS = {
    name: Claim(
        id=name,
        test=TEST_OF_CLAIM[name],
        **_TEXTS["usual"] | {key: _TEXTS["common"].get(text, text) for key, text in texts.items()},
    )
    for name, texts in _TEXTS["claims"].items()
}
"""Every published claim by its id, in the order of the table."""


def choose_claims(names: Sequence[str] | None) -> list[Claim]:
    """Return the claims of these ids, or all. Raises UsageError for an unknown name."""
    if names is not None and not names:
        raise UsageError("`claims` names no claim; leave it out for all of them")
    return [CLAIMS.get(name) or _own_claim(name) for name in dict.fromkeys(names or CLAIMS)]


def _own_claim(name: str) -> Claim:
    """Return the claim of a user's function; its docstring is the statement."""
    if ":" not in name:
        raise UsageError(not_among("claim", name, list(CLAIMS)))
    function = load_function(name, "claim")
    fields = ("source", "published", "effect", "control", "rule")
    said = {key: str(getattr(function, key, "")) for key in fields}
    return Claim(id=name, statement=inspect.getdoc(function) or name, test=function, **said)


@takes(ClaimOptions)
def test_claims(
    model: Attending,
    corpus: AnyCorpus,
    after: Attending | None = None,  # noqa: PT028
    task: str | Path | Sequence[str | Path] | None = None,  # noqa: PT028
    *,
    options: ClaimOptions,
) -> ClaimTable:
    """Test claims of papers about attention heads on a model, each beside its control.

    `ClaimTable` describes the verdicts. Trends over layers are described; `combine_claims` tests
    them over models.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode. For tasks it needs the
            head that it was trained with.
        corpus: as `score_heads` takes it. Claims about syntax need trees, and those about words
            that translate one another a bitext, of which no other claim can be tested.
        after: a fine-tuned copy of the model, for claims about fine-tuning.
        task: examples as `find_importance` takes them; two files for the claim about two tasks.
        options: keyword arguments, described below.

    Raises:
        UsageError: there is no claim of this name.
        CorpusError, ModelError, TokenizerError: as `score_heads`.
    """
    chosen = choose_claims(options.claims)
    tasks = (task,) if isinstance(task, str | Path) else tuple(task or ())
    measured = Measured(model, corpus, options, after, tasks)
    scored = measured.record
    names = {"id": "claim", "effect": "effect_is", "control": "control_is"}
    texts = pd.DataFrame(map(msgspec.structs.asdict, chosen)).rename(columns=names)
    frame = claim_frame(texts, [claim.find(measured) for claim in chosen], options)
    facts: ClaimFacts = {"model": scored.model.model or ""}
    return ClaimTable.made(frame, options, facts=facts, sources={"scores": scored})


test_claims.__test__ = False  # type: ignore[attr-defined]  # no test case, despite its name


def claim_frame(
    texts: pd.DataFrame, findings: Sequence[Finding], options: CorrectionOptions
) -> pd.DataFrame:
    """Make the table of claims, which have a row of texts each, with their findings."""
    above = corrected_together([finding.shown for finding in findings], options)
    below = corrected_together([finding.contradicted for finding in findings], options)
    yes, no = above.shows(options.alpha), below.shows(options.alpha)
    untested = np.isnan(above.single) & np.isnan(below.single)
    without = [NOT_TESTABLE if np.isnan(finding.effect) else DESCRIBED for finding in findings]
    verdicts = answers(yes | no, yes * 1.0 - no, (SHOWN, CONTRADICTED))
    numbers = (above.single, above.adjusted, below.single, below.adjusted)
    return texts.assign(
        verdict=np.where(untested, without, verdicts),
        **{name: [getattr(finding, name) for finding in findings] for name in MEASURED},
        **dict(zip(P_VALUES, numbers, strict=True)),
    )


@takes(CorrectionOptions)
def combine_claims(
    tables: Sequence[ClaimTable], names: Sequence[str], options: CorrectionOptions
) -> ClaimTable:
    """Test claims over several models, which must have been trained independently.

    A trend over layers is shown if the mean over models, less that of the controls, is above 0, by
    t with models as units. A claim with a test of its own is shown if it is shown in more than half
    of the models, by partial conjunction, whatever their tests have in common. Effect and control
    are means over models.

    Args:
        tables: of `test_claims`, one for each model or, for claims about fine-tuning, pair.
        names: of the models.
        options: keyword arguments, described below.

    Raises:
        UsageError: fewer than three tables, or twice the same model.
    """
    models = [model for table in tables for model in table.record.models.values()]
    weights = [model.weights_sha256 or name for model, name in zip(models, names, strict=True)]
    if len(tables) < _FEWEST_MODELS:
        raise UsageError(
            f"{len(tables)} models are too few for a test with models as units; give "
            f"{_FEWEST_MODELS} or more"
        )
    if len(set(names)) < len(tables) or len(set(weights)) < len(tables):
        raise UsageError("two of the tables are of the same model; give each model once")
    rows = pd.concat([table.frame for table in tables])
    texts = rows.drop_duplicates("claim", ignore_index=True)
    findings = [_over_models(of_claim) for _, of_claim in rows.groupby("claim", sort=False)]
    return ClaimTable.made(
        claim_frame(texts, findings, options),
        options,
        facts={"model": f"{len(tables)} models ({listed(names)})"},
        warnings=["Verdicts hold for models that were trained independently."],
        sources={name: table.record for name, table in zip(names, tables, strict=True)},
    )


def _over_models(rows: pd.DataFrame) -> Finding:
    """Return the finding over the models that the claim could be tested or described in."""
    rows = rows[rows["verdict"] != NOT_TESTABLE]
    n = len(rows)
    if n < _FEWEST_MODELS:
        return Finding(note=f"{n} models have a value; give {_FEWEST_MODELS} or more")
    effect, control = float(rows["effect"].mean()), float(rows["control"].mean())
    if (rows["verdict"] == DESCRIBED).all():
        less = (rows["effect"] - rows["control"]).to_numpy()[:, None]
        return Finding(
            effect, control, n, "models", *two_sides(Hypotheses.from_values(less, 0.0, size=2.0))
        )
    shown, contradicted = (
        at_least([PValues.alone(p, p)], n // 2 + 1)
        for p in (rows[name].to_numpy() for name in ("p_shown", "p_contradicted"))
    )
    counts = rows["verdict"].value_counts()
    note = f"shown in {counts.get(SHOWN, 0)}, contradicted in {counts.get(CONTRADICTED, 0)}"
    return Finding(effect, control, n, "models", shown, contradicted, note=note)
