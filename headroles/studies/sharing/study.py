"""Studies of sharing as users call them; their work is imported when they run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from headroles.errors import UsageError
from headroles.models.options import ModelOptions
from headroles.options import Convert, Seed, takes
from headroles.passes.options import shown_in_notebooks
from headroles.tasks.options import TaskOptions

if TYPE_CHECKING:
    from headroles.corpus import Corpus
    from headroles.models.loading.encoder import Model
    from headroles.studies.sharing.collaborate import Collaboration, CollaborativeModel
    from headroles.studies.sharing.redundancy import Redundancy


@dataclass(frozen=True, kw_only=True)
class CollaborateOptions(TaskOptions):
    """Options of factorising queries and keys."""

    title: ClassVar[str] = "Factorisation"

    sample_examples: Annotated[int, Meta(ge=2)] = 400
    """Most examples of the sample."""
    held_out: Annotated[float, Meta(gt=0, lt=1)] = 0.25
    """Share of the sample held out, to measure on.

    Whole documents where there are several.
    """
    seed: Seed = 0
    """Seed of the starts, and of the examples held out."""
    rank: Annotated[int | None, Meta(ge=1)] = None
    """Dimensions of queries and keys that all heads of a layer have together.

    The full rank of the model (heads times head size) changes nothing. A layer that lost heads has
    its full rank at most, and per head the dimensions of a whole layer.
    """
    error: Annotated[float | None, Meta(gt=0, lt=1)] = None
    """Instead of a rank: largest error of scores, as a share; layers get their least rank.

    The root mean square error on the sample, of the root mean square of scores.
    """
    method: Literal["shared", "per-head"] = "shared"
    """shared: dimensions that all heads mix; per-head: fewer dimensions for each head."""
    weighting: Literal["inputs", "none"] = "inputs"
    """Errors to minimise: of scores of real inputs, or of the weights alone."""
    restarts: Annotated[int, Meta(ge=1)] = 1
    """Starts of the shared factors; the best is kept."""

    def check(self) -> None:
        """Reject neither a rank nor an error, and both."""
        super().check()
        if (self.rank is None) == (self.error is None):
            raise UsageError("give exactly one of `rank` and `error`")


@dataclass(frozen=True, kw_only=True)
class RedundancyOptions(ModelOptions):
    """Options of the tests of overlaps."""

    title: ClassVar[str] = "Tests"

    roles_from: Annotated[str | None, Convert(str)] = None
    """Folder that classify or assign wrote, to test the heads of each role."""
    draws: Annotated[int, Meta(ge=1)] = 99
    """Layers of random heads to compare each layer with."""
    permutations: Annotated[int, Meta(ge=1)] = 9999
    """Shuffles of the heads of each layer, to test roles."""
    alpha: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    """Level of the tests."""
    seed: Seed = 0
    """Seed of draws and shuffles."""


@takes(CollaborateOptions)
def collaborate_heads(
    model: Model,
    sample: Corpus | None,
    *,
    task: str | Path | None = None,
    options: CollaborateOptions,
) -> tuple[CollaborativeModel, Collaboration]:
    """Make a model whose heads share query and key dimensions, and measure its differences.

    Collaborative attention (Cordonnier et al. 2020): with R dimensions for all heads of a layer
    in the place of d for each,

        score_h(i, j) = ((m_h * Q x_i + c_h) . K x_j) / sqrt(d)

    The bias of the keys is dropped, since it does not change the softmax; the scale stays. At full
    rank the model is the original; below, the factors have the least mean square error of scores on
    the sample that alternating least squares find (`models.shared.factorisation`).

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode, which does not change.
        sample: text of the kind that the model reads, to weight and to measure with; None for the
            bundled treebank.
        task: examples of the task of the model, which it was not trained on; loss and metrics are
            measured before and after.
        options: keyword arguments, described below.

    Returns:
        The new model with its tokenizer, and the table of its layers.

    Raises:
        ModelSupportError: a family with position terms in its scores.
        UsageError: a rank that the layers cannot have.
        CorpusError, ModelError, TokenizerError: as `score_heads`, and for a task as `ablate_heads`.

    With ``model`` an encoder of 3 layers, whose 4 heads have 8 dimensions each:

    >>> from headroles import collaborate_heads
    >>> made, table = collaborate_heads(model, None, rank=24)
    >>> table.frame[["layer", "rank", "full_rank"]]
       layer  rank  full_rank
    0      0    24         32
    1      1    24         32
    2      2    24         32
    """
    from headroles.studies.sharing.collaborate import collaborate

    with shown_in_notebooks(options, "steps") as shown:
        return collaborate(model, sample, shown, task)


@takes(RedundancyOptions)
def find_redundancy(model: Model, options: RedundancyOptions) -> Redundancy:
    """Count the dimensions of the queries and keys of heads, and test which heads share them.

    Of each layer, the singular values of the products query_h' key_h of single heads, and of their
    sum, are compared with heads of the same singular values in random spaces. Of each two heads of
    a layer, the overlap of their query spaces and of their key spaces (the mean squared cosine of
    the principal angles) is compared with random spaces of the same size. With roles, the overlap
    of heads of one role is compared with heads shuffled within layers. All p-values of one kind are
    corrected together by Benjamini-Hochberg. Only the weights are read, no text.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode.
        options: keyword arguments, described below.

    Raises:
        ModelSupportError: a family with position terms in its scores.
        UsageError: roles of a model of another shape, or of one that lacks heads.
        ModelError, TokenizerError: as `score_heads`.
        StorageError: as `RoleTable.load`.

    With ``model`` an encoder of 3 layers with 4 heads each, and random weights:

    >>> from headroles import find_redundancy
    >>> found = find_redundancy(model, draws=9)
    >>> len(found), bool(found.frame["query_shared"].any())
    (18, False)
    """
    from headroles.studies.sharing.redundancy import measure_redundancy

    return measure_redundancy(model, options)
