"""Clusters of examples: documents, joined where they share texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headroles.arrays import FloatArray, IndexArray, IntArray

FEWEST_WORDS = 10
"""Words from which an example is a text that nobody writes twice by chance.

Equal examples below it are common utterances ("Thank you."): of the 57 sentences of the treebank
EWT dev that stand in several documents, 2 have more than seven words.
"""
LARGE_SHARE = 0.5
"""Share of a document that has to stand in another one for both to be one cluster.

A notice or a signature stands in many documents, and is a small share of each.
"""
_MOST_PARTNERS = 30
"""Documents of a text that all others of it are compared with, so that pairs remain few."""


@dataclass(frozen=True)
class Clusters:
    """Clusters (examples,) and documents (examples,) of examples, as numbers from 0.

    ``n_doubled`` examples stand in several documents of their cluster, and ``n_joined`` documents
    share their cluster with others.
    """

    codes: IndexArray
    documents: IndexArray
    n_documents: int
    n_joined: int = 0
    n_doubled: int = 0


def find_clusters(
    documents: Sequence[str],
    digests: Sequence[str],
    lengths: IntArray,
    tokens_per_word: float = 1.0,
) -> Clusters:
    """Return the clusters of examples with these documents, digests of texts, and tokens.

    Each document is a cluster, joined with those that have at least ``LARGE_SHARE`` of its tokens,
    in equal examples with the tokens of ``FEWEST_WORDS`` or more. Without digests none are joined.
    """
    names, document = np.unique(np.asarray(documents), return_inverse=True)
    n = len(names)
    separate = Clusters(document, document, n)
    if n < 2 or not len(digests):
        return separate
    text = np.unique(np.asarray(digests), return_inverse=True)[1]
    sizes = np.bincount(document, weights=lengths, minlength=n).astype(np.float64)
    is_text = lengths >= FEWEST_WORDS * tokens_per_word
    pairs = [*_sharing(text[is_text], document[is_text], lengths[is_text], sizes)]
    if not pairs:
        return separate
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    first, second = np.array(pairs).T
    links = coo_matrix((np.ones(len(pairs)), (first, second)), shape=(n, n))
    n_clusters, cluster = connected_components(links, directed=False)
    codes = cluster[document].astype(document.dtype)
    is_joined = np.bincount(cluster, minlength=n_clusters)[cluster] > 1
    # a text of a cluster is doubled if it stands in several documents there
    places = np.unique((text * n + document)[is_text])
    _, group, n_places = np.unique(
        places // n * n_clusters + cluster[places % n], return_inverse=True, return_counts=True
    )
    doubled = places[n_places[group] > 1]
    is_doubled = is_text & np.isin(text * n + document, doubled)
    return Clusters(codes, document, n, int(is_joined.sum()), int(is_doubled.sum()))


def _sharing(
    text: IndexArray, document: IndexArray, lengths: IntArray, sizes: FloatArray
) -> Iterator[tuple[int, int]]:
    """Yield pairs of documents of which the second has a large share of the tokens of the first.

    ``text`` and ``document`` number those of each example; ``sizes`` (documents,) are in tokens.
    """
    keys, place = np.unique(text * len(sizes) + document, return_inverse=True)
    tokens = np.bincount(place, weights=lengths)
    texts, documents = np.divmod(keys, len(sizes))
    shared: Counter[tuple[int, int]] = Counter()
    starts = np.flatnonzero(np.diff(texts)) + 1
    for rows in np.split(np.arange(len(keys)), starts):
        if len(rows) < 2:
            continue
        holders = list(zip(documents[rows].tolist(), tokens[rows].tolist(), strict=True))
        for first, n_first in holders[:_MOST_PARTNERS]:
            for second, n_second in holders:
                if first < second:
                    shared[first, second] += n_first
                    shared[second, first] += n_second
    for (first, second), n_shared in shared.items():
        if n_shared >= LARGE_SHARE * sizes[first]:
            yield first, second
