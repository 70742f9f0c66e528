"""Log-densities of every family against 50 digits: far rows, far offsets, extreme units; scores against float32."""

from functools import lru_cache

import numpy as np
import pytest
from mpmath import mp, mpf

import precise
from chunks import by_model
from isde import ForestDensity, GaussianMixtureCV, fit_blocks, score_subsets
from isde.engine.whitening import whitening
from isde.errors import InputError
from isde.marginals import FITTED_KINDS, MARGINAL_NAMES, resolve_marginal
from isde.subsets import SubsetFamily
from oracles import SINGLE_PRECISION, kde_log_density

DIGITS = 1e-12
"""Times max(1, |log-density|): what is promised."""

UNITS = {"one": (1.0, 1.0), "apart": (1e-300, 1e300)}
OFFSETS = (0.0, 1e6)
FAR = np.array([[60.0, 0.0], [-60.0, 60.0], [60.0, 60.0], [0.0, -60.0], [8.0, -8.0], [1e6, -1e6]])
"""In spreads."""

FAMILIES = (*MARGINAL_NAMES, "tree", "mixture")


def rows_of(n, seed=0):
    """A bent and skewed pair, of spread 1."""
    rng = np.random.default_rng(seed)
    a = rng.gamma(2.0, size=n)
    X = np.column_stack([a, np.cos(a) + 0.2 * rng.normal(size=n)])
    return (X - X.mean(axis=0)) / X.std(axis=0)


@lru_cache(maxsize=1)
def near_and_far():
    return np.vstack([rows_of(5, seed=1), rows_of(40)[:2], FAR])


def fitted(family, X, **options):
    if family == "tree":
        return ForestDensity(random_state=0, **options).fit(X).density_
    if family == "mixture":
        return GaussianMixtureCV(3, random_state=0, **options).fit(X).density_
    return fit_blocks(X, [(0, 1)], family, **options)


def worst_error(density, rows):
    """The largest distance from 50 digits, in units of max(1, |log-density|); inf where a row has none."""
    archive = density.to_archive()
    errors = []
    for row, found in zip(rows.tolist(), density.score_samples(rows).tolist(), strict=True):
        exact = precise.log_density(archive, row)
        errors.append(float(abs(mpf(found) - exact) / max(1, abs(exact))) if np.isfinite(found) else np.inf)
    return max(errors)


def test_every_kind_of_block_has_its_definition_at_50_digits():
    assert precise.KINDS.keys() == FITTED_KINDS.keys()


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("family", FAMILIES)
def test_log_densities_have_12_digits(family, units, offset):
    if family == "gaussian-zero-mean" and offset:
        pytest.skip("about zero, columns that are far from it are the same column")
    X, rows = ((Z + offset) * UNITS[units] for Z in (rows_of(40), near_and_far()))
    assert worst_error(fitted(family, X), rows) < DIGITS


@pytest.mark.parametrize("scale", ["standard", None])
@pytest.mark.parametrize("family", FAMILIES)
def test_so_they_have_on_other_scales(family, scale):
    offset = 0.0 if family == "gaussian-zero-mean" else 1e6
    assert worst_error(fitted(family, rows_of(40) + offset, scale=scale), near_and_far() + offset) < DIGITS


@pytest.mark.parametrize(("family", "bandwidths"), [("kde", [1e-5]), ("kde", [100.0]), ("stack", [1e-5, 0.1])])
def test_so_they_have_with_narrow_and_wide_kernels(family, bandwidths):
    assert worst_error(fitted(family, rows_of(40), bandwidths=bandwidths), near_and_far()) < DIGITS


def close(Z, apart):
    """Two columns that differ by so many spreads."""
    return np.column_stack([Z[:, 0], Z[:, 0] + apart * Z[:, 1]])


ALIKE = pytest.mark.filterwarnings("ignore:.* order the rows alike:isde.errors.ISDEWarning")


@ALIKE
@pytest.mark.parametrize("apart", [0.03, 1e-3])
@pytest.mark.parametrize("family", ["gaussian", "mixture", "stack", "copula+stack"])
def test_so_they_have_where_columns_are_close_to_each_other(family, apart):
    """Correlations of 0.9995 and 0.9999995, and rows off the line where all others are."""
    rows = np.vstack([close(near_and_far(), apart), near_and_far()])
    assert worst_error(fitted(family, close(rows_of(40), apart)), rows) < DIGITS


