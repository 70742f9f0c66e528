"""TreeISDE: the scikit-learn contract, the laws of the whole algorithm, and what it says to bad input."""

import json
import pickle
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

import isde
from isde import ISDE, SubsetScores, TreeISDE, fit_tree, select_partition, select_tree
from isde.errors import InputError, ISDEWarning
from isde.tree_density import TreeDensity
from isde.tree_estimator import margin_over_trees
from isde.trees import tree_of_cliques
from oracles import ROUNDING


@pytest.mark.filterwarnings("ignore::isde.errors.ISDEWarning")
@parametrize_with_checks([TreeISDE(), TreeISDE(marginal="gaussian")])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


CHAIN_AND_ONE = ((0, 1), (1, 2), (2, 3), (4,))


@pytest.fixture(scope="module", name="X")
def chain_and_one_alone():
    """400 rows in units of their own: four columns in a chain, and one that is alone."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(400, 4)).cumsum(axis=1), rng.normal(size=400)])
    return X * [1.0, 20.0, 1e-3, 5.0, 300.0] + [0.0, 7.0, 1.0, -50.0, 1000.0]


@pytest.fixture(scope="module", name="frame")
def named(X):
    return pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])


def gaussian(k=3, **params):
    return TreeISDE(k, marginal="gaussian", random_state=0, **params)


@pytest.fixture(scope="module", name="model")
def fitted(frame):
    return TreeISDE(3, random_state=0).fit(frame)


# --- the algorithm -----------------------------------------------------------------------------------------------


def test_the_default_allows_cliques_of_four():
    assert TreeISDE().max_block_size == 4


def test_a_chain_is_found_and_described(model):
    assert model.cliques_ == CHAIN_AND_ONE
    assert model.separators_ == ((1,), (2,))
    assert model.edges_ == ((0, 1), (1, 2), (2, 3))
    assert model.partition_ == ((0, 1, 2, 3), (4,))
    assert model.clique_names_ == (("a", "b"), ("b", "c"), ("c", "d"), ("e",))
    assert model.block_names_ == (("a", "b", "c", "d"), ("e",))
    assert model.selection_.is_optimal
    assert np.isnan(model.bandwidths_).all()
    assert [one.edge for one in model.edge_gains_] == list(model.edges_)


@pytest.mark.filterwarnings("ignore:.*as large as max_block_size")
def test_fit_is_score_select_and_the_density_of_the_tree(X):
    model = TreeISDE(3, marginal="kde", random_state=5).fit(X)
    table = ISDE(3, marginal="kde", random_state=5).fit(X).subset_scores_
    np.testing.assert_array_equal(model.subset_scores_.scores, table.scores)
    assert model.selection_ == select_tree(table)
    density = fit_tree(X, model.cliques_, "kde")
    assert density.tree == model.density_.tree == model.selection_.tree
    np.testing.assert_array_equal(model.score_blocks(X), density.score_blocks(X))
    np.testing.assert_array_equal(model.sample(3, random_state=0), density.sample(3, random_state=0))


@pytest.mark.filterwarnings("ignore:.*as large as max_block_size")
def test_a_table_given_is_not_scored_again(X, model):
    table = ISDE(3, random_state=0).fit(X).subset_scores_
    again = TreeISDE(3).fit(X, subset_scores=table)
    assert again.cliques_ == CHAIN_AND_ONE
    assert again.subset_scores_.scores.tolist() == table.scores.tolist()
    with pytest.raises(ValueError, match="5 columns, X has 4"):
        TreeISDE(3).fit(X[:, :4], subset_scores=table)


def test_a_tree_is_never_worse_than_a_partition_or_a_forest(X):
    table = gaussian(4).fit(X).subset_scores_
    scores = [select_tree(table, k).objective for k in range(1, 5)]
    assert scores == sorted(scores)
    assert select_tree(table).objective >= select_partition(table.charged_by_edge()).objective


def test_score_is_the_mean_and_the_cliques_add_up(frame, model):
    parts = model.score_blocks(frame)
    assert parts.shape == (400, 4)
    np.testing.assert_allclose(parts.sum(axis=1), model.score_samples(frame), rtol=0, atol=ROUNDING)
    assert model.score(frame) == pytest.approx(model.score_samples(frame).mean(), abs=ROUNDING)


def test_multiplying_a_column_by_ten_shifts_the_score_by_exactly_minus_log_ten(X):
    factors = np.array([1.0, 10.0, 1.0, 1.0, 1.0])
    here, there = gaussian().fit(X), gaussian().fit(X * factors)
    assert there.cliques_ == here.cliques_
    np.testing.assert_allclose(there.score_samples(X * factors), here.score_samples(X) - np.log(10), atol=1e-7)
    assert there.selection_.score == pytest.approx(here.selection_.score - np.log(10), abs=ROUNDING)


def test_the_result_does_not_depend_on_the_number_of_workers(X):
    one, two = (TreeISDE(2, n_jobs=n_jobs, random_state=0).fit(X) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.subset_scores_.scores, two.subset_scores_.scores)
    np.testing.assert_array_equal(one.score_samples(X), two.score_samples(X))


def test_one_column_is_one_clique(X):
    model = TreeISDE(random_state=0).fit(X[:, [0]])
    assert (model.cliques_, model.separators_, model.edges_) == (((0,),), (), ())


def test_rows_drawn_score_like_the_data(frame, model):
    drawn = model.density_.score_samples(model.sample(2000, random_state=0))
    assert ks_2samp(drawn, model.score_samples(frame)).statistic < 0.12  # rows it was fitted on, and 400 of them


def test_rows_can_be_drawn_given_others(frame, model):
    given = np.tile([[30.0, 1.0]], (50, 1))
    drawn = model.density_.sample_given(["b", "c"], given, random_state=0)
    np.testing.assert_array_equal(drawn[:, [1, 2]], given)
    assert np.isfinite(model.score_samples(pd.DataFrame(drawn, columns=frame.columns))).all()


def test_tables_without_any_edge_are_columns_alone():
    X = np.random.default_rng(3).normal(size=(200, 3))
    model = TreeISDE(random_state=0).fit(X)
    assert model.cliques_ == ((0,), (1,), (2,))
    assert (model.edges_, model.edge_gains_) == ((), [])


# --- the contract ------------------------------------------------------------------------------------------------


def test_nothing_is_known_before_fit():
    model = TreeISDE()
    for name in ("cliques_", "separators_", "edges_", "edge_gains_", "clique_names_", "block_names_", "bandwidths_"):
        with pytest.raises(NotFittedError):
            getattr(model, name)


def test_it_can_be_cloned_and_pickled(frame, model):
    assert clone(model).get_params() == model.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).score_samples(frame), model.score_samples(frame))


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"max_block_size": 0}, "max_block_size=0"),
        ({"max_block_size": 2.5}, "max_block_size=2.5"),
        ({"solver": "exhaustive"}, "solver='exhaustive' is unknown: use 'auto'"),
        ({"marginal": "x"}, "marginal='x'"),
        ({"alpha": 2}, "alpha=2"),
        ({"scale": "log"}, "scale='log'"),
    ],
)
def test_parameters_that_do_not_exist_are_refused(X, params, complaint):
    with pytest.raises(ValueError, match=complaint):
        TreeISDE(**params).fit(X)


class Untouched(KernelDensity):
    """Raises when it is fitted."""

    def fit(self, X, y=None, sample_weight=None):
        raise AssertionError("a subset was scored")


@pytest.mark.parametrize("marginal", [Untouched(), ["gaussian", Untouched()]], ids=["alone", "in a list"])
def test_a_family_without_marginals_is_refused_by_name_before_anything_is_scored(X, marginal):
    with pytest.raises(InputError, match="isde knows none of Untouched"):
        TreeISDE(marginal=marginal).fit(X)


def test_other_columns_are_refused_by_name(frame, model):
    with pytest.raises(ValueError, match="feature names"):
        model.score_samples(frame[["b", "a", "c", "d", "e"]])


# --- warnings ----------------------------------------------------------------------------------------------------


def test_a_column_taken_off_again_and_again_is_noticed(X):
    """A star on a column whose own score is far too low: each separator takes it off once more."""
    scores = {(c,): 0.0 for c in range(5)} | {(4,): -20.0}
    scores |= {(a, b): 0.0 for a in range(4) for b in range(a + 1, 5)}
    with pytest.warns(ISDEWarning, match="promises .* most likely 'x4'"):
        gaussian(2).fit(X, subset_scores=SubsetScores.from_dict(scores))


def test_a_clique_that_one_more_column_would_join_is_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    X[:, 3] += 3 * X[:, :3].sum(axis=1)  # which no clique of three can say
    with pytest.warns(ISDEWarning, match="as large as max_block_size=3 allows.*try max_block_size=4"):
        gaussian(3).fit(X)


def test_a_chain_needs_no_larger_cliques(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gaussian(2).fit(X)


def test_the_margin_over_trees_is_that_of_all_columns_over_the_best_smaller_tree():
    scores = {(0,): 0.0, (1,): 0.0, (2,): 0.0, (0, 1): 1.0, (0, 2): 0.5, (1, 2): 0.75, (0, 1, 2): 2.0}
    assert margin_over_trees(SubsetScores.from_dict(scores)) == pytest.approx(0.25)


def test_a_tree_that_is_not_proved_is_said_to_be_none(X, monkeypatch):
    from dataclasses import replace

    from isde import tree_estimator

    def unproved(scores, solver):
        found = select_tree(scores)
        return replace(found, bound=found.bound + 0.5)

    monkeypatch.setattr(tree_estimator, "select_tree", unproved)
    with pytest.warns(ISDEWarning, match=r"not proved to be the best: none is better by more than 0\.5 nats"):
        gaussian(2).fit(X)


# --- on disk -----------------------------------------------------------------------------------------------------


def test_a_saved_model_is_the_same_to_the_bit(frame, model, tmp_path):
    model.save(tmp_path / "tree.isde")
    again = isde.load(tmp_path / "tree.isde")
    assert isinstance(again, TreeISDE)
    assert isinstance(again.density_, TreeDensity)
    assert again.get_params() == model.get_params()
    assert again.selection_ == model.selection_
    assert again.selection_.proof == "proved"  # checked again
    assert (again.cliques_, again.partition_, again.clique_names_) == (
        model.cliques_,
        model.partition_,
        model.clique_names_,
    )
    np.testing.assert_array_equal(again.score_blocks(frame), model.score_blocks(frame))
    np.testing.assert_array_equal(again.sample(5, random_state=1), model.sample(5, random_state=1))
    np.testing.assert_array_equal(again.subset_scores_.scores, model.subset_scores_.scores)


def rewrite(path, change):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    top = json.loads(members["header.json"])
    change(top["content"])
    members["header.json"] = json.dumps(top).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("cliques", "complaint"),
    [
        ([[0, 1], [1, 2], [2, 3, 4]], "another one than that of the density"),
        ([[0, 1], [1, 2], [2, 3], [0, 3], [4]], "damaged"),
        ([[0, 1], [1, 2], [2, 3]], "damaged"),
    ],
)
def test_a_file_whose_tree_is_not_that_of_its_density_is_refused(model, tmp_path, cliques, complaint):
    path = tmp_path / "tree.isde"
    model.save(path)
    rewrite(path, lambda content: content["selection"].update(cliques=cliques))
    with pytest.raises(InputError, match=complaint):
        isde.load(path)


def test_a_file_whose_tree_is_not_the_best_of_its_scores_is_refused(X, tmp_path):
    model, path = gaussian(2).fit(X), tmp_path / "tree.isde"
    other = tree_of_cliques(5, [(0, 1), (1, 2), (3,), (4,)])
    model.density_ = fit_tree(X, other.cliques, "gaussian")
    model.save(path)
    rewrite(path, lambda content: content["selection"].update(cliques=[list(c) for c in other.cliques]))
    with pytest.raises(InputError, match="not the best of its scores"):
        isde.load(path)


# --- stability ---------------------------------------------------------------------------------------------------


def test_stability_counts_edges_and_cliques_of_parts(X):
    model = gaussian(3).fit(X)
    found = model.stability(X, 6, n_null=5, random_state=0)
    assert found.tree == model.selection_.tree
    assert found.gains.shape == (6, len(model.edges_))
    for i, edge in enumerate(model.edges_):
        share = sum(share for tree, share in found.trees if edge in tree.edges)
        assert found.edge_confidence[i] == pytest.approx(share)
        assert found.together[edge] == found.together[edge[::-1]] == pytest.approx(share)
    assert (np.diag(found.together) == 1).all()
    assert sum(share for _, share in found.trees) == pytest.approx(1)
    true = [model.edges_.index(edge) for edge in ((0, 1), (1, 2), (2, 3))]
    assert (found.edge_confidence[true] == 1).all()
    assert (found.edge_p_values[true] == 1 / 6).all()
    assert "resamples return the same tree" in str(found)
    assert "rows without structure showed an edge in" in str(found)


def test_stability_follows_the_seed_and_refuses_what_cannot_be(X):
    model = gaussian(2).fit(X)
    one, same = (model.stability(X, 3, n_null=0, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(one.gains, same.gains)
    assert np.isnan(one.edge_p_values).all()
    with pytest.raises(ValueError, match="n=1"):
        model.stability(X, 1)
    with pytest.raises(ValueError, match=r"share=1\.0"):
        model.stability(X, 2, share=1.0)
