"""Every subset of a family through the engine: tiles in parallel, or the rows of a tile where there are few tiles.

Both give the same bits: sums are cut by a plan that depends on the data alone and added in its order.

Memory. scikit-learn's `working_memory` (MiB, 1024 unless set) bounds what scoring needs beyond data and results: it
limits the size of tiles, and how many are worked on at once. Results are the same bits for any value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn import get_config

from isde.engine import kernels
from isde.engine.grid import BandwidthGrid
from isde.engine.plan import TILE_SLOTS, Piece, blocks_tile, build_tile, plan_pieces
from isde.engine.products import (
    SEARCH_SHARE,
    BandwidthSearch,
    Folds,
    Report,
    RowSet,
    Run,
    held_out_scores,
)
from isde.progress import Advance
from isde.subsets import SubsetFamily

Matrix = NDArray[np.float64]

TileScores = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]
"""Positions in the family; their scores, bandwidths, and whether the bandwidth is unsettled."""

TILES_PER_WORKER = 4
"""With fewer tiles than this for each worker, workers share the rows of one tile instead."""

ROWS_AT_ONCE = 1 << 13

FEW_PAIRS = 1 << 24
"""Of rows and centres, times columns: about 10 ms of one worker, as long as it takes to start some."""

MEASURED_ROWS = 96

KNOWN_BYTES, ASKED_BYTES, TASK_BYTES = 24, 4, 60
"""For each slot: what a search knows of a bandwidth of the grid; masks for each bandwidth that the grid may grow to;
and what a task holds of each bandwidth it evaluates."""

EVALUATED_AT_ONCE = 6
"""Bandwidths a slot is evaluated for in one round, at most on average."""

SCRATCH_BYTES = 32 << 20
"""Of each worker, besides: rows of products over a chunk, bounds of some thousand slots, what its thread does not give
back at once. Measured with eight workers (benchmarks/bench_engine.py memory)."""


def score_family(
    X_fit: Matrix,
    X_score: Matrix,
    folds: Folds,
    family: SubsetFamily,
    grid: BandwidthGrid,
    *,
    n_jobs: int | None,
    advance: Advance,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Scores, bandwidths and unsettled bandwidths of every subset, in the family's order."""
    scores, bandwidths = np.empty(len(family)), np.empty(len(family))
    unsettled = np.empty(len(family), dtype=bool)
    progress = _Progress(advance)
    for position, *values in _tile_scores(X_fit, X_score, folds, family, grid, n_jobs, progress):
        scores[position], bandwidths[position], unsettled[position] = values
        progress.finish(len(position))
    return scores, bandwidths, unsettled


class _Progress:
    """Subsets done, those of a tile under way by the share of its work."""

    def __init__(self, advance: Advance) -> None:
        self.advance, self.ahead = advance, 0

    def within(self, n_subsets: int) -> Report:
        def report(share: float) -> None:
            reached = int(share * n_subsets)
            if reached > self.ahead:
                self.advance(reached - self.ahead)
                self.ahead = reached

        return report

    def finish(self, n_subsets: int) -> None:
        self.advance(n_subsets - self.ahead)
        self.ahead = 0


def _tile_scores(
    X_fit: Matrix,
    X_score: Matrix,
    folds: Folds,
    family: SubsetFamily,
    grid: BandwidthGrid,
    n_jobs: int | None,
    progress: _Progress,
) -> Iterator[TileScores]:
    plan = _Plan.of(family, grid, n_jobs)
    cv_rows, held_out = _row_sets(X_fit, X_score, folds, grid)
    if plan.tiles_in_parallel:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
        yield from parallel(
            delayed(_score_tile)(family, pieces, cv_rows, held_out, grid, _serially) for pieces in plan.tiles
        )
        return
    with workers(plan.n_workers) as run:
        for pieces in plan.tiles:
            yield _score_tile(family, pieces, cv_rows, held_out, grid, run, progress)


