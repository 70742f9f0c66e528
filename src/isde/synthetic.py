"""The paper's synthetic data, with the partition that is true for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import i0e, logsumexp
from sklearn.utils import check_random_state

from isde.data.table import Table
from isde.partitions import Partition, RandomState

CIRCLE_FACTOR, CIRCLE_NOISE = 0.5, 0.05
XOR_VARIANCE = 0.08
MIXTURE_VARIANCE = 0.2


def structure_partition(structure: Sequence[int]) -> Partition:
    """Blocks of consecutive columns with the given sizes.

    >>> structure_partition([2, 1])
    ((0, 1), (2,))
    """
    if not structure or min(structure) < 1:
        raise ValueError(f"structure={list(structure)} must be a list of block sizes of at least 1.")
    ends = np.cumsum(structure)
    return tuple(tuple(range(int(end) - size, int(end))) for size, end in zip(structure, ends, strict=True))


def make_structured(
    structure: Sequence[int] = (3, 2, 2, 1), n_samples: int = 1000, *, random_state: RandomState = None
) -> tuple[NDArray[np.float64], Partition]:
    """Independent blocks from the paper's families, one for each size: X and its true partition.

    Size 1: uniform on [0, 1]. Size 2: two noisy circles. Size 3: pairwise independent, jointly dependent columns
    (Gaussians around (y1, y2, |y1 - y2|)). Larger: two Gaussians, around 0 and around 1. Not rescaled: the
    estimators rescale inside.

    >>> X, partition = make_structured([3, 1], n_samples=10, random_state=0)
    >>> X.shape, partition
    ((10, 4), ((0, 1, 2), (3,)))
    """
    partition = structure_partition(structure)
    rng = check_random_state(random_state)
    return np.column_stack([_draw_block(size, n_samples, rng) for size in structure]), partition


def _draw_block(size: int, n_samples: int, rng: np.random.RandomState) -> NDArray[np.float64]:
    if size == 1:
        return rng.uniform(size=(n_samples, 1))
    if size == 2:
        radius = np.where(rng.rand(n_samples) < 0.5, 1.0, CIRCLE_FACTOR)
        angle = rng.uniform(0, 2 * np.pi, size=n_samples)
        circles = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        return circles + CIRCLE_NOISE * rng.standard_normal((n_samples, 2))
    if size == 3:
        y1, y2 = rng.randint(0, 2, size=(2, n_samples))
        centres = np.column_stack([y1, y2, np.abs(y1 - y2)])
        return centres + np.sqrt(XOR_VARIANCE) * rng.standard_normal((n_samples, 3))
    centres = rng.randint(0, 2, size=(n_samples, 1))
    return centres + np.sqrt(MIXTURE_VARIANCE) * rng.standard_normal((n_samples, size))


def structured_log_density(X: NDArray[np.float64], structure: Sequence[int]) -> NDArray[np.float64]:
    """The true log-density of rows from `make_structured`: what no estimator can beat on average."""
    parts = [_block_log_density(X[:, block]) for block in structure_partition(structure)]
    return np.sum(parts, axis=0)


def _block_log_density(X: NDArray[np.float64]) -> NDArray[np.float64]:
    size = X.shape[1]
    if size == 1:
        return np.where((X[:, 0] >= 0) & (X[:, 0] <= 1), 0.0, -np.inf)
    if size == 2:
        # The mean of N(x; r u, v I) over directions u is N(x; 0, v I) exp(-r^2 / 2v) I0(r |x| / v); i0e is I0 scaled.
        radii, v, length = np.array([1.0, CIRCLE_FACTOR]), CIRCLE_NOISE**2, np.hypot(*X.T)[:, None]
        rings = np.log(i0e(radii * length / v)) - (length - radii) ** 2 / (2 * v) - np.log(2 * np.pi * v)
        return logsumexp(rings, axis=1) - np.log(2)
    if size == 3:
        y1, y2 = (corner.ravel() for corner in np.meshgrid([0, 1], [0, 1]))
        return _mixture_log_density(X, np.column_stack([y1, y2, np.abs(y1 - y2)]), XOR_VARIANCE)
    return _mixture_log_density(X, np.repeat([[0.0], [1.0]], size, axis=1), MIXTURE_VARIANCE)


def _mixture_log_density(X: NDArray[np.float64], centres: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    distances = ((X[:, None] - centres) ** 2).sum(axis=2)
    constant = 0.5 * X.shape[1] * np.log(2 * np.pi * variance) + np.log(len(centres))
    return logsumexp(-distances / (2 * variance), axis=1) - constant


def block_covariance(structure: Sequence[int], sigma: float) -> NDArray[np.float64]:
    """The paper's block-diagonal matrix: ones on the diagonal, `sigma` elsewhere inside a block.

    >>> block_covariance([2, 1], sigma=0.5).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    partition = structure_partition(structure)
    covariance = np.eye(sum(structure))
    for block in partition:
        covariance[np.ix_(block, block)] = sigma
    np.fill_diagonal(covariance, 1.0)
    return covariance


def make_block_gaussian(
    structure: Sequence[int] = (4, 4, 1),
    n_samples: int = 1000,
    *,
    sigma: float = 0.7,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], Partition]:
    """Centred Gaussian rows with the covariance `block_covariance(structure, sigma)`: X and its true partition."""
    factor = np.linalg.cholesky(block_covariance(structure, sigma))
    rng = check_random_state(random_state)
    return rng.standard_normal((n_samples, len(factor))) @ factor.T, structure_partition(structure)


def demo_table(n_samples: int = 2000, *, random_state: RandomState = 0) -> Table:
    """Eight named columns in shuffled order: two pairs of rings, two switches with their lamp, a clock."""
    X, _ = make_structured([2, 3, 2, 1], n_samples, random_state=random_state)
    names = ("ring_x", "ring_y", "switch_a", "switch_b", "lamp", "orbit_x", "orbit_y", "clock")
    shuffled = (6, 2, 1, 7, 3, 0, 5, 4)
    return Table(np.ascontiguousarray(X[:, list(shuffled)]), tuple(names[i] for i in shuffled))
