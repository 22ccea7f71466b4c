"""One window scored by several models in turns."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headroles import read_conllu
from headroles.corpus import prepared
from headroles.models.attention import open_reader
from headroles.models.loading import load_encoder
from headroles.passes.loop import Budget
from headroles.roles import SCORES
from headroles.scoring.block_scoring import BlockScorer
from headroles.scoring.pipeline import WindowScorer
from headroles.scoring.turns import score_in_turns
from headroles.scoring.windows import windows_of
from tests.conftest import make_roles


def test_each_batch_is_timed_once_and_the_turns_alternate(
    bert_folder: Path, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock on which every batch of the second model takes three times as long."""
    encoders = [load_encoder(bert_folder) for _ in range(2)]
    order: list[int] = []
    now = [0.0]

    def clock() -> float:
        return now[0]

    with (
        prepared(read_conllu(sample)) as corpus,
        open_reader(encoders[0].model) as one,
        open_reader(encoders[1].model) as other,
    ):
        asked = make_roles(["local"]), SCORES["excess"]
        scorers = [
            BlockScorer(encoder, reader, *asked, Budget(400))
            for encoder, reader in zip(encoders, (one, other), strict=True)
        ]
        real = BlockScorer.read

        def read(scorer: BlockScorer, batch: Any) -> Any:
            place = scorers.index(scorer)
            order.append(place)
            now[0] += 1 + 2 * place
            return real(scorer, batch)

        monkeypatch.setattr(BlockScorer, "read", read)
        windows = [
            WindowScorer(encoder.example_encoder(), scorer, False, lambda _: None)
            for encoder, scorer in zip(encoders, scorers, strict=True)
        ]
        window, examples = next(windows_of(corpus, "adjacent"))
        found = score_in_turns(windows, window, examples, clock)
        alone = windows[0].fetch(
            prepared_window := windows[0].prepare(window, examples),
            windows[0].scorer.launch(prepared_window.block, lambda _: None),  # type: ignore[arg-type]
        )
    n_batches = len(prepared_window.block.batches)  # type: ignore[union-attr]
    assert n_batches > 4
    assert [seconds for _, seconds in found] == [n_batches, 3 * n_batches]
    assert order[: 2 + 2 * n_batches] == [
        0,
        1,
        *itertools.islice(itertools.cycle((0, 1, 1, 0)), 2 * n_batches),
    ]  # both warm up, and each begins every second turn
    for block, _ in found:
        assert block is not None
        assert alone.block is not None
        np.testing.assert_array_equal(block.values, alone.block.values)


def test_a_window_without_examples_takes_no_time(bert_folder: Path, sample: Path) -> None:
    encoder = load_encoder(bert_folder)
    with prepared(read_conllu(sample)) as corpus, open_reader(encoder.model) as reader:
        scorer = BlockScorer(encoder, reader, make_roles(["local"]), SCORES["excess"], Budget(99))
        window, _ = next(windows_of(corpus, "adjacent"))
        one = WindowScorer(encoder.example_encoder(), scorer, False, lambda _: None)
        assert score_in_turns([one], window, [], lambda: 0.0) == [(None, 0)]
