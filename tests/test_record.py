"""Records are typed: what is known of a run, and what follows from it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from headroles.record import Record, RecordedModel, ScoresRecord, Stopped
from headroles.results.study import studies
from headroles.roles import SCORES, Role
from headroles.storage import plain
from headroles.studies.options import CORPUS
from tests.conftest import make_scores

STOPPED = {"until_of": CORPUS, "unit": "example", "units": 9, "decided": 0.5}
SCORED: dict[str, Any] = {"score": "bias", "roles": [], "layers": 2, "heads": 2, "scores": 4}


def test_every_score_can_be_recorded() -> None:
    for name in SCORES:
        assert ScoresRecord.read({**SCORED, "score": name}).score == name
    with pytest.raises(msgspec.ValidationError, match=r"Invalid enum value 'best' - at `\$.score`"):
        ScoresRecord.read({**SCORED, "score": "best"})


def test_every_piece_of_a_role_is_recorded() -> None:
    role = Role("local", words="near tokens", unit="tokens", thresholds={"bias": 2.0})
    written = plain(role.to_record())
    assert written == {
        "id": "local",
        "words": "near tokens",
        "unit": "tokens",
        "thresholds": {"bias": 2},
    }
    (recorded,) = ScoresRecord.read({**SCORED, "roles": [written]}).roles
    assert Role.from_record(recorded) == role
    with pytest.raises(msgspec.ValidationError, match="unknown field `sieve`"):
        ScoresRecord.read({**SCORED, "roles": [{**written, "sieve": "print"}]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 10**6}, "1000000 layers of 2 heads"),
        ({"roles": [{"id": "a"}, {"id": "a"}]}, "two roles of one id"),
        ({"examples": -1}, r"\$.examples"),
        ({"stopped": {**STOPPED, "sentences": 1}}, "of_sentences"),
    ],
)
def test_invalid_records_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        ScoresRecord.read({**SCORED, **change})


def test_whether_scoring_stopped_early_follows() -> None:
    assert not ScoresRecord().stopped_early
    for sentences, early in ((3, True), (9, False)):
        stopped = Stopped.read({**STOPPED, "sentences": sentences, "of_sentences": 9})
        record = ScoresRecord(stopped=stopped)
        assert record.stopped_early == early
        assert record.drawn_from == 9
        of_text = ScoresRecord(stopped=msgspec.structs.replace(stopped, until_of="text"))
        assert of_text.drawn_from is None


@pytest.mark.parametrize(
    ("model", "name"),
    [(None, "a model"), ("org/bert", "bert"), ("/runs/a/best", "a/best"), ("best", "best")],
)
def test_models_are_named_by_the_end_of_their_path(model: str | None, name: str) -> None:
    assert RecordedModel(model).name == name


def test_results_made_by_hand_have_a_record() -> None:
    scores = make_scores([[[[1.0]]]], ["local"])
    assert scores.record.is_by_hand
    assert scores.record.pieces is None
    assert scores.record.mean_length == 0


def test_results_of_every_study_declare_their_record() -> None:
    for study in studies():
        declared = study.load("result").record_type()
        assert issubclass(declared, Record)
        assert declared is not Record, study.kind


def test_a_record_without_warnings_keeps_all_else() -> None:
    model = RecordedModel("m", family="BERT", warnings=["odd"])
    record = ScoresRecord(model=model, layers=2, heads=3, skipped={"long": 1})
    kept = record.without_warnings()
    assert kept.model.warnings == []
    assert kept == msgspec.structs.replace(
        record, model=msgspec.structs.replace(model, warnings=[])
    )


def test_records_are_read_back() -> None:
    record = ScoresRecord.now(options={"relations": ["obj"], "seed": None}, reaches=[None, 3])
    assert record.created
    assert ScoresRecord.read(plain(record)) == record
