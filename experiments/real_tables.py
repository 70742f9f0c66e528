"""The delivered model on real tables: the default, blocks found on the copula scale, against the default before.

    python experiments/real_tables.py run      # three shared data sets and two of scikit-learn's, 5 seeds: 20 minutes
    python experiments/real_tables.py table    # the tables from results/real_tables.csv, nothing is run

2,000 rows to fit, or 60 % of them where there are fewer than 5,000, and up to 4,000 others held out; blocks of three at
most, the default split. Log-densities are in the units of the data: differences of methods do not depend on them.
"copula+stack" is the default, "kde+stack" the default before. "copula" has the partition of "copula+stack" and
describes its blocks by their normal scores alone; it takes over the scores of the subsets, which its seconds leave out.
The first fit of a shape also pays for its chance levels. scikit-learn's data are rounded, and taken as they are, ties
and all: no noise is added, on the copula scale tied values get a random order, and kernels may be as narrow on them as
cross-validation likes. Each finished fit is one row; a rerun goes on where it stopped. --data and --methods take a part
of the work. The shared data are read from ../shared/data, and skipped with a word where they are missing.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn import datasets

from isde import ISDE
from isde.scores import SubsetScores

RESULTS = Path(__file__).parent / "results" / "real_tables.csv"
SHARED = Path(__file__).parents[2] / "shared" / "data"
FIELDS = (
    "data",
    "seed",
    "method",
    "mean",
    "median",
    "lowest",
    "blocks",
    "fit rows",
    "held-out rows",
    "fit seconds",
    "score seconds",
    "partition",
)
SEEDS = range(5)
FIT_ROWS, HELD_OUT_ROWS = 2000, 4000
LARGEST_BLOCK = 3
SMALL = {"wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer}
DATA = (*SMALL, "kin8nm", "nilsson_rare", "levine32_h2")
NEW, BEFORE, SCORES_ONLY = "copula+stack", "kde+stack", "copula"
METHODS = (NEW, SCORES_ONLY, BEFORE)
LEAST_GAINS = {"levine32_h2": 1.0}
"""How many nats the default is to be above the one before; elsewhere not below it by two standard errors."""

WATCHED, COMPANIONS = "area error", ("radius error", "perimeter error")
"""A column of breast cancer, and those of which one at least has to stand in its block."""

Row = dict[str, str]


def tables(names: Sequence[str]) -> Iterator[tuple[str, np.ndarray, list[str]]]:
    """Data set, rows, names of the columns."""
    for name in names:
        path = SHARED / f"{name}.npz"
        if name in SMALL:
            found = SMALL[name]()
            yield name, found.data, [str(column) for column in found.feature_names]
        elif path.is_file():
            with np.load(path) as arrays:
                yield name, arrays["X"].astype(np.float64), [str(column) for column in arrays["columns"]]
        else:
            print(f"{path} does not exist: skipped")


def divided(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and held-out rows."""
    n_fit = FIT_ROWS if len(X) >= 5000 else round(0.6 * len(X))
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order[:n_fit]], X[order[n_fit : n_fit + HELD_OUT_ROWS]]


def found_rows(
    data: Sequence[str], methods: Sequence[str], seen: set[tuple[str, str, str]]
) -> Iterator[dict[str, object]]:
    for name, X, columns in tables(data):
        for seed in SEEDS:
            fit, held_out = divided(X, seed)
            scores: SubsetScores | None = None  # on the copula scale, the same for both methods there
            for method in (method for method in methods if (name, str(seed), method) not in seen):
                model = ISDE(LARGEST_BLOCK, marginal=method, n_jobs=1, random_state=seed)
                start = time.perf_counter()
                model.fit(fit, subset_scores=scores if method == SCORES_ONLY else None)
                seconds = time.perf_counter() - start
                if method == NEW:
                    scores = model.subset_scores_
                key = {"data": name, "seed": seed, "method": method, "fit rows": len(fit)}
                yield key | {"fit seconds": round(seconds, 2)} | measured(model, held_out, columns)


def measured(model: ISDE, held_out: np.ndarray, columns: Sequence[str]) -> dict[str, object]:
    start = time.perf_counter()
    found = model.score_samples(held_out)
    return {
        "score seconds": round(time.perf_counter() - start, 3),
        "held-out rows": len(found),
        "mean": round(float(found.mean()), 5),
        "median": round(float(np.median(found)), 5),
        "lowest": round(float(found.min()), 5),
        "blocks": len(model.partition_),
        "partition": " | ".join(" + ".join(columns[c] for c in block) for block in model.partition_),
    }


