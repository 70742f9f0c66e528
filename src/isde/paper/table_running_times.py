"""Item 9: seconds for a kernel density, for all subset scores, and for the selection of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from sklearn.neighbors import KernelDensity

from isde.arrays import Matrix
from isde.engine.grid import PAPER_GRID
from isde.marginals import resolve_marginal
from isde.marginals.kde import KDEBlock
from isde.paper.item import Finding, Item, Outcome, Results, Row, Settings, Step, rng_for
from isde.paper.timing import min_seconds, uniform_scores
from isde.paper.wording import joined, short
from isde.score_costs import expected_cost
from isde.score_tasks import SplitRows
from isde.scoring import score_subsets
from isde.solvers import select_partition
from isde.subsets import SubsetFamily
from isde.synthetic import make_structured

DIMENSIONS, BLOCK_SIZES = (5, 10, 20, 30, 40, 50), (2, 3, 4, 5)

PUBLISHED_KDE = {
    100: (0.0006, 0.0008),
    500: (0.0020, 0.0126),
    2000: (0.0073, 0.1952),
    5000: (0.0176, 1.1564),
    10_000: (0.0684, 4.9151),
    20_000: (0.1163, 21.3631),
}
PUBLISHED_SCORES = {
    2: (2.0, 6.8, 18, 40, 69.15, 108),
    3: (3.3, 23, 121, 409, 949, 1_862),
    4: (3.9, 53, 590, 3_053, 9_572, 23_536),
    5: (4.2, 61, 2_154, 17_589, 75_228, 233_323),
}
PUBLISHED_SELECTION = {
    2: (0.02, 0.03, 0.08, 0.20, 0.47, 0.84),
    3: (0.02, 0.05, 0.41, 1.9, 6.2, 15),
    4: (0.02, 0.09, 2.0, 14.8, 62, 190),
    5: (0.02, 0.13, 7.3, 84.7, 482, 2_045),
}

BANDWIDTH = 0.1
SECONDS_FOR_A_CELL = 120.0


# --- kernel densities ------------------------------------------------------------------------------------------


def kde_steps(settings: Settings) -> list[Step]:
    """One step for each number of rows."""
    sizes = settings.pick(tuple(PUBLISHED_KDE), (100, 500, 2000), (100, 200))
    _ = KDEBlock(np.zeros((4, 3)), BANDWIDTH).score_samples(np.zeros((4, 3)))  # compiles
    return [Step({"n": n}, partial(_time_kde, n, settings)) for n in sizes]


def _time_kde(n: int, settings: Settings, _: Sequence[Row]) -> Outcome:
    rng = rng_for(settings.seed, n)
    X, Y = rng.uniform(size=(2, n, 3))
    block, jobs = KDEBlock(X, BANDWIDTH), settings.jobs
    other = KernelDensity(bandwidth=BANDWIDTH).fit(X)
    repeats = 5 if n <= 2000 else 3
    ours, values = min_seconds(repeats, lambda: block.score_samples(Y, jobs))
    theirs, expected = min_seconds(repeats if n <= 2000 else 1, lambda: other.score_samples(Y))
    gpu, published = PUBLISHED_KDE.get(n, ("", ""))
    return Outcome(
        [
            {
                "isde_seconds": ours,
                "sklearn_seconds": theirs,
                "largest_difference": f"{float(np.abs(values - expected).max()):.1e}",
                "published_gpu_seconds": gpu,
                "published_sklearn_seconds": published,
            }
        ]
    )


def kde_findings(results: Results) -> list[Finding]:
    """Ours, scikit-learn's, and their ratio, all numbers of rows in a line."""
    rows = [row for row in results.rows if row["published_gpu_seconds"] != ""]
    if not rows:
        return []
    what = f"n = {joined(row['n'] for row in rows)}, d = 3"
    ratios = [row["published_sklearn_seconds"] / row["published_gpu_seconds"] for row in rows]
    largest = max(row["largest_difference"] for row in rows)
    return [
        Finding(
            f"{what}: seconds, ours",
            f"{joined(row['published_gpu_seconds'] for row in rows)} (on a GPU)",
            joined(short(row["isde_seconds"]) for row in rows),
            f"A processor in place of a GPU; log-densities and scikit-learn's agree to {largest:.0e} nats.",
        ),
        Finding(
            f"{what}: seconds, scikit-learn",
            joined(row["published_sklearn_seconds"] for row in rows),
            joined(short(row["sklearn_seconds"]) for row in rows),
            "Another machine and version; the paper does not say which data and bandwidth.",
        ),
        Finding(
            f"{what}: times faster than scikit-learn",
            joined(map(short, ratios)),
            joined(short(row["sklearn_seconds"] / row["isde_seconds"]) for row in rows),
            "A processor in place of a GPU.",
        ),
    ]


# --- subset scores ---------------------------------------------------------------------------------------------


def score_steps(settings: Settings) -> list[Step]:
    """One step for each d and k, the small ones first."""
    return [Step({"k": k, "d": d}, partial(_time_scores, d, k, settings)) for k, d in _cells(settings)]


def _cells(settings: Settings) -> list[tuple[int, int]]:
    dimensions = settings.pick(DIMENSIONS, DIMENSIONS[:3], (5, 8))
    sizes = settings.pick(BLOCK_SIZES, BLOCK_SIZES, (2, 3))
    return [(k, d) for k in sizes for d in dimensions]


