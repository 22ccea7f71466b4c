# Written by `make stubs`; do not edit.

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from spacy.language import Language
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles.arrays import Float32Array
from headroles.corpus import AnyCorpus, Corpus
from headroles.corpus import Sentence as Sentence
from headroles.corpus import make_corpus as make_corpus
from headroles.corpus.arcs import ArcsOptions
from headroles.corpus.bitext import BitextOptions
from headroles.corpus.text import PairsOptions, TextOptions
from headroles.corpus.treebanks import ConlluOptions
from headroles.errors import HeadRolesError as HeadRolesError
from headroles.models.attention.functions import SavedAttention as SavedAttention
from headroles.models.heads.remaining import Head
from headroles.models.loading.encoder import Attending, Model
from headroles.models.loading.saved_models import CollaborativeModel as CollaborativeModel
from headroles.models.loading.tokenizers import encode as encode
from headroles.models.options import WeightOptions
from headroles.passes.options import OnProgress
from headroles.results.result import load as load
from headroles.results.stored import Claimed
from headroles.roles import Role as Role
from headroles.roles.own import Find
from headroles.sample import atlas as atlas
from headroles.sample import demo_model as demo_model
from headroles.sample import sample_treebank as sample_treebank
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import SavedArrays, SavedOptions, WordsOfPieces
from headroles.scoring.scores import HeadScores as HeadScores
from headroles.storage import Parts, PathLike
from headroles.studies.alignment.align import AlignOptions
from headroles.studies.alignment.align import WordAlignment as WordAlignment
from headroles.studies.alignment.symmetrize import JoinedLinks as JoinedLinks
from headroles.studies.alignment.symmetrize import SymmetrizeOptions
from headroles.studies.claims.claims import ClaimTable as ClaimTable
from headroles.studies.claims.measured import ClaimOptions
from headroles.studies.classification.assignment import Classification as Classification
from headroles.studies.classification.assignment import ClassifyOptions
from headroles.studies.classification.role_table import AssignOptions
from headroles.studies.classification.role_table import RoleTable as RoleTable
from headroles.studies.comparison.compare import CompareOptions
from headroles.studies.comparison.compare import RoleComparison as RoleComparison
from headroles.studies.describe import HeadDescription as HeadDescription
from headroles.studies.importance.ablate import AblateOptions
from headroles.studies.importance.ablate import Ablations as Ablations
from headroles.studies.importance.by_role import ByRoleOptions
from headroles.studies.importance.by_role import ImportanceByRole as ImportanceByRole
from headroles.studies.importance.by_task import DropsByTask as DropsByTask
from headroles.studies.importance.importance import Importance as Importance
from headroles.studies.importance.importance import ImportanceOptions
from headroles.studies.inspection.attention import AttentionOptions, ReadingOptions
from headroles.studies.inspection.attention import WordAttention as WordAttention
from headroles.studies.inspection.best import BestHeads as BestHeads
from headroles.studies.inspection.best import BestOptions
from headroles.studies.inspection.examples import Examples as Examples
from headroles.studies.inspection.examples import SentenceOptions
from headroles.studies.inspection.tokens import TokenGroupOptions
from headroles.studies.inspection.tokens import TokenGroups as TokenGroups
from headroles.studies.power import PowerAnalysis as PowerAnalysis
from headroles.studies.power import PowerOptions
from headroles.studies.profile import HeadProfile as HeadProfile
from headroles.studies.pruning.gate import GateOptions
from headroles.studies.pruning.gate import Gating as Gating
from headroles.studies.pruning.orders import Order
from headroles.studies.pruning.prune import PruneOptions
from headroles.studies.pruning.prune import Pruning as Pruning
from headroles.studies.pruning.pruning_curves import CurveOptions
from headroles.studies.pruning.pruning_curves import PruningCurves as PruningCurves
from headroles.studies.replicate import ReplicateOptions
from headroles.studies.replicate import Replication as Replication
from headroles.studies.sharing.collaborate import CollaborateOptions
from headroles.studies.sharing.collaborate import Collaboration as Collaboration
from headroles.studies.sharing.redundancy import Redundancy as Redundancy
from headroles.studies.sharing.redundancy import RedundancyOptions
from headroles.testing.options import CorrectionOptions

