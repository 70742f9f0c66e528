"""Columns grouped into blocks, joined by what pairs of them gain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isde.inspection import PairGains, blocks_of, group_gains, pair_gains, scores_of
from isde.layout import Diagram, place_blocks, short
from isde.partitions import Partition
from isde.plots.common import ALONE, BLOCK_COLOURS, EDGE, FAINT, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 820.0
WIDEST = 5.0
"""Points of the line of the largest gain."""


class BlockDiagramDisplay:
    """Columns as dots, blocks as cards; lines are as wide as the gain of a pair, dashed where it crosses blocks.

    Only pairs that gain more than chance gives are joined, and of those across blocks only the `max_across` strongest.
    Inside a block a thin dotted line stands for a pair that gains no more than chance: what holds it is joint.

    Parameters
    ----------
    groups : tuple of tuples of int
        Blocks, or the components of a tree.
    pairs : PairGains
        The gain of each pair, and which pairs stand together.
    group_gains : sequence of float
        What each group is worth, nats.
    max_across : int, default=40
        Lines across blocks.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    diagram_ : Diagram
        Where everything stands.
    lines_ : dict
        The line of each pair that is joined, by its columns.
    """

    ax_: Axes
    figure_: Any
    diagram_: Diagram
    lines_: dict[tuple[int, int], Any]

    def __init__(
        self, groups: Partition, pairs: PairGains, group_gains: Sequence[float], *, max_across: int = 40
    ) -> None:
        self.groups = groups
        self.pairs = pairs
        self.group_gains = group_gains
        self.max_across = max_across

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None, max_across: int = 40) -> BlockDiagramDisplay:
        """Draw the structure of a fitted model."""
        pairs = pair_gains(scores_of(model), blocks_of(model))
        return cls(model.partition_, pairs, group_gains(model), max_across=max_across).plot(ax)

    def plot(self, ax: Axes | None = None) -> BlockDiagramDisplay:
        """Draw on `ax`, or on a new figure."""
        order = np.argsort([-gain for gain in self.group_gains], kind="stable").tolist()
        self.diagram_ = place_blocks(self.groups, self.pairs.names, WIDTH, order)
        width, height = self.diagram_.width, self.diagram_.height
        ax = axes_for(ax, (width / 96, max(height, 60) / 96))
        ax.set_xlim(-4, width + 4)
        ax.set_ylim(height, -4)
        ax.set_aspect("equal")
        ax.set_axis_off()
        self._cards(ax)
        self._lines(ax)
        self._nodes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _colours(self) -> dict[int, str]:
        """By group, in the order in which they stand."""
        several = [card.place for card in self.diagram_.cards if len(card.nodes) > 1]
        return {place: BLOCK_COLOURS[i % len(BLOCK_COLOURS)] for i, place in enumerate(several)}

    def _cards(self, ax: Axes) -> None:
        from matplotlib.patches import FancyBboxPatch

        colours = self._colours()
        for card in self.diagram_.cards:
            if card.place not in colours:
                continue
            colour = colours[card.place]
            box = FancyBboxPatch(
                (card.x + 4, card.y + 4),
                card.width - 8,
                card.height - 8,
                boxstyle="round,pad=2,rounding_size=8",
                facecolor=(colour, 0.08),
                edgecolor=(colour, 0.55),
                linewidth=1,
            )
            ax.add_patch(box)
            gain = self.group_gains[card.place]
            ax.text(card.x + 12, card.y + 17, f"{gain:.3g} nats", fontsize=7.5, color=colour, va="center")

    def _lines(self, ax: Axes) -> None:
        nodes, widest = self.diagram_.nodes, np.nanmax(self.pairs.gains, initial=1e-12)
        self.lines_ = {}
        for i, j in self._joined():
            inside, gain = self.pairs.inside[i, j], self.pairs.gains[i, j]
            passes = bool(self.pairs.passes[i, j])
            style = ":" if not passes else "-" if inside else "--"
            width = max(WIDEST * gain / widest, 0.8) if passes else 0.6
            (self.lines_[i, j],) = ax.plot(
                [nodes[i].x, nodes[j].x],
                [nodes[i].y, nodes[j].y],
                linewidth=width,
                linestyle=style,
                color=EDGE if inside else FAINT,
                solid_capstyle="round",
                zorder=2 if inside else 1.5,
            )

    def _joined(self) -> list[tuple[int, int]]:
        """Pairs that a line joins: those inside blocks, and the strongest across that pass."""
        inside, gains = self.pairs.inside, self.pairs.gains
        pairs = [(int(i), int(j)) for i, j in zip(*np.triu_indices(len(gains), 1), strict=True)]
        group_of = {column: i for i, group in enumerate(self.groups) for column in group}
        across = [pair for pair in pairs if group_of[pair[0]] != group_of[pair[1]] and self.pairs.passes[pair]]
        across.sort(key=lambda pair: -gains[pair])
        return [pair for pair in pairs if inside[pair]] + across[: self.max_across]

    def _nodes(self, ax: Axes) -> None:
        colours = self._colours()
        for card in self.diagram_.cards:
            colour = colours.get(card.place, ALONE)
            for node in card.nodes:
                ax.plot([node.x], [node.y], "o", color=colour, markersize=6.5, zorder=3, markeredgecolor="white")
                ax.text(
                    node.x + 9 * node.side,
                    node.y,
                    short(self.pairs.names[node.column]),
                    ha="left" if node.side > 0 else "right",
                    va="center",
                    fontsize=8,
                    parse_math=False,
                    zorder=4,
                )
