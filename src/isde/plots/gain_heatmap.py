"""What pairs of columns gain, as a matrix ordered by blocks, with the tree that gives the order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isde.arrays import Matrix
from isde.inspection import Hierarchy, PairGains, blocks_of, hierarchy, pair_gains, scores_of
from isde.plots.common import EDGE, FAINT, axes_for, label_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class GainHeatmapDisplay:
    """The gain of every pair of columns; white where it is no more than chance gives. Blocks are framed.

    Above it stands the tree of `isde.inspection.hierarchy`, its heights 1 - r.

    Parameters
    ----------
    pairs : PairGains
    tree : Hierarchy

    Attributes
    ----------
    ax_, tree_ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : AxesImage
    shown_ : ndarray
        The matrix drawn: gains in the order of the tree, NaN where white.
    """

    ax_: Axes
    tree_ax_: Axes
    figure_: Any
    image_: Any
    shown_: Matrix

    def __init__(self, pairs: PairGains, tree: Hierarchy) -> None:
        self.pairs = pairs
        self.tree = tree

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None) -> GainHeatmapDisplay:
        """Draw the pairs of a fitted model's score table."""
        scores = scores_of(model)
        return cls(pair_gains(scores, blocks_of(model)), hierarchy(scores, model.partition_)).plot(ax)

    def plot(self, ax: Axes | None = None) -> GainHeatmapDisplay:
        """Draw on `ax`, or on a new figure."""
        d = len(self.pairs.names)
        side = min(max(4.2, 0.17 * d), 12.0)
        ax = axes_for(ax, (side + 1.6, side + 1.2))
        from matplotlib.colors import PowerNorm

        order = list(self.tree.order)
        shown = np.where(self.pairs.passes, self.pairs.gains, np.nan)[np.ix_(order, order)]
        largest = np.nanmax(shown, initial=1e-12)
        norm = PowerNorm(0.5, vmin=0, vmax=largest)  # a root: weak gains are seen beside strong ones
        self.image_ = ax.imshow(shown, cmap="Blues", norm=norm, interpolation="nearest", aspect="equal")
        names = [self.pairs.names[c] for c in order]
        size = min(9.0, 330 / d)
        label_places(ax.xaxis, names, size)
        label_places(ax.yaxis, names, size)
        ax.tick_params(axis="x", rotation=90)
        ax.figure.colorbar(self.image_, ax=ax, shrink=0.6, label="gain of a pair, nats (white: chance)")
        for spine in ax.spines.values():
            spine.set_color(FAINT)
        self._frames(ax, order)
        self.tree_ax_ = ax.inset_axes((0, 1.01, 1, 0.18))
        self._tree(self.tree_ax_)
        self.ax_, self.figure_, self.shown_ = ax, ax.figure, shown
        return self

    def _frames(self, ax: Axes, order: list[int]) -> None:
        from matplotlib.patches import Rectangle

        for block in self.pairs.blocks:
            places = sorted(order.index(c) for c in block)
            if len(block) > 1 and places[-1] - places[0] == len(block) - 1:
                corner = (places[0] - 0.5, places[0] - 0.5)
                ax.add_patch(Rectangle(corner, len(block), len(block), fill=False, edgecolor="#d55e00", linewidth=1.3))

    def _tree(self, ax: Axes) -> None:
        d = len(self.tree.order)
        x = {column: float(place) for place, column in enumerate(self.tree.order)}
        height = dict.fromkeys(range(d), 0.0)
        for number, merge in enumerate(self.tree.merges):
            left, right = merge.left, merge.right
            xs = [x[left], x[left], x[right], x[right]]
            ys = [height[left], merge.height, merge.height, height[right]]
            ax.plot(xs, ys, color="#d55e00" if merge.inside else EDGE, linewidth=1)
            x[d + number], height[d + number] = (x[left] + x[right]) / 2, merge.height
        ax.set_xlim(-0.5, d - 0.5)
        ax.set_ylim(0, 1.05)
        ax.set_axis_off()
