"""Studies of sharing as users call them; their work is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headroles.options import takes
from headroles.passes.options import shown_in_notebooks
from headroles.studies.sharing.options import CollaborateOptions, RedundancyOptions

if TYPE_CHECKING:
    from headroles.corpus import Corpus
    from headroles.models.loading.encoder import Model
    from headroles.studies.sharing.collaborate import Collaboration, CollaborativeModel
    from headroles.studies.sharing.redundancy import Redundancy


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
