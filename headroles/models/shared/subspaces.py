"""Overlap of the query and key projections of heads, on arrays."""

from __future__ import annotations

import numpy as np

from headroles.arrays import FloatArray, IndexArray

_CHUNK = 64


def captured_energy(strength: FloatArray) -> FloatArray:
    """Return the share (..., k) of the sum of squares in the largest k singular values (..., n).

    >>> captured_energy(np.array([2.0, 1.0])).tolist()
    [0.8, 1.0]
    """
    squares = np.sort(strength, axis=-1)[..., ::-1] ** 2
    return np.asarray(squares.cumsum(axis=-1) / squares.sum(axis=-1, keepdims=True))


def dimensions_for(strength: FloatArray, share: float) -> IndexArray:
    """Return how many of the singular values (..., n) capture this share of the squares.

    >>> int(dimensions_for(np.array([2.0, 1.0]), 0.9))
    2
    """
    # rounding must not add a dimension if the share is met exactly
    return np.asarray((captured_energy(strength) < share - 1e-12).sum(axis=-1) + 1)


def sum_singular(query: FloatArray, key: FloatArray) -> FloatArray:
    """Return the singular values of the sum over heads of query_h' key_h, of maps (H, d, D)."""
    first, second = (maps.reshape(-1, maps.shape[2]) for maps in (query, key))
    return np.asarray(np.linalg.svd(first.T @ second, compute_uv=False))


def overlaps(maps: FloatArray) -> FloatArray:
    """Return the overlaps (H, H) of the row spaces of maps (H, d, D), 1 if they are the same.

    An overlap is the mean squared cosine of the principal angles: the share of squared length of
    vectors in one space that lies in the other.
    """
    heads, size, width = maps.shape
    basis = np.linalg.qr(maps.swapaxes(1, 2))[0].swapaxes(1, 2).reshape(-1, width)
    squares = ((basis @ basis.T) ** 2).reshape(heads, size, heads, size)
    return np.asarray(squares.sum(axis=(1, 3)) / size)


def random_overlaps(size: int, width: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw overlaps (n,) of two random spaces of ``size`` dimensions among ``width``.

    Their mean is size / width. By symmetry, one of the spaces can be that of the first coordinates.
    """
    parts = []
    for start in range(0, n, _CHUNK):
        drawn = rng.standard_normal((min(_CHUNK, n - start), width, size))
        basis = np.linalg.qr(drawn)[0]
        parts.append((basis[:, :size] ** 2).sum(axis=(1, 2)) / size)
    return np.concatenate(parts)


def random_sums(
    strength: FloatArray, width: int, n: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Draw singular values of sums of heads with singular values ``strength`` (H, d), n times.

    Each head keeps its singular values, and its query and key spaces are random: the distribution
    if heads share dimensions only by chance.
    """
    heads, size = strength.shape

    def spaces() -> FloatArray:
        """Draw an orthonormal basis (heads, size, width) of a space for each head."""
        drawn = rng.standard_normal((heads, width, size))
        return np.asarray(np.linalg.qr(drawn)[0].swapaxes(1, 2))

    return [sum_singular(spaces() * strength[:, :, None], spaces()) for _ in range(n)]