__version__: str
__all__ = [
    "Ablations",
    "BestHeads",
    "ClaimTable",
    "Classification",
    "Collaboration",
    "CollaborativeModel",
    "DropsByTask",
    "Examples",
    "Gating",
    "HeadDescription",
    "HeadProfile",
    "HeadRolesError",
    "HeadScores",
    "Importance",
    "ImportanceByRole",
    "JoinedLinks",
    "PowerAnalysis",
    "Pruning",
    "PruningCurves",
    "Redundancy",
    "Replication",
    "Role",
    "RoleComparison",
    "RoleTable",
    "SavedAttention",
    "Sentence",
    "TokenGroups",
    "WordAlignment",
    "WordAttention",
    "ablate_heads",
    "align_words",
    "assign_roles",
    "atlas",
    "attention_of",
    "classify_heads",
    "collaborate_heads",
    "combine_claims",
    "compare_roles",
    "demo_model",
    "describe_heads",
    "drops_by_task",
    "encode",
    "find_best_heads",
    "find_examples",
    "find_importance",
    "find_pruning_curves",
    "find_redundancy",
    "gate_heads",
    "importance_by_role",
    "load",
    "load_model",
    "make_corpus",
    "measure_token_groups",
    "power_analysis",
    "prune_heads",
    "read_arcs",
    "read_attention",
    "read_bitext",
    "read_conllu",
    "read_pairs",
    "read_text",
    "replicate_roles",
    "sample_treebank",
    "score_attention",
    "score_heads",
    "symmetrize_links",
    "test_claims",
]

def ablate_heads(
    model: Model,
    task: str | Path,
    *,
    text_columns: str | int | Sequence[str | int] | None = None,
    label_column: str | int | None = None,
    labels: str | Sequence[str] | Mapping[str, int] | None = None,
    header: bool = True,
    separator: Literal["tab", "comma", "semicolon"] | None = None,
    objective: Literal[
        "auto", "classification", "regression", "masked_lm", "causal_lm", "text_to_text"
    ] = "auto",
    examples: int | None = None,
    masked_share: float = 0.15,
    mask_seed: int = 0,
    max_tokens: int | None = None,
    attention: str | Sequence[str] | None = None,
    parts: PathLike | Parts | None = None,
    generate: bool = False,
    beams: int = 1,
    longest_translation: int = 128,
    bleu_tokens: Literal["13a", "intl", "zh", "char", "none"] = "13a",
    ignore_case: bool = False,
    roles_from: PathLike | None = None,
    sets: str | Sequence[str | int] = "single",
    ablation: Literal["zero", "mean", "uniform"] = "zero",
    margin: float = 0.01,
    alpha: float = 0.05,
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    options: AblateOptions = ...,
) -> Ablations:
    """Test the change of a task's loss without heads, over the examples."""

def align_words(
    model: Model,
    corpus: AnyCorpus,
    *,
    top: int = 3,
    reverse: bool = False,
    links_of: str | Sequence[str | Head] | None = None,
    links_by: Literal["weights", "norms"] = "weights",
    write_links: PathLike | None = None,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    target_rows: Literal["input", "output"] = "input",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    options: AlignOptions = ...,
) -> WordAlignment:
    """Compare the source words that target words attend to most with an alignment of the words."""

def assign_roles(
    scores: HeadScores,
    *,
    threshold: float | None = None,
    offset_margin: float = 0.1,
    distance_margin: float | None = None,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    test: Literal["t", "betting"] = "t",
    preset: Literal["default", "published"] = "default",
    options: AssignOptions = ...,
) -> RoleTable:
    """Test for every head and role whether the head has the role."""

def attention_of(
    model: Model,
    sentence: str | Sequence[str],
    heads: Sequence[tuple[int, int]],
    *,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    target_rows: Literal["input", "output"] = "input",
    attention: Literal["encoder", "decoder", "cross"] = "encoder",
    parser: str | None = None,
    measure: Literal["weights", "norms"] = "weights",
    options: ReadingOptions = ...,
) -> Float32Array:
    """Return the attention between the words of a sentence, averaged over heads."""

