"""Options of classification: how heads are scored, tested and assigned roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.errors import UsageError
from headroles.options import Convert, PresetOptions, fields_of
from headroles.scoring.options import TREES, ScoreOptions, controls_of
from headroles.studies.options import ThresholdOptions
from headroles.testing.options import TestOptions


@dataclass(frozen=True, kw_only=True)
class AssignOptions(PresetOptions, TestOptions, ThresholdOptions):
    """Options of the assignment of roles."""

    __test__ = False

    def check(self) -> None:
        """Reject options that the published preset sets itself: all but threshold and alpha."""
        super().check()
        given = self.as_group(TestOptions).record()
        for field in fields_of(TestOptions) if self.is_published else ():
            if field.name != "alpha" and given[field.name] != field.default:
                raise UsageError(
                    f"`{field.name}` of the published preset is fixed; leave `{field.name}` "
                    f"out, or the preset"
                )

    @property
    def tests(self) -> TestOptions:
        """The options that the tests follow."""
        if not self.is_published:
            return self.as_group(TestOptions)
        return TestOptions(alpha=self.alpha, correction="none", clusters="none")


@dataclass(frozen=True, kw_only=True)
class ClassifyOptions(AssignOptions, ScoreOptions):
    """Options of scoring and testing."""

    __test__ = False
    title: ClassVar[str] = "Roles"

    controls: Annotated[str | Sequence[str], Convert(controls_of)] = TREES
    """Controls of answers, separated by commas: trees, words, weights; or none.

    trees: arcs of other sentences of as many words, in the same pass. words: the words of each
    sentence permuted, under the same tree; weights: each weight matrix of the model permuted within
    itself; one more pass each.
    """
