"""BDCS: a Gaussian whose covariance is block-diagonal, the blocks chosen by the slope heuristic."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata

from isde.archive import Arrays, over, under
from isde.arrays import FrozenArrays, Matrix, Vector
from isde.baselines.covariance import GaussianEstimator
from isde.density import fit_product, scaling_for
from isde.density_estimator import one_of
from isde.errors import warn
from isde.marginals import resolve_marginal
from isde.marginals.gaussian import log_determinants
from isde.partitions import Block, Partition
from isde.slope import slope_by_jump, slope_by_regression

FEWEST_FOR_A_SLOPE = 10
"""Partitions; capushe asks for more than ten."""


@dataclass(frozen=True)
class PartitionPath(FrozenArrays):
    """Nested partitions, from all columns alone to the coarsest that has a density, and how one was chosen."""

    thresholds: Vector  # columns are joined where their covariance is at least this; infinite for columns alone
    labels: NDArray[np.int64]  # one row for each partition: the block of each column
    dimensions: NDArray[np.int64]  # covariances to estimate, sum over the blocks of s (s - 1) / 2
    log_likelihoods: Vector  # of all rows, in the units of the data
    penalty: float  # for each covariance to estimate: twice the slope found

    def __len__(self) -> int:
        return len(self.thresholds)

    @property
    def n_blocks(self) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = self.labels.max(axis=1) + 1
        return counts

    @property
    def penalised(self) -> Vector:
        """The criterion: -log-likelihood + penalty * dimension, smallest for the partition chosen."""
        criterion: Vector = -self.log_likelihoods + self.penalty * self.dimensions
        return criterion

    @property
    def selected(self) -> int:
        """Position of the partition chosen, the finest of equal ones."""
        return int(np.argmin(self.penalised))

    def partition(self, position: int) -> Partition:
        """The blocks of one partition."""
        return _blocks(self.labels[position])


class BlockDiagonalGaussian(GaussianEstimator):
    """Gaussian with a block-diagonal covariance: Block-Diagonal Covariance Selection (Devijver and Gallopin, 2018).

    Columns whose absolute covariance exceeds a threshold stand in one block; lowering the threshold gives up to d
    nested partitions. Among them one minimises  -log-likelihood + 2 kappa D,  D counting the covariances inside
    blocks, with kappa the slope at which further covariances fit nothing but noise.

    As in the paper's code the default reads kappa from the largest jump of D as kappa grows, among kappas up to 10;
    that code tries 1,000 values of kappa on a grid, here every jump is found exactly. R's capushe, which
    Devijver and Gallopin use, knows no such limit: where most columns do depend on each other it can take the jump
    that breaks true blocks apart for the one that drops noise. The paper's code thresholds moments about zero and
    computes likelihoods with mean zero; here the mean is removed throughout. Like them it keeps some chance
    correlations among columns that stand alone: a penalty for each covariance does not know that the largest of many
    was looked for.

    Parameters
    ----------
    criterion : "jump" or "slope", default="jump"
        How kappa is found. "jump": where the dimension of the best partition drops most. "slope": robust regressions
        of the log-likelihood on the dimension of the largest partitions, as capushe's DDSE does; with fewer than 10
        partitions "jump" takes over, with a warning.
    threshold_on : "covariance" or "correlation", default="covariance"
        What is thresholded: the covariance of the rescaled columns, as in the paper, or the correlation.
    scale : "minmax", "standard" or None, default="minmax"
        Rescaling of each column before anything else. "standard" makes covariance and correlation the same; the
        paper's experiment, with columns of equal variance, is None.

    Attributes
    ----------
    partition_ : tuple of tuples of int
        The blocks.
    block_names_ : tuple of tuples of str
        The blocks by name.
    mean_, covariance_ : ndarray
        The mean and the block-diagonal covariance, in the units of the data.
    path_ : PartitionPath
        Every partition tried: thresholds, dimensions, log-likelihoods and the penalised criterion.
    density_ : ProductDensity
        The fitted density.

    Examples
    --------
    >>> from isde import BlockDiagonalGaussian
    >>> from isde.synthetic import make_block_gaussian
    >>> X, truth = make_block_gaussian([3, 2, 1], n_samples=2000, random_state=0)
    >>> BlockDiagonalGaussian().fit(X).partition_ == truth
    True
    """

    archive_kind = "BlockDiagonalGaussian"

    def __init__(
        self, *, criterion: str = "jump", threshold_on: str = "covariance", scale: str | None = "minmax"
    ) -> None:
        self.criterion = criterion
        self.threshold_on = threshold_on
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> BlockDiagonalGaussian:
        """Find the nested partitions, choose one by the slope heuristic, fit its blocks."""
        X = self._check(X, reset=True)
        marginal = resolve_marginal("gaussian")
        scaling = scaling_for(X, self.scale, marginal)
        covariance = np.atleast_2d(np.cov(scaling.transform(X), rowvar=False, bias=True))
        self.path_ = self._find_path(covariance, len(X), float(scaling.log_jacobian.sum()))
        self.partition_ = self.path_.partition(self.path_.selected)
        self.density_ = fit_product(X, self.partition_, marginal, scaling, self._names(), n_jobs=None)
        return self

    def _check_params(self) -> None:
        one_of("criterion", self.criterion, ("jump", "slope"))
        one_of("threshold_on", self.threshold_on, ("covariance", "correlation"))

    def _find_path(self, covariance: Matrix, n_rows: int, log_jacobian: float) -> PartitionPath:
        spread = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(spread, spread)
        thresholds, labels = nested_partitions(covariance if self.threshold_on == "covariance" else correlation)
        log_dets = _nested_log_determinants(correlation, labels)
        proper = len(log_dets)
        d = len(covariance)
        # At the maximum the trace term is d, whatever the blocks.
        per_row = -0.5 * (log_dets + 2 * np.log(spread).sum() + d * (1 + np.log(2 * np.pi))) + log_jacobian
        log_likelihoods, dimensions = n_rows * per_row, np.array([_dimension(row) for row in labels[:proper]])
        kappa = self._slope(dimensions, log_likelihoods)
        return PartitionPath(thresholds[:proper], labels[:proper], dimensions, log_likelihoods, 2 * kappa)

    def _slope(self, dimensions: NDArray[np.int64], log_likelihoods: Vector) -> float:
        if self.criterion == "slope" and len(dimensions) >= FEWEST_FOR_A_SLOPE:
            return slope_by_regression(dimensions, log_likelihoods)
        if self.criterion == "slope":
            warn(
                f"{len(dimensions)} nested partitions are too few for a regression: criterion='jump' is used; "
                f"{FEWEST_FOR_A_SLOPE} columns or more make enough."
            )
        return slope_by_jump(dimensions, log_likelihoods)

    def _extra_to_archive(self) -> tuple[dict[str, Any], Arrays]:
        arrays = {name: getattr(self.path_, name) for name in ("thresholds", "labels", "dimensions", "log_likelihoods")}
        return {"penalty": self.path_.penalty}, over("path.", arrays)

    def _extra_from_archive(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        self.path_ = PartitionPath(penalty=float(header["penalty"]), **under("path.", arrays))
        self.partition_ = self.density_.partition
        if self.path_.partition(self.path_.selected) != self.partition_:
            raise ValueError("the path chooses another partition than the density has")


# --- the nested partitions -------------------------------------------------------------------------------------


def nested_partitions(matrix: Matrix) -> tuple[Vector, NDArray[np.int64]]:
    """Every partition that thresholding the absolute off-diagonal entries can give, finest first.

    Returns the thresholds, and a row of block labels for each: columns are connected where the entry is at least
    the threshold. The heights of single linkage are those at which the connected components change.

    >>> nested_partitions(np.array([[1, 0.5, 0], [0.5, 1, -0.2], [0, -0.2, 1]]))[1].tolist()
    [[0, 1, 2], [0, 0, 1], [0, 0, 0]]
    """
    d = len(matrix)
    thresholds, labels = [np.inf], [np.arange(d)]
    if d > 1:
        strengths = squareform(np.abs(matrix), checks=False)
        # Ranks, so that distances are exact: equal entries join their columns at one threshold, others never do.
        ranks = rankdata(-strengths, method="dense")
        tree = linkage(ranks, method="single")
        for height in np.unique(tree[:, 2]):
            thresholds.append(float(strengths[ranks == height][0]))
            labels.append(_relabel(fcluster(tree, height, criterion="distance")))
    return np.array(thresholds), np.array(labels, dtype=np.int64)


def _relabel(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Labels 0, 1, ... in order of a block's first column."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.intp)
    order[np.argsort(first)] = np.arange(len(first))
    relabelled: NDArray[np.intp] = order[inverse]
    return relabelled


def _blocks(labels: NDArray[np.int64]) -> Partition:
    blocks: list[list[int]] = [[] for _ in range(int(labels.max()) + 1)]
    for column, label in enumerate(labels.tolist()):
        blocks[label].append(column)
    return tuple(tuple(block) for block in blocks)


def _dimension(labels: NDArray[np.int64]) -> int:
    sizes = np.bincount(labels)
    return int((sizes * (sizes - 1)).sum()) // 2


def _nested_log_determinants(correlation: Matrix, labels: NDArray[np.int64]) -> Vector:
    """Log-determinant of each block-diagonal matrix, up to the last partition without a singular block.

    A block with more columns than rows is singular: its likelihood is infinite and says nothing.
    """

    def is_singular(position: int) -> bool:
        blocks = _blocks(labels[position])
        return any(bool(np.isnan(log_determinants(correlation[np.ix_(block, block)]))) for block in blocks)

    # Eigenvalues of a larger block enclose those of its parts: once singular, always singular.
    proper = bisect_left(range(len(labels)), True, key=is_singular)
    known: dict[Block, float] = {}
    for block in (block for row in labels[:proper] for block in _blocks(row)):
        if block not in known:
            known[block] = float(np.linalg.slogdet(correlation[np.ix_(block, block)])[1])
    return np.array([sum(known[block] for block in _blocks(row)) for row in labels[:proper]])
