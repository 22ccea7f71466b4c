"""Records are typed: what is known of a run, and what follows from it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from headroles.record import ScoresRecord
from headroles.roles import SCORES, Role
from headroles.storage import plain

SCORED: dict[str, Any] = {"score": "bias", "roles": [], "layers": 2, "heads": 2, "scores": 4}


def test_every_score_can_be_recorded() -> None:
    for name in SCORES:
        assert ScoresRecord.read({**SCORED, "score": name}).score == name
    with pytest.raises(msgspec.ValidationError, match=r"Invalid enum value 'best' - at `\$.score`"):
        ScoresRecord.read({**SCORED, "score": "best"})


def test_every_piece_of_a_role_is_recorded() -> None:
    role = Role("local", unit="tokens", thresholds={"bias": 2.0})
    written = plain(role.to_record())
    assert written == {
        "id": "local",
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
    ],
)
def test_invalid_records_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        ScoresRecord.read({**SCORED, **change})


def test_records_are_read_back() -> None:
    record = ScoresRecord.now(options={"relations": ["obj"], "seed": None}, reaches=[None, 3])
    assert record.created
    assert ScoresRecord.read(plain(record)) == record
