"""ISDE: the scikit-learn contract, the laws of the whole algorithm, and what it says to bad input."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from isde import ISDE, SubsetScores, score_subsets, select_partition
from isde.data.table import Table
from isde.errors import InputError, ISDEWarning
from isde.synthetic import make_block_gaussian, make_structured
from oracles import ROUNDING, SINGLE_PRECISION


@pytest.mark.filterwarnings("ignore::isde.errors.ISDEWarning")
@parametrize_with_checks([ISDE(), ISDE(marginal="gaussian")])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture
def pairs():
    """300 Gaussian rows in units of their own: columns 0 and 1 together, 2 and 3 together, 4 alone."""
    X, truth = make_block_gaussian([2, 2, 1], 300, sigma=0.8, random_state=0)
    return X * [1.0, 20.0, 1e-3, 5.0, 300.0] + [0.0, 7.0, 1.0, -50.0, 1000.0], truth


def gaussian(k=3, **params):
    return ISDE(k, marginal="gaussian", random_state=0, **params)


class Unscored(BaseEstimator):
    """A Gaussian that refuses to be fitted on fewer rows than all: on those that score subsets."""

    def __init__(self, n_rows=0):
        self.n_rows = n_rows

    def fit(self, X, y=None):
        if len(X) < self.n_rows:
            raise AssertionError("a subset was scored")
        self.mean_, self.spread_ = X.mean(axis=0), X.std(axis=0)
        return self

    def score_samples(self, X):
        return (-(((X - self.mean_) / self.spread_) ** 2) / 2 - np.log(self.spread_)).sum(axis=1)


# --- the algorithm ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", [[2, 1], [3, 1], [2, 2]], ids=str)
def test_the_true_partition_is_recovered_with_kernels(structure):
    X, truth = make_structured(structure, 500, random_state=0)
    assert ISDE(4, random_state=0).fit(X).partition_ == truth


def test_the_true_partition_is_recovered_with_gaussians(pairs):
    X, truth = pairs
    assert gaussian().fit(X).partition_ == truth


def test_fit_is_the_algorithm_box(rows):
    """Split, score on the rescaled rows, select, refit the blocks on all rows."""
    X = rows * [3.0, 0.5, 10.0] + [1.0, 2.0, 3.0]
    model = ISDE(3, marginal="kde", split="paper", random_state=5).fit(X)
    U = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    ((fit, score),) = ShuffleSplit(1, train_size=0.5, random_state=5).split(U)
    table = score_subsets(U[fit], U[score], max_block_size=3).shifted(-np.log(np.ptp(X, axis=0)))
    np.testing.assert_allclose(model.subset_scores_.scores, table.scores, rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(model.subset_scores_.bandwidths, table.bandwidths)
    assert model.selection_.partition == select_partition(table).partition == model.partition_
    assert model.density_.partition == model.partition_
    assert model.density_.blocks[0].centres.shape[0] == len(X)


def test_scores_in_the_table_are_in_the_units_of_the_data(rows):
    model = gaussian(scale="minmax").fit(rows * 1000)
    plain = gaussian(scale=None).fit(rows * 1000)
    np.testing.assert_allclose(model.subset_scores_.scores, plain.subset_scores_.scores, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
def test_multiplying_a_column_by_ten_shifts_the_score_by_exactly_minus_log_ten(pairs, marginal):
    X, _ = pairs
    factors = np.array([1.0, 10.0, 1.0, 1.0, 1.0])
    model = ISDE(2, marginal=marginal, random_state=0)
    here, there = clone(model).fit(X), clone(model).fit(X * factors)
    assert there.partition_ == here.partition_
    np.testing.assert_allclose(
        there.score_samples(X * factors), here.score_samples(X) - np.log(10), rtol=0, atol=ROUNDING
    )
    assert there.score(X * factors) == pytest.approx(here.score(X) - np.log(10), abs=ROUNDING)
    assert there.selection_.score == pytest.approx(here.selection_.score - np.log(10), abs=ROUNDING)


@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
def test_permuting_the_columns_permutes_the_partition_and_keeps_the_score(rows, marginal):
    order = [2, 0, 1]
    here = ISDE(3, marginal=marginal, random_state=0).fit(rows)
    there = ISDE(3, marginal=marginal, random_state=0).fit(rows[:, order])
    assert there.partition_ == tuple(sorted(tuple(sorted(order.index(c) for c in b)) for b in here.partition_))
    assert there.selection_.score == pytest.approx(here.selection_.score, abs=SINGLE_PRECISION)
    np.testing.assert_allclose(there.score_samples(rows[:, order]), here.score_samples(rows), rtol=0, atol=ROUNDING)


def test_shifting_a_column_changes_nothing(rows):
    here, there = (ISDE(3, random_state=0).fit(rows + shift) for shift in (0.0, 64.0))
    assert there.partition_ == here.partition_
    np.testing.assert_allclose(
        there.score_samples(rows + 64.0), here.score_samples(rows), rtol=0, atol=1e-7
    )  # digits lost


def test_a_larger_block_size_never_lowers_the_selected_score(pairs):
    X, _ = pairs
    table = gaussian(5).fit(X).subset_scores_
    scores = [select_partition(table, k).score for k in range(1, 6)]
    assert scores == sorted(scores)
    assert scores[0] < scores[1]


def test_a_block_size_beyond_the_columns_means_all_columns(rows):
    large, exact = gaussian(50).fit(rows), gaussian(3).fit(rows)
    assert large.partition_ == exact.partition_
    assert large.subset_scores_.max_block_size == 3
    np.testing.assert_array_equal(large.score_samples(rows), exact.score_samples(rows))


def test_the_seed_draws_the_split(rows):
    one, same, other = (ISDE(3, marginal="gaussian", random_state=seed).fit(rows).subset_scores_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.scores, same.scores)
    assert (one.scores != other.scores).all()


def test_score_is_the_mean_and_the_blocks_add_up(rows):
    model = ISDE(3, random_state=0).fit(rows)
    assert model.score(rows) == pytest.approx(model.score_samples(rows).mean(), abs=ROUNDING)
    assert model.score_blocks(rows).shape == (120, len(model.partition_))
    np.testing.assert_allclose(model.score_blocks(rows).sum(axis=1), model.score_samples(rows), rtol=0, atol=ROUNDING)


def test_one_column_is_one_block(rows):
    model = ISDE(random_state=0).fit(rows[:, [0]])
    assert model.partition_ == ((0,),)
    assert model.block_names_ == (("x0",),)


def test_the_result_does_not_depend_on_the_number_of_workers(rows):
    one, two = (ISDE(3, n_jobs=n_jobs, random_state=0).fit(rows) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.subset_scores_.scores, two.subset_scores_.scores)
    np.testing.assert_array_equal(one.score_samples(rows), two.score_samples(rows))


# --- splits ----------------------------------------------------------------------------------------------------


def test_a_share_says_how_many_rows_fit(rows):
    model = gaussian(split=0.25).fit(rows)
    splitter = ShuffleSplit(1, train_size=0.25, random_state=0)
    explicit = gaussian(split=splitter).fit(rows)
    np.testing.assert_array_equal(model.subset_scores_.scores, explicit.subset_scores_.scores)
    ((fit, score),) = splitter.split(rows)
    assert (len(fit), len(score)) == (30, 90)
    assert np.isnan(model.subset_scores_.errors).all()


@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
def test_several_splits_give_mean_scores_median_bandwidths_and_errors(rows, marginal):
    model = ISDE(2, marginal=marginal, split=KFold(3), scale=None).fit(rows[:, [0, 2]])
    tables = [
        score_subsets(
            rows[oracles.shuffled(fit)][:, [0, 2]], rows[score][:, [0, 2]], max_block_size=2, marginal=marginal
        )
        for fit, score in KFold(3).split(rows)
    ]
    scores = np.array([table.scores for table in tables])
    found = model.subset_scores_
    np.testing.assert_allclose(found.scores, scores.mean(axis=0), rtol=0, atol=ROUNDING)
    expected = scores.std(axis=0, ddof=1) * np.sqrt(1 / 3)  # no row is scored twice
    np.testing.assert_allclose(found.errors, expected, rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(found.bandwidths, np.median([table.bandwidths for table in tables], axis=0))
    assert (found.errors > 0).all()


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 1.5])
def test_a_share_lies_between_zero_and_one(rows, share):
    with pytest.raises(ValueError, match=f"split={share}"):
        gaussian(split=share).fit(rows)


def test_what_is_no_split_is_refused(rows):
    with pytest.raises(ValueError, match="split='half' is unknown: use 'structure', 'density', 'paper'"):
        gaussian(split="half").fit(rows)
    with pytest.raises(TypeError, match="split=3 is neither"):
        gaussian(split=3).fit(rows)


# --- from a table of scores ------------------------------------------------------------------------------------


def test_with_scores_given_nothing_is_scored_again(rows):
    marginal = Unscored(len(rows))
    with pytest.raises(Exception, match="a subset was scored"):
        ISDE(marginal=marginal).fit(rows)
    scores = gaussian().fit(rows).subset_scores_
    model = ISDE(marginal=marginal).fit(rows, subset_scores=scores)
    assert model.selection_.partition == select_partition(scores).partition
    assert model.subset_scores_.scores.tolist() == scores.scores.tolist()


def test_a_model_from_scores_equals_the_model_that_made_them(rows):
    model = ISDE(3, random_state=0).fit(rows)
    again = ISDE(3, random_state=1).fit(rows, subset_scores=model.subset_scores_)
    assert again.selection_ == model.selection_
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))


def test_scores_given_are_restricted_to_the_block_size(pairs):
    X, _ = pairs
    scores = gaussian(4).fit(X).subset_scores_
    model = gaussian(1).fit(X, subset_scores=scores)
    assert model.partition_ == ((0,), (1,), (2,), (3,), (4,))
    assert model.subset_scores_.max_block_size == 1


def test_scores_of_other_columns_are_refused(rows):
    scores = SubsetScores.from_dict({(0,): 1.0, (1,): 1.0})
    with pytest.raises(ValueError, match="table has 2 columns, X has 3"):
        gaussian().fit(rows, subset_scores=scores)


def test_a_table_of_smaller_subsets_than_asked_for_is_refused(rows):
    table = gaussian(2).fit(rows).subset_scores_
    with pytest.raises(
        ValueError, match="max_block_size=3 but the table has subsets of at most 2 columns: score again"
    ):
        gaussian(3).fit(rows, subset_scores=table)


def test_a_table_of_other_names_is_refused_and_one_without_names_is_not(rows):
    frames = [pd.DataFrame(rows, columns=names) for names in (["a", "b", "c"], ["a", "b", "z"])]
    named, unnamed = gaussian().fit(frames[0]).subset_scores_, gaussian().fit(rows).subset_scores_
    with pytest.raises(ValueError, match=r"table has the columns \['a', 'b', 'c'\], X has \['a', 'b', 'z'\]"):
        gaussian().fit(frames[1], subset_scores=named)
    partitions = {
        gaussian().fit(X, subset_scores=table).partition_ for X, table in ((frames[1], unnamed), (rows, named))
    }
    assert len(partitions) == 1


# --- scikit-learn around it ------------------------------------------------------------------------------------


def test_grid_search_over_the_block_size_prefers_the_true_one(pairs):
    X, truth = pairs
    search = GridSearchCV(gaussian(), {"max_block_size": [1, 3]}, cv=3).fit(X)
    assert search.best_params_ == {"max_block_size": 3}
    assert search.best_estimator_.partition_ == truth
    assert search.best_score_ == search.cv_results_["mean_test_score"][1] > search.cv_results_["mean_test_score"][0]


def test_cross_validation_scores_are_mean_log_densities(rows):
    scores = cross_val_score(gaussian(), rows, cv=KFold(3))
    by_hand = [gaussian().fit(rows[fit]).score(rows[held_out]) for fit, held_out in KFold(3).split(rows)]
    np.testing.assert_allclose(scores, by_hand, rtol=0, atol=ROUNDING)


def test_cloning_keeps_every_parameter():
    params = {
        "max_block_size": 2,
        "marginal": "gaussian",
        "split": 0.3,
        "penalty": None,
        "alpha": None,
        "bandwidths": [0.1],
        "cv": 3,
        "max_split_rows": 500,
        "scale": None,
        "max_fit_rows": 900,
        "max_centres": None,
        "solver": "milp",
        "search": "exhaustive",
        "n_jobs": 2,
        "random_state": 7,
        "checkpoint": "run/",
        "verbose": 0,
    }
    model = ISDE(**params)
    assert model.get_params() == params
    assert clone(model).get_params() == params
    assert ISDE().set_params(**params).get_params() == params


def test_fitting_changes_no_parameter(rows):
    grid = [0.3, 0.1, 0.2]
    model = ISDE(9, bandwidths=grid, random_state=0).fit(rows)
    assert model.get_params() == ISDE(9, bandwidths=[0.3, 0.1, 0.2], random_state=0).get_params()
    assert grid == [0.3, 0.1, 0.2]


@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
def test_a_pickled_model_gives_equal_scores(rows, marginal):
    model = ISDE(3, marginal=marginal, random_state=0).fit(rows)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_blocks(rows), model.score_blocks(rows))
    assert again.selection_ == model.selection_


@pytest.mark.parametrize("method", ["score_samples", "score_blocks", "score"])
def test_an_unfitted_model_says_so(rows, method):
    with pytest.raises(NotFittedError):
        getattr(ISDE(), method)(rows)
    with pytest.raises(NotFittedError):
        ISDE().sample()


# --- frames ----------------------------------------------------------------------------------------------------

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "Table": lambda columns: Table(np.column_stack(list(columns.values())), tuple(columns)),
}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_keep_their_names_and_change_no_number(rows, library):
    frame = FRAMES[library]({"left": rows[:, 0], "right": rows[:, 1], "own way": rows[:, 2]})
    model, plain = gaussian().fit(frame), gaussian().fit(rows)
    names = ["left", "right", "own way"]
    assert model.feature_names_in_.tolist() == names
    assert model.subset_scores_.names == model.density_.names == tuple(names)
    assert model.block_names_ == tuple(tuple(names[c] for c in block) for block in model.partition_)
    np.testing.assert_array_equal(model.score_samples(frame), plain.score_samples(rows))


@pytest.mark.parametrize("library", FRAMES)
def test_columns_in_another_order_are_refused_when_scoring(rows, library):
    columns = {"a": rows[:, 0], "b": rows[:, 1], "c": rows[:, 2]}
    model = gaussian().fit(FRAMES[library](columns))
    with pytest.raises(ValueError, match=r"order|\['b', 'a', 'c'\]"):
        model.score_samples(FRAMES[library]({name: columns[name] for name in "bac"}))


def test_a_second_fit_forgets_the_names_of_the_first(rows):
    model = gaussian().fit(pd.DataFrame(rows, columns=["a", "b", "c"])).fit(rows)
    assert not hasattr(model, "feature_names_in_")
    assert model.density_.names == ("x0", "x1", "x2")


def test_integer_frames_are_numbers(rng):
    frame = pl.DataFrame({"a": rng.permutation(100), "b": rng.permutation(100)})
    assert gaussian().fit(frame).score_samples(frame).shape == (100,)


# --- warnings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", ["copula+stack", "gaussian"])
def test_a_block_that_would_take_another_column_gets_a_warning_with_the_gain_and_the_remedy(rng, marginal):
    common = rng.normal(size=(300, 1))
    X = np.column_stack([common + 0.5 * rng.normal(size=(300, 3)), rng.normal(size=300)])
    said = r"as large as max_block_size=2 allows, and 'x\d' would gain (\S+) nats .* try max_block_size=3\.$"
    with pytest.warns(ISDEWarning, match=said) as found:
        model = ISDE(2, marginal=marginal, random_state=0).fit(X)
    # What it gains by itself: the three columns, against the pair found and the third alone.
    table = ISDE(3, marginal=marginal, random_state=0).fit(X[:, :3]).subset_scores_
    (pair,) = (block for block in model.partition_ if len(block) == 2)
    gain = float(re.search(said, str(found[0].message)).group(1))
    assert gain == pytest.approx(table.gain((0, 1, 2)) - table.gain(pair), rel=0.3)


def test_a_block_as_large_as_allowed_gets_none_where_no_other_column_belongs_to_it(pairs):
    X, truth = pairs
    assert gaussian(2).fit(X).partition_ == truth


def test_smaller_blocks_and_whole_tables_get_no_warning(pairs):
    X, _ = pairs
    gaussian(3).fit(X)  # warnings are errors here
    assert gaussian(2).fit(X[:, :2]).partition_ == ((0, 1),)
    gaussian(1).fit(X)


def test_a_tied_column_is_named_in_a_warning(rows):
    frame = pd.DataFrame(rows, columns=["a", "rounded", "c"])
    frame["rounded"] = frame["rounded"].round(1)
    with pytest.warns(ISDEWarning, match=r"Repeated values in 'rounded' \(9\d%\)"):
        gaussian().fit(frame)


def test_fewer_rows_than_folds_get_a_warning(rows):
    with pytest.warns(ISDEWarning, match="Only 3 rows to fit on, and cv=5"):
        ISDE(1, bandwidths=[0.2], split="paper", random_state=0).fit(rows[:6])


# --- bad input -------------------------------------------------------------------------------------------------


def test_missing_and_infinite_values_are_counted_by_column(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    frame.loc[[1, 5, 7], "b"] = np.nan
    frame.loc[2, "c"] = -np.inf
    with pytest.raises(InputError, match=r"'b' \(3\), 'c' \(1\) of 120 rows"):
        gaussian().fit(frame)
    model = gaussian().fit(rows)
    with pytest.raises(InputError, match=r"'x1' \(3\), 'x2' \(1\)"):
        model.score_samples(frame.to_numpy())


def test_missing_values_of_polars_and_pyarrow_are_missing(rows):
    columns = {"a": rows[:, 0], "b": [None, *rows[1:, 1]], "c": rows[:, 2]}
    for frame in (pl.DataFrame(columns), pa.table(columns)):
        with pytest.raises(InputError, match=r"'b' \(1\)"):
            gaussian().fit(frame)


def test_a_constant_column_is_named(rows):
    frame = pd.DataFrame(rows, columns=["a", "still", "c"])
    frame["still"] = 3.0
    with pytest.raises(InputError, match="'still' has the same value in every row"):
        gaussian().fit(frame)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    "values",
    [["x", "y"] * 60, [None, "y"] * 60, pd.date_range("2020-01-01", periods=120)],
    ids=["text", "gaps", "dates"],
)
def test_a_column_without_numbers_is_named(rows, library, values):
    frame = FRAMES[library]({"a": rows[:, 0], "label": values, "c": rows[:, 2]})
    with pytest.raises(InputError, match="'label' in the table holds no numbers"):
        gaussian().fit(frame)


def test_text_among_numbers_is_named_by_its_column(rows):
    frame = pd.DataFrame(rows, columns=["a", "mixed", "c"]).astype({"mixed": object})
    frame.loc[3, "mixed"] = "oops"
    with pytest.raises(InputError, match="'mixed'"):
        gaussian().fit(frame)


def test_two_columns_of_one_name_are_refused_by_it(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="'a'"):
        gaussian().fit(frame)


@pytest.mark.parametrize(
    ("params", "error", "complaint"),
    [
        ({"max_block_size": 0}, ValueError, "max_block_size=0 must be a whole number of at least 1"),
        ({"max_block_size": -2}, ValueError, "max_block_size=-2"),
        ({"max_block_size": 2.5}, ValueError, "max_block_size=2.5"),
        ({"max_block_size": "3"}, ValueError, "max_block_size='3'"),
        ({"marginal": "spline"}, ValueError, "marginal='spline' is unknown: use 'copula.stack', 'copula', 'kde'"),
        ({"marginal": 7}, TypeError, "marginal=7 is neither"),
        ({"solver": "greedy"}, ValueError, "solver='greedy' is unknown"),
        ({"scale": "log"}, ValueError, "scale='log' is unknown: use 'minmax', 'standard' or None"),
        ({"marginal": ISDE}, TypeError, r"marginal=ISDE is a class: pass an estimator made by it, such as ISDE\(\)"),
        ({"cv": 1}, ValueError, "cv=1 must be a whole number of at least 2"),
        ({"cv": 2.5}, ValueError, "cv=2.5 must be a whole number"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0 is no number of workers: give 1 or more"),
        ({"n_jobs": "all"}, ValueError, "n_jobs='all' is no number of workers"),
        ({"verbose": None}, ValueError, "verbose=None is no number: give 0"),
        ({"random_state": -1}, ValueError, "random_state=-1 is no seed: give a whole number from 0 to"),
        ({"random_state": np.random.default_rng(0)}, ValueError, r"random_state=Generator\(.*\) .*is no seed"),
        ({"checkpoint": 3}, TypeError, "checkpoint=3 is no folder: give its name"),
        ({"bandwidths": [0.1, -0.1]}, ValueError, "bandwidths must be positive"),
        ({"bandwidths": []}, ValueError, "bandwidths must be positive"),
    ],
)
def test_a_bad_parameter_is_refused_with_what_is_allowed(rows, params, error, complaint):
    with pytest.raises(error, match=complaint):
        ISDE(**params).fit(rows)


@pytest.mark.parametrize("params", [{"solver": "greedy"}, {"scale": "log"}])
def test_a_bad_parameter_is_refused_before_any_subset_is_scored(rows, params):
    with pytest.raises(ValueError, match="is unknown"):
        ISDE(marginal=Unscored(len(rows)), **params).fit(rows)


@pytest.mark.parametrize("n_rows", [0, 1, 3])
def test_too_few_rows_are_refused(rows, n_rows):
    with pytest.raises(ValueError, match=f"{n_rows} sample"):
        ISDE().fit(rows[:n_rows])


def test_other_columns_than_fitted_are_refused(rows):
    with pytest.raises(ValueError, match="2 features"):
        gaussian().fit(rows).score_samples(rows[:, :2])


def test_a_column_whose_range_is_not_a_number_is_refused_by_name(rows):
    rows[0, 1], rows[1, 1] = 1.7e308, -1.7e308
    with pytest.raises(ValueError, match="'x1'"):
        gaussian().fit(rows)


@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_columns_in_tiny_units_are_rescaled(rows, scale):
    tiny, plain = gaussian(scale=scale).fit(rows * 1e-200), gaussian(scale=scale).fit(rows)
    assert tiny.partition_ == plain.partition_
    assert tiny.score(rows * 1e-200) == pytest.approx(plain.score(rows) + 3 * 200 * np.log(10), rel=ROUNDING)
