"""Options of pruning: the heads to remove, and the fine-tuning of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from headroles.errors import UsageError
from headroles.options import Option, Options, fields_of, seed_option, split_names
from headroles.studies.importance.options import (
    ABSOLUTE,
    ESTIMATORS,
    RankingOptions,
    RoleOptions,
    RunOptions,
)
from headroles.studies.options import read_head

MOST_RATE = 1000
"""Bound of learning rates: larger ones lead to weights that float32 cannot hold."""


@dataclass(frozen=True, kw_only=True)
class UpdateOptions(Options):
    """Options of updates in training."""

    title: ClassVar[str] = "Fine-tuning"

    update_examples: Annotated[
        int,
        Option(
            "Examples behind each update of gates or weights.",
            more="They run in batches of batch_tokens.",
            words="the number of examples of an update",
            least=1,
        ),
    ] = 32


@dataclass(frozen=True, kw_only=True)
class TuningOptions(UpdateOptions):
    """Options of fine-tuning a model with heads masked."""

    fine_tune_on: Annotated[
        str | None,
        Option(
            "Examples to fine-tune on, with the heads masked, before the model is written.",
            more="If left out, no weights change. Needs accelerate.",
            words="the file to fine-tune on",
            convert=str,
        ),
    ] = None
    fine_tune_examples: Annotated[
        int | None,
        Option(
            "Most examples to fine-tune on, chosen at random; left out: all.",
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
        Option("Fine-tune the whole model too, to see which heads make up for removed ones."),
    ] = False

    def check(self) -> None:
        """Reject options of fine-tuning given without examples."""
        super().check()
        for one in fields_of(TuningOptions):
            if self.fine_tune_on is None and getattr(self, one.name) != one.default:
                raise UsageError(
                    f"{one.name} ({one.flag}) is about fine-tuning; name examples to fine-tune on "
                    "(--fine-tune-on FILE)"
                )


BY_TASK = ("importance", "reestimated", "ablation")
BY_ESTIMATE = ("importance", "reestimated")
BY_ROLE = ("with_role", "without_role")
BY_LAYER = ("bottom", "top", "middle", "both_ends", "alternate")
RANDOM = ("random", "random_per_layer")
ORDERS = (*BY_TASK, *BY_ROLE, *BY_LAYER, *RANDOM)
PRUNED, ZEROED = FORMS = ("pruned", "zeroed")


@dataclass(frozen=True, kw_only=True)
class TestSetOptions(RunOptions):
    """Options of a study with a test on other examples."""

    __test__ = False
    test_examples: Annotated[
        int | None,
        Option(
            "Most examples to take of the test file; examples (--examples) counts those of TASK.",
            words="the number of test examples",
            least=2,
        ),
    ] = None

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

    estimator: Annotated[
        str,
        Option("Estimator of importance that orders go by.", choices=ESTIMATORS),
    ] = ABSOLUTE
    role: Annotated[
        str | None,
        Option(
            "Role whose heads the orders with_role and without_role are about: its id, its words "
            "or its relation, such as nsubj."
        ),
    ] = None
    at_least: Annotated[int, Option("Heads that every layer keeps.", least=0)] = 0
    protect: Annotated[
        Sequence[tuple[int, int]] | None,
        Option("Heads that stay, as in 3-11,0-2.", words="the protected heads", convert=_heads),
    ] = None
    steps: Annotated[
        int, Option("Steps in which the order reestimated removes heads.", least=1)
    ] = 10
    seed: Annotated[int, seed_option("Seed of random choices.")] = 0


@dataclass(frozen=True, kw_only=True)
class PruneOptions(SelectionOptions, TuningOptions, TestSetOptions):
    """Options of pruning."""

    order: Annotated[
        str,
        Option(
            "Order in which heads are removed.",
            more="importance, reestimated and ablation need a task; with_role and without_role "
            "need roles; the others need nothing.",
            words="the order",
            choices=ORDERS,
        ),
    ] = "importance"
    keep: Annotated[int | None, Option("Number of heads to keep.", least=0)] = None
    share: Annotated[
        float | None, Option("Share of the heads to remove, instead of keep.", above=0, below=1)
    ] = None
    written_as: Annotated[
        str,
        Option(
            "pruned: without the heads; zeroed: full size with zeros, for any program.",
            words="the form",
            choices=FORMS,
            flag="--as",
        ),
    ] = PRUNED

    def check(self) -> None:
        """Reject a missing or double number of heads, and orders by role without a role."""
        super().check()
        if (self.keep is None) == (self.share is None):
            raise UsageError(
                "give the number of heads to keep, or the share to remove: keep (--keep N) "
                "or share (--share S)"
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
                f"{one.name} ({one.flag}) does nothing with the order {', '.join(orders)}; leave "
                f"it out, or choose the order {' or '.join(users)}"
            )


def check_role(order: str, options: SelectionOptions) -> None:
    """Raise UsageError for an order by role without a role and a folder of roles."""
    if order in BY_ROLE and (options.role is None or options.roles_from is None):
        raise UsageError(
            f"the order {order} needs role (--role) and roles_from (--roles-from), a folder with "
            "roles"
        )
