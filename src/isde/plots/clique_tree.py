"""The cliques of a tree of blocks, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isde.layout import BoxTree, place_tree, short
from isde.plots.common import BLOCK_COLOURS, EDGE, axes_for
from isde.trees import NO_PARENT, Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LETTERS = 28


class CliqueTreeDisplay:
    """Each clique below the one it hangs on; the line names the columns that both have.

    Given these, what hangs below is independent of the rest. Cliques that share nothing are not drawn.

    Parameters
    ----------
    tree : Tree
    names : sequence of str
        Of the columns.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    boxes_ : BoxTree
        Where cliques stand, by their place in the tree.
    separators_ : dict
        The text of each line, by the clique that hangs there.
    """

    ax_: Axes
    figure_: Any
    boxes_: BoxTree
    separators_: dict[int, Any]

    def __init__(self, tree: Tree, names: Sequence[str]) -> None:
        self.tree = tree
        self.names = names

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None) -> CliqueTreeDisplay:
        """Draw the tree of a fitted `TreeISDE`."""
        return cls(model.density_.tree, model.density_.names).plot(ax)

    def plot(self, ax: Axes | None = None) -> CliqueTreeDisplay:
        """Draw on `ax`, or on a new figure."""
        labels = [self._label(clique) for clique in self.tree.cliques]
        parents = {i: parent for i, parent in enumerate(self.tree.parents) if parent != NO_PARENT}
        self.boxes_ = tree = place_tree(labels, parents)
        ax = axes_for(ax, (max(tree.width, 120) / 80, max(tree.height, 60) / 80))
        ax.set_xlim(-4, max(tree.width, 120))
        ax.set_ylim(max(tree.height, 60), -4)
        ax.set_axis_off()
        self.separators_ = {}
        for place, parent in parents.items():
            above, here = tree.boxes[parent], tree.boxes[place]
            ax.plot([above.x, here.x], [above.y, here.y], color=EDGE, linewidth=1.2, zorder=1)
            shared = [c for c in self.tree.cliques[place] if c in self.tree.cliques[parent]]
            self.separators_[place] = ax.text(
                (above.x + here.x) / 2,
                (above.y + here.y) / 2,
                self._label(shared),
                fontsize=7,
                color=EDGE,
                backgroundcolor="white",
                zorder=2,
                **CENTRED,
            )
        for place, box in tree.boxes.items():
            frame = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": BLOCK_COLOURS[0]}
            ax.text(box.x, box.y, labels[place], fontsize=8, bbox=frame, zorder=3, **CENTRED)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _label(self, columns: Sequence[int]) -> str:
        return short(", ".join(self.names[c] for c in columns), LETTERS)


CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
