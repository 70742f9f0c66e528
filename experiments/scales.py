"""Blocks on the data's own scale, on that of their normal scores, and on both: which gives the better density.

    python experiments/scales.py run       # three shared data sets and three of scikit-learn's, 5 seeds: 3 minutes
    python experiments/scales.py table     # the table from results/scales.csv, nothing is run

3,000 rows to fit, or 60 % of them where there are fewer than 5,000, and up to 4,000 others held out; log-densities on
columns rescaled to [0, 1] by the range of the rows to fit. The partition is the same for all three: that which the
paper's kernels find in the normal scores of the rows to fit, blocks of three at most; in the rows as they are, most
columns of levine32_h2 stay alone, and a column alone is the same on both scales. scikit-learn's data are rounded: they
get uniform noise of the width of their unit, since a density of rows that repeat may be as high as one likes. Each
finished fit is one row; a rerun goes on where it stopped. The shared data are read from ../shared/data, and skipped
with a word where they are missing.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn import datasets

from isde import ISDE
from isde.data.table import default_names
from isde.density import Scaling, fit_product
from isde.marginals.marginal import BlockFitter
from isde.marginals.scales import CopulaStack, ScalesStack
from isde.marginals.stack import StackMarginal
from isde.partitions import Partition

RESULTS = Path(__file__).parent / "results" / "scales.csv"
SHARED = Path(__file__).parents[2] / "shared" / "data"
FIELDS = ("data", "seed", "method", "score", "error", "lowest", "fit seconds", "score seconds", "rows", "partition")
SEEDS = range(5)
FIT_ROWS, HELD_OUT_ROWS = 3000, 4000
SHARED_NAMES = ("levine32_h2", "nilsson_rare", "kin8nm")
SMALL = {"breast cancer": datasets.load_breast_cancer, "wine": datasets.load_wine, "iris": datasets.load_iris}
OWN, COPULA, BOTH = "own scale", "normal scores", "both"
FAMILIES: dict[str, BlockFitter] = {OWN: StackMarginal(), COPULA: CopulaStack(), BOTH: ScalesStack()}


def samples() -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
    """Data set, seed, rows to fit and held-out rows, rescaled."""
    for name, X in tables():
        n_fit = FIT_ROWS if len(X) >= 5000 else round(0.6 * len(X))
        for seed in SEEDS:
            order = np.random.default_rng(seed).permutation(len(X))
            fit, held_out = X[order[:n_fit]], X[order[n_fit : n_fit + HELD_OUT_ROWS]]
            low, width = fit.min(axis=0), np.ptp(fit, axis=0)
            yield name, seed, (fit - low) / width, (held_out - low) / width


def tables() -> Iterator[tuple[str, np.ndarray]]:
    for name in SHARED_NAMES:
        path = SHARED / f"{name}.npz"
        if path.is_file():
            yield name, np.load(path)["X"].astype(np.float64)
        else:
            print(f"{path} does not exist: skipped")
    for name, load in SMALL.items():
        yield name, unrounded(load().data)


def unrounded(X: np.ndarray) -> np.ndarray:
    """With noise as wide as the smallest difference of two values in each column."""
    units = [np.diff(np.unique(column.round(9))).min() for column in X.T]
    return X + np.random.default_rng(0).uniform(-0.5, 0.5, size=X.shape) * units


def found_rows(seen: set[tuple[str, str, str]]) -> Iterator[dict[str, object]]:
    for name, seed, fit, held_out in samples():
        todo = [method for method in FAMILIES if (name, str(seed), method) not in seen]
        if not todo:
            continue
        partition = ISDE(3, marginal="kde", split="paper", random_state=seed).fit(normal_scores(fit)).partition_
        for method in todo:
            yield {"data": name, "seed": seed, "method": method, **measured(method, fit, held_out, partition)}


def normal_scores(X: np.ndarray) -> np.ndarray:
    return ndtri(rankdata(X, axis=0) / (len(X) + 1))


def measured(method: str, fit: np.ndarray, held_out: np.ndarray, partition: Partition) -> dict[str, object]:
    family, names, start = FAMILIES[method], default_names(fit.shape[1]), time.perf_counter()
    density = fit_product(fit, partition, family, Scaling.fit(fit, "minmax"), names, n_jobs=1)
    fitted = time.perf_counter()
    found = density.score_samples(held_out, n_jobs=1)
    scored = time.perf_counter()
    values = (found.mean(), found.std(ddof=1) / np.sqrt(len(found)), found.min(), fitted - start, scored - fitted)
    blocks = " | ".join(" ".join(map(str, block)) for block in partition)
    return dict(zip(FIELDS[3:], (*(round(value, 5) for value in values), len(found), blocks), strict=True))


def run() -> None:
    warnings.simplefilter("ignore")
    compile_first()
    seen = {(row["data"], row["seed"], row["method"]) for row in read()}
    with open(RESULTS, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not seen:
            writer.writeheader()
        for row in found_rows(seen):
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


def compile_first() -> None:
    """The first seconds of a run are the compiler's: no fit shall pay for them."""
    X = np.random.default_rng(0).uniform(size=(100, 2))
    for family in FAMILIES.values():
        family.fit_blocks(X, [(0, 1)], n_jobs=1)[0].score_samples(X)


def read() -> list[dict[str, str]]:
    if not RESULTS.is_file():
        return []
    with open(RESULTS, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table() -> None:
    rows = read()
    print("mean log-density of held-out rows, nats, +- standard error over seeds; paired differences over seeds of")
    print("both scales to the data's own and to the better of the two; seconds to fit, and to score 1,000 rows\n")
    for data in dict.fromkeys(row["data"] for row in rows):
        here = {(row["method"], row["seed"]): row for row in rows if row["data"] == data}
        seeds = [seed for method, seed in here if method == BOTH and all((m, seed) in here for m in FAMILIES)]
        if not seeds:
            continue
        scores = {m: np.array([float(here[m, seed]["score"]) for seed in seeds]) for m in FAMILIES}
        print(f"{data}, {len(seeds)} seeds")
        for method in FAMILIES:
            own = [here[method, seed] for seed in seeds]
            fit, score, n = (np.mean([float(row[f]) for row in own]) for f in ("fit seconds", "score seconds", "rows"))
            lowest = min(float(row["lowest"]) for row in own)
            print(
                f"  {method:14s} {with_error(scores[method])}   lowest row {lowest:8.1f}"
                f"   {fit:6.1f} s to fit   {1000 * score / n:6.2f} s to score 1,000"
            )
        better = max((OWN, COPULA), key=lambda method: scores[method].mean())
        print(f"  both - {OWN}: {with_error(scores[BOTH] - scores[OWN])}")
        print(f"  both - better ({better}): {with_error(scores[BOTH] - scores[better])}\n")


def with_error(values: np.ndarray) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():+8.3f} +- {error:.3f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["run", "table"])
    {"run": run, "table": table}[parser.parse_args().part]()