def _row_sets(X_fit: Matrix, X_score: Matrix, folds: Folds, grid: BandwidthGrid) -> tuple[RowSet, RowSet]:
    """Rows to choose the bandwidth with, and to score."""
    keeps_normal = grid.keeps_normal
    return RowSet.of_folds(X_fit, folds, keeps_normal), RowSet.of_samples(X_fit, X_score, keeps_normal)


@dataclass(frozen=True)
class _Plan:
    """The tiles, and how workers share them within the memory allowed."""

    tiles: list[list[Piece]]
    tiles_in_parallel: bool
    n_workers: int
    memory: int  # bytes expected, at most

    @classmethod
    def of(cls, family: SubsetFamily, grid: BandwidthGrid, n_jobs: int | None) -> _Plan:
        allowed = int(get_config()["working_memory"] * 2**20)
        widest = len(grid.values) + grid.reach + grid.reach_above
        known = KNOWN_BYTES * len(grid.values) + ASKED_BYTES * widest  # for each slot of a tile
        task = TASK_BYTES * EVALUATED_AT_ONCE
        tiles = plan_pieces(family, min(TILE_SLOTS, max(1, (allowed - SCRATCH_BYTES) // (known + task))))
        slots = max(sum(piece.n_blocks for piece in pieces) for pieces in tiles) * kernels.LEFT * kernels.RIGHT
        n_workers = effective_n_jobs(n_jobs)
        tile_bytes, task_bytes = slots * known, slots * task + SCRATCH_BYTES
        several = n_workers * (tile_bytes + task_bytes)
        if len(tiles) >= TILES_PER_WORKER * n_workers and several <= allowed:
            return cls(tiles, True, n_workers, several)
        n_workers = max(1, min(n_workers, (allowed - tile_bytes) // task_bytes))
        return cls(tiles, False, n_workers, tile_bytes + n_workers * task_bytes)


def _score_tile(
    family: SubsetFamily,
    pieces: list[Piece],
    cv_rows: RowSet,
    held_out: RowSet,
    grid: BandwidthGrid,
    run: Run,
    progress: _Progress | None = None,
) -> TileScores:
    tile = build_tile(family, pieces)
    report = progress.within(tile.n_subsets) if progress else lambda share: None
    search = BandwidthSearch(tile, cv_rows, grid, run)
    chosen, settled = search.best(report)
    report(SEARCH_SHARE)
    bandwidths = search.h[chosen]
    scores = held_out_scores(tile, held_out, bandwidths, run)
    real = tile.position >= 0
    return tile.position[real], scores[real], bandwidths[real], ~settled[real]


def expected_cost(
    X_fit: Matrix, X_score: Matrix, folds: Folds, family: SubsetFamily, grid: BandwidthGrid, n_jobs: int | None
) -> tuple[float, float]:
    """Seconds and bytes that `score_family` will need: a tile of middle size is scored with a few of the rows.

    What its sums take grows with the rows, what lies between them does not.
    """
    plan = _Plan.of(family, grid, n_jobs)
    blocks = [sum(piece.n_blocks for piece in pieces) for pieces in plan.tiles]
    middle = int(np.argsort(blocks)[len(blocks) // 2])
    cv_rows, held_out = _row_sets(X_fit, X_score, folds, grid)
    for n in (2, MEASURED_ROWS):  # with two, compiled code is loaded or made
        share, clock = min(1.0, n / (len(X_fit) + len(X_score))), _Clock()
        few = _some(cv_rows, share), _some(held_out, share)
        start = time.perf_counter()
        _score_tile(family, plan.tiles[middle], *few, grid, clock.run)
        between = time.perf_counter() - start - clock.seconds
    summing = clock.seconds / share / min(plan.n_workers, len(cv_rows.tasks))
    seconds = summing + between / (plan.n_workers if plan.tiles_in_parallel else 1)
    return seconds * sum(blocks) / blocks[middle], plan.memory + len(family) * 17


class _Clock:
    """Runs tasks one after the other and adds up their time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterable[Any]:
        for task in tasks:
            start = time.perf_counter()
            result = function(*task)
            self.seconds += time.perf_counter() - start
            yield result


def _some(rows: RowSet, share: float) -> RowSet:
    """A share of the queries, evenly from all folds."""
    pick = np.linspace(0, len(rows.queries) - 1, max(1, round(share * len(rows.queries)))).astype(int)
    return replace(rows, queries=rows.queries[pick], query_fold=rows.query_fold[pick])


def choose_bandwidths(
    X: Matrix, blocks: Sequence[Sequence[int]], folds: Folds, grid: BandwidthGrid, n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The bandwidth for the columns of each block, and whether it lies inside the grid."""
    tile = blocks_tile(blocks)
    with workers(n_jobs) as run:
        search = BandwidthSearch(tile, RowSet.of_folds(X, folds, grid.keeps_normal), grid, run)
        chosen, settled = search.best()
    return search.h[chosen[search.real]], settled[search.real]


def log_kernel_sums(rows: Matrix, centres: Matrix, bandwidth: float, n_jobs: int | None) -> NDArray[np.float64]:
    """log sum_j exp(-|row - centre_j|^2 / (2 h^2)) of each row, float64, exact however far the row."""
    rate = 1 / (2 * bandwidth**2)
    return np.concatenate(_in_parts(_log_kernel_sums_part, rows, centres, rate, n_jobs))


def log_kernel_sums_of_ladder(
    rows: Matrix, centres: Matrix, widest: float, n_bandwidths: int, n_jobs: int | None
) -> NDArray[np.float64]:
    """`log_kernel_sums` for bandwidths, each half of the one before, (bandwidths, rows): distances are shared."""
    fours = -(-n_bandwidths // 4)
    rate = 1 / (2 * widest**2)
    parts = _in_parts(partial(_log_kernel_sums_of_ladder_part, 4 * fours), rows, centres, rate, n_jobs)
    return np.concatenate(parts, axis=1)[:n_bandwidths]


def _in_parts(
    function: Callable[..., NDArray[np.float64]], rows: Matrix, centres: Matrix, rate: float, n_jobs: int | None
) -> list[NDArray[np.float64]]:
    """A function of (rows, centres as columns, rate) for some rows at a time, by all workers."""
    columns = np.ascontiguousarray(centres.T)
    # Small enough for every worker to get some, and none larger than a cache of results.
    step = min(ROWS_AT_ONCE, max(64, -(-len(rows) // (4 * effective_n_jobs(n_jobs)))))
    parts = [(rows[i : i + step], columns, rate) for i in range(0, len(rows), step)]
    with workers(n_jobs if rows.size * len(centres) > FEW_PAIRS else 1) as run:
        return list(run(function, parts))


def _log_kernel_sums_of_ladder_part(n_bandwidths: int, rows: Matrix, columns: Matrix, rate: float) -> Matrix:
    out = np.empty((n_bandwidths, len(rows)))
    every, totals, scratch = np.arange(len(columns)), np.empty(n_bandwidths), kernels.kept_distances(columns.shape[1])
    kernels.log_kernel_sums_of_ladder(np.ascontiguousarray(rows), columns, rate, out, every, totals, *scratch)
    return out


def _log_kernel_sums_part(rows: Matrix, columns: Matrix, rate: float) -> NDArray[np.float64]:
    out = np.empty(len(rows))
    every = np.arange(len(columns))[None, :]
    scratch = kernels.kept_distances(columns.shape[1])
    row, rates = np.arange(len(rows)), np.array([rate])
    kernels.log_kernel_sums(np.ascontiguousarray(rows), columns, every, row, rates, out, *scratch)
    return out


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Run]:
    """A pool of threads (or what `joblib.parallel_config` says) as a function that runs tasks in order."""
    if effective_n_jobs(n_jobs) == 1:
        yield _serially
        return
    with Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator") as pool:

        def run(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterable[Any]:
            results: Iterable[Any] = pool(delayed(function)(*task) for task in tasks)
            return results

        yield run


def _serially(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterable[Any]:
    return (function(*task) for task in tasks)
