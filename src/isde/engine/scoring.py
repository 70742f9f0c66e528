"""Every subset of a family through the engine: tiles in parallel, or the rows of a tile where there are few tiles.

Both give the same bits: sums are cut by a plan that depends on the data alone and added in its order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from isde.engine import kernels
from isde.engine.grid import BandwidthGrid
from isde.engine.plan import Piece, build_tile, plan_pieces, single_tile
from isde.engine.products import (
    SEARCH_SHARE,
    BandwidthSearch,
    Folds,
    Report,
    RowSet,
    Run,
    evaluate,
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

MEASURED_ROWS = 32
TYPICAL_EVALUATIONS, TYPICAL_HELD_OUT = 12, 5
"""Bandwidths evaluated for a subset, and register blocks for a held-out score, on real data; for estimates."""

BYTES_KNOWN = 60
BYTES_IN_WORK = 60
"""For each slot and bandwidth: what a search knows with its temporaries, and what a task under way holds."""


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
    tiles = plan_pieces(family)
    cv_rows, held_out = RowSet.of_folds(X_fit, folds), RowSet.of_samples(X_fit, X_score)
    if len(tiles) >= TILES_PER_WORKER * effective_n_jobs(n_jobs):
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
        yield from parallel(
            delayed(_score_tile)(family, pieces, cv_rows, held_out, grid, _serially) for pieces in tiles
        )
        return
    with workers(n_jobs) as run:
        for pieces in tiles:
            yield _score_tile(family, pieces, cv_rows, held_out, grid, run, progress)


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
    """Seconds and bytes that `score_family` will need, from a short measurement on its largest tile."""
    tiles = plan_pieces(family)
    tile = build_tile(family, max(tiles, key=lambda pieces: sum(piece.n_blocks for piece in pieces)))
    rows = RowSet.of_folds(X_fit, folds)
    few = RowSet(rows.queries[:MEASURED_ROWS], rows.query_fold[:MEASURED_ROWS], rows.centres, rows.centre_fold)
    h, active = grid.values[len(grid.values) // 2 :][:1], np.ones((1, len(tile.quad)), dtype=bool)
    evaluate(tile, few, h, active, _serially)  # compiles, where nothing is cached yet
    start = time.perf_counter()
    evaluate(tile, few, h, active, _serially)
    rate = tile.n_subsets * len(few.queries) * len(X_fit) / (time.perf_counter() - start)
    shared = min(effective_n_jobs(n_jobs), len(rows.tasks))
    evaluations = TYPICAL_EVALUATIONS * len(X_fit) + TYPICAL_HELD_OUT * len(X_score)
    seconds = len(family) * len(X_fit) * evaluations / rate / shared
    workers_with_tile = effective_n_jobs(n_jobs) if len(tiles) >= TILES_PER_WORKER * effective_n_jobs(n_jobs) else 1
    slots = len(tile.position)
    known = slots * (len(grid.values) + 2 * grid.reach) * BYTES_KNOWN
    in_work = slots * len(grid.values) * BYTES_IN_WORK * (1 if workers_with_tile > 1 else shared)
    return seconds, (known + in_work) * workers_with_tile + len(family) * 17


def choose_bandwidth(X: Matrix, folds: Folds, grid: BandwidthGrid, n_jobs: int | None) -> tuple[float, bool]:
    """The bandwidth for all columns of X together, and whether it lies inside the grid."""
    tile = single_tile(X.shape[1])
    with workers(n_jobs) as run:
        search = BandwidthSearch(tile, RowSet.of_folds(X, folds), grid, run)
        chosen, settled = search.best()
    return float(search.h[chosen[0]]), bool(settled[0])


def log_kernel_sums(rows: Matrix, centres: Matrix, bandwidth: float, n_jobs: int | None) -> NDArray[np.float64]:
    """log sum_j exp(-|row - centre_j|^2 / (2 h^2)) of each row, float64, exact however far the row."""
    columns, rate = np.ascontiguousarray(centres.T), 1 / (2 * bandwidth**2)
    # Small enough for every worker to get some, and none larger than a cache of results.
    step = min(ROWS_AT_ONCE, max(64, -(-len(rows) // (4 * effective_n_jobs(n_jobs)))))
    parts = [(rows[i : i + step], columns, rate) for i in range(0, len(rows), step)]
    with workers(n_jobs if len(parts) > 1 else 1) as run:
        return np.concatenate(run(_log_kernel_sums_part, parts))


def _log_kernel_sums_part(rows: Matrix, columns: Matrix, rate: float) -> NDArray[np.float64]:
    out = np.empty(len(rows))
    every = np.arange(len(columns))[None, :]
    kernels.log_kernel_sums(np.ascontiguousarray(rows), columns, every, np.arange(len(rows)), np.array([rate]), out)
    return out


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Run]:
    """A pool of threads (or what `joblib.parallel_config` says) as a function that runs tasks in order."""
    if effective_n_jobs(n_jobs) == 1:
        yield _serially
        return
    with Parallel(n_jobs=n_jobs, prefer="threads") as pool:

        def run(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
            return list(pool(delayed(function)(*task) for task in tasks))

        yield run


def _serially(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
    return [function(*task) for task in tasks]
