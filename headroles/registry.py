"""Declarations of all studies, in the order of work. Importing this loads none of them."""

from headroles.results.study import FOLDERS, SCORES, TASK, declare

declare(
    kind="role table",
    result="headroles.studies.classification.role_table:RoleTable",
    function="headroles.studies.classification.assignment:assign_roles",
    options="headroles.studies.classification.options:AssignOptions",
    commands=("classify", "score", "merge", "assign"),
    figures={
        "roles": "headroles.studies.classification.figures:draw_roles",
        "heads": "headroles.studies.classification.figures:draw_heads",
        "role": "headroles.studies.classification.figures:draw_role",
        "shared": "headroles.studies.classification.figures:draw_colocation",
        "head": "headroles.studies.classification.figures:draw_head",
        "error": "headroles.studies.classification.figures:draw_error",
    },
    caption="Mean scores of roles by layer and head.",
    page="headroles.studies.classification.page:role_page",
    page_has_sentences=True,
)
declare(
    kind="best heads",
    result="headroles.studies.inspection.best_heads:BestHeads",
    function="headroles.studies.inspection.best_heads:find_best_heads",
    options="headroles.testing.options:UnitOptions",
    commands=("best",),
    over=SCORES,
    help="Tell which head finds each relation best, in unseen text.",
)
declare(
    kind="quantities",
    result="headroles.studies.inspection.quantities:Quantities",
    function="headroles.studies.inspection.quantities:describe_heads",
    options="headroles.testing.options:UnitOptions",
    commands=("describe",),
    over=SCORES,
    help="Describe heads by confidence, entropy and distance.",
)
declare(
    kind="examples",
    result="headroles.studies.inspection.examples:Examples",
    function="headroles.studies.inspection.examples:find_examples",
    options="headroles.studies.inspection.options:SentenceOptions",
    commands=("examples",),
)
declare(
    kind="token groups",
    result="headroles.studies.inspection.token_groups:TokenGroups",
    function="headroles.studies.inspection.token_groups:measure_token_groups",
    options="headroles.studies.inspection.options:TokenOptions",
    commands=("tokens",),
    figures={
        "tokens": "headroles.studies.inspection.figures:draw_token_groups",
    },
    caption="Shares of each group, by layer.",
    page="headroles.studies.inspection.page:token_page",
)
declare(
    kind="comparison",
    result="headroles.studies.comparison.result:RoleShifts",
    function="headroles.studies.comparison.compare:compare_roles",
    options="headroles.studies.comparison.options:CompareOptions",
    commands=("compare",),
    figures={
        "heads": "headroles.studies.comparison.figures:draw_changed_heads",
        "changes": "headroles.studies.comparison.figures:draw_changes",
        "trajectory": "headroles.studies.comparison.figures:draw_trajectory",
    },
    caption="Number of roles that changed, by head.",
    page="headroles.studies.comparison.page:comparison_page",
)
declare(
    kind="replication",
    result="headroles.studies.replication.tables:Replication",
    function="headroles.studies.replication.replicate:replicate_roles",
    options="headroles.studies.replication.options:ReplicateOptions",
    commands=("replicate",),
    over=FOLDERS,
    of="headroles.scoring.scores:HeadScores",
    written_by="score or classify",
    help="Test in how many of several corpora heads have a role.\n\nCorpora may be languages that "
    "one multilingual model reads.",
    figures={
        "role": "headroles.studies.replication.page:draw_replication",
    },
    caption="Number of roles in all sets, by head.",
    page="headroles.studies.replication.page:replication_page",
)
declare(
    kind="layer counts",
    result="headroles.studies.replication.tables:LayerCounts",
    function="headroles.studies.replication.replicate:replicate_roles",
    options="headroles.studies.replication.options:ReplicateOptions",
    figures={
        "layers": "headroles.studies.replication.page:draw_layer_counts",
    },
    page="headroles.studies.replication.page:layer_counts_page",
)
declare(
    kind="plan",
    result="headroles.studies.planning.power_plan:PowerPlan",
    function="headroles.studies.planning.plan:plan_examples",
    options="headroles.studies.planning.options:PlanOptions",
    commands=("power",),
    over=SCORES,
    help="Tell how many examples it takes to decide each role. The scores in DIR are the pilot.",
    figures={
        "curves": "headroles.studies.planning.page:draw_plan",
    },
    caption="Share of heads and roles decided, by examples.",
    page="headroles.studies.planning.page:plan_page",
)
declare(
    kind="importance",
    result="headroles.studies.importance.importance:Importance",
    function="headroles.studies.importance.importance:find_importance",
    options="headroles.studies.importance.options:ImportanceOptions",
    commands=("importance",),
    over=TASK,
    help="Tell how much the loss of TASK depends on each head.\n\nMODEL was trained for the "
    "task. Take examples that it was trained on, or others that nothing is tested on.",
    figures={
        "worth": "headroles.studies.importance.figures:draw_importance",
    },
    caption="Importance by layer and head.",
    page="headroles.studies.importance.page:importance_page",
)
declare(
    kind="ablations",
    result="headroles.studies.importance.ablation:Ablations",
    function="headroles.studies.importance.ablation:ablate_heads",
    options="headroles.studies.importance.options:AblateOptions",
    commands=("ablate",),
    over=TASK,
    help="Test what MODEL loses in TASK without heads.\n\nWithout single heads, all heads of "
    "a layer but one, whole layers, or all heads with a role.",
    figures={
        "worth": "headroles.studies.importance.figures:draw_ablations",
    },
    caption="Change of the loss without each head.",
    page="headroles.studies.importance.page:ablations_page",
)
declare(
    kind="role importance",
    result="headroles.studies.importance.by_role:RoleImportance",
    function="headroles.studies.importance.by_role:compare_roles_in_task",
    options="headroles.studies.importance.options:RoleImportanceOptions",
    commands=("by-role",),
    over=TASK,
    help="Test whether heads with a role matter more.\n\nThey are compared with other heads "
    "of their layers: by importance, by the loss without each, and by the loss without all "
    "of them against as many others.",
    figures={
        "worth": "headroles.studies.importance.figures:draw_role_importance",
    },
    caption="Loss without the heads of each role.",
    page="headroles.studies.importance.page:role_importance_page",
)
declare(
    kind="task drops",
    result="headroles.studies.importance.by_task:TaskDrops",
    function="headroles.studies.importance.by_task:compare_tasks",
    options="headroles.studies.importance.options:TaskDropOptions",
    commands=("by-task",),
    over=FOLDERS,
    of="headroles.studies.importance.ablation:Ablations",
    written_by="ablate",
    help="Compare what is lost without heads in several tasks.\n\nTasks may be languages or "
    "genres, of one model or each of its own: the relative drop as a matrix of layers, thirds of "
    "the layers or heads by task.",
    figures={
        "tasks": "headroles.studies.importance.figures:draw_task_drops",
    },
    caption="What is lost, by removal and task.",
    page="headroles.studies.importance.page:task_drops_page",
)
declare(
    kind="pruning curves",
    result="headroles.studies.pruning.curves:PruningCurves",
    function="headroles.studies.pruning.curves:find_pruning_curves",
    options="headroles.studies.pruning.curve_options:CurveOptions",
    commands=("pruning-curves", "prune", "gate"),
    figures={
        "curves": "headroles.studies.pruning.page:draw_pruning_curves",
    },
    caption="What is reached, by share removed.",
    page="headroles.studies.pruning.page:curves_page",
)
declare(
    kind="claims",
    result="headroles.studies.claims.table:ClaimTable",
    function="headroles.studies.claims.study:test_claims",
    options="headroles.studies.claims.options:ClaimOptions",
    commands=("claims",),
    page="headroles.studies.claims.page:claims_page",
)
declare(
    kind="collaboration",
    result="headroles.studies.sharing.result:Collaboration",
    function="headroles.studies.sharing.collaborate:collaborate_heads",
    options="headroles.studies.sharing.options:CollaborateOptions",
    commands=("collaborate",),
)
declare(
    kind="redundancy",
    result="headroles.studies.sharing.redundancy_result:Redundancy",
    function="headroles.studies.sharing.redundancy:report_redundancy",
    options="headroles.studies.sharing.options:RedundancyOptions",
)
