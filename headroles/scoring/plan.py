"""What the scores of a window depend on: windows of one plan can be put together."""

from __future__ import annotations

from typing import Any

from headroles.corpus import PreparedCorpus
from headroles.models import LoadedEncoder

_VERSIONS = ("headroles", "torch", "transformers", "tokenizers", "numpy")
_KNOWN_BY_ROLES = "frequencies"
"""The option whose file is in the roles by its content: by what name it was given is nothing."""


def plan_of(
    encoder: LoadedEncoder, corpus: PreparedCorpus, provenance: dict[str, Any], n_examples: int
) -> dict[str, Any]:
    """The plan of a run over windows of ``n_examples``, as far as anything can be told of it.

    Of files and folders their contents are part of it, and where they are is not. Roles of a user
    are known by their ids alone.
    """
    options = {k: v for k, v in provenance["options"].items() if k != _KNOWN_BY_ROLES}
    return {
        "corpus": {"sentences": corpus.n_sentences, "digest": corpus.content_digest()},
        **encoder.identity,
        "options": options,
        "roles": {role["id"]: role for role in provenance["roles"]},
        "examples of a part": n_examples,
        "versions": {name: provenance["versions"][name] for name in _VERSIONS},
    }
