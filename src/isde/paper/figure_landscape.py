"""Item 8, first half: the scores of all partitions there are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from isde.inspection import landscape
from isde.paper import drawing
from isde.paper.experiment import check_width, experiment, few_samples
from isde.paper.inputs import KNOWN_BEST, SAVED_LEVINE13
from isde.paper.item import Finding, Item, Outcome, Results, Row, Settings, Step
from isde.paper.other_partitions import scores_for
from isde.partitions import count_partitions
from isde.scores import SubsetScores
from isde.solvers import select_partition

SAVED_ABOVE = 1454
"""How many partitions of the author's saved scores are above the paper's threshold."""

PAPER_THRESHOLD = 14.6
BELOW_BEST = KNOWN_BEST[SAVED_LEVINE13][0] - PAPER_THRESHOLD
"""How far below the optimum the paper's threshold is: for other tables, the same distance."""


def steps(settings: Settings) -> list[Step]:
    """One step: every partition is visited."""
    if settings.scores is None:
        check_width(experiment(settings, few_samples(settings)), "figure-landscape")
    scores = scores_for(settings)
    bins = settings.pick(100, 100, 10)
    return [Step({"bins": bins}, partial(_landscape, scores, bins, settings.above))]


def threshold_for(best_score: float, above: float | None) -> float:
    """The one given; or 14.6 for the paper's table, whose optimum is 15.117, and for others as far below theirs.

    >>> threshold_for(15.117430870747343, None), round(threshold_for(20.0, None), 3), threshold_for(20.0, 18.5)
    (14.6, 19.483, 18.5)
    """
    return round(best_score - BELOW_BEST, 9) if above is None else above


def _landscape(scores: SubsetScores, bins: int, above: float | None, _: Sequence[Row]) -> Outcome:
    best = select_partition(scores)
    threshold = threshold_for(best.score, above)
    found = landscape(scores, bins, above=threshold)
    shared = {
        "n_partitions": found.n_partitions,
        "best_score": best.score,
        "mean_score": found.mean,
        "threshold": threshold,
        "n_above": len(found.above),
        "n_columns": scores.n_columns,
        "max_block_size": scores.max_block_size,
    }
    edges = zip(found.edges[:-1].tolist(), found.edges[1:].tolist(), strict=True)
    counts = found.counts.tolist()
    return Outcome(
        [{"low": low, "high": high, "count": n} | shared for (low, high), n in zip(edges, counts, strict=True)]
    )


def findings(results: Results) -> list[Finding]:
    """How many partitions there are, and how many above the threshold."""
    row, name = results.rows[0], results.settings["file"]
    counted = count_partitions(row["n_columns"], row["max_block_size"])
    is_paper_table = results.settings["sha256"] == SAVED_LEVINE13
    found = [
        Finding(
            f"{name}: partitions",
            "25,719,630 (Part_13^5)",
            f"{row['n_partitions']:,}",
            "The same." if row["n_partitions"] == 25_719_630 else "Another number of columns or largest block.",
        ),
        Finding(
            f"{name}: partitions above {row['threshold']:.6g}",
            "1,941 above 14.6 (text); 1,454 (saved scores)" if is_paper_table else "1,941 above 14.6 (Levine13)",
            f"{row['n_above']:,}",
            _why_so_many(row, is_paper_table),
        ),
    ]
    if counted != row["n_partitions"] or sum(results.column("count")) != counted:
        found.append(Finding(f"{name}: count", f"{counted:,}", f"{row['n_partitions']:,}", "THE COUNTS DIFFER."))
    return found


def _why_so_many(row: Row, is_paper_table: bool) -> str:
    if is_paper_table and row["threshold"] == PAPER_THRESHOLD:
        same = "The saved scores' number; the text's is from an earlier run."
        return same if row["n_above"] == SAVED_ABOVE else "THE NUMBER DIFFERS FROM THAT OF THE SAVED SCORES."
    below = row["best_score"] - row["threshold"]
    return f"Other scores: the threshold is {below:.3g} below the optimum, in the paper {BELOW_BEST:.3g}."


def draw(results: Results, figure: drawing.Figure) -> None:
    ax = figure.subplots()
    lows, highs, counts = (results.column(name) for name in ("low", "high", "count"))
    drawing.histogram(ax, [*lows, highs[-1]], counts)
    row = results.rows[0]
    ax.axvline(row["threshold"], color=drawing.COLOURS[2], linewidth=1)
    ax.annotate(
        f"{row['n_above']:,} above {row['threshold']:.4g}",
        (row["threshold"], 0.95),
        xycoords=("data", "axes fraction"),
        ha="right",
        va="top",
        xytext=(-4, 0),
        textcoords="offset points",
    )
    ax.set_xlabel("score of a partition, nats per row")
    ax.set_ylabel("partitions")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.set_title(f"{results.settings['file']}: all {row['n_partitions']:,} partitions")


ITEM = Item(
    "figure-landscape",
    "Figure 5: distribution of the scores of all partitions in Part_13^5",
    steps,
    findings,
    draw,
    needs="data or scores",
    has_threshold=True,
)
