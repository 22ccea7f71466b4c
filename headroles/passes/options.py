"""Options of running a model over examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from headroles.models.options import ModelOptions
from headroles.options import Option

OnProgress: TypeAlias = Callable[[int, int], None]
"""Function called with the amount of work done and the total amount."""


@dataclass(frozen=True, kw_only=True)
class PassOptions(ModelOptions):
    """Options of loading and running the model."""

    title: ClassVar[str] = "Model"

    batch_tokens: Annotated[
        int | None,
        Option(
            "Most tokens of a batch, padding included.",
            more="If left out, it fits the device. Batches get smaller where memory runs out.",
            least=1,
        ),
    ] = None
    on_progress: Annotated[
        OnProgress | None,
        Option(
            "Called with the amount done and the total: sentences of a corpus; of a task, passes "
            "over a batch, or updates. Studies of several rounds start anew with each.",
            more="If left out, notebooks show a bar.",
            has_flag=False,
            recorded=False,
        ),
    ] = None
