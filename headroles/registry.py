"""All commands, in the order of work, and all kinds of results. Importing this loads none of them.

A study whose command is made from its line needs no other; `headroles.cli` makes such a command
over stored ``SCORES``, a model and the file of a ``TASK``, or ``FOLDERS`` of results with names.
"""

from __future__ import annotations

import inspect
import sys
from pkgutil import resolve_name
from typing import Any, NamedTuple

SCORES, TASK, FOLDERS = "scores", "task", "folders"


class Command(NamedTuple):
    """A command, known without loading it.

    Attributes:
        name: as users call it.
        place: its function, as ``module:function``: in ``headroles.cli``, or if the command is made
            from this line, the function of the study under `takes`, in ``headroles.studies``.
        help: its first paragraph is shown in the list of commands.
        over: the subject of a study whose command is made from this line.
        kind: the kind of the result of such a study; by default the name of the command.
        of: the class of the results in ``FOLDERS``.
    """

    name: str
    place: str
    help: str
    over: str = ""
    kind: str = ""
    of: str = "headroles.scoring.scores:HeadScores"


COMMANDS = (
    Command(
        "classify",
        "classification:classify",
        "Score the heads of MODEL over CORPUS and test their roles.",
    ),
    Command(
        "score",
        "classification:score",
        "Score the heads of MODEL over CORPUS, without tests. For corpora of any size.",
    ),
    Command("merge", "classification:merge", "Join parts of a corpus that were scored apart."),
    Command(
        "assign",
        "classification:assign",
        "Test the scores in DIR again, without the model. Writes the role table there.",
    ),
    Command(
        "best",
        "inspection.best:find_best_heads",
        "Tell which head finds each relation best, in unseen text.",
        SCORES,
    ),
    Command(
        "describe",
        "inspection.describe:describe_heads",
        "Describe heads by confidence, entropy and distance.",
        SCORES,
        kind="description",
    ),
    Command(
        "examples",
        "inspection:examples",
        "Show the sentences behind a head's scores, and its weights.",
    ),
    Command(
        "tokens",
        "inspection:tokens",
        "Compare weights and norms that go to each kind of token.",
    ),
    Command("compare", "comparison:compare", "Test what changed in the heads, as by fine-tuning."),
    Command(
        "replicate",
        "replicate:replicate_roles",
        "Test in how many of several corpora heads have a role.\n\nDIR DIR are folders that score "
        "or classify wrote. Corpora may be languages that one multilingual model reads.",
        FOLDERS,
        kind="replication",
    ),
    Command(
        "power",
        "power:power_analysis",
        "Tell how many examples it takes to decide each role. The scores in DIR are the pilot.",
        SCORES,
    ),
    Command(
        "importance",
        "importance.importance:find_importance",
        "Tell how much the loss of TASK depends on each head.\n\nMODEL was trained for the task. "
        "Take examples that it was trained on, or others that you use for no test.",
        TASK,
    ),
    Command(
        "ablate",
        "importance.ablation:ablate_heads",
        "Test what MODEL loses in TASK without heads.\n\nRemoves single heads, all heads of a "
        "layer but one, whole layers, or all heads with a role.",
        TASK,
        kind="ablations",
    ),
    Command(
        "by-role",
        "importance.by_role:importance_by_role",
        "Test whether heads with a role matter more.\n\nCompares them with other heads of their "
        "layers: by importance, by the loss without each head, and by the loss without all heads "
        "of the role beside that without as many random heads.",
        TASK,
    ),
    Command(
        "by-task",
        "importance.by_task:drops_by_task",
        "Compare the drops without heads in several tasks.\n\nDIR DIR are folders that ablate "
        "wrote. Tasks may be languages or genres, of one model or of a model each. The table has "
        "the relative drop by task for layers, thirds of the layers, or heads.",
        FOLDERS,
        of="headroles.studies.importance.ablation:Ablations",
    ),
    Command(
        "pruning-curves",
        "pruning:pruning_curves",
        "Measure MODEL with more and more heads removed.",
    ),
    Command("prune", "pruning:prune", "Remove heads from MODEL and write the smaller model."),
    Command("gate", "pruning:gate", "Learn which heads of MODEL stay for TASK."),
    Command("claims", "claims:claims", "Test what papers say of attention heads on MODEL."),
    Command(
        "collaborate",
        "sharing:collaborate",
        "Make a model whose heads share queries and keys. DIR can be used wherever MODEL can.",
    ),
    Command(
        "redundancy",
        "sharing:redundancy",
        "Tell how much the queries and keys of MODEL's heads have in common. Reads no text.",
    ),
    Command("show", "results:show", "Print the summary of results again."),
    Command("report", "results:report", "Make one HTML file of results, to read and to send."),
    Command("figure", "results:figure", "Draw a figure of results for a paper."),
    Command(
        "export",
        "results:export",
        "Print the table of results in DIR, or write it to a file.",
    ),
    Command("models", "about:models", "List the encoder families."),
    Command("info", "about:info", "Print versions, processor and devices for bug reports."),
    Command("demo", "about:demo", "Run classify on the bundled treebank and model."),
)

RESULTS = {
    **{command.kind or command.name: command.place for command in COMMANDS if command.over},
    "role table": "classification.role_table:RoleTable",
    "examples": "inspection.examples:Examples",
    "token groups": "inspection.tokens:TokenGroups",
    "comparison": "comparison.compare:RoleComparison",
    "replication": "replicate:Replication",
    "layer counts": "replicate:LayerCounts",
    "pruning-curves": "pruning.pruning_curves:PruningCurves",
    "pruning": "pruning.prune:Pruning",
    "gating": "pruning.gate:Gating",
    "claims": "claims.claims:ClaimTable",
    "collaboration": "sharing.collaborate:Collaboration",
    "redundancy": "sharing.redundancy:Redundancy",
}
"""Where in `headroles.studies` the class of a kind is, or the function that returns its results."""


def result_type(kind: str) -> Any:
    """Import the class of the results of a kind."""
    found = resolve_name(f"headroles.studies.{RESULTS[kind]}")
    if isinstance(found, type):
        return found
    return getattr(sys.modules[found.__module__], inspect.signature(found).return_annotation)
