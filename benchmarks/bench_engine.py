"""Subset scoring against the machine's own float32 matrix product, and against what people use: one table a part.

    python benchmarks/bench_engine.py                  # everything, about 15 minutes
    python benchmarks/bench_engine.py limit proof      # some parts

Each comparison is made inside one run, best of several, since machines are shared and noisy. Where others use the
processors too, the clock says little: "busy" seconds are those of the processors divided by the number of workers, what
the clock would say on a quiet machine. Real data are read from ../shared/data and their parts are skipped, with a word,
where that folder is missing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.neighbors import KernelDensity
from threadpoolctl import threadpool_limits

from isde import ISDE, chance
from isde.density import fit_blocks
from isde.engine import direct, plan
from isde.engine.grid import PAPER_GRID, BandwidthGrid
from isde.engine.plan import build_tile, plan_pieces
from isde.engine.products import BandwidthSearch, RowSet, Work, evaluate
from isde.engine.scoring import KernelRows, expected_memory, kernel_chunks, score_chunk
from isde.engine.sums import log_kernel_sums
from isde.errors import ISDEWarning
from isde.marginals import resolve_marginal
from isde.run.executors import LocalExecutor, workers
from isde.run.work import Chunk, Means
from isde.score_costs import expected_cost
from isde.score_tables import How, score_models
from isde.score_tasks import SplitRows
from isde.scoring import Scoring
from isde.subsets import SubsetFamily
from isde.synthetic import make_structured

WORKERS = 2
SHARED = Path(__file__).parents[2] / "shared" / "data"
PAPER_GPU_SECONDS = {"[4,4,2,2]": 2611.5, "Levine32": 3665.0, "d = 50, k = 5": 233_323.0}


class Seconds(NamedTuple):
    """What something took: by the clock, and of the processors for each worker."""

    clock: float
    busy: float

    def __str__(self) -> str:
        return f"{self.clock:.2f} s (busy {self.busy:.2f})"


def best_of(times: int, function, *args) -> Seconds:
    """Least times of several calls."""
    found = []
    for _ in range(times):
        start, busy = time.perf_counter(), time.process_time()
        function(*args)
        found.append((time.perf_counter() - start, (time.process_time() - busy) / WORKERS))
    return Seconds(*np.min(found, axis=0))


def sgemm_seconds(n: int = 1024) -> tuple[float, float]:
    """Seconds for a float32 multiply-add, clock and busy: large square products, one BLAS thread a worker."""
    matrices = [np.random.default_rng(i).random((n, n), dtype=np.float32) for i in range(WORKERS)]

    def multiply(a: np.ndarray) -> None:
        for _ in range(4):
            a @ a

    with threadpool_limits(1), Parallel(WORKERS, prefer="threads") as pool:
        taken = best_of(3, lambda: pool(delayed(multiply)(a) for a in matrices))
    return taken.clock / (WORKERS * 4 * n**3), taken.busy / (WORKERS * 4 * n**3)


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
        pieces = plan_pieces(family)
        chosen = range(len(pieces)) if n_tiles is None else np.random.default_rng(0).choice(len(pieces), n_tiles, False)
        tiles, rows = [build_tile(family, pieces[i]) for i in chosen], folds_of(X)
        work = sum(tile.n_subsets for tile in tiles) * len(PAPER_GRID) * len(X) * rows.centres_of_fold[0].shape[1]
        everything = [Work.of(t, PAPER_GRID, np.ones((len(PAPER_GRID), len(t.position)), dtype=bool)) for t in tiles]
        unit, taken = [], []
        with workers(WORKERS) as run:

            def step() -> None:
                for tile, wanted in zip(tiles, everything, strict=True):  # noqa: B023
                    evaluate(tile, rows, wanted, run)  # noqa: B023

            for _ in range(5):
                unit.append(sgemm_seconds())
                taken.append(best_of(1, step))
        unit_clock, unit_busy = np.min(unit, axis=0)
        seconds = Seconds(*np.min(taken, axis=0))
        print(
            f"  {name:36} {seconds}, {work / seconds.busy / 1e9:.1f} GFMA/s, sgemm {1e-9 / unit_busy:.1f}: "
            f"{seconds.busy / work / unit_busy:.2f} times busy, {seconds.clock / work / unit_clock:.2f} clock "
            f"(bar {bar})"
        )


def proof() -> None:
    """Bandwidths proved away: the same choice from fewer evaluations."""
    print("\nproof: bandwidths proved away, the paper's grid as given, real data")
    # The sizes of `limit`, as far as the shared data have the columns; then two others.
    sizes = (
        ("levine32_h2", 3000, 32, 3),
        ("nilsson_rare", 2500, 12, 12),
        ("nilsson_rare", 2500, 13, 5),
        ("kin8nm", 2500, 9, 9),
    )
    for name, m, d, k in sizes:
        X = real_data(name, m)
        if X is None:
            continue
        X = np.ascontiguousarray(X[:, :d])
        family = SubsetFamily(X.shape[1], k)
        tiles, rows = [build_tile(family, pieces) for pieces in plan_pieces(family)], folds_of(X)
        grid = BandwidthGrid.of(PAPER_GRID)
        seconds, evaluations, chosen = {}, {}, {}
        with workers(WORKERS) as run:

            def search(prove: bool) -> None:
                searches = [BandwidthSearch(tile, rows, grid, run, prove=prove) for tile in tiles]  # noqa: B023
                chosen[prove] = np.concatenate([s.best()[0][s.real] for s in searches])  # noqa: B023
                evaluations[prove] = sum(s.evaluations for s in searches) / len(family)  # noqa: B023

            for _ in range(3):
                for prove in (False, True):
                    taken = best_of(1, search, prove)
                    seconds[prove] = Seconds(*np.minimum(taken, seconds.get(prove, taken)))
        same = (chosen[True] == chosen[False]).mean()
        ratio = np.divide(seconds[False], seconds[True])
        print(
            f"  {name:14} d = {X.shape[1]}, k = {k}, m = {m:,}: {evaluations[True]:.1f} of {evaluations[False]:.0f} "
            f"evaluations a subset, {seconds[False]} -> {seconds[True]}: {ratio[1]:.2f} times faster busy, "
            f"{ratio[0]:.2f} clock (bar 1.7), same bandwidth for {same:.2%}"
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

        ours = best_of(2, engine).busy / len(family)
    print(f"  isde, {WORKERS} workers                     {ours:.6f}")
    sample = [family[int(i)] for i in np.random.default_rng(0).choice(len(family), 3, replace=False)]
    search = GridSearchCV(KernelDensity(), {"bandwidth": PAPER_GRID}, cv=KFold(5), refit=False, n_jobs=WORKERS)
    theirs = np.mean([best_of(1, search.fit, X[:, list(subset)]).clock for subset in sample])  # in other processes
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
        theirs = np.mean([best_of(2, keops, subset).busy for subset in sample])
    print(f"  pyKeOps on the CPU               {theirs:.4f}: {theirs / ours:,.0f} times (bar 30)")


def fits() -> None:
    """Whole fits beside the paper's GPU."""
    print("\nfits: ISDE.fit as a user calls it, seconds")
    warnings.simplefilter("ignore", ISDEWarning)
    X, truth = make_structured([2, 2, 1], 500, random_state=0)
    paper = {"marginal": "kde", "n_jobs": WORKERS}  # the default describes the kept blocks by more than a kernel
    kde, stacked = ISDE(5, split=0.5, **paper).fit(X), ISDE(5, split=0.5, n_jobs=WORKERS).fit(X)
    print(
        f"  d = 5, k = 5, N = 500: {best_of(3, kde.fit, X)} (bar 0.3); "
        f"with the default marginal {best_of(3, stacked.fit, X)}"
    )
    X, truth = make_structured([4, 4, 2, 2], 5000, random_state=0)
    half = ShuffleSplit(1, train_size=0.5, random_state=0)  # the paper's; the default averages over several splits
    model = ISDE(12, split=half, **paper)
    seconds = best_of(2, model.fit, X)
    gpu = PAPER_GPU_SECONDS["[4,4,2,2]"]
    found = model.partition_ == truth
    print(
        f"  [4,4,2,2], N = 5,000, k = 12: {seconds} (bar 12), {gpu / seconds.busy:.0f} x the GPU, truth found: {found}"
    )
    X = real_data("levine32_h2", 5000)
    if X is not None:
        split = ShuffleSplit(1, train_size=3000, test_size=2000, random_state=0)
        model = ISDE(3, split=split, **paper)
        seconds, gpu = best_of(2, model.fit, X), PAPER_GPU_SECONDS["Levine32"]
        refit, stacks = (
            best_of(2, lambda family=family: fit_blocks(X, model.partition_, family, n_jobs=WORKERS))
            for family in ("kde", "copula+stack")
        )
        print(
            f"  Levine32's size, m = 3,000, n = 2,000, k = 3: {seconds} (bar 25), {gpu / seconds.busy:.0f} x the GPU; "
            f"of these {refit} to fit its {len(model.partition_)} blocks on all rows ({stacks} by the default)"
        )


