"""Roles made of words: punctuation, the rarest word, and functions of one's own."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headroles.corpus import ROOT, Sentence
from headroles.encoding import EncodedExample
from headroles.errors import CorpusError, UsageError
from headroles.reach import EVERYTHING, Reach, window_to_either_side
from headroles.roles import (
    SCORES,
    PaddedBatch,
    Role,
    RoleOptions,
    Scope,
    bounds_of,
    choose_roles,
    role_of,
)
from headroles.roles.catalogue import find_rarest, read_frequencies
from headroles.roles.contrasts import BorrowedLinks, Lenders, beyond_offset
from headroles.roles.own import Finder, same
from headroles.roles.pairs import BACK, FORTH, Pairs
from headroles.roles.sieve import sets_of_sentences
from tests.reference import Asked, first_choices, mean, reference_scores, reference_word_set
from tests.roles.examples import (
    S,
    examples,
    make_example,
    random_attention,
    reaches,
    read_from,
    tokens_of,
    values_of,
)
from tests.rounding import assert_same_sums, sizes_of

MODULE = """
def negated(sentence):
    for place, word in enumerate(sentence.words):
        if word == "not" and sentence.governors[place] >= 0:
            yield place, sentence.governors[place]

def names(sentence):
    return {k for k, upos in enumerate(sentence.upos) if upos == "PROPN"}

def linked(sentence):
    yield {0, 2}

def nothing(sentence):
    return set()
