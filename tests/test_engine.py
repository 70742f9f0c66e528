"""The fast path against its slow twin, subset by subset, and the promise of equal bits."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn import config_context
from sklearn.model_selection import KFold

from isde import score_subsets
from isde.engine import direct, kernels, plan, products, scoring, sums
from isde.engine.grid import PAPER_GRID, BandwidthGrid
from isde.engine.scoring import KernelRows
from isde.marginals import resolve_marginal
from isde.run.executors import LocalExecutor
from isde.run.work import ChunkScores, Means
from isde.score_costs import expected_cost
from isde.score_tasks import SplitRows
from isde.subsets import SubsetFamily

FLOAT32_SUMS = 1e-5  # nats: what float32 rounding of the sums may do to a score
BANDWIDTH_TIE = 1e-6  # nats: cross-validated scores this close count as tied
EXACT = 1e-11  # relative: float64 log-sum-exp


def engine_scores(rows, subsets, means=Means()):  # noqa: B008 (frozen)
    """Of all subsets in their order."""
    parts = [scoring.score_chunk(rows, subsets, chunk, means) for chunk in scoring.kernel_chunks(subsets)]
    order = np.argsort(np.concatenate([part.positions for part in parts]))
    values = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("positions", "scores", "bandwidths", "unsettled")
    }
    assert values["positions"].tolist() == list(range(len(subsets)))
    return ChunkScores(**values)


def scaled(X):
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def ordinary(n=90, d=4, seed=0):
    return scaled(np.random.default_rng(seed).normal(size=(n, d)))


def with_outliers():
    X = ordinary()
    X[3] += 50.0
    X[40, 1] = -30.0
    return X


def with_duplicates():
    X = ordinary()
    X[10:30] = X[30:50]
    return X


def tight_clusters():
    rng = np.random.default_rng(1)
    return scaled(rng.integers(0, 3, size=(90, 4)) + 0.002 * rng.normal(size=(90, 4)))


DATA = {
    "ordinary": ordinary,
    "outliers 50 ranges away": with_outliers,
    "duplicated rows": with_duplicates,
    "bandwidths below the grid": tight_clusters,
    "folds of unequal size": lambda: ordinary(n=83),
    "one column": lambda: ordinary(d=1),
    "two rows a fold": lambda: ordinary(n=10, d=3),
}
GRIDS = {"paper's, growing": BandwidthGrid.of(None), "given": BandwidthGrid.of(np.geomspace(0.02, 0.5, 12))}


def assert_equals_twin(X_fit, X_score, k, grid):
    folds = list(KFold(5).split(X_fit))
    family = SubsetFamily(X_fit.shape[1], k)
    found = engine_scores(KernelRows.of(X_fit, X_score, folds, grid), family)
    scores, bandwidths, unsettled = found.scores, found.bandwidths, found.unsettled
    for i, subset in enumerate(family):
        S = list(subset)
        bandwidth, settled = direct.choose_bandwidth(X_fit[:, S], folds, grid)
        if bandwidths[i] != pytest.approx(bandwidth, rel=1e-12):
            both = direct.cv_log_likelihood(X_fit[:, S], folds, np.array([bandwidth, bandwidths[i]]))
            assert both[0] == pytest.approx(both[1], abs=BANDWIDTH_TIE)
        else:
            assert unsettled[i] == (not settled)
        expected = direct.mean_log_density(X_fit[:, S], X_score[:, S], bandwidths[i])
        assert scores[i] == pytest.approx(expected, abs=FLOAT32_SUMS * max(1, abs(expected)))


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_every_subset_gets_the_bandwidth_and_score_of_the_slow_twin(data, grid):
    X = data()
    assert_equals_twin(X, X[::3] + 0.01, X.shape[1], grid)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_every_block_size_is_covered(k):
    X = ordinary(n=60, d=6)
    assert_equals_twin(X, X[::4] + 0.02, k, GRIDS["given"])


@settings(max_examples=60, deadline=None)
@given(d=st.integers(1, 13), k=st.integers(1, 13))
def test_the_plan_holds_every_subset_exactly_once(d, k):
    family = SubsetFamily(d, min(k, d))
    seen = np.zeros(len(family), dtype=int)
    for pieces in plan.plan_pieces(family):
        tile = plan.build_tile(family, pieces)
        for members, position in zip(tile.members, tile.position, strict=True):
            if position >= 0:
                assert family[int(position)] == tuple(int(c) for c in members if c >= 0)
                seen[position] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize(("d", "k", "count"), [(13, 5, 2379), (32, 3, 5488), (20, 20, 2**20 - 1)])
def test_large_plans_hold_every_subset_exactly_once(d, k, count):
    family = SubsetFamily(d, k)
    seen = np.zeros(len(family), dtype=int)
    for pieces in plan.plan_pieces(family):
        position = plan.build_tile(family, pieces).position
        np.add.at(seen, position[position >= 0], 1)
    assert len(family) == count
    assert (seen == 1).all()


def test_proving_bandwidths_away_changes_no_choice_and_saves_half_the_work():
    X = ordinary(n=150, d=5)
    family, grid = SubsetFamily(5, 5), BandwidthGrid.of(PAPER_GRID)
    tile = plan.build_tile(family, plan.plan_pieces(family)[0])
    rows = products.RowSet.of_folds(X, list(KFold(5).split(X)))
    searches = [products.BandwidthSearch(tile, rows, grid, Means().run, prove=prove) for prove in (False, True)]
    (full, _), (proved, _) = (search.best() for search in searches)
    real = tile.position >= 0
    np.testing.assert_array_equal(full[real], proved[real])
    assert searches[0].evaluations == len(PAPER_GRID) * len(family)
    assert searches[1].evaluations < searches[0].evaluations / 2


def test_no_bound_is_below_the_score_it_bounds():
    X = with_outliers()
    family, grid = SubsetFamily(4, 4), BandwidthGrid.of(PAPER_GRID)
    tile = plan.build_tile(family, plan.plan_pieces(family)[0])
    rows = products.RowSet.of_folds(X, list(KFold(5).split(X)))
    full = products.BandwidthSearch(tile, rows, grid, Means().run, prove=False)
    full._evaluate(full._first_round())
    coarse = products.BandwidthSearch(tile, rows, grid, Means().run)
    coarse._evaluate(coarse._first_round())
    grid, real = slice(0, len(PAPER_GRID)), np.flatnonzero(tile.position >= 0)
    assert (coarse._bounds(grid, real) >= full._scores(grid, real) - 1e-6).all()


def test_a_far_row_counts_in_full():
    X = ordinary(d=2)
    near = score_subsets(X, X[:30], max_block_size=2, bandwidths=[0.1])
    rows = X[:30].copy()
    rows[0] += 40.0
    far = score_subsets(X, rows, max_block_size=2, bandwidths=[0.1])
    squared = (40.0 - 1.0) ** 2 / (2 * 0.1**2)  # at least this many nats lost by one column of one row of 30
    assert far[0, 1] < near[0, 1] - 2 * squared / 30
    assert np.isfinite(far.scores).all()


@pytest.mark.parametrize("view", ["fortran", "strided", "float32", "reversed"])
def test_the_layout_of_the_input_does_not_matter(view):
    X = ordinary(d=3).astype(np.float32).astype(np.float64)
    variants = {
        "fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "float32": X.astype(np.float32),
        "reversed": np.ascontiguousarray(X[::-1])[::-1],
    }
    plain = score_subsets(X, X[:40], max_block_size=3)
    other = score_subsets(variants[view], variants[view][:40], max_block_size=3)
    np.testing.assert_array_equal(plain.scores, other.scores)
    np.testing.assert_array_equal(plain.bandwidths, other.bandwidths)


@pytest.mark.parametrize(("d", "k"), [(4, 4), (9, 4)])
def test_any_number_of_workers_and_threads_or_processes_give_the_same_bits(d, k, monkeypatch):
    monkeypatch.setattr(plan, "TILE_ROWS", 24)  # several tiles, so that both ways of sharing the work are used
    X = ordinary(n=300, d=d)
    tables = [score_subsets(X[:200], X[200:], max_block_size=k, n_jobs=n) for n in (1, 2, 4)]
    with parallel_config("loky", inner_max_num_threads=1):
        tables.append(score_subsets(X[:200], X[200:], max_block_size=k, n_jobs=2))
    for table in tables[1:]:
        assert table.scores.tobytes() == tables[0].scores.tobytes()
        assert table.bandwidths.tobytes() == tables[0].bandwidths.tobytes()


@pytest.mark.parametrize("n_columns", [1, 2, 5])
def test_one_block_gets_the_bandwidth_of_the_slow_twin(n_columns):
    X = ordinary(n=120, d=n_columns)
    folds, grid = list(KFold(5).split(X)), BandwidthGrid.of(None)
    found = sums.choose_bandwidths(X, [range(n_columns)], folds, grid, 2)
    expected = direct.choose_bandwidth(X, folds, grid)
    assert found[0][0] == pytest.approx(expected[0], rel=1e-12)
    assert found[1][0] == expected[1]


@pytest.mark.parametrize("data", [ordinary, with_outliers, tight_clusters])
def test_blocks_fitted_together_get_the_bandwidths_they_get_alone(data):
    X = np.hstack([data(), ordinary(seed=1, d=3)])
    blocks = [(0,), (1, 4), (5,), (2, 3, 6)]
    folds, grid = list(KFold(5).split(X)), BandwidthGrid.of(None)
    found, settled = sums.choose_bandwidths(X, blocks, folds, grid, 1)
    for i, block in enumerate(blocks):
        expected = direct.choose_bandwidth(X[:, list(block)], folds, grid)
        assert found[i] == pytest.approx(expected[0], rel=1e-12)
        assert settled[i] == expected[1]


@pytest.mark.parametrize("h", [1e-4, 0.03, 0.5, 20.0])
@pytest.mark.parametrize("n_centres", [1, 7, 1024, 1500])
def test_log_densities_equal_the_definition_near_and_far(h, n_centres):
    rng = np.random.default_rng(0)
    centres, rows = rng.normal(size=(n_centres, 3)), rng.normal(size=(50, 3))
    rows[0] = 1e6
    expected = direct.log_kernel_sums(rows, centres, np.array([h]))[0]
    np.testing.assert_allclose(sums.log_kernel_sums(rows, centres, h, 1), expected, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("n_bandwidths", [1, 4, 5, 9])
@pytest.mark.parametrize("n_centres", [1, 700, 9000])
def test_sums_of_a_ladder_are_those_of_its_bandwidths_near_and_far(n_bandwidths, n_centres):
    rng = np.random.default_rng(0)
    centres, rows = rng.normal(size=(n_centres, 2)), rng.normal(size=(40, 2))
    rows[0], rows[1] = 1e6, 30.0
    found = sums.log_kernel_sums_of_ladder(rows, centres, 0.5, n_bandwidths, 1)
    expected = direct.log_kernel_sums(rows, centres, 0.5 / 2.0 ** np.arange(n_bandwidths))
    np.testing.assert_allclose(found, expected, rtol=EXACT, atol=EXACT + 1e-15 * 4**n_bandwidths)  # powers of powers
    assert found.tobytes() == sums.log_kernel_sums_of_ladder(rows, centres, 0.5, n_bandwidths, 2).tobytes()


def test_log_densities_do_not_depend_on_batches_or_workers():
    rng = np.random.default_rng(0)
    centres, rows = rng.normal(size=(300, 2)), rng.normal(size=(1000, 2))
    whole = sums.log_kernel_sums(rows, centres, 0.2, 1)
    assert whole.tobytes() == sums.log_kernel_sums(rows, centres, 0.2, 2).tobytes()
    parts = [sums.log_kernel_sums(rows[i : i + 137], centres, 0.2, 1) for i in range(0, 1000, 137)]
    assert whole.tobytes() == np.concatenate(parts).tobytes()


def test_the_float32_kernel_is_right_over_its_whole_range_and_never_denormal():
    D = np.linspace(0, 200, 10_001).astype(np.float32)
    E = np.empty_like(D)
    kernels._scaled_kernel(D, np.float32(1.0), E)
    value = 2.0 ** (kernels.SCALE_BITS - D.astype(np.float64))
    kept = value > 2 * kernels.FLUSH
    np.testing.assert_allclose(E[kept], value[kept], rtol=1e-5)
    assert ((E == 0) | (E >= kernels.FLUSH)).all()
    assert (E[value < kernels.FLUSH / 2] == 0).all()


@pytest.mark.parametrize("n_jobs", [1, 2, 8, 64])
@pytest.mark.parametrize("allowed", [64, 256, 1024])
def test_memory_stays_within_what_is_allowed_whatever_the_number_of_workers(n_jobs, allowed):
    chunks, grid = scoring.kernel_chunks(SubsetFamily(50, 5)), BandwidthGrid.of(None)
    for n_tasks in (1, len(chunks)):
        with config_context(working_memory=allowed):
            executor = LocalExecutor(n_jobs)
            means, n_workers = executor.means(n_tasks), executor.n_workers
        at_once = n_workers // means.n_workers
        assert at_once * max(scoring.expected_memory(grid, chunk, means) for chunk in chunks) <= allowed * 2**20
    slots = [sum(piece.n_slots for piece in chunk.content) for chunk in chunks]
    assert max(slots) <= max(plan.TILE_SLOTS, plan.MOST_ROWS**2)


def test_arrays_stay_within_the_memory_expected():
    X, grid, family = ordinary(n=60, d=13), BandwidthGrid.of(None), SubsetFamily(13, 6)
    folds = list(KFold(5).split(X))
    tracemalloc.start()
    try:
        engine_scores(KernelRows.of(X, X, folds, grid), family)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Zeros that are never touched are traced too: arrays for all the bandwidths that the grid may grow to.
    never_touched = 17 * 2 * grid.reach * plan.TILE_SLOTS
    (chunk,) = scoring.kernel_chunks(family)
    assert peak < scoring.expected_memory(grid, chunk, Means()) + never_touched


def test_less_memory_means_smaller_parts_of_the_same_chunks_and_the_same_bits():
    X, chunks = ordinary(n=200, d=14), scoring.kernel_chunks(SubsetFamily(14, 4))
    whole = score_subsets(X[:120], X[120:], max_block_size=4)
    with config_context(working_memory=13):
        slots = scoring._slots_allowed(BandwidthGrid.of(None), LocalExecutor(1).means(1))
        assert len(plan.into_tiles(chunks[0].content, slots)) > 2
        parts = [score_subsets(X[:120], X[120:], max_block_size=4, n_jobs=n_jobs) for n_jobs in (1, 2)]
    for table in parts:
        assert table.scores.tobytes() == whole.scores.tobytes()
        assert table.bandwidths.tobytes() == whole.bandwidths.tobytes()


def test_a_verbose_run_says_what_it_will_cost_and_how_far_it_is(capsys):
    X = ordinary(n=200, d=5)
    shares = []
    rows = KernelRows.of(X, X[:50], list(KFold(5).split(X)), GRIDS["given"])
    engine_scores(rows, SubsetFamily(5, 3), Means(report=shares.append))
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] < 1
    score_subsets(X, X[:50], max_block_size=3, verbose=1)
    said = capsys.readouterr()
    assert said.out == ""
    assert "25 subsets of 5 columns, 30 bandwidths, 200 rows to fit on, 50 to score: less than a second" in said.err


def test_the_expected_cost_grows_with_the_work():
    X = ordinary(n=400, d=6)
    kernels, one_split = resolve_marginal("kde"), [(np.arange(200), np.arange(200, 400))]
    small, large = (expected_cost(SplitRows(kernels, X[:, :d], one_split), SubsetFamily(d, 6), 1) for d in (1, 6))
    assert large[1] > small[1] > 0  # bytes
    assert min(small[0], large[0]) > 0  # seconds, of which `test_run` says how they add up