def chunk_seconds(X_fit: np.ndarray, X_score: np.ndarray, family: SubsetFamily, chunks: list[Chunk]) -> list[float]:
    """Busy seconds of one worker for each chunk, as `ISDE.fit` does them: all workers busy with chunks."""
    rows = KernelRows.of(X_fit, X_score, list(KFold(5).split(X_fit)), BandwidthGrid.of(None))

    def timed(chunk: Chunk) -> float:
        start = time.thread_time()  # of this worker only
        score_chunk(rows, family, chunk, Means())
        return time.thread_time() - start

    return Parallel(WORKERS, prefer="threads")(delayed(timed)(chunk) for chunk in chunks)


def projected(
    X_fit: np.ndarray, X_score: np.ndarray, family: SubsetFamily, n_tiles: int, seed: int = 0
) -> tuple[float, float, int]:
    """Seconds for all tiles and their standard error, from random ones; the number of tiles.

    The work of a tile is known roughly beforehand: that of its pieces, and kernels, at the price of 24 inner products a
    column (measured). Tiles in the order of the plan, where neighbours are alike, are cut into as many strata of equal
    work as tiles are drawn, and one is drawn from each with a chance in proportion to its work.
    """
    chunks = kernel_chunks(family)
    work = np.array([sum(piece.cost for piece in chunk.content) + 24 * family.n_columns for chunk in chunks])
    points = (np.arange(n_tiles) + np.random.default_rng(seed).random(n_tiles)) / n_tiles * work.sum()
    drawn = np.searchsorted(np.cumsum(work), points)
    each = np.array(chunk_seconds(X_fit, X_score, family, [chunks[i] for i in drawn])) / work[drawn]
    whole = work.sum() / WORKERS
    return each.mean() * whole, each.std(ddof=1) / np.sqrt(n_tiles) * whole, len(chunks)


