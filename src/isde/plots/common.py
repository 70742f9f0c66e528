"""What displays share: colours, and where they draw."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isde.errors import InputError
from isde.layout import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOX, EDGE, BEST = "#c9d8e8", "#3b5b7a", "#e8a04c"
"""Boxes and their lines, and the box of the best method."""

BLOCK_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b58900")
"""Of blocks, one after the other and again from the first: Okabe and Ito's, which colour-blind eyes tell apart."""

LETTERS = 24
"""Of a label; longer names are cut."""

ALONE, FAINT, GRID = "#8a8f98", "#b9bec6", "#e3e5e8"


def require_matplotlib(otherwise: str = "") -> None:
    """Raise, in one sentence, where matplotlib is missing; `otherwise` is the way to do without a figure."""
    if find_spec("matplotlib") is None:
        without = f", or do without the figure ({otherwise})" if otherwise else ""
        raise InputError(f'Figures need matplotlib: pip install "isde[plot]"{without}.')


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes given, or those of a new figure."""
    require_matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    _, ax = pyplot.subplots(figsize=size, layout="constrained")
    return ax


def plain(ax: Axes, *, grid: Literal["both", "x", "y"] | None = "y") -> None:
    """No frame but the axes themselves, and a faint grid."""
    if grid is not None:
        ax.grid(axis=grid, color=GRID, linewidth=0.8)
        ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def label_places(axis: Any, names: list[str], size: float) -> None:
    """A label for each place of a matrix axis, as it is: a name is no formula."""
    axis.set_ticks(np.arange(len(names)), [short(name, LETTERS) for name in names])
    axis.set_tick_params(length=0, labelsize=size)
    for label in axis.get_ticklabels():
        label.set_parse_math(False)