@ALIKE
@pytest.mark.parametrize("apart", [1e-4, 1e-5])
def test_closer_ones_lose_the_digits_of_rescaled_values(apart):
    """A value on [0, 1] is off by 1e-16, of which the narrowest direction is a part."""
    X = close(rows_of(40), apart)
    rows = np.vstack([close(near_and_far(), apart), near_and_far()])
    assert worst_error(fitted("gaussian", X), rows) < 5e-16 * np.sqrt(np.linalg.cond(np.corrcoef(X.T)))


@pytest.mark.parametrize("s", [1, 2, 5, 12])
def test_whitening_is_the_inverse_of_the_factor(s):
    """Of several matrices at once, in units from 1e-140 to 1e140, against 50 digits."""
    rng = np.random.default_rng(s)
    units = 2.0 ** rng.integers(-460, 460, size=s)
    roots = rng.normal(size=(3, s, s)) * np.logspace(0, -4, s)
    covariances = roots @ np.swapaxes(roots, 1, 2) + 1e-9 * np.eye(s)
    covariances = np.tril(covariances) + np.swapaxes(np.tril(covariances, -1), 1, 2)
    for C, found in zip(covariances, whitening(covariances * np.outer(units, units)), strict=True):
        exact = mp.inverse(mp.cholesky(mp.matrix(C.tolist())))
        for row, own in enumerate((found * units).tolist()):
            error = max(abs(mpf(own[c]) - exact[row, c]) for c in range(s))
            assert error < 1e-15 * max(abs(exact[row, c]) for c in range(s))


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_columns_that_are_not_rescaled_are_refused_where_squares_leave_float64(unit):
    with pytest.raises(InputError, match=r"Column 1 has values from .* whose squares leave float64: have it rescaled"):
        fit_blocks(rows_of(40) * unit, [(0, 1)], "stack", scale=None)
    for marginal in ("kde", "stack", "gaussian"):
        with pytest.raises(InputError, match="whose squares leave float64"):
            score_subsets(rows_of(40) * unit, rows_of(12) * unit, max_block_size=2, marginal=marginal)


@pytest.mark.parametrize("spreads", [0, 60])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_scores_of_subsets_are_off_by_no_more_than_float32(spreads, offset):
    """Means over rows, of which one may be far out, against the same kernel densities at 50 digits."""
    Z, rows = rows_of(40), rows_of(12, seed=1)
    rows[0, 0] += spreads
    low, width = (Z + offset).min(axis=0), np.ptp(Z + offset, axis=0)
    U, V = ((Z + offset) - low) / width, ((rows + offset) - low) / width
    subsets = SubsetFamily(2, 2)
    (found,) = by_model(resolve_marginal("kde"), U, V, subsets)
    for position, subset in enumerate(subsets):
        columns = list(subset)
        h = found.bandwidths[position]
        exact = [
            precise.kernels(U[:, columns], [h] * len(columns), [mpf(x) for x in row]) for row in V[:, columns].tolist()
        ]
        mean = sum(exact) / len(exact)
        assert abs(mpf(float(found.scores[position])) - mean) < SINGLE_PRECISION * max(1, abs(mean))


@pytest.mark.parametrize("bandwidth", [1e-17, 0.1, 1e17])
@pytest.mark.parametrize("unit", [1e-60, 1e-18, 1.0, 1e18, 1e60])
def test_scores_of_subsets_hold_in_any_units(unit, bandwidth):
    Z, rows = rows_of(40) * unit, rows_of(12, seed=1) * unit
    found = score_subsets(Z, rows, max_block_size=2, marginal="kde", bandwidths=[bandwidth]).scores
    exact = [kde_log_density(rows[:, c], Z[:, c], bandwidth).mean() for c in ([0], [1], [0, 1])]
    np.testing.assert_array_less(np.abs(found - exact), SINGLE_PRECISION * np.maximum(1, np.abs(exact)))


@pytest.mark.parametrize("bandwidths", [[1e-200], [1e-20, 1.0], [1.0, 1e20]])
def test_bandwidths_whose_squares_leave_float32_are_refused(bandwidths):
    with pytest.raises(ValueError, match="have squares that leave float32"):
        score_subsets(rows_of(40), rows_of(12), max_block_size=2, marginal="kde", bandwidths=bandwidths)


@pytest.mark.parametrize("unit", [1e20, 1e100])
def test_rows_beyond_the_reach_of_kernels_are_no_neighbours(unit):
    """Never rescaled, such columns are for the mixtures, which say what they say in other units."""

    def scores(by):
        found = score_subsets(rows_of(40) * by, rows_of(12, seed=1) * by, max_block_size=2, marginal="stack")
        return found.scores + np.log(by) * np.array([1, 1, 2])

    np.testing.assert_allclose(scores(unit), scores(1e10), atol=1e-4)