def projection() -> None:
    """d = 50, k = 5 from random tiles; the method checked by complete runs.

    For the checks tiles are made smaller than usual: there must be as many as workers take one by one, as at d = 50.
    """
    print("\nprojection: seconds of random tiles in proportion to their work, times all work")
    small = SubsetFamily(3, 3)
    chunk_seconds(np.random.default_rng(0).random((60, 3)), np.zeros((5, 3)), small, list(kernel_chunks(small)))
    for d, k, m, n, n_tiles, slots in ((32, 3, 3000, 2000, 6, 500), (32, 4, 1000, 1000, 8, 2000)):
        X, family = scaled_structured([4, 3, 2, 1] * 3 + [2], m + n), SubsetFamily(d, k)
        with patch.object(plan, "TILE_SLOTS", slots):
            plan_pieces.cache_clear()
            kernel_chunks.cache_clear()
            assert LocalExecutor(WORKERS).means(len(kernel_chunks(family))).n_workers == 1
            whole = best_of(1, lambda: score_all(X[:m], X[m:], family))  # noqa: B023
            print(f"  d = {d}, k = {k}, m = {m:,}, n = {n:,}: {whole} measured, complete")
            for seed in range(3):
                guess, error, n_plan = projected(X[:m], X[m:], family, n_tiles, seed)
                print(
                    f"    {n_tiles} of {n_plan} tiles, draw {seed}: {guess:,.1f} +- {error:.1f} s projected "
                    f"({guess / whole.busy - 1:+.0%} busy, {guess / whole.clock - 1:+.0%} clock, bar 15 %)"
                )
    X, family, n_tiles = scaled_structured([4, 3, 2, 1] * 5, 2000), SubsetFamily(50, 5), 10
    guess, error, n_plan = projected(X[:1000], X[1000:], family, n_tiles)
    print(
        f"  d = 50, k = 5, m = n = 1,000, {n_tiles} of {n_plan} tiles: {guess:,.0f} +- {error:,.0f} s projected "
        f"(bar 900), {PAPER_GPU_SECONDS['d = 50, k = 5'] / guess:,.0f} x the GPU"
    )


