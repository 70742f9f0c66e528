"""Blocks on both scales: splines to normal scores, densities of these, and their weights, against scipy and sums."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, multivariate_normal, norm

import isde
import oracles
from chunks import fit_one
from isde.density import Scaling, fit_product
from isde.engine import scales, stacking
from isde.engine.mixtures import Mixtures
from isde.engine.scales import Effort
from isde.engine.splines import CLOSE, CLOSE_SLOPE, MOST_KNOTS, ColumnLaw, Spline
from isde.errors import ISDEWarning
from isde.marginals.marginal import fit_shuffled
from isde.marginals.scales import CopulaBlock, CopulaStack, ScalesBlock, ScalesStack
from isde.marginals.stack import StackBlock, StackMarginal, stack_block
from oracles import ROUNDING, monte_carlo

RIEMANN = 1e-5
"""Sums over a grid of a density whose slope jumps at knots."""

SMOOTH = [0.05, 0.5]
"""A range of bandwidths whose kernels a grid of some hundred points resolves."""


def skewed(rng, n, s=2):
    """Columns of one common factor, each with a long tail: [0, 1] holds them, most of them near 0."""
    common = rng.normal(size=(n, 1))
    X = np.exp(0.6 * (common + 0.7 * rng.normal(size=(n, s))))
    return X / 12


def ring(rng, n):
    angle = rng.uniform(0, 2 * np.pi, size=n)
    return 0.5 + 0.4 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.02 * rng.normal(size=(n, 2))


def half_zeros(rng, n):
    return np.maximum(rng.normal(size=(n, 2)), 0)


def product(X, partition, family, n_jobs=1):
    names = tuple(f"c{j}" for j in range(X.shape[1]))
    return fit_product(X, partition, family, Scaling.fit(X, "minmax"), names, n_jobs=n_jobs)


# --- splines ---------------------------------------------------------------------------------------------------


def a_spline(rng, n_knots=6, steepness=1.0):
    """Steps and slopes that differ by some powers of e."""
    knots, values = (np.cumsum(np.exp(steepness * rng.normal(size=n_knots))) for _ in range(2))
    return Spline(knots - 3, values - 3, np.exp(2 * steepness * rng.normal(size=n_knots)))


def places(spline):
    """Points inside every bin, at the knots and beyond them."""
    inside = np.linspace(spline.knots[:-1], spline.knots[1:], 23).ravel()
    return np.unique(np.concatenate([inside, spline.knots[0] - [1e3, 1, 0.1], spline.knots[-1] + [0.1, 1, 1e3]]))


@given(seed=st.integers(0, 10**6), n_knots=st.integers(2, 9))
def test_a_spline_meets_its_values_and_slopes_at_its_knots(seed, n_knots):
    spline = a_spline(np.random.default_rng(seed), n_knots)
    values, log_slopes = spline.forward(spline.knots)
    np.testing.assert_allclose(values, spline.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.exp(log_slopes), spline.slopes, rtol=1e-9)


@given(seed=st.integers(0, 10**6), n_knots=st.integers(2, 9))
def test_the_slope_of_a_spline_is_its_derivative(seed, n_knots):
    spline = a_spline(np.random.default_rng(seed), n_knots)
    step = 1e-6 * np.diff(spline.knots).min()
    middles = (spline.knots[1:] + spline.knots[:-1]) / 2
    x = np.concatenate([middles, 0.9 * spline.knots[1:] + 0.1 * spline.knots[:-1], spline.knots[[0, -1]] + [-2, 2]])
    (above, _), (below, _) = spline.forward(x + step), spline.forward(x - step)
    np.testing.assert_allclose((above - below) / (2 * step), np.exp(spline.forward(x)[1]), rtol=1e-5)


@given(seed=st.integers(0, 10**6), n_knots=st.integers(2, 9), steepness=st.floats(0.1, 5))
def test_a_spline_increases_and_its_inverse_undoes_it(seed, n_knots, steepness):
    spline = a_spline(np.random.default_rng(seed), n_knots, steepness)
    x = places(spline)
    z, log_slope = spline.forward(x)
    assert (np.diff(z) >= 0).all()
    # Rounding of x counts as much as the spline is steep there; rounding of z as much as it is flat.
    unit = np.abs(x) + np.abs(spline.knots).max() + (np.abs(z) + np.abs(spline.values).max()) * np.exp(-log_slope)
    assert (np.abs(spline.inverse(z) - x) <= 1e-12 * unit).all()


def test_the_inverse_keeps_its_digits_where_a_flat_bin_ends_steeply():
    spline = Spline(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([1e-9, 1e9]))
    z = np.linspace(0, 1, 1001)
    np.testing.assert_allclose(spline.forward(spline.inverse(z))[0], z, rtol=0, atol=1e-6)
    assert spline.inverse(np.array([0.0, 1.0])).tolist() == [0.0, 1.0]


def test_a_spline_is_linear_beyond_its_knots(rng):
    spline = a_spline(rng)
    far = spline.knots[-1] + np.array([1.0, 2.0, 1e6])
    z, log_slope = spline.forward(far)
    np.testing.assert_allclose(z, spline.values[-1] + spline.slopes[-1] * (far - spline.knots[-1]), rtol=1e-12)
    np.testing.assert_allclose(log_slope, np.log(spline.slopes[-1]), rtol=1e-12)
    np.testing.assert_allclose(spline.inverse(z), far, rtol=1e-12)


@pytest.mark.parametrize("far", [1e10, 1e145, 1e300])
def test_rows_however_far_have_finite_scores(rng, far):
    for x in (np.array([far]), np.array([-far])):
        z, log_slope = a_spline(rng).forward(x)
        assert np.isfinite(z * z).all()
        assert np.isfinite(log_slope).all()
        assert np.sign(z) == np.sign(x)


# --- laws of columns -------------------------------------------------------------------------------------------


def a_law(rng, unit=1.0):
    """Three Gaussians, one of them wide, and kernel densities of two bandwidths."""
    rows = rng.gamma(2.0, size=60)
    return ColumnLaw(
        np.array([0.2, 0.3, 0.1]),
        unit * np.array([2.0, 1.0, 4.0]),
        unit * np.array([2.0, 0.5, 0.4]),
        unit * rows,
        unit * np.array([0.5, 0.25]),
        np.array([0.15, 0.25]),
    )


def exact_scores(law, x):
    """Phi^-1(F) and the logarithm of its slope by scipy, each tail by its own sum."""
    parts = [(law.weights[k], law.means[k], law.widths[k]) for k in range(len(law.weights))]
    for weight, h in zip(law.kernel_weights, law.bandwidths, strict=True):
        parts += [(weight / len(law.rows), row, h) for row in law.rows]
    below, above, density = (
        sum(w * function(x, mean, width) for w, mean, width in parts) for function in (norm.cdf, norm.sf, norm.pdf)
    )
    z = np.where(below < above, norm.ppf(below), norm.isf(above))
    return z, np.log(density) - norm.logpdf(z)


def test_scores_of_a_column_are_the_normal_quantiles_of_its_distribution(rng):
    law = a_law(rng)
    x = np.linspace(-18, 22, 2001)
    z, log_slope = law.spline().forward(x)
    exact, exact_slope = exact_scores(law, x)
    assert np.abs(z - exact).max() < 2 * CLOSE
    assert np.abs(log_slope - exact_slope).max() < 5 * CLOSE_SLOPE
    assert np.abs(log_slope - exact_slope).mean() < CLOSE_SLOPE / 3


def test_a_gaussian_column_is_only_shifted_and_scaled():
    law = ColumnLaw(np.ones(1), np.array([5.0]), np.array([2.0]), np.array([4.0, 7.0]), np.empty(0), np.empty(0))
    x = np.linspace(-200, 200, 401)
    z, log_slope = law.spline().forward(x)
    np.testing.assert_allclose(z, (x - 5) / 2, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(log_slope, -np.log(2), rtol=1e-6)


@pytest.mark.parametrize("unit", [2.0**100, 2.0**-100, 1e30, 1e-30])
def test_units_of_a_column_change_its_slopes_and_no_score(rng, unit):
    x = np.linspace(-3, 12, 200)
    here, here_slope = a_law(np.random.default_rng(1)).spline().forward(x)
    there, there_slope = a_law(np.random.default_rng(1), unit).spline().forward(unit * x)
    np.testing.assert_allclose(there, here, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(there_slope + np.log(unit), here_slope, rtol=0, atol=ROUNDING)


def test_a_tail_is_never_narrower_than_that_of_the_widest_gaussian(rng):
    law = a_law(rng)
    spline, far = law.spline(), np.array([-300.0, 300.0])
    assert (np.abs(spline.forward(far)[0]) < 1.01 * np.abs(far - 2) / 2).all()


def test_however_many_spikes_a_column_has_its_knots_are_bounded(rng):
    rows = np.repeat(rng.uniform(size=3000), 2)
    law = ColumnLaw(np.array([1e-3]), np.array([0.5]), np.array([0.3]), rows, np.array([1e-6]), np.array([0.999]))
    spline = law.spline()
    assert MOST_KNOTS / 2 < len(spline.knots) <= 2 * MOST_KNOTS + 1
    assert np.abs(spline.forward(rows)[0] - exact_scores_of_rows(rows)).mean() < 0.01


def exact_scores_of_rows(rows):
    ascending = np.sort(rows)
    middle = (np.searchsorted(ascending, rows) + np.searchsorted(ascending, rows, "right")) / 2
    return norm.ppf(0.999 * middle / len(rows) + 0.001 * norm.cdf(rows, 0.5, 0.3))


def gaussians_and_rows(means, width, rows):
    """Gaussians of one width, and rows that they may not reach."""
    n = len(means)
    return ColumnLaw(np.full(n, 1 / n), np.array(means), np.full(n, width), np.array(rows), np.empty(0), np.empty(0))


def test_a_row_that_its_law_does_not_reach_has_a_score_on_the_tail():
    z, log_slope = gaussians_and_rows([0.0], 1.0, [0.0, -1e6, 1e3]).spline().forward(np.array([-1e6, 1e3]))
    np.testing.assert_allclose(z, [-1e6, 1e3], rtol=1e-6)
    np.testing.assert_allclose(log_slope, 0, rtol=0, atol=1e-6)


def test_a_gap_where_a_distribution_does_not_increase_has_no_knots():
    gap = gaussians_and_rows([0.0, 1e3], 1e-3, np.linspace(0, 0.04, 41)).spline()
    assert (np.diff(gap.knots) > 0).all()
    assert (np.diff(gap.values) > 0).all()
    x = np.linspace(-1, 1001, 5001)
    z, log_slope = gap.forward(x)
    assert (np.diff(z) >= 0).all()
    assert np.isfinite(log_slope).all()


@pytest.mark.parametrize("offset", [1e8, -1e16, 1e300])
def test_a_column_too_narrow_for_float64_has_a_spline_all_the_same(offset):
    rows = np.full(10, offset)
    spline = ColumnLaw(np.ones(1), rows[:1], np.array([1e-12]), rows, np.empty(0), np.empty(0)).spline()
    z, log_slope = spline.forward(rows + np.array([-1.0, 1.0])[:, None] * abs(offset) / 2)
    assert (z[0] < z[1]).all()
    assert np.isfinite(log_slope).all()


NASTY = {
    "integers": lambda X: np.round(3 * X),
    "two values": np.sign,
    "mostly zeros": lambda X: np.where(X > 1, X, 0),
    "one value but for one row": lambda X: np.where(np.arange(len(X))[:, None] == 7, X, 0),
    "an outlier": lambda X: X + 1e6 * (np.arange(len(X))[:, None] == 7),
    "heavy tails": lambda X: np.tan(np.arctan(X) * 1.9),
    "heavier tails": lambda X: np.sinh(5 * X),
    "equal columns": lambda X: X[:, [0, 0]],
    "10 rows": lambda X: X[:10],
    "30 rows": lambda X: X[:30],
    "30 rows, repeated": lambda X: np.repeat(X[:3], 10, axis=0),
    "far from zero": lambda X: X + 1e8,
    "large units": lambda X: 1e30 * X,
    "small units": lambda X: 1e-30 * X,
    "unlike units": lambda X: X * [1e-30, 1e30],
}


@pytest.mark.parametrize("family", [CopulaStack(), ScalesStack()])
@pytest.mark.parametrize("what", NASTY)
def test_nasty_rows_have_finite_densities_and_so_have_far_ones_and_drawn_ones(rng, what, family):
    X = NASTY[what](rng.normal(size=(200, 2)))
    density = product(X, ((0, 1),), family)
    far = X.mean(axis=0) + np.ptp(X, axis=0) * [[1e3, 0], [-1e9, 1e9], [1e200, 0.5]]
    drawn = density.sample(100, random_state=0)
    for rows in (X, far, drawn):
        assert np.isfinite(density.score_samples(rows)).all()


# --- blocks ----------------------------------------------------------------------------------------------------


def a_stack(rng, rows):
    """Two kernels and three Gaussians, all with weight, about as wide as the rows."""
    pick, shapes = rows[:3], 0.4 * rng.normal(size=(3, 2, 2))
    covariances = np.array([a @ a.T + 0.1 * np.eye(2) for a in shapes])
    weights = np.array([0.2, 0.2]), np.array([0.3, 0.2, 0.1])
    return StackBlock(rows, np.array([0.5, 0.25]), weights[0], weights[1], pick, covariances)


@pytest.fixture(scope="module")
def blocks():
    """One on normal scores, and one of which that is a half."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 2)) @ [[1, 0.7], [0, 0.7]]
    copula = CopulaBlock((a_law(rng).spline(), a_law(rng).spline()), a_stack(rng, scores))
    return {"copula": copula, "two-scales": ScalesBlock(a_stack(rng, 2 + scores), copula, 0.5)}