def _time_scores(d: int, k: int, settings: Settings, _: Sequence[Row]) -> Outcome:
    m = settings.pick(1000, 1000, 60)
    most = settings.pick(SECONDS_FOR_A_CELL, 5.0, 0.0) if settings.seconds is None else settings.seconds
    X = _rows(d, 2 * m, settings.seed)
    measured = slice_within(X, k, most, settings.jobs)
    part = np.ascontiguousarray(X[:, :measured])
    seconds, _scores = min_seconds(
        1,
        lambda: score_subsets(
            part[:m], part[m:], max_block_size=k, bandwidths=PAPER_GRID.tolist(), n_jobs=settings.jobs
        ),
    )
    n_subsets, n_measured = len(SubsetFamily(d, k)), len(SubsetFamily(measured, k))
    published = dict(zip(DIMENSIONS, PUBLISHED_SCORES[k], strict=True)).get(d, "")
    row = {
        "n_subsets": n_subsets,
        "seconds": seconds * n_subsets / n_measured,
        "kind": "measured" if measured == d else "projected",
        "columns_measured": measured,
        "published_seconds": published,
    }
    return Outcome([row])


def _rows(d: int, n: int, seed: int) -> Matrix:
    """Structured data, rescaled: blocks of 4, 3, 2 and 1 columns over and over."""
    structure = ([4, 3, 2, 1] * (d // 10 + 1))[: d + 1]
    X, _ = make_structured(structure, n, random_state=seed)
    X = X[:, :d]
    return np.ascontiguousarray((X - X.min(axis=0)) / np.ptp(X, axis=0))


def slice_within(X: Matrix, k: int, most: float, jobs: int | None) -> int:
    """How many of the columns can be scored within `most` seconds, all of them or a slice; at least k + 1.

    Subsets of a slice cost about as much each as those of all columns do: seconds are projected by their number.
    """
    d, half = X.shape[1], len(X) // 2
    subsets, halves = SubsetFamily(d, k), (np.arange(half), np.arange(half, len(X)))
    kernels = resolve_marginal("kde", bandwidths=PAPER_GRID.tolist())
    expected, _memory = expected_cost(SplitRows(kernels, X, [halves]), subsets, jobs)
    if expected <= most:
        return d
    each = expected / len(subsets)
    return max(c for c in range(1, d) if c <= k + 1 or each * len(SubsetFamily(c, k)) <= most)


def table_findings(results: Results) -> list[Finding]:
    """One line for each k, all d in it."""
    if results.settings["item"] == SCORES.name:
        reason = "Another engine: sums of all subsets as matrix products, where the paper evaluates one density after "
        reason += "the other on a GPU."
    elif all(column["is_proved"] for column in results.rows):
        reason = "Another solver: a recursion over bit masks for few columns; else dominance and prices, which leave "
        reason += "little to search. All are proved optimal. The paper gives all subsets to CBC."
    else:
        reason = "NOT ALL ARE PROVED OPTIMAL."
    return [
        Finding(
            f"k = {k}, d = {joined(row['d'] for row in rows)}: seconds",
            joined(f"{row['published_seconds']:,}" if row["published_seconds"] != "" else "" for row in rows),
            joined(short(row["seconds"]) + " (projected)" * (row["kind"] == "projected") for row in rows),
            reason,
        )
        for k in dict.fromkeys(row["k"] for row in results.rows)
        for rows in [results.where(k=k)]
    ]


# --- selection -------------------------------------------------------------------------------------------------


def selection_steps(settings: Settings) -> list[Step]:
    """One step for each d and k."""
    for solver in ("dynamic", "milp"):
        select_partition(uniform_scores(6, 3, rng_for(settings.seed)), solver=solver)  # compiles
    return [Step({"k": k, "d": d}, partial(_time_selection, d, k, settings)) for k, d in _cells(settings)]


def _time_selection(d: int, k: int, settings: Settings, _: Sequence[Row]) -> Outcome:
    table = uniform_scores(d, k, rng_for(settings.seed, d, k))
    seconds, found = min_seconds(3, lambda: select_partition(table))
    published = dict(zip(DIMENSIONS, PUBLISHED_SELECTION[k], strict=True)).get(d, "")
    row = {
        "n_subsets": len(table),
        "seconds": seconds,
        "kind": "measured",
        "is_proved": found.is_optimal,
        "solver": found.solver,
        "published_seconds": published,
    }
    return Outcome([row])


KDE = Item(
    "table-running-times-kde",
    "Table 5: seconds for a kernel density of n rows evaluated at n rows, d = 3, against scikit-learn",
    kde_steps,
    kde_findings,
    is_timing=True,
    notes=(f"Uniform rows, bandwidth {BANDWIDTH} (the paper gives neither), scikit-learn exact as by default.",),
)
SCORES = Item(
    "table-running-times-scores",
    "Table 6: seconds to score all subsets, m = n = 1,000, 30 bandwidths, 5 folds, by d and k",
    score_steps,
    table_findings,
    is_timing=True,
    is_projected=True,
    notes=(
        "Cells that would take longer than `seconds` are projected, and labelled so: as many columns as fit are "
        "scored, and the seconds for each of their subsets multiplied by the number of subsets of all columns.",
    ),
)
SELECTION = Item(
    "table-running-times-selection",
    "Table 7: seconds to select a partition from uniform random scores, by d and k",
    selection_steps,
    table_findings,
    is_timing=True,
    notes=("Best of three.",),
)
