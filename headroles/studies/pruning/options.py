"""Options of pruning: the heads to remove, and the fine-tuning of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec import Meta

from headroles.errors import UsageError
from headroles.options import Convert, Flag, Options, Seed, fields_of, split_names
from headroles.studies.importance.importance import RankingOptions
from headroles.studies.importance.removals import RoleOptions, RunOptions
from headroles.studies.options import read_head


@dataclass(frozen=True, kw_only=True)
class UpdateOptions(Options):
    """Options of updates in training."""

    title: ClassVar[str] = "Fine-tuning"

    update_examples: Annotated[int, Meta(ge=1)] = 32
    """Examples behind each update of gates or weights.

    They run in batches of batch_tokens.
    """


@dataclass(frozen=True, kw_only=True)
class TuningOptions(UpdateOptions):
    """Options of fine-tuning a model with heads masked."""

    fine_tune_on: Annotated[str | None, Convert(str)] = None
    """Examples to fine-tune on, with the heads masked, before the model is written.

    If left out, no weights change. Needs accelerate.
    """
    fine_tune_examples: Annotated[int | None, Meta(ge=2)] = None
    """Most examples to fine-tune on, chosen at random; left out: all."""
    epochs: Annotated[float, Meta(gt=0)] = 3.0
    """How often fine-tuning goes through its examples."""
    learning_rate: Annotated[float, Meta(gt=0, lt=1000)] = 2e-5
    """Highest learning rate of fine-tuning."""
    compensation: bool = False
    """Fine-tune the whole model too, to see which heads make up for removed ones."""

    def check(self) -> None:
        """Reject options of fine-tuning given without examples."""
        super().check()
        for one in fields_of(TuningOptions):
            if self.fine_tune_on is None and getattr(self, one.name) != one.default:
                raise UsageError(
                    f"`{one.name}` is about fine-tuning; name examples with `fine_tune_on`"
                )


BY_TASK = ("importance", "reestimated", "ablation")
BY_ESTIMATE = ("importance", "reestimated")
BY_ROLE = ("with_role", "without_role")
BY_LAYER = ("bottom", "top", "middle", "both_ends", "alternate")
RANDOM = ("random", "random_per_layer")
ORDERS = (*BY_TASK, *BY_ROLE, *BY_LAYER, *RANDOM)
ZEROED = "zeroed"


@dataclass(frozen=True, kw_only=True)
class TestSetOptions(RunOptions):
    """Options of a study with a test on other examples."""

    __test__ = False
    test_examples: Annotated[int | None, Meta(ge=2)] = None
    """Most examples to take of the test file; `examples` counts those of TASK."""

    def of_test(self) -> Self:
        """Return the options to read the test with."""
        return replace(self, examples=self.test_examples)


def _heads(given: Any) -> tuple[tuple[int, int], ...]:
    if not isinstance(given, str) and all(isinstance(one, tuple) for one in given):
        return tuple((int(layer), int(head)) for layer, head in given)
    return tuple(map(read_head, split_names(given)))


@dataclass(frozen=True, kw_only=True)
class SelectionOptions(RoleOptions, RankingOptions):
    """Options of choosing heads to remove."""

    estimator: Literal["absolute", "signed", "token", "taylor"] = "absolute"
    """Estimator of importance that orders go by."""
    role: str | None = None
    """Role whose heads the orders with_role and without_role are about: its id, its words or its
    relation, such as nsubj."""
    at_least: Annotated[int, Meta(ge=0)] = 0
    """Heads that every layer keeps."""
    protect: Annotated[Sequence[tuple[int, int]] | None, Convert(_heads)] = None
    """Heads that stay, as in 3-11,0-2."""
    steps: Annotated[int, Meta(ge=1)] = 10
    """Steps in which the order reestimated removes heads."""
    seed: Seed = 0
    """Seed of random choices."""


@dataclass(frozen=True, kw_only=True)
class PruneOptions(SelectionOptions, TuningOptions, TestSetOptions):
    """Options of pruning."""

    order: Literal[
        "importance",
        "reestimated",
        "ablation",
        "with_role",
        "without_role",
        "bottom",
        "top",
        "middle",
        "both_ends",
        "alternate",
        "random",
        "random_per_layer",
    ] = "importance"
    """Order in which heads are removed.

    importance, reestimated and ablation need a task; with_role and without_role need roles; the
    others need nothing.
    """
    keep: Annotated[int | None, Meta(ge=0)] = None
    """Number of heads to keep."""
    share: Annotated[float | None, Meta(gt=0, lt=1)] = None
    """Share of the heads to remove, instead of keep."""
    written_as: Annotated[Literal["pruned", "zeroed"], Flag("--as")] = "pruned"
    """pruned: without the heads; zeroed: full size with zeros, for any program."""

    def check(self) -> None:
        """Reject a missing or double number of heads, and orders by role without a role."""
        super().check()
        if (self.keep is None) == (self.share is None):
            raise UsageError(
                "give the number of heads to keep, or the share to remove: `keep` or `share`"
            )
        check_role(self.order, self)
        refuse_idle([self.order], self)


_USED_BY = {
    "role": BY_ROLE,
    "roles_from": BY_ROLE,
    "steps": ("reestimated",),
    "estimator": BY_ESTIMATE,
    "normalisation": BY_ESTIMATE,
}


def refuse_idle(orders: Sequence[str], options: SelectionOptions) -> None:
    """Raise UsageError for an option that none of the orders uses."""
    for one in fields_of(type(options)):
        users = _USED_BY.get(one.name, tuple(orders))
        if getattr(options, one.name) != one.default and not set(users) & set(orders):
            raise UsageError(
                f"`{one.name}` does nothing with the order {', '.join(orders)}; leave "
                f"it out, or choose the order {' or '.join(users)}"
            )


def check_role(order: str, options: SelectionOptions) -> None:
    """Raise UsageError for an order by role without a role and a folder of roles."""
    if order in BY_ROLE and (options.role is None or options.roles_from is None):
        raise UsageError(f"the order {order} needs `role` and `roles_from`, a folder with roles")