def classify_heads(
    model: Attending,
    corpus: AnyCorpus,
    *,
    frequencies: PathLike | None = None,
    window: int = 2,
    relations: str | Sequence[str] | None = None,
    keep_subtypes: bool = False,
    arcs: str = "basic",
    beyond_offset: bool = True,
    classes: str = "upos",
    columns: bool = False,
    roles: str | Find | Iterable[str | Find] | None = None,
    pairing: Literal["adjacent", "none"] = "adjacent",
    score: Literal["bias", "excess", "hit"] = "bias",
    measure: Literal["weights", "norms"] = "weights",
    controls: str | Sequence[str] = "trees",
    threshold: float | None = None,
    offset_margin: float = 0.1,
    distance_margin: float | None = None,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    test: Literal["t", "betting"] = "t",
    preset: Literal["default", "published"] = "default",
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    target_rows: Literal["input", "output"] = "input",
    attention: Literal["encoder", "decoder", "cross"] = "encoder",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    precision: Literal["float32", "float16"] = "float32",
    options: ClassifyOptions = ...,
) -> Classification:
    """Return all scores and the table of roles: `score_heads`, then `assign_roles`."""

def collaborate_heads(
    model: Model,
    sample: Corpus | None,
    *,
    task: str | Path | None = None,
    text_columns: str | int | Sequence[str | int] | None = None,
    label_column: str | int | None = None,
    labels: str | Sequence[str] | Mapping[str, int] | None = None,
    header: bool = True,
    separator: Literal["tab", "comma", "semicolon"] | None = None,
    objective: Literal[
        "auto", "classification", "regression", "masked_lm", "causal_lm", "text_to_text"
    ] = "auto",
    examples: int | None = None,
    masked_share: float = 0.15,
    mask_seed: int = 0,
    max_tokens: int | None = None,
    attention: Literal["encoder", "decoder", "cross"] = "encoder",
    sample_examples: int = 400,
    seed: int = 0,
    rank: int | None = None,
    error: float | None = None,
    method: Literal["shared", "per-head"] = "shared",
    weighting: Literal["inputs", "none"] = "inputs",
    restarts: int = 1,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    options: CollaborateOptions = ...,
) -> tuple[CollaborativeModel, Collaboration]:
    """Make a model whose heads share query and key dimensions, and measure its differences."""

def combine_claims(
    tables: Sequence[ClaimTable],
    names: Sequence[str],
    *,
    alpha: float = 0.05,
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    options: CorrectionOptions = ...,
) -> ClaimTable:
    """Test claims over several models, which must have been trained independently."""

def compare_roles(
    before: HeadScores | Classification,
    after: HeadScores | Classification,
    *later: HeadScores | Classification,
    threshold: float | None = None,
    offset_margin: float = 0.1,
    distance_margin: float | None = None,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    test: Literal["t", "betting"] = "t",
    names: str | Sequence[str | int] | None = None,
    margin: float | None = None,
    on_mismatch: Literal["error", "intersect"] = "error",
    options: CompareOptions = ...,
) -> RoleComparison:
    """Compare score sets: test for every head and role whether the mean and the role changed."""

def describe_heads(
    scores: HeadScores,
    head: tuple[int, int] | None = None,
    *,
    threshold: float | None = None,
    offset_margin: float = 0.1,
    distance_margin: float | None = None,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    test: Literal["t", "betting"] = "t",
    preset: Literal["default", "published"] = "default",
    options: AssignOptions = ...,
) -> HeadProfile | HeadDescription:
    """Return means and intervals of the quantities that describe heads, or the roles of one head."""

def drops_by_task(
    ablations: Sequence[Ablations],
    names: Sequence[str],
    *,
    alpha: float = 0.05,
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    options: CorrectionOptions = ...,
) -> DropsByTask:
    """Test which layers or heads matter for which of several tasks, languages or genres."""

