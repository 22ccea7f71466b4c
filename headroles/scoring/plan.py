"""What the scores of a window depend on: windows of one plan can be put together."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from headroles.corpus import PreparedCorpus
from headroles.models import LoadedEncoder

_VERSIONS = ("headroles", "torch", "transformers", "tokenizers", "numpy")
_OF_MODEL = ("class", "dtype", "weights_sha256")


def plan_of(
    encoder: LoadedEncoder, corpus: PreparedCorpus, provenance: dict[str, Any], n_examples: int
) -> dict[str, Any]:
    """The plan of a run over windows of ``n_examples``, as far as anything can be told of it.

    Names of models and files are no part of it, their contents are. Roles of a user are known by
    their ids alone.
    """
    tokenizer = encoder.tokenizer.backend_tokenizer.to_str()
    return {
        "corpus": {"sentences": corpus.n_sentences, "digest": corpus.content_digest()},
        "model": {name: encoder.description[name] for name in _OF_MODEL},
        "tokenizer": {
            "digest": blake2b(tokenizer.encode(), digest_size=16).hexdigest(),
            "longest input": encoder.max_tokens,
        },
        "options": provenance["options"],
        "roles": [role["id"] for role in provenance["roles"]],
        "examples of a part": n_examples,
        "versions": {name: provenance["versions"][name] for name in _VERSIONS},
    }
