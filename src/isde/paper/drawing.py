"""Figures of the items: draw numbers on an axis, compute nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from isde.plots import EDGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure

    from isde.paper.item import Results

COLOURS = ("#4c78a8", "#9d9da1", "#e45756")
"""Best, random, worst; told apart by colour-blind eyes, and by position."""


def boxes(ax: Axes, groups: Mapping[str, Sequence[float]], colours: Sequence[str]) -> None:
    """A box for each group, side by side as in the paper."""
    line = {"color": EDGE, "linewidth": 0.9}
    drawn = ax.boxplot(
        [list(values) for values in groups.values()],
        tick_labels=list(groups),
        widths=0.6,
        patch_artist=True,
        whiskerprops=line,
        capprops=line,
        medianprops={"color": "black", "linewidth": 1.4},
        flierprops={"marker": "o", "markersize": 3, "markerfacecolor": "none", "markeredgecolor": EDGE},
    )
    for box, colour in zip(drawn["boxes"], colours, strict=True):
        box.set_facecolor(colour)
        box.set_edgecolor(EDGE)
    _dress(ax)


def log_likelihoods(figure: Figure, groups: Mapping[str, Sequence[float]], colours: Sequence[str], title: str) -> None:
    """A figure of boxes, one for each method or partition."""
    ax = figure.subplots()
    boxes(ax, groups, colours)
    ax.set_ylabel("mean log-likelihood of a sample, nats per row")
    ax.set_title(title)


def dots(ax: Axes, groups: Mapping[str, Sequence[float]]) -> None:
    """Every value of each group as a dot, moved a little sideways; a line at the mean."""
    for place, (values, colour) in enumerate(zip(groups.values(), COLOURS, strict=True)):
        shift = np.linspace(-0.2, 0.2, len(values)) if len(values) > 1 else np.zeros(len(values))
        ax.plot(place + shift, values, "o", color=colour, markersize=6, alpha=0.8)
        ax.hlines(float(np.mean(values)), place - 0.3, place + 0.3, color="black", linewidth=1.2)
    ax.set_xticks(range(len(groups)), list(groups))
    _dress(ax)


def scatter(ax: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """Points, and the mean of y for each value of x, a whole number."""
    from matplotlib.ticker import MaxNLocator  # who draws has matplotlib

    # Hundreds of points lie on each other, a few must be seen.
    size, alpha = (3.5, 0.35) if len(x) > 300 else (5, 0.55)
    ax.plot(x, y, "o", color=COLOURS[0], markersize=size, alpha=alpha, markeredgewidth=0)
    places = sorted(set(x))
    means = [float(np.mean([b for a, b in zip(x, y, strict=True) if a == place])) for place in places]
    ax.plot(places, means, "-", color="black", linewidth=1.2, label="mean at each distance")
    ax.legend(frameon=False, fontsize=8)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _dress(ax)


def scatter_both(results: Results, figure: Figure, title: str) -> None:
    """Log-likelihood against either kind of edit distance."""
    axes = figure.subplots(1, 2, sharey=True)
    labels = {"edit_distance": "edit distance", "paper_edit_distance": "edit distance, the author's variant"}
    for ax, (column, label) in zip(axes, labels.items(), strict=True):
        scatter(ax, results.column(column), results.column("log_likelihood"))
        ax.set_xlabel(label)
    axes[0].set_ylabel("mean validation log-likelihood, nats per row")
    figure.suptitle(f"{title}: {results.title}", fontsize=11)


def histogram(ax: Axes, edges: Sequence[float], counts: Sequence[int]) -> None:
    """Counts between edges."""
    ax.stairs(counts, edges, fill=True, color=COLOURS[0])
    ax.set_ylim(bottom=0)
    _dress(ax)


def _dress(ax: Axes) -> None:
    ax.grid(axis="y", color="#dddddd", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
