"""The models and tasks of ``tests/tasks``, here too."""

from tests.tasks.conftest import classifier, labelled, masked_lm, numbered, plain, regressor

__all__ = ["classifier", "labelled", "masked_lm", "numbered", "plain", "regressor"]
