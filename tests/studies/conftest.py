"""The models and tasks of ``tests/tasks``, here too, and roles of one of the models."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroles import classify_heads, read_conllu
from tests.tasks.conftest import (
    classifier,
    labelled,
    labelled_twice,
    masked_lm,
    numbered,
    plain,
    regressor,
)

__all__ = [
    "classifier",
    "labelled",
    "labelled_twice",
    "masked_lm",
    "numbered",
    "plain",
    "regressor",
]


@pytest.fixture(scope="session")
def roles(classifier: Path, sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the roles of ``classifier``."""
    folder = tmp_path_factory.mktemp("roles") / "roles"
    classify_heads(classifier, read_conllu(sample), threshold=1.0).save(folder)
    return folder
