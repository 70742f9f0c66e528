"""BDCS, the empirical covariance, and divergences between Gaussians."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.stats import multivariate_normal

from isde import ISDE, BlockDiagonalGaussian, EmpiricalGaussian
from isde.baselines.block_covariance import nested_partitions
from isde.baselines.covariance import gaussian_kl
from isde.errors import ISDEWarning
from isde.marginals.gaussian import SINGULAR, log_determinants
from isde.partitions import is_admissible
from isde.slope import _robust_slope, slope_by_jump, slope_by_regression
from isde.synthetic import block_covariance, make_block_gaussian
from oracles import ROUNDING, monte_carlo


def random_covariance(rng, d):
    factor = rng.normal(size=(d, d + 2))
    return factor @ factor.T / d


# --- nested partitions -----------------------------------------------------------------------------------------


def thresholded(matrix, threshold):
    """Blocks of columns connected by entries of more than the threshold: the paper's rescanning."""
    _, labels = connected_components(np.abs(matrix) > threshold)
    return tuple(sorted(tuple(np.flatnonzero(labels == label).tolist()) for label in set(labels)))


def blocks_of(labels):
    return tuple(sorted(tuple(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())))


@pytest.mark.parametrize("digits", [1, 2, 12])
@pytest.mark.parametrize("seed", range(5))
def test_single_linkage_finds_every_thresholded_partition(seed, digits):
    """Also with ties: rounded to one digit, several columns join at once."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 12))
    matrix = np.round(np.corrcoef(rng.normal(size=(d, 8))), digits)
    thresholds, labels = nested_partitions(matrix)
    entries = np.abs(matrix[np.triu_indices(d, 1)])
    expected = {thresholded(matrix - np.diag(np.diag(matrix)), value) for value in [-1.0, *entries]}
    found = [blocks_of(row) for row in labels]
    assert set(found) == expected
    assert len(found) == len(expected)
    assert found[0] == tuple((c,) for c in range(d))
    assert all(is_admissible(coarse, fine) for fine, coarse in pairwise(found))
    for threshold, partition in zip(thresholds[1:], found[1:], strict=True):
        assert thresholded(matrix - np.diag(np.diag(matrix)), threshold - 1e-13) == partition


# --- BDCS ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["jump", "slope"])
@pytest.mark.parametrize("threshold_on", ["covariance", "correlation"])
@pytest.mark.parametrize("seed", range(3))
def test_the_true_blocks_are_recovered(seed, criterion, threshold_on):
    X, truth = make_block_gaussian([5] * 8, 3000, random_state=seed)
    assert BlockDiagonalGaussian(criterion=criterion, threshold_on=threshold_on).fit(X).partition_ == truth


@pytest.mark.parametrize("seed", range(8))
def test_the_partition_is_that_of_the_papers_code(seed):
    """Every threshold rescanned, every partition's likelihood, 1,000 kappas up to 10, the largest jump, twice."""
    X, _ = make_block_gaussian([4, 3, 2, 3], 6000, random_state=seed)
    X -= X.mean(axis=0)
    S = X.T @ X / len(X)
    off_diagonal = S - np.diag(np.diag(S))
    partitions = sorted({thresholded(off_diagonal, value) for value in [-1.0, *np.abs(off_diagonal).ravel()]}, key=len)
    dimensions = np.array([sum(len(block) * (len(block) - 1) // 2 for block in P) for P in partitions])
    contrasts = np.array([sum(np.linalg.slogdet(S[np.ix_(b, b)])[1] for b in P) * len(X) / 2 for P in partitions])
    kappas = np.linspace(0, 10, 1000)
    best = dimensions[np.argmin(contrasts + kappas[:, None] * dimensions, axis=1)]
    kappa = kappas[np.argmax(np.abs(np.diff(best)))]
    expected = partitions[int(np.argmin(contrasts + 2 * kappa * dimensions))]
    assert BlockDiagonalGaussian(scale=None).fit(X).partition_ == expected


@pytest.mark.parametrize("structure", [[1], [6], [1, 1], [2], [12]], ids=str)
def test_columns_all_together_and_all_alone_are_found(structure):
    """A jump beyond kappa = 10, which capushe would take, breaks the one block apart: nothing there is noise."""
    X, truth = make_block_gaussian(structure, 3000, random_state=1)
    assert BlockDiagonalGaussian().fit(X).partition_ == truth


def test_the_covariance_is_the_empirical_one_inside_blocks_and_zero_outside():
    X, truth = make_block_gaussian([2, 3], 500, random_state=0)
    X = X * [1.0, 50.0, 0.1, 2.0, 7.0] + 5
    model = BlockDiagonalGaussian().fit(X)
    assert model.partition_ == truth
    inside = block_covariance([2, 3], 0.5) > 0
    np.testing.assert_allclose(model.covariance_, np.where(inside, np.cov(X, rowvar=False, bias=True), 0), rtol=1e-9)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-9)
    expected = multivariate_normal(X.mean(axis=0), model.covariance_).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=0, atol=1e-7)


def test_the_path_holds_the_criterion_of_every_partition():
    X, _ = make_block_gaussian([3, 2], 300, random_state=0)
    X = X * [1.0, 2.0, 3.0, 40.0, 0.5]
    model = BlockDiagonalGaussian(threshold_on="correlation").fit(X)
    path = model.path_
    assert len(path) == len(path.thresholds) == len(path.n_blocks)
    for i in range(len(path)):
        partition = path.partition(i)
        covariance = np.zeros((5, 5))
        for block in partition:
            covariance[np.ix_(block, block)] = np.cov(X[:, block], rowvar=False, bias=True)
        log_likelihood = multivariate_normal(X.mean(axis=0), covariance).logpdf(X).sum()
        dimension = sum(len(block) * (len(block) - 1) // 2 for block in partition)
        assert path.log_likelihoods[i] == pytest.approx(log_likelihood, rel=1e-9)
        assert path.dimensions[i] == dimension
        assert path.n_blocks[i] == len(partition)
        assert path.penalised[i] == pytest.approx(-log_likelihood + path.penalty * dimension, rel=1e-9)
    assert path.partition(path.selected) == model.partition_
    assert path.penalised.min() == path.penalised[path.selected]


def test_correlations_do_not_depend_on_the_units():
    X, truth = make_block_gaussian([3, 3, 2], 2000, random_state=0)
    model = BlockDiagonalGaussian(threshold_on="correlation", scale=None)
    units = 10.0 ** np.arange(-4, 4)
    assert model.fit(X * units).partition_ == model.fit(X).partition_ == truth


def test_with_fewer_rows_than_columns_the_path_ends_before_singular_blocks():
    X, truth = make_block_gaussian([3] * 15, 40, sigma=0.9, random_state=0)
    model = BlockDiagonalGaussian().fit(X)
    assert len(model.path_) < 45
    assert np.isfinite(model.path_.log_likelihoods).all()
    assert np.bincount(model.path_.labels[-1]).max() < 40
    assert is_admissible(model.partition_, truth)


def test_too_few_partitions_for_a_regression_get_a_warning():
    X, truth = make_block_gaussian([2, 2], 500, random_state=0)
    with pytest.warns(ISDEWarning, match="4 nested partitions are too few for a regression"):
        assert BlockDiagonalGaussian(criterion="slope").fit(X).partition_ == truth


# --- the slope heuristic ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_the_jump_is_the_largest_over_all_penalties(seed):
    """Against the paper's way: the best dimension on a fine grid of kappas up to 10, and its largest drop."""
    rng = np.random.default_rng(seed)
    n = 12
    dimensions = np.cumsum(rng.integers(1, 9, size=n))
    log_likelihoods = np.cumsum(np.sort(rng.exponential(3.0, size=n))[::-1] * rng.uniform(0, 4, size=n))
    kappas = np.linspace(0, 10, 40_001)
    best = dimensions[np.argmin(-log_likelihoods + kappas[:, None] * dimensions, axis=1)]
    drops = -np.diff(best)
    found = slope_by_jump(dimensions, log_likelihoods)
    largest = kappas[1:][drops == drops.max()]
    assert np.abs(largest - found).min() < 2 * kappas[1]


def test_without_a_drop_up_to_ten_there_is_no_penalty():
    assert slope_by_jump(np.array([0, 1, 2]), np.array([0.0, 50.0, 100.0])) == 0
    assert slope_by_jump(np.array([0]), np.array([1.0])) == 0


def test_the_slope_of_the_largest_models_is_found():
    """Slope 3 while there is signal, 0.7 beyond: regressions that reach into the signal choose the smallest model."""
    dimensions = np.arange(60)
    log_likelihoods = np.minimum(3.0 * dimensions, 75 + 0.7 * (dimensions - 25))
    log_likelihoods = log_likelihoods + 0.05 * np.random.default_rng(0).normal(size=60)
    assert slope_by_regression(dimensions, log_likelihoods) == pytest.approx(0.7, abs=0.05)


def test_a_robust_slope_does_not_follow_outliers():
    rng = np.random.default_rng(0)
    x = np.arange(30)
    y = 5 + 2.0 * x + 0.1 * rng.normal(size=30)
    y[[3, 25, 29]] += [40, -60, -50]
    assert _robust_slope(x, y) == pytest.approx(2, abs=0.02)
    assert abs(np.polyfit(x, y, 1)[0] - 2) > 0.5
    assert _robust_slope(x[:2], y[:2]) == pytest.approx(y[1] - y[0])


def test_slopes_are_kept_between_zero_and_ten():
    dimensions = np.arange(20)
    assert slope_by_regression(dimensions, 500.0 * dimensions) == 10
    assert slope_by_regression(dimensions, -1.0 * dimensions) == 0


# --- full covariance -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["minmax", "standard", None])
def test_the_empirical_gaussian_is_the_maximum_likelihood_fit(rng, scale):
    X = rng.multivariate_normal([1, 2, 3], random_covariance(rng, 3), size=200) * [1, 100, 0.01]
    model = EmpiricalGaussian(scale=scale).fit(X)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(model.covariance_, np.cov(X, rowvar=False, bias=True), rtol=1e-9)
    expected = multivariate_normal(X.mean(axis=0), np.cov(X, rowvar=False, bias=True)).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=0, atol=1e-8)


def test_many_columns_and_strong_correlations_are_not_singular(rng):
    """Determinants far below 1e-12 whose smallest eigenvalue is 0.05 or more."""
    assert np.isfinite(EmpiricalGaussian().fit(rng.normal(size=(700, 200))).covariance_).all()
    X, truth = make_block_gaussian([13], 2000, sigma=0.95, random_state=0)
    assert np.linalg.det(np.corrcoef(X, rowvar=False)) < SINGULAR
    model = ISDE(13, marginal="gaussian", random_state=0).fit(X)
    assert model.partition_ == truth
    assert np.isfinite(model.subset_scores_.scores).all()


def test_log_determinants_tell_singular_from_small(rng):
    proper = block_covariance([20], 0.9)
    copied = proper.copy()
    copied[1], copied[:, 1] = copied[0], copied[:, 0]
    found = log_determinants(np.stack([proper, copied, np.eye(20)]))
    np.testing.assert_allclose(found, [np.linalg.slogdet(proper)[1], np.nan, 0], rtol=0, atol=ROUNDING)
    assert np.isnan(log_determinants(copied))


# --- divergences -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_both_formulas_of_the_appendix_agree(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 12))
    S1, S2 = random_covariance(rng, d), random_covariance(rng, d)
    delta = rng.normal(size=d)
    by_eigenvalues = gaussian_kl(S1, S2, mean_difference=delta)
    assert by_eigenvalues == pytest.approx(gaussian_kl(S1, S2, mean_difference=delta, formula="trace"), rel=1e-7)
    assert by_eigenvalues > gaussian_kl(S1, S2) > 0
    A = (np.linalg.inv(S2) - np.linalg.inv(S1)) @ S1
    v = np.linalg.eigvals(A)
    assert gaussian_kl(S1, S2) == pytest.approx(float(((v - np.log(1 + v)) / 2).sum().real), rel=1e-6)
    assert gaussian_kl(S1, S1) == pytest.approx(0, abs=ROUNDING)


@pytest.mark.parametrize("formula", ["eigenvalues", "trace"])
def test_the_divergence_is_the_mean_log_ratio(rng, formula):
    S1, S2, delta, n = random_covariance(rng, 3), random_covariance(rng, 3), np.array([0.3, -0.2, 0.1]), 40_000
    first, second = multivariate_normal(np.zeros(3), S1), multivariate_normal(delta, S2)
    X = first.rvs(n, random_state=0)
    ratios = first.logpdf(X) - second.logpdf(X)
    found = gaussian_kl(S1, S2, mean_difference=delta, formula=formula)
    assert found == pytest.approx(ratios.mean(), abs=monte_carlo(n) * ratios.std())
    assert gaussian_kl(S2, S1, mean_difference=-delta, formula=formula) != pytest.approx(found, rel=1e-3)


def test_what_is_no_covariance_is_refused():
    with pytest.raises(ValueError, match=r"shapes \(2, 2\) and \(3, 3\)"):
        gaussian_kl(np.eye(2), np.eye(3))
    for wrong in (np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[1.0, 0.5], [0.0, 1.0]])):
        with pytest.raises(ValueError, match="positive definite"):
            gaussian_kl(np.eye(2), wrong)
        with pytest.raises(ValueError, match="positive definite"):
            gaussian_kl(wrong, np.eye(2), formula="trace")
    with pytest.raises(ValueError, match="formula='guess' is unknown"):
        gaussian_kl(np.eye(2), np.eye(2), formula="guess")


def test_structure_helps():
    """The paper's table: BDCS is closer to the truth than the empirical covariance."""
    structure, X = [4, 3, 2, 3], make_block_gaussian([4, 3, 2, 3], 6000, random_state=0)[0]
    truth = block_covariance(structure, 0.7)
    found, full = BlockDiagonalGaussian().fit(X), EmpiricalGaussian().fit(X)
    assert gaussian_kl(truth, found.covariance_) < 0.6 * gaussian_kl(truth, full.covariance_)
    assert gaussian_kl(truth, full.covariance_) == pytest.approx(6.88e-3, abs=4 * 0.84e-3)
