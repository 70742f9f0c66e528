"""Subset scoring against the machine's own float32 matrix product, and against what people use: one table a part.

    python benchmarks/bench_engine.py                  # everything, about 15 minutes
    python benchmarks/bench_engine.py limit proof      # some parts

Each comparison is made inside one run, best of several, since machines are shared and noisy. Real data are read from
../shared/data and their parts are skipped, with a word, where that folder is missing.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.neighbors import KernelDensity
from threadpoolctl import threadpool_limits

from isde import ISDE
from isde.engine import direct
from isde.engine.grid import PAPER_GRID, BandwidthGrid
from isde.engine.plan import build_tile, plan_pieces
from isde.engine.products import BandwidthSearch, RowSet, evaluate, held_out_scores
from isde.engine.scoring import log_kernel_sums, workers
from isde.errors import ISDEWarning
from isde.subsets import SubsetFamily
from isde.synthetic import make_structured

WORKERS = 2
SHARED = Path(__file__).parents[2] / "shared" / "data"
PAPER_GPU_SECONDS = {"[4,4,2,2]": 2611.5, "Levine32": 3665.0, "d = 50, k = 5": 233_323.0}


def best_of(times: int, function, *args) -> float:
    """Least wall time of several calls."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        function(*args)
        found.append(time.perf_counter() - start)
    return min(found)


def sgemm_rate(n: int = 1024) -> float:
    """Float32 multiply-adds a second: large square products, one BLAS thread for each of the workers."""
    matrices = [np.random.default_rng(i).random((n, n), dtype=np.float32) for i in range(WORKERS)]

    def multiply(a: np.ndarray) -> None:
        for _ in range(4):
            a @ a

    with threadpool_limits(1), Parallel(WORKERS, prefer="threads") as pool:
        return WORKERS * 4 * n**3 / best_of(3, lambda: pool(delayed(multiply)(a) for a in matrices))


def scaled_structured(structure: list[int], n: int) -> np.ndarray:
    X, _ = make_structured(structure, n, random_state=0)
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def real_data(name: str, n: int) -> np.ndarray | None:
    path = SHARED / f"{name}.npz"
    if not path.is_file():
        print(f"  {path} is missing: skipped")
        return None
    with np.load(path) as archive:
        X = np.random.default_rng(0).permutation(archive["X"])[:n].astype(float)
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def folds_of(X: np.ndarray) -> RowSet:
    return RowSet.of_folds(X, list(KFold(5).split(X)))


def limit() -> None:
    """Every bandwidth evaluated: time over what the useful multiply-adds need at the sgemm rate."""
    print("\nlimit: cross-validation, all 30 bandwidths, against float32 matrix products")
    cases = [
        ("d = 12, k = 12, m = 2,500", scaled_structured([4, 4, 2, 2], 2500), 12, None, 1.5),
        ("d = 32, k = 3, m = 3,000", np.random.default_rng(0).random((3000, 32)), 3, None, 1.7),
        ("d = 50, k = 5, m = 1,000, 2 tiles", np.random.default_rng(0).random((1000, 50)), 5, 2, 1.7),
    ]
    for name, X, k, n_tiles, bar in cases:
        family = SubsetFamily(X.shape[1], k)
        plan = plan_pieces(family)
        chosen = range(len(plan)) if n_tiles is None else np.random.default_rng(0).choice(len(plan), n_tiles, False)
        tiles, rows = [build_tile(family, plan[i]) for i in chosen], folds_of(X)
        work = sum(tile.n_subsets for tile in tiles) * len(PAPER_GRID) * len(X) * rows.centres_of_fold[0].shape[1]
        rate, seconds = 0.0, np.inf
        with workers(WORKERS) as run:
            for _ in range(3):
                rate = max(rate, sgemm_rate())
                everything = [np.ones((len(PAPER_GRID), len(tile.quad)), dtype=bool) for tile in tiles]
                start = time.perf_counter()
                for tile, active in zip(tiles, everything, strict=True):
                    evaluate(tile, rows, PAPER_GRID, active, run)
                seconds = min(seconds, time.perf_counter() - start)
        ratio, ours = seconds * rate / work, work / seconds / 1e9
        print(
            f"  {name:36} {seconds:6.2f} s  {ours:5.1f} GFMA/s, sgemm {rate / 1e9:5.1f}: {ratio:.2f} times (bar {bar})"
        )


