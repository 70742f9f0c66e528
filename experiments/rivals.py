"""Blocks from tests of independence by pairs, the usual way to ask which columns move together.

Each pair of columns is tested, Holm's correction keeps the chance of any false rejection among all pairs at 5 %, and
the columns that rejected pairs connect are the blocks. No test by pairs can see columns of which any two are
independent.

Spearman's rank correlation is scipy's. The distance correlation (without bias, in O(n log n)) is dcor's, its p-value
the chi-square of Shen, Panda and Vogelstein (2022), which holds for any marginals; dcor's own t-test is made for many
columns against many, and joined some of five independent normal columns in 25 % of 400 tables. HSIC (Gaussian kernels
as wide as the median distance) and its p-value by the same chi-square are hyppo's: it takes matrices of n x n, and is
left out above 300 rows. That chi-square errs on the safe side, and most for HSIC. So HSIC stands here a second time, on
ranks: what it is under independence then depends on n alone, and is drawn once, without approximation. Hoeffding's D,
which no well kept library has, is treated in the same way. Equal values are ranked at random.

    pip install dcor hyppo
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import chi2, spearmanr

from isde import BlockDiagonalGaussian
from isde.partitions import Partition

ALPHA = 0.05
DRAWS = 200_000
"""Of a null distribution: Holm's strictest level for 12 columns, 5 % / 66, leaves 152 of them above."""

LARGEST_HSIC = 300
"""Rows: 0.4 s a table of 12 columns, and 5 s with 1,000."""

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


def bdcs(X: Matrix, seed: int) -> Partition:
    """Not a test: Gaussian blocks by the slope heuristic."""
    return BlockDiagonalGaussian().fit(X).partition_


def by_pairs(p_values: Callable[[Matrix, int], Vector]) -> Callable[[Matrix, int], Partition]:
    """The blocks that a test by pairs finds; it gives a p-value for each of `combinations(columns, 2)`."""

    def blocks(X: Matrix, seed: int) -> Partition:
        d = X.shape[1]
        return components(holm(p_values(X, seed), ALPHA), d)

    return blocks


def holm(p_values: Vector, alpha: float) -> NDArray[np.bool_]:
    """Which hypotheses are rejected: the smallest p-value at alpha / m, the next at alpha / (m - 1), until one fails.

    >>> holm(np.array([0.03, 0.001, 0.02]), 0.05).tolist()
    [True, True, True]
    >>> holm(np.array([0.03, 0.001, 0.026]), 0.05).tolist()
    [False, True, False]
    """
    order, m = np.argsort(p_values), len(p_values)
    rejected = np.zeros(m, dtype=bool)
    rejected[order] = np.logical_and.accumulate(p_values[order] <= alpha / (m - np.arange(m)))
    return rejected


def components(rejected: NDArray[np.bool_], d: int) -> Partition:
    """Blocks of the d columns that rejected pairs connect.

    >>> components(np.array([False, True, False]), 3)
    ((0, 2), (1,))
    """
    pairs = np.array(list(combinations(range(d), 2)))[rejected]
    _, labels = connected_components(coo_array((np.ones(len(pairs)), pairs.T), shape=(d, d)), directed=False)
    blocks = (tuple(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels))
    return tuple(sorted(blocks))


# --- the tests -------------------------------------------------------------------------------------------------


def spearman(X: Matrix, seed: int) -> Vector:
    return spearmanr(X).pvalue[np.triu_indices(X.shape[1], 1)]


def distance_correlation(X: Matrix, seed: int) -> Vector:
    import dcor

    found = [dcor.u_distance_correlation_sqr(x, y, method="mergesort") for x, y in combinations(X.T.copy(), 2)]
    return chi2.sf(len(X) * np.array(found) + 1, 1)


def hsic(X: Matrix, seed: int) -> Vector:
    from hyppo.independence import Hsic

    return np.array([Hsic().test(x, y).pvalue for x, y in combinations(X.T.copy(), 2)])