def find_best_heads(
    scores: HeadScores,
    *,
    top: int | None = None,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    roles: str | Find | Iterable[str | Find] | None = None,
    corpus: PathLike | Iterable[PathLike] | None = None,
    model: Model | None = None,
    options: BestOptions = ...,
) -> BestHeads:
    """Return the best heads of each role of pairs, chosen on one half, reported on the other."""

def find_examples(
    scores: HeadScores,
    head: tuple[int, int],
    role: str,
    *,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    roles: str | Find | Iterable[str | Find] | None = None,
    corpus: PathLike | Iterable[PathLike] | None = None,
    model: Model | None = None,
    text: str | None = None,
    tokens: str | Iterable[str] | None = None,
    parser: str | None = None,
    n: int = 5,
    which: Literal["largest", "median", "smallest"] = "median",
    example: str | None = None,
    weights: bool = True,
    options: SentenceOptions = ...,
) -> Examples:
    """Return the examples in which a head has typical scores of a role, or extreme ones."""

def find_importance(
    model: Model,
    task: str | Path,
    *,
    text_columns: str | int | Sequence[str | int] | None = None,
    label_column: str | int | None = None,
    labels: str | Sequence[str] | Mapping[str, int] | None = None,
    header: bool = True,
    separator: Literal["tab", "comma", "semicolon"] | None = None,
    objective: Literal[
        "auto", "classification", "regression", "masked_lm", "causal_lm", "text_to_text"
    ] = "auto",
    examples: int | None = None,
    masked_share: float = 0.15,
    mask_seed: int = 0,
    max_tokens: int | None = None,
    attention: str | Sequence[str] | None = None,
    parts: PathLike | Parts | None = None,
    normalisation: Literal["none", "l2"] = "none",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    options: ImportanceOptions = ...,
) -> Importance:
    """Estimate how much the loss of a task depends on each head of a model trained for the task."""

def find_pruning_curves(
    model: Model,
    test: str | Path,
    task: str | Path | None = None,
    *,
    generate: bool = False,
    beams: int = 1,
    longest_translation: int = 128,
    bleu_tokens: Literal["13a", "intl", "zh", "char", "none"] = "13a",
    ignore_case: bool = False,
    text_columns: str | int | Sequence[str | int] | None = None,
    label_column: str | int | None = None,
    labels: str | Sequence[str] | Mapping[str, int] | None = None,
    header: bool = True,
    separator: Literal["tab", "comma", "semicolon"] | None = None,
    objective: Literal[
        "auto", "classification", "regression", "masked_lm", "causal_lm", "text_to_text"
    ] = "auto",
    masked_share: float = 0.15,
    mask_seed: int = 0,
    max_tokens: int | None = None,
    attention: str | Sequence[str] | None = None,
    parts: PathLike | Parts | None = None,
    examples: int | None = None,
    normalisation: Literal["none", "l2"] = "none",
    roles_from: PathLike | None = None,
    estimator: Literal["absolute", "signed", "token", "taylor"] = "absolute",
    role: str | None = None,
    at_least: int = 0,
    protect: str | Sequence[str | tuple[int, int]] | None = None,
    steps: int = 10,
    seed: int = 0,
    orders: str | Sequence[str | int] = "importance,reestimated,random",
    shares: str | float | Sequence[float] = ...,
    draws: int = 5,
    against: str = "random",
    alpha: float = 0.05,
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    options: CurveOptions = ...,
) -> PruningCurves:
    """Measure a task with more and more heads removed, in several orders."""

def find_redundancy(
    model: Model,
    *,
    roles_from: PathLike | None = None,
    draws: int = 99,
    permutations: int = 9999,
    alpha: float = 0.05,
    seed: int = 0,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    options: RedundancyOptions = ...,
) -> Redundancy:
    """Count the dimensions of the queries and keys of heads, and test which heads share them."""

