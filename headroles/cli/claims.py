"""``headroles claims``: what papers say of attention heads, tested on a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from headroles.cli import flags
from headroles.cli.studies import fill, names_of, text_beside
from headroles.corpus import CorpusOptions, open_corpus
from headroles.options import split_names
from headroles.storage import RUN_FILE
from headroles.studies.claims.claims import ClaimTable, combine_claims, test_claims
from headroles.studies.claims.measured import ClaimOptions
from headroles.testing.options import CorrectionOptions

_HELP_OF_TASK = (
    "File with examples of the task that MODEL was trained for; two with a comma between them for "
    "the claim about two tasks. --text-columns and --header are then those of these files."
)


def claims(
    model: flags.Model,
    corpus: flags.Texts,
    out: flags.Out,
    reading: CorpusOptions,
    options: ClaimOptions,
    output: flags.ReportedOptions,
    after: Annotated[
        str | None,
        flags.option(
            "--after", "A fine-tuned copy of MODEL, for claims about fine-tuning.", "Options"
        ),
    ] = None,
    task: Annotated[str | None, flags.option("--task", _HELP_OF_TASK, "Options")] = None,
) -> None:
    """Test what papers say of attention heads on MODEL.

    In the place of MODEL and CORPUS, three or more folders that this command wrote for models that
    were trained independently: then claims are tested over these models.
    """
    folders = [Path(model), *corpus]
    is_over_models = all((folder / RUN_FILE).is_file() for folder in folders)

    def work(running: Any, _: Any) -> ClaimTable:
        if is_over_models:
            tables = [*map(ClaimTable.load, folders)]
            return combine_claims(tables, names_of(folders), options=running)
        texts = open_corpus(corpus, text_beside(task, reading))
        return test_claims(model, texts, after, split_names(task or ""), options=running)

    taken = options.as_group(CorrectionOptions) if is_over_models else options
    fill(out, [ClaimTable], output, taken, work, unit="parts")
