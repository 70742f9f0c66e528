"""How often two columns share a block when the rows are drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isde.arrays import Matrix
from isde.plots.common import axes_for, label_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isde.stability import Stability


class CoBlockDisplay:
    """Shares of resamples in which two columns stand in one block, ordered by the blocks found.

    Parameters
    ----------
    stability : Stability

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : AxesImage
    shown_ : ndarray
        The matrix drawn, in the order of the blocks.
    """

    ax_: Axes
    figure_: Any
    image_: Any
    shown_: Matrix

    def __init__(self, stability: Stability) -> None:
        self.stability = stability

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, n: int = 50, *, ax: Axes | None = None, random_state: int = 0
    ) -> CoBlockDisplay:
        """Resample the rows `X` of a fitted model, and draw."""
        return cls(model.stability(X, n, n_null=0, random_state=random_state)).plot(ax)

    def plot(self, ax: Axes | None = None) -> CoBlockDisplay:
        """Draw on `ax`, or on a new figure."""
        order = [c for block in sorted(self.stability.partition, key=lambda b: (-len(b), b)) for c in block]
        d = len(order)
        side = min(max(4.0, 0.17 * d), 12.0)
        ax = axes_for(ax, (side + 1.4, side + 0.6))
        self.shown_ = self.stability.together[np.ix_(order, order)]
        self.image_ = ax.imshow(self.shown_, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
        names = [self.stability.names[c] for c in order]
        for axis in (ax.xaxis, ax.yaxis):
            label_places(axis, names, min(9.0, 330 / d))
        ax.tick_params(axis="x", rotation=90)
        ax.figure.colorbar(self.image_, ax=ax, shrink=0.6, label="share of resamples in one block")
        self.ax_, self.figure_ = ax, ax.figure
        return self