def gate_heads(
    model: str | Path,
    task: str | Path,
    out: str | Path | Claimed,
    *,
    test: str | Path | None = None,
    overwrite: bool = False,
    text_columns: str | int | Sequence[str | int] | None = None,
    label_column: str | int | None = None,
    labels: str | Sequence[str] | Mapping[str, int] | None = None,
    header: bool = True,
    separator: Literal["tab", "comma", "semicolon"] | None = None,
    objective: Literal[
        "auto", "classification", "regression", "masked_lm", "causal_lm", "text_to_text"
    ] = "auto",
    examples: int | None = None,
    masked_share: float = 0.15,
    mask_seed: int = 0,
    max_tokens: int | None = None,
    attention: str | Sequence[str] | None = None,
    parts: PathLike | Parts | None = None,
    generate: bool = False,
    beams: int = 1,
    longest_translation: int = 128,
    bleu_tokens: Literal["13a", "intl", "zh", "char", "none"] = "13a",
    ignore_case: bool = False,
    keep: int | None = None,
    seeds: int = 3,
    updates: int = 300,
    weights: Literal["frozen", "trained"] = "frozen",
    weight_rate: float = 2e-05,
    seed: int = 0,
    update_examples: int = 32,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    options: GateOptions = ...,
) -> Gating:
    """Learn which heads to keep, and write the model without the others."""

def importance_by_role(
    model: Model,
    task: str | Path,
    *,
    text_columns: str | int | Sequence[str | int] | None = None,
    label_column: str | int | None = None,
    labels: str | Sequence[str] | Mapping[str, int] | None = None,
    header: bool = True,
    separator: Literal["tab", "comma", "semicolon"] | None = None,
    objective: Literal[
        "auto", "classification", "regression", "masked_lm", "causal_lm", "text_to_text"
    ] = "auto",
    examples: int | None = None,
    masked_share: float = 0.15,
    mask_seed: int = 0,
    max_tokens: int | None = None,
    attention: str | Sequence[str] | None = None,
    parts: PathLike | Parts | None = None,
    generate: bool = False,
    beams: int = 1,
    longest_translation: int = 128,
    bleu_tokens: Literal["13a", "intl", "zh", "char", "none"] = "13a",
    ignore_case: bool = False,
    roles_from: PathLike | None = None,
    roles: str | Sequence[str | int] | None = None,
    estimator: Literal["absolute", "signed", "token", "taylor"] = "absolute",
    permutations: int = 9999,
    draws: int = 999,
    seed: int = 0,
    quick: bool = False,
    alpha: float = 0.05,
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    options: ByRoleOptions = ...,
) -> ImportanceByRole:
    """Test whether heads with a role matter more to a task than other heads of their layers."""

def load_model(
    folder: str | Path,
    *,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    options: WeightOptions = ...,
) -> PreTrainedModel:
    """Return the model in ``folder`` in the class that wrote it, without its removed heads."""

def measure_token_groups(
    model: Model,
    corpus: AnyCorpus,
    *,
    pairing: Literal["adjacent", "none"] = "adjacent",
    frequencies: PathLike | None = None,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    attention: Literal["encoder", "decoder", "cross"] = "encoder",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    options: TokenGroupOptions = ...,
) -> TokenGroups:
    """Measure attention to classifier tokens, separators, punctuation and other tokens."""

def power_analysis(
    scores: HeadScores,
    *,
    threshold: float | None = None,
    offset_margin: float = 0.1,
    distance_margin: float | None = None,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    power: float = 0.8,
    options: PowerOptions = ...,
) -> PowerAnalysis:
    """Plan how many examples the t-tests of `assign_roles` need to decide each head and role."""

