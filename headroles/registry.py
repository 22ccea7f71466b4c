"""All commands, in the order of their list, and all kinds of results. Importing this loads none.

The command of a study is made from the signature of the study (`headroles.cli.studies`); others
are functions in `headroles.cli`. Other packages declare studies by the entry point
``headroles.studies``: the name of the command, and its function as ``package.module:function``.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, NamedTuple

ENTRY_POINT = "headroles.studies"
"""Entry point by which other packages declare their studies."""


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
        package: the package of a study that is not of headroles.
        cheaper: what makes long work shorter, in options of Python.
    """

    name: str
    place: str
    help: str
    kind: str = ""
    unit: str = "passes"
    title: str = ""
    package: str = ""
    cheaper: str = ""

    @property
    def is_made(self) -> bool:
        """Whether the command is made from a study."""
        return bool(self.package) or self.place.startswith("studies.")

    def load(self) -> Any:
        """Import its function."""
        return resolve_name(self.place if self.package else f"headroles.{self.place}")

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
        "studies.describe:describe_heads",
        "Describe heads by confidence, entropy and distance, or one head by its roles.\n\n"
        "headroles describe DIR --head 4-8 tells what this head does.",
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
        "align",
        "studies.alignment.align:align_words",
        "Tell which heads of a translation model align words.\n\nMODEL is an encoder-decoder, and "
        "CORPUS a bitext, with lines such as source ||| target ||| 0-0 1-2. Without such links "
        "errors are not counted; `write_links` writes the links of the heads.",
        kind="alignment",
        unit="sentences",
    ),
    Command(
        "symmetrize",
        "studies.alignment.symmetrize:symmetrize_links",
        "Join links of words of both directions, and count their errors.\n\nCORPUS is a bitext; "
        "the files of links are those that align wrote, one for each direction.",
        kind="joined links",
    ),
    Command(
        "replicate",
        "studies.replicate:replicate_roles",
        "Test in how many of several corpora heads have a role.\n\nDIR DIR are folders that score "
        "or classify wrote. Corpora may be languages that one multilingual model reads.",
        kind="replication",
        title="Other corpora, and papers",
    ),
    Command(
        "claims",
        "studies.claims.claims:test_claims",
        "Test what papers say of attention heads on MODEL.\n\nOver several models: "
        "headroles combine-claims.",
        unit="parts",
        cheaper="a shorter CORPUS, fewer `examples`, or some `claims` alone",
    ),
    Command(
        "combine-claims",
        "studies.claims.claims:combine_claims",
        "Test claims of papers over several models.\n\nDIR DIR are folders that claims wrote for "
        "three or more models that were trained independently.",
        kind="claims",
    ),
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
        cheaper="fewer `examples`, or `sets='layers'`",
        kind="ablations",
    ),
    Command(
        "by-role",
        "studies.importance.by_role:importance_by_role",
        "Test whether heads with a role matter more.\n\nCompares them with other heads of their "
        "layers: by importance, by the loss without each head, and by the loss without all heads "
        "of the role beside that without as many random heads.",
        cheaper="`quick`, fewer `draws`, `examples` or `roles`",
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
        cheaper="fewer `examples`, fewer `draws`, or fewer `orders` and `shares`",
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
        cheaper="fewer `seeds` or `updates`",
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
    Command("models", "cli.about:models", "List families of models."),
    Command("info", "cli.about:info", "Print versions, processor and devices for bug reports."),
)

RESULTS = {
    **{command.kind_of_result: command.place for command in COMMANDS if command.is_made},
    "role table": "studies.classification.role_table:RoleTable",
    "profile": "studies.profile:HeadProfile",
}
"""Where the class of a kind of results is, or the study that returns it."""


@cache
def all_commands() -> dict[str, Command]:
    """Return all commands by name: those of headroles, then the studies of other packages."""
    own = {command.name: command for command in COMMANDS}
    added: dict[str, Command] = {}
    for study in _studies_of_others():
        if study.name in own or study.name in added:
            warnings.warn(
                f"the study {study.name} of the package {study.package} is ignored: another "
                f"command has this name",
                stacklevel=2,
            )
            continue
        added[study.name] = study
    return own | added


def _studies_of_others() -> Iterator[Command]:
    """Yield the studies that installed packages declare. No package is imported."""
    from importlib.metadata import entry_points

    title = "Studies of other packages"
    for point in entry_points(group=ENTRY_POINT):
        package = point.dist.name if point.dist else point.module
        text = f"A study of the package {package}."
        yield Command(point.name, point.value, text, title=title, package=package)


def find_command(name: str) -> Command:
    """Return the command called ``name``. Raises KeyError if there is none.

    Other packages are looked up only for names that are not of headroles.
    """
    own = (command for command in COMMANDS if command.name == name)
    return next(own, None) or all_commands()[name]


def all_kinds() -> list[str]:
    """Return all kinds of results; for studies of other packages these are their names."""
    return [*RESULTS, *(study.name for study in all_commands().values() if study.package)]


def command_of(kind: str) -> str:
    """Return the name of the command that makes results of a kind."""
    return next((command.name for command in COMMANDS if command.kind_of_result == kind), kind)


def result_types(kind: str) -> list[Any]:
    """Import the class of the results of a kind, the last, and of those it is made with.

    Raises TypeError for a study of another package whose results are of another kind.
    """
    study = None if kind in RESULTS else all_commands()[kind]
    made_by = study.load() if study else resolve_name(f"headroles.{RESULTS[kind]}")
    if isinstance(made_by, type):
        return [made_by]
    home = sys.modules[inspect.unwrap(made_by).__module__]
    types = [*classes_in(inspect.signature(made_by).return_annotation, home)]
    if study and [one.kind for one in types[-1:]] != [kind]:
        raise TypeError(
            f"the study {kind} of the package {study.package} returns no results of the kind "
            f"{kind}; annotate what it returns, and give that class kind = {kind!r}"
        )
    return types


def classes_in(annotation: str, home: ModuleType) -> Iterator[Any]:
    """Yield the classes of results that an annotation of a study names, each loaded when asked for.

    They are public names of headroles, or in the module ``home`` of the study.
    """
    package = resolve_name("headroles")
    for name in re.findall(r"\w+", annotation):
        if name in package.__all__:
            yield getattr(package, name)
        elif hasattr(in_module := getattr(home, name, None), "kind"):
            yield in_module


def result_type(kind: str) -> Any:
    """Import the class of the results of a kind."""
    return result_types(kind)[-1]
