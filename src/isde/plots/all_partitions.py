"""The scores of all partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isde.inspection import Landscape, landscape, scores_of
from isde.plots.common import BEST, EDGE, axes_for, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isde.scores import SubsetScores


class LandscapeDisplay:
    """How many partitions score what; the best one is at the right end.

    Parameters
    ----------
    landscape : Landscape

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    steps_ : StepPatch
        The histogram.
    """

    ax_: Axes
    figure_: Any
    steps_: Any

    def __init__(self, landscape: Landscape) -> None:
        self.landscape = landscape

    @classmethod
    def from_estimator(cls, model: Any, *, bins: int = 100, ax: Axes | None = None) -> LandscapeDisplay:
        """Score all partitions of a fitted model's table."""
        return cls.from_scores(scores_of(model), bins=bins, ax=ax)

    @classmethod
    def from_scores(cls, scores: SubsetScores, *, bins: int = 100, ax: Axes | None = None) -> LandscapeDisplay:
        return cls(landscape(scores, bins)).plot(ax)

    def plot(self, ax: Axes | None = None) -> LandscapeDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = axes_for(ax, (7.0, 3.6))
        found = self.landscape
        self.steps_ = ax.stairs(found.counts, found.edges, fill=True, color=EDGE)
        ax.axvline(found.edges[-1], color=BEST, linewidth=1.4)
        ax.annotate(
            f"best {found.edges[-1]:.4g}",
            (found.edges[-1], 0.96),
            xycoords=("data", "axes fraction"),
            xytext=(-5, 0),
            textcoords="offset points",
            ha="right",
            va="top",
        )
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set_xlabel("score, nats per row")
        ax.set_ylabel("partitions")
        ax.set_title(f"all {found.n_partitions:,} partitions", fontsize=10)
        plain(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