def score_all(X_fit: np.ndarray, X_score: np.ndarray, family: SubsetFamily) -> None:
    X, m = np.concatenate([X_fit, X_score]), len(X_fit)
    names = [str(c) for c in range(X.shape[1])]
    split = np.arange(m), np.arange(m, len(X))
    score_models(SplitRows(resolve_marginal("kde"), X, [split]), family, names, How(WORKERS))


def estimates() -> None:
    """The cost shown before a run against the run."""
    print("\nestimates: seconds said before, seconds taken (bar 30 %)")
    cases = [
        ("Levine32's size", real_data("levine32_h2", 5000), 3000, 3),
        ("[4,4,2,2], N = 5,000", scaled_structured([4, 4, 2, 2], 5000), 2500, 12),
        ("kin8nm", real_data("kin8nm", 5000), 2500, 9),
        ("d = 32, k = 4, N = 2,000", scaled_structured([4, 3, 2, 1] * 3 + [2], 2000), 1000, 4),
    ]
    for name, X, m, k in cases:
        if X is None:
            continue
        family, split = SubsetFamily(X.shape[1], k), (np.arange(m), np.arange(m, len(X)))
        start, busy = time.perf_counter(), time.process_time()
        said, memory = expected_cost(SplitRows(resolve_marginal("kde"), X, [split]), family, WORKERS)
        took, share = time.perf_counter() - start, (time.process_time() - busy) / (time.perf_counter() - start)
        taken = best_of(1, score_all, X[:m], X[m:], family)
        # The estimate goes by the clock, as it must; `share` of it this process had a processor.
        print(
            f"  {name:26} {said:.1f} said, {taken} taken ({said / taken.clock - 1:+.0%} clock, "
            f"{said * share / taken.busy - 1:+.0%} busy); it took {took:.1f} s; {memory / 2**20:,.0f} MB at most"
        )


def resident(what: str) -> float:
    """MB in memory, from Linux: VmRSS now, VmHWM at most since the last reset."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[what].split()[0]) / 2**10


def peak_memory(n_jobs: int, allowed: int) -> tuple[float, float]:
    """MB beyond the data and what was loaded before, for some tiles of d = 50, k = 5; MB expected."""
    warnings.simplefilter("ignore")  # joblib's, of tiles that are not waited for
    X, family = scaled_structured([4, 3, 2, 1] * 5, 500), SubsetFamily(50, 5)
    score_all(X[:300, :5], X[300:, :5], SubsetFamily(5, 3))  # compiled code is loaded
    rows = KernelRows.of(X[:300], X[300:], list(KFold(5).split(X[:300])), BandwidthGrid.of(None))
    chunks = kernel_chunks(family)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    with config_context(working_memory=allowed):
        executor = LocalExecutor(n_jobs)
        means = executor.means(len(chunks))
        at_once = executor.n_workers // means.n_workers
        expected = at_once * max(expected_memory(rows.grid, chunk, means) for chunk in chunks)
        done = executor.map(
            lambda chunk, means: score_chunk(rows, family, chunk, means), chunks, lambda chunk: lambda share: None
        )
        for _ in islice(done, max(6, 2 * n_jobs)):
            pass
    return resident("VmHWM") - before, expected / 2**20


def memory() -> None:
    """Peak memory of d = 50, k = 5, with scikit-learn's default for working_memory and with less."""
    print("\nmemory: d = 50, k = 5, MB beyond the data (bar 2,048), each in a process of its own")
    if not Path("/proc/self/clear_refs").exists():
        print("  Linux only: skipped")
        return
    for allowed, n_jobs in ((1024, 1), (1024, 2), (1024, 8), (1024, 64), (128, 1), (128, 2), (128, 8)):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            peak, expected = pool.submit(peak_memory, n_jobs, allowed).result()
        print(f"  working_memory = {allowed:,}, n_jobs = {n_jobs}: {peak:,.0f} MB, {expected:,.0f} expected at most")


