"""Marginals: each family's scores equal their definition."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import oracles
from isde import ISDE, fit_blocks, score_subsets
from isde.errors import ISDEError, ISDEWarning
from isde.marginals import gaussian, resolve_marginal
from isde.subsets import SubsetFamily
from oracles import ROUNDING, SINGLE_PRECISION

GRID = [0.03, 0.1, 0.3]


def assert_kde_scores_equal_the_oracle(X_fit, X_score, k, bandwidths=None, cv=5):
    table = score_subsets(X_fit, X_score, max_block_size=k, bandwidths=bandwidths, cv=cv)
    expected = [oracles.kde_score(X_fit, X_score, subset, bandwidths, cv) for subset in table.subsets]
    np.testing.assert_allclose(table.bandwidths, [h for _, h in expected], rtol=ROUNDING)
    np.testing.assert_allclose(table.scores, [score for score, _ in expected], rtol=0, atol=SINGLE_PRECISION)
    return table


# --- kernel densities ------------------------------------------------------------------------------------------


def test_kde_scores_of_all_subsets_equal_the_definition(rows):
    table = assert_kde_scores_equal_the_oracle(rows[:62], rows[62:], 3)
    assert table.unsettled == ()
    assert np.isnan(table.errors).all()


@pytest.mark.parametrize("cv", [2, 3, 7])
def test_folds_are_contiguous_and_the_first_are_the_longer_ones(rows, cv):
    # Sorted rows: contiguous folds differ from shuffled ones, and 59 rows are divided by no cv here.
    order = np.argsort(rows[:, 0])
    assert_kde_scores_equal_the_oracle(rows[order][:59, :2], rows[60:, :2], 2, GRID, cv)


def test_the_default_grid_is_the_papers(rows):
    table = score_subsets(rows[:60], rows[60:], max_block_size=2)
    assert np.isclose(table.bandwidths[:, None], np.geomspace(0.01, 1, 30)).any(axis=1).all()


def test_the_default_grid_grows_down_where_the_structure_is_fine(rng):
    centres = rng.uniform(size=(6, 2))
    X = centres[rng.integers(6, size=80)] + 1e-3 * rng.normal(size=(80, 2))
    table = assert_kde_scores_equal_the_oracle(X[:50], X[50:], 2)
    assert table.bandwidths.max() < 0.01
    assert table.unsettled == ()


def test_the_default_grid_grows_up_where_the_data_are_wide(rng):
    X = 20 * rng.normal(size=(70, 2))
    table = assert_kde_scores_equal_the_oracle(X[:40], X[40:], 2)
    assert table.bandwidths.min() > 1
    assert table.unsettled == ()


def test_one_subset_may_grow_while_others_stay(rng):
    fine = rng.integers(5, size=70) / 5 + 5e-4 * rng.normal(size=70)
    X = np.column_stack([fine, rng.uniform(size=70), 15 * rng.normal(size=70)])
    table = assert_kde_scores_equal_the_oracle(X[:45], X[45:], 2)
    assert table.bandwidths[0] < 0.01 < table.bandwidths[1] < 1 < table.bandwidths[2]


@pytest.mark.parametrize("bandwidths", [[0.05], [0.5, 0.6], [1e-3, 1e-2], (0.2, 0.1, 0.1, 0.3)], ids=str)
def test_a_grid_given_is_used_as_it_is(rows, bandwidths):
    # The best value may be an end, and stays there.
    table = assert_kde_scores_equal_the_oracle(rows[:60, :2], rows[60:, :2], 2, bandwidths)
    assert set(table.bandwidths) <= set(bandwidths)
    assert table.unsettled == ()


def test_a_far_scoring_row_counts(rows):
    X_score = rows[60:].copy()
    X_score[0] += 50
    table = assert_kde_scores_equal_the_oracle(rows[:60], X_score, 3, GRID)
    assert np.isfinite(table.scores).all()
    assert (table.scores < -100).all()


def test_a_far_fitting_row_counts_in_the_choice_of_a_bandwidth(rows):
    X_fit = rows[:60].copy()
    X_fit[7, 0] = 40
    table = assert_kde_scores_equal_the_oracle(X_fit, rows[60:], 2)
    assert table.bandwidths[0] > 0.1


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_the_number_of_workers_changes_no_bit(rows, n_jobs):
    alone = score_subsets(rows[:60], rows[60:], max_block_size=3)
    table = score_subsets(rows[:60], rows[60:], max_block_size=3, n_jobs=n_jobs)
    np.testing.assert_array_equal(table.scores, alone.scores)
    np.testing.assert_array_equal(table.bandwidths, alone.bandwidths)


def test_a_shift_of_a_column_changes_nothing(rows):
    here = score_subsets(rows[:60], rows[60:], max_block_size=2, bandwidths=GRID)
    there = score_subsets(rows[:60] + 100.0, rows[60:] + 100.0, max_block_size=2, bandwidths=GRID)
    np.testing.assert_allclose(there.scores, here.scores, rtol=0, atol=SINGLE_PRECISION)


def test_scaling_data_and_grid_shifts_the_scores_by_the_logarithm(rows):
    here = score_subsets(rows[:60], rows[60:], max_block_size=3, bandwidths=GRID)
    there = score_subsets(8 * rows[:60], 8 * rows[60:], max_block_size=3, bandwidths=[8 * h for h in GRID])
    np.testing.assert_allclose(
        there.scores, here.scores - here.subsets.sizes * np.log(8), rtol=0, atol=SINGLE_PRECISION
    )


def test_a_column_without_a_best_bandwidth_is_marked(rng):
    clumped = rng.integers(3, size=60) + 1e-9 * rng.normal(size=60)
    X = np.column_stack([rng.uniform(size=60), clumped / 3])
    assert score_subsets(X[:40], X[40:], max_block_size=1).unsettled == (1,)


def test_a_column_without_a_best_bandwidth_is_named_in_a_warning(rng):
    clumped = rng.integers(3, size=60) + 1e-9 * rng.normal(size=60)
    frame = pd.DataFrame({"even": rng.uniform(size=60), "clumped": clumped})
    with pytest.warns(ISDEWarning, match="best bandwidth for 'clumped' lies beyond the widest grid"):
        ISDE(1, marginal="kde", random_state=0).fit(frame)


def test_fewer_rows_than_folds_mean_fewer_folds_and_a_warning(rows):
    with pytest.warns(ISDEWarning, match="Only 4 rows to fit on, and cv=5: 4 folds are used"):
        assert_kde_scores_equal_the_oracle(rows[:4, :2], rows[4:30, :2], 2, GRID)


def test_one_row_is_too_few_to_fit_on(rows):
    with pytest.raises(ValueError, match="at least 2 rows to fit on, got 1"):
        score_subsets(rows[:1], rows[1:], max_block_size=1)


@pytest.mark.parametrize("bandwidths", [[], [0.1, 0.0], [-1.0], [np.nan], [np.inf]])
def test_bandwidths_must_be_positive_numbers(rows, bandwidths):
    with pytest.raises(ValueError, match="bandwidths must be positive"):
        score_subsets(rows[:60], rows[60:], max_block_size=1, bandwidths=bandwidths)


# --- Gaussians -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("marginal", "zero_mean"), [("gaussian", False), ("gaussian-zero-mean", True)])
def test_gaussian_scores_of_all_subsets_equal_scipys(rng, marginal, zero_mean):
    X = rng.normal(size=(150, 4)) @ rng.normal(size=(4, 4)) * [1, 0.1, 10, 1] + [3, 0, 20, -1]
    table = score_subsets(X[:80], X[80:], max_block_size=4, marginal=marginal)
    expected = [oracles.gaussian_score(X[:80], X[80:], subset, zero_mean) for subset in table.subsets]
    np.testing.assert_allclose(table.scores, expected, rtol=0, atol=ROUNDING)
    assert np.isnan(table.bandwidths).all()


def test_the_two_gaussians_differ_where_the_mean_is_not_zero(rows):
    about_mean = score_subsets(rows[:60], rows[60:], max_block_size=1, marginal="gaussian")
    about_zero = score_subsets(rows[:60], rows[60:], max_block_size=1, marginal="gaussian-zero-mean")
    assert (about_mean.scores > about_zero.scores + 0.1).all()


def test_a_singular_covariance_scores_minus_infinity_and_no_warning(rng):
    X = rng.normal(size=(100, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    table = score_subsets(X[:50], X[50:], max_block_size=3, marginal="gaussian")
    assert table[0, 1, 2] == -np.inf
    assert np.isfinite(table.scores[:6]).all()


def test_a_constant_fitting_column_scores_minus_infinity(rng):
    X = rng.normal(size=(40, 2))
    X[:20, 1] = 7.0
    table = score_subsets(X[:20], X[20:], max_block_size=2, marginal="gaussian")
    assert table.scores[1:].tolist() == [-np.inf, -np.inf]
    assert np.isfinite(table.scores[0])


def test_singular_does_not_depend_on_the_units(rng):
    X = rng.normal(size=(60, 2)) * [1e-9, 1e9]
    assert np.isfinite(score_subsets(X[:30], X[30:], max_block_size=2, marginal="gaussian").scores).all()


# --- foreign estimators ----------------------------------------------------------------------------------------


def mixture_scores(X_fit, X_score, subsets):
    return [GaussianMixture(2, random_state=0).fit(X_fit[:, s]).score(X_score[:, s]) for s in map(list, subsets)]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_estimator_is_cloned_for_every_subset(rows, n_jobs):
    mixture = GaussianMixture(2, random_state=0)
    table = score_subsets(rows[:60], rows[60:], max_block_size=2, marginal=mixture, n_jobs=n_jobs)
    np.testing.assert_allclose(table.scores, mixture_scores(rows[:60], rows[60:], table.subsets), rtol=0, atol=ROUNDING)
    assert not hasattr(mixture, "means_")
    assert np.isnan(table.bandwidths).all()


FRAMES = {
    "numpy": lambda columns: np.column_stack(list(columns.values())),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("library", FRAMES)
def test_an_estimator_works_with_and_without_frames(rows, library):
    columns = {"a": rows[:, 0], "b": rows[:, 1], "c": rows[:, 2]}
    model = ISDE(3, marginal=GaussianMixture(2, random_state=0), random_state=0).fit(FRAMES[library](columns))
    plain = ISDE(3, marginal=GaussianMixture(2, random_state=0), random_state=0).fit(rows)
    assert model.partition_ == plain.partition_
    assert model.score(FRAMES[library](columns)) == pytest.approx(plain.score(rows), abs=ROUNDING)
    assert model.sample(7, random_state=0).shape == (7, 3)


def test_scikit_learns_kernel_density_as_a_marginal_equals_ours(rows):
    foreign = score_subsets(rows[:60], rows[60:], max_block_size=3, marginal=KernelDensity(bandwidth=0.1))
    ours = score_subsets(rows[:60], rows[60:], max_block_size=3, bandwidths=[0.1])
    np.testing.assert_allclose(foreign.scores, ours.scores, rtol=0, atol=1e-6)  # its tree sums with a tolerance


@pytest.mark.parametrize("estimator", [GaussianMixture(2, random_state=0), KernelDensity(bandwidth=0.1)], ids=str)
def test_rows_drawn_from_foreign_blocks_follow_the_seed(rows, estimator):
    density = fit_blocks(rows, [(0, 1), (2,)], estimator)
    drawn = density.sample(50, random_state=0)
    np.testing.assert_array_equal(drawn, density.sample(50, random_state=0))
    assert not np.array_equal(drawn, density.sample(50, random_state=1))


def test_rows_drawn_from_foreign_blocks_are_independent_across_blocks(rng):
    X = np.column_stack([rng.integers(2, size=400) + 0.05 * rng.normal(size=400) for _ in range(2)])
    drawn = fit_blocks(X, [(0,), (1,)], GaussianMixture(2, random_state=0)).sample(2000, random_state=0)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < oracles.monte_carlo(2000)


class Awkward(BaseEstimator):
    """A density that misbehaves in a chosen way."""

    def __init__(self, how="raise"):
        self.how = how

    def fit(self, X, y=None):
        if self.how == "raise":
            raise RuntimeError("no luck")
        return self

    def score_samples(self, X):
        return {"nan": np.full(len(X), np.nan), "inf": np.full(len(X), np.inf), "short": np.zeros(1)}[self.how]


@pytest.mark.parametrize(
    ("how", "complaint"), [("raise", "no luck"), ("nan", "never NaN"), ("inf", ""), ("short", "row")]
)
def test_an_estimator_that_misbehaves_is_named_with_its_columns(rows, how, complaint):
    with pytest.raises(ISDEError, match=rf"Awkward.*columns \(0,\).*{complaint}"):
        score_subsets(rows[:60], rows[60:], max_block_size=1, marginal=Awkward(how))


def test_an_estimator_that_cannot_draw_says_so(rows):
    class Silent(Awkward):
        def score_samples(self, X):
            return np.zeros(len(X))

    with pytest.raises(ISDEError, match="Silent has no method 'sample'"):
        fit_blocks(rows, [(0, 1, 2)], Silent("zero")).sample(1)


# --- which family is meant -------------------------------------------------------------------------------------


def test_an_unknown_marginal_is_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match=r"marginal='spline' is unknown: use 'copula\+stack', 'copula', 'kde'"):
        resolve_marginal("spline")


@pytest.mark.parametrize("wrong", [3, None, object, [1, 2]])
def test_what_is_no_density_estimator_is_refused(wrong):
    with pytest.raises(TypeError, match=r"neither one of 'copula\+stack'"):
        resolve_marginal(wrong)


def test_one_fold_is_too_few():
    with pytest.raises(ValueError, match="cv=1 must be a whole number of at least 2 folds"):
        resolve_marginal("kde", cv=1)


@pytest.mark.parametrize(
    ("X_fit", "X_score", "complaint"),
    [
        (np.ones((3, 2)), np.ones((3, 1)), "X_fit has 2 columns, X_score has 1"),
        (np.ones(3), np.ones((3, 1)), "A table has two dimensions, and this array has one"),
        (np.ones((3, 1)), np.empty((0, 1)), "0 sample"),
        (np.array([[1.0], [np.nan]]), np.ones((3, 1)), "NaN or infinite .inf. values in 'x0'"),
    ],
)
def test_rows_that_cannot_be_scored_are_refused(X_fit, X_score, complaint):
    with pytest.raises(ValueError, match=complaint):
        score_subsets(X_fit, X_score, max_block_size=1)


def test_blocks_of_no_columns_are_refused(rows):
    with pytest.raises(ValueError, match="max_block_size=0"):
        score_subsets(rows[:60], rows[60:], max_block_size=0)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (6, 6), (9, 3)])
def test_factors_grown_column_by_column_give_the_same_scores_as_one_subset_at_a_time(rng, d, k):
    X = rng.normal(size=(60, d)) @ rng.normal(size=(d, d))
    if d == 6:  # a copy, a near copy and a constant column among them
        X[:, 5], X[:, 3], X[:30, 4] = X[:, 0], 2 * X[:, 1] + 1e-7 * X[:, 2], 1.0
    centred = X - X[:30].mean(axis=0)
    C, D = (part.T @ part / 30 for part in (centred[:30], centred[30:]))
    family = SubsetFamily(d, k)
    direct = [gaussian.direct_log_densities(C, D, family.members(size)) for size in range(1, k + 1)]
    found = gaussian.expected_log_densities(C, D, family)
    np.testing.assert_allclose(found, np.concatenate(direct), rtol=1e-9)
    assert (found == -np.inf).any() == (d == 6)
