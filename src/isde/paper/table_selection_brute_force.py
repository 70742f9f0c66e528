"""Item 2: the exact solver against every partition in plain Python, blocks of any size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isclose

import numpy as np

from isde.paper.item import Finding, Item, Outcome, Results, Row, Settings, Step, rng_for
from isde.paper.timing import min_seconds, uniform_scores
from isde.paper.wording import joined, short
from isde.partitions import Partition, count_partitions, enumerate_partitions
from isde.solvers import select_partition
from isde.subsets import Subset

PUBLISHED_BRUTE_FORCE = {9: 0.2, 10: 0.9, 11: 5.2, 12: 32.0, 13: 219.0, 14: 1304.0, 15: 10437.0}
PUBLISHED_PROGRAM = {9: 0.1, 10: 0.2, 11: 0.4, 12: 0.8, 13: 1.9, 14: 4.1, 15: 9.1}

MOST_SECONDS = 60.0
"""For brute force on one table; beyond, its time is extrapolated."""


def brute_force(scores: dict[Subset, float], d: int) -> tuple[Partition, float]:
    """The best partition by a for loop over all of them."""
    best, best_score = None, -np.inf
    for partition in enumerate_partitions(d):
        score = 0.0
        for block in partition:
            score += scores[block]
        if score > best_score:
            best, best_score = partition, score
    assert best is not None
    return best, best_score


def blocks_in_all_partitions(d: int) -> int:
    """How many scores brute force adds up: B_(d+1) - B_d blocks in the partitions of d columns.

    >>> blocks_in_all_partitions(3), sum(len(partition) for partition in enumerate_partitions(3))
    (10, 10)
    """
    return count_partitions(d + 1) - count_partitions(d)


def steps(settings: Settings) -> list[Step]:
    """One step for each number of columns."""
    dimensions = settings.pick(range(9, 16), range(9, 13), range(4, 7))
    most = settings.pick(MOST_SECONDS, 2.0, 0.0)
    select_partition(uniform_scores(6, 6, rng_for(settings.seed)))  # compiles
    return [Step({"d": d}, partial(_compare, d, settings.seed, most)) for d in dimensions]


def _compare(d: int, seed: int, most: float, before: Sequence[Row]) -> Outcome:
    table = uniform_scores(d, d, rng_for(seed, d))
    ours, found = min_seconds(3, lambda: select_partition(table))
    measured = [row for row in before if row["brute_force"] == "measured"]
    expected = 0.0
    if measured:
        expected = measured[-1]["brute_force_seconds"] * blocks_in_all_partitions(d)
        expected /= blocks_in_all_partitions(measured[-1]["d"])
    row: Row = {"n_partitions": count_partitions(d), "isde_seconds": ours}
    if expected > most:
        row |= {"brute_force_seconds": expected, "brute_force": "extrapolated", "same_score": "not checked"}
    else:
        by_subset = dict(zip(table.subsets, table.scores.tolist(), strict=True))
        theirs, (_, score) = min_seconds(1, lambda: brute_force(by_subset, d))
        same = isclose(score, found.score, rel_tol=1e-12)
        row |= {"brute_force_seconds": theirs, "brute_force": "measured", "same_score": "yes" if same else "no"}
    published = {"brute_force": PUBLISHED_BRUTE_FORCE.get(d, ""), "program": PUBLISHED_PROGRAM.get(d, "")}
    return Outcome([row | {f"published_{name}_seconds": value for name, value in published.items()}])


def findings(results: Results) -> list[Finding]:
    """Brute force and solver, all numbers of columns in a line."""
    rows = results.rows
    dimensions = f"d = {joined(row['d'] for row in rows)}"
    checked = [row for row in rows if row["brute_force"] == "measured"]
    wrong = [row["d"] for row in checked if row["same_score"] != "yes"]
    same = f"THE SCORES DIFFER for d = {wrong}" if wrong else f"both find the same score in all {len(checked)} checked"
    return [
        Finding(
            f"{dimensions}: seconds, brute force",
            joined(_published(row["published_brute_force_seconds"]) for row in rows),
            joined(short(row["brute_force_seconds"]) + ("" if row in checked else " (extrapolated)") for row in rows),
            "Another machine and another loop in Python; extrapolated by the number of scores added up.",
        ),
        Finding(
            f"{dimensions}: seconds, solver",
            joined(_published(row["published_program_seconds"]) for row in rows),
            joined(short(row["isde_seconds"]) for row in rows),
            f"A recursion over bit masks in place of CBC's branch and bound, and another machine; {same}.",
        ),
    ]


def _published(seconds: float | str) -> str:
    return seconds if isinstance(seconds, str) else f"{seconds:,g}"


ITEM = Item(
    "table-selection-brute-force",
    "Table 3: seconds for partition selection, brute force in Python against the solver, d = 9..15, k = d",
    steps,
    findings,
    is_timing=True,
    notes=(
        "Brute force is a for loop in plain Python over all partitions, as in the paper, measured up to where it takes "
        "a minute; beyond that, seconds for each score added up times their number, B_(d+1) - B_d.",
    ),
)
