"""Several models over one corpus -> a folder of scores for each, to be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

from headroles.corpus import Corpus, PreparedCorpus, as_corpus, make_examples, prepared
from headroles.encoding import ExampleEncoder
from headroles.errors import UsageError
from headroles.models.attention.reader import open_reader
from headroles.models.loading.encoder import load_encoder
from headroles.models.loading.tokenizers import tokenizer_digest
from headroles.passes.options import OnProgress
from headroles.roles import choose_relations
from headroles.scoring.options import ScoreOptions
from headroles.scoring.parts import Sharing
from headroles.scoring.run import ScoringRun
from headroles.storage import HIDDEN, RUN_FILE, Parts, check_result_folder
from headroles.studies.comparison.compare import RoleComparison
from headroles.studies.comparison.joining import COMPARE_SHARED, refuse_other_shape
from headroles.studies.comparison.options import CompareOptions
from headroles.studies.heads import refuse_one_document

Progress: TypeAlias = Callable[[str], AbstractContextManager[OnProgress | None]]
"""What shows the progress of the model of a name."""


def score_checkpoints(
    models: Mapping[str, str],
    corpus: Corpus,
    folder: Path,
    options: ScoreOptions,
    compared: CompareOptions,
    progress: Progress,
    parts: Parts,
) -> list[Path]:
    """Score each of ``models`` over one corpus, into the folder of its name in ``folder``.

    Returns these folders. Progress is saved in ``parts``, and resumed from there. The corpus is
    parsed once, and all models are loaded once before the first is scored: a wrong name shows at
    once, and so does a corpus that cannot be clustered as it will be ``compared``, or of which
    models with other tokenizers or limits would make other examples.

    Raises:
        UsageError: models with other numbers of layers or heads, other word pieces or other
            limits, or one document.
        StorageError: a folder that cannot be written, or parts of other settings.
        CorpusError, ModelError, TokenizerError: as `score_heads`.
    """
    with prepared(as_corpus(corpus)) as ready:
        choose_relations(options, ready.record.scheme, ready.relations, ready)
        refuse_one_document(ready.record.documents, compared)
        sides = [_Side.of(model, options) for model in dict.fromkeys(models.values())]
        for other in sides[1:]:
            refuse_other_shape(sides[0].model, sides[0].shape, other.model, other.shape)
        if compared.on_mismatch == "error":
            for pair in pairwise(sides):
                _check_same_examples(*pair, ready, options.pairing)
        for name, model in models.items():
            encoder = load_encoder(model, options)
            (folder / name).mkdir()
            with (
                open_reader(encoder.network, options.measure) as reader,
                progress(name) as on_progress,
            ):
                shown = replace(options, on_progress=on_progress)
                sharing = Sharing(parts.within(name))
                ScoringRun(encoder, reader, ready, shown, sharing).write(folder / name)
    return [folder / name for name in models]


def check_places(names: Iterable[str], folder: Path) -> None:
    """Raise UsageError or StorageError if scores of these names cannot be put into ``folder``.

    Older results there may be replaced: whether they may was asked of ``folder``.
    """
    taken = (HIDDEN, RUN_FILE, *(f"{RoleComparison.filename}.{fmt}" for fmt in ("csv", "parquet")))
    for name in names:
        if Path(name).name != name or name in ("", "..", *taken):
            raise UsageError(
                f"{name!r} cannot be the name of a folder for scores; pass another in `names`"
            )
        check_result_folder(folder / name)


class _Side(NamedTuple):
    """A model, and its properties that others must share to be compared with it."""

    model: str
    shape: tuple[int, int]
    encoder: ExampleEncoder
    pieces: str
    max_tokens: int

    @classmethod
    def of(cls, model: str, options: ScoreOptions) -> _Side:
        """Load and check a model."""
        loaded = load_encoder(model, options)
        with open_reader(loaded.model) as reader:
            shape = (reader.n_layers, reader.n_heads)
        pieces = tokenizer_digest(loaded.tokenizer)
        return cls(model, shape, loaded.example_encoder(), pieces, loaded.max_tokens)


def _check_same_examples(left: _Side, right: _Side, corpus: PreparedCorpus, pairing: str) -> None:
    """Raise UsageError at the first example that two models would not make alike.

    The corpus is read only where tokenizers or limits differ.
    """
    if (left.pieces, left.max_tokens) == (right.pieces, right.max_tokens):
        return
    for example in make_examples(corpus, pairing):
        first, second = (side.encoder.encode([example], Counter()) for side in (left, right))
        if len(first) != len(second):
            raise UsageError(
                f"example {example.id!r} is skipped by one of {left.model} and {right.model}, "
                f"which take {left.max_tokens} and {right.max_tokens} tokens: it is too long, or "
                f"has no word pieces there; {COMPARE_SHARED}"
            )
        if first and first[0].digest != second[0].digest:
            raise UsageError(
                f"{left.model} and {right.model} cut example {example.id!r} into different word "
                "pieces: their tokenizers differ; give all the same one with `tokenizer`, "
                f"or {COMPARE_SHARED}"
            )