def run(data: Sequence[str], methods: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    compile_first()
    seen = {(row["data"], row["seed"], row["method"]) for row in read()}
    with open(RESULTS, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not seen:
            writer.writeheader()
        for row in found_rows(data, methods, seen):
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


def compile_first() -> None:
    """The first seconds of a run are the compiler's: no fit shall pay for them."""
    X = np.random.default_rng(0).uniform(size=(100, 1)) + np.random.default_rng(1).uniform(size=(100, 3))
    for method in METHODS:
        ISDE(LARGEST_BLOCK, marginal=method, split="paper", n_jobs=1, random_state=0).fit(X).score_samples(X)


def read() -> list[Row]:
    if not RESULTS.is_file():
        return []
    with open(RESULTS, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- what the rows say -----------------------------------------------------------------------------------------

Rows = dict[tuple[str, str], Row]
"""The rows of one data set, by method and seed."""


def table() -> None:
    rows = read()
    of_data = {name: {(r["method"], r["seed"]): r for r in rows if r["data"] == name} for name in DATA}
    scores, medians, missed = [], [], []
    for name, here in of_data.items():
        seeds = [str(seed) for seed in SEEDS if (NEW, str(seed)) in here and (BEFORE, str(seed)) in here]
        if len(seeds) > 1:
            line, verdict = compared(name, here, seeds)
            scores.append(line)
            medians.append(detailed(name, here, seeds))
            if verdict != "met":
                missed.append(name)
    print("Mean log-density of held-out rows, nats, +- standard error over seeds; the paired difference over seeds\n")
    print_rows(["data", "d", "rows", "seeds", *METHODS, "new - before", "bar", "verdict"], scores)
    print("\nBars missed:", ", ".join(missed) or "none")
    print(f"\n{NEW} / {BEFORE}: mean over seeds of the median row, the lowest row of all, blocks; seconds, median\n")
    print_rows(["data", "median row", "lowest row", "blocks", "to fit", "slowest fit", "to score 1,000"], medians)
    watched_table(of_data["breast cancer"])


def compared(name: str, here: Rows, seeds: Sequence[str]) -> tuple[list[str], str]:
    """A line of the table, and whether the bar is met."""
    difference = numbers(here, NEW, seeds, "mean") - numbers(here, BEFORE, seeds, "mean")
    error, least = standard_error(difference), LEAST_GAINS.get(name)
    reached = difference.mean() >= (-2 * error if least is None else least)
    bar = f">= {-2 * error:.3f}" if least is None else f">= {least:g}"
    verdict = "met" if reached else "MISSED"
    row = here[NEW, seeds[0]]
    shape = [str(len(columns_in(row))), f"{int(row['fit rows']):,} + {int(row['held-out rows']):,}"]
    cells = [with_error(numbers(here, method, seeds, "mean")) for method in METHODS]
    return [name, *shape, str(len(seeds)), *cells, with_error(difference, sign="+"), bar, verdict], verdict


def detailed(name: str, here: Rows, seeds: Sequence[str]) -> list[str]:
    """The default and the one before side by side."""

    def both(field: str, decimals: int, summary: Callable[[np.ndarray], float] = np.mean) -> str:
        return " / ".join(f"{summary(numbers(here, m, seeds, field)):.{decimals}f}" for m in (NEW, BEFORE))

    def per_thousand(method: str) -> float:
        held_out = numbers(here, method, seeds, "held-out rows")
        return float((1000 * numbers(here, method, seeds, "score seconds") / held_out).mean())

    scoring = " / ".join(f"{per_thousand(method):.2f}" for method in (NEW, BEFORE))
    return [
        name,
        both("median", 2),
        both("lowest", 1, np.min),
        both("blocks", 1),
        both("fit seconds", 1, np.median),
        both("fit seconds", 1, np.max),
        scoring,
    ]


def watched_table(here: Rows) -> None:
    """The block of the watched column, for each seed."""
    rows, apart = [], []
    for seed in map(str, SEEDS):
        blocks = [block_of(WATCHED, here[method, seed]) if (method, seed) in here else [] for method in (NEW, BEFORE)]
        rows.append([seed, *(" + ".join(block) for block in blocks)])
        if blocks[0] and not set(COMPANIONS) & set(blocks[0]):
            apart.append(seed)
    print(f"\nBreast cancer: the block of '{WATCHED}' (bar: with '{COMPANIONS[0]}' or '{COMPANIONS[1]}')\n")
    print_rows(["seed", NEW, BEFORE], rows)
    print(f"\nSeeds with neither, {NEW}:", ", ".join(apart) or "none")


def numbers(here: Rows, method: str, seeds: Sequence[str], field: str) -> np.ndarray:
    """NaN where there is no such row."""
    return np.array([float(here[method, seed][field]) if (method, seed) in here else np.nan for seed in seeds])


def blocks_in(row: Row) -> list[list[str]]:
    return [block.split(" + ") for block in row["partition"].split(" | ")]


def columns_in(row: Row) -> list[str]:
    return [column for block in blocks_in(row) for column in block]


def block_of(column: str, row: Row) -> list[str]:
    return next(block for block in blocks_in(row) if column in block)


def with_error(values: np.ndarray, sign: str = "") -> str:
    return "" if np.isnan(values).any() else f"{values.mean():{sign}.3f} +- {standard_error(values):.3f}"


def standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def print_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for line in (head, ["---"] * len(head), *rows):
        print("|", " | ".join(line), "|")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["run", "table"])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    options = parser.parse_args()
    if options.part == "run":
        run(options.data, options.methods)
    else:
        table()