"""


class Mute(Exception):
    def __str__(self) -> str:
        raise self


def fail(error: BaseException) -> Any:
    raise error


LEMMAS, WORDS = ("the", "dog", "_", "."), ("a", "ran", "b", "c")
ANN = Sentence(
    "s",
    "d",
    0,
    ("Ann", "did", "not", "go"),
    (3, 3, 3, ROOT),
    ("nsubj", "aux", "advmod", "root"),
    {"upos": ("PROPN", "AUX", "PART", "VERB")},
)


def with_sentences(example: EncodedExample, upos: list[str], words: list[str]) -> EncodedExample:
    """The example, whose sentences have these parts of speech and words."""
    sentences, before = [], 0
    for sentence in example.sentences:
        part = slice(before, before + len(sentence.words))
        annotations = {"upos": tuple(upos[part])}
        sentences.append(replace(sentence, words=tuple(words[part]), annotations=annotations))
        before = part.stop
    return replace(example, sentences=tuple(sentences))


def assert_value(
    role: Role, example: EncodedExample, attention: Any, score: str, reach: Reach, expected: Any
) -> None:
    """The role has the expected value for each head, or none if None is expected."""
    readout = read_from([role], Scope(PaddedBatch([example]), reach, SCORES[score]))
    found = values_of(attention, readout)
    assert (readout.counts[0, 0] == 0) == (expected is None)
    if expected is not None:
        sizes = sizes_of(found, [role.id], readout.counts, bounds_of([readout])[..., 0])
        assert_same_sums(found[0, :, 0], expected, sizes[0, :, 0])


@pytest.mark.numbers
@given(examples(), st.integers(0, 2**16), st.sampled_from(sorted(SCORES)), st.data())
@settings(deadline=None, max_examples=60)
def test_words_equal_the_reference(
    example: EncodedExample, seed: int, score: str, data: st.DataObject
) -> None:
    n_words = len(example.starts)
    reach = data.draw(reaches())
    upos = data.draw(st.lists(st.sampled_from(["PUNCT", "X"]), min_size=n_words, max_size=n_words))
    words = data.draw(st.lists(st.sampled_from("abcd"), min_size=n_words, max_size=n_words))
    example = with_sentences(example, upos, words)
    attention = random_attention(len(example), seed, reach=reach)
    tokens, asked = tokens_of(example), Asked(score, reach)
    options = RoleOptions(roles=["punctuation", "rare"])
    sentences = [replace(example.sentences[0], annotations={"upos": ("PUNCT",)})]
    punctuation, rare = choose_roles(options, (), SCORES[score], sentences)
    marks = [k for k, own in enumerate(upos) if own == "PUNCT"]
    expected = reference_word_set(attention[0], tokens, [(list(range(n_words)), marks)], asked)
    assert_value(punctuation, example, attention, score, reach, expected)
    counts = {"a": 3, "b": 1, "c": 2}
    rarest = find_rarest(Counter(counts | {f"x{k}": 9 for k in range(500)}))
    sets, before = [], 0
    for sentence in example.sentences:
        own = [counts.get(word, 0) for word in sentence.words]
        places = list(range(before, before + len(own)))
        sets.append((places, [before + int(np.argmin(own))]))
        before += len(own)
    expected = reference_word_set(attention[0], tokens, sets, asked)
    role = replace(rare, sieve=replace(rare.sieve, find=partial(sets_of_sentences, find=rarest)))
    assert_value(role, example, attention, score, reach, expected)


@pytest.mark.parametrize(("reach", "n_words"), [(1, 2), (2, 3), (3, 4)])
def test_words_see_marks_by_any_of_their_pieces(reach: int, n_words: int) -> None:
    """Like arcs: of the word of two pieces the second is nearer to the mark of two pieces."""
    example = make_example([0] * 6, [0, 0, 1, 2, 3, 3])
    example = with_sentences(example, ["X", "X", "X", "PUNCT"], ["a", "b", "c", "."])
    sentences = list(example.sentences)
    role = choose_roles(RoleOptions(roles=["punctuation"]), (), SCORES["hit"], sentences)[0]
    readout = read_from(
        [role], Scope(PaddedBatch([example]), window_to_either_side(reach), SCORES["hit"])
    )
    assert readout.counts[0, 0] == n_words - 1


@given(examples(min_words=2), st.integers(0, 2**16), st.sampled_from(sorted(SCORES)))
@settings(deadline=None, max_examples=30)
def test_pairs_of_ones_own_are_like_arcs(example: EncodedExample, seed: int, score: str) -> None:
    """A function that gives the arcs has the scores of the arcs, and their contrasts."""
    joined = np.array([relation == "r0" for relation in example.relations])
    example = replace(example, governors=np.where(joined, example.governors, -1))
    first = example.sentences[0]

    def arcs(sentence: Sentence) -> Any:
        before = 0 if sentence is first else len(first.words)
        for k in range(len(sentence.words)):
            if example.governors[before + k] >= 0:
                yield k, int(example.governors[before + k]) - before

    attention = random_attention(len(example), seed)
    expected = reference_scores(attention[0], tokens_of(example), ["r0"], Asked(score))
    find = Finder("arcs", arcs)
    for direction, name in ((FORTH, "to_governor"), (BACK, "to_dependent")):
        role = Role("own", sieve=Pairs(find, frozenset([0]), direction))
        assert_value(role, example, attention, score, EVERYTHING, expected[f"syntactic:r0:{name}"])
        if score != "hit":
            contrast = expected[f"syntactic:r0:{name}:beyond_offset"]
            assert_value(beyond_offset(role), example, attention, score, EVERYTHING, contrast)


@given(examples(min_words=2), st.integers(0, 2**16), st.sampled_from(sorted(SCORES)), reaches())
@settings(deadline=None, max_examples=60)
def test_pairs_across_two_texts_by_loops(
    example: EncodedExample, seed: int, score: str, reach: Reach
) -> None:
    """Their controls are all other pairs of a word of one text and a word of the other in view."""
    assume(example.segments.max() == 1)
    n_words, tokens, asked = len(example.starts), tokens_of(example), Asked(score, reach)
    n_first = len(example.sentences[0].words)
    every = [(i, n_first + j) for i in range(n_first) for j in range(n_words - n_first)]
    own = [every[k] for k in sorted({seed % len(every), seed // 7 % len(every)})]
    attention = random_attention(len(example), seed, reach)
    chosen = first_choices(attention[0], tokens)
    find = Finder("f", lambda first, second: [(i, j - n_first) for i, j in own], kind=tuple)
    for direction in (FORTH, BACK):
        plain, contrasts, controls, shares = [], [], [], []
        for pair in set(every) - set(own):
            queries, keys = map(tokens.pieces, pair[:: 1 - 2 * direction])
            for i in queries:
                for j in set(keys) & set(asked.keys(i, tokens.n)):
                    controls.append(attention[0][:, i, j])
                    shares.append(1 / (len(queries) * len(keys)))
        for pair in own:
            query, key = pair[:: 1 - 2 * direction]
            keys = tokens.pieces(key)
            seen = {
                i: [j for j in keys if j in asked.keys(i, tokens.n)] for i in tokens.pieces(query)
            }
            seen = {i: in_view for i, in_view in seen.items() if in_view}
            if score == "hit":
                plain += [(chosen[query] == key).astype(float)] if seen else []
                continue
            plain.append(mean([asked.row(attention[0], i, keys) for i in seen]))
            if controls:
                control = np.average(controls, axis=0, weights=shares)
                rows = [
                    asked.scale(i, tokens.n, len(in_view))
                    * (attention[0][:, i, in_view].sum(-1) - len(in_view) * control)
                    for i, in_view in seen.items()
                ]
                contrasts.append(mean(rows))
        role = Role("own", sieve=Pairs(find, frozenset([0]), direction))
        assert_value(role, example, attention, score, reach, mean(plain))
        if score != "hit":
            assert_value(beyond_offset(role), example, attention, score, reach, mean(contrasts))


@pytest.mark.parametrize("width", [None, 9, 6])
def test_equal_attention_to_all_words_in_view_has_no_contrast(width: int | None) -> None:
    """Also across two texts, where words beyond a window are no controls."""
    words = [*"abcde", *"abcde"]
    example = make_example([S, *[0] * 5, S, *[1] * 5, S])
    example = with_sentences(example, ["X"] * len(words), words)
    reach = window_to_either_side(width)
    attention = Asked(reach=reach).visible(len(example))[None, None] / 8
    for role in choose_roles(RoleOptions(roles="same"), (), SCORES["bias"], example.sentences):
        if role.baseline is not None:
            assert_value(role, example, attention, "bias", reach, np.zeros(1))


def test_the_same_word_in_the_other_text() -> None:
    one = replace(ANN, words=("The", "dogs", "ran", "."), annotations={"lemma": LEMMAS})
    other = Sentence("t", "d", 1, ("THE", "."), (-1, 0), ("root", "punct"))
    assert list(same(one, other)) == [(0, 0)]
    assert list(same(one, one)) == [(0, 0), (1, 1), (2, 2)]
    roles = choose_roles(RoleOptions(roles="same"), (), SCORES["bias"])
    ids = ["same", "same:back", "same:beyond_offset", "same:back:beyond_offset"]
    assert [role.id for role in roles] == ids
    assert all(role_of(name, SCORES["bias"]).id == name for name in ids)
    control = BorrowedLinks(Finder("same", same), Lenders([one, other, replace(ANN, words=WORDS)]))
    assert control.of_pair(one, one) == [(2, 1, 0)]  # "ran", without real pairs


@given(examples(min_words=4), st.integers(0, 2**16))
@settings(deadline=None, max_examples=10)
def test_pairs_without_order_are_pairs_in_both_orders(example: EncodedExample, seed: int) -> None:
    def sieve(*pairs: Any) -> Pairs:
        find = Finder("f", lambda one: pairs if len(one.words) > 2 else ())
        return Pairs(find, frozenset([0]), FORTH)

    attention = random_attention(len(example), seed)
    both = [Role("own", sieve=sieve({2, 0})), Role("own", sieve=sieve((0, 2), (2, 0)))]
    for roles in (both, [beyond_offset(role) for role in both]):
        readouts = [
            read_from([one], Scope(PaddedBatch([example]), EVERYTHING, SCORES["bias"]))
            for one in roles
        ]
        np.testing.assert_array_equal(*(values_of(attention, one) for one in readouts))
        assert np.array_equal(readouts[0].counts, readouts[1].counts)


def test_rarest_word() -> None:
    sentence = replace(ANN, words=("the", "Old", "old", "cat"))
    many = {f"w{k}": 100 for k in range(500)}
    for counts, places in (
        ({"the": 9, "old": 2, "cat": 3}, ()),  # all are frequent
        ({"the": 9, "old": 2, "cat": 3} | many, (1,)),
        ({"the": 9, "old": 2} | many, (3,)),
    ):
        assert find_rarest(Counter(counts))(sentence) == places


@pytest.mark.parametrize("line", ["the", "the\tmany", "the 3", "\t3"])
def test_lines_that_are_no_frequencies(tmp_path: Path, line: str) -> None:
    file = tmp_path / "counts.tsv"
    file.write_text(f"a\t1\n{line}\n")
    with pytest.raises(CorpusError, match=r"counts\.tsv, line 2: .* is not a word, a tab"):
        read_frequencies(file)


CONTRASTS = (":beyond_offset", ":near", ":near:back", ":between")


class TestFunctions:
    @pytest.fixture(autouse=True)
    def module(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "my_test_roles.py").write_text(MODULE)
        monkeypatch.chdir(tmp_path)

    def choose(self, name: str) -> list[Role]:
        options = RoleOptions(roles=[f"my_test_roles:{name}"])
        return list(choose_roles(options, (), SCORES["bias"], [ANN]))

    def test_pairs_and_words(self) -> None:
        for name, ends in (
            ("negated", ("", ":back", *CONTRASTS, *(f":back{end}" for end in CONTRASTS))),
            ("linked", ("", *CONTRASTS)),
            ("names", ("",)),
        ):
            roles = self.choose(name)
            assert [role.id for role in roles] == [f"my_test_roles:{name}{end}" for end in ends]
        assert [role.unit for role in roles] == ["words"]

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda one: one.wrds, r"fails at sentence 's': AttributeError: .*wrds.*; correct"),
            (lambda _: {99}, r"returns 99 for sentence 's'; return places of words from 0 to 3"),
            (lambda _: [(0, 0)], r"joins word 0 of sentence 's' to itself"),
            (lambda _: sys.exit(3), r"fails at sentence 's': SystemExit: 3; correct the function"),
            (lambda _: fail(Mute()), r"fails at sentence 's': Mute: Mute; correct the function"),
            (lambda _: [0, (1, 2)], r"returns words, pairs .* mixed \(sentence 's'\)"),
            (lambda _: cycle([0, 1]), r"returns more than 10016 places or pairs for sentence 's'"),
            (lambda _: [True], r"returns True for sentence 's'; return places"),
            (lambda _: [10**5000], r"returns a value of type int for sentence 's'; return places"),
            (lambda _: [{0, 1, 2}], r"returns \{0, 1, 2\} for sentence 's'; return places"),
            (lambda _: [(0, 1, 2)], r"returns \(0, 1, 2\) for sentence 's'; return places"),
        ],
    )
    def test_functions_that_do_not_do(self, function: Any, message: str) -> None:
        with pytest.raises(UsageError, match=f"the role f {message}"):
            Finder("f", function).raw(ANN)
        with pytest.raises(UsageError, match="return one kind only"):
            Finder("f", lambda _: [0], kind=tuple).of(ANN)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ([{0, 1}], r"returns \{0, 1\} for sentence 's\+s'; return pairs \(place in the first"),
            ([0], r"returns 0 for sentence 's\+s'; return pairs"),
            ([(0, 4)], r"returns \(0, 4\) for .* second\), from 0 to 3 and from 0 to 3"),
        ],
    )
    def test_functions_of_two_texts_that_do_not_do(self, given: Any, message: str) -> None:
        with pytest.raises(UsageError, match=f"the role f {message}"):
            Finder("f", lambda first, second: given).of_pair(ANN, ANN)
        found = Finder("f", lambda first, second: [(1, 1)])
        assert (found.of_sentence(ANN), found.of_pair(ANN, ANN)) == ([], [(1, 1, 0)])

    def test_functions_stand_in_the_list(self) -> None:
        def first(sentence: Sentence) -> set[int]:
            return {0}

        name = f"{__name__}:TestFunctions.test_functions_stand_in_the_list.<locals>.first"
        options = RoleOptions(roles=[first, "local", first])
        assert options.record()["roles"] == [name, "local"]
        again = options.as_group(RoleOptions)
        assert [one.id for one in choose_roles(again, (), SCORES["bias"], [ANN])] == ["local", name]
        with pytest.raises(UsageError, match=r"two functions have the name .*<lambda>; rename"):
            RoleOptions(roles=[lambda _: {0}, lambda _: {1}])

    @pytest.mark.parametrize(
        ("name", "line", "message"),
        [
            ("my_test_roles:nothing", "", r"my_test_roles:nothing finds nothing in any sentence"),
            ("my_test_roles:__name__", "", r"my_test_roles:__name__ is a str; it must be a func"),
            ("my_test_roles:absent", "", "cannot be loaded: AttributeError"),
            ("my_broken_roles:f", "raise SystemExit", "cannot be loaded: SystemExit"),
            ("my_broken_roles:f", "raise BaseException('no\x1b[31m')", r"BaseException: no\\x1b"),
            ("my_broken_roles:f", "1 +", "cannot be loaded: SyntaxError"),
            ("my_broken_roles:f", "import sys; sys.path.clear()", "cannot be loaded: Attribute"),
            *((name, "", "cannot be loaded") for name in (":f", "..:f", "a b:f", "\x1b:f", "m:")),
            ("x" * 9000 + ":f", "", "cannot be loaded"),
        ],
    )
    def test_names_of_no_function(
        self, name: str, line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "path", list(sys.path))
        (tmp_path / "my_broken_roles.py").write_text(line)
        monkeypatch.delitem(sys.modules, "my_broken_roles", raising=False)
        with pytest.raises(UsageError, match=message):
            choose_roles(RoleOptions(roles=[name]), (), SCORES["bias"], [ANN])