def prune_heads(
    model: str | Path,
    out: str | Path | Claimed,
    *,
    task: str | Path | None = None,
    test: str | Path | None = None,
    overwrite: bool = False,
    generate: bool = False,
    beams: int = 1,
    longest_translation: int = 128,
    bleu_tokens: Literal["13a", "intl", "zh", "char", "none"] = "13a",
    ignore_case: bool = False,
    text_columns: str | int | Sequence[str | int] | None = None,
    label_column: str | int | None = None,
    labels: str | Sequence[str] | Mapping[str, int] | None = None,
    header: bool = True,
    separator: Literal["tab", "comma", "semicolon"] | None = None,
    objective: Literal[
        "auto", "classification", "regression", "masked_lm", "causal_lm", "text_to_text"
    ] = "auto",
    examples: int | None = None,
    masked_share: float = 0.15,
    mask_seed: int = 0,
    max_tokens: int | None = None,
    attention: str | Sequence[str] | None = None,
    parts: PathLike | Parts | None = None,
    normalisation: Literal["none", "l2"] = "none",
    roles_from: PathLike | None = None,
    estimator: Literal["absolute", "signed", "token", "taylor"] = "absolute",
    role: str | None = None,
    at_least: int = 0,
    protect: str | Sequence[str | tuple[int, int]] | None = None,
    steps: int = 10,
    seed: int = 0,
    order: Order = "importance",
    keep: int | None = None,
    share: float | None = None,
    heads: str | Sequence[str | int] | None = None,
    written_as: Literal["pruned", "zeroed"] = "pruned",
    update_examples: int = 32,
    fine_tune_on: PathLike | None = None,
    fine_tune_examples: int | None = None,
    epochs: float = 3.0,
    learning_rate: float = 2e-05,
    compensation: bool = False,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    options: PruneOptions = ...,
) -> Pruning:
    """Write a model without some of its heads into a folder, and measure both models."""

def read_arcs(
    paths: PathLike | Iterable[PathLike],
    *,
    spacing: Literal["text", "words"] = "text",
    join_spaces: str | None = None,
    least_distance: int = 1,
    options: ArcsOptions = ...,
) -> Corpus:
    """Return the corpus of sequences of tokens with arcs between them, from JSON lines."""

def read_attention(
    scores: HeadScores,
    head: tuple[int, int],
    role: str,
    *,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    roles: str | Find | Iterable[str | Find] | None = None,
    corpus: PathLike | Iterable[PathLike] | None = None,
    model: Model | None = None,
    text: str | None = None,
    tokens: str | Iterable[str] | None = None,
    parser: str | None = None,
    n: int = 5,
    which: Literal["largest", "median", "smallest"] = "median",
    example: str | None = None,
    options: AttentionOptions = ...,
) -> list[WordAttention]:
    """Return the attention of a head in the examples that `find_examples` finds."""

def read_bitext(
    paths: PathLike | Iterable[PathLike],
    *,
    spacing: Literal["text", "words"] = "text",
    join_spaces: str | None = None,
    on_bad_sentence: Literal["error", "skip"] = "error",
    translations: PathLike | None = None,
    links: PathLike | None = None,
    links_from: int = 0,
    options: BitextOptions = ...,
) -> Corpus:
    """Return the corpus of sentences and their translations."""

def read_conllu(
    paths: PathLike | Iterable[PathLike],
    *,
    spacing: Literal["text", "words"] = "text",
    join_spaces: str | None = None,
    on_bad_sentence: Literal["error", "skip"] = "error",
    documents: str = "newdoc",
    ids: Literal["given", "place"] = "given",
    contractions: Literal["words", "surface"] = "words",
    options: ConlluOptions = ...,
) -> Corpus:
    """Return the corpus of a treebank in CoNLL-U: files, or folders of ``*.conllu`` files."""

def read_pairs(
    paths: PathLike | Iterable[PathLike],
    parser: PathLike | Language,
    columns: Sequence[str | int],
    *,
    spacing: Literal["text", "words"] = "text",
    join_spaces: str | None = None,
    parser_processes: int = 1,
    keep_parses: PathLike | None = None,
    header: bool | None = None,
    separator: Literal["tab", "comma", "semicolon"] | None = None,
    options: PairsOptions = ...,
) -> Corpus:
    """Return a corpus of sentence pairs (GLUE style), parsed by the spaCy pipeline ``parser``."""

def read_text(
    paths: PathLike | Iterable[PathLike],
    parser: PathLike | Language,
    *,
    spacing: Literal["text", "words"] = "text",
    join_spaces: str | None = None,
    parser_processes: int = 1,
    keep_parses: PathLike | None = None,
    lines: bool = False,
    options: TextOptions = ...,
) -> Corpus:
    """Return a corpus of plain text, split and parsed by the spaCy pipeline ``parser``."""

