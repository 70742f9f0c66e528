"""The density of a block: curves and contours; and rows beside rows drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isde.arrays import Matrix
from isde.data.checks import as_table
from isde.data.table import columns_of_model
from isde.errors import printable
from isde.inspection import BlockShape, PairShape, block_shape, blocks_of, scores_of
from isde.inspection.shapes import MASSES
from isde.plots.common import BEST, BOX, EDGE, FAINT, plain, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 2000
"""Rows drawn as points: more hide each other, and make files large."""


class BlockDensityDisplay:
    """The density of a block: a curve for one column, contours for two, contours of all pairs for more.

    Contours hold 25, 50, 75 and 95 % of the probability. Rows given are drawn below as points, at most 2,000.

    Parameters
    ----------
    shape : BlockShape
    rows : ndarray or None
        Rows of the block's columns.

    Attributes
    ----------
    axes_ : list of Axes
        One for the curve, or one for each pair.
    figure_ : matplotlib Figure
    contours_ : list of QuadContourSet
    line_ : Line2D or None
    """

    axes_: list[Axes]
    figure_: Any
    contours_: list[Any]
    line_: Any

    def __init__(self, shape: BlockShape, rows: Matrix | None = None) -> None:
        self.shape = shape
        self.rows = rows

    @classmethod
    def from_estimator(
        cls, model: Any, block: Sequence[int | str], X: Any = None, *, ax: Any = None
    ) -> BlockDensityDisplay:
        """Draw the density of one block of a fitted model, over the rows `X` where they are given."""
        names = model.density_.names
        shape = block_shape(model, block, X)
        rows = None if X is None else columns_of_model(as_table(X, names), names, "X").X[:, list(shape.block)]
        return cls(shape, rows).plot(ax)

    def plot(self, ax: Any = None) -> BlockDensityDisplay:
        """Draw on `ax`, or on a new figure; a block of several pairs takes as many axes."""
        require_matplotlib()
        axes = self._axes(ax)
        self.contours_, self.line_ = [], None
        if not self.shape.pairs:
            self._curve(axes[0])
        else:
            for one, pair in zip(axes, self.shape.pairs, strict=True):
                self._contours(one, pair)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _axes(self, ax: Any) -> list[Axes]:
        n = max(1, len(self.shape.pairs))
        if ax is not None:
            axes = list(np.ravel(np.array(ax, dtype=object)))
            if len(axes) != n:
                raise ValueError(f"The block has {n} pictures: give as many axes, not {len(axes)}.")
            return axes
        from matplotlib import pyplot

        wide = min(n, 3)
        high = -(-n // wide)
        figure, grid = pyplot.subplots(
            high, wide, figsize=(3.3 * wide, 3.1 * high), layout="constrained", squeeze=False
        )
        for unused in grid.ravel()[n:]:
            figure.delaxes(unused)
        return list(grid.ravel()[:n])

    def _curve(self, ax: Axes) -> None:
        (column,) = self.shape.columns
        if self.rows is not None:
            ax.hist(self.rows[:, 0], bins=40, density=True, range=(column.points[0], column.points[-1]), color=BOX)
        (self.line_,) = ax.plot(column.points, column.density, color=EDGE, linewidth=1.6)
        ax.set_ylim(bottom=0)
        ax.set_xlabel(printable(column.name), parse_math=False)
        ax.set_ylabel("density")
        plain(ax)

    def _contours(self, ax: Axes, pair: PairShape) -> None:
        if self.rows is not None:
            places = [self.shape.block.index(c) for c in pair.columns]
            some = self.rows[np.random.RandomState(0).permutation(len(self.rows))[:MOST_POINTS]]
            ax.plot(*some[:, places].T, ".", color=FAINT, markersize=2.5, zorder=1)
        levels = np.unique(pair.levels)
        found = ax.contour(pair.x, pair.y, pair.density.T, levels=levels, cmap="viridis_r", linewidths=1.3, zorder=2)
        self.contours_.append(found)
        ax.set_xlim(pair.x[0], pair.x[-1])
        ax.set_ylim(pair.y[0], pair.y[-1])
        ax.set_xlabel(printable(pair.names[0]), parse_math=False)
        ax.set_ylabel(printable(pair.names[1]), parse_math=False)
        ax.set_title(" ".join(f"{mass:.0%}" for mass in MASSES), fontsize=7.5, color=EDGE)
        plain(ax, grid=None)


class SamplesDisplay:
    """Rows of the data beside as many rows drawn from the density, two columns at a time.

    Parameters
    ----------
    rows, drawn : ndarray of shape (n, 2)
    names : tuple of two str

    Attributes
    ----------
    axes_ : list of two Axes
    figure_ : matplotlib Figure
    points_ : list of two Line2D
    """

    axes_: list[Axes]
    figure_: Any
    points_: list[Any]

    def __init__(self, rows: Matrix, drawn: Matrix, names: tuple[str, str]) -> None:
        self.rows = rows
        self.drawn = drawn
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        columns: Sequence[int] | None = None,
        *,
        ax: Any = None,
        random_state: int = 0,
    ) -> SamplesDisplay:
        """Draw two columns of `X` beside as many rows drawn; by default the pair of a block that gains most."""
        names = model.density_.names
        rows = columns_of_model(as_table(X, names), names, "X").X
        first, second = columns if columns is not None else _strongest_pair(model)
        some = rows[np.random.RandomState(random_state).permutation(len(rows))[:MOST_POINTS]][:, [first, second]]
        drawn = model.sample(len(some), random_state=random_state)[:, [first, second]]
        return cls(some, drawn, (names[first], names[second])).plot(ax)

    def plot(self, ax: Any = None) -> SamplesDisplay:
        """Draw on two axes, or on a new figure."""
        require_matplotlib()
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(1, 2, figsize=(7.4, 3.6), layout="constrained", sharex=True, sharey=True)
        left, right = np.ravel(np.array(ax, dtype=object))
        self.points_ = []
        for one, values, title, colour in (
            (left, self.rows, "data", EDGE),
            (right, self.drawn, "drawn from the density", BEST),
        ):
            (points,) = one.plot(*values.T, ".", color=colour, markersize=3, alpha=0.5)
            self.points_.append(points)
            one.set_title(title, fontsize=10)
            one.set_xlabel(printable(self.names[0]), parse_math=False)
            plain(one, grid=None)
        left.set_ylabel(printable(self.names[1]), parse_math=False)
        self.axes_, self.figure_ = [left, right], left.figure
        return self


def _strongest_pair(model: Any) -> tuple[int, int]:
    """Of the pairs inside blocks the one that gains most; the first two columns where there is none."""
    inside = [(i, j) for block in blocks_of(model) for i in block for j in block if i < j]
    return max(inside, key=scores_of(model).gain, default=(0, 1))
