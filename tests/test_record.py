"""Records are typed: what is known of a run, and what follows from it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from headroles.record import Record, ScoreFacts
from headroles.roles import SCORES, Role
from headroles.storage import plain

SCORED: dict[str, Any] = {"score": "bias", "roles": [], "scores": 4}


def test_every_score_can_be_recorded() -> None:
    for name in SCORES:
        assert ScoreFacts.read({**SCORED, "score": name}).score == name


def test_every_piece_of_a_role_is_recorded() -> None:
    role = Role("local", unit="tokens", thresholds={"bias": 2.0})
    written = plain(role.to_record())
    assert written == {
        "id": "local",
        "unit": "tokens",
        "thresholds": {"bias": 2},
    }
    (recorded,) = ScoreFacts.read({**SCORED, "roles": [written]}).roles
    assert Role.from_record(recorded) == role


@pytest.mark.parametrize(
    ("form", "content", "message"),
    [
        (Record, {"model": {"layers": 10**6, "heads": 2}}, "1000000 layers of 2 heads"),
        (Record, {"corpus": {"examples": -1}}, r"\$.corpus.examples"),
        (ScoreFacts, {**SCORED, "score": "best"}, r"Invalid enum value 'best' - at `\$.score`"),
        (ScoreFacts, {**SCORED, "roles": [{"id": "a"}] * 2}, "two roles of one id"),
        (ScoreFacts, {**SCORED, "roles": [{"id": "a", "sieve": "print"}]}, "field `sieve`"),
    ],
)
def test_invalid_records_are_refused(form: Any, content: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        form.read(content)


def test_records_are_read_back() -> None:
    source = Record.now(kind="scores", options={"relations": ["obj"], "seed": None})
    record = Record.now(kind="power", facts={"offsets": (1, 2)}, sources={"pilot": source})
    assert record.created
    assert Record.read(plain(record)) == record
