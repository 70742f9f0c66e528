"""The product density: it is a density, in the units of the data, and its blocks are independent."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

import oracles
from isde import ISDE, fit_blocks
from isde.errors import InputError, ISDEWarning
from isde.marginals import MARGINAL_NAMES
from oracles import QUADRATURE, ROUNDING, monte_carlo

FAMILIES = MARGINAL_NAMES
SCALES = ["minmax", "standard", None]


@pytest.fixture(name="X")
def three_columns(rng):
    """Three columns in units far from [0, 1]: a bent pair and one alone."""
    t = rng.normal(size=150)
    return np.column_stack([50 + 10 * t, 0.002 * (t**2 + 0.3 * rng.normal(size=150)), -3 + rng.exponential(size=150)])


def midpoints(column, n, margin=2.0):
    """Midpoints of n equal intervals that reach `margin` ranges beyond the data, and their length."""
    width = np.ptp(column)
    edges = np.linspace(column.min() - margin * width, column.max() + margin * width, n + 1)
    return (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]


# --- it is a density -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", FAMILIES)
@pytest.mark.parametrize("scale", SCALES)
def test_the_density_of_one_column_integrates_to_one(X, marginal, scale):
    column = X[:, [0]] - 50
    points, length = midpoints(column, 6000, 5.0)
    density = fit_blocks(column, [(0,)], marginal, scale=scale)
    assert np.exp(density.score_samples(points[:, None])).sum() * length == pytest.approx(1, abs=QUADRATURE)


@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
@pytest.mark.parametrize("partition", [[(0, 1)], [(0,), (1,)]], ids=str)
def test_the_density_of_two_columns_integrates_to_one(X, marginal, partition):
    density = fit_blocks(X[:, :2], partition, marginal, bandwidths=[0.08])
    (a, da), (b, db) = midpoints(X[:, 0], 250, 1.0), midpoints(X[:, 1], 250, 1.0)
    grid = np.column_stack([m.ravel() for m in np.meshgrid(a, b)])
    assert np.exp(density.score_samples(grid)).sum() * da * db == pytest.approx(1, abs=QUADRATURE)


def test_a_kernel_block_is_the_kernel_density_of_its_rescaled_rows(X):
    density = fit_blocks(X, [(0, 1), (2,)], "kde")
    U, log_range = (X - X.min(axis=0)) / np.ptp(X, axis=0), np.log(np.ptp(X, axis=0))
    h, h2 = density.bandwidths
    assert h == pytest.approx(oracles.choose_bandwidth(oracles.shuffled(U[:, :2])), rel=ROUNDING)
    pair = oracles.kde_log_density(U[:40, :2], U[:, :2], h) - log_range[:2].sum()
    single = oracles.kde_log_density(U[:40, 2:], U[:, 2:], h2) - log_range[2]
    np.testing.assert_allclose(density.score_blocks(X[:40]), np.column_stack([pair, single]), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("scale", SCALES)
def test_a_gaussian_block_is_scipys_gaussian_whatever_the_rescaling(X, scale):
    density = fit_blocks(X, [(0, 1, 2)], "gaussian", scale=scale)
    S = np.diag(1 / X.std(axis=0))  # scipy calls covariances of mixed units singular
    expected = multivariate_normal(X.mean(axis=0) @ S, S @ np.cov(X.T, ddof=0) @ S).logpdf(X @ S)
    np.testing.assert_allclose(density.score_samples(X), expected + np.log(np.diag(S)).sum(), rtol=0, atol=ROUNDING)
    assert np.isnan(density.bandwidths).all()


@pytest.mark.parametrize("scale", SCALES)
def test_the_zero_mean_gaussian_has_mean_zero_in_the_units_of_the_data(X, scale):
    column = X[:, [2]]
    density = fit_blocks(column, [(0,)], "gaussian-zero-mean", scale=scale)
    expected = norm(0, np.sqrt((column**2).mean())).logpdf(column[:, 0])
    np.testing.assert_allclose(density.score_samples(column), expected, rtol=0, atol=ROUNDING)


# --- additivity ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", FAMILIES)
def test_log_densities_add_over_blocks(X, marginal):
    whole = fit_blocks(X, [(0, 2), (1,)], marginal)
    pair = fit_blocks(X[:, [0, 2]], [(0, 1)], marginal)
    single = fit_blocks(X[:, [1]], [(0,)], marginal)
    total = pair.score_samples(X[:, [0, 2]]) + single.score_samples(X[:, [1]])
    np.testing.assert_allclose(whole.score_samples(X), total, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("marginal", FAMILIES)
def test_the_columns_of_score_blocks_add_up(X, marginal):
    density = fit_blocks(X, [(1, 2), (0,)], marginal)
    assert density.partition == ((0,), (1, 2))
    blocks = density.score_blocks(X)
    assert blocks.shape == (150, 2)
    np.testing.assert_allclose(blocks.sum(axis=1), density.score_samples(X), rtol=0, atol=ROUNDING)
    assert density.score(X) == pytest.approx(density.score_samples(X).mean(), abs=ROUNDING)


def test_a_block_does_not_look_at_the_columns_of_others(X):
    density = fit_blocks(X, [(0, 1), (2,)])
    moved = X.copy()
    moved[:, 2] += 1
    blocks, others = density.score_blocks(X), density.score_blocks(moved)
    np.testing.assert_array_equal(blocks[:, 0], others[:, 0])
    assert (blocks[:, 1] != others[:, 1]).any()


# --- far rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
def test_a_far_row_has_a_finite_very_low_value_and_counts(X, marginal):
    density = fit_blocks(X, [(0, 1), (2,)], marginal)
    far = X[:10].copy()
    far[0, 0] = 1e9
    values = density.score_samples(far)
    assert np.isfinite(values).all()
    assert values[0] < -1e12
    assert density.score(far) == pytest.approx(values.mean(), rel=ROUNDING)
    assert density.score(far) < -1e11


def test_the_value_of_a_far_row_is_exact_to_rounding(X):
    column = X[:, [2]]
    density = fit_blocks(column, [(0,)], "kde", scale=None, bandwidths=[0.5])
    expected = oracles.kde_log_density([[1e4], [-200.0]], column, 0.5)
    np.testing.assert_allclose(density.score_samples([[1e4], [-200.0]]), expected, rtol=ROUNDING)


@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
@pytest.mark.parametrize("value", [1e100, 1e160, 1e307])
def test_however_far_a_row_is_its_value_is_a_very_low_number(X, marginal, value):
    far = X[:2].copy()
    far[0, 0] = value
    near_and_far = fit_blocks(X, [(0, 1), (2,)], marginal).score_samples(far)
    assert not np.isnan(near_and_far).any()
    assert near_and_far[0] < -1e150
    assert near_and_far[1] > -100


# --- drawing rows ----------------------------------------------------------------------------------------------


def test_drawn_rows_have_the_moments_of_the_kernel_density(X):
    n = 40_000
    density = fit_blocks(X, [(0, 1), (2,)], "kde")
    drawn = density.sample(n, random_state=0)
    smear = (np.array([density.bandwidths[0]] * 2 + [density.bandwidths[1]]) * np.ptp(X, axis=0)) ** 2
    spread = np.sqrt(X.var(axis=0) + smear)
    assert drawn.shape == (n, 3)
    assert (np.abs(drawn.mean(axis=0) - X.mean(axis=0)) < monte_carlo(n) * spread).all()
    np.testing.assert_allclose(drawn.std(axis=0), spread, rtol=0.03)
    within = X[:, [0, 1]] - X[:, [0, 1]].mean(axis=0)
    covariance = within.prod(axis=1).mean() / (spread[0] * spread[1])
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(covariance, abs=3 * monte_carlo(n))
    assert abs(np.corrcoef(drawn.T)[0, 2]) < monte_carlo(n)


@pytest.mark.parametrize("partition", [[(0, 1, 2)], [(0, 1), (2,)]], ids=str)
def test_the_mean_log_density_of_drawn_rows_is_minus_the_entropy_of_a_gaussian(X, partition):
    n = 20_000
    density = fit_blocks(X, partition, "gaussian")
    covariances = [np.atleast_2d(np.cov(X[:, block].T, ddof=0)) for block in map(list, partition)]
    entropy = sum(0.5 * np.linalg.slogdet(2 * np.pi * np.e * C)[1] for C in covariances)
    drawn = density.sample(n, random_state=0)
    # The log-density of a Gaussian row has variance d / 2.
    assert density.score(drawn) == pytest.approx(-entropy, abs=np.sqrt(3 / 2) * monte_carlo(n))


def test_the_mean_log_density_of_drawn_rows_is_minus_the_entropy_of_a_kernel_density(X):
    n = 20_000
    density = fit_blocks(X[:, [2]], [(0,)], "kde")
    points, length = midpoints(X[:, 2], 4000)
    log_density = density.score_samples(points[:, None])
    weights = np.exp(log_density) * length
    mean = (weights * log_density).sum()
    deviation = np.sqrt((weights * (log_density - mean) ** 2).sum())
    assert density.score(density.sample(n, random_state=0)) == pytest.approx(mean, abs=deviation * monte_carlo(n))


def test_drawing_follows_the_seed(X):
    density = fit_blocks(X, [(0, 1), (2,)])
    np.testing.assert_array_equal(density.sample(5, random_state=3), density.sample(5, random_state=3))
    assert (density.sample(5, random_state=3) != density.sample(5, random_state=4)).all()


def test_no_rows_cannot_be_drawn(X):
    with pytest.raises(ValueError, match="n_samples=0"):
        fit_blocks(X, [(0, 1, 2)], "gaussian").sample(0)


# --- beside the estimator, and bad input -----------------------------------------------------------------------


@pytest.mark.parametrize("marginal", FAMILIES)
@pytest.mark.parametrize("scale", SCALES)
def test_the_density_of_a_given_partition_is_the_estimators(X, marginal, scale):
    model = ISDE(3, marginal=marginal, scale=scale, random_state=0).fit(X)
    density = fit_blocks(X, model.partition_, marginal, scale=scale)
    np.testing.assert_array_equal(density.score_blocks(X), model.score_blocks(X))
    np.testing.assert_array_equal(density.bandwidths, model.bandwidths_)
    np.testing.assert_array_equal(density.sample(3, random_state=0), model.sample(3, random_state=0))


def test_the_way_a_partition_is_written_does_not_matter(X):
    one, other = fit_blocks(X, [[2], [1, 0]], "gaussian"), fit_blocks(X, ((0, 1), (2,)), "gaussian")
    assert one.partition == other.partition
    np.testing.assert_array_equal(one.score_blocks(X), other.score_blocks(X))


def test_a_grid_given_is_used(X):
    assert fit_blocks(X, [(0, 1), (2,)], "kde", bandwidths=[0.25]).bandwidths.tolist() == [0.25, 0.25]


@pytest.mark.parametrize(
    ("partition", "complaint"),
    [([(0, 1)], "misses column 2"), ([(0, 1), (1, 2)], "more than once"), ([(0, 1), (2,), (3,)], "names column 3")],
)
def test_a_partition_of_other_columns_is_refused(X, partition, complaint):
    with pytest.raises(ValueError, match=complaint):
        fit_blocks(X, partition)


def test_names_come_with_the_density_and_must_be_the_same_when_scoring(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    density = fit_blocks(frame, [(0, 1), (2,)], "gaussian")
    assert density.names == ("a", "b", "c")
    np.testing.assert_array_equal(density.score_samples(frame), density.score_samples(X))
    with pytest.raises(InputError, match=r"\['b', 'a', 'c'\]"):
        density.score_samples(frame[["b", "a", "c"]])


def test_rows_that_cannot_be_scored_are_refused(X):
    density = fit_blocks(pd.DataFrame(X, columns=["a", "b", "c"]), [(0, 1), (2,)], "gaussian")
    with pytest.raises(InputError, match="2 columns, the density has 3"):
        density.score_samples(X[:, :2])
    X[3, 1] = np.nan
    with pytest.raises(InputError, match=r"'b' \(1\)"):
        density.score_samples(X)


def test_columns_without_a_density_are_refused_by_name(X):
    X[:, 1] = 4.0
    with pytest.raises(InputError, match="'x1' has the same value"):
        fit_blocks(X, [(0,), (1,), (2,)])


def test_a_singular_gaussian_block_is_refused_with_a_way_out(X):
    X[:, 2] = 2 * X[:, 0]
    with (
        pytest.warns(ISDEWarning, match="'x0' and 'x2' order the rows alike"),
        pytest.raises(InputError, match="block of 2 columns over 150 rows is singular"),
    ):
        fit_blocks(X, [(0, 2), (1,)], "gaussian")


@pytest.mark.parametrize(
    ("options", "complaint"), [({"scale": "log"}, "scale='log'"), ({"marginal": "x"}, "marginal='x'")]
)
def test_an_unknown_option_is_refused(X, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        fit_blocks(X, [(0, 1, 2)], **options)


def test_a_partition_can_be_given_by_names(X):
    frame = pd.DataFrame(X, columns=["a", "b, c", "d"])
    by_name, by_number = (fit_blocks(frame, p, "gaussian") for p in ([("b, c", "a"), "d"], [(0, 1), (2,)]))
    assert by_name.partition == by_number.partition == ((0, 1), (2,))
    np.testing.assert_array_equal(by_name.score_samples(frame), by_number.score_samples(frame))
    with pytest.raises(InputError, match="There is no column 'e': the columns are 'a', 'b, c', 'd'"):
        fit_blocks(frame, [("a", "e"), ("b, c", "d")])
