"""Plan of a run: everything that its scores depend on. Windows of equal plans fit together."""

from __future__ import annotations

from typing import Any

from headroles.corpus import PreparedCorpus
from headroles.models import LoadedEncoder
from headroles.record import ScoresRecord
from headroles.storage import plain

_VERSIONS = ("headroles", "torch", "transformers", "tokenizers", "numpy")
_KNOWN_BY_ROLES = "frequencies"
"""Option whose file is part of the roles by its content, so its path does not matter."""


def plan_of(
    encoder: LoadedEncoder, corpus: PreparedCorpus, record: ScoresRecord, n_examples: int
) -> dict[str, Any]:
    """Return the plan of a run over windows of ``n_examples``.

    Files and folders are part of the plan by content, not by path. A user's own roles are part of
    it by their ids alone.
    """
    options = {k: v for k, v in record.options.items() if k != _KNOWN_BY_ROLES}
    return {
        "corpus": {"sentences": corpus.n_sentences, "digest": corpus.content_digest()},
        **encoder.identity,
        "options": options,
        "roles": {role.id: plain(role) for role in record.roles},
        "examples of a part": n_examples,
        "versions": {name: record.versions[name] for name in _VERSIONS},
    }
