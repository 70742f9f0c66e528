"""Selection of trees: seconds of processor time, the tree found and the bound, on tables of several kinds.

    python benchmarks/bench_trees.py                # everything that is there, a quarter of an hour
    python benchmarks/bench_trees.py --only saved   # or real, synthetic: the tables of one kind
    python benchmarks/bench_trees.py --only wide    # 50 columns: a 2-tree, and real columns side by side
    python benchmarks/bench_trees.py --only parents # 32, 50 and 60 Gaussian columns, the hardest, by several seeds
    python benchmarks/bench_trees.py --only splits  # levine32_h2 by twenty splits, 3 minutes of scoring for each seed
    python benchmarks/bench_trees.py --rows 3000    # scores of real data by so many rows

Scores are those that `select_tree` is given, gains are over independent columns. The paper's saved scores are read from
../shared/paper, data from ../shared/data, and skipped, with a word, where these folders are missing.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Sequence
from itertools import product
from math import fsum
from pathlib import Path

import numpy as np

from isde import ISDE, SubsetScores, select_tree
from isde.data.table import default_names
from isde.scoring import Scoring
from isde.subsets import SubsetFamily

SHARED = Path(__file__).parents[2] / "shared"
Case = tuple[str, SubsetScores, int]


def saved() -> Iterator[Case]:
    """The paper's saved scores."""
    for name, sizes in (("levine13", (2, 3, 4, 5)), ("levine32", (2, 3))):
        path = SHARED / "paper" / f"{name}_subset_scores.csv"
        if not path.is_file():
            print(f"{path} does not exist: skipped")
            continue
        with open(path, newline="", encoding="utf-8") as lines:
            scores = {tuple(map(int, row["subset"].split())): float(row["score"]) for row in csv.DictReader(lines)}
        table = SubsetScores.from_dict(scores)
        yield from ((name, table, k) for k in sizes)


def real(n_rows: int) -> Iterator[Case]:
    """Tables of one split of real data, as ISDE scores them."""
    for name, sizes in (("nilsson_rare", (3, 4)), ("levine32_h2", (3,))):
        path = SHARED / "data" / f"{name}.npz"
        if not path.is_file():
            print(f"{path} does not exist: skipped")
            continue
        X = np.load(path)["X"].astype(np.float64)
        rows = np.random.default_rng(0).permutation(len(X))[:n_rows]
        fitted = ISDE(max_block_size=max(sizes), split="paper", random_state=0).fit(X[rows])
        yield from ((name, fitted.subset_scores_, k) for k in sizes)


def splits(seeds: Sequence[int]) -> Iterator[Case]:
    """Tables of levine32_h2 as `experiments/trees.py real` scores them: 5,000 rows, the default's splits."""
    path = SHARED / "data" / "levine32_h2.npz"
    if not path.is_file():
        print(f"{path} does not exist: skipped")
        return
    X = np.load(path)["X"].astype(np.float64)
    for seed in seeds:
        rows = np.random.default_rng(seed).permutation(len(X))[:5000]
        yield f"levine32_h2 #{seed}", Scoring.of(3, random_state=seed, n_jobs=1).score(X[rows]), 3


def wide(n_rows: int) -> Iterator[Case]:
    """Tables of 50 columns: Gaussians along a 2-tree, and real columns, each file's rows by themselves."""
    yield "2-tree50", gaussian(50, 3, joined=True), 3
    paths = [SHARED / "data" / f"{name}.npz" for name in ("levine32_h2", "nilsson_rare", "kin8nm")]
    if missing := [path for path in paths if not path.is_file()]:
        print(f"{missing[0]} does not exist: skipped")
        return
    rng, tables = np.random.default_rng(0), [np.load(path)["X"].astype(np.float64) for path in paths]
    X = np.hstack([X[rng.permutation(len(X))[:n_rows]] for X in tables])[:, :50]
    yield "real50", Scoring.of(3, split="paper", random_state=0, n_jobs=1).score(X), 3


def gaussian(d: int, k: int, n_rows: int = 1000, seed: int = 0, joined: bool = False) -> SubsetScores:
    """Gains of Gaussian columns, each the child of two before it, as rows show them, less 0.01 nats a pair.

    Where the two are joined the columns form a 2-tree. Otherwise they are any two, and no tree of triples is near.
    """
    rng = np.random.default_rng(seed)
    X, edges = rng.normal(size=(n_rows, d)), [(0, 1)]
    for c in range(2, d):
        a, b = edges[rng.integers(len(edges))] if joined else rng.choice(c, 2, replace=False).tolist()
        X[:, c] += X[:, [a, b]] @ [0.8, -0.6]
        edges += [(a, c), (b, c)]
    correlation, subsets = np.corrcoef(X.T), SubsetFamily(d, k)
    gains = []
    for size in range(1, k + 1):
        members = subsets.members(size).astype(np.int64)
        blocks = correlation[members[:, :, None], members[:, None, :]]
        gains.append(-0.5 * np.linalg.slogdet(blocks)[1] - 0.005 * size * (size - 1))
    nothing = np.full(len(subsets), np.nan)
    return SubsetScores(subsets, np.concatenate(gains), nothing, nothing, default_names(d))


def synthetic() -> Iterator[Case]:
    """Tables of Gaussian columns."""
    for d, k in ((16, 3), (16, 5), (32, 3), (50, 2), (50, 3), (32, 4)):
        yield f"gaussian{d}", gaussian(d, k), k


def parents(seeds: Sequence[int]) -> Iterator[Case]:
    """Tables of Gaussian columns with any two parents, by several seeds."""
    for seed, d in product(seeds, (32, 50, 60)):
        yield f"gaussian{d} #{seed}", gaussian(d, 3, seed=seed), 3


def show(case: Case) -> None:
    name, scores, k = case
    start = time.process_time()
    found = select_tree(scores, k)
    seconds = time.process_time() - start
    gain = found.objective - fsum(scores.scores[: scores.n_columns])
    share = found.gap / gain if gain > 0 else np.nan
    print(
        f"{name:14s} {scores.n_columns:3d} {k:2d} {found.solver:9s} {seconds:8.2f} {found.objective:12.6f} "
        f"{found.bound:12.6f} {found.gap:9.2g} {share:9.2g} {gain:9.4f}  {found.proof}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("saved", "real", "wide", "parents", "splits", "synthetic"))
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5), help="of --only parents and splits")
    parser.add_argument("--rows", type=int, default=2000, help="of real data, from which scores are taken")
    options = parser.parse_args()
    for solver in ("dynamic", "milp"):
        select_tree(gaussian(10, 3, 100), solver=solver)  # compiles
    print("table            d  k solver     seconds        lower        upper       gap  gap/gain      gain  proof")
    usual = {
        "saved": saved,
        "real": lambda: real(options.rows),
        "wide": lambda: wide(options.rows),
        "synthetic": synthetic,
    }
    asked_for = {"parents": lambda: parents(options.seeds), "splits": lambda: splits(options.seeds)}
    for kind, cases in (usual | asked_for).items():
        if options.only == kind or (options.only is None and kind in usual):
            for case in cases():
                show(case)


if __name__ == "__main__":
    main()
