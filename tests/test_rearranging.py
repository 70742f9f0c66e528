"""Trees rearranged by stacks: scores against slow definitions, who judges, and what others see of it."""

import json
import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import isde
from isde import SubsetScores, TreeISDE, rearranging, select_partition, select_tree
from isde.archive import write_archive
from isde.cli import main
from isde.density import scaling_for
from isde.engine.mixtures import grow_mixtures
from isde.errors import InputError, ISDEWarning
from isde.inspection import block_gains, runners_up
from isde.inspection.gains import group_gains
from isde.inspection.sentences import notes
from isde.marginals import resolve_marginal
from isde.marginals.marginal import fit_shuffled
from isde.marginals.stack import SCORING_DOUBLINGS, SCORING_STEPS
from isde.normal_scores import normal_scores
from isde.rearranging import (
    BANDWIDTHS,
    EDGE_NATS,
    LEAST_ROWS,
    Rearrangement,
    _ByStacks,
    log_copula,
    rearranged,
    rearrangements_from_json,
)
from isde.splits import shuffled
from isde.subsets import SubsetFamily
from isde.tree_gains import edge_gains

SEED = 2

pytestmark = pytest.mark.filterwarnings("ignore::isde.errors.ISDEWarning")


def clusters(n_rows=2000, n_columns=7, n_clusters=15, seed=SEED, rows=1):
    """Gaussians of many widths: one bandwidth does not serve all of them."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(n_clusters))
    means = 2 * rng.normal(size=(n_clusters, n_columns))
    factors = rng.normal(size=(n_clusters, n_columns, n_columns)) / np.sqrt(n_columns)
    factors *= np.exp(rng.uniform(-2.5, 0.3, n_clusters))[:, None, None]
    rng = np.random.default_rng([seed, rows])
    own = rng.choice(n_clusters, n_rows, p=shares)
    return means[own] + np.einsum("nij,nj->ni", factors[own], rng.normal(size=(n_rows, n_columns)))


def chain(n_rows=3000, n_columns=5):
    return np.random.default_rng(1).normal(size=(n_rows, n_columns)).cumsum(axis=1)


def arranged(X, scores, taught=None):
    """With the densities of the default, found and judged as `TreeISDE` does; rows that these see are noted."""
    family = resolve_marginal("copula+stack")

    def fit(rows, cliques):
        if taught is not None:
            taught.append(rows)
        return fit_shuffled(family, rows, cliques, n_jobs=1)

    return rearranged(X, scores, select_tree, select_tree, fit, scaling_for(X, "minmax", family), n_jobs=1)


@pytest.fixture(scope="module", name="model")
def rearranged_model():
    return TreeISDE(3, random_state=0).fit(clusters())


# --- scores by stacks --------------------------------------------------------------------------------------------


def slow_log_copula(learn, choose, rows, weights):
    """By SciPy's densities, for the weights given."""
    mixtures = grow_mixtures(learn, SCORING_DOUBLINGS, SCORING_STEPS)
    experts = []
    for size in range(SCORING_DOUBLINGS + 1):
        parts = zip(*mixtures.components(size), strict=True)
        logs = [np.log(w) + multivariate_normal(mean, cov).logpdf(rows) for w, mean, cov in parts]
        experts.append(logsumexp(logs, axis=0))
    for h in BANDWIDTHS:
        experts.append(logsumexp([norm(c, h).logpdf(rows).sum(axis=1) for c in learn], axis=0) - np.log(len(learn)))
    independent = norm.logpdf(rows).sum(axis=1)
    return logsumexp([*experts, independent], b=weights[:, None], axis=0) - independent


