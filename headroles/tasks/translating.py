"""Translations that a model writes with heads gated -> counts of sentences that add up to BLEU."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from headroles.arrays import BoolArray, FloatArray, IntArray
from headroles.errors import UsageError
from headroles.models.families import quiet_transformers
from headroles.models.heads.gates import gated
from headroles.models.options import UNIFORM, ZERO
from headroles.tasks.options import TEXT_TO_TEXT, GenerateOptions
from headroles.tasks.outcomes import pseudo_values
from headroles.tasks.reading import TaskBatch
from headroles.tasks.running import Arrays, OnPass, TaskRun

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from transformers import GenerationConfig

BLEU, CHRF = "bleu", "chrf"
_PASSES = 3
"""Passes over the task that a round of translations counts as in reports of progress: 2.8 of
opus-mt-zh-en, greedy on a CPU."""


class Scorer(NamedTuple):
    """A metric of sacrebleu, and the number of counts that it takes of each sentence."""

    metric: Metric
    n_counts: int

    def count_all(self, texts: Sequence[str], targets: Sequence[str]) -> IntArray:
        """Return counts (examples, counts) of texts beside their targets."""
        # sacrebleu's own tests of significance are made of these two
        counts = self.metric._extract_corpus_statistics(texts, [targets])  # noqa: SLF001
        return np.array(counts, dtype=np.int64).reshape(len(texts), self.n_counts)

    def score(self, counts: IntArray) -> float:
        """Return the metric of summed counts (counts,), from 0 to 100."""
        return float(self.metric._compute_score_from_stats(counts.tolist()).score)  # noqa: SLF001


def make_scorers(options: GenerateOptions) -> dict[str, Scorer]:
    """Return the metrics by name. Raises UsageError where sacrebleu is not installed."""
    try:
        from sacrebleu.metrics import bleu as of_words
        from sacrebleu.metrics import chrf as of_characters
    except ImportError as error:
        raise UsageError(
            "`generate` takes BLEU and chrF from sacrebleu, which is not installed; run "
            "pip install 'headroles[translation]'"
        ) from error
    bleu = of_words.BLEU(lowercase=options.ignore_case, tokenize=options.bleu_tokens, force=True)
    chrf = of_characters.CHRF(lowercase=options.ignore_case)
    return {
        BLEU: Scorer(bleu, 2 + 2 * bleu.max_ngram_order),
        CHRF: Scorer(chrf, 3 * (chrf.char_order + chrf.word_order)),
    }


@dataclass(frozen=True)
class Translations:
    """What translations have in common with the targets, under S settings of gates.

    ``counts`` are (examples, S, counts) by metric, and ``pieces`` (examples, S) the numbers of
    pieces of the translations.
    """

    scorers: Mapping[str, Scorer]
    counts: Mapping[str, IntArray]
    pieces: IntArray

    def followed_by(self, other: Translations) -> Translations:
        """Return these settings and then those of another, of the same examples."""
        counts = {
            name: np.concatenate([values, other.counts[name]], axis=1)
            for name, values in self.counts.items()
        }
        pieces = np.concatenate([self.pieces, other.pieces], axis=1)
        return Translations(self.scorers, counts, pieces)

    def measures(self) -> dict[str, FloatArray]:
        """Return each metric (S,), from 0 to 100, as sacrebleu computes it of all texts."""
        whole = np.ones(len(self.pieces), dtype=bool)
        return {name: self._metric(name, whole) for name in self.counts}

    def units(self) -> dict[str, FloatArray]:
        """Return pseudo-values (groups, S) of each metric, as `Outcomes.units` does."""
        n = len(self.pieces)
        return {name: pseudo_values(n, partial(self._metric, name)) for name in self.counts}

    def signatures(self) -> dict[str, str]:
        """Return the signature of each metric, which says how it was computed."""
        return {name: str(scorer.metric.get_signature()) for name, scorer in self.scorers.items()}

    def _metric(self, name: str, rows: BoolArray) -> FloatArray:
        summed = self.counts[name][rows].sum(0)
        return np.array([self.scorers[name].score(counts) for counts in summed])


def check_generation(run: TaskRun | None, options: GenerateOptions, ablation: str = ZERO) -> None:
    """Raise UsageError where translations are asked for, and cannot be written or compared."""
    if not options.generate:
        return
    if run is None:
        raise UsageError(
            "`generate` translates the sources of a test, before and after; name one with `test`"
        )
    if run.objective != TEXT_TO_TEXT:
        raise UsageError(
            f"`generate` writes translations, and the objective is {run.objective}; leave it out, "
            "or give a model of text to text"
        )
    if ablation == UNIFORM:
        raise UsageError(
            "`generate` goes with the ablations zero and mean: uniform attention needs all pieces "
            "of a translation at once"
        )
    make_scorers(options)


def translate(
    run: TaskRun, gates: Tensor, options: GenerateOptions, ablation: str = ZERO
) -> Translations:
    """Write a translation of every source under each of ``gates`` (S, layers, heads).

    Each is decoded by greedy or beam search and compared with the target. Besides the beams and the
    length, the model's own configuration of generation holds; padding is never written.
    """
    scorers, ablated = make_scorers(options), run.ablation(ablation)
    settings, start = _settings(run, options), torch.tensor([run.start])
    encoder, tokenizer = run.encoder, run.target_tokenizer
    is_whole = (gates == 1).all(-1).all(-1).tolist()

    def write(batch: TaskBatch, setting: int) -> Tensor:
        source = {name: batch.inputs[name] for name in ("input_ids", "attention_mask")}
        first = start.expand(len(batch.indices), -1).to(encoder.device)
        with ExitStack() as stack:
            stack.enter_context(quiet_transformers())
            stack.enter_context(torch.inference_mode())
            if not is_whole[setting]:
                of_batch = replace(ablated, inputs=batch.inputs)
                stack.enter_context(gated(run.sites, gates[setting], of_batch))
            generate: Any = encoder.model.generate
            written = generate(**source, decoder_input_ids=first, generation_config=settings)
        return torch.as_tensor(written[:, len(run.start) :]).cpu()

    def compute(batch: TaskBatch, on_pass: OnPass) -> Arrays:
        targets = [run.task.texts[index][1] for index in batch.indices]
        by_setting: dict[str, list[IntArray]] = {name: [] for name in (*scorers, "pieces")}
        for setting in range(len(gates)):
            written = write(batch, setting)
            texts = tokenizer.batch_decode(written, skip_special_tokens=True)
            for name, scorer in scorers.items():
                by_setting[name].append(scorer.count_all(texts, targets))
            is_piece = written != settings.pad_token_id
            by_setting["pieces"].append(is_piece.sum(1).numpy())
            on_pass((setting + 1) * _PASSES)
        return {name: np.stack(values, axis=1) for name, values in by_setting.items()}

    n = len(gates)
    types = {name: (np.int64, (n, scorer.n_counts)) for name, scorer in scorers.items()}
    computed = f"translations {ablation} {options.record()}"
    arrays = run.over_batches(
        compute, computed, gates, {**types, "pieces": (np.int64, (n,))}, n * _PASSES
    )
    pieces = arrays.pop("pieces")
    return Translations(scorers, arrays, pieces)


def _settings(run: TaskRun, options: GenerateOptions) -> GenerationConfig:
    """Return the model's own configuration of generation, with the search of the options."""
    network = run.encoder.model
    settings: Any = copy.deepcopy(network.generation_config)
    most = min(options.longest_translation, run.encoder.max_tokens - len(run.start))
    settings.update(
        num_beams=options.beams,
        do_sample=False,
        decoder_start_token_id=run.start[0],  # another one would be put before it
        num_return_sequences=1,
        max_length=None,
        max_new_tokens=max(1, most),
        return_dict_in_generate=False,
    )
    if settings.pad_token_id is None:
        settings.pad_token_id = run.target_tokenizer.pad_token_id
    ends = (settings.eos_token_id, settings.forced_eos_token_id)
    if settings.pad_token_id not in np.hstack([end for end in ends if end is not None] or [()]):
        settings.suppress_tokens = [*(settings.suppress_tokens or ()), settings.pad_token_id]
    return settings  # type: ignore[no-any-return]
