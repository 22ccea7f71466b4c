"""Parts of a corpus that were scored apart: joined, they are a run over all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headroles import HeadScores
from headroles.errors import StorageError, UsageError
from headroles.scoring.merging import merge_scores
from headroles.scoring.options import CorpusPart
from headroles.scoring.run_notes import warnings_of_run
from headroles.scoring.sharing import Sharing
from tests.conftest import make_bert
from tests.scoring.test_parts import WINDOW, Scoring, content


@pytest.fixture
def scoring(sample: Path, tokenizer: Any, tmp_path: Path, monkeypatch: Any) -> Scoring:
    monkeypatch.setattr("headroles.scoring.run.WINDOW_EXAMPLES", WINDOW)
    return Scoring(make_bert(max_position_embeddings=90), sample, tokenizer, tmp_path)


@pytest.fixture
def halves(scoring: Scoring) -> list[Path]:
    return [scoring.run(Sharing(corpus_part=CorpusPart(number, 2))) for number in (1, 2)]


def merged(folders: list[Path], place: Path) -> Path:
    place.mkdir()
    merge_scores(folders, place)
    return place


@pytest.mark.parametrize(("asked", "of"), [({"score": "hit"}, 3), ({"precision": "float16"}, 5)])
def test_is_the_whole_to_the_bit(
    scoring: Scoring, tmp_path: Path, asked: dict[str, Any], of: int
) -> None:
    expected = content(scoring.run(**asked))
    parts = [
        scoring.run(Sharing(corpus_part=CorpusPart(number, of)), **asked)
        for number in range(1, of + 1)
    ]
    found = content(merged(parts[::-1], tmp_path / "whole"))
    found["command"] = expected["command"]
    assert found == expected
    assert sum(expected["skipped"].values()) > 0


def test_a_part_is_a_result_that_says_what_it_is(halves: list[Path]) -> None:
    sizes = [HeadScores.load(half).n_examples for half in halves]
    assert sum(sizes) > max(sizes) > 0
    (warning,) = (
        one for one in warnings_of_run(HeadScores.load(halves[1]).record) if "part" in one
    )
    assert warning.startswith("this is part 2 of 2 of the corpus; headroles merge")


class TestRefused:
    def test_more_parts_than_windows(self, scoring: Scoring) -> None:
        with pytest.raises(UsageError, match="part 6 of 6 is empty"):
            scoring.run(Sharing(corpus_part=CorpusPart(6, 6)))

    def test_other_plans(self, scoring: Scoring, halves: list[Path], tmp_path: Path) -> None:
        other = scoring.run(Sharing(corpus_part=CorpusPart(2, 2)), window=3)
        with pytest.raises(UsageError, match="not parts of one run: options window was 2 and is 3"):
            merged([halves[0], other], tmp_path / "whole")

    @pytest.mark.parametrize(
        "change", [{"hidden_act": "relu"}, {"num_attention_heads": 2}, {"layer_norm_eps": 0.5}]
    )
    def test_weights_that_are_used_otherwise(
        self, scoring: Scoring, halves: list[Path], tmp_path: Path, change: dict[str, Any]
    ) -> None:
        model = make_bert(max_position_embeddings=90)
        config = model.config.__class__(**{**model.config.to_dict(), **change})
        scoring.model = model.__class__(config).eval()
        scoring.model.load_state_dict(model.state_dict())
        other = scoring.run(Sharing(corpus_part=CorpusPart(2, 2)))
        with pytest.raises(UsageError, match="not parts of one run: model config_sha256 was"):
            merged([halves[0], other], tmp_path / "whole")

    def test_missing_and_repeated(self, halves: list[Path], tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="of 2 parts of the corpus 2 is missing"):
            merged(halves[:1], tmp_path / "one")
        with pytest.raises(UsageError, match="both hold part 1"):
            merged([halves[0], halves[0]], tmp_path / "twice")

    def test_whole_corpora(self, scoring: Scoring, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="holds scores of a whole corpus"):
            merged([scoring.run()], tmp_path / "whole")

    def test_scores_that_were_saved_as_one_block(self, halves: list[Path], tmp_path: Path) -> None:
        HeadScores.load(halves[0]).save(tmp_path / "again")
        with pytest.raises(StorageError, match="does not hold its windows one by one"):
            merged([tmp_path / "again", halves[1]], tmp_path / "whole")


@pytest.mark.parametrize("given", ["3/2", "0/2", "1", "1/2/3", "a/b", "-1/2"])
def test_parts_that_cannot_be(given: str) -> None:
    with pytest.raises(UsageError, match="write 2/8"):
        CorpusPart.accept(given)