def test_a_stack_is_what_its_experts_say_together(monkeypatch):
    Z, _ = normal_scores(clusters(900)[:, :3], np.empty((0, 3)))
    learn, choose, rows = np.split(Z, [400, 650])
    kept, choose_weights = [], rearranging.choose_weights

    def remembered(logs, prior):
        kept.append(choose_weights(logs, prior))
        return kept[-1]

    monkeypatch.setattr(rearranging, "choose_weights", remembered)
    for asked, given in ((choose, (learn, choose)), (rows, (learn, choose, rows))):
        found = log_copula(*given)
        np.testing.assert_allclose(found, slow_log_copula(learn, choose, asked, kept[-1]), rtol=1e-3, atol=2e-3)


def test_weights_make_the_most_of_the_rows_that_choose():
    learn, choose = np.split(normal_scores(clusters(900)[:, :2], np.empty((0, 2)))[0], 2)
    best = log_copula(learn, choose).mean()
    n_experts = SCORING_DOUBLINGS + 1 + len(BANDWIDTHS) + 1
    rng = np.random.default_rng(0)
    for weights in rng.dirichlet(np.full(n_experts, 0.3), 10):
        assert slow_log_copula(learn, choose, choose, weights).mean() < best + 1e-3


def test_a_gaussian_pair_gains_what_its_correlation_says():
    rng, rho = np.random.default_rng(0), 0.8
    X = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], 8000)
    learn, choose = np.split(normal_scores(X, np.empty((0, 2)))[0], 2)
    assert log_copula(learn, choose).mean() == pytest.approx(-0.5 * np.log(1 - rho**2), abs=0.03)


def test_independent_columns_gain_nothing_and_single_ones_are_zero():
    learn, choose = np.random.default_rng(0).normal(size=(2, 2000, 3))
    assert abs(log_copula(learn, choose).mean()) < 0.01
    np.testing.assert_array_equal(log_copula(learn[:, :1], choose[:, :1]), np.zeros(2000))


# --- the table ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="table")
def scored():
    return isde.ISDE(3, random_state=0).fit(chain(600, 6)).subset_scores_


@pytest.fixture(scope="module", name="stacks")
def by_stacks(table):
    return _ByStacks.of((0, 2, 3, 5), chain(600, 6), table, 1, 0)


def test_inside_a_component_gains_are_those_of_stacks(table, stacks):
    new = stacks.rescored(table)
    rows = (stacks.learn, stacks.choose)
    for subset, places in (((0, 3), [0, 2]), ((2, 3, 5), [1, 2, 3])):
        own = log_copula(*(np.ascontiguousarray(Z[:, places]) for Z in rows))
        assert new.gain(subset) == pytest.approx(own.mean(), abs=1e-12)
        at = new.subsets.index(subset)
        assert new.gain_errors[at] == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)))
        assert np.isnan(new.bandwidths[at])


def test_what_columns_outside_cost_does_not_fall(stacks):
    """Of four columns, three of them inside: edges to the fourth cost what they did."""
    table = isde.ISDE(4, random_state=0).fit(chain(600, 6)).subset_scores_
    before, after = (
        table.charged_by_edge(),
        replace(stacks, inside=SubsetFamily(4, 4), more=np.zeros(15), errors=np.zeros(15)).rescored(table),
    )
    at, inside = table.subsets.index((0, 1, 2, 3)), table.subsets.index((0, 2, 3))
    cost = [one.charges[at] - one.charges[inside] for one in (before, after.charged_by_edge())]
    assert cost[1] == pytest.approx(cost[0])


def test_what_columns_outside_add_stays_as_it_was(table, stacks):
    new = stacks.rescored(table)
    for inside, outside in (((0, 2), 1), ((3, 5), 4), ((0, 5), 4)):
        both = tuple(sorted((*inside, outside)))
        assert new.gain(both) - new.gain(inside) == pytest.approx(table.gain(both) - table.gain(inside), abs=1e-12)
        assert new.charges[new.subsets.index(both)] == table.charged_by_edge().charges[table.subsets.index(both)]
    for untouched in ((1, 4), (0, 1), (4, 5), (2,)):
        assert new[untouched] == table[untouched]