def proof() -> None:
    """Bandwidths proved away: the same choice from fewer evaluations."""
    print("\nproof: bandwidths proved away, the paper's grid as given, real data")
    for name, m, k in (("levine32_h2", 3000, 3), ("nilsson_rare", 2500, 5), ("kin8nm", 2500, 9)):
        X = real_data(name, m)
        if X is None:
            continue
        family = SubsetFamily(X.shape[1], k)
        tiles, rows = [build_tile(family, pieces) for pieces in plan_pieces(family)], folds_of(X)
        grid = BandwidthGrid.of(PAPER_GRID)
        seconds, evaluations, chosen = {}, {}, {}
        with workers(WORKERS) as run:
            for prove in (False, True, False, True):
                start = time.perf_counter()
                searches = [BandwidthSearch(tile, rows, grid, run, prove=prove) for tile in tiles]
                chosen[prove] = np.concatenate([s.best()[0][s.real] for s in searches])
                seconds[prove] = min(seconds.get(prove, np.inf), time.perf_counter() - start)
                evaluations[prove] = sum(s.evaluations for s in searches) / len(family)
        same = (chosen[True] == chosen[False]).mean()
        print(
            f"  {name:14} d = {X.shape[1]}, k = {k}, m = {m:,}: {evaluations[True]:.1f} of {evaluations[False]:.0f} "
            f"evaluations a subset, {seconds[False]:.1f} s -> {seconds[True]:.1f} s: "
            f"{seconds[False] / seconds[True]:.2f} times faster (bar 1.7), same bandwidth for {same:.2%}"
        )


def rivals() -> None:
    """Seconds a subset: GridSearchCV(KernelDensity) and pyKeOps on sampled subsets, ours on all of them."""
    print("\nrivals: d = 12, k = 12, m = 2,500, 30 bandwidths, 5 folds, seconds a subset")
    X = scaled_structured([4, 4, 2, 2], 2500)
    family = SubsetFamily(12, 12)
    tiles, rows = [build_tile(family, pieces) for pieces in plan_pieces(family)], folds_of(X)
    with workers(WORKERS) as run:

        def engine() -> None:
            for tile in tiles:
                BandwidthSearch(tile, rows, BandwidthGrid.of(PAPER_GRID), run).best()

        ours = best_of(2, engine) / len(family)
    print(f"  isde, {WORKERS} workers                     {ours:.6f}")
    sample = [family[int(i)] for i in np.random.default_rng(0).choice(len(family), 3, replace=False)]
    search = GridSearchCV(KernelDensity(), {"bandwidth": PAPER_GRID}, cv=KFold(5), refit=False, n_jobs=WORKERS)
    theirs = np.mean([best_of(1, search.fit, X[:, list(subset)]) for subset in sample])
    print(f"  GridSearchCV(KernelDensity), {WORKERS} workers {theirs:.4f}: {theirs / ours:,.0f} times (bar 1,000)")
    try:
        from pykeops.numpy import LazyTensor
    except ImportError:
        print("  pykeops is not installed: skipped (pip install pykeops)")
        return

    def keops(subset: tuple[int, ...]) -> None:
        for fit, held_out in KFold(5).split(X):
            x = LazyTensor(np.ascontiguousarray(X[np.ix_(held_out, subset)])[:, None, :])
            y = LazyTensor(np.ascontiguousarray(X[np.ix_(fit, subset)])[None, :, :])
            for h in PAPER_GRID:
                np.log((-((x - y) ** 2).sum(-1) / (2 * h**2)).exp().sum(axis=1)).mean()

    with np.errstate(divide="ignore"):  # its sums underflow for far rows
        for subset in sample:
            keops(subset)  # compiles
        theirs = np.mean([best_of(2, keops, subset) for subset in sample])
    print(f"  pyKeOps on the CPU               {theirs:.4f}: {theirs / ours:,.0f} times (bar 30)")


def fits() -> None:
    """Whole fits beside the paper's GPU."""
    print("\nfits: ISDE.fit as a user calls it, seconds")
    warnings.simplefilter("ignore", ISDEWarning)
    X, truth = make_structured([2, 2, 1], 500, random_state=0)
    ISDE(5, n_jobs=WORKERS).fit(X)
    print(f"  d = 5, k = 5, N = 500: {best_of(3, ISDE(5, n_jobs=WORKERS).fit, X):.2f} (bar 0.3)")
    X, truth = make_structured([4, 4, 2, 2], 5000, random_state=0)
    model = ISDE(12, n_jobs=WORKERS, random_state=0)
    seconds = best_of(2, model.fit, X)
    gpu = PAPER_GPU_SECONDS["[4,4,2,2]"]
    found = model.partition_ == truth
    print(
        f"  [4,4,2,2], N = 5,000, k = 12: {seconds:.1f} (bar 12), {gpu / seconds:.0f} x the GPU, truth found: {found}"
    )
    X = real_data("levine32_h2", 5000)
    if X is not None:
        split = ShuffleSplit(1, train_size=3000, test_size=2000, random_state=0)
        seconds = best_of(1, ISDE(3, split=split, n_jobs=WORKERS).fit, X)
        gpu = PAPER_GPU_SECONDS["Levine32"]
        print(f"  Levine32's size, m = 3,000, n = 2,000, k = 3: {seconds:.1f} (bar 25), {gpu / seconds:.0f} x the GPU")


