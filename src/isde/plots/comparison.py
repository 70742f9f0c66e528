"""Density estimators side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from isde.arrays import Vector
from isde.comparison import SCALE_NOTE
from isde.plots.common import BEST, BOX, EDGE, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from isde.comparison import Comparison

FAR_BEHIND = 3.0


class ComparisonDisplay:
    """Validation log-likelihood of each method, one box for each, the best on top.

    Every row counts: a sample with a row of density zero is at -inf, left of every axis, and the method's label says
    how many such samples it has.

    Parameters
    ----------
    samples : mapping of str to ndarray
        Mean log-likelihood of each validation sample, for each method.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    boxes_ : dict
        The artists of the boxes, as `Axes.boxplot` returns them.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    boxes_: dict[str, list[Any]]

    def __init__(self, samples: Mapping[str, Vector]) -> None:
        self.samples = samples

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, ax: Axes | None = None) -> ComparisonDisplay:
        """Draw the samples of a `Comparison`; methods that failed have none."""
        return cls({method: comparison.samples(method).ravel() for method in comparison.methods}).plot(ax)

    def plot(self, ax: Axes | None = None) -> ComparisonDisplay:
        """Draw on `ax`, or on a new figure."""
        require_matplotlib()
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=figure_size(len(self.samples)), layout="constrained")
        order = sorted(self.samples, key=lambda method: float(np.median(self.samples[method])))  # drawn upwards
        finite = [self.samples[method][np.isfinite(self.samples[method])] for method in order]
        line = {"color": EDGE, "linewidth": 0.9}
        self.boxes_ = ax.boxplot(
            finite,
            orientation="horizontal",
            widths=0.55,
            patch_artist=True,
            tick_labels=[self._label(method) for method in order],
            boxprops={"facecolor": BOX, "edgecolor": EDGE, "linewidth": 0.9},
            whiskerprops=line,
            capprops=line,
            medianprops={"color": EDGE, "linewidth": 1.5},
            flierprops={"marker": "o", "markersize": 3, "markerfacecolor": "none", "markeredgecolor": EDGE},
        )
        self.boxes_["boxes"][-1].set_facecolor(BEST)
        ax.get_yticklabels()[-1].set_fontweight("bold")
        self._write_medians(ax, finite)
        self._dress(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _label(self, method: str) -> str:
        endless = int((~np.isfinite(self.samples[method])).sum())
        return f"{method}\n({endless} of {len(self.samples[method])} at −∞)" if endless else method

    @staticmethod
    def _write_medians(ax: Axes, finite: list[Vector]) -> None:
        """The median in figures right of the axis: a box can be thinner than its line, or left of the axis."""
        limits = _close_limits(finite)
        if limits is not None:
            ax.set_xlim(limits)
        place: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "color": EDGE}
        for height, values in enumerate(finite, start=1):
            if len(values):
                text = f"{np.median(values):.2f}".replace("-", "−")
                ax.text(1.09, height, text, ha="right", **place)
                if limits is not None and np.median(values) < limits[0]:
                    ax.text(0.01, height, f"◂ {text}", ha="left", **place)

    @staticmethod
    def _dress(ax: Axes) -> None:
        ax.set_xlabel(f"mean validation log-likelihood, every row counted; median on the right\n({SCALE_NOTE})")
        ax.grid(axis="x", color="#dddddd", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.tick_params(axis="y", length=0)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)


def _close_limits(finite: list[Vector]) -> tuple[float, float] | None:
    """The ends of an axis that leaves out methods far behind, so that the others can be told apart.

    None where no method is far behind. Methods come worst first; one is far behind where the gap above it is more than
    `FAR_BEHIND` times what the methods above it span, and these are at least two.

    >>> _close_limits([np.array([-9.0, -8.0]), np.array([0.0, 0.2]), np.array([0.8, 1.0])])
    (-0.05, 1.05)
    >>> _close_limits([np.array([-2.0, -1.0]), np.array([0.0, 0.2]), np.array([0.8, 1.0])])
    """
    drawn = [values for values in finite if len(values)]
    for first in range(len(drawn) - 2, 0, -1):
        rest = np.concatenate(drawn[first:])
        low, high = float(rest.min()), float(rest.max())
        if low - float(drawn[first - 1].max()) > FAR_BEHIND * (high - low):
            margin = 0.05 * (high - low)
            return low - margin, high + margin
    return None


def figure_size(n_methods: int) -> tuple[float, float]:
    """Inches that give each method the same height."""
    return 8.0, 1.3 + 0.5 * n_methods
