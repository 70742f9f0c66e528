"""The shape of a block's density: curves of single columns, surfaces of pairs, and the data beside, in cells.

Everything comes from the fitted density itself: no rows are needed, and none are kept. Where the rows are given, they
are counted in cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from isde.arrays import FrozenArrays, IntVector, Matrix, Vector
from isde.data.checks import as_table
from isde.data.table import columns_of_model
from isde.density_estimator import DensityEstimator
from isde.errors import ISDEError
from isde.inspection.gains import block_of, blocks_of
from isde.marginals.marginal import FittedBlock
from isde.subsets import Subset

DRAWN = 20_000
"""Rows drawn from a block for its quantiles and for the shares of its cells: these are known to 0.2 percent points."""

CURVE_POINTS, GRID_POINTS = 160, 56
FARTHEST_SHARE = 0.001
"""Pictures leave out so much of the probability on either side of a column."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FIFTHS = (0.2, 0.4, 0.6, 0.8)
MASSES = (0.25, 0.5, 0.75, 0.95)
"""Regions of highest density hold so much of the probability."""

DATA_BINS = 28


@dataclass(frozen=True, eq=False)
class ColumnShape(FrozenArrays):
    """The density of one column."""

    column: int
    name: str
    points: Vector  # where it was evaluated, in the units of the data, equally spaced
    density: Vector
    quantiles: Vector  # at QUANTILES
    counts: IntVector | None  # rows of the data in equal bins from the first point to the last; None: no data given
    n_outside: int | None  # rows beyond them


@dataclass(frozen=True, eq=False)
class PairShape(FrozenArrays):
    """The density of two columns of a block, integrated over the others."""

    columns: tuple[int, int]
    names: tuple[str, str]
    x: Vector  # where it was evaluated, in the units of the data, equally spaced
    y: Vector
    density: Matrix  # density[i, j] at (x[i], y[j])
    levels: Vector  # the densities above which MASSES of the probability lie, descending
    fifths: Matrix  # probability by fifths of both columns, 0.04 each where they are independent, (5, 5)
    correlation: float  # of rows drawn
    counts: Matrix | None  # rows of the data in cells, (bins, bins); None: no data given
    n_outside: int | None


@dataclass(frozen=True)
class BlockShape:
    """The density of a block as curves and surfaces."""

    block: Subset
    names: tuple[str, ...]
    columns: tuple[ColumnShape, ...]
    pairs: tuple[PairShape, ...]
    exact: bool  # densities are exact; else the family has no exact marginals, and rows drawn were counted


def block_shapes(model: DensityEstimator, X: Any = None, *, max_pairs: int | None = None) -> list[BlockShape]:
    """The shape of each block; with rows `X` they are counted beside."""
    return [block_shape(model, block, X, max_pairs=max_pairs) for block in blocks_of(model)]


def block_shape(
    model: DensityEstimator, block: Sequence[int | str], X: Any = None, *, max_pairs: int | None = None
) -> BlockShape:
    """The shape of one block. Of more than `max_pairs` pairs, those that gain most are drawn."""
    own, blocks = block_of(model, block), blocks_of(model)
    density = model.density_
    fitted = density.blocks[blocks.index(own)]
    view = _View(fitted, density.scaling.shift[list(own)], density.scaling.scale[list(own)])
    rows = None if X is None else columns_of_model(as_table(X, density.names), density.names, "X").X[:, list(own)]
    names = tuple(density.names[c] for c in own)
    columns = tuple(_column(view, i, own, names, rows) for i in range(len(own)))
    pairs = [(i, j) for i, j in combinations(range(len(own)), 2)]
    if max_pairs is not None and len(pairs) > max_pairs:
        pairs.sort(key=lambda pair: -model.subset_scores_.gain((own[pair[0]], own[pair[1]])))
        pairs = sorted(pairs[:max_pairs])
    return BlockShape(own, names, columns, tuple(_pair(view, i, j, own, names, rows) for i, j in pairs), view.exact)


