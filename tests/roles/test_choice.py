"""Which roles are scored and how they are called; sources of arcs; controls of pairs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from numpy.typing import NDArray

from headroles import assign_roles, classify_heads, make_corpus, read_conllu, score_heads
from headroles.corpus import PARTS, ROOT, Sentence
from headroles.encoding import EncodedExample
from headroles.errors import CorpusError, UsageError
from headroles.old_roles import facts_of_old_id
from headroles.reach import EVERYTHING
from headroles.record import RecordedRole, whole_roles
from headroles.results.shown import as_text
from headroles.role_names import ENDS, every_arc_of, role_of_arcs
from headroles.roles import (
    SCORES,
    RoleOptions,
    Score,
    choose_roles,
    find_role,
    role_of,
    roles_of,
    with_other_trees,
)
from headroles.roles.batch import PaddedBatch, Scope
from headroles.roles.competitors import COMPETITORS
from headroles.roles.contrasts import MOST_LENDERS, BorrowedLinks, Lenders
from headroles.roles.syntactic import Arcs, arcs_of, choose_relations
from headroles.scoring.scores import HeadScores
from tests.conftest import make_bert, make_tokenizer
from tests.roles.examples import (
    RELATIONS,
    ROLES,
    S,
    examples,
    make_example,
    read_from,
    score_of,
    sizes_in,
    tokens_of,
    values_of,
)
from tests.roles.examples import roles_of as roles_in_tests
from tests.rounding import tolerance

SENTENCE = Sentence(
    "s", "d", 0, ("Yes", "."), (ROOT, 0), ("root", "punct"), {"upos": ("INTJ", "PUNCT")}
)


def ids(roles: object, score: str = "bias") -> list[str]:
    options = RoleOptions(roles=roles)
    chosen = choose_roles(options, ("obj",), SCORES[score], [SENTENCE])
    return [role.id for role in chosen]


@pytest.mark.parametrize(
    ("asked", "score", "expected"),
    [
        ("delimiter,local", "bias", "local delimiter delimiter:cls delimiter:sep"),
        (["position"], "bias", "position:-1 position:+1"),
        (
            "delimiter:sep, syntactic:obj:to_governor",
            "bias",
            "delimiter:sep syntactic:obj:to_governor syntactic:any:to_governor:every_arc "
            "syntactic:obj:to_governor:beyond_offset "
            "syntactic:obj:to_governor:near syntactic:obj:to_governor:near:back "
            "syntactic:obj:to_governor:between",
        ),
        ("position:1,position:-3", "bias", "position:-3 position:+1"),
        ("block", "excess", "block block:evenness"),
    ],
)
def test_groups_are_all_of_their_roles_and_ids_one(
    asked: str | list[str], score: str, expected: str
) -> None:
    """Measures come with their roles; positions are called in one way."""
    assert " ".join(ids(asked, score)) == expected


LATER = (
    *("first", "duplicate", "induction", "aligned"),
    *(every_arc_of(role_of_arcs("any", end)) for end in ENDS),
)
"""Roles that 0.2.0 did not have."""


def test_all_is_every_group_after_the_default() -> None:
    default = [role.id for role in choose_roles(RoleOptions(), ("obj",), SCORES["bias"])]
    assert ids("all,position:+4") == [
        *default,
        *("position:-1", "position:+1", "position:+4", "self", "first", "duplicate", "induction"),
        *("punctuation", "rare"),
        *("same", "same:back", "same:beyond_offset", "same:back:beyond_offset"),
        *("aligned", "aligned:beyond_offset", "aligned:near", "aligned:near:back"),
        *("confidence", "entropy", "entropy:share", "distance"),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"roles": "positon:-1"}, r"'positon:-1' .did you mean 'position'\?.; give one"),
        ({"roles": "xyz"}, r"no role 'xyz'; give one of local, delimiter"),
        ({"roles": "syntactic:obj:to_governr"}, r"did you mean syntactic:obj:to_governor"),
        ({"roles": "position:0"}, r"'position:0' has no valid offset; write position:-1"),
        ({"roles": "position:x"}, r"'position:x' has no valid offset"),
        ({"roles": ","}, r"roles names no role"),
        *(({"arcs": one}, "pass basic, enhanced or misc:KEY") for one in ("tree", "misc:", "misc")),
    ],
)
def test_names_of_no_role_or_source_of_arcs(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_roles(RoleOptions(**options), ("obj",), SCORES["bias"], [SENTENCE])


def test_punctuation_needs_parts_of_speech() -> None:
    bare = Sentence("s", "d", 0, ("Yes",), (ROOT,), ("root",))
    with pytest.raises(CorpusError, match=r"no word of the corpus has a part of speech \(UPOS\)"):
        choose_roles(RoleOptions(roles=["punctuation"]), (), SCORES["bias"], [bare])


@pytest.mark.parametrize("score", SCORES.values())
def test_every_role_is_found_by_its_id(score: Score) -> None:
    for asked in (None, "position:-2,confidence,entropy,distance"):
        for role in choose_roles(RoleOptions(roles=asked), ("nsubj", "nmod:poss"), score):
            assert role_of(role.id, score) == replace(role, meaning={})


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("local", "neighbouring words"),
        ("delimiter:cls", "[CLS]"),
        ("position:-1", "the previous token"),
        ("position:+1", "the next token"),
        ("position:3", "the token 3 places ahead"),
        ("position:-4", "the token 4 places back"),
        ("syntactic:any:to_governor", "word -> its governor"),
        ("syntactic:nsubj:to_governor", "subject -> its verb"),
        ("syntactic:nsubj:to_dependent", "verb -> its subject"),
        ("syntactic:nsubj:from_governor", "subject <- its verb"),
        ("syntactic:nsubj:pass:to_governor", "subject (nsubj:pass) -> its verb"),
        ("syntactic:acl:to_dependent", "noun it modifies -> its clause"),
        ("syntactic:odd:to_governor", "odd -> its governor"),
        ("syntactic:odd:to_dependent", "governor -> its odd"),
        ("syntactic:obj:to_governor:beyond_offset", "object -> its verb, beyond distance"),
        ("mine", "mine"),
        ("mine:beyond_offset", "mine:beyond_offset"),
        ("mine:other_trees", "mine:other_trees"),
        ("position:x", "position:x"),
    ],
)
def test_words_of_ids_that_older_versions_recorded(role: str, words: str) -> None:
    assert facts_of_old_id(role, [role])["words"] == words


NEW = ("parent", "contrast", "control", "words", "relation", "names", "function")
"""Fields of recorded roles that version 0.2.0 did not have."""


@pytest.mark.parametrize("score", SCORES.values())
def test_roles_that_older_versions_recorded_are_whole(score: Score) -> None:
    """Records of 0.2.0 lack fields and competitors, and are read as if they had these fields."""
    options = RoleOptions(roles=["all", "position:-3", odd_pairs], columns=score.of_first_choice)
    chosen = choose_roles(options, ("nsubj", "nmod:poss"), score, [SENTENCE])
    roles = [role for role in chosen if role.contrast not in COMPETITORS]
    controls, _ = with_other_trees(roles, [SENTENCE])
    of_then = [role for role in (*roles, *controls) if not {role.id, role.parent} & {*LATER}]
    recorded = [role.to_record() for role in of_then]
    assert {role.kind for role in recorded} == {"tokens", "pairs", "arcs"}
    old = [
        structs.replace(role, **{name: type(getattr(role, name))() for name in NEW})
        for role in recorded
    ]
    assert whole_roles(old) == whole_roles(recorded) == recorded


def odd_pairs(sentence: Sentence) -> list[tuple[int, int]]:
    return [(0, 1)]


def beyond_offset(sentence: Sentence) -> list[tuple[int, int]]:
    return [(0, 1)]


def other_trees(sentence: Sentence) -> set[int]:
    return {0}


@pytest.mark.parametrize("function", [beyond_offset, other_trees])
def test_a_function_may_be_called_as_a_contrast_or_control_is(function: Any) -> None:
    role, *_ = choose_roles(RoleOptions(roles=[function]), (), SCORES["bias"], [SENTENCE])
    assert role.is_tested
    assert role.words == role.function == role.id
    (recorded,) = whole_roles([RecordedRole(role.id)])
    assert (recorded.parent, recorded.words) == ("", role.id)
    values = np.full((2, 1, 1, 1), 9.0, np.float32)
    for roles in ([role], [role.id]):
        table = assign_roles(HeadScores.by_hand(values, roles))
        assert table.roles == (role.id,)
        assert table.in_words(role.id) == role.id
        assert table.heads_with(role.id) == []


KNOWN = ("local", "syntactic:nsubj:to_governor", "syntactic:nsubj:to_dependent", "mine:f")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("local", "local"),
        *((name, KNOWN[1]) for name in ("nsubj", "subject -> its verb", "subject")),
        *((name, KNOWN[2]) for name in ("verb->its subject", "verb \u2192 its subject")),
        ("Neighbouring words", "local"),
        ("mine:f", "mine:f"),
    ],
)
def test_roles_are_found_by_id_words_and_relation(name: str, role: str) -> None:
    assert find_role(name, roles_of(KNOWN, SCORES["bias"])) == role


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("amod", "there is no relation 'amod'; there is: nsubj"),
        ("nsubjj", "there is no role 'nsubjj'; did you mean 'nsubj'"),
        ("subject -> it verb", "'subject -> it verb'; did you mean 'subject -> its verb'"),
    ],
)
def test_another_name_is_refused_with_what_may_be_meant(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_role(name, roles_of(KNOWN, SCORES["bias"]))


# She reads and writes it: she has two governors
LINES = """\
1\tShe\tshe\tPRON\t_\t_\t2\tnsubj\t2:nsubj|4:nsubj\t_
2\treads\tread\tVERB\t_\t_\t0\troot\t0:root\t_
3\tand\tand\tCCONJ\t_\t_\t4\tcc\t4:cc|4.1:cc\t_
4\twrites\twrite\tVERB\t_\t_\t2\tconj\t2:conj:and\t_
4.1\tnow\tnow\tADV\t_\t_\t_\t_\t4:advmod\t_
5\tit\tit\tPRON\t_\t_\t2\tobj\t2:obj|4:obj\tCoref=1:same|Other=x
"""


def sentence_of(column: str, texts: tuple[str, ...]) -> Sentence:
    return Sentence("s", "d", 0, ("a", "b", "c"), (ROOT, 0, 0), ("x",) * 3, {column: texts})


@pytest.mark.parametrize(
    ("source", "column", "texts", "arcs"),
    [
        (
            "enhanced",
            "deps",
            ("0:root", "1:obj|3:nsubj:xsubj", "2.1:x"),
            [(1, 0, "obj"), (1, 2, "nsubj:xsubj")],
        ),
        (
            "misc:Coref",
            "misc",
            ("_", "Coref=1,3:far|SpaceAfter=No", "Coref=1"),
            [(1, 0, "Coref"), (1, 2, "far"), (2, 0, "Coref")],
        ),
    ],
)
def test_arcs_of_columns(
    source: str, column: str, texts: tuple[str, ...], arcs: list[tuple[int, int, str]]
) -> None:
    assert list(arcs_of(source, sentence_of(column, texts))) == arcs


MANY_DIGITS = "9" * 5000  # Python turns no more than 4,300 into a number


@pytest.mark.parametrize(
    ("source", "column", "text"),
    [
        *(("misc:Coref", "misc", f"Coref={end}") for end in ("4", "x", "0", "2", MANY_DIGITS)),
        ("enhanced", "deps", f"{MANY_DIGITS}:nsubj"),
    ],
)
def test_what_is_no_arc(source: str, column: str, text: str) -> None:
    message = rf"sentence 's', word 2: .* \({source}\) is not an arc; write"
    with pytest.raises(CorpusError, match=message) as caught:
        arcs_of(source, sentence_of(column, ("_", text, "_")))
    assert len(str(caught.value)) < 300


AT_OFFSETS = [place for place, role in enumerate(ROLES) if role.endswith(":beyond_offset")]


def test_scores_along_arcs_of_columns(tmp_path: Path, bert_folder: Path) -> None:
    def scores(**options: Any) -> HeadScores:
        given = {"roles": "syntactic", "controls": "none", **options}
        return score_heads(bert_folder, read_conllu(tmp_path / "deps.conllu"), **given)

    (tmp_path / "deps.conllu").write_text(LINES + "\n")
    basic, enhanced = scores(beyond_offset=False), scores(arcs="enhanced")
    assert basic.role_ids == enhanced.role_ids
    assert basic.counts[0].tolist() == [2, 2, 1, 1, 1, 1, 4, 4]
    assert enhanced.counts[0].tolist() == [4, 4, 2, 2, 2, 2, 6, 6]
    assert enhanced.roles[0].meaning["arcs"] == "enhanced"
    labelled = scores(arcs="misc:Coref")
    assert "syntactic:same:to_governor" in labelled.role_ids
    assert labelled.counts[0].tolist() == [1] * 6
    (tmp_path / "deps.conllu").write_text("1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    for source, column in (("enhanced", "DEPS"), ("misc:Coref", "MISC")):
        with pytest.raises(CorpusError, match=f"no sentence .* in its column {column}"):
            scores(arcs=source)


def profile(example: EncodedExample, seed: int) -> NDArray[np.float64]:
    """(n, n): attention that depends on the offset in words alone."""
    n, words = len(example), example.words
    by_offset = np.random.default_rng(seed).random(2 * n)
    return by_offset[np.subtract.outer(words, words) + n] / n


@given(examples(), st.integers(0, 2**16))
@settings(deadline=None, max_examples=40)
def test_attention_by_offset_alone_scores_zero(example: EncodedExample, seed: int) -> None:
    """A head that looks at positions and not at words has no contrast, not even of rounding."""
    values = score_of(profile(example, seed)[None, None], [example])[..., AT_OFFSETS]
    assert set(values[~np.isnan(values)].tolist()) <= {0.0}


DIVIDED = tuple(f"{relation}/{part}" for relation in RELATIONS for part in PARTS)
CLASSES = ("NOUN", "PRON", "PRON", "NOUN", "PRON", "NOUN", "NOUN")
STARS = [
    Sentence("s", "e", 0, CLASSES[:n], (ROOT, *[0] * (n - 1)), ("r0",) * n, {"upos": CLASSES[:n]})
    for n in range(2, 8)
]
"""Sentences of which each word but the first has the first one as governor."""


@pytest.mark.parametrize("end", ENDS)
@given(examples(), st.integers(0, 2**16))
@settings(deadline=None, max_examples=40)
def test_attention_by_offset_and_class_of_the_dependent_scores_zero(
    end: str, example: EncodedExample, seed: int
) -> None:
    """If a relation is divided by this class, as a head that treats pronouns apart knows no arc.

    So it is with the arcs of another tree, whose dependents have the class of the words there.
    """
    is_open = np.array([tag != "PRON" for part in example.sentences for tag in part.upos])
    of_pieces = is_open[example.words]
    of_pairs = of_pieces[:, None] if end == "to_governor" else of_pieces[None]
    attention = np.where(of_pairs, profile(example, seed), profile(example, seed + 1))
    roles = roles_in_tests(relations=DIVIDED)
    controls, _ = with_other_trees(roles, [*example.sentences, *STARS])
    ids = (f"{end}:beyond_offset", f"{end}:other_trees:beyond_offset")
    contrasts = [role for role in (*roles, *controls) if role.id.endswith(ids)]
    assert len(contrasts) == 2 * (1 + len(DIVIDED))
    readout = read_from(contrasts, Scope(PaddedBatch([example]), EVERYTHING, SCORES["bias"]))
    values = values_of(attention[None, None], readout)
    assert set(values[~np.isnan(values)].tolist()) <= {0.0}


@given(examples(min_words=5), st.integers(0, 2**16))
@settings(deadline=None, max_examples=40)
def test_attention_along_arcs_scores_above_zero(example: EncodedExample, seed: int) -> None:
    """A head that looks at governors, and else by offset, differs from one that does not."""
    n = len(example)
    attention = profile(example, seed)
    for _, dependent, governor in tokens_of(example).arcs(RELATIONS):
        attention[np.ix_(dependent, governor)] += 0.5
    values = score_of(attention[None, None], [example])
    sizes = sizes_in(values, [example])[0, 0]
    for place in AT_OFFSETS:
        value, size = values[0, 0, place], sizes[place]
        if not np.isnan(value):
            expected = 0.0 if "to_dependent" in ROLES[place] else 0.5 * n
            assert value == pytest.approx(expected, abs=tolerance(size))


@pytest.mark.parametrize("score", ["bias", "excess"])
def test_what_is_only_rounding_is_zero(score: str) -> None:
    """Contrasts below the bound of what arcs and controls get are 0; those above stay."""
    # w0 -> w1 and controls at +1: (1, 2), (2, 3); w1 -> w0, and controls at -1
    example = make_example([S, 0, 0, 0, 0, S], governors=[1, -1, -1, -1], relations={0: "r0"})
    attention = np.full((1, 2, 6, 6), 1 / 6)
    bound = 2 * tolerance()
    attention[0, 0, 1, 2] *= 1 + bound / 2
    attention[0, 1, 1, 2] *= 1 + 4 * bound
    roles = choose_roles(RoleOptions(), RELATIONS, SCORES[score])
    place = [role.id for role in roles].index(ROLES[AT_OFFSETS[0]])
    found = score_of(attention, [example], score)[0, :, place]
    assert found[0] == 0
    assert found[1] == pytest.approx(4 * bound * (1 if score == "bias" else 1 / 5), rel=0.1)


def sentence(governors: list[int], document: str, n: int = 0) -> Sentence:
    words = tuple(f"{document}{n}w{k}" for k in range(len(governors)))
    labels = tuple("nsubj" if own >= 0 else "root" for own in governors)
    return Sentence(f"{document}-{n}", document, n, words, tuple(governors), labels)


def borrowed(one: Sentence, *others: Sentence) -> list[list[int]]:
    """The arcs that a sentence borrows in a corpus with others."""
    example = make_example([S, *[0] * len(one.words), S], governors=list(one.governors))
    batch = PaddedBatch([replace(example, sentences=(one,))])
    table = BorrowedLinks(Arcs(("nsubj", "obj")), Lenders([one, *others]))(batch)
    return (np.stack([table.first[:, 0], table.second[:, 0]], axis=1) - 1).tolist()


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        # (1, 0) and (2, 3) join words of (0, 1) and (3, 2)
        ([sentence([3, 0, 3, -1], "b")], [[0, 3]]),
        ([sentence([3, 0, 3, -1], "a", n=1)], [[0, 3]]),
        ([sentence([1, -1, 1], "b"), sentence([-1], "c")], []),
        ([sentence([3, 0, 3, -1], "a", n=1), sentence([-1], "c")], []),
    ],
    ids=["another document", "the only document", "another length", "the same document"],
)
def test_arcs_are_borrowed_without_real_ones_in_either_direction(
    others: list[Sentence], expected: list[list[int]]
) -> None:
    assert borrowed(sentence([1, -1, 1, 2], "a"), *others) == expected


def test_lenders_do_not_depend_on_the_order_of_the_corpus() -> None:
    several = [sentence([1, -1, 1, 2], f"d{k}") for k in range(3 * MOST_LENDERS)]
    found, again = (
        [lenders.lender_of(one) for one in several]
        for lenders in (Lenders(several), Lenders(several[::-1]))
    )
    assert found == again
    assert None not in found
    assert len({lender.id for lender in found if lender}) == MOST_LENDERS


def test_it_adds_columns_and_changes_no_other() -> None:
    triples, rng = [], np.random.default_rng(0)
    for length in rng.integers(4, 9, 40).tolist():
        governors = [int(rng.integers(0, k)) if k else -1 for k in range(length)]
        labels = ["root", *(rng.choice(["nsubj", "obj"], length - 1).tolist())]
        triples.append((rng.choice([*"abcdefghi"], length).tolist(), governors, labels))
    corpus, options = make_corpus(triples), {"tokenizer": make_tokenizer()}
    model = make_bert(layers=2, heads=2)
    without, whole = (
        score_heads(model, corpus, controls=one, **options) for one in ("none", "trees")
    )
    n = len(without.roles)
    assert whole.role_ids[:n] == without.role_ids
    assert len(whole.role_ids) > n
    assert all(role.control and not role.is_tested for role in whole.roles[n:])
    np.testing.assert_array_equal(whole.values[..., :n], without.values)
    assert whole.facts.controls == without.facts.controls
    assert whole.record.corpus.skipped == without.record.corpus.skipped


def test_sentences_without_a_lender_are_counted_and_said() -> None:
    arcs = ((1, -1, 1), (1, -1, 1), (1, -1, 1, 1))
    triples = [
        ([f"{k}{w}" for w in range(len(own))], own, ["nsubj", "root", "obj", "obj"][: len(own)])
        for k, own in enumerate(arcs)
    ]
    model, tokenizer = make_bert(), make_tokenizer()
    made = classify_heads(model, make_corpus(triples), tokenizer=tokenizer, pairing="none")
    assert made.scores.facts.without_other_tree == 1
    assert "(1 of 3 have no match)" in " ".join(as_text(made.roles.summarize()).split())


def test_published_relations_are_whole_and_others_in_parts() -> None:
    arcs, parts = {"nsubj": 3, "amod": 2}, {"nsubj/content": 1, "nsubj/function": 2}
    chosen = [
        choose_relations(RoleOptions(preset=preset), "ud", arcs, parts)
        for preset in ("published", "default")
    ]
    assert chosen == [("nsubj", "amod"), ("nsubj/content", "nsubj/function", "amod")]
