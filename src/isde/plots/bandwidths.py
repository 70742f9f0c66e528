"""Cross-validated log-likelihood against bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isde.data.words import in_braces
from isde.inspection import BandwidthCurve, bandwidth_curve
from isde.plots.common import BEST, EDGE, axes_for, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class BandwidthDisplay:
    """The curve that the bandwidth of a block was chosen from, and the one chosen.

    Parameters
    ----------
    curve : BandwidthCurve

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : Line2D
    """

    ax_: Axes
    figure_: Any
    line_: Any

    def __init__(self, curve: BandwidthCurve) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(cls, model: Any, X: Any, block: Sequence[int], *, ax: Axes | None = None) -> BandwidthDisplay:
        """Draw the curve of one block of kernels."""
        return cls(bandwidth_curve(model, X, block)).plot(ax)

    def plot(self, ax: Axes | None = None) -> BandwidthDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = axes_for(ax, (5.2, 3.4))
        (self.line_,) = ax.plot(self.curve.bandwidths, self.curve.scores, "-o", color=EDGE, markersize=3)
        ax.axvline(self.curve.chosen, color=BEST, linewidth=1.4, label=f"chosen {self.curve.chosen:.3g}")
        ax.set_xscale("log")
        finite = self.curve.scores.max()
        ax.set_ylim(bottom=max(self.curve.scores.min(), finite - 4), top=finite + 0.2)
        ax.set_xlabel("bandwidth on the rescaled data")
        ax.set_ylabel("log-likelihood left out, nats")
        ax.set_title(in_braces(self.curve.names), fontsize=10, parse_math=False)
        ax.legend(frameon=False, fontsize=8)
        plain(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
