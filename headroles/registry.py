"""All commands, in the order of their list, and all kinds of results. Importing this loads none.

The command of a study is made from the signature of the study (`headroles.cli.studies`); others
are functions in `headroles.cli`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pkgutil import resolve_name
from typing import Any, NamedTuple


class Command(NamedTuple):
    """A command, known without loading it.

    Attributes:
        name: as users call it.
        place: the function of its study under `takes`, or of its own in ``cli``, as
            ``module:function``.
        help: its first paragraph is shown in the list of commands.
        kind: the kind of the result of the study; by default the name of the command.
        unit: what its progress counts.
        title: the title of this command and the next ones in the list of commands.
    """

    name: str
    place: str
    help: str
    kind: str = ""
    unit: str = "passes"
    title: str = ""

    @property
    def is_made(self) -> bool:
        """Whether the command is made from a study."""
        return self.place.startswith("studies.")

    @property
    def kind_of_result(self) -> str:
        """The kind of the result of the study."""
        return self.kind or self.name


COMMANDS = (
    Command(
        "demo",
        "cli.scoring:demo",
        "Run classify on the bundled treebank and model.",
        title="Start here",
    ),
    Command(
        "classify",
        "cli.scoring:classify",
        "Score the heads of MODEL over CORPUS and test their roles.",
    ),
    Command(
        "examples",
        "studies.inspection.examples:find_examples",
        "Show the sentences behind a head's scores, and its weights.",
    ),
    Command(
        "compare",
        "studies.comparison.compare:compare_roles",
        "Test what changed in the heads, as by fine-tuning.\n\nFirst score each model: "
        "headroles score. Then AFTER and each LATER are compared with BEFORE.",
        kind="comparison",
    ),
    Command("report", "cli.results:report", "Make one HTML file of results, to read and to send."),
    Command(
        "score",
        "cli.scoring:score",
        "Score the heads of MODEL over CORPUS, without tests. For corpora of any size.",
        title="Roles of heads",
    ),
    Command("merge", "cli.scoring:merge", "Join parts of a corpus that were scored apart."),
    Command(
        "assign",
        "cli.scoring:assign",
        "Test the scores in DIR again, without the model. Writes the role table there.",
    ),
    Command(
        "best",
        "studies.inspection.best:find_best_heads",
        "Tell which head finds each relation best, in unseen text.",
    ),
    Command(
        "describe",
        "studies.inspection.describe:describe_heads",
        "Describe heads by confidence, entropy and distance.",
        kind="description",
    ),
    Command(
        "tokens",
        "studies.inspection.tokens:measure_token_groups",
        "Compare weights and norms that go to each kind of token.\n\nNorms are weights times the "
        "lengths of the vectors that heads pass on from a token (Kobayashi et al. 2020).",
        kind="token groups",
        unit="sentences",
    ),
    Command(
        "replicate",
        "studies.replicate:replicate_roles",
        "Test in how many of several corpora heads have a role.\n\nDIR DIR are folders that score "
        "or classify wrote. Corpora may be languages that one multilingual model reads.",
        kind="replication",
        title="Other corpora, and papers",
    ),
    Command("claims", "cli.claims:claims", "Test what papers say of attention heads on MODEL."),
    Command(
        "power",
        "studies.power:power_analysis",
        "Tell how many examples it takes to decide each role. The scores in DIR are the pilot.",
    ),
    Command(
        "importance",
        "studies.importance.importance:find_importance",
        "Tell how much the loss of TASK depends on each head.\n\nMODEL was trained for the task. "
        "Take examples that it was trained on, or others that you use for no test.",
        title="Importance of heads for a task",
    ),
    Command(
        "ablate",
        "studies.importance.ablate:ablate_heads",
        "Test what MODEL loses in TASK without heads.\n\nRemoves single heads, all heads of a "
        "layer but one, whole layers, or all heads with a role.",
        kind="ablations",
    ),
    Command(
        "by-role",
        "studies.importance.by_role:importance_by_role",
        "Test whether heads with a role matter more.\n\nCompares them with other heads of their "
        "layers: by importance, by the loss without each head, and by the loss without all heads "
        "of the role beside that without as many random heads.",
    ),
    Command(
        "by-task",
        "studies.importance.by_task:drops_by_task",
        "Compare the drops without heads in several tasks.\n\nDIR DIR are folders that ablate "
        "wrote. Tasks may be languages or genres, of one model or of a model each. The table has "
        "the relative drop by task for layers, thirds of the layers, or heads.",
    ),
    Command(
        "pruning-curves",
        "studies.pruning.pruning_curves:find_pruning_curves",
        "Measure MODEL with more and more heads removed.\n\nOrders of removing heads are compared "
        "with one of them, at every share and over all; orders of importance are found with TASK. "
        "No model is written; write one with headroles prune.",
    ),
    Command(
        "prune",
        "studies.pruning.prune:prune_heads",
        "Remove heads from MODEL and write the smaller model.\n\nOrders of "
        "importance are found with TASK. MODEL may first be fine-tuned without these heads. "
        "The folder is a model for every command, in which heads keep their numbers.",
        kind="pruning",
        unit="steps",
        title="Smaller models",
    ),
    Command(
        "gate",
        "studies.pruning.gate:gate_heads",
        "Learn which heads of MODEL stay for TASK.\n\nAll gates are open at first. They close one "
        "after the other, until as many heads stay as were asked for. The folder is a model for "
        "every command, with these heads alone. Gates are learnt with several seeds, which may "
        "keep different heads.",
        kind="gating",
        unit="steps",
    ),
    Command(
        "collaborate",
        "studies.sharing.collaborate:collaborate_heads",
        "Make a model whose heads share queries and keys. DIR can be used wherever MODEL can.\n\n"
        "By rank: headroles collaborate MODEL --rank 192 --out DIR\n\n"
        "By error: headroles collaborate MODEL --error 0.1 --out DIR\n\n"
        "With the cost for a task: headroles collaborate MODEL --rank 192 --task dev.tsv --out DIR",
        kind="collaboration",
        unit="examples",
    ),
    Command(
        "redundancy",
        "studies.sharing.redundancy:find_redundancy",
        "Tell how much the queries and keys of MODEL's heads have in common. Reads no text.",
    ),
    Command("show", "cli.results:show", "Print the summary of results again.", title="Results"),
    Command("figure", "cli.results:figure", "Draw a figure of results for a paper."),
    Command(
        "export",
        "cli.results:export",
        "Print the table of results in DIR, or write it to a file.",
    ),
    Command("models", "cli.about:models", "List the encoder families."),
    Command("info", "cli.about:info", "Print versions, processor and devices for bug reports."),
)

RESULTS = {
    **{command.kind_of_result: command.place for command in COMMANDS if command.is_made},
    "role table": "studies.classification.role_table:RoleTable",
    "claims": "studies.claims.claims:ClaimTable",
}
"""Where the class of a kind of results is, or the study that returns it."""


def command_of(kind: str) -> str:
    """Return the name of the command that makes results of a kind."""
    return next((command.name for command in COMMANDS if command.kind_of_result == kind), kind)


def result_types(kind: str) -> list[Any]:
    """Import the class of the results of a kind, the last, and of those it is made with."""
    made_by = resolve_name(f"headroles.{RESULTS[kind]}")
    if isinstance(made_by, type):
        return [made_by]
    return [*classes_in(inspect.signature(made_by).return_annotation)]


def classes_in(annotation: str) -> Iterator[Any]:
    """Yield the public classes that an annotation of a study names, each loaded when asked for."""
    package = resolve_name("headroles")
    names = re.findall(r"\w+", annotation)
    return (getattr(package, name) for name in names if name in package.__all__)


def result_type(kind: str) -> Any:
    """Import the class of the results of a kind."""
    return result_types(kind)[-1]
