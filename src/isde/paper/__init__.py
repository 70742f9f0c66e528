"""The paper again: every table and figure as an item that a command runs, with published numbers beside.

Each item has a file of its name. Nothing outside `isde.cli.reproduce` imports this room.
"""

from __future__ import annotations

from isde.errors import InputError
from isde.paper import (
    figure_best_partitions,
    figure_edit_distances,
    figure_landscape,
    figure_levine_boxplot,
    figure_partitions_boxplot,
    figure_random_walks,
    table_counts,
    table_gaussian,
    table_running_times,
    table_selection_brute_force,
    table_synthetic,
)
from isde.paper.item import Item

ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        table_counts.ITEM,
        table_selection_brute_force.ITEM,
        table_synthetic.ITEM,
        figure_levine_boxplot.ITEM,
        figure_partitions_boxplot.ITEM,
        figure_edit_distances.ITEM,
        figure_random_walks.ITEM,
        figure_landscape.ITEM,
        figure_best_partitions.ITEM,
        table_running_times.KDE,
        table_running_times.SCORES,
        table_running_times.SELECTION,
        table_gaussian.ITEM,
    )
}
"""In the order of the paper; the appendix last."""


def find_item(name: str) -> Item:
    """The item with a name; raises for one that does not exist."""
    if name not in ITEMS:
        raise InputError(f"There is no item {name!r}: there are {', '.join(ITEMS)}.")
    return ITEMS[name]