def test_an_edge_more_than_hold_a_component_together_is_paid_for(table, stacks):
    new, by_edge = stacks.rescored(table), table.charged_by_edge()
    for subset in combinations(stacks.component, 3):
        at, extra = new.subsets.index(subset), EDGE_NATS / len(stacks.choose)
        assert new.charges[at] == pytest.approx(by_edge.charges[at] + extra)
    for pair in combinations(stacks.component, 2):
        assert new.charges[new.subsets.index(pair)] == table.charges[table.subsets.index(pair)]


def test_scores_are_gains_and_what_columns_score_alone(table, stacks):
    new = stacks.rescored(table)
    alone = [new[column,] for column in range(6)]
    assert alone == [table[column,] for column in range(6)]
    for subset in ((0, 2), (2, 3, 5), (0, 1, 2)):
        assert new[subset] == pytest.approx(new.gain(subset) + sum(alone[c] for c in subset))


# --- who judges --------------------------------------------------------------------------------------------------


def misled(X, true_edges):
    """A table of dependence in which every pair of a chain but the true ones gains most."""
    d = X.shape[1]
    gains = {(c,): 0.0 for c in range(d)}
    gains |= {pair: 0.3 if pair in true_edges else 0.5 for pair in combinations(range(d), 2)}
    return SubsetScores.from_dict(gains)


