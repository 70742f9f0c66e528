"""How many rows a split needs: what is found, what the density gains and what it costs, by `max_split_rows`.

    python experiments/split_rows.py found [--seeds 5]    # weak dependence of known size among 12 columns, 40,000 rows
    python experiments/split_rows.py real [--seeds 2]     # columns of the shared data: the blocks, on rows left out

Two columns of each table found are independent of all others, so that false blocks can be seen. Seconds are those of
the processor, scoring and selection alone. The experiment behind the default, see docs/many_rows.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from isde import fit_blocks
from isde.scoring import Scoring
from isde.solvers import select_partition

BOUNDS = (1250, 2500, 5000, 10_000, 20_000)
ROWS = 40_000
DATA = Path(__file__).parents[2] / "shared" / "data"
CORRELATIONS = (0.02, 0.03, 0.05, 0.1)
FIRST_SEED = 9000


def weak_table(seed: int) -> np.ndarray:
    """Pairs of four correlations, skewed; two columns alone; a pair with a common scale."""
    rng = np.random.default_rng(seed)
    columns = []
    for rho in CORRELATIONS:
        x, e = rng.standard_normal((2, ROWS))
        columns += [np.exp(x), rho * x + np.sqrt(1 - rho**2) * e]
    scale = np.exp(0.15 * rng.standard_normal(ROWS))
    columns += [scale * rng.standard_normal(ROWS), scale * rng.standard_normal(ROWS)]
    columns += [rng.uniform(size=ROWS), rng.exponential(size=ROWS)]
    return np.column_stack(columns)


def blocks_of(X: np.ndarray, bound: int, seed: int) -> tuple[Any, float]:
    how = Scoring.of(3, max_split_rows=bound, random_state=seed, n_jobs=1)
    start = time.process_time()
    partition = select_partition(how.score(X, columns=False)).partition
    return partition, time.process_time() - start


def pair_of(column: int) -> int:
    """Which pair of a weak table a column belongs to; the last two are alone."""
    return column // 2 if column < 10 else column


def found(seeds: int) -> None:
    names = [*(f"rho {rho}" for rho in CORRELATIONS), "common scale"]
    print(f"| max_split_rows | {' | '.join(names)} | false blocks | seconds |\n|{'---|' * (len(names) + 3)}")
    for bound in BOUNDS:
        hits, false, seconds = np.zeros(len(names)), 0, 0.0
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            partition, own = blocks_of(weak_table(seed), bound, seed)
            seconds += own
            for i in range(len(names)):
                hits[i] += any({2 * i, 2 * i + 1} <= set(block) for block in partition)
            false += sum(len(block) > 1 and len({pair_of(column) for column in block}) > 1 for block in partition)
        shown = " | ".join(f"{hit:.0f} of {seeds}" for hit in hits)
        print(f"| {bound:,} | {shown} | {false} | {seconds / seeds:.1f} |", flush=True)


def real(seeds: int) -> None:
    print("| max_split_rows | data | columns | blocks of two or three | held-out mean | seconds |")
    print("|---|---|---|---|---|---|")
    for name, columns in (("levine32_h2", 16), ("nilsson_rare", 13)):
        path = DATA / f"{name}.npz"
        if not path.is_file():
            print(f"{path} is missing: left out.")
            continue
        X = np.load(path)["X"].astype(float)[:, :columns]
        for bound in BOUNDS:
            rows = []
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                order = np.random.default_rng(seed).permutation(len(X))
                fit, held_out = X[order[:-5000]], X[order[-5000:]]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    partition, seconds = blocks_of(fit, bound, seed)
                    mean = fit_blocks(fit[:10_000], partition).score(held_out)
                rows.append((sum(len(block) > 1 for block in partition), mean, seconds))
            blocks, means, seconds = np.mean(rows, axis=0)
            print(f"| {bound:,} | {name} | {columns} | {blocks:.1f} | {means:.4f} | {seconds:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["found", "real"])
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    {"found": found, "real": real}[asked.what](asked.seeds)


if __name__ == "__main__":
    main()