class _View:
    """A fitted block in the units of the data, with rows drawn from it."""

    def __init__(self, block: FittedBlock, shift: Vector, scale: Vector) -> None:
        self.block, self.shift, self.scale = block, shift, scale
        self.drawn: Matrix = block.sample(DRAWN, np.random.RandomState(0)) * scale + shift
        ends = np.quantile(self.drawn, [FARTHEST_SHARE, 1 - FARTHEST_SHARE], axis=0)
        margin = 0.04 * (ends[1] - ends[0])
        self.low, self.high = ends[0] - margin, ends[1] + margin
        self.exact = True

    def axis(self, i: int, n: int) -> Vector:
        return np.linspace(self.low[i], self.high[i], n)

    def density(self, columns: list[int], points: Matrix) -> Vector:
        """At some points, for some columns; raises `ISDEError` where the family has no exact marginals."""
        block = self.block if len(columns) == len(self.shift) else self.block.marginal(columns)
        scaled = np.ascontiguousarray((points - self.shift[columns]) / self.scale[columns])
        log_density: Vector = block.score_samples(scaled) - np.log(self.scale[columns]).sum()
        return np.exp(log_density)


def _column(view: _View, i: int, own: Subset, names: Sequence[str], rows: Matrix | None) -> ColumnShape:
    points = view.axis(i, CURVE_POINTS)
    try:
        density = view.density([i], points[:, None])
    except ISDEError:
        view.exact = False
        density = _counted(view.drawn[:, i], points)
    counts = outside = None
    if rows is not None:
        counts, _ = np.histogram(rows[:, i], bins=DATA_BINS, range=(view.low[i], view.high[i]))
        outside = int(len(rows) - counts.sum())
    quantiles = np.quantile(view.drawn[:, i], QUANTILES)
    return ColumnShape(own[i], names[i], points, density, quantiles, counts, outside)


def _counted(drawn: Vector, points: Vector) -> Vector:
    """Shares of rows drawn between the middles of points, as a density."""
    step = points[1] - points[0]
    counts, _ = np.histogram(drawn, bins=np.append(points, points[-1] + step) - step / 2)
    return counts / (len(drawn) * step)


def _pair(view: _View, i: int, j: int, own: Subset, names: Sequence[str], rows: Matrix | None) -> PairShape:
    x, y = view.axis(i, GRID_POINTS), view.axis(j, GRID_POINTS)
    steps = x[1] - x[0], y[1] - y[0]
    try:
        points = np.column_stack([np.repeat(x, len(y)), np.tile(y, len(x))])
        density = view.density([i, j], points).reshape(len(x), len(y))
    except ISDEError:
        view.exact = False
        edges = [np.append(axis, axis[-1] + step) - step / 2 for axis, step in zip((x, y), steps, strict=True)]
        drawn, _, _ = np.histogram2d(view.drawn[:, i], view.drawn[:, j], bins=edges)
        density = drawn / (DRAWN * steps[0] * steps[1])
    counts = outside = None
    if rows is not None:
        spans = [(view.low[c], view.high[c]) for c in (i, j)]
        counts, _, _ = np.histogram2d(rows[:, i], rows[:, j], bins=DATA_BINS, range=spans)
        outside = int(len(rows) - counts.sum())
    drawn = view.drawn[:, [i, j]]
    return PairShape(
        (own[i], own[j]),
        (names[i], names[j]),
        x,
        y,
        density,
        highest_levels(density, MASSES),
        by_fifths(drawn),
        float(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]),
        counts,
        outside,
    )


def highest_levels(density: Matrix, masses: Sequence[float]) -> Vector:
    """The densities above which shares of the probability lie, of a density on a grid of equal cells.

    >>> highest_levels(np.array([[6.0, 2.0], [1.0, 1.0]]), (0.5, 0.8)).tolist()
    [6.0, 2.0]
    """
    values = np.sort(density, axis=None)[::-1]
    held = np.cumsum(values) / values.sum()
    return values[np.minimum(np.searchsorted(held, masses), len(values) - 1)]


def by_fifths(drawn: Matrix) -> Matrix:
    """Shares of rows by fifths of two columns; rows of the result are fifths of the first."""
    cells = [np.searchsorted(np.quantile(column, FIFTHS), column, side="right") for column in drawn.T]
    shares = np.zeros((5, 5))
    np.add.at(shares, (cells[0], cells[1]), 1 / len(drawn))
    return shares
