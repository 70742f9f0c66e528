"""The picture of a fit in the README: `make picture` draws it anew, from built-in data."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from isde import ISDE, count_partitions
from isde.plots import BlockDensityDisplay, BlockDiagramDisplay, GainHeatmapDisplay, NeighbourhoodDisplay
from isde.synthetic import demo_table

PLACE = Path(__file__).with_name("fit.png")


def main() -> None:
    table = demo_table()
    model = ISDE(max_block_size=4, random_state=0, n_jobs=-1).fit(table)
    figure = Figure(figsize=(11, 6.3), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[0.9, 2.5])
    diagram = BlockDiagramDisplay.from_estimator(model, ax=above.subplots())
    found, n_partitions = len(model.partition_), count_partitions(len(table.names), 4)
    title = f"{len(table.names)} columns, {found} blocks, {model.selection_.proof} best of {n_partitions:,} partitions"
    diagram.ax_.set_title(title, fontsize=10)
    left, middle, right = below.subplots(1, 3, width_ratios=[1.3, 1, 1])
    GainHeatmapDisplay.from_estimator(model, ax=left)
    rings = next(block for block in model.partition_ if table.names[block[0]].startswith("ring"))
    shown = BlockDensityDisplay.from_estimator(model, rings, table, ax=middle)
    shown.axes_[0].set_aspect("equal")
    NeighbourhoodDisplay.from_estimator(model, ax=right)
    right.set_box_aspect(1)
    right.set_xlabel("splits and merges")
    figure.savefig(PLACE, dpi=110)
    print(f"Written to {PLACE}")


if __name__ == "__main__":
    main()
