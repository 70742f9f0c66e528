"""The graph of a tree of blocks, drawn: columns as labels, lines between those that share a clique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from isde.arrays import Matrix
from isde.layout import short
from isde.plots.common import LETTERS, require_matplotlib
from isde.trees import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from isde.structure_estimator import StructureEstimator
    from isde.tree_gains import EdgeGain

NODE, LINE, TEXT = "#c9d8e8", "#3b5b7a", "#20303f"

STEPS = 300
"""Of the layout: graphs of sixty columns no longer move."""

MOST_LABELS = 24
"""Edges up to which each one's gain is written beside it."""


LABEL_POINTS, ROOMY_LETTERS = 10.0, 14
"""Size of names, and the longest that two columns side by side have room for in that size."""


class GraphDisplay:
    """Columns, and a line between all pairs that share a clique, the wider the more it gains.

    Columns that hang together stand together; what is independent stands apart.

    Parameters
    ----------
    tree : Tree
    names : sequence of str
        Of the columns.
    gains : sequence of EdgeGain
        Of the edges; none, or one for each.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    positions_ : ndarray of shape (n columns, 2)
        Where columns stand.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    positions_: Matrix

    def __init__(self, tree: Tree, names: Sequence[str], gains: Sequence[EdgeGain] = ()) -> None:
        self.tree = tree
        self.names = names
        self.gains = gains

    @classmethod
    def from_estimator(cls, model: StructureEstimator, *, ax: Axes | None = None) -> GraphDisplay:
        """Draw the structure of a fitted `TreeISDE`, or the blocks of an `ISDE`."""
        return cls(model.density_.tree, model.density_.names, model.edge_gains_).plot(ax)

    def plot(self, ax: Axes | None = None) -> GraphDisplay:
        """Draw on `ax`, or on a new figure."""
        require_matplotlib()
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=graph_figure_size(len(self.names)), layout="constrained")
        self.positions_ = layout(self.tree, len(self.names))
        widths = self._widths()
        for (a, b), width in zip(self.tree.edges, widths, strict=True):
            ax.plot(*self.positions_[[a, b]].T, color=LINE, linewidth=width, alpha=0.6, zorder=1)
        self._write_gains(ax)
        self._write_names(ax)
        ax.set_axis_off()
        ax.set_aspect("equal")
        ax.margins(0.12)
        ax.update_datalim(self.positions_)
        ax.autoscale_view()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _write_names(self, ax: Axes) -> None:
        """In boxes, cut where they are long, and small where they would meet."""
        labels = [short(name, LETTERS) for name in self.names]
        size = LABEL_POINTS * min(1.0, ROOMY_LETTERS / max(map(len, labels)))
        box: dict[str, Any] = {"boxstyle": "round,pad=0.3", "facecolor": NODE, "edgecolor": LINE, "linewidth": 0.9}
        centred: dict[str, Any] = {"ha": "center", "va": "center", "color": TEXT, "bbox": box, "zorder": 3}
        for (x, y), label in zip(self.positions_, labels, strict=True):
            # Names are no mathematics: a dollar sign stays one.
            ax.text(x, y, label, fontsize=size, parse_math=False, **centred)

    def _widths(self) -> list[float]:
        """Of the lines, between 1 and 6 points."""
        gain = {one.edge: max(one.gain, 0.0) for one in self.gains}
        most = max(gain.values(), default=0.0)
        return [1.0 + 5.0 * gain.get(edge, 0.0) / most if most > 0 else 1.5 for edge in self.tree.edges]

    def _write_gains(self, ax: Axes) -> None:
        if len(self.gains) <= MOST_LABELS:
            for one in self.gains:
                x, y = self.positions_[list(one.edge)].mean(axis=0)
                text = f"{one.gain:.2f}".replace("-", "−")
                around = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
                ax.text(x, y, text, ha="center", va="center", fontsize="x-small", color=LINE, bbox=around, zorder=2)


def graph_figure_size(n_columns: int) -> tuple[float, float]:
    """Inches that leave each column room for its name."""
    side = max(4.0, 2.2 * float(np.sqrt(n_columns)))
    return 1.3 * side, side


def layout(tree: Tree, n_columns: int) -> Matrix:
    """Where columns stand: those that hang together as far apart as the graph has them, components in rows."""
    positions = np.zeros((n_columns, 2))
    parts = sorted(tree.components, key=len, reverse=True)
    drawn = [_spread(tree, columns) for columns in parts]
    row_width = 1.3 * float(np.sqrt(sum(np.prod(part.max(axis=0) + 1.0) for part in drawn)))
    left = top = height = 0.0
    for columns, part in zip(parts, drawn, strict=True):
        size = part.max(axis=0) + 1.0  # a step of room between components
        if left > 0 and left + size[0] > row_width:
            left, top, height = 0.0, top - height, 0.0
        positions[list(columns)] = part + np.array([left, top - part[:, 1].max()])
        left, height = left + float(size[0]), max(height, float(size[1]))
    return positions


def _spread(tree: Tree, columns: Sequence[int]) -> Matrix:
    """Columns of one component in the plane, at distances near those along its edges (least squares, by SMACOF)."""
    n = len(columns)
    if n == 1:
        return np.zeros((1, 2))
    place = {column: i for i, column in enumerate(columns)}
    ends = np.array([(place[a], place[b]) for a, b in tree.edges if a in place])
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    wanted = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    angles = 2 * np.pi * np.arange(n) / n
    points = np.column_stack([np.cos(angles), np.sin(angles)]) * (wanted.max() / 2) * (1 + 0.1 * angles[:, None])
    for _ in range(STEPS):
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        ratio = np.divide(wanted, apart, out=np.zeros((n, n)), where=apart > 0)
        points = (ratio.sum(axis=1)[:, None] * points - ratio @ points) / n
    points = points @ np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2].T  # the long way across
    spread: Matrix = points - points.min(axis=0)
    return spread
