"""What every fitted block promises, whatever its family: one law, every entry of the registry."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest
from sklearn.mixture import GaussianMixture

from isde import ForestDensity
from isde.errors import ISDEError
from isde.marginals import FITTED_KINDS, MARGINAL_NAMES, fitted_kind, resolve_marginal
from isde.marginals.conditional import draw_centres, draw_parts
from isde.marginals.mixture import MixtureBlock
from isde.marginals.scales import CopulaStack, ScalesBlock
from isde.marginals.stack import StackMarginal
from oracles import ROUNDING

DRAWN = 4000
APART = 2.2 / np.sqrt(DRAWN)
"""Kolmogorov's distance that a true law passes once in 8,000."""


def rows_of(n, seed=0):
    """A bent and skewed pair and a column that leans on both, in [0, 1]."""
    rng = np.random.default_rng(seed)
    a = rng.gamma(2.0, size=n)
    X = np.column_stack([a, np.cos(a) + 0.2 * rng.normal(size=n), rng.normal(size=n)])
    X[:, 2] += X[:, 0] * X[:, 1]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def fitted(family, X):
    return family.fit_blocks(X, [range(X.shape[1])], n_jobs=1)[0]


def built():
    X = rows_of(200)
    own, copula = fitted(StackMarginal(), X), fitted(CopulaStack(), X)
    mixture = GaussianMixture(3, random_state=0).fit(X)
    return {
        "kde": fitted(resolve_marginal("kde"), X),
        "gaussian": fitted(resolve_marginal("gaussian"), X),
        "gaussian-mixture": MixtureBlock(mixture.weights_, mixture.means_, mixture.covariances_),
        "stack": own,
        "copula": copula,
        "two-scales": ScalesBlock(own, copula, 0.4),
        "tree": ForestDensity(scale=None, random_state=0).fit(X).density_.blocks[0],
    }


@pytest.fixture(scope="module")
def blocks():
    return built()


KINDS = tuple(FITTED_KINDS)
WITH_MARGINALS = tuple(kind for kind in KINDS if kind != "tree")


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_saved_under_its_name_and_built_again_from_its_arrays(blocks, kind):
    assert blocks[kind].kind == fitted_kind(kind).kind == kind
    again, X = fitted_kind(kind).from_arrays(dict(blocks[kind].to_arrays())), rows_of(50, seed=1)
    np.testing.assert_array_equal(again.score_samples(X), blocks[kind].score_samples(X))
    assert again.n_columns == 3


def poisoned(array):
    """Copies of an array that no block can have: other shapes, other types, values without a meaning."""
    yield array[None]
    yield array.astype(complex if array.dtype.kind == "f" else float)
    for poison in (np.nan, np.inf, -np.inf) if array.dtype.kind == "f" else (-1, 1 << 40):
        other = array.copy()
        other.flat[-1] = poison
        yield other


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_built_from_its_own_arrays_and_no_others(blocks, kind):
    arrays = {name: np.array(array) for name, array in blocks[kind].to_arrays().items()}
    build = fitted_kind(kind).from_arrays
    with pytest.raises(ValueError, match="'more' too many"):
        build(arrays | {"more": np.zeros(1)})
    for name, array in arrays.items():
        with pytest.raises(ValueError, match="has no array"):
            build({other: kept for other, kept in arrays.items() if other != name})
        for other in poisoned(array):
            with pytest.raises(ValueError, match=r"\w"):
                build(arrays | {name: other})


@pytest.mark.parametrize("kind", KINDS)
def test_weights_widths_and_covariances_are_looked_at_for_sense(blocks, kind):
    arrays = {name: np.array(array) for name, array in blocks[kind].to_arrays().items()}
    senseless = {
        "weights": lambda array: 5 * array,
        "kernel_weights": lambda array: -array,
        "share": lambda array: 1 + array,
        "covariance": lambda array: -array,
        "covariances": lambda array: -array,
        "bandwidth": lambda array: 0 * array,
        "bandwidths": lambda array: 0 * array,
        "pair_bandwidths": lambda array: -array,
        "parent_bandwidths": lambda array: 1e-300 * array,
        "knots": lambda array: -array,
        "values": lambda array: 0 * array,
        "slopes": lambda array: -array,
        "edges": lambda array: 0 * array,
    }
    found = [(name, senseless[name.split(".")[-1]]) for name in arrays if name.split(".")[-1] in senseless]
    assert found
    for name, damage in found:
        if arrays[name].size:
            with pytest.raises(ValueError, match=r"\w"):
                fitted_kind(kind).from_arrays(arrays | {name: damage(arrays[name])})


@pytest.mark.parametrize("kind", KINDS)
def test_the_arrays_of_a_block_cannot_be_changed(blocks, kind):
    held = [value for value in vars(blocks[kind]).values() if isinstance(value, np.ndarray)]
    assert held or kind in ("copula", "two-scales")
    for array in held:
        with pytest.raises(ValueError, match="read-only"):
            array.flat[0] = 0


@pytest.mark.parametrize("name", MARGINAL_NAMES)
def test_every_family_by_name_fits_blocks_of_a_kind_that_can_be_saved(name):
    for block in resolve_marginal(name).fit_blocks(rows_of(120), [(0, 1), (2,)], n_jobs=1):
        assert block.kind in FITTED_KINDS


