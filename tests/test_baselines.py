"""The other estimators of the paper: one contract, the laws of a density, and ISDE's sentences for bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import isde
from isde import CVKDE, BlockDiagonalGaussian, EmpiricalGaussian, ForestDensity, GaussianMixtureCV
from isde.archive import write_archive
from isde.data.table import Table
from isde.errors import InputError, ISDEWarning
from oracles import ROUNDING, monte_carlo

BASELINES = {
    "CVKDE": CVKDE(),
    "ForestDensity": ForestDensity(random_state=0),
    "ForestDensity, the paper's product": ForestDensity(normalize=False, random_state=0),
    "ForestDensity, plug-in": ForestDensity(bandwidths="plug-in", random_state=0),
    "GaussianMixtureCV": GaussianMixtureCV(3, random_state=0),
    "GaussianMixtureCV, bic": GaussianMixtureCV(3, criterion="bic", random_state=0),
    "BlockDiagonalGaussian": BlockDiagonalGaussian(),
    "BlockDiagonalGaussian, correlation": BlockDiagonalGaussian(threshold_on="correlation"),
    "EmpiricalGaussian": EmpiricalGaussian(),
}
TRUE_DENSITIES = [name for name in BASELINES if "product" not in name]
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "Table": lambda columns: Table(np.column_stack(list(columns.values())), tuple(columns)),
}

every_baseline = pytest.mark.parametrize("name", BASELINES)


def baseline(name):
    return clone(BASELINES[name])


@pytest.fixture
def chain(rng):
    """300 rows in units of their own: three columns, each following the one before, and one alone."""
    a = rng.normal(size=300)
    b = a + 0.5 * rng.normal(size=300)
    c = -b + 0.7 * rng.normal(size=300)
    return np.column_stack([a, 20 * b + 7, 1e-3 * c, rng.normal(size=300) - 50])


@pytest.mark.filterwarnings("ignore::isde.errors.ISDEWarning")
@parametrize_with_checks(
    [
        CVKDE(),
        ForestDensity(),
        ForestDensity(normalize=False),
        ForestDensity(bandwidths="plug-in"),
        GaussianMixtureCV(2, cv=2),
        GaussianMixtureCV(2, criterion="bic"),
        BlockDiagonalGaussian(),
        BlockDiagonalGaussian(criterion="slope"),
        EmpiricalGaussian(),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# --- laws ------------------------------------------------------------------------------------------------------


@every_baseline
def test_score_is_the_mean_and_the_blocks_add_up(chain, name):
    model = baseline(name).fit(chain)
    log_density = model.score_samples(chain)
    assert log_density.shape == (300,)
    assert model.score(chain) == pytest.approx(log_density.mean(), abs=ROUNDING)
    blocks = model.score_blocks(chain)
    assert blocks.shape == (300, len(model.block_names_))
    np.testing.assert_allclose(blocks.sum(axis=1), log_density, rtol=0, atol=ROUNDING)


@every_baseline
def test_multiplying_a_column_by_ten_shifts_the_score_by_exactly_minus_log_ten(chain, name):
    factors = np.array([1.0, 10.0, 1.0, 1.0])
    here, there = baseline(name).fit(chain), baseline(name).fit(chain * factors)
    np.testing.assert_allclose(
        there.score_samples(chain * factors), here.score_samples(chain) - np.log(10), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("name", TRUE_DENSITIES)
@pytest.mark.parametrize("scale", ["minmax", "standard", None])
def test_rows_drawn_follow_the_density_and_the_density_integrates_to_one(chain, name, scale):
    """For a known density q the mean of q(x) / f(x) over draws from f is the integral of q: one.

    A density that does not integrate to one, rows drawn from another one, or a forgotten Jacobian all miss it.
    """
    X = chain[:, :3] * [1.0, 0.05, 1e3]
    n = 20_000
    model = baseline(name).set_params(scale=scale).fit(X)
    drawn = model.sample(n, random_state=1)
    assert drawn.shape == (n, 3)
    narrow = multivariate_normal(X.mean(axis=0), 0.4 * np.cov(X, rowvar=False))
    ratios = np.exp(narrow.logpdf(drawn) - model.score_samples(drawn))
    assert ratios.mean() == pytest.approx(1, abs=monte_carlo(n) * ratios.std())
    assert ratios.std() < 5
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), rtol=0, atol=0.15)


@every_baseline
def test_the_same_seed_draws_the_same_rows(chain, name):
    model = baseline(name).fit(chain)
    np.testing.assert_array_equal(model.sample(7, random_state=3), model.sample(7, random_state=3))
    assert (model.sample(7, random_state=3) != model.sample(7, random_state=4)).all()
    with pytest.raises(ValueError, match="n_samples=0"):
        model.sample(0)


@every_baseline
def test_rows_however_far_have_a_finite_log_density(chain, name):
    model = baseline(name).fit(chain)
    for distance in (1e3, 1e100, 1e300):
        assert np.isfinite(model.score_samples(chain[:2] + distance)).all()


@every_baseline
def test_fitting_changes_no_parameter_and_unfitted_models_say_so(chain, name):
    model = baseline(name)
    params = model.get_params()
    with pytest.raises(NotFittedError):
        model.sample()
    with pytest.raises(NotFittedError):
        model.score_samples(chain)
    assert model.fit(chain).get_params() == params


@pytest.mark.parametrize("name", ["CVKDE", "ForestDensity", "GaussianMixtureCV"])
def test_the_result_does_not_depend_on_the_number_of_workers(chain, name):
    one, two = (baseline(name).set_params(n_jobs=n_jobs).fit(chain) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.score_samples(chain), two.score_samples(chain))


@every_baseline
def test_one_column_is_enough(chain, name):
    model = baseline(name).fit(chain[:, [0]])
    assert model.block_names_ == (("x0",),)
    grid = np.linspace(-12, 12, 4001)[:, None]
    assert np.exp(model.score_samples(grid)).sum() * (grid[1] - grid[0])[0] == pytest.approx(1, abs=1e-6)


# --- names and files -------------------------------------------------------------------------------------------


@every_baseline
@pytest.mark.parametrize("library", FRAMES)
def test_frames_keep_their_names_and_change_no_number(chain, name, library):
    names = ["left", "right", "own way", "alone"]
    frame = FRAMES[library](dict(zip(names, chain.T, strict=True)))
    model = baseline(name).fit(frame)
    assert model.feature_names_in_.tolist() == names
    assert sorted(n for block in model.block_names_ for n in block) == sorted(names)
    np.testing.assert_array_equal(model.score_samples(frame), baseline(name).fit(chain).score_samples(chain))
    swapped = FRAMES[library](dict(zip([names[1], names[0], *names[2:]], chain.T, strict=True)))
    with pytest.raises(ValueError, match=r"order|\['right', 'left'"):
        model.score_samples(swapped)


@every_baseline
@pytest.mark.parametrize("named", [False, True])
def test_a_loaded_model_equals_the_saved_one(tmp_path, chain, name, named):
    X = pd.DataFrame(chain, columns=["ä", "b c", "d", "e"]) if named else chain
    model = baseline(name).fit(X)
    model.save(tmp_path / "model.isde")
    loaded = isde.load(tmp_path / "model.isde")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert loaded.block_names_ == model.block_names_
    assert hasattr(loaded, "feature_names_in_") == named
    np.testing.assert_array_equal(loaded.score_blocks(X), model.score_blocks(X))
    np.testing.assert_array_equal(loaded.sample(5, random_state=1), model.sample(5, random_state=1))
    for attribute in ("edges_", "forest_", "partition_", "bandwidth_", "n_components_"):
        if hasattr(model, attribute):
            assert getattr(loaded, attribute) == getattr(model, attribute)
    for attribute in ("mean_", "covariance_", "weights_", "means_", "covariances_"):
        if hasattr(model, attribute):
            np.testing.assert_array_equal(getattr(loaded, attribute), getattr(model, attribute))
    if hasattr(model, "path_"):
        for field, value in vars(model.path_).items():
            np.testing.assert_array_equal(getattr(loaded.path_, field), value)
    assert loaded.fit(X).score(X) == model.score(X)


@every_baseline
def test_its_density_can_be_saved_alone(tmp_path, chain, name):
    model = baseline(name).fit(chain)
    model.density_.save(tmp_path / "density.isde")
    loaded = isde.load(tmp_path / "density.isde")
    np.testing.assert_array_equal(loaded.score_blocks(chain), model.score_blocks(chain))


def test_parameters_given_as_numpy_numbers_can_be_saved(tmp_path, chain):
    model = GaussianMixtureCV(np.int64(2), cv=np.int64(3), random_state=np.random.RandomState(0)).fit(chain)
    model.save(tmp_path / "model.isde")
    loaded = isde.load(tmp_path / "model.isde")
    assert (loaded.max_components, loaded.cv, loaded.random_state) == (2, 3, None)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ForestDensity", lambda header, arrays: arrays.update(edges=np.array([[0, 1], [0, 3]]))),
        ("ForestDensity", lambda header, arrays: arrays.update(edges=np.array([[0, 1], [1, 2], [0, 2]]))),
        ("ForestDensity", lambda header, arrays: header["scores"].update(n_columns=7)),
        ("BlockDiagonalGaussian", lambda header, arrays: header.update(penalty=1e9)),
        ("GaussianMixtureCV", lambda header, arrays: arrays.update({"path.scores": np.array([0.0, 1.0, 2.0])})),
        ("GaussianMixtureCV", lambda header, arrays: header["density"].update(names=["a"])),
        ("CVKDE", lambda header, arrays: header["params"].update(colour="red")),
    ],
)
def test_content_that_does_not_fit_together_is_refused(tmp_path, chain, name, change):
    header, arrays = baseline(name).fit(chain).to_archive()
    write_archive(tmp_path / "model.isde", BASELINES[name].archive_kind, header, arrays)
    isde.load(tmp_path / "model.isde")
    change(header, arrays)
    write_archive(tmp_path / "model.isde", BASELINES[name].archive_kind, header, arrays)
    with pytest.raises(InputError, match=r"model\.isde is damaged"):
        isde.load(tmp_path / "model.isde")


# --- bad input -------------------------------------------------------------------------------------------------


@every_baseline
def test_bad_tables_are_refused_in_the_words_of_isde(chain, name):
    frame = pd.DataFrame(chain, columns=["a", "b", "c", "d"])
    model = baseline(name)
    with pytest.raises(InputError, match="'b' has the same value in every row"):
        model.fit(frame.assign(b=3.0))
    with pytest.raises(InputError, match=r"'c' \(2\) of 300 rows"):
        model.fit(frame.assign(c=[np.nan, np.inf, *chain[2:, 2]]))
    with pytest.raises(InputError, match="'d' in the table holds no numbers"):
        model.fit(frame.assign(d="text"))
    with pytest.raises(ValueError, match="3 sample"):
        model.fit(chain[:3])
    with pytest.raises(ValueError, match="2 features"):
        model.fit(chain).score_samples(chain[:, :2])
    with pytest.warns(ISDEWarning, match=r"Repeated values in 'a' \(\d\d%\)"):
        model.fit(frame.assign(a=frame["a"].round(1)))


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (CVKDE(scale="log"), "scale='log' is unknown: use 'minmax', 'standard' or None"),
        (CVKDE(cv=1), "cv=1 must be a whole number of at least 2"),
        (CVKDE(bandwidths=[]), "bandwidths must be positive"),
        (ForestDensity(bandwidths="magic"), "bandwidths='magic' is unknown: use 'plug-in'"),
        (ForestDensity(bandwidths=[-1.0]), "bandwidths must be positive"),
        (ForestDensity(split=1.5), "split=1.5 must be a share"),
        (ForestDensity(scale="log"), "scale='log' is unknown"),
        (ForestDensity(cv=1), "cv=1 must be a whole number of at least 2"),
        (GaussianMixtureCV(0), "max_components=0 must be a whole number"),
        (GaussianMixtureCV(2.5), "max_components=2.5 must be a whole number"),
        (GaussianMixtureCV(max_iter=0), "max_iter=0 must be a whole number"),
        (GaussianMixtureCV(criterion="aic"), "criterion='aic' is unknown: use 'cv', 'bic'"),
        (GaussianMixtureCV(cv=1), "cv=1 must be at least 2"),
        (GaussianMixtureCV(scale="log"), "scale='log' is unknown"),
        (BlockDiagonalGaussian(criterion="bic"), "criterion='bic' is unknown: use 'jump', 'slope'"),
        (BlockDiagonalGaussian(threshold_on="rank"), "threshold_on='rank' is unknown"),
        (BlockDiagonalGaussian(scale="log"), "scale='log' is unknown"),
        (EmpiricalGaussian(scale="log"), "scale='log' is unknown"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_refused_with_what_is_allowed(chain, model, complaint):
    with pytest.raises(ValueError, match=complaint):
        model.fit(chain)


def test_a_column_that_others_determine_is_refused_by_a_full_covariance(chain):
    X = np.column_stack([chain, chain[:, 0] + chain[:, 3]])
    with pytest.raises(InputError, match="covariance of a block of 5 columns over 300 rows is singular"):
        EmpiricalGaussian().fit(X)


# --- CVKDE -----------------------------------------------------------------------------------------------------


def test_cvkde_is_one_block_of_all_columns(chain):
    model = CVKDE().fit(chain)
    whole = isde.fit_blocks(chain, [range(4)], "kde")
    assert model.bandwidth_ == whole.bandwidths[0]
    np.testing.assert_array_equal(model.score_samples(chain), whole.score_samples(chain))


def test_cvkde_takes_dozens_of_columns(rng):
    X = rng.normal(size=(200, 40))
    model = CVKDE().fit(X)
    assert 0.05 < model.bandwidth_ < 1
    assert np.isfinite(model.score(X))
