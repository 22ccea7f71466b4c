"""Windows are launched without a wait for the device, and fetched as they were read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from headroles.corpus import make_examples, prepared, read_conllu
from headroles.encoding import ExampleEncoder
from headroles.models.attention.reader import open_reader
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions
from headroles.passes.loop import Budget
from headroles.roles import SCORES, RoleOptions, choose_roles
from headroles.scoring.windows import WindowScorer
from tests.conftest import make_bert


@pytest.mark.parametrize(
    ("score", "measure"), [("bias", "weights"), ("excess", "norms"), ("hit", "weights")]
)
def test_nothing_is_asked_of_the_device_before_the_scores_are_fetched(
    sample: Path, tokenizer: PreTrainedTokenizerBase, score: str, measure: str
) -> None:
    encoder = load_encoder(make_bert(), ModelOptions(tokenizer=tokenizer, device="cpu"))
    cutter = ExampleEncoder(tokenizer, encoder.max_tokens, encoder.takes_token_types)
    with prepared(read_conllu(sample)) as corpus, open_reader(encoder.model, measure) as reader:
        groups = "all" if score == "bias" else None  # which only weights and masses have
        roles = choose_roles(RoleOptions(roles=groups), ("nsubj", "obj"), SCORES[score], corpus)
        examples = cutter.encode(list(make_examples(corpus, "adjacent"))[:12], Counter())
        scorer = WindowScorer(encoder, reader, roles, SCORES[score], Budget(200))
        parts = Budget(200).batches([len(example) for example in examples])
        batches = [scorer.prepare(examples, indices) for indices in parts]
        encoder.model.to("meta")  # where nothing has a value, and asking for one fails
        read = [scorer.read(batch) for batch in batches]
    assert len(read) > 1
    for batch, values in zip(batches, read, strict=True):
        columns = values.shape[-1]
        assert values.shape == (len(batch.indices), reader.n_layers, reader.n_heads, columns)
        assert values.device.type == "meta"