def tile_seconds(X_fit: np.ndarray, X_score: np.ndarray, tiles: list) -> list[float]:
    """Seconds for each complete tile: bandwidths and scores, as `ISDE.fit` computes them."""
    cv_rows, held_out = folds_of(X_fit), RowSet.of_samples(X_fit, X_score)
    seconds = []
    with workers(WORKERS) as run:
        for tile in tiles:
            start = time.perf_counter()
            search = BandwidthSearch(tile, cv_rows, BandwidthGrid.of(None), run)
            chosen, _ = search.best()
            held_out_scores(tile, held_out, search.h[chosen], run)
            seconds.append(time.perf_counter() - start)
    return seconds


def projection() -> None:
    """d = 50, k = 5 from random tiles; the method checked by a complete run where that is affordable.

    A tile is drawn with a chance in proportion to its subsets, so that the mean of seconds a subset is unbiased.
    """
    print("\nprojection: seconds a subset of random tiles, times the number of subsets")
    rng, gpu = np.random.default_rng(0), PAPER_GPU_SECONDS["d = 50, k = 5"]
    for d, k, m, n, n_tiles, complete in ((32, 4, 1000, 1000, 6, True), (50, 5, 1000, 1000, 8, False)):
        X = scaled_structured([4, 3, 2, 1] * (d // 10) + [2] * (d % 10 // 2), m + n)
        family = SubsetFamily(d, k)
        plan = plan_pieces(family)
        sizes = np.array([sum(len(piece.lefts) * len(piece.rights) for piece in pieces) for pieces in plan])
        drawn = rng.choice(len(plan), n_tiles, p=sizes / sizes.sum())
        tiles = [build_tile(family, plan[i]) for i in drawn]
        tile_seconds(X[:200], X[m : m + 100], tiles[:1])  # compiled code is loaded
        each = [s / tile.n_subsets for s, tile in zip(tile_seconds(X[:m], X[m:], tiles), tiles, strict=True)]
        projected = np.mean(each) * len(family)
        error = np.std(each, ddof=1) / np.sqrt(n_tiles) * len(family)
        line = f"  d = {d}, k = {k}, m = {m:,}, {n_tiles} of {len(plan)} tiles: {projected:,.0f} +- {error:,.0f} s"
        if complete:
            whole = sum(tile_seconds(X[:m], X[m:], [build_tile(family, pieces) for pieces in plan]))
            line += f" projected, {whole:,.0f} s measured ({projected / whole - 1:+.0%}, bar 15 %)"
        else:
            line += f" projected (bar 900), {gpu / projected:,.0f} x the GPU"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{line}; peak memory of the process {peak:.2f} GB")


def densities() -> None:
    """score_samples of a block against KernelDensity's, which is not even exact in the tails."""
    print("\ndensities: 100,000 rows against 5,000 centres, 3 columns")
    rng = np.random.default_rng(0)
    centres, rows, h = rng.normal(size=(5000, 3)), rng.normal(size=(100_000, 3)), 0.2
    log_kernel_sums(rows[:100], centres, h, WORKERS)
    ours = best_of(3, log_kernel_sums, rows, centres, h, WORKERS)
    theirs = best_of(1, KernelDensity(bandwidth=h).fit(centres).score_samples, rows[:10_000]) * 10
    exact = direct.log_kernel_sums(rows[:500], centres, np.array([h]))[0]
    worst = np.abs(log_kernel_sums(rows[:500], centres, h, 1) - exact).max()
    print(
        f"  isde {ours:.2f} s, KernelDensity {theirs:.2f} s (a tenth of the rows, x 10): {theirs / ours:.0f} x (bar 20)"
    )
    print(f"  largest error against the definition {worst:.1e}")


PARTS = {f.__name__: f for f in (limit, proof, rivals, fits, projection, densities)}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
