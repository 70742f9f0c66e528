"""Kernel densities of pairs of columns, multiplied along a tree, as the density of a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.contents import Layout, places, whole, widths
from isde.errors import ISDEError
from isde.marginals.conditional import draw_centres
from isde.marginals.kde import KDEBlock
from isde.marginals.marginal import SavedBlock, WithoutBandwidth


@dataclass(frozen=True)
class TreeBlock(FrozenArrays, SavedBlock, WithoutBandwidth):
    """f(x) = f_1(x_p, x_c) prod_{e > 1} f_e(x_p, x_c) / g_e(x_p), over the edges e = (p, c) of a tree.

    f_e is a kernel density of two columns, g_e one of the parent p alone, all with the same centres. Where g_e has
    the bandwidth that f_e has along p, it is the marginal of f_e, each factor is a conditional density of x_c
    given x_p, and f integrates to exactly 1.
    """

    kind: ClassVar[str] = "tree"
    layout: ClassVar[Layout] = {
        "centres": places("n s"),
        "edges": whole("e 2"),
        "pair_bandwidths": widths("e 2"),
        "parent_bandwidths": widths("e"),
    }
    centres: Matrix  # (n, s)
    edges: NDArray[np.int64]  # (s - 1, 2): parent and child; a parent is the root or the child of an earlier edge
    pair_bandwidths: Matrix  # (s - 1, 2): of f_e, along the parent and along the child
    parent_bandwidths: Vector  # (s - 1,): of g_e; the first one divides nothing

    @property
    def n_columns(self) -> int:
        return self.centres.shape[1]

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        log_density = np.zeros(len(X))
        for i, (edge, h) in enumerate(zip(self.edges, self.pair_bandwidths, strict=True)):
            log_density += log_kernel_density(X[:, edge], self.centres[:, edge], h, n_jobs)
            if i > 0:
                parent, g = edge[:1], self.parent_bandwidths[i : i + 1]
                log_density -= log_kernel_density(X[:, parent], self.centres[:, parent], g, n_jobs)
        return log_density

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        """Rows drawn along the tree: the first pair, then each child given its parent, all exactly.

        Where g_e is not the marginal of f_e there is no density to draw from; these rows follow the one in which it
        is.
        """
        X = np.empty((n_samples, self.n_columns))
        for i, (edge, h) in enumerate(zip(self.edges, self.pair_bandwidths, strict=True)):
            if i == 0:
                chosen = rng.randint(len(self.centres), size=n_samples)
                X[:, edge] = self.centres[np.ix_(chosen, edge)] + h * rng.standard_normal((n_samples, 2))
            else:
                parent, child = edge
                chosen = draw_centres(
                    X[:, [parent]] / h[0], self.centres[:, [parent]] / h[0], rng.uniform(size=n_samples)
                )
                X[:, child] = self.centres[chosen, child] + h[1] * rng.standard_normal(n_samples)
        return X

    def marginal(self, columns: Sequence[int]) -> NoReturn:
        raise ISDEError("A tree of pairs has no marginal density in closed form: fit another family to these columns.")

    def sample_given(self, columns: Sequence[int], values: Matrix, rng: np.random.RandomState) -> NoReturn:
        raise ISDEError("A tree of pairs cannot draw some columns given others: fit another family to these columns.")

    def check(self) -> None:
        if not len(self.centres) or len(self.edges) != self.n_columns - 1 or not len(self.edges):
            raise ValueError("a tree needs centres, and an edge for each column but one")
        reached = {int(self.edges[0, 0])}
        for parent, child in self.edges.tolist():
            if parent not in reached or child in reached:
                raise ValueError("the edges do not grow a tree from their first column")
            reached.add(child)
        if reached != set(range(self.n_columns)):
            raise ValueError("the tree does not reach every column")


def log_kernel_density(X: Matrix, centres: Matrix, bandwidths: Vector, n_jobs: int | None) -> Vector:
    """Log-density of each row under Gaussian kernels with a bandwidth for each column."""
    middle = centres[0]  # taken off before anything is divided: far from zero, differences would lose their digits
    unit = KDEBlock(np.ascontiguousarray((centres - middle) / bandwidths), 1.0)
    rows = np.ascontiguousarray((X - middle) / bandwidths)
    log_density: Vector = unit.score_samples(rows, n_jobs) - np.log(bandwidths).sum()
    return log_density