def hsic_of_ranks(X: Matrix, seed: int) -> Vector:
    return _against_draws(rank_hsic, X, seed)


def hoeffding(X: Matrix, seed: int) -> Vector:
    return _against_draws(hoeffding_d, X, seed)


def _against_draws(statistic: Callable[[NDArray[np.int64], NDArray[np.int64]], float], X: Matrix, seed: int) -> Vector:
    ranks, null = ranks_of(X, seed), null_distribution(statistic, len(X))
    found = np.array([statistic(r, s) for r, s in combinations(ranks.T.copy(), 2)])
    above = len(null) - np.searchsorted(null, found)
    return (1 + above) / (1 + len(null))


def ranks_of(X: Matrix, seed: int) -> NDArray[np.int64]:
    """Ranks from 0 in each column, equal values in random order."""
    noise = np.random.default_rng([seed, 7]).random(X.shape)
    return np.argsort(np.lexsort((noise, X), axis=0), axis=0)


@cache
def null_distribution(statistic: Callable[[NDArray[np.int64], NDArray[np.int64]], float], n: int) -> Vector:
    """Sorted values of a statistic of ranks for independent columns of n rows."""
    rng, first = np.random.default_rng(n), np.arange(n)
    return np.sort([statistic(first, rng.permutation(n)) for _ in range(DRAWS)])


@njit
def hoeffding_d(r: NDArray[np.int64], s: NDArray[np.int64]) -> float:
    """Hoeffding's D of two columns of ranks from 0, times 30: 1 where one rank decides the other.

    >>> hoeffding_d(np.arange(10), np.arange(10))
    1.0
    """
    n = len(r)
    second = np.empty(n, dtype=np.int64)
    for i in range(n):
        second[r[i]] = s[i]
    tree = np.zeros(n + 1)  # Fenwick's: how many of the points so far lie below a rank
    d1 = d2 = d3 = 0.0
    for first in range(n):
        below, position = 0.0, second[first]
        while position > 0:
            below += tree[position]
            position -= position & -position
        position = second[first] + 1
        while position <= n:
            tree[position] += 1
            position += position & -position
        a, b = float(first), float(second[first])
        d1 += below * (below - 1)
        d2 += a * (a - 1) * b * (b - 1)
        d3 += (a - 1) * (b - 1) * below
    return 30 * ((n - 2) * (n - 3) * d1 + d2 - 2 * (n - 2) * d3) / (float(n) * (n - 1) * (n - 2) * (n - 3) * (n - 4))


def rank_hsic(r: NDArray[np.int64], s: NDArray[np.int64]) -> float:
    features = _centred_features(len(r))
    return float(((features[r].T @ features[s]) ** 2).sum()) / len(r) ** 2


@cache
def _centred_features(n: int) -> Matrix:
    """Features whose products are the centred Gaussian kernel of n equidistant points, to nine digits.

    The kernel is so smooth that 60 of the points (Nystroem's method) represent it.
    """
    points = (np.arange(n) + 0.5) / n
    width = 1 - np.sqrt(0.5)  # the median distance of two points
    landmarks = points[np.linspace(0, n - 1, min(n, 60)).astype(int)]

    def kernel(a: Vector, b: Vector) -> Matrix:
        return np.exp(-((a[:, None] - b) ** 2) / (2 * width**2))

    values, vectors = np.linalg.eigh(kernel(landmarks, landmarks))
    kept = values > 1e-11 * values[-1]
    features = kernel(points, landmarks) @ vectors[:, kept] / np.sqrt(values[kept])
    return features - features.mean(axis=0)


RIVALS: dict[str, Callable[[Matrix, int], Partition]] = {
    "Spearman": by_pairs(spearman),
    "distance correlation": by_pairs(distance_correlation),
    "Hoeffding's D": by_pairs(hoeffding),
    "HSIC": by_pairs(hsic),
    "HSIC of ranks": by_pairs(hsic_of_ranks),
    "BDCS": bdcs,
}
