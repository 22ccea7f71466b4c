"""Commands: thin covers over the library. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headroles import console
from headroles.console import reports_errors
from headroles.errors import StorageError, UsageError
from headroles.memory import ask_for_large_pages, collect_rarely

if TYPE_CHECKING:
    from headroles.comparison import RoleShifts
    from headroles.scores import HeadScores

app = typer.Typer(
    name="headroles",
    help="What the attention heads of a BERT-style encoder do, tested for every head and role.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"headroles {version('headroles')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    pass


Model = Annotated[str, typer.Argument(help="Hub id or folder of an encoder.")]
Sources = Annotated[
    list[Path], typer.Argument(metavar="CORPUS...", help="CoNLL-U files or folders, or text.")
]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
Scored = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that score or classify wrote.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace results in the folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]

Tokenizer = Annotated[
    str | None, typer.Option("--tokenizer", help="If it does not come with the model.")
]
Revision = Annotated[str | None, typer.Option("--revision", help="Of the model on the hub.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Dtype = Annotated[str, typer.Option("--dtype", help="Of the model: float32, bfloat16, float16.")]
BatchTokens = Annotated[
    int | None, typer.Option("--batch-tokens", help="Most tokens of a batch, padding included.")
]
RemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
]

Parser = Annotated[
    str | None, typer.Option("--parser", help="spaCy pipeline, by name or path, to parse text.")
]
TextColumns = Annotated[
    str | None,
    typer.Option(
        "--text-columns",
        help="Columns of tab-separated text, from 0 or by header name: one, or two for pairs.",
    ),
]
Header = Annotated[bool, typer.Option(help="Whether tab-separated text has a header line.")]
OnBadSentence = Annotated[
    str, typer.Option("--on-bad-sentence", help="Defective sentences: error or skip.")
]

Relations = Annotated[
    str | None,
    typer.Option("--relations", help="Relations to score, separated by commas, or: all."),
]
Window = Annotated[int, typer.Option("--window", help="Reach of the local sieve, in tokens.")]
Pairing = Annotated[
    str, typer.Option("--pairing", help="Two adjacent sentences an example (adjacent), or none.")
]
KeepSubtypes = Annotated[
    bool, typer.Option("--keep-subtypes", help="Take nsubj:pass for a relation of its own.")
]

Score = Annotated[
    str,
    typer.Option(
        "--score", help="bias: times uniform attention; excess: share beyond uniform, at most 1."
    ),
]
BeyondOffset = Annotated[
    bool,
    typer.Option(
        "--beyond-offset/--no-beyond-offset",
        help="Contrast syntactic roles with other words at the same offset.",
    ),
]

Threshold = Annotated[
    float | None,
    typer.Option("--threshold", help="Mean score to exceed; left out: 3 (bias), 0.1 (excess)."),
]
Alpha = Annotated[float, typer.Option("--alpha", help="Level of the tests.")]
Test = Annotated[str, typer.Option("--test", help="t, wilcoxon, sign_flip or bootstrap_t.")]
Correction = Annotated[
    str,
    typer.Option(
        "--correction", help="fdr_bh, fdr_by, fdr_tsbh, holm, hochberg, bonferroni, max_t, none."
    ),
]
Family = Annotated[
    str, typer.Option("--family", help="Tests corrected together: all, or those of each role.")
]
Groups = Annotated[
    str,
    typer.Option(
        "--groups",
        help="Clusters of examples: document, none, or auto (document if there are several).",
    ),
]
Interval = Annotated[
    str, typer.Option("--interval", help="Of the means: t, bootstrap_t, bca or simultaneous.")
]
Resamples = Annotated[
    int, typer.Option("--resamples", help="Number of sign flips or bootstrap samples.")
]
Seed = Annotated[int, typer.Option("--seed", help="Of the resamples.")]
PairedTest = Annotated[
    str, typer.Option("--test", help="Of the differences, and of the roles: t or sign_flip.")
]
Margin = Annotated[
    float | None,
    typer.Option(
        "--margin", help="Difference that would matter; left out: 0.5 (bias), 0.025 (excess)."
    ),
]
Names = Annotated[
    str | None,
    typer.Option("--names", help="What to call AFTER and those that follow, separated by commas."),
]
OnMismatch = Annotated[
    str,
    typer.Option(
        "--on-mismatch",
        help="Examples or roles that not all have: error, or intersect to leave them out.",
    ),
]
AreModels = Annotated[
    bool, typer.Option("--models", help="BEFORE, AFTER, ... are models: score them first.")
]
ModelCorpus = Annotated[
    list[Path] | None,
    typer.Option("--corpus", metavar="FILE", help="To score models over; repeat it for each file."),
]
_OF_MODELS = (
    "corpus",
    "tokenizer",
    "parser",
    "text_columns",
    "header",
    "on_bad_sentence",
    "relations",
    "window",
    "pairing",
    "keep_subtypes",
    "score",
    "beyond_offset",
    "device",
    "dtype",
    "batch_tokens",
    "trust_remote_code",
)
"""Parameters of ``compare`` that say how models are scored."""
Preset = Annotated[
    str,
    typer.Option(
        "--preset", help="default; published: as the released notebooks, without correction."
    ),
]


@app.command()
@reports_errors
def classify(
    model: Model,
    corpus: Sources,
    out: Out,
    tokenizer: Tokenizer = None,
    parser: Parser = None,
    text_columns: TextColumns = None,
    header: Header = True,
    on_bad_sentence: OnBadSentence = "error",
    relations: Relations = None,
    window: Window = 2,
    pairing: Pairing = "adjacent",
    keep_subtypes: KeepSubtypes = False,
    score: Score = "bias",
    beyond_offset: BeyondOffset = True,
    threshold: Threshold = None,
    alpha: Alpha = 0.05,
    test: Test = "t",
    correction: Correction = "fdr_bh",
    family: Family = "all",
    groups: Groups = "auto",
    interval: Interval = "t",
    resamples: Resamples = 10_000,
    seed: Seed = 0,
    preset: Preset = "default",
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_tokens: BatchTokens = None,
    revision: Revision = None,
    trust_remote_code: RemoteCode = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Score the heads of MODEL over CORPUS and test them. Writes the scores and the role table."""
    from headroles.classification import classify_heads
    from headroles.corpus import open_corpus
    from headroles.storage import check_result_folder

    check_result_folder(out, overwrite)
    source = open_corpus(corpus, parser, _columns(text_columns), header, on_bad_sentence)
    with console.progress_bar("scoring") as on_progress:
        result = classify_heads(
            model,
            source,
            tokenizer,
            threshold=threshold,
            alpha=alpha,
            test=test,
            correction=correction,
            family=family,
            groups=groups,
            interval=interval,
            resamples=resamples,
            seed=seed,
            preset=preset,
            relations=_relations(relations),
            window=window,
            pairing=pairing,
            keep_subtypes=keep_subtypes,
            score=score,
            beyond_offset=beyond_offset,
            device=device,
            dtype=dtype,
            batch_tokens=batch_tokens,
            revision=revision,
            trust_remote_code=trust_remote_code,
            on_progress=on_progress,
        )
    result.save(out, overwrite)
    _show(out, as_json, result.roles.provenance, result.roles)


