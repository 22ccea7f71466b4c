"""Declarations of all studies, in the order of work. Importing this loads none of them."""

from headroles.results.study import FOLDERS, SCORES, TASK, declare

declare(
    package="classification",
    kind="role table",
    result=".role_table:RoleTable",
    function=".assignment:assign_roles",
    options=".options:AssignOptions",
    commands={
        "classify": "Score the heads of MODEL over CORPUS and test their roles.",
        "score": "Score the heads of MODEL over CORPUS, without tests.",
        "merge": "Join parts of a corpus that were scored apart.",
        "assign": "Test the scores in DIR again, without the model.",
    },
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
    kind="best",
    function="inspection.best_heads:find_best_heads",
    over=SCORES,
    help="Tell which head finds each relation best, in unseen text.",
)
declare(
    kind="quantities",
    function="inspection.quantities:describe_heads",
    commands={"describe": "Describe heads by confidence, entropy and distance."},
    over=SCORES,
)
declare(
    package="inspection",
    kind="examples",
    result=".examples:Examples",
    function=".examples:find_examples",
    options=".options:SentenceOptions",
    commands={"examples": "Show the sentences behind a head's scores, and its weights."},
)
declare(
    package="inspection",
    kind="token groups",
    result=".token_groups:TokenGroups",
    function=".token_groups:measure_token_groups",
    options=".options:TokenOptions",
    commands={"tokens": "Compare weights and norms that go to each kind of token."},
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
    commands={"compare": "Test what changed in the heads, as by fine-tuning."},
    figures={
        "heads": ".figures:draw_changed_heads",
        "changes": ".figures:draw_changes",
        "trajectory": ".figures:draw_trajectory",
    },
    caption="Number of roles that changed, by head.",
    page=".page:comparison_page",
)
declare(
    kind="replication",
    result="replicate:Replication",
    function="replicate:replicate_roles",
    commands={
        "replicate": "Test in how many of several corpora heads have a role.\n\n"
        "Corpora may be languages that "
        "one multilingual model reads."
    },
    over=FOLDERS,
    of="headroles.scoring.scores:HeadScores",
    written_by="score or classify",
)
declare(
    kind="layer counts",
    result="replicate:LayerCounts",
    function="replicate:replicate_roles",
)
declare(
    kind="power",
    function="power:power_analysis",
    over=SCORES,
    help="Tell how many examples it takes to decide each role. The scores in DIR are the pilot.",
)
declare(
    kind="importance",
    function="importance.importance:find_importance",
    over=TASK,
    help="Tell how much the loss of TASK depends on each head.\n\n"
    "MODEL was trained for the "
    "task. Take examples that it was trained on, or others that you use for no test.",
)
declare(
    kind="ablations",
    function="importance.ablation:ablate_heads",
    over=TASK,
    commands={
        "ablate": "Test what MODEL loses in TASK without heads.\n\n"
        "Removes single heads, all heads of "
        "a layer but one, whole layers, or all heads with a role."
    },
)
declare(
    kind="by-role",
    function="importance.by_role:importance_by_role",
    over=TASK,
    help="Test whether heads with a role matter more.\n\n"
    "Compares them with other heads of "
    "their layers: by importance, by the loss without each head, and by the loss without all "
    "heads of the role beside that without as many random heads.",
)
declare(
    kind="by-task",
    function="importance.by_task:drops_by_task",
    over=FOLDERS,
    of="importance.ablation:Ablations",
    written_by="ablate",
    help="Compare the drops without heads in several tasks.\n\n"
    "Tasks may be languages or genres, of one model or of a model each. The table has the "
    "relative drop by task for layers, thirds of the layers, or heads.",
)
declare(
    package="pruning",
    kind="pruning curves",
    result=".curves:PruningCurves",
    function=".curves:find_pruning_curves",
    options=".curve_options:CurveOptions",
    commands={
        "pruning-curves": "Measure MODEL with more and more heads removed.",
        "prune": "Remove heads from MODEL and write the smaller model.",
        "gate": "Learn which heads of MODEL stay for TASK.",
    },
    figures={"curves": ".curves:draw_pruning_curves"},
    caption="What is reached, by share removed.",
    page=".curves:curves_page",
)
declare(
    package="claims",
    kind="claims",
    result=".claims:ClaimTable",
    function=".claims:test_claims",
    options=".options:ClaimOptions",
    commands={"claims": "Test what papers say of attention heads on MODEL."},
)
declare(
    package="sharing",
    kind="collaboration",
    result=".result:Collaboration",
    function=".collaborate:collaborate_heads",
    options=".options:CollaborateOptions",
    commands={"collaborate": "Make a model whose heads share queries and keys."},
)
declare(
    package="sharing",
    kind="redundancy",
    result=".redundancy_result:Redundancy",
    function=".redundancy:report_redundancy",
    options=".options:RedundancyOptions",
)