@pytest.mark.parametrize("kind", WITH_MARGINALS)
def test_the_marginal_of_two_columns_is_the_integral_over_the_third(blocks, kind):
    points = np.linspace(-4.0, 5.0, 9001)  # the widest kernels are as wide as the rows
    at = rows_of(6, seed=2)
    pair = np.exp(blocks[kind].marginal([2, 0]).score_samples(np.ascontiguousarray(at[:, [2, 0]])))
    for row, expected in zip(at, pair, strict=True):
        line = np.column_stack([np.full(len(points), row[0]), points, np.full(len(points), row[2])])
        found = np.exp(blocks[kind].score_samples(line)).sum() * (points[1] - points[0])
        assert found == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("kind", WITH_MARGINALS)
@pytest.mark.parametrize("given", [0, 1])
def test_a_column_drawn_given_another_has_its_conditional_law(blocks, kind, given):
    pair, points = blocks[kind].marginal([0, 1]), np.linspace(-1.5, 2.5, 8001)
    for value in (0.15, 0.7):
        line = np.empty((len(points), 2))
        line[:, given], line[:, 1 - given] = value, points
        density = np.exp(pair.score_samples(line))
        cumulated = np.cumsum(density) / density.sum()
        drawn = pair.sample_given([given], np.full((DRAWN, 1), value), np.random.RandomState(0))
        assert (drawn[:, given] == value).all()
        assert kstest(drawn[:, 1 - given], lambda x, law=cumulated: np.interp(x, points, law)).statistic < APART


@pytest.mark.parametrize("kind", WITH_MARGINALS)
@pytest.mark.parametrize("given", [[1], [2, 0]])
def test_columns_drawn_given_drawn_ones_have_the_law_of_the_block(blocks, kind, given):
    block, rng = blocks[kind], np.random.RandomState(1)
    fresh = block.sample(DRAWN, rng)
    redrawn = block.sample_given(given, block.sample(DRAWN, rng)[:, given], rng)
    for column in range(3):
        assert ks_2samp(fresh[:, column], redrawn[:, column]).statistic < np.sqrt(2) * APART
    fresh_fit, redrawn_fit = block.score_samples(fresh), block.score_samples(redrawn)
    assert ks_2samp(fresh_fit, redrawn_fit).statistic < np.sqrt(2) * APART


@pytest.mark.parametrize("kind", WITH_MARGINALS)
def test_far_values_given_leave_the_others_finite(blocks, kind):
    drawn = blocks[kind].sample_given([1], np.array([[1e3], [-1e5]]), np.random.RandomState(0))
    assert np.isfinite(drawn).all()


@pytest.mark.parametrize("kind", WITH_MARGINALS)
def test_columns_and_values_that_make_no_sense_are_refused(blocks, kind):
    rng = np.random.RandomState(0)
    with pytest.raises(ValueError, match="none of them twice"):
        blocks[kind].sample_given([1, 1], np.zeros((3, 2)), rng)
    with pytest.raises(ValueError, match=r"values of shape \(3, 1\) for 2 columns"):
        blocks[kind].sample_given([0, 1], np.zeros((3, 1)), rng)


def test_families_without_marginals_say_so_by_name(blocks):
    foreign = fitted(resolve_marginal(GaussianMixture(2, random_state=0)), rows_of(80))
    for block, name in ((blocks["tree"], "tree of pairs"), (foreign, "GaussianMixture")):
        with pytest.raises(ISDEError, match=name):
            block.marginal([0])
        with pytest.raises(ISDEError, match=name):
            block.sample_given([0], np.zeros((1, 1)), np.random.RandomState(0))


def test_parts_and_centres_are_drawn_in_proportion_to_their_weights(rng):
    log_weights = np.log([0.1, 0.6, 0.3]) - 2000.0
    drawn = draw_parts(np.tile(log_weights, (DRAWN, 1)), rng.uniform(size=DRAWN))
    np.testing.assert_allclose(np.bincount(drawn) / DRAWN, [0.1, 0.6, 0.3], atol=5 / np.sqrt(DRAWN))
    centres, at = np.array([[0.0], [1.0], [40.0]]), np.full((DRAWN, 1), 0.5 + np.log(3))
    drawn = draw_centres(at, centres, rng.uniform(size=DRAWN))
    # exp(-(x - c)^2 / 2) at x = 1/2 + log 3: the second centre is three times as likely as the first.
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / DRAWN, [0.25, 0.75, 0.0], atol=5 / np.sqrt(DRAWN))


def test_a_gaussian_given_some_columns_is_its_regression(blocks):
    block, values = blocks["gaussian"], np.tile([[0.3, 0.8]], (DRAWN, 1))
    drawn = block.sample_given([0, 2], values, np.random.RandomState(0))[:, 1]
    C, m = block.covariance, block.mean
    slopes = np.linalg.solve(C[np.ix_([0, 2], [0, 2])], C[[0, 2], 1])
    mean, variance = m[1] + slopes @ (values[0] - m[[0, 2]]), C[1, 1] - C[1, [0, 2]] @ slopes
    assert drawn.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / DRAWN))
    assert drawn.var() == pytest.approx(variance, rel=5 * np.sqrt(2 / DRAWN))
    assert variance > ROUNDING
