"""Dependence alone: ranks, Gaussians and kernels that keep the normal, each against its definition in scipy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import chisquare, kstest, multivariate_normal, norm, rankdata

import oracles
from chunks import by_model
from isde import score_subsets
from isde.engine import direct, plan
from isde.engine.grid import NORMAL_GRID, BandwidthGrid
from isde.engine.scoring import KernelRows, kernel_chunks, score_chunk
from isde.engine.sums import choose_bandwidths
from isde.errors import ISDEWarning
from isde.marginals.copula import CopulaScorer, log_gaussian_copula, magnitude_scores
from isde.normal_scores import normal_scores
from isde.run.executors import workers
from isde.run.work import Means
from isde.scoring import Scoring
from isde.splits import contiguous_folds
from isde.subsets import SubsetFamily
from oracles import QUADRATURE, ROUNDING, SINGLE_PRECISION

LENIENT = 1e-3
"""Probability that a test of fixed draws fails for nothing."""

VECTORS = ("scores", "bandwidths", "errors", "gain_errors", "charges")


def same_bits(one, other):
    for name in VECTORS:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


# --- normal scores ---------------------------------------------------------------------------------------------

COLUMNS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_cauchy(size=shape),
    "integers": lambda rng, shape: rng.integers(4, size=shape).astype(float),
    "constant but for one row in ten": lambda rng, shape: (rng.random(shape) < 0.1).astype(float),
    "constant": lambda rng, shape: np.full(shape, 7.0),
}

INCREASING = {
    "another unit": lambda x: 1e6 * x - 17,
    "skewed": np.exp,
    "heavy tails": lambda x: np.sinh(5 * x),
    "bounded": np.arctan,
    "far away on one side": lambda x: np.where(x < 0.5, x, x + 1e12),
}


def rounded(rng, shape):
    """Values that any of the transformations above keeps apart, some of them tied; the second column depends."""
    X = rng.normal(size=shape)
    X[:, 1] += X[:, 0]
    return np.round(X, 1)


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_fitting_rows_get_the_quantiles_of_their_ranks(m, seed):
    X = np.random.default_rng(seed).normal(size=(m, 3))
    Z, _ = normal_scores(X, X[:1])
    np.testing.assert_allclose(Z, norm.ppf(rankdata(X, axis=0) / (m + 1)), rtol=0, atol=ROUNDING)


@given(st.integers(1, 40), st.integers(0, 10**6), st.sampled_from(list(COLUMNS)))
def test_a_scoring_row_lies_between_the_fitting_rows_around_it(m, seed, kind):
    rng = np.random.default_rng(seed)
    X_fit, X_score = COLUMNS[kind](rng, (m, 2)), COLUMNS[kind](rng, (30, 2))
    _, Z = normal_scores(X_fit, X_score)
    for (i, c), x in np.ndenumerate(X_score):
        below, not_above = (X_fit[:, c] < x).sum(), (X_fit[:, c] <= x).sum()
        assert below <= norm.cdf(Z[i, c]) * (m + 1) + ROUNDING
        assert norm.cdf(Z[i, c]) * (m + 1) <= not_above + 1 + ROUNDING


@pytest.mark.parametrize("m", [1, 2, 7])
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_scoring_row_is_standard_normal_whatever_the_column(rng, kind, m):
    rows = COLUMNS[kind](rng, (m + 1, 4000))  # each column is an experiment of its own
    _, Z = normal_scores(rows[:m], rows[m:])
    assert kstest(Z.ravel(), "norm").pvalue > LENIENT


@pytest.mark.parametrize("transform", INCREASING.values(), ids=INCREASING)
def test_an_increasing_transformation_of_any_column_changes_no_bit(rng, transform):
    X_fit, X_score = rounded(rng, (50, 4)), rounded(rng, (40, 4))
    expected = normal_scores(X_fit, X_score)
    for columns in ([0], [1, 3], [0, 1, 2, 3]):
        fit, score = X_fit.copy(), X_score.copy()
        fit[:, columns], score[:, columns] = transform(fit[:, columns]), transform(score[:, columns])
        found = normal_scores(fit, score)
        assert [Z.tobytes() for Z in found] == [Z.tobytes() for Z in expected]


def test_a_decreasing_transformation_turns_the_scores_of_fitting_rows_around(rng):
    X = rng.normal(size=(31, 2))
    np.testing.assert_allclose(normal_scores(-X, X)[0], -normal_scores(X, X)[0], rtol=0, atol=ROUNDING)


def test_tied_rows_share_out_their_ranks_in_every_order_alike():
    column = np.array([5.0, 1.0, 1.0, 9.0, 1.0])
    Z, _ = normal_scores(np.repeat(column[:, None], 6000, axis=1), np.zeros((1, 6000)))
    ranks = np.rint(norm.cdf(Z) * 6).astype(int)
    assert (ranks[[0, 3]] == [[4], [5]]).all()
    assert (np.sort(ranks[[1, 2, 4]], axis=0) == [[1], [2], [3]]).all()
    _, counts = np.unique(ranks[[1, 2, 4]], axis=1, return_counts=True)
    assert len(counts) == 6
    assert chisquare(counts).pvalue > LENIENT


def test_a_scoring_row_tied_with_fitting_rows_has_any_place_among_them_alike():
    column = np.array([5.0, 1.0, 1.0, 9.0, 1.0])
    fit, score = (np.repeat(np.array(values)[:, None], 6000, axis=1) for values in (column, [1.0, 5.0, 6.0]))
    gaps = np.floor(norm.cdf(normal_scores(fit, score)[1]) * 6).astype(int)
    for row, possible in zip(gaps, ([0, 1, 2, 3], [3, 4], [4]), strict=True):
        found, counts = np.unique(row, return_counts=True)
        assert found.tolist() == possible
        assert len(possible) == 1 or chisquare(counts).pvalue > LENIENT


def test_ties_of_two_columns_are_broken_independently():
    Z, scored = normal_scores(np.zeros((3000, 2)), np.zeros((3000, 2)))
    for both in (Z, scored):
        assert abs(np.corrcoef(both.T)[0, 1]) < oracles.monte_carlo(3000)


def test_a_row_however_far_counts_as_the_farthest(rng):
    X_fit, X_score = rng.normal(size=(60, 2)), rng.normal(size=(20, 2))
    X_score[3], X_score[4] = 5.0, -5.0
    near = normal_scores(X_fit, X_score)
    X_score[3], X_score[4] = 1e300, -1e300
    X_fit[np.argmax(X_fit[:, 0]), 0] = 1e200
    X_score[3, 0] = 1e201
    far = normal_scores(X_fit, X_score)
    assert [Z.tobytes() for Z in far] == [Z.tobytes() for Z in near]
    assert np.abs(far[1]).max() < 9


def test_the_same_rows_get_the_same_bits_and_another_seed_gives_others(rng):
    X_fit, X_score = COLUMNS["integers"](rng, (30, 3)), COLUMNS["integers"](rng, (30, 3))
    one, again, other = (normal_scores(X_fit, X_score, seed) for seed in (0, 0, 1))
    assert [Z.tobytes() for Z in one] == [Z.tobytes() for Z in again]
    assert all((a != b).any() for a, b in zip(one, other, strict=True))


def test_a_single_row_is_the_median():
    fitted, scored = normal_scores(np.array([[3.0]]), np.array([[3.5], [2.5]]))
    assert fitted.tolist() == [[0.0]]
    assert scored[1, 0] < 0 < scored[0, 0]


# --- magnitudes ------------------------------------------------------------------------------------------------


def test_magnitudes_are_scored_by_the_share_of_a_normal_that_is_farther_out(rng):
    Z = rng.normal(size=(500, 2))
    expected = -norm.ppf(2 * norm.sf(np.abs(Z)))
    np.testing.assert_allclose(magnitude_scores(Z), np.maximum(expected, -norm.ppf(1 - 0.5 / 501)), atol=ROUNDING)
    assert kstest(magnitude_scores(Z).ravel(), "norm").pvalue > LENIENT


@pytest.mark.parametrize("m", [1, 2, 3, 10, 11])
def test_magnitudes_of_fitting_rows_are_finite_symmetric_and_ordered_as_they_are(m):
    Z = norm.ppf(np.arange(1, m + 1) / (m + 1))[:, None]
    found = magnitude_scores(Z)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, found[::-1], rtol=0, atol=ROUNDING)
    assert (np.diff(found[m // 2 :, 0]) > 0).all()


# --- Gaussian copulas ------------------------------------------------------------------------------------------


def correlations(Z):
    """About zero, where normal scores have their mean."""
    moments = [[np.mean(a * b) for b in Z.T] for a in Z.T]
    return np.array(
        [[moments[i][j] / np.sqrt(moments[i][i] * moments[j][j]) for j in range(len(Z.T))] for i in range(len(Z.T))]
    )


def gaussian_copula(Z_fit, Z_score, subset):
    """Mean log-density under correlated normals minus that under independent ones; -inf where these are singular."""
    if len(subset) == 1:
        return 0.0
    S = list(subset)
    if not (np.square(Z_fit[:, S]).sum(axis=0) > 0).all() or len(Z_fit) < len(S):
        return -np.inf
    R = correlations(Z_fit[:, S])
    if np.linalg.eigvalsh(R)[0] < 1e-12:
        return -np.inf
    joint = multivariate_normal(np.zeros(len(S)), R).logpdf(Z_score[:, S])
    return float(np.mean(joint - norm.logpdf(Z_score[:, S]).sum(axis=1)))


def gated_copula(Z_fit, Z_score, subset, cv=5):
    """The Gaussian copula where the rows to fit on, held out fold by fold, prefer it to independence; else 0."""
    held_out = 0.0
    for fold in oracles.contiguous_folds(len(Z_fit), cv):
        others = [i for i in range(len(Z_fit)) if i not in fold]
        held_out += len(fold) * gaussian_copula(Z_fit[others], Z_fit[fold], subset)
    return gaussian_copula(Z_fit, Z_score, subset) if held_out > 0 else 0.0


def test_gaussian_copulas_of_all_subsets_equal_scipys(rng):
    Z_fit, Z_score = (rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) for n in (70, 50))
    family = SubsetFamily(4, 4)
    expected = [gaussian_copula(Z_fit, Z_score, subset) for subset in family]
    found = log_gaussian_copula(Z_fit, Z_score, family)
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)
    assert found[:4].tolist() == [0.0] * 4


def test_only_correlations_of_the_fitting_rows_enter_not_their_spread(rng):
    Z_fit, Z_score = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    one, other = (log_gaussian_copula(Z, Z_score, SubsetFamily(3, 3)) for Z in (Z_fit, Z_fit * [1, 0.1, 7]))
    np.testing.assert_allclose(one, other, rtol=0, atol=ROUNDING)


def test_columns_that_determine_each_other_have_no_gaussian_copula(rng):
    Z = rng.normal(size=(40, 3))
    Z[:, 2] = -Z[:, 0]
    found = log_gaussian_copula(Z, Z, SubsetFamily(3, 3))
    assert found.tolist()[:3] == [0.0] * 3
    assert np.isneginf(found[[4, 6]]).all()
    assert np.isfinite(found[[3, 5]]).all()


# --- kernels that keep the normal ------------------------------------------------------------------------------


def kept(rows, centres, h):
    """log of the mixture of N(sqrt(1 - h^2) c, h^2), column by column, over the centres c."""
    each = norm.logpdf(rows[:, None, :], np.sqrt(1 - h**2) * centres[None, :, :], h).sum(axis=2)
    return logsumexp(each, axis=1) - np.log(len(centres))


def kept_cv_score(Z, h, cv=5):
    held_out = []
    for fold in oracles.contiguous_folds(len(Z), cv):
        held_out.extend(kept(Z[fold], Z[[i for i in range(len(Z)) if i not in fold]], h))
    return float(np.mean(held_out))


def kept_bandwidth(Z):
    """The best of the grid; while the narrowest is the best, one narrower by the ratio of the first two."""
    grid = [0.24, 0.33, 0.45, 0.6, 0.75, 0.87, 0.95, 1.0]
    scores = [kept_cv_score(Z, h) for h in grid]
    while np.argmax(scores) == 0:
        grid.insert(0, grid[0] * 0.24 / 0.33)
        scores.insert(0, kept_cv_score(Z, grid[0]))
    return grid[int(np.argmax(scores))]


def engine(Z_fit, Z_score, k, grid=None, n_jobs=1):
    """Scores and bandwidths by the fast path."""
    family, folds = SubsetFamily(Z_fit.shape[1], k), contiguous_folds(len(Z_fit), 5)
    grid = BandwidthGrid.of_normal_scores() if grid is None else grid
    (chunk,) = kernel_chunks(family)
    with workers(n_jobs) as run:
        found = score_chunk(KernelRows.of(Z_fit, Z_score, folds, grid), family, chunk, Means(run=run, n_workers=n_jobs))
    assert not found.unsettled.any()
    order = np.argsort(found.positions)
    return found.scores[order], found.bandwidths[order]


def given_grid(*bandwidths):
    return BandwidthGrid(np.array(bandwidths), grows=False, keeps_normal=True)


def independent(rng, n):
    return rng.normal(size=(n, 4))


def curved(rng, n):
    """A parabola, a sum of two, and what is left."""
    X = rng.normal(size=(n, 4))
    X[:, 1] = X[:, 0] ** 2 + 0.1 * X[:, 1]
    X[:, 2] += X[:, 3]
    return X


def copies(rng, n):
    """The same column three times, once upside down: narrower kernels than the grid has."""
    x = rng.normal(size=n)
    return np.column_stack([x, np.exp(x), -x, rng.normal(size=n)])


def heavy_ties(rng, n):
    return np.column_stack([rng.integers(2, size=n), rng.random(n) < 0.05, np.zeros(n), rng.normal(size=n)])


def two_lumps(rng, n):
    return rng.normal(size=(n, 4)) + 8 * rng.integers(2, size=n)[:, None]


DATA = {data.__name__: data for data in (independent, curved, copies, heavy_ties, two_lumps)}


def assert_equals_both_twins(Z_fit, Z_score):
    scores, bandwidths = engine(Z_fit, Z_score, 4)
    folds, grid = contiguous_folds(len(Z_fit), 5), BandwidthGrid.of_normal_scores()
    for i, S in enumerate(map(list, oracles.all_subsets(4, 4))):
        assert direct.choose_bandwidth(Z_fit[:, S], folds, grid) == (bandwidths[i], True)
        assert bandwidths[i] == pytest.approx(kept_bandwidth(Z_fit[:, S]), rel=1e-12)
        expected = kept(Z_score[:, S], Z_fit[:, S], bandwidths[i]).mean()
        slow = direct.mean_log_density(Z_fit[:, S], Z_score[:, S], bandwidths[i], keeps_normal=True)
        assert slow == pytest.approx(expected, abs=ROUNDING)
        assert scores[i] == pytest.approx(expected, abs=SINGLE_PRECISION)
    return bandwidths


@pytest.mark.parametrize("n", [10, 83])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_every_subset_gets_the_bandwidth_and_score_of_both_slow_twins(rng, data, n):
    X = data(rng, n + 40)
    assert_equals_both_twins(*normal_scores(X[:n], X[n:]))


@pytest.mark.parametrize("seed", range(4))
def test_columns_need_not_be_normal_for_that(seed):
    # Where centres move with the bandwidth nothing is convex, and no bandwidth can be proved away by its neighbours.
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(100, 4)) * [0.3, 0.8, 1.5, 3] + rng.normal(size=4)
    assert len(set(assert_equals_both_twins(Z[:60], Z[60:]).tolist())) > 3


def test_narrower_kernels_are_tried_only_where_the_narrowest_is_the_best(rng):
    n = 150
    found = {
        data: engine(*normal_scores(X, X), 2)[1] for data, X in ((data, data(rng, n)) for data in (copies, independent))
    }
    grid = np.array(NORMAL_GRID)
    assert found[copies][4] < 0.24  # the first two copies
    steps = np.log(0.24 / found[copies][4]) / np.log(0.33 / 0.24)
    assert steps == pytest.approx(round(steps), abs=ROUNDING)
    assert np.isin(found[independent], grid).all()


def test_cross_validated_likelihoods_of_the_slow_twin_are_their_definition(rng):
    Z, bandwidths = rng.normal(size=(43, 3)), np.array([0.05, 0.24, 0.6, 0.95, 1.0])
    found = direct.cv_log_likelihood(Z, contiguous_folds(43, 5), bandwidths, keeps_normal=True)
    np.testing.assert_allclose(found, [kept_cv_score(Z, h) for h in bandwidths], rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("bandwidths", [(0.002,), (0.01, 0.02), (0.05, 0.3, 0.99), (0.1, 1.0)], ids=str)
def test_sums_too_small_for_single_precision_are_made_again(rng, bandwidths):
    # Rows far from all centres for kernels so narrow, some of them or all.
    Z_fit, Z_score = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
    Z_score[4] = 6.0
    scores, chosen = engine(Z_fit, Z_score, 3, given_grid(*bandwidths))
    for i, S in enumerate(map(list, oracles.all_subsets(3, 3))):
        best = max(bandwidths, key=lambda h: kept_cv_score(Z_fit[:, S], h))
        expected = kept(Z_score[:, S], Z_fit[:, S], best).mean()
        assert chosen[i] == best
        assert scores[i] == pytest.approx(expected, abs=SINGLE_PRECISION * max(1, abs(expected)))


def test_the_widest_kernel_is_independence_wherever_its_centres_are(rng):
    Z_fit, Z_score = 3 + rng.normal(size=(40, 3)), rng.normal(size=(25, 3))
    expected = [norm.logpdf(Z_score[:, list(S)]).sum(axis=1).mean() for S in oracles.all_subsets(3, 3)]
    scores, bandwidths = engine(Z_fit, Z_score, 3, given_grid(1.0))
    assert (bandwidths == 1).all()
    np.testing.assert_allclose(scores, expected, rtol=0, atol=ROUNDING)
    assert direct.mean_log_density(Z_fit, Z_score, 1.0, keeps_normal=True) == pytest.approx(expected[-1], abs=ROUNDING)


@pytest.mark.parametrize("h", [0.1, 0.24, 0.6, 0.95, 1.0])
def test_columns_of_mean_0_and_variance_1_keep_both_when_smoothed(rng, h):
    centres = rng.normal(size=(20, 1))
    centres = (centres - centres.mean()) / centres.std()
    z = np.linspace(-9, 9, 20_001)
    sums = direct.log_kernel_sums(z[:, None], centres, np.array([h]), keeps_normal=True)[0]
    density = np.exp(sums - direct.log_normaliser(1, 20, np.array([h]))) * (z[1] - z[0])
    for power, moment in enumerate([1, 0, 1]):
        assert (z**power * density).sum() == pytest.approx(moment, abs=QUADRATURE)


@pytest.mark.parametrize("h", [0.1, 0.24, 0.6, 0.95, 1.0])
def test_a_normal_column_is_still_normal_when_smoothed(h):
    centres = norm.ppf((np.arange(4000) + 0.5) / 4000)[:, None]
    z = np.linspace(-2.5, 2.5, 41)[:, None]
    sums = direct.log_kernel_sums(z, centres, np.array([h]), keeps_normal=True)[0]
    found = sums - direct.log_normaliser(1, 4000, np.array([h]))
    np.testing.assert_allclose(found, norm.logpdf(z[:, 0]), rtol=0, atol=0.01)


@pytest.mark.parametrize(("d", "k"), [(4, 4), (9, 3)])
def test_any_number_of_workers_gives_the_same_bits(rng, d, k, monkeypatch):
    monkeypatch.setattr(plan, "TILE_ROWS", 24)  # several tiles, so that both ways of sharing the work are used
    plan.plan_pieces.cache_clear()
    X = rng.normal(size=(700, d))
    X[:, 1] += X[:, 0]
    tables = [engine(*normal_scores(X[:400], X[400:]), k, n_jobs=n_jobs) for n_jobs in (1, 2, 4)]
    plan.plan_pieces.cache_clear()
    for table in tables[1:]:
        assert [part.tobytes() for part in table] == [part.tobytes() for part in tables[0]]


def test_blocks_get_the_bandwidth_that_they_get_in_a_table(rng):
    X = np.column_stack([curved(rng, 90), rng.normal(size=(90, 2))])
    Z, _ = normal_scores(X, X[:1])
    blocks = [(0, 1), (2, 3), (4, 5), (0, 1, 2, 3)]
    found, settled = choose_bandwidths(Z, blocks, contiguous_folds(90, 5), BandwidthGrid.of_normal_scores(), 1)
    np.testing.assert_allclose(found, [kept_bandwidth(Z[:, list(block)]) for block in blocks], rtol=1e-12)
    assert found[2] == 1
    assert settled.all()


def test_the_grid_of_normal_scores_grows_downwards_only():
    grid = BandwidthGrid.of_normal_scores()
    assert grid.values[-1] == 1
    assert (np.diff(grid.values) > 0).all()
    assert grid.reach_above == 0
    assert grid.step(-1) == pytest.approx(0.24**2 / 0.33)
    assert 0.24 / 1000 <= grid.step(-grid.reach) < 1.5 * 0.24 / 1000
    assert BandwidthGrid.of(None).reach_above == BandwidthGrid.of(None).reach


# --- all models ------------------------------------------------------------------------------------------------


def three_models(X_fit, X_score, subset):
    """What kernels, correlation and correlation of magnitudes say of a subset, by their definitions."""
    Z_fit, Z_score = normal_scores(X_fit, X_score)
    if len(subset) == 1:
        return [0.0, 0.0, 0.0]
    S = list(subset)
    h = kept_bandwidth(Z_fit[:, S])
    kernels = np.mean(kept(Z_score[:, S], Z_fit[:, S], h) - norm.logpdf(Z_score[:, S]).sum(axis=1))
    magnitudes = [-norm.ppf(np.minimum(2 * norm.sf(np.abs(Z)), 1 - 0.5 / (len(Z) + 1))) for Z in (Z_fit, Z_score)]
    return [kernels, gated_copula(Z_fit, Z_score, subset), gated_copula(*magnitudes, subset)]


def all_models(X_fit, X_score, k):
    family = SubsetFamily(X_fit.shape[1], k)
    return by_model(CopulaScorer(), X_fit, X_score, family)


@pytest.mark.filterwarnings("ignore:Only .* rows to fit on:isde.errors.ISDEWarning")
@pytest.mark.parametrize("n", [2, 3, 5, 8, 10, 30, 90])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_all_models_of_all_subsets_equal_their_definitions(rng, data, n):
    X = data(rng, 2 * n).astype(float)
    found = all_models(X[:n], X[n:], 3)
    expected = np.array([three_models(X[:n], X[n:], subset) for subset in oracles.all_subsets(4, 3)]).T
    for model, scores in zip(found, expected, strict=True):
        assert np.isfinite(model.scores).all()
        np.testing.assert_allclose(model.scores, scores, rtol=0, atol=SINGLE_PRECISION)
        assert not model.unsettled.any()


def test_each_model_is_used_only_where_cross_validation_prefers_it(rng):
    X = rng.normal(size=(200, 5))
    X[:, 1] += X[:, 0]
    X[:, 2:4] *= np.exp(1.5 * rng.normal(size=(200, 1)))  # a common scale: no correlation, but of magnitudes
    found = all_models(X[:100], X[100:], 2)
    pair, scale, nothing = (SubsetFamily(5, 2).index(S) for S in ((0, 1), (2, 3), (0, 4)))
    kernels, gaussians, magnitudes = found
    assert gaussians.scores[pair] > 0.1
    assert magnitudes.scores[scale] > 0.1
    assert kernels.scores[[pair, scale]].min() > 0
    assert gaussians.scores[nothing] == magnitudes.scores[nothing] == kernels.scores[nothing] == 0
    np.testing.assert_array_equal(kernels.scores[kernels.bandwidths == 1], 0)
    for model in found:
        assert model.scores[:5].tolist() == [0.0] * 5
    assert np.isnan(gaussians.bandwidths).all()
    assert np.isnan(magnitudes.bandwidths).all()


@pytest.mark.parametrize("transform", [np.copy, np.exp, np.negative, lambda x: x + 1e-6 * np.sin(40 * x)])
def test_columns_that_determine_each_other_are_seen_though_no_gaussian_can_say_so(rng, transform):
    x = rng.normal(size=(300, 1))
    X = np.column_stack([x, transform(x), rng.normal(size=300)])
    table = Scoring.of(2, marginal="copula", alpha=None, split="paper", random_state=0).score(X, columns=False)
    assert table[0, 1] > 1
    assert abs(table[0, 2]) < 0.1


@pytest.mark.parametrize("kind", ["constant but for one row in ten", "constant", "integers"])
def test_independent_columns_with_heavy_ties_gain_nothing(rng, kind):
    X = COLUMNS[kind](rng, (400, 4))
    table = Scoring.of(3, marginal="copula", alpha=None, split="density", random_state=0).score(X, columns=False)
    assert np.isfinite(table.scores).all()
    assert np.abs(table.scores).max() < 0.05


def test_dependence_of_columns_with_heavy_ties_is_seen(rng):
    common = rng.integers(3, size=400)
    X = np.column_stack([common, common, rng.integers(3, size=400)]).astype(float)
    table = Scoring.of(3, marginal="copula", alpha=None, split="density", random_state=0).score(X, columns=False)
    assert table[0, 1] > 0.3
    assert table[0, 2] < 0.05


@pytest.mark.filterwarnings("ignore:Only .* rows to fit on:isde.errors.ISDEWarning")
@pytest.mark.parametrize("n", [5, 8, 10, 30])
@pytest.mark.parametrize("split", ["structure", "density", "paper"])
def test_few_rows_are_no_obstacle(rng, split, n):
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(2, size=n), np.arange(n) == 1])
    table = Scoring.of(3, marginal="copula", alpha=None, split=split, random_state=0).score(X, columns=False)
    assert np.isfinite(table.scores).all()
    assert table.scores[:4].tolist() == [0.0] * 4


def test_fewer_rows_than_folds_are_said(rng):
    X = rng.normal(size=(20, 2))
    with pytest.warns(ISDEWarning, match="Only 4 rows to fit on, and cv=5"):
        score_subsets(X[:4], X[4:], max_block_size=2, marginal="copula")


# --- the table -------------------------------------------------------------------------------------------------


def table(X, columns, split="paper", alpha="auto"):
    scoring = Scoring.of(3, marginal="copula", split=split, alpha=alpha, random_state=0)
    return scoring.score(np.ascontiguousarray(X), columns=columns)


@pytest.mark.parametrize(("split", "alpha"), [("paper", "auto"), ("density", None)])
@pytest.mark.parametrize("transform", INCREASING.values(), ids=INCREASING)
def test_no_bit_of_the_table_changes_under_increasing_transformations(rng, transform, split, alpha):
    X = rounded(rng, (120, 4))
    Y = np.column_stack([transform(X[:, 0]), X[:, 1], transform(X[:, 2]), X[:, 3] ** 3])
    one, other = (table(rows, False, split, alpha) for rows in (X, Y))
    same_bits(one, other)
    assert one.charges.any() == (alpha is not None)
    assert one[0, 1] > 0.1


@pytest.mark.parametrize("transform", [INCREASING["skewed"], INCREASING["bounded"]], ids=["skewed", "bounded"])
def test_with_what_columns_score_alone_gains_still_do_not_change(rng, transform):
    X = rounded(rng, (120, 4))
    alone = table(X, False)
    for rows in (X, transform(X)):
        whole = table(rows, True)
        np.testing.assert_allclose(whole.gains, alone.scores, rtol=0, atol=ROUNDING)
        np.testing.assert_array_equal(whole.charges, alone.charges)
        assert (whole.scores[:4] != 0).all()


def test_the_table_is_the_same_bits_for_any_number_of_workers(rng):
    X = curved(rng, 900)
    scoring = Scoring.of(3, marginal="copula", split="paper", alpha=None, random_state=0)
    one, two = (replace(scoring, n_jobs=n_jobs).score(X, columns=False) for n_jobs in (1, 2))
    same_bits(one, two)
