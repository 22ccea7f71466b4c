"""One pass over a corpus gives what passes of their own give, to the bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from headroles.corpus import as_corpus, prepared
from headroles.models.loading import load_encoder
from headroles.roles.frequencies import count_words
from headroles.studies.claims import ClaimOptions, Measured
from headroles.studies.inspection.options import TokenOptions
from headroles.studies.inspection.token_reading import TokenReading
from tests.conftest import changed


def test_one_pass_reads_what_several_read(bert_folder: Path, sample: Path) -> None:
    together = Measured(str(bert_folder), sample, ClaimOptions())
    alone = Measured(str(bert_folder), sample, replace(ClaimOptions(), claims=("one",)))
    for one, other in ((alone.scored.scores, together.scored.scores), (alone.hits, together.hits)):
        assert one == changed(other, created=one.record.created)
    asked = ClaimOptions().as_group(TokenOptions)
    with prepared(as_corpus(sample)) as ready:
        encoder = load_encoder(str(bert_folder), asked)
        reading = TokenReading(encoder, ready, count_words(asked, ready), asked)
        values = reading.values()
    np.testing.assert_array_equal(values, together.tokens[0])
    assert reading.documents == list(together.hits.documents)
