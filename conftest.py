"""Names in the examples of docstrings: a tiny model with its task, and results of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="session")
def names_in_examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A classifier of 3 layers with 4 heads each, its task, scores made by hand, and results."""
    import headroles as hr
    from tests.scoring.test_targets import PAIRS, make_model
    from tests.tasks.conftest import SENTENCES, make_task_model, save, write_labelled

    folder = tmp_path_factory.mktemp("examples")
    model = save(make_task_model(), folder / "classifier")
    task = write_labelled(folder / "task.tsv", SENTENCES)
    other = write_labelled(folder / "other.tsv", SENTENCES[::-1])
    more = write_labelled(folder / "more.tsv", SENTENCES * 2)
    rng = np.random.default_rng(0)
    before, again, after = (
        hr.HeadScores.by_hand(
            rng.normal(means, 0.3, size=(20, 1, 2, 1)).clip(0, 10), ["local"], bounds=(0, 10)
        )
        for means in ([[5], [1]], [[5], [1]], [[1], [1]])
    )
    sets = [before, again], ["news", "mail"]
    corpus = hr.read_conllu(hr.sample_treebank())
    scored = hr.score_heads(model, corpus, roles="punctuation,confidence", pairing="none")
    hits = hr.score_heads(model, corpus, score="hit", relations="nsubj")
    found = hr.classify_heads(model, corpus, roles="local,punctuation", threshold=0.9)
    roles = found.save(folder / "roles")
    bitext = folder / "pairs.bitext"
    bitext.write_text("".join(f"{' ||| '.join(pair)}\n" for pair in PAIRS), "utf-8")
    translator = save(make_model("bart"), folder / "translator")
    ablations = [hr.ablate_heads(model, file, sets="single") for file in (task, other)]
    return {
        "model": model,
        "corpus": corpus,
        "folder": roles,
        "task": task,
        "other": other,
        "more": more,
        "scores": before,
        "table": hr.assign_roles(before),
        "alignment": hr.align_words(translator, hr.read_bitext(bitext)),
        "shifts": hr.compare_roles(before, after),
        "plan": hr.power_analysis(before),
        "replication": hr.replicate_roles(*sets),
        "best": hr.find_best_heads(hits),
        "description": hr.describe_heads(scored),
        "examples": hr.find_examples(scored, (0, 0), "punctuation", n=1),
        "attention": hr.read_attention(scored, (0, 0), "punctuation", n=1),
        "groups": hr.measure_token_groups(model, corpus),
        "importance": hr.find_importance(model, task),
        "ablations": ablations[0],
        "drops": hr.drops_by_task(ablations, ["one", "other"]),
        "by_role": hr.importance_by_role(model, task, roles_from=roles, draws=9),
        "curves": hr.find_pruning_curves(model, other, more, orders="importance,random"),
        "collaboration": hr.collaborate_heads(model, None, rank=24)[1],
        "redundancy": hr.find_redundancy(model, draws=9),
    }


@pytest.fixture(autouse=True)
def _examples(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        if "import spacy" in request.node.dtest.docstring:
            pytest.importorskip("spacy")
        doctest_namespace.update(request.getfixturevalue("names_in_examples"))