KINDS = ["copula", "two-scales"]
EDGES = np.linspace(-10, 15, 601)
MIDDLES, CELL = (EDGES[1:] + EDGES[:-1]) / 2, EDGES[1] - EDGES[0]


def on_grid(block):
    """Density at the middle of each cell of a grid in two columns."""
    points = np.stack(np.meshgrid(MIDDLES, MIDDLES, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.exp(block.score_samples(points)).reshape(len(MIDDLES), -1)


@pytest.fixture(scope="module")
def grids(blocks):
    return {kind: on_grid(block) for kind, block in blocks.items()}


def cumulated(block, column):
    """The distribution function of one column, by sums over a grid."""
    grid = np.linspace(-10, 15, 20_001)
    density = np.exp(block.marginal([column]).score_samples(grid[:, None]))
    return grid, np.cumsum(density) * (grid[1] - grid[0])


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_two_columns_integrate_to_one(grids, kind):
    assert grids[kind].sum() * CELL**2 == pytest.approx(1, abs=RIEMANN)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", [0, 1])
def test_marginals_integrate_to_one(blocks, kind, column):
    assert cumulated(blocks[kind], column)[1][-1] == pytest.approx(1, abs=RIEMANN)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", [0, 1])
def test_the_marginal_of_a_column_is_the_integral_over_the_other(blocks, grids, kind, column):
    integrated = grids[kind].sum(axis=1 - column) * CELL
    marginal = np.exp(blocks[kind].marginal([column]).score_samples(MIDDLES[:, None]))
    np.testing.assert_allclose(marginal, integrated, rtol=1e-4, atol=RIEMANN)


@pytest.mark.parametrize("family", [CopulaStack(), ScalesStack()])
def test_marginals_of_marginals_and_columns_in_any_order(rng, family):
    X = skewed(rng, 150, 3)
    block = fit_one(family, X)
    np.testing.assert_allclose(
        block.marginal([2, 0, 1]).score_samples(X[:, [2, 0, 1]]), block.score_samples(X), rtol=0, atol=ROUNDING
    )
    here, there = block.marginal([2, 0]), block.marginal([1, 2, 0]).marginal([1, 2])
    np.testing.assert_array_equal(here.score_samples(X[:, [2, 0]]), there.score_samples(X[:, [2, 0]]))
    assert here.n_columns == 2
    assert np.isnan(here.bandwidth)
    for wrong in ([], [0, 0], [3], [-1]):
        with pytest.raises(ValueError, match="must be some of the block's columns"):
            block.marginal(wrong)


def test_the_density_of_a_copula_block_is_that_of_its_scores_times_slopes(blocks, rng):
    block, X = blocks["copula"], rng.uniform(-2, 6, size=(50, 2))
    (z0, slope0), (z1, slope1) = (block.splines[j].forward(X[:, j]) for j in range(2))
    expected = exact_log_density(block.scores, np.column_stack([z0, z1])) + slope0 + slope1
    np.testing.assert_allclose(block.score_samples(X), expected, rtol=0, atol=ROUNDING)


def exact_log_density(stack, X):
    """The combination of kernels and Gaussians by scipy."""
    density = sum(
        weight * np.exp(oracles.kde_log_density(X, stack.centres, h))
        for weight, h in zip(stack.kernel_weights, stack.bandwidths, strict=True)
    )
    for weight, mean, covariance in zip(stack.weights, stack.means, stack.covariances, strict=True):
        density = density + weight * multivariate_normal(mean, covariance).pdf(X)
    return np.log(density)


def test_the_density_is_the_copula_times_the_densities_of_the_columns(rng):
    """log f = log g(z) + sum_j (log f_j - log phi(z_j)) with z = Phi^-1(F) by scipy, for all rows as for fresh ones."""
    X, fresh = skewed(rng, 200), skewed(rng, 300)
    ladder, fold = stacking.bandwidth_ladder(*SMOOTH), fold_numbers(200)
    found = scales.fit_scales(X, fold, ladder, np.array([1.0, 0.5]), Effort(2, 15), Effort(2, 15), own_scale=False)
    Z, log_slope = scales.to_scores(found.splines, fresh)
    for j in range(2):
        stack = stacking.fit_stack(X[:, [j]], fold, ladder, 2, 15)
        kept, parts = stack.kernel_weights > 0, [stack.mixtures.components(size) for size in range(3)]
        weights = np.concatenate([w * own for w, (own, _, _) in zip(stack.mixture_weights, parts, strict=True)])
        means = np.concatenate([means[:, 0] for _, means, _ in parts])
        widths = np.sqrt(np.concatenate([covariances[:, 0, 0] for _, _, covariances in parts]))
        law = ColumnLaw(weights, means, widths, X[:, j], stack.bandwidths[kept], stack.kernel_weights[kept])
        exact, exact_slope = exact_scores(law, fresh[:, j])
        np.testing.assert_allclose(Z[:, j], exact, rtol=0, atol=3 * CLOSE)
        log_slope -= exact_slope
    assert np.abs(log_slope).mean() < CLOSE_SLOPE


def test_the_density_on_both_scales_is_the_weighted_sum_of_the_two(blocks, rng):
    copula, own, X = blocks["copula"], blocks["two-scales"].own, rng.uniform(-2, 6, size=(50, 2))
    both = ScalesBlock(own, copula, 0.3)
    expected = np.log(0.7 * np.exp(own.score_samples(X)) + 0.3 * np.exp(copula.score_samples(X)))
    np.testing.assert_allclose(both.score_samples(X), expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", [0, 1])
def test_columns_drawn_follow_the_marginal(blocks, kind, column):
    grid, distribution = cumulated(blocks[kind], column)
    drawn = blocks[kind].sample(5000, np.random.RandomState(0))[:, column]
    assert kstest(drawn, lambda x: np.interp(x, grid, distribution)).pvalue > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_drawn_fill_each_cell_as_the_density_says(blocks, grids, kind):
    n, coarse = 20_000, EDGES[::30]
    expected = grids[kind].reshape(20, 30, 20, 30).sum(axis=(1, 3)) * CELL**2
    drawn = blocks[kind].sample(n, np.random.RandomState(1))
    counts = np.histogram2d(*drawn.T, bins=[coarse, coarse])[0]
    assert (np.abs(counts / n - expected) < 5 * np.sqrt((expected + 1 / n) / n)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_drawn_have_the_entropy_of_the_density(blocks, grids, kind):
    density = grids[kind]
    entropy = -(density * np.log(np.maximum(density, 1e-300))).sum() * CELL**2
    scored = blocks[kind].score_samples(blocks[kind].sample(5000, np.random.RandomState(2)))
    assert -scored.mean() == pytest.approx(entropy, abs=scored.std() * monte_carlo(5000))


def test_the_share_of_the_scores_is_their_share_of_the_rows_drawn(blocks, rng):
    far = a_stack(rng, 100 + rng.normal(size=(40, 2)))
    drawn = ScalesBlock(far, blocks["copula"], 0.8).sample(4000, np.random.RandomState(0))
    assert np.mean(drawn[:, 0] < 50) == pytest.approx(0.8, abs=monte_carlo(4000) / 2)


@pytest.mark.parametrize("family", [CopulaStack(), ScalesStack()])
def test_a_saved_density_is_loaded_to_the_bit(rng, tmp_path, family):
    X = np.column_stack([skewed(rng, 150, 3), rng.normal(size=150)])
    density = product(X, ((0, 1, 2), (3,)), family)
    density.save(tmp_path / "density.isde")
    again = isde.load(tmp_path / "density.isde")
    assert [block.kind for block in again.blocks] == [block.kind for block in density.blocks]
    np.testing.assert_array_equal(again.score_blocks(X), density.score_blocks(X))
    np.testing.assert_array_equal(again.sample(20, random_state=3), density.sample(20, random_state=3))
    here, there = (d.blocks[0].marginal([2, 0]).score_samples(X[:, :2]) for d in (density, again))
    np.testing.assert_array_equal(here, there)


DAMAGES = [
    ({"n_knots": np.array([], dtype=np.int64)}, "two knots at least"),
    ({"n_knots": np.array([3, 1])}, "two knots at least"),
    ({"n_knots": np.array([2.0, 2.0])}, "'n_knots' must hold whole numbers"),
    ({"n_knots": np.array(4)}, "'n_knots' must hold whole numbers, in 1 dimensions"),
    ({"n_knots": np.array([2, 3])}, "all splines as many as there are"),
    ({"values": np.array([-1.0, 1.0, -1.0])}, "'values' has the shape"),
    ({"slopes": np.array([1.0, 1.0, np.inf, 1.0])}, "'slopes' must hold finite numbers above 0"),
    ({"slopes": np.array([1.0, 1.0, 1.0, 1e200])}, "slopes of a spline are of another size"),
    ({"knots": np.array([[0.0, 1.0, 0.0, 1.0]])}, "'knots' must hold numbers"),
    ({"knots": np.array([0.0, 1.0, 1.0, 0.0])}, "knots and values of a spline increase"),
    ({"values": np.array([0.0, 0.0, 0.0, 1.0])}, "knots and values of a spline increase"),
    ({"slopes": np.array([1.0, 0.0, 1.0, 1.0])}, "'slopes' must hold finite numbers above 0"),
    ({"n_knots": np.array([4]), "knots": np.arange(4.0), "values": np.arange(4.0)}, "a spline for each column"),
    ({"scores.kernel_weights": np.array([-1.0])}, "'kernel_weights'"),
]


def plain_arrays(blocks):
    """Of a copula block with two splines of two knots."""
    line = Spline(np.array([0.0, 1.0]), np.array([-1.0, 1.0]), np.array([2.0, 2.0]))
    return dict(CopulaBlock((line, line), blocks["copula"].scores).to_arrays())


@pytest.mark.parametrize(("damage", "complaint"), DAMAGES)
def test_damaged_copula_blocks_are_refused(blocks, damage, complaint):
    arrays = plain_arrays(blocks)
    assert CopulaBlock.from_arrays(arrays).n_columns == 2
    with pytest.raises(ValueError, match=complaint):
        CopulaBlock.from_arrays(arrays | damage)
    both = blocks["two-scales"].to_arrays() | {f"copula.{name}": array for name, array in (arrays | damage).items()}
    with pytest.raises(ValueError, match=complaint):
        ScalesBlock.from_arrays(both)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 1.5, np.nan])
def test_a_share_outside_0_and_1_is_refused(blocks, share):
    with pytest.raises(ValueError, match="'share' must hold a share between 0 and 1"):
        ScalesBlock.from_arrays({**blocks["two-scales"].to_arrays(), "share": np.array(share)})


def test_scales_of_different_columns_are_refused(blocks):
    own = {f"own.{name}": array for name, array in blocks["two-scales"].own.marginal([0]).to_arrays().items()}
    with pytest.raises(ValueError, match="as many columns"):
        ScalesBlock.from_arrays({**blocks["two-scales"].to_arrays(), **own})


# --- fits ------------------------------------------------------------------------------------------------------


def fold_numbers(n, cv=5):
    return np.repeat(np.arange(min(cv, n)), [len(fold) for fold in oracles.contiguous_folds(n, cv)])


def test_no_expert_has_seen_the_fold_of_the_row_it_judges(rng):
    X, fold, ladder = skewed(rng, 103), fold_numbers(103), np.array([0.5, 0.25])
    changed = X.copy()
    changed[fold == 2] = rng.uniform(size=(int((fold == 2).sum()), 2))
    kept = np.flatnonzero(fold == 2)[:5]
    changed[kept] = X[kept]
    stacks = [stacking.fit_stack(X[:, [j]], fold, ladder, 2, 15) for j in range(2)]
    here, there = (
        scales._held_out_on_scores(rows, fold, stacks, np.array([1.0, 0.5]), Effort(2, 15))[0] for rows in (X, changed)
    )
    np.testing.assert_array_equal(here[:, kept], there[:, kept])
    assert (here[:, fold == 1] != there[:, fold == 1]).any(axis=0).all()


def test_held_out_densities_on_scores_are_those_of_a_copula_fitted_on_the_other_folds(rng):
    X, fold, ladder = skewed(rng, 120), fold_numbers(120), np.array([0.5, 0.25])
    stacks = [stacking.fit_stack(X[:, [j]], fold, ladder, 2, 15) for j in range(2)]
    held_out, _ = scales._held_out_on_scores(X, fold, stacks, np.array([1.0, 0.5]), Effort(2, 15))
    others, here = X[fold != 3], X[fold == 3]
    weights = [stacking.choose_weights(stack.held_out[:, fold != 3], len(stack.bandwidths)) for stack in stacks]
    law = [
        scales._spline(weights[j], stack.fold_mixtures[3], others[:, j], stack.bandwidths)
        for j, stack in enumerate(stacks)
    ]
    (Z, _), (centres, _) = (scales.to_scores(tuple(law), rows) for rows in (here, others))
    slopes = sum(law[j].forward(here[:, j])[1] for j in range(2))
    for e, h in enumerate([1.0, 0.5]):
        expected = oracles.kde_log_density(Z, centres, h) + slopes
        np.testing.assert_allclose(held_out[e, fold == 3], expected, rtol=1e-5, atol=2e-4)
    expected = multivariate_normal(centres.mean(axis=0), np.cov(centres.T, bias=True)).logpdf(Z) + slopes
    np.testing.assert_allclose(held_out[2, fold == 3], expected, rtol=0, atol=1e-3)


def test_the_weights_of_both_scales_maximise_the_held_out_density(rng):
    X, fold = skewed(rng, 200), fold_numbers(200)
    ladder, score_ladder = stacking.bandwidth_ladder(*SMOOTH), np.array([1.0, 0.5])
    options = ladder, score_ladder, Effort(2, 15), Effort(2, 15)
    both, alone = (scales.fit_scales(X, fold, *options, own_scale=own) for own in (True, False))
    assert both.own.share + both.scores.share == pytest.approx(1, abs=1e-12)
    assert alone.own.share == 0
    assert alone.scores.share == pytest.approx(1, abs=1e-12)
    ladder = both.own.bandwidths
    own, _ = stacking.held_out_log_densities(X, fold, ladder, 2, 15)
    np.testing.assert_array_equal(both.held_out, np.concatenate([own, alone.held_out]))
    weights = np.concatenate([padded(part, n) for part, n in ((both.own, len(ladder)), (both.scores, 2))])

    def held_out(weights, logs):
        return np.log(weights @ np.exp(logs)).mean()

    least = 1 / 201  # of the Gaussian of the own scale: a row's worth
    assert both.own.mixture_weights[0] >= (1 - 1e-5) * least
    found = held_out(weights, both.held_out)
    assert found > held_out(stacking.choose_weights(own, len(ladder)), own) - 1e-3
    assert found > held_out(padded(alone.scores, 2), alone.held_out) - least - 1e-3


def test_scores_that_break_their_promise_leave_the_block_to_other_experts(rng, monkeypatch):
    X, fold = skewed(rng, 600), fold_numbers(600)
    options = stacking.bandwidth_ladder(*SMOOTH), np.array([1.0, 0.5]), Effort(2, 15), Effort(2, 15)
    honest, refit = scales.fit_scales(X, fold, *options, own_scale=True), stacking.refit_mixtures
    assert honest.scores.mixture_weights.sum() > 0.3

    def shifted(rows, sizes, folds, steps):
        good = refit(rows, sizes, folds, steps)
        on_scores = rows.min() < -1
        means = [m + 3 * on_scores for m in good.means]
        return Mixtures(good.centre, good.spread, good.weights, means, good.covariances)

    monkeypatch.setattr(stacking, "refit_mixtures", shifted)
    found = scales.fit_scales(X, fold, *options, own_scale=True)
    assert not found.scores.mixture_weights.any()
    assert found.own.share + found.scores.share == pytest.approx(1, abs=1e-12)
    assert found.own.share > honest.own.share + 0.1
    np.testing.assert_array_equal(found.held_out, honest.held_out)


def test_the_promise_on_scores_is_that_of_rows_in_their_own_units(rng):
    X, fold = skewed(rng, 200), fold_numbers(200)
    ladder, score_ladder = stacking.bandwidth_ladder(*SMOOTH), np.array([1.0, 0.5])
    found = scales.fit_scales(X, fold, ladder, score_ladder, Effort(2, 15), Effort(2, 15), own_scale=False)
    Z, log_slope = scales.to_scores(found.splines, X)
    side = stacking.Scale(Z, log_slope, score_ladder, found.held_out, 5 * [found.scores.mixtures], same_for_folds=False)
    copula = CopulaBlock(found.splines, stack_block(Z, score_ladder, np.zeros(2), found.scores.mixtures, np.eye(3)[1]))
    refitted = side.log_densities(replace(found.scores, mixture_weights=np.eye(3)[1]))
    np.testing.assert_allclose(refitted[3], copula.score_samples(X), rtol=0, atol=1e-3)
    np.testing.assert_array_equal(np.delete(refitted, 3, axis=0), np.delete(found.held_out, 3, axis=0))


def test_scores_of_few_rows_have_the_mean_of_the_folds_mixtures_improved_on_those_of_all(rng, monkeypatch):
    X, fold, seen = skewed(rng, 200), fold_numbers(200), []
    average = stacking.average_mixtures

    def watched(rows, sizes, folds, steps):
        if rows.shape[1] == 2:
            seen.append((rows.min() < -1, steps))
        return average(rows, sizes, folds, steps)

    monkeypatch.setattr(stacking, "average_mixtures", watched)
    options = stacking.bandwidth_ladder(*SMOOTH), np.array([1.0, 0.5]), Effort(2, 15), Effort(2, 15)
    scales.fit_scales(X, fold, *options, own_scale=True)
    assert set(seen) == {(False, 0), (True, 15)}


def padded(experts, n_kernels):
    """Weights of all experts of a scale, mixtures of 1, 2 and 4."""
    assert len(experts.kernel_weights) == n_kernels
    return np.concatenate([experts.kernel_weights, np.pad(experts.mixture_weights, (0, 3))[:3]])


def test_a_block_has_the_scales_that_have_weight(rng):
    X = skewed(rng, 120)
    assert fit_one(CopulaStack(), X).kind == "copula"
    assert fit_one(ScalesStack(), X).kind == "two-scales"
    pair = rng.normal(size=(200, 2))
    plane = np.column_stack([pair, pair.sum(axis=1)])  # flat as it is, and bent on normal scores
    assert fit_one(ScalesStack(), plane).kind == "stack"


@pytest.mark.parametrize("family", [CopulaStack(), ScalesStack()])
@pytest.mark.parametrize("draw", [skewed, ring, half_zeros])
def test_columns_of_fitted_blocks_integrate_to_one(rng, family, draw):
    block = fit_one(family, draw(rng, 150))
    splines = block.splines if block.kind == "copula" else block.copula.splines
    for j in range(2):
        # Narrow where the column is: even steps of normal scores, too.
        x = np.concatenate([np.linspace(-4, 8, 10_001), splines[j].inverse(np.linspace(-8, 8, 40_001))])
        x.sort()
        density = np.exp(block.marginal([j]).score_samples(x[:, None]))
        assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-3)


def test_a_column_alone_has_the_stack_of_its_own_scale(rng):
    X = skewed(rng, 100, 1)
    own, *others = (fit_one(family, X) for family in (StackMarginal(), CopulaStack(), ScalesStack()))
    for block in others:
        assert block.kind == "stack"
        np.testing.assert_array_equal(block.score_samples(X), own.score_samples(X))


def test_skewed_blocks_gain_by_normal_scores_and_rings_keep_their_own_scale(rng):
    families = StackMarginal(), CopulaStack(), ScalesStack()
    scores = []
    for draw in (lambda rng, n: skewed(rng, n) ** 2, ring):
        X, fresh = draw(rng, 500), draw(rng, 2000)
        scores.append([product(X, ((0, 1),), family).score(fresh) for family in families])
    (own, copula, both), (own_ring, copula_ring, both_ring) = scores
    assert copula > own + 0.05
    assert own_ring > copula_ring + 0.02
    assert both > copula - 0.02
    assert both_ring > own_ring - 0.02


@pytest.mark.parametrize("family", [CopulaStack(), ScalesStack()])
def test_units_of_columns_shift_log_densities_by_the_jacobian(rng, family):
    X = skewed(rng, 200)
    for factors, slack in (([2.0**40, 2.0**-60], ROUNDING), ([1e30, 1e-30], 5e-3)):
        here, there = (product(rows, ((0, 1),), family).score_samples(rows) for rows in (X, X * factors))
        np.testing.assert_allclose(there + np.log(factors).sum(), here, rtol=0, atol=slack)


@pytest.mark.parametrize("family", [CopulaStack(), ScalesStack()])
def test_columns_in_another_order_have_the_same_density(rng, family):
    X = skewed(rng, 200)
    here, there = (fit_one(family, np.ascontiguousarray(rows)) for rows in (X, X[:, ::-1]))
    np.testing.assert_allclose(there.score_samples(X[:, ::-1]), here.score_samples(X), rtol=0, atol=0.02)


@pytest.mark.parametrize("family", [CopulaStack(), ScalesStack()])
def test_blocks_side_by_side_are_those_one_by_one_to_the_bit(rng, family):
    X, blocks = skewed(rng, 120, 4), [(0, 1), (2,), (3, 2)]
    alone, together = (fit_shuffled(family, X, blocks, n_jobs=n_jobs) for n_jobs in (1, 2))
    for columns, here, there in zip(blocks, alone, together, strict=True):
        np.testing.assert_array_equal(here.score_samples(X[:, columns]), there.score_samples(X[:, columns]))


def test_the_bandwidths_given_are_those_of_the_own_scale(rng):
    X = ring(rng, 100)
    block, default, fewer_folds = (
        fit_one(family, X) for family in (ScalesStack([0.1, 0.4]), ScalesStack(), ScalesStack([0.1, 0.4], cv=2))
    )
    assert set(block.own.bandwidths) <= {0.4, 0.2, 0.1}
    assert set(block.copula.scores.bandwidths) <= {1.0, 0.5, 0.25, 0.125}
    for other in (default, fewer_folds):
        assert (other.score_samples(X) != block.score_samples(X)).any()


@pytest.mark.parametrize("family", [CopulaStack(), ScalesStack()])
def test_fewer_rows_than_folds_mean_fewer_folds_and_a_warning(rng, family):
    X = skewed(rng, 4)
    with pytest.warns(ISDEWarning, match="Only 4 rows to fit on, and cv=5"):
        block = fit_one(family, X)
    assert np.isfinite(block.score_samples(X)).all()
