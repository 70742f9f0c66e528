"""GM: scikit-learn's mixtures, and the search for the number of components."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold

from isde import GaussianMixtureCV
from isde.baselines.mixture import search_has_ended
from isde.errors import InputError, ISDEWarning
from isde.marginals.mixture import MixtureBlock
from oracles import ROUNDING, monte_carlo, shuffled


@pytest.fixture
def clusters(rng):
    """300 rows in three clusters of three shapes, in units of their own, in random order."""
    parts = [rng.normal(size=(100, 2)) * spread + centre for spread, centre in ((1, 0), (0.3, 6), ([2, 0.2], [-6, 6]))]
    return rng.permutation(np.concatenate(parts)) * [1.0, 100.0]


def rescaled(X):
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def test_the_search_is_scikit_learns(clusters):
    model = GaussianMixtureCV(6, random_state=0).fit(clusters)
    grid = GridSearchCV(GaussianMixture(random_state=0), {"n_components": range(1, 7)}, cv=KFold(5), refit=False)
    grid.fit(shuffled(rescaled(clusters)))
    shift = -np.log(np.ptp(clusters, axis=0)).sum()
    assert model.n_components_ == model.path_.best == grid.best_params_["n_components"] == 3
    np.testing.assert_allclose(model.path_.scores, grid.cv_results_["mean_test_score"] + shift, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(
        model.path_.errors * np.sqrt(5) * np.sqrt(4 / 5), grid.cv_results_["std_test_score"], rtol=1e-9
    )
    best = GaussianMixture(3, random_state=0).fit(rescaled(clusters))
    np.testing.assert_allclose(
        model.score_samples(clusters), best.score_samples(rescaled(clusters)) + shift, rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(model.weights_, best.weights_)


def test_sorted_rows_do_no_harm(clusters):
    in_order = clusters[np.argsort(clusters[:, 0])]
    model, expected = (GaussianMixtureCV(6, random_state=0).fit(X) for X in (in_order, clusters))
    assert model.n_components_ == expected.n_components_ == 3
    np.testing.assert_allclose(model.path_.scores[2], expected.path_.scores[2], atol=0.1)  # nats per row
    # Folds in the order of the rows would be scored by mixtures that have hardly seen their cluster.
    grid = GridSearchCV(GaussianMixture(random_state=0), {"n_components": [3]}, cv=KFold(5), refit=False)
    shift = -np.log(np.ptp(clusters, axis=0)).sum()
    assert grid.fit(rescaled(in_order)).best_score_ + shift < model.path_.scores[2] - 3


def test_bic_is_scikit_learns(clusters):
    model = GaussianMixtureCV(6, criterion="bic", random_state=0).fit(clusters)
    U = rescaled(clusters)
    bics = [GaussianMixture(k, random_state=0).fit(U).bic(U) for k in range(1, 7)]
    assert model.n_components_ == 1 + int(np.argmin(bics)) == 3
    shift = -np.log(np.ptp(clusters, axis=0)).sum()
    np.testing.assert_allclose(model.path_.scores, -np.array(bics) / 600 + shift, rtol=0, atol=ROUNDING)
    assert np.isnan(model.path_.errors).all()


def test_the_mixture_is_in_the_units_of_the_data(clusters):
    model = GaussianMixtureCV(4, random_state=0).fit(clusters)
    parts = zip(model.weights_, model.means_, model.covariances_, strict=True)
    density = sum(w * multivariate_normal(mean, covariance).pdf(clusters) for w, mean, covariance in parts)
    np.testing.assert_allclose(model.score_samples(clusters), np.log(density), rtol=0, atol=1e-7)
    assert sorted(np.round(model.means_[:, 1] / 100)) == [0, 6, 6]


def test_the_search_ends_early_with_the_answer_of_the_whole(clusters, monkeypatch):
    early = GaussianMixtureCV(12, random_state=0).fit(clusters)
    with monkeypatch.context() as many_workers:
        many_workers.setattr("isde.baselines.mixture.effective_n_jobs", lambda _: 20)
        batched = GaussianMixtureCV(12, random_state=0).fit(clusters)
    np.testing.assert_array_equal(batched.path_.scores, early.path_.scores)
    monkeypatch.setattr("isde.baselines.mixture.search_has_ended", lambda _: False)
    whole = GaussianMixtureCV(12, random_state=0).fit(clusters)
    n = len(early.path_.scores)
    assert 8 <= n < 12 == len(whole.path_.scores)
    assert early.n_components_ == whole.n_components_ == 3
    np.testing.assert_array_equal(early.path_.scores, whole.path_.scores[:n])
    np.testing.assert_array_equal(early.path_.n_components, np.arange(1, n + 1))


def test_five_clearly_worse_sizes_in_a_row_end_the_search():
    rng = np.random.default_rng(0)
    folds = rng.normal(size=5)  # folds differ much, sizes little: only paired differences can tell
    worse = np.stack([folds - 1 - 0.01 * i + 0.01 * rng.normal(size=5) for i in range(5)])
    table = np.vstack([folds - 1, folds, worse])
    assert search_has_ended(table)
    assert not search_has_ended(table[:-1])
    assert not search_has_ended(np.vstack([table[:-1], folds - 0.001 + 0.01 * rng.normal(size=5)]))
    assert not search_has_ended(np.vstack([table, folds + 1]))
    assert search_has_ended(np.vstack([folds - 1, folds, np.full((5, 5), -np.inf)]))
    assert not search_has_ended(np.full((9, 5), -np.inf))


def test_no_more_components_than_rows_are_tried(rng):
    X = rng.normal(size=(8, 1))
    model = GaussianMixtureCV(30, cv=4, random_state=0).fit(X)
    assert len(model.path_.scores) <= 6


def test_a_mixture_that_did_not_converge_gets_one_warning_with_the_remedy(clusters):
    with pytest.warns(ISDEWarning, match="within max_iter=1 steps for the . components chosen: raise max_iter") as seen:
        model = GaussianMixtureCV(3, max_iter=1, random_state=0).fit(clusters)
    assert len(seen) == 1
    assert not model.path_.converged.all()


def test_fewer_rows_than_folds_get_a_warning(rng):
    with pytest.warns(ISDEWarning, match="Only 5 rows to fit on, and cv=7"):
        GaussianMixtureCV(1, cv=7, random_state=0).fit(rng.normal(size=(5, 1)))


def test_a_covariance_that_cannot_be_fitted_is_refused_in_a_sentence(rng):
    X = rng.normal(size=(50, 2)) * 1e12  # without rescaling, 1e-6 on the diagonal is nothing
    with pytest.raises(InputError, match="No mixture can be fitted to 50 rows of 3 columns"):
        GaussianMixtureCV(2, scale=None, random_state=0).fit(np.column_stack([X, X[:, 0] + X[:, 1]]))


def test_components_are_drawn_by_their_weight():
    covariances = np.stack([np.diag([1.0, 4.0]), np.array([[1.0, 0.9], [0.9, 1.0]])])
    block = MixtureBlock(np.array([0.9, 0.1]), np.array([[0.0, 0.0], [100.0, 50.0]]), covariances)
    n = 20_000
    rows = block.sample(n, np.random.RandomState(0))
    second = rows[:, 0] > 50
    assert second.mean() == pytest.approx(0.1, abs=monte_carlo(n) * 0.3)
    np.testing.assert_allclose(rows[second].mean(axis=0), [100, 50], rtol=0, atol=monte_carlo(second.sum()))
    np.testing.assert_allclose(np.cov(rows[second], rowvar=False), covariances[1], rtol=0, atol=0.15)
    np.testing.assert_allclose(np.cov(rows[~second], rowvar=False), covariances[0], rtol=0, atol=0.25)
    assert 0.05 < np.corrcoef(second[:-1], second[1:])[0, 1] + 0.1 < 0.15  # in no order


def test_the_seed_decides(clusters):
    one, same = (GaussianMixtureCV(3, random_state=np.random.RandomState(5)).fit(clusters) for _ in range(2))
    np.testing.assert_array_equal(one.score_samples(clusters), same.score_samples(clusters))


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.array([1.0])},
        {"weights": np.array([1.5, -0.5])},
        {"means": np.full((2, 3), np.inf)},
        {"covariances": np.ones((2, 3, 2))},
        {"covariances": np.ones((2, 3, 3))},
        {"covariances": np.stack([np.eye(3) + np.eye(3, k=1) / 2] * 2)},
        {"weights": np.array([2.5, 2.5])},
        {"weights": np.array([0.5, 0.6])},
    ],
)
def test_arrays_that_are_no_mixture_are_refused(change):
    arrays = {"weights": np.array([0.5, 0.5]), "means": np.zeros((2, 3)), "covariances": np.stack([np.eye(3)] * 2)}
    assert MixtureBlock.from_arrays(arrays).n_columns == 3
    with pytest.raises(ValueError, match=r"must hold|has the shape|add up to"):
        MixtureBlock.from_arrays(arrays | change)
