"""Declarations of all studies, in the order of work. Importing this loads none of them."""

from headroles.results.study import FOLDERS, SCORES, TASK, declare

declare(
    package="classification",
    kind="role table",
    result=".role_table:RoleTable",
    function=".assignment:assign_roles",
    options=".options:AssignOptions",
    commands=("classify", "score", "merge", "assign"),
    figures={
        "roles": ".figures:draw_roles",
        "heads": ".figures:draw_heads",
        "role": ".figures:draw_role",
        "shared": ".figures:draw_colocation",
        "head": ".figures:draw_head",
        "error": ".figures:draw_error",
    },
    caption="Mean scores of roles by layer and head.",
    page=".page:role_page",
    page_has_sentences=True,
)
declare(
    package="inspection",
    kind="best heads",
    result=".best_heads:BestHeads",
    function=".best_heads:find_best_heads",
    options="headroles.testing.options:UnitOptions",
    commands=("best",),
    over=SCORES,
    help="Tell which head finds each relation best, in unseen text.",
)
declare(
    package="inspection",
    kind="quantities",
    result=".quantities:Quantities",
    function=".quantities:describe_heads",
    options="headroles.testing.options:UnitOptions",
    commands=("describe",),
    over=SCORES,
    help="Describe heads by confidence, entropy and distance.",
)
declare(
    package="inspection",
    kind="examples",
    result=".examples:Examples",
    function=".examples:find_examples",
    options=".options:SentenceOptions",
    commands=("examples",),
)
declare(
    package="inspection",
    kind="token groups",
    result=".token_groups:TokenGroups",
    function=".token_groups:measure_token_groups",
    options=".options:TokenOptions",
    commands=("tokens",),
    figures={"tokens": ".figures:draw_token_groups"},
    caption="Shares of each group, by layer.",
    page=".page:token_page",
)
declare(
    package="comparison",
    kind="comparison",
    result=".result:RoleShifts",
    function=".compare:compare_roles",
    options=".options:CompareOptions",
    commands=("compare",),
    figures={
        "heads": ".figures:draw_changed_heads",
        "changes": ".figures:draw_changes",
        "trajectory": ".figures:draw_trajectory",
    },
    caption="Number of roles that changed, by head.",
    page=".page:comparison_page",
)
declare(
    package="replication",
    kind="replication",
    result=".tables:Replication",
    function=".replicate:replicate_roles",
    options=".options:ReplicateOptions",
    commands=("replicate",),
    over=FOLDERS,
    of="headroles.scoring.scores:HeadScores",
    written_by="score or classify",
    help="Test in how many of several corpora heads have a role.\n\nCorpora may be languages that "
    "one multilingual model reads.",
    figures={"role": ".page:draw_replication"},
    caption="Number of roles in all sets, by head.",
    page=".page:replication_page",
)
declare(
    package="replication",
    kind="layer counts",
    result=".tables:LayerCounts",
    function=".replicate:replicate_roles",
    options=".options:ReplicateOptions",
    figures={"layers": ".page:draw_layer_counts"},
    page=".page:layer_counts_page",
)
declare(
    package="planning",
    kind="plan",
    result=".power_plan:PowerPlan",
    function=".plan:plan_examples",
    options=".options:PlanOptions",
    commands=("power",),
    over=SCORES,
    help="Tell how many examples it takes to decide each role. The scores in DIR are the pilot.",
    figures={"curves": ".page:draw_plan"},
    caption="Share of heads and roles decided, by examples.",
    page=".page:plan_page",
)
declare(
    package="importance",
    kind="importance",
    result=".importance:Importance",
    function=".importance:find_importance",
    options=".options:ImportanceOptions",
    commands=("importance",),
    over=TASK,
    help="Tell how much the loss of TASK depends on each head.\n\nMODEL was trained for the "
    "task. Take examples that it was trained on, or others that you use for no test.",
    figures={"worth": ".figures:draw_importance"},
    caption="Importance by layer and head.",
    page=".page:importance_page",
)
declare(
    package="importance",
    kind="ablations",
    result=".ablation:Ablations",
    function=".ablation:ablate_heads",
    options=".options:AblateOptions",
    commands=("ablate",),
    over=TASK,
    help="Test what MODEL loses in TASK without heads.\n\nRemoves single heads, all heads of "
    "a layer but one, whole layers, or all heads with a role.",
    figures={"worth": ".figures:draw_ablations"},
    caption="Change of the loss without each head.",
    page=".page:ablations_page",
)
declare(
    package="importance",
    kind="role importance",
    result=".by_role:RoleImportance",
    function=".by_role:compare_roles_in_task",
    options=".options:RoleImportanceOptions",
    commands=("by-role",),
    over=TASK,
    help="Test whether heads with a role matter more.\n\nCompares them with other heads of "
    "their layers: by importance, by the loss without each head, and by the loss without all "
    "heads of the role beside that without as many random heads.",
    figures={"worth": ".figures:draw_role_importance"},
    caption="Loss without the heads of each role.",
    page=".page:role_importance_page",
)
declare(
    package="importance",
    kind="task drops",
    result=".by_task:TaskDrops",
    function=".by_task:compare_tasks",
    options=".options:TaskDropOptions",
    commands=("by-task",),
    over=FOLDERS,
    of=".ablation:Ablations",
    written_by="ablate",
    help="Compare the drops without heads in several tasks.\n\nTasks may be languages or "
    "genres, of one model or of a model each. The table has the relative drop by task for layers, "
    "thirds of the layers, or heads.",
    figures={"tasks": ".figures:draw_task_drops"},
    caption="Relative drop without heads, by removal and task.",
    page=".page:task_drops_page",
)
declare(
    package="pruning",
    kind="pruning curves",
    result=".curves:PruningCurves",
    function=".curves:find_pruning_curves",
    options=".curve_options:CurveOptions",
    commands=("pruning-curves", "prune", "gate"),
    figures={"curves": ".page:draw_pruning_curves"},
    caption="What is reached, by share removed.",
    page=".page:curves_page",
)
declare(
    package="claims",
    kind="claims",
    result=".table:ClaimTable",
    function=".study:test_claims",
    options=".options:ClaimOptions",
    commands=("claims",),
    page=".page:claims_page",
)
declare(
    package="sharing",
    kind="collaboration",
    result=".result:Collaboration",
    function=".collaborate:collaborate_heads",
    options=".options:CollaborateOptions",
    commands=("collaborate",),
)
declare(
    package="sharing",
    kind="redundancy",
    result=".redundancy_result:Redundancy",
    function=".redundancy:report_redundancy",
    options=".options:RedundancyOptions",
)
