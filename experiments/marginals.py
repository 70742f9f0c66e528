"""Which marginals give the better density: the paper's kernels, the stack, and the rivals, all rows counted.

    python experiments/marginals.py real           # the shared data sets, 5 seeds: about an hour
    python experiments/marginals.py synthetic      # the gap to the true density, 5 seeds: about 15 minutes
    python experiments/marginals.py table          # the tables from results/marginals_*.csv, nothing is run

Real data: 5,000 rows to fit (3,000 fit the marginals and 2,000 score them, as in the paper), up to 4,000 others held
out, log-densities on columns rescaled to [0, 1] by the range of the rows to fit. Synthetic: 5,000 rows of the paper's
families, 5,000 fresh ones, and how much log-density they lose against the truth. Each finished fit is one row; a rerun
goes on where it stopped. The data are read from ../shared/data, and skipped with a word where they are missing.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isde import CVKDE, ISDE, ForestDensity, GaussianMixtureCV
from isde.density_estimator import DensityEstimator
from isde.synthetic import make_structured, structured_log_density

RESULTS = Path(__file__).parent / "results"
SHARED = Path(__file__).parents[2] / "shared" / "data"
FIELDS = ("data", "k", "method", "seed", "score", "error", "lowest", "seconds")
SEEDS = range(5)
FIT_ROWS, HELD_OUT_ROWS = 5000, 4000
REAL = [("levine32_h2", 3), ("nilsson_rare", 3), ("nilsson_rare", 5), ("kin8nm", 3)]
SYNTHETIC = [(2, 2, 1), (3, 3, 3), (4, 4, 2, 2)]


def methods(k: int, seed: int) -> dict[str, DensityEstimator]:
    options = {"n_jobs": -1, "random_state": seed}
    return {
        "ISDE kde (paper)": ISDE(k, split=0.6, **options),
        "ISDE stack": ISDE(k, marginal="stack", split=0.6, **options),
        "FDE": ForestDensity(split=0.6, **options),
        "CVKDE": CVKDE(n_jobs=-1),
        "GM by CV": GaussianMixtureCV(**options),
    }


def real_rows(seen: set[tuple[str, ...]]) -> Iterator[dict[str, object]]:
    for name, k in REAL:
        path = SHARED / f"{name}.npz"
        if not path.is_file():
            print(f"{path} does not exist: skipped")
            continue
        X = np.load(path)["X"].astype(np.float64)
        for seed in SEEDS:
            order = np.random.default_rng(seed).permutation(len(X))
            fit, held_out = X[order[:FIT_ROWS]], X[order[FIT_ROWS : FIT_ROWS + HELD_OUT_ROWS]]
            low, width = fit.min(axis=0), np.ptp(fit, axis=0)
            for method, model in methods(k, seed).items():
                key = (name, str(k), method, str(seed))
                if key not in seen and (k == 3 or method.startswith("ISDE")):  # the others do not depend on k
                    yield measured(key, model, (fit - low) / width, (held_out - low) / width)


def synthetic_rows(seen: set[tuple[str, ...]]) -> Iterator[dict[str, object]]:
    for structure in SYNTHETIC:
        k = max(structure)
        for seed in SEEDS:
            fit, _ = make_structured(structure, FIT_ROWS, random_state=seed)
            fresh, _ = make_structured(structure, FIT_ROWS, random_state=seed + 1000)
            truth = structured_log_density(fresh, structure)
            for method, model in methods(k, seed).items():
                key = (str(list(structure)), str(k), method, str(seed))
                if key not in seen and method.startswith("ISDE"):
                    yield measured(key, model, fit, fresh, truth)


def measured(
    key: tuple[str, ...],
    model: DensityEstimator,
    fit: np.ndarray,
    held_out: np.ndarray,
    truth: np.ndarray | float = 0.0,
) -> dict[str, object]:
    start = time.perf_counter()
    model.fit(fit)
    seconds = time.perf_counter() - start
    found = model.score_samples(held_out) - truth
    error = found.std(ddof=1) / np.sqrt(len(found))
    values = (*key, round(found.mean(), 5), round(error, 5), round(found.min(), 2), round(seconds, 1))
    return dict(zip(FIELDS, values, strict=True))


def read(part: str) -> list[dict[str, str]]:
    path = RESULTS / f"marginals_{part}.csv"
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(part: str) -> None:
    warnings.simplefilter("ignore")
    seen = {tuple(row[field] for field in FIELDS[:4]) for row in read(part)}
    with open(RESULTS / f"marginals_{part}.csv", "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not seen:
            writer.writeheader()
        for row in (real_rows if part == "real" else synthetic_rows)(seen):
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


def table() -> None:
    for part, what in (("real", "mean log-density"), ("synthetic", "mean log-density minus the truth's")):
        rows = read(part)
        print(
            f"\n{part}: {what} of held-out rows, nats; standard error over seeds; paired difference to the paper's ISDE"
        )
        for data, k in dict.fromkeys((row["data"], row["k"]) for row in rows):
            here = [row for row in rows if (row["data"], row["k"]) == (data, k)]
            for method in dict.fromkeys(row["method"] for row in here):
                own = {row["seed"]: row for row in here if row["method"] == method}
                base = {row["seed"]: float(row["score"]) for row in here if row["method"].startswith("ISDE kde")}
                scores = np.array([float(row["score"]) for row in own.values()])
                paired = np.array([float(row["score"]) - base[seed] for seed, row in own.items() if seed in base])
                low, seconds = (np.array([float(row[f]) for row in own.values()]) for f in ("lowest", "seconds"))
                errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in (scores, paired)]
                print(
                    f"  {data:14s} k {k}  {method:18s} {scores.mean():8.3f} +- {errors[0]:.3f}"
                    f"   {paired.mean():+7.3f} +- {errors[1]:.3f}"
                    f"   lowest row {low.min():9.1f}   {seconds.mean():6.1f} s"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["real", "synthetic", "table"])
    part = parser.parse_args().part
    table() if part == "table" else run(part)
