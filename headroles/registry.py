"""Declarations of all studies, in the order of work. Importing this loads none of them."""

from headroles.results.study import SCORES, TASK, declare

declare(
    kind="role table",
    result="headroles.studies.role_table:RoleTable",
    function="headroles.studies.assignment:assign_roles",
    options="headroles.studies.options:AssignOptions",
    commands=("classify", "score", "merge", "assign"),
    figure="headroles.report.maps:draw_roles",
    caption="Mean scores of roles by layer and head.",
    page="headroles.report.role_page:role_page",
    page_has_sentences=True,
)
declare(
    kind="best heads",
    result="headroles.studies.best_heads:BestHeads",
    function="headroles.studies.best_heads:find_best_heads",
    options="headroles.testing.options:UnitOptions",
    commands=("best",),
    over=SCORES,
    help="Tell which head finds each relation best, in unseen text.",
)
declare(
    kind="quantities",
    result="headroles.studies.quantities:Quantities",
    function="headroles.studies.quantities:describe_heads",
    options="headroles.testing.options:UnitOptions",
    commands=("describe",),
    over=SCORES,
    help="Describe heads by confidence, entropy and distance.",
)
declare(
    kind="examples",
    result="headroles.studies.examples:Examples",
    function="headroles.studies.examples:find_examples",
    options="headroles.studies.options:SentenceOptions",
    commands=("examples",),
)
declare(
    kind="token groups",
    result="headroles.studies.token_groups:TokenGroups",
    function="headroles.studies.token_groups:measure_token_groups",
    options="headroles.studies.options:TokenOptions",
    commands=("tokens",),
    figure="headroles.report.token_shares:draw_token_groups",
    caption="Shares of each group, by layer.",
    page="headroles.report.token_page:token_page",
)
declare(
    kind="comparison",
    result="headroles.studies.comparison.result:RoleShifts",
    function="headroles.studies.comparison.compare:compare_roles",
    options="headroles.studies.options:CompareOptions",
    commands=("compare",),
    figure="headroles.report.changes:draw_changed_heads",
    caption="Number of roles that changed, by head.",
    page="headroles.report.comparison_page:comparison_page",
)
declare(
    kind="replication",
    result="headroles.studies.replication_tables:Replication",
    function="headroles.studies.replication:replicate_roles",
    options="headroles.studies.options:ReplicateOptions",
    commands=("replicate",),
    figure="headroles.report.replicates:draw_replication",
    caption="Number of roles in all sets, by head.",
    page="headroles.report.study_pages:replication_page",
)
declare(
    kind="layer counts",
    result="headroles.studies.replication_tables:LayerCounts",
    function="headroles.studies.replication:replicate_roles",
    options="headroles.studies.options:ReplicateOptions",
    page="headroles.report.study_pages:layer_counts_page",
)
declare(
    kind="plan",
    result="headroles.studies.power_plan:PowerPlan",
    function="headroles.studies.planning:plan_examples",
    options="headroles.studies.options:PlanOptions",
    commands=("power",),
    over=SCORES,
    help="Tell how many examples it takes to decide each role. The scores in DIR are the pilot.",
    figure="headroles.report.distributions:draw_plan",
    caption="Share of heads and roles decided, by examples.",
    page="headroles.report.study_pages:plan_page",
)
declare(
    kind="importance",
    result="headroles.studies.removal.importance:Importance",
    function="headroles.studies.removal.importance:find_importance",
    options="headroles.studies.removal.options:ImportanceOptions",
    commands=("importance",),
    over=TASK,
    help="Tell how much the loss of TASK depends on each head.\n\nMODEL was trained for the "
    "task. Take examples that it was trained on, or others that nothing is tested on.",
    figure="headroles.report.worth:draw_importance",
    caption="Importance by layer and head.",
    page="headroles.report.removal_pages:importance_page",
)
declare(
    kind="ablations",
    result="headroles.studies.removal.ablation:Ablations",
    function="headroles.studies.removal.ablation:ablate_heads",
    options="headroles.studies.removal.ablation_options:AblateOptions",
    commands=("ablate",),
    over=TASK,
    help="Test what MODEL loses in TASK without heads.\n\nWithout single heads, all heads of "
    "a layer but one, whole layers, or all heads with a role.",
    figure="headroles.report.worth:draw_ablations",
    caption="Change of the loss without each head.",
    page="headroles.report.removal_pages:ablations_page",
)
declare(
    kind="role importance",
    result="headroles.studies.removal.by_role:RoleImportance",
    function="headroles.studies.removal.by_role:compare_roles_in_task",
    options="headroles.studies.removal.ablation_options:RoleImportanceOptions",
    commands=("by-role",),
    over=TASK,
    help="Test whether heads with a role matter more.\n\nThey are compared with other heads "
    "of their layers: by importance, by the loss without each, and by the loss without all "
    "of them against as many others.",
    figure="headroles.report.worth:draw_role_importance",
    caption="Loss without the heads of each role.",
    page="headroles.report.removal_pages:role_importance_page",
)
declare(
    kind="task drops",
    result="headroles.studies.removal.by_task:TaskDrops",
    function="headroles.studies.removal.by_task:compare_tasks",
    options="headroles.studies.removal.ablation_options:TaskDropOptions",
    commands=("by-task",),
    figure="headroles.report.losses:draw_task_drops",
    caption="What is lost, by removal and task.",
    page="headroles.report.removal_pages:task_drops_page",
)
declare(
    kind="pruning curves",
    result="headroles.studies.removal.curves:PruningCurves",
    function="headroles.studies.removal.curves:find_pruning_curves",
    options="headroles.studies.removal.curve_options:CurveOptions",
    commands=("pruning-curves", "prune", "gate"),
    figure="headroles.report.losses:draw_pruning_curves",
    caption="What is reached, by share removed.",
    page="headroles.report.removal_pages:curves_page",
)
declare(
    kind="claims",
    result="headroles.studies.claims.table:ClaimTable",
    function="headroles.studies.claims.study:test_claims",
    options="headroles.studies.claims.options:ClaimOptions",
    commands=("claims",),
    page="headroles.report.study_pages:claims_page",
)
declare(
    kind="collaboration",
    result="headroles.studies.collaboration.result:Collaboration",
    function="headroles.studies.collaboration.collaborate:collaborate_heads",
    options="headroles.studies.collaboration.options:CollaborateOptions",
    commands=("collaborate",),
)
declare(
    kind="redundancy",
    result="headroles.studies.collaboration.redundancy_result:Redundancy",
    function="headroles.studies.collaboration.redundancy:report_redundancy",
    options="headroles.studies.collaboration.options:RedundancyOptions",
)
