"""The paper again: every table and figure as an item that a command runs, with published numbers beside."""

from __future__ import annotations

from isde.errors import InputError
from isde.reproduction import (
    counts,
    gaussian,
    landscape,
    partitions,
    real_data,
    running_times,
    selection_times,
    synthetic,
)
from isde.reproduction.item import Item

ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        counts.ITEM,
        selection_times.ITEM,
        synthetic.ITEM,
        real_data.ITEM,
        partitions.BOXES,
        partitions.EDITS,
        partitions.WALKS,
        landscape.LANDSCAPE,
        landscape.ABOVE,
        running_times.KDE,
        running_times.SCORES,
        running_times.SELECTION,
        gaussian.ITEM,
    )
}
"""In the order of the paper; the appendix last."""


def find_item(name: str) -> Item:
    """The item with a name; raises for one that does not exist."""
    if name not in ITEMS:
        raise InputError(f"There is no item {name!r}: there are {', '.join(ITEMS)}.")
    return ITEMS[name]
