"""Item 6: how far the next best, random and worst partitions are from the best one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from isde.paper import drawing
from isde.paper.inputs import KNOWN_BEST
from isde.paper.item import Finding, Item, Outcome, Results, Row, Settings, Step
from isde.paper.other_partitions import GROUPS, groups_of, placed, scores_for
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.solvers import select_partition


def steps(settings: Settings) -> list[Step]:
    """One step for each group of partitions, the optimum before them."""
    scores = scores_for(settings)
    best = select_partition(scores).partition
    groups = {"optimum": [best]} | groups_of(scores, settings.pick(10, 10, 3), settings.seed)
    return [Step({"group": group}, partial(_measure, scores, best, some)) for group, some in groups.items()]


def _measure(scores: SubsetScores, best: Partition, partitions: list[Partition], _: Sequence[Row]) -> Outcome:
    places = (placed(scores, partition, best) for partition in partitions)
    return Outcome([{"rank": rank} | place for rank, place in enumerate(places, start=1)])


def findings(results: Results) -> list[Finding]:
    """The optimum, and the mean distance of each group from it."""
    (optimum,) = results.where(group="optimum")
    name = results.settings["file"]
    known = None if results.settings["max_block_size"] else KNOWN_BEST.get(results.settings["sha256"])
    blocks = [f"({block.replace(' ', ',')})" for block in optimum["partition"].split(" | ") if " " in block]
    found = []
    if known is not None:
        score, together = known
        agrees = abs(optimum["score"] - score) < 1e-9 and sorted(blocks) == sorted(together.split())
        found.append(
            Finding(
                f"{name}: best partition, blocks of two or more",
                f"{score:.9f}: {together}",
                f"{optimum['score']:.9f}: {' '.join(blocks)}",
                "The same." if agrees else "THE OPTIMUM DIFFERS.",
            )
        )
    means = {
        group: [np.mean(results.column(column, group=group)) for column in ("edit_distance", "paper_edit_distance")]
        for group in GROUPS
    }
    larger = sum(row["paper_edit_distance"] > row["edit_distance"] for row in results.rows)
    found.append(
        Finding(
            f"{name}: mean edit distance from the optimum (the author's variant)",
            "best below random and worst (figure)",
            ", ".join(f"{group} {exact:.1f} ({paper:.1f})" for group, (exact, paper) in means.items()),
            (
                "The same order"
                if means["best"][0] < min(means["random"][0], means["worst"][0])
                else "Another order on these data"
            )
            + f"; the author's variant is larger than the smallest number of splits and merges for {larger} of "
            f"{len(results.rows) - 1} partitions.",
        )
    )
    return found


def draw(results: Results, figure: drawing.Figure) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    titles = {"edit_distance": "smallest number of splits and merges", "paper_edit_distance": "the author's variant"}
    for ax, (column, title) in zip(axes, titles.items(), strict=True):
        drawing.dots(ax, {group: results.column(column, group=group) for group in GROUPS})
        ax.set_title(title, fontsize=10)
    axes[0].set_ylabel("edit distance from the best partition")
    axes[0].set_ylim(bottom=0)  # once both are drawn: they share the axis
    figure.suptitle(results.settings["file"], fontsize=11)


ITEM = Item(
    "figure-edit-distances",
    "Figure 3: edit distance from the best partition of the 10 next best, 10 random and the 10 worst ones",
    steps,
    findings,
    draw,
    needs="data or scores",
    notes=(
        "The author's code counts 2 * overlaps - blocks of P - blocks of Q, which splits down to the overlaps and can "
        "be larger than the smallest number of splits and merges, the definition in the text: both are shown.",
        "Random partitions as in the paper: sizes uniform on 1..k, the last block cut to fit.",
    ),
)
