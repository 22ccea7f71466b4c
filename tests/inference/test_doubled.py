"""Documents that share texts: compared with shares counted pair by pair."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroles.inference.doubled import FEWEST_WORDS, LARGE_SHARE, Clusters, find_clusters

LONG, SHORT = FEWEST_WORDS, FEWEST_WORDS - 1
Example = tuple[str, str, int]


def clusters_of(examples: list[Example]) -> Clusters:
    documents, digests, lengths = zip(*examples, strict=True)
    return find_clusters(documents, digests, np.array(lengths))


def expected_clusters(examples: list[Example]) -> list[set[str]]:
    """Join documents until no two clusters hold documents that share enough."""
    clusters = [{document} for document in sorted({document for document, _, _ in examples})]
    of = {name: [one for one in examples if one[0] == name] for name, _, _ in examples}
    for first, second in permutations(of, 2):
        texts = {text for _, text, length in of[second] if length >= FEWEST_WORDS}
        shared = sum(n for _, text, n in of[first] if n >= FEWEST_WORDS and text in texts)
        if shared and shared >= LARGE_SHARE * sum(n for _, _, n in of[first]):
            both = [one for one in clusters if first in one or second in one]
            clusters = [one for one in clusters if one not in both] + [set.union(*both)]
    return clusters


# the length of a text follows from it
TEXTS = st.sampled_from([("a", LONG), ("b", 3 * LONG), ("c", LONG + 5), ("d", SHORT), ("e", 2)])


@given(st.lists(st.tuples(st.sampled_from("ABCDEF"), TEXTS), min_size=1, max_size=30))
def test_clusters_are_those_of_shares_counted_pair_by_pair(
    drawn: list[tuple[str, tuple[str, int]]],
) -> None:
    examples = [(document, *text) for document, text in drawn]
    found, expected = clusters_of(examples), expected_clusters(examples)
    by_code: dict[int, set[str]] = {}
    for code, (document, _, _) in zip(found.codes.tolist(), examples, strict=True):
        by_code.setdefault(code, set()).add(document)
    assert sorted(map(sorted, by_code.values())) == sorted(map(sorted, expected))
    assert found.n_documents == sum(map(len, expected))
    assert found.n_joined == sum(len(one) for one in expected if len(one) > 1)
    doubled = [
        (document, text)
        for document, text, length in examples
        if length >= FEWEST_WORDS
        and any(
            {document, other} <= cluster and other != document and text == same
            for other, same, _ in examples
            for cluster in expected
        )
    ]
    assert found.n_doubled == len(doubled)


@pytest.mark.parametrize("n_documents", [2, 100, 1000])
def test_a_notice_in_many_documents_joins_none_and_a_copy_all(n_documents: int) -> None:
    own = [(f"d{k}", f"text {k}", 10 * LONG) for k in range(n_documents)]
    notice = [(f"d{k}", "notice", LONG) for k in range(n_documents)]
    thanks = [(f"d{k}", "thanks", SHORT) for k in range(n_documents)] * 50
    apart = clusters_of(own + notice + thanks)
    assert (apart.n_joined, apart.n_doubled) == (0, 0)
    assert apart.codes.tolist() == apart.documents.tolist()
    copies = clusters_of([(name, "text", 10 * LONG) for name, _, _ in own] + notice)
    assert (copies.n_joined, copies.n_doubled) == (n_documents, 2 * n_documents)
    assert not copies.codes.any()


def test_an_excerpt_is_joined_with_the_whole_text() -> None:
    whole = [("whole", f"text {k}", LONG) for k in range(20)]
    found = clusters_of([*whole, ("excerpt", "text 3", LONG), ("other", "other", LONG)])
    assert (found.n_documents, found.n_joined, found.n_doubled) == (3, 2, 2)
    assert len(set(found.codes.tolist())) == 2


def test_long_is_measured_in_words() -> None:
    examples = [("a", "text", LONG), ("b", "text", LONG)]
    documents, digests, lengths = zip(*examples, strict=True)
    found = [find_clusters(documents, digests, np.array(lengths), n).n_joined for n in (1, 1.5)]
    assert found == [2, 0]


def test_scores_without_digests_have_separate_documents() -> None:
    found = find_clusters(["b", "a", "b"], (), np.array([LONG] * 3))
    assert found.codes.tolist() == [1, 0, 1]