def compilation() -> None:
    """The first call ever on a machine: processor time of a first process beyond that of a second one."""
    print("\ncompilation: busy seconds of processes that fit once, from an empty cache and a full one, best of three")
    code = (
        "import time, warnings; from isde import ISDE; from isde.synthetic import make_structured;"
        "warnings.simplefilter('ignore'); X, _ = make_structured([2, 2, 1], 300, random_state=0);"
        "ISDE({}random_state=0).fit(X); print(time.process_time())"
    )
    for name, options, bar in (("the default", "", " (bar 6)"), ("marginal='kde'", "marginal='kde', ", "")):
        command, pairs = [sys.executable, "-c", code.format(options)], []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as cache:
                environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
                pairs.append([float(subprocess.check_output(command, env=environment)) for _ in range(2)])
        first, second = map(min, zip(*pairs, strict=True))
        print(f"  {name:16} {first:.1f} and {second:.1f}: {first - second:.1f} to compile{bar}")


def densities() -> None:
    """score_samples of a block against KernelDensity's, which is not even exact in the tails."""
    print("\ndensities: 100,000 rows against 5,000 centres, 3 columns")
    rng = np.random.default_rng(0)
    centres, rows, h = rng.normal(size=(5000, 3)), rng.normal(size=(100_000, 3)), 0.2
    log_kernel_sums(rows[:100], centres, h, WORKERS)
    ours = best_of(3, log_kernel_sums, rows, centres, h, WORKERS)
    theirs = best_of(2, KernelDensity(bandwidth=h).fit(centres).score_samples, rows[:10_000]).busy * WORKERS * 10
    exact = direct.log_kernel_sums(rows[:500], centres, np.array([h]))[0]
    worst = np.abs(log_kernel_sums(rows[:500], centres, h, 1) - exact).max()
    print(
        f"  isde {ours}, KernelDensity {theirs:.1f} s of one processor (a tenth of the rows, x 10): "
        f"{theirs / ours.busy:.0f} x busy (bar 20)"
    )
    print(f"  largest error against the definition {worst:.1e}")
    X, partition = make_structured([3, 2, 2, 1], 5000, random_state=0)
    rows, _ = make_structured([3, 2, 2, 1], 20_000, random_state=1)
    kde, stack = (
        best_of(3, fit_blocks(X, partition, family, n_jobs=WORKERS).score_blocks, rows, WORKERS)
        for family in ("kde", "copula+stack")
    )
    print(f"  four blocks, 5,000 rows, 20,000 to score: kde {kde}, the default {stack}: {stack.busy / kde.busy:.1f} x")


def copula() -> None:
    """Structure by ranks with the default's twenty splits, beside kernels on the data's own scale, in one run.

    The limit is that of the kernels alone: seven bandwidths on five folds, and the rows to score, at sgemm's rate.
    """
    print("copula: scoring by ranks, columns alone, and chance; twenty splits")
    seconds_of_one = sgemm_seconds()[1]
    for n, d, k in ((300, 5, 3), (1000, 12, 3), (3000, 12, 3), (2000, 32, 3)):
        X = np.random.default_rng(0).normal(size=(n, d))
        ranks = Scoring.of(k, alpha=None, n_jobs=WORKERS, random_state=0)
        kernels = Scoring.of(k, marginal="kde", alpha=None, n_jobs=WORKERS, random_state=0)
        kde = best_of(1, kernels.score, (X - X.min(axis=0)) / np.ptp(X, axis=0))
        plain = best_of(2, lambda: ranks.score(X, columns=False))  # noqa: B023
        whole = best_of(2, ranks.score, X)
        chance._draw_once.cache_clear()
        charged = best_of(1, replace(ranks, alpha=0.05).score, X)
        again = best_of(1, replace(ranks, alpha=0.05).score, X)
        fit, score = round(0.45 * n), n - round(0.45 * n)
        products = 20 * len(SubsetFamily(d, k)) * (7 * 0.8 * fit**2 + fit * score)
        print(
            f"  N = {n:,}, d = {d}, k = {k}: kde {kde}; by ranks {plain}, "
            f"{plain.busy * WORKERS / (products * seconds_of_one):.1f} x the limit; with columns alone {whole}; "
            f"with chance {charged}: {charged.busy / whole.busy:.1f} x; again {again}"
        )


PARTS = {
    f.__name__: f for f in (limit, proof, rivals, fits, copula, projection, densities, estimates, memory, compilation)
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all where none is named")
    asked = parser.parse_args().parts
    if not set(asked) <= set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    for part in asked or PARTS:
        PARTS[part]()