def test_a_wrong_tree_is_put_right():
    X, true_edges = chain(), [(0, 1), (1, 2), (2, 3), (3, 4)]
    found = arranged(X, misled(X, true_edges))
    [one] = found.rearrangements
    assert list(found.selection.edges) == true_edges
    assert one.is_taken
    assert (one.columns, one.n_rows) == ((0, 1, 2, 3, 4), len(X) // 4)
    # Both chains are Gaussian: their difference has a closed form.
    assert one.gain == pytest.approx(gaussian_gain(X, true_edges, select_tree(misled(X, true_edges)).edges), abs=0.15)
    assert one.gain > 10 * one.error


def gaussian_gain(X, edges, others):
    squares = np.corrcoef(X.T) ** 2
    worth = [sum(-0.5 * np.log(1 - squares[edge]) for edge in some) for some in (edges, others)]
    return worth[0] - worth[1]


def test_a_right_tree_stays_with_its_table():
    scores = isde.ISDE(2, random_state=0).fit(chain()).subset_scores_
    found = arranged(chain(), scores)
    assert found.scores is scores
    assert found.selection == select_tree(scores)
    assert [one.is_taken for one in found.rearrangements] == [False]


def test_a_tree_that_is_not_surely_better_is_not_taken(monkeypatch):
    monkeypatch.setattr(rearranging, "SURE", np.inf)
    scores = misled(chain(), [])
    found = arranged(chain(), scores)
    assert found.scores is scores
    assert found.selection == select_tree(scores)
    [one] = found.rearrangements
    assert (one.is_taken, one.gain > 0) == (False, True)


def test_rows_that_judge_neither_teach_nor_choose():
    X, scores, taught = chain(), misled(chain(), [(0, 1)]), []
    judges = shuffled(len(X))[len(X) * 3 // 4 :]
    noise = X.copy()
    noise[judges] = np.random.default_rng(5).normal(size=(len(judges), X.shape[1]))
    for rows in (X, noise):
        arranged(rows, scores, taught=taught)
    scaling = scaling_for(X, "minmax", resolve_marginal("copula+stack"))
    seen = {row.tobytes() for row in np.concatenate(taught)}
    assert taught
    assert not seen & {row.tobytes() for row in scaling.transform(X[judges])}
    one, other = (_ByStacks.of((0, 1, 2, 3, 4), rows[shuffled(len(X))], scores, 1, 0) for rows in (X, noise))
    np.testing.assert_array_equal(one.more, other.more)
    np.testing.assert_array_equal(one.errors, other.errors)
    assert not (one.judge == other.judge).all()


def test_components_stay_even_where_stacks_would_join_or_part_them():
    """Two pairs of dependent columns in a table that sees one component of all four, or of none."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(3000, 2)), 2, axis=1) + 0.5 * rng.normal(size=(3000, 4))
    joined = SubsetScores.from_dict({(c,): 0.0 for c in range(4)} | dict.fromkeys(combinations(range(4), 2), 0.5))
    found = arranged(X, replace(joined, charges=np.where(joined.subsets.sizes == 2, 0.01, 0.0)))
    assert found.selection.components == ((0, 1, 2, 3),)
    assert found.rearrangements == (Rearrangement((0, 1, 2, 3), 0.0, 0.0, 750, is_taken=False),)


@pytest.mark.parametrize(
    ("rows", "largest", "bound"), [(LEAST_ROWS - 1, 2, None), (3000, 5, None), (3000, 1, None), (3000, 2, 14)]
)
def test_few_rows_cliques_of_all_columns_and_many_subsets_are_left_alone(rows, largest, bound, monkeypatch):
    if bound is not None:
        monkeypatch.setattr(rearranging, "MOST_SUBSETS", bound)  # of five columns there are 15 of at most two
    X = chain(rows)
    scores = misled(X, []) if largest == 2 else SubsetScores.from_dict(misled_of(largest))
    assert arranged(X, scores).rearrangements == ()


def misled_of(largest):
    return {subset: float(len(subset) - 1) for subset in SubsetFamily(5, largest)}


def test_a_table_with_subsets_that_have_no_density_is_left_alone():
    scores = misled(chain(), [])
    holes = scores.scores.copy()
    holes[-1] = -np.inf
    assert arranged(chain(), replace(scores, scores=holes)).rearrangements == ()


# --- the estimator -----------------------------------------------------------------------------------------------


def test_clusters_of_many_widths_are_rearranged(model):
    [one] = model.rearrangements_
    assert one.is_taken
    assert one.gain > rearranging.SURE * one.error > 0
    assert model.partition_ == (one.columns,) == (tuple(range(7)),)
    table = isde.ISDE(3, random_state=0).fit(clusters()).subset_scores_
    first = TreeISDE(3, random_state=0).fit(clusters(), subset_scores=table)
    assert first.rearrangements_ is None
    fresh = clusters(10_000, rows=2)
    assert model.cliques_ != first.cliques_
    assert model.score(fresh) > first.score(fresh)
    np.testing.assert_array_equal(model.subset_scores_.scores, table.scores)
    again = TreeISDE(3).fit(clusters(), subset_scores=model.selected_from_)
    assert again.cliques_ == model.cliques_
    assert first.selected_from_ is first.subset_scores_


def test_what_is_said_of_the_tree_is_by_the_table_it_is_best_by(model):
    table = model.selected_from_
    assert model.selection_.score == pytest.approx(sum(sign * table[t] for t, sign in model.selection_.tree.terms))
    assert (
        model.edge_gains_
        == edge_gains(table, model.selection_.tree)
        != edge_gains(model.subset_scores_, model.selection_.tree)
    )
    for gain in block_gains(model):
        assert gain.gain == table.gain(gain.columns)
    assert group_gains(model) == [pytest.approx(sum(sign * table.gain(t) for t, sign in model.selection_.tree.terms))]
    best = runners_up(model, 1)[0]
    assert best.below == pytest.approx(model.selection_.objective - select_partition(table).objective)


def test_the_same_bits_by_any_number_of_workers(model):
    other = TreeISDE(3, random_state=0, n_jobs=2).fit(clusters())
    assert other.rearrangements_ == model.rearrangements_
    np.testing.assert_array_equal(other.selected_from_.scores, model.selected_from_.scores)


def test_units_do_not_matter(model):
    other = TreeISDE(3, random_state=0).fit(clusters() * 2.0 ** np.arange(-30, 40, 10))
    assert other.rearrangements_ == model.rearrangements_
    np.testing.assert_array_equal(other.selected_from_.gains, model.selected_from_.gains)


def test_without_charges_the_table_has_the_last_word():
    assert TreeISDE(2, alpha=None, random_state=0).fit(chain(2100, 4)).rearrangements_ is None
    assert TreeISDE(2, marginal="gaussian", random_state=0).fit(chain(2100, 4)).rearrangements_ is None


def test_a_saved_model_remembers(model, tmp_path):
    model.save(tmp_path / "model.isde")
    loaded = isde.load(tmp_path / "model.isde")
    assert loaded.rearrangements_ == model.rearrangements_
    assert loaded.selection_.is_optimal
    np.testing.assert_array_equal(loaded.selected_from_.charges, model.selected_from_.charges)
    np.testing.assert_array_equal(loaded.subset_scores_.scores, model.subset_scores_.scores)


GOOD = {"columns": [0, 1, 2], "gain": 0.5, "error": 0.1, "n_rows": 500, "is_taken": True}


@pytest.mark.parametrize(
    "change",
    [
        {"columns": [0, 1]},
        {"columns": "012"},
        {"columns": [0, 1, 99]},
        {"gain": float("nan")},
        {"gain": "0.5"},
        {"error": -1.0},
        {"error": float("inf")},
        {"n_rows": -5},
        {"n_rows": 2.5},
        {"n_rows": 10**300},
        {"is_taken": "no"},
        {"more": 1},
    ],
)
def test_files_are_not_believed(change):
    components = ((0, 1, 2), (3,))
    assert rearrangements_from_json([GOOD], components) == (Rearrangement((0, 1, 2), 0.5, 0.1, 500, is_taken=True),)
    with pytest.raises((ValueError, TypeError)):
        rearrangements_from_json([GOOD | change], components)
    with pytest.raises(ValueError, match="twice"):
        rearrangements_from_json([GOOD, GOOD], components)


def test_a_damaged_file_is_refused_in_a_sentence(model, tmp_path):
    header, arrays = model.to_archive()
    header["rearrangements"][0]["gain"] = "much"
    write_archive(tmp_path / "model.isde", model.archive_kind, header, arrays)
    with pytest.raises(InputError, match="no rearrangement"):
        isde.load(tmp_path / "model.isde")


def test_parts_of_the_rows_are_rearranged_too(model, monkeypatch):
    found, whole = [], rearranging.rearranged
    monkeypatch.setattr("isde.tree_estimator.rearranged", lambda *a, **kw: found.append(whole(*a, **kw)) or found[-1])
    met = model.stability(clusters(2300), n=2, n_null=1, share=0.9, random_state=0)
    assert [one.columns for part in found[:2] for one in part.rearrangements] == [tuple(range(7))] * 2
    assert found[2].rearrangements == ()
    assert {tree for tree, _ in met.trees} == {part.selection.tree for part in found[:2]}


def test_parts_that_are_too_few_rows_are_said_to_be(model):
    with pytest.warns(ISDEWarning, match=r"parts of 1,150 rows are too few \(2,000 it takes\).*; share=0.87 would do"):
        model.stability(clusters(2300), n=2, n_null=0, random_state=0)


def test_readers_are_told(model, tmp_path):
    [said] = [sentence for sentence in notes(model) if "rearranged" in sentence]
    assert f"{model.rearrangements_[0].gain:.3g} +-" in said
    np.save(tmp_path / "rows.npy", clusters())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ISDEWarning)
        result = CliRunner().invoke(
            main,
            ["fit", str(tmp_path / "rows.npy"), "--structure", "tree", "-k", "3", "--seed", "0", "--json", "--quiet"],
        )
    assert result.exit_code == 0, result.output
    [one] = json.loads(result.stdout)["rearrangements"]
    assert one["is_taken"]
    assert one["gain"] == model.rearrangements_[0].gain
    assert one["columns"] == list(model.subset_scores_.names)
