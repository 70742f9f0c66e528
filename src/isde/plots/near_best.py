"""Partitions around the best one, and the best, random and worst."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from isde.arrays import Vector
from isde.inspection import Neighbourhood, extremes, neighbourhood, scores_of
from isde.plots.common import BEST, EDGE, axes_for, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUP_COLOURS = {"best": "#4c78a8", "random": "#9d9da1", "worst": "#e45756"}


class NeighbourhoodDisplay:
    """What partitions score less than the best one, against the splits and merges that lead to them.

    Parameters
    ----------
    neighbourhood : Neighbourhood

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : Line2D
    """

    ax_: Axes
    figure_: Any
    points_: Any

    def __init__(self, neighbourhood: Neighbourhood) -> None:
        self.neighbourhood = neighbourhood

    @classmethod
    def from_estimator(
        cls, model: Any, n_walks: int = 20, n_steps: int = 25, *, ax: Axes | None = None, random_state: int = 0
    ) -> NeighbourhoodDisplay:
        """Walk from the best partition of a fitted model's table."""
        return cls(neighbourhood(scores_of(model), n_walks, n_steps, random_state=random_state)).plot(ax)

    def plot(self, ax: Axes | None = None) -> NeighbourhoodDisplay:
        """Draw on `ax`, or on a new figure."""
        from matplotlib.ticker import MaxNLocator

        ax = axes_for(ax, (6.4, 3.8))
        edits, below = self.neighbourhood.edits, self.neighbourhood.below
        (self.points_,) = ax.plot(edits, -below, "o", color=EDGE, markersize=4, alpha=0.45, markeredgewidth=0)
        places = np.unique(edits)
        with np.errstate(invalid="ignore"):
            means = [-below[edits == place].mean() for place in places]
        ax.plot(places, means, color=BEST, linewidth=1.6, label="mean at each distance")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("splits and merges from the best partition")
        ax.set_ylabel("objective, relative to the best, nats")
        ax.legend(frameon=False, fontsize=8)
        plain(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ExtremesDisplay:
    """A box each for the scores of the best, of random and of the worst partitions.

    Parameters
    ----------
    groups : mapping of str to ndarray
        Scores of partitions; those at -inf are counted in the label.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    boxes_ : dict
    """

    ax_: Axes
    figure_: Any
    boxes_: dict[str, list[Any]]

    def __init__(self, groups: Mapping[str, Vector]) -> None:
        self.groups = groups

    @classmethod
    def from_estimator(
        cls, model: Any, n: int = 20, *, ax: Axes | None = None, random_state: int = 0
    ) -> ExtremesDisplay:
        """Draw `n` partitions of each kind of a fitted model's table."""
        return cls(extremes(scores_of(model), n, random_state=random_state)).plot(ax)

    def plot(self, ax: Axes | None = None) -> ExtremesDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = axes_for(ax, (5.2, 3.6))
        finite = {name: values[np.isfinite(values)] for name, values in self.groups.items()}
        labels = [
            name if len(finite[name]) == len(values) else f"{name}\n({len(values) - len(finite[name])} at −∞)"
            for name, values in self.groups.items()
        ]
        line = {"color": EDGE, "linewidth": 0.9}
        self.boxes_ = ax.boxplot(
            list(finite.values()),
            tick_labels=labels,
            widths=0.55,
            patch_artist=True,
            whiskerprops=line,
            capprops=line,
            medianprops={"color": "black", "linewidth": 1.4},
            flierprops={"marker": "o", "markersize": 3, "markerfacecolor": "none", "markeredgecolor": EDGE},
        )
        for box, name in zip(self.boxes_["boxes"], self.groups, strict=True):
            box.set_facecolor(GROUP_COLOURS.get(name, "#c9d8e8"))
            box.set_edgecolor(EDGE)
        ax.set_ylabel("score, nats per row")
        plain(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
