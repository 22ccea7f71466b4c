"""What can be asked of fine-tuning with heads masked: the options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.errors import UsageError
from headroles.options import Option, Options, fields_of

MOST_RATE = 1000
"""Learning rates are below that: larger ones leave what float32 can hold."""


@dataclass(frozen=True, kw_only=True)
class UpdateOptions(Options):
    """How what is trained is updated."""

    title: ClassVar[str] = "Fine-tuning"

    update_examples: Annotated[
        int,
        Option(
            "Examples behind each update of gates or weights.",
            more="They are run in batches of batch_tokens.",
            words="the number of examples of an update",
            least=1,
        ),
    ] = 32


@dataclass(frozen=True, kw_only=True)
class TuningOptions(UpdateOptions):
    """How what is left of a model is fine-tuned."""

    title: ClassVar[str] = "Fine-tuning"

    fine_tune_on: Annotated[
        str | None,
        Option(
            "Examples to fine-tune on, the heads that go masked, before the model is written.",
            more="If left out, no weights change. Needs accelerate.",
            words="the file to fine-tune on",
            convert=str,
        ),
    ] = None
    fine_tune_examples: Annotated[
        int | None,
        Option(
            "Most of them to take, chosen at random; left out: all.",
            words="the number of examples to fine-tune on",
            least=2,
        ),
    ] = None
    epochs: Annotated[
        float, Option("How often fine-tuning goes through its examples.", above=0)
    ] = 3.0
    learning_rate: Annotated[
        float,
        Option(
            "Highest learning rate of fine-tuning.",
            words="the learning rate",
            above=0,
            below=MOST_RATE,
        ),
    ] = 2e-5
    compensation: Annotated[
        bool,
        Option(
            "Whether the whole model is fine-tuned too, to tell which heads make up for those gone."
        ),
    ] = False

    def check(self) -> None:
        """Refuse to be told how to fine-tune where nothing says on what."""
        super().check()
        for one in fields_of(TuningOptions):
            if self.fine_tune_on is None and getattr(self, one.name) != one.default:
                raise UsageError(
                    f"{one.name} ({one.flag}) is about fine-tuning; name examples to fine-tune on "
                    "(--fine-tune-on FILE)"
                )
