"""Item 8, second half: what the best of all partitions are worth on validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from isde.errors import InputError
from isde.inspection import landscape
from isde.paper import drawing
from isde.paper.experiment import Experiment, check_width, experiment, few_samples, item_on_cells
from isde.paper.figure_landscape import threshold_for
from isde.paper.item import Finding, Outcome, Results, Row, Settings, Step
from isde.paper.other_partitions import SHIFTED, correlation, visited_row
from isde.partitions import Partition

MOST_ABOVE = 3000
"""Partitions evaluated on validation rows, the best first; the paper has 1,941."""

PARTITIONS_AT_ONCE = 100


def steps(settings: Settings) -> list[Step]:
    """One step for each hundred of the partitions above the threshold, best first."""
    trial = experiment(settings, few_samples(settings))
    check_width(trial, "figure-best-partitions")
    above = landscape(trial.scores, above=threshold_for(trial.best.score, settings.above)).above
    if not above:
        raise InputError(f"No partition scores more than {settings.above}: the best one scores {trial.best.score:.6g}.")
    chosen = [partition for partition, _ in above[: settings.pick(MOST_ABOVE, 200, 20)]]
    return [
        Step(
            {"first_rank": start + 1},
            partial(_evaluate_many, trial, chosen[start : start + PARTITIONS_AT_ONCE], start, len(above)),
        )
        for start in range(0, len(chosen), PARTITIONS_AT_ONCE)
    ]


def _evaluate_many(
    trial: Experiment, partitions: list[Partition], start: int, n_above: int, _: Sequence[Row]
) -> Outcome:
    trial.densities.add([block for partition in partitions for block in partition])
    return Outcome(
        [
            {"n_above": n_above, "rank": rank} | visited_row(trial, partition)
            for rank, partition in enumerate(partitions, start=start + 1)
        ]
    )


def findings(results: Results) -> list[Finding]:
    """Correlation, and whether a far partition does as well as the best."""
    name, rows = results.settings["file"], results.rows
    first, best = rows[0], max(rows, key=lambda row: row["log_likelihood"])
    n_above, optimum = first["n_above"], first["log_likelihood"]
    cut = "" if n_above == len(rows) else f", the {len(rows):,} best of {n_above:,}"
    return [
        correlation(
            f"{name}: {len(rows):,} partitions above the threshold{cut}, correlation of log-likelihood with edit "
            "distance",
            "falls with the distance (figure)",
            results,
        ),
        Finding(
            f"{name}: best of them on validation rows",
            "the optimum is unique (figure)",
            f"{best['log_likelihood']:.3f} at edit distance {best['edit_distance']}; the optimum {optimum:.3f}",
            "The same."
            if best is first
            else f"One at distance {best['edit_distance']} is {best['log_likelihood'] - optimum:.3g} better"
            + (f": {SHIFTED}." if results.is_paper else "."),
        ),
    ]


def draw(results: Results, figure: drawing.Figure) -> None:
    drawing.scatter_both(results, figure, f"the {len(results.rows):,} best partitions")


ITEM = item_on_cells(
    "figure-best-partitions",
    "Figure 6: mean validation log-likelihood against edit distance for all partitions above a threshold",
    steps,
    findings,
    draw,
    has_threshold=True,
)