def replicate_roles(
    sets: Sequence[HeadScores],
    names: Sequence[str],
    *,
    threshold: float | None = None,
    offset_margin: float = 0.1,
    distance_margin: float | None = None,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    over: Literal["corpora", "checkpoints", "seeds"] = "corpora",
    beyond: Literal["distance", "class", "attractors"] = "distance",
    options: ReplicateOptions = ...,
) -> Replication:
    """Test in at least how many of k score sets each head has each role."""

def score_attention(
    arrays: SavedArrays,
    sentences: AnyCorpus,
    alignment: WordsOfPieces,
    *,
    frequencies: PathLike | None = None,
    window: int = 2,
    relations: str | Sequence[str] | None = None,
    keep_subtypes: bool = False,
    arcs: str = "basic",
    beyond_offset: bool = True,
    classes: str = "upos",
    columns: bool = False,
    roles: str | Find | Iterable[str | Find] | None = None,
    pairing: Literal["adjacent", "none"] = "none",
    score: Literal["bias", "excess", "hit"] = "bias",
    measure: Literal["weights", "norms"] = "weights",
    controls: str | Sequence[str] = "trees",
    preset: Literal["default", "published"] = "default",
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    target_rows: Literal["input", "output"] = "input",
    attention: Literal["encoder", "decoder", "cross"] = "encoder",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    precision: Literal["float32", "float16"] = "float32",
    options: SavedOptions = ...,
) -> HeadScores:
    """Return the scores, for every role, of attention that was computed elsewhere and saved."""

def score_heads(
    model: Attending,
    corpus: AnyCorpus,
    *,
    frequencies: PathLike | None = None,
    window: int = 2,
    relations: str | Sequence[str] | None = None,
    keep_subtypes: bool = False,
    arcs: str = "basic",
    beyond_offset: bool = True,
    classes: str = "upos",
    columns: bool = False,
    roles: str | Find | Iterable[str | Find] | None = None,
    pairing: Literal["adjacent", "none"] = "adjacent",
    score: Literal["bias", "excess", "hit"] = "bias",
    measure: Literal["weights", "norms"] = "weights",
    controls: str | Sequence[str] = "trees",
    preset: Literal["default", "published"] = "default",
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    target_rows: Literal["input", "output"] = "input",
    attention: Literal["encoder", "decoder", "cross"] = "encoder",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    precision: Literal["float32", "float16"] = "float32",
    options: ScoreOptions = ...,
) -> HeadScores:
    """Return the scores of every head of an encoder for every role and example of a corpus."""

def symmetrize_links(
    corpus: AnyCorpus,
    *,
    forward: PathLike | None = None,
    backward: PathLike | None = None,
    by: Literal[
        "intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"
    ] = "grow-diag-final",
    write_links: PathLike | None = None,
    alpha: float = 0.05,
    options: SymmetrizeOptions = ...,
) -> JoinedLinks:
    """Join the links of both directions of a bitext, and count the errors of each way to do so."""

def test_claims(
    model: Attending,
    corpus: AnyCorpus,
    after: Attending | None = None,
    task: str | Path | Sequence[str | Path] | None = None,
    *,
    text_columns: str | int | Sequence[str | int] | None = None,
    label_column: str | int | None = None,
    labels: str | Sequence[str] | Mapping[str, int] | None = None,
    header: bool = True,
    separator: Literal["tab", "comma", "semicolon"] | None = None,
    objective: Literal[
        "auto", "classification", "regression", "masked_lm", "causal_lm", "text_to_text"
    ] = "auto",
    examples: int | None = None,
    masked_share: float = 0.15,
    mask_seed: int = 0,
    max_tokens: int | None = None,
    pairing: Literal["adjacent", "none"] = "adjacent",
    frequencies: PathLike | None = None,
    claims: str | Sequence[str | int] | None = None,
    seed: int = 0,
    probability_margin: float = 0.05,
    alpha: float = 0.05,
    clusters: Literal["auto", "document", "none"] = "auto",
    duplicates: Literal["cluster", "keep"] = "cluster",
    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    on_progress: OnProgress | None = None,
    target_tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    options: ClaimOptions = ...,
) -> ClaimTable:
    """Test claims of papers about attention heads on a model, each beside its control."""