@app.command()
@reports_errors
def score(
    model: Model,
    corpus: Sources,
    out: Out,
    tokenizer: Tokenizer = None,
    parser: Parser = None,
    text_columns: TextColumns = None,
    header: Header = True,
    on_bad_sentence: OnBadSentence = "error",
    relations: Relations = None,
    window: Window = 2,
    pairing: Pairing = "adjacent",
    keep_subtypes: KeepSubtypes = False,
    score: Score = "bias",
    beyond_offset: BeyondOffset = True,
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_tokens: BatchTokens = None,
    revision: Revision = None,
    trust_remote_code: RemoteCode = False,
    preset: Preset = "default",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Score the heads of MODEL over CORPUS, without tests. For corpora of any size."""
    from headroles.corpus import open_corpus
    from headroles.hypotheses import PUBLISHED, check_preset
    from headroles.scoring import ScoringOptions, open_scoring, score_to_folder
    from headroles.storage import result_folder

    check_preset(preset)
    options = ScoringOptions(
        relations=_relations(relations),
        window=window,
        pairing=pairing,
        keep_subtypes=keep_subtypes,
        published_edge=preset == PUBLISHED,
        batch_tokens=batch_tokens,
        score=score,
        beyond_offset=beyond_offset and preset != PUBLISHED,
    )
    loading = {
        "device": device,
        "dtype": dtype,
        "revision": revision,
        "trust_remote_code": trust_remote_code,
    }
    source = open_corpus(corpus, parser, _columns(text_columns), header, on_bad_sentence)
    with (
        result_folder(out, overwrite) as folder,
        open_scoring(model, source, tokenizer, options, **loading) as run,
        console.progress_bar("scoring") as on_progress,
    ):
        provenance = score_to_folder(run, folder, on_progress)
    _show(out, as_json, provenance)


@app.command()
@reports_errors
def assign(
    scored: Scored,
    threshold: Threshold = None,
    alpha: Alpha = 0.05,
    test: Test = "t",
    correction: Correction = "fdr_bh",
    family: Family = "all",
    groups: Groups = "auto",
    interval: Interval = "t",
    resamples: Resamples = 10_000,
    seed: Seed = 0,
    preset: Preset = "default",
    as_json: AsJson = False,
) -> None:
    """Test the scores in DIR again, without the model. Writes the role table there."""
    from headroles.hypotheses import PUBLISHED
    from headroles.roles import assign_roles
    from headroles.scores import HeadScores

    scores = HeadScores.load(scored)
    table = assign_roles(
        scores,
        threshold=threshold,
        alpha=alpha,
        test=test,
        correction=correction,
        family=family,
        groups=groups,
        interval=interval,
        resamples=resamples,
        seed=seed,
        preset=preset,
    )
    if (preset == PUBLISHED) != scores.provenance.get("options", {}).get("published_edge", False):
        console.warn("the scores were not made with this preset: only the tests follow it")
    table.write_into(scored)
    _show(scored, as_json, table.provenance, table)


@app.command()
@reports_errors
def compare(
    context: typer.Context,
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="BEFORE AFTER...",
            help="Folders that score or classify wrote; with --models, hub ids or model folders.",
        ),
    ],
    out: Out,
    names: Names = None,
    threshold: Threshold = None,
    margin: Margin = None,
    alpha: Alpha = 0.05,
    test: PairedTest = "t",
    correction: Correction = "fdr_bh",
    family: Family = "all",
    groups: Groups = "auto",
    resamples: Resamples = 10_000,
    seed: Seed = 0,
    on_mismatch: OnMismatch = "error",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    models: AreModels = False,
    corpus: ModelCorpus = None,
    tokenizer: Tokenizer = None,
    parser: Parser = None,
    text_columns: TextColumns = None,
    header: Header = True,
    on_bad_sentence: OnBadSentence = "error",
    relations: Relations = None,
    window: Window = 2,
    pairing: Pairing = "adjacent",
    keep_subtypes: KeepSubtypes = False,
    score: Score = "bias",
    beyond_offset: BeyondOffset = True,
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_tokens: BatchTokens = None,
    trust_remote_code: RemoteCode = False,
) -> None:
    """Test what changed in the heads, as by fine-tuning. Each AFTER is compared with BEFORE.

    Of stored scores: headroles compare BEFORE AFTER... --out DIR

    Of models: headroles compare --models BEFORE AFTER... --corpus FILE --out DIR

    Models are scored first, into the folders DIR/before and DIR/after (of several DIR/1, DIR/2,
    or as --names says). If one fails, the scores of those before it stay there. The options from
    --corpus on are for models only, and hold for all of them.
    """
    from headroles.comparison import check_comparison_folder, compare_roles

    _check_form(context, sides, models)
    check_comparison_folder(out, overwrite)
    how: dict[str, Any] = {
        "names": None if names is None else _split(names),
        "threshold": threshold,
        "margin": margin,
        "alpha": alpha,
        "test": test,
        "correction": correction,
        "family": family,
        "groups": groups,
        "resamples": resamples,
        "seed": seed,
        "on_mismatch": on_mismatch,
    }
    with console.telling_what_is_kept() as scored:
        if models:
            from headroles.checkpoints import score_checkpoints
            from headroles.comparison import name_sides
            from headroles.corpus import open_corpus
            from headroles.scoring import ScoringOptions

            options = ScoringOptions(
                relations=_relations(relations),
                window=window,
                pairing=pairing,
                keep_subtypes=keep_subtypes,
                batch_tokens=batch_tokens,
                score=score,
                beyond_offset=beyond_offset,
            )
            named = dict(zip(name_sides(len(sides), score=score, **how), sides, strict=True))
            source = open_corpus(
                corpus or (), parser, _columns(text_columns), header, on_bad_sentence
            )
            for folder in score_checkpoints(
                named,
                source,
                out,
                options,
                lambda name: console.progress_bar(f"scoring {name}"),
                tokenizer=tokenizer,
                by_document=groups == "document",
                overwrite=overwrite,
                device=device,
                dtype=dtype,
                trust_remote_code=trust_remote_code,
            ):
                scored.append(folder)
        sets = [_load_scores(folder) for folder in scored or map(Path, sides)]
        shifts = compare_roles(*sets, **how)
        shifts.save(out, overwrite or models)
    _show_shifts(out, as_json, shifts)


@app.command()
@reports_errors
def power(
    scored: Scored,
    target: Annotated[
        float, typer.Option("--power", help="Chance to decide a head that is like in the pilot.")
    ] = 0.8,
    threshold: Threshold = None,
    alpha: Alpha = 0.05,
    correction: Correction = "fdr_bh",
    family: Family = "all",
    groups: Groups = "auto",
    as_json: AsJson = False,
) -> None:
    """Tell how many examples it takes to decide each role. The scores in DIR are the pilot."""
    from headroles.planning import plan_examples
    from headroles.scores import HeadScores

    plan = plan_examples(
        HeadScores.load(scored),
        power=target,
        threshold=threshold,
        alpha=alpha,
        correction=correction,
        family=family,
        groups=groups,
    )
    if as_json:
        console.print_json(console.plan_summary(plan))
    else:
        console.print_plan(plan)


@app.command()
@reports_errors
def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that holds a role table or a comparison.")
    ],
    fmt: Annotated[
        str, typer.Option("--format", help="csv, parquet, json, markdown, latex or html.")
    ] = "csv",
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape",
            help="Of a role table: long (a row per test, the default) or wide (per head).",
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option("--value", help="What a wide role table shows: a column of the long one."),
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            "--view",
            help="Of a comparison: long (a row per test, the default), counts, layers, agreement "
            "or moved.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write; standard output if left out.")
    ] = None,
) -> None:
    """Print the role table or comparison in DIR. With --out it is written to a file instead."""
    import sys

    from headroles import storage

    is_comparison = (folder / storage.SHIFTS_FILE).is_file()
    _check_export(folder, is_comparison, shape, value, view)
    if is_comparison:
        from headroles.comparison import RoleShifts

        content = RoleShifts.load(folder).export(fmt, view or "long")
    else:
        from headroles.roles import RoleTable

        content = RoleTable.load(folder).export(fmt, shape or "long", value or "assigned")
    if out is None:
        sys.stdout.buffer.write(content)
    else:
        storage.write_bytes(out, content)


@app.command()
@reports_errors
def models(as_json: AsJson = False) -> None:
    """List the encoder families. Those that cannot be scored come with the reason."""
    from headroles.models import FAMILIES, REFUSED

    if as_json:
        supported = {
            kind: {"name": family.name, "read_through": family.read_through, "note": family.note}
            for kind, family in FAMILIES.items()
        }
        console.print_json({"supported": supported, "refused": REFUSED})
        return
    console.print_families(FAMILIES.values(), REFUSED)


@app.command()
@reports_errors
def demo(
    out: Out = Path("headroles-demo"),
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Run classify on the bundled treebank and model."""
    from headroles.classification import classify_heads
    from headroles.corpus import read_conllu
    from headroles.sample import demo_model, sample_treebank
    from headroles.storage import check_result_folder

    check_result_folder(out, overwrite)
    model = demo_model()
    with console.progress_bar("scoring") as on_progress:
        result = classify_heads(model, read_conllu(sample_treebank()), on_progress=on_progress)
    result.save(out, overwrite)
    _show(out, as_json, result.roles.provenance, result.roles)


def _check_form(context: typer.Context, sides: list[str], models: bool) -> None:
    """Raise UsageError for arguments of neither form of ``compare``, or of both."""
    if len(sides) < 2:
        raise UsageError(f"there is nothing to compare {sides[0]} with; name two or more")
    if models:
        _check_models(sides, corpus=context.params["corpus"])
        return
    given = [f"--{name.replace('_', '-')}" for name in _OF_MODELS if _was_given(context, name)]
    if given:
        raise UsageError(
            "without --models stored scores are compared, as they are: leave out "
            f"{', '.join(given)}; or pass --models, with models in the place of folders"
        )


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _check_models(sides: list[str], corpus: list[Path] | None) -> None:
    from headroles.storage import RUN_FILE

    if not corpus:
        raise UsageError("name what the models are to be scored over: --corpus FILE")
    for side in sides:
        if Path(side).is_file():
            raise UsageError(
                f"{side} is a file and no model; give each file of the corpus its own --corpus"
            )
        if (Path(side) / RUN_FILE).is_file():
            raise UsageError(
                f"{side} holds results and no model; to compare stored scores leave --models out, "
                "and score what is still a model with: headroles score"
            )


def _load_scores(folder: Path) -> HeadScores:
    from headroles.scores import HeadScores
    from headroles.storage import RUN_FILE, SHIFTS_FILE

    if (folder / SHIFTS_FILE).is_file():
        raise StorageError(
            f"{folder} holds a comparison and no scores; name folders that score or classify wrote"
        )
    if not (folder / RUN_FILE).is_file():
        raise StorageError(
            f"there are no scores in {folder}; name folders that score or classify wrote, "
            "or pass --models to score models first"
        )
    return HeadScores.load(folder)


def _check_export(
    folder: Path, is_comparison: bool, shape: str | None, value: str | None, view: str | None
) -> None:
    """Raise UsageError for options of ``export`` that do not fit what the folder holds."""
    if is_comparison and (shape or value):
        raise UsageError(
            f"{folder} holds a comparison: --shape and --value are for role tables; use --view"
        )
    if view and not is_comparison:
        raise UsageError(
            f"{folder} holds no comparison: --view is for one; use --shape and --value"
        )
    if value and shape != "wide":
        raise UsageError("--value is what a wide table shows; pass --shape wide with it")


def _columns(text: str | None) -> list[str | int] | None:
    if text is None:
        return None
    return [int(name) if name.isdecimal() else name for name in _split(text)]


def _relations(text: str | None) -> str | tuple[str, ...] | None:
    if text is None or text == "all":
        return text
    if not (named := _split(text)):
        raise UsageError("--relations names no relation; leave it out for the defaults")
    return tuple(named)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _show(out: Path, as_json: bool, provenance: dict[str, Any], table: Any = None) -> None:
    if as_json:
        console.print_json({"out": str(out), **console.run_summary(provenance, table)})
        return
    console.print_run(provenance)
    if table is not None:
        console.print_roles(table)
    console.print_written(out)


def _show_shifts(out: Path, as_json: bool, shifts: RoleShifts) -> None:
    from headroles.shift_report import print_shifts, shift_summary

    if as_json:
        console.print_json({"out": str(out), **shift_summary(shifts)})
        return
    print_shifts(shifts)
    console.print_written(out)


def main() -> None:
    """Entry point of the ``headroles`` command."""
    # A scheduler's request to stop is an interruption like any other: it leaves nothing behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console.accept_any_text()
    ask_for_large_pages()
    collect_rarely()
    app()


if __name__ == "__main__":
    main()
