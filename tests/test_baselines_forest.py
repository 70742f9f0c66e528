"""FDE: the heaviest forest, a density along it, and the held-out version of Liu et al."""

import networkx as nx
import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

from isde import ISDE, ForestDensity, SubsetScores, fit_blocks
from isde.baselines.forest import Forest, heaviest_forest, mutual_information, pair_gains, plug_in_bandwidths
from isde.errors import InputError
from isde.marginals.tree import TreeBlock
from isde.scoring import Scoring
from isde.synthetic import make_structured
from oracles import QUADRATURE, ROUNDING, kde_log_density


@pytest.fixture
def chain(rng):
    """Column 2 follows column 1, which follows column 0; column 3 stands alone."""
    a = rng.normal(size=250)
    b = a + 0.3 * rng.normal(size=250)
    c = b + 0.3 * rng.normal(size=250)
    return np.column_stack([a, b, c, rng.normal(size=250)])


def rescaled(X):
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


# --- the forest ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_forest_is_networkxs(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 15))
    weights = rng.normal(loc=rng.uniform(-1, 1), size=(d, d))
    weights = weights + weights.T
    graph = nx.Graph()
    graph.add_nodes_from(range(d))
    graph.add_weighted_edges_from((i, j, weights[i, j]) for i in range(d) for j in range(i) if weights[i, j] > 0)
    expected = nx.maximum_spanning_tree(graph)
    forest = heaviest_forest(weights)
    assert {frozenset(edge) for edge in forest.edges} == {frozenset(edge) for edge in expected.edges}
    assert forest.weights == tuple(weights[i, j] for i, j in forest.edges)
    assert list(forest.weights) == sorted(forest.weights, reverse=True)
    assert all(i < j for i, j in forest.edges)
    assert {frozenset(tree) for tree in forest.trees} == {frozenset(c) for c in nx.connected_components(expected)}
    assert nx.is_forest(nx.from_scipy_sparse_array(forest.graph))


def test_pairs_without_a_gain_get_no_edge():
    forest = heaviest_forest(np.array([[0, 0, -1], [0, 0, -2], [-1, -2, 0.0]]))
    assert forest.edges == ()
    assert forest.trees == ((0,), (1,), (2,))


def test_a_tree_is_rooted_at_its_heaviest_edge_and_no_child_comes_before_its_parent():
    forest = Forest(7, ((3, 5), (1, 3), (0, 1), (4, 5), (2, 6)), (5.0, 4.0, 3.0, 2.0, 1.0))
    edges = forest.rooted((0, 1, 3, 4, 5))
    assert edges[0] == (3, 5)
    assert sorted(tuple(sorted(edge)) for edge in edges) == [(0, 1), (1, 3), (3, 5), (4, 5)]
    reached = {3}
    for parent, child in edges:
        assert parent in reached
        reached.add(child)
    assert forest.rooted((2, 6)) == [(2, 6)]


def test_the_weights_are_gains_of_the_score_table(chain):
    model = ForestDensity(random_state=0).fit(chain)
    assert model.forest_.weights == tuple(model.subset_scores_.gain(edge) for edge in model.edges_)
    assert model.subset_scores_.max_block_size == 2
    assert set(model.edges_[:2]) == {(0, 1), (1, 2)}
    assert max(model.forest_.weights[2:], default=0) < 0.05
    assert model.partition_ == model.forest_.trees


def test_the_table_is_isdes_and_a_table_given_is_not_scored_again(chain, monkeypatch):
    isde = ISDE(4, marginal="kde", split="paper", random_state=0).fit(chain)
    scored = ForestDensity(random_state=0).fit(chain)
    np.testing.assert_array_equal(scored.subset_scores_.scores, isde.subset_scores_.restrict(2).scores)
    monkeypatch.setattr(Scoring, "score", lambda *_, **__: pytest.fail("a subset was scored"))
    given = ForestDensity(random_state=1).fit(chain, subset_scores=isde.subset_scores_)
    assert given.forest_ == scored.forest_
    np.testing.assert_array_equal(given.score_samples(chain), scored.score_samples(chain))
    with pytest.raises(ValueError, match="table has 4 columns, X has 3"):
        ForestDensity().fit(chain[:, :3], subset_scores=isde.subset_scores_)


def test_a_table_of_single_columns_has_no_edges_and_one_without_a_score_is_refused(chain):
    singles = SubsetScores.from_dict({(c,): 0.0 for c in range(4)})
    assert ForestDensity().fit(chain, subset_scores=singles).edges_ == ()
    with pytest.raises(InputError, match=r"score of {x1} is -inf"):
        pair_gains(SubsetScores.from_dict({(0,): 0.0, (1,): -np.inf, (0, 1): 1.0}))


def test_pairwise_independent_columns_get_no_edge():
    """The paper: on [3, 3, 3] FDE finds no edge, however the columns depend jointly."""
    X, _ = make_structured([3, 3], 800, random_state=0)
    model = ForestDensity(random_state=0).fit(X)
    assert max(model.forest_.weights, default=0) < 0.02


# --- the density -----------------------------------------------------------------------------------------------

TREES = {"path": [[1, 2], [1, 0]], "star": [[0, 2], [0, 1]], "line": [[0, 1], [1, 2]]}


@pytest.mark.parametrize("edges", TREES.values(), ids=TREES)
def test_a_tree_on_a_few_atoms_integrates_to_one(edges):
    """Five centres and bandwidths that differ from pair to pair, summed over a grid."""
    centres = np.random.default_rng(0).uniform(size=(5, 3))
    h = np.array([[0.12, 0.2], [0.17, 0.1]])
    grid = np.linspace(-1, 2, 76)
    cube = np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)
    cell = (grid[1] - grid[0]) ** 3
    tree = TreeBlock(centres, np.array(edges), h, h[:, 0])
    assert np.exp(tree.score_samples(cube)).sum() * cell == pytest.approx(1, abs=QUADRATURE)
    paper = TreeBlock(centres, np.array(edges), h, np.array([0.12, 0.14]))
    assert abs(np.exp(paper.score_samples(cube)).sum() * cell - 1) > 1e-3


def test_the_papers_product_can_grow_without_bound():
    """A column with two pairs whose own bandwidth is much smaller than theirs: its density falls faster than theirs."""
    centres = np.random.default_rng(0).uniform(size=(5, 3))
    edges, h = np.array([[0, 1], [0, 2]]), np.full((2, 2), 0.2)
    far = np.array([[0.5, 0.5, 0.5], [1e3, 0.5, 0.5]])
    paper = TreeBlock(centres, edges, h, np.array([0.1, 0.1])).score_samples(far)
    ours = TreeBlock(centres, edges, h, h[:, 0]).score_samples(far)
    assert paper[1] > 1e6 > 0 > ours[1]


def test_the_density_is_the_heaviest_pair_and_conditionals(chain):
    table = SubsetScores.from_dict({**{(c,): 0.0 for c in range(4)}, (0, 1): 1.0, (1, 2): 2.0, (0, 2): 0.5})
    model = ForestDensity().fit(chain, subset_scores=table)
    assert model.edges_ == ((1, 2), (0, 1))
    assert model.block_names_ == (("x0", "x1", "x2"), ("x3",))
    U, shift = rescaled(chain), -np.log(np.ptp(chain, axis=0)).sum()
    heaviest, other = model.edges_
    h = {
        subset: fit_blocks(U[:, list(subset)], [range(len(subset))], "kde").bandwidths[0]
        for subset in (heaviest, other)
    }
    expected = kde_log_density(U[:, heaviest], U[:, heaviest], h[heaviest])
    expected += kde_log_density(U[:, other], U[:, other], h[other])
    expected -= kde_log_density(U[:, [1]], U[:, [1]], h[other])
    expected += fit_blocks(U[:, [3]], [[0]], "kde").score_samples(U[:, [3]])
    np.testing.assert_allclose(model.score_samples(chain), expected + shift, rtol=0, atol=ROUNDING)


def test_without_normalising_it_is_the_papers_product(chain):
    model = ForestDensity(normalize=False, random_state=0).fit(chain)
    alone = {c: fit_blocks(chain[:, [c]], [[0]], "kde").score_samples(chain[:, [c]]) for c in range(4)}
    expected = sum(alone.values())
    for i, j in model.edges_:
        expected = expected + fit_blocks(chain[:, [i, j]], [[0, 1]], "kde").score_samples(chain[:, [i, j]])
        expected = expected - alone[i] - alone[j]
    np.testing.assert_allclose(model.score_samples(chain), expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("normalize", [True, False])
def test_trees_of_one_pair_are_isdes_blocks(normalize):
    """The paper: for [2, 2, 1], ISDE and FDE give the same density."""
    X, truth = make_structured([2, 2, 1], 400, random_state=0)
    model = ForestDensity(normalize=normalize, random_state=0).fit(X)
    assert model.partition_ == truth
    np.testing.assert_allclose(
        model.score_samples(X), fit_blocks(X, truth, "kde").score_samples(X), rtol=0, atol=ROUNDING
    )


def test_a_child_is_drawn_given_its_parent():
    """Far apart atoms: whatever the parent's atom is, the children stand at the same one."""
    centres = np.array([[0.0, 0.0, 0.0], [5.0, -5.0, 10.0], [-5.0, 5.0, -10.0]])
    h = np.full((2, 2), 0.1)
    rows = TreeBlock(centres, np.array([[1, 2], [2, 0]]), h, h[:, 0]).sample(3000, np.random.RandomState(0))
    nearest = np.abs(rows[:, None, :] - centres).argmin(axis=1)
    assert (nearest == nearest[:, :1]).all()
    np.testing.assert_allclose(np.bincount(nearest[:, 0]) / 3000, 1 / 3, atol=0.05)
    np.testing.assert_allclose((rows - centres[nearest[:, 0]]).std(axis=0), 0.1, atol=0.01)


@pytest.mark.parametrize(
    "change",
    [
        {"edges": np.array([[0, 1], [0, 1]])},
        {"edges": np.array([[0, 1], [2, 1]])},
        {"edges": np.array([[0, 1], [2, 2]])},
        {"edges": np.array([[0, 1], [1, 5]])},
        {"edges": np.array([[0, 1]])},
        {"pair_bandwidths": -np.ones((2, 2))},
        {"parent_bandwidths": np.ones(3)},
        {"centres": np.full((4, 3), np.nan)},
    ],
)
def test_arrays_that_are_no_tree_are_refused(change):
    arrays = {
        "centres": np.zeros((4, 3)),
        "edges": np.array([[0, 1], [1, 2]]),
        "pair_bandwidths": np.ones((2, 2)),
        "parent_bandwidths": np.ones(2),
    }
    assert TreeBlock.from_arrays(arrays).n_columns == 3
    with pytest.raises(ValueError, match=r"tree|must hold|has the shape"):
        TreeBlock.from_arrays(arrays | change)


# --- the version of Liu et al. ---------------------------------------------------------------------------------


def test_plug_in_bandwidths_are_the_normal_reference_rule(rng):
    U = rng.normal(size=(729, 2)) * [1.0, 3.0]
    U[:10, 1] = 1000.0  # outliers: the quartiles do not see them
    h = plug_in_bandwidths(U)
    assert h[0] == pytest.approx(1.06 * min(U[:, 0].std(), np.subtract(*np.quantile(U[:, 0], [0.75, 0.25])) / 1.34) / 3)
    assert h[1] == pytest.approx(1.06 * 3 / 3, rel=0.15)
    assert (plug_in_bandwidths(np.repeat([[0.0], [1.0]], [90, 10], axis=0)) > 0).all()


def test_mutual_information_of_gaussian_columns(rng):
    """-log(1 - rho^2) / 2, rho smaller by what the kernels add to the variances."""
    n, rho = 4000, 0.8
    U = rng.multivariate_normal([0, 0, 0], [[1, rho, 0], [rho, 1, 0], [0, 0, 1]], size=n)
    h = plug_in_bandwidths(U)
    information = mutual_information(U, h)
    smoothed = rho / np.sqrt((1 + h[0] ** 2) * (1 + h[1] ** 2))
    assert information[0, 1] == pytest.approx(-np.log(1 - smoothed**2) / 2, abs=0.03)
    assert 0 <= information[0, 2] < 0.02
    np.testing.assert_array_equal(information, information.T)


def test_the_plug_in_version_is_a_tree_cut_back_by_held_out_rows(chain):
    model = ForestDensity(bandwidths="plug-in", random_state=3).fit(chain)
    U = rescaled(chain)
    ((fit, held_out),) = ShuffleSplit(1, train_size=0.5, random_state=3).split(U)
    h = plug_in_bandwidths(U[fit])
    tree = heaviest_forest(mutual_information(U[fit], h))
    assert len(tree.edges) == 3

    def score(columns):
        c = list(columns)
        return kde_log_density(U[held_out][:, c] / h[c], U[fit][:, c] / h[c], 1.0).mean() - np.log(h[c]).sum()

    gains = [score(edge) - score(edge[:1]) - score(edge[1:]) for edge in tree.edges]
    totals = [sum(gains[:k]) for k in range(4)]
    assert model.edges_ == tree.edges[: totals.index(max(totals))]
    assert set(model.edges_) == {(0, 1), (1, 2)}
    assert model.subset_scores_ is None


def test_the_plug_in_density_has_one_bandwidth_for_each_column(chain):
    """Pairs and columns then fit together: the product is the same, normalised or not."""
    ours = ForestDensity(bandwidths="plug-in", random_state=0).fit(chain)
    paper = ForestDensity(bandwidths="plug-in", normalize=False, random_state=0).fit(chain)
    np.testing.assert_array_equal(ours.score_samples(chain), paper.score_samples(chain))
    U, h = rescaled(chain), plug_in_bandwidths(rescaled(chain))

    def log_density(columns):
        c = list(columns)
        return kde_log_density(U[:, c] / h[c], U[:, c] / h[c], 1.0) - np.log(h[c]).sum()

    expected = sum(log_density([c]) for c in range(4)) - np.log(np.ptp(chain, axis=0)).sum()
    for i, j in ours.edges_:
        expected = expected + log_density([i, j]) - log_density([i]) - log_density([j])
    np.testing.assert_allclose(ours.score_samples(chain), expected, rtol=0, atol=ROUNDING)


def test_the_plug_in_version_needs_one_split_unless_it_is_given_scores(chain):
    model = ForestDensity(bandwidths="plug-in", split=KFold(3))
    with pytest.raises(ValueError, match="3 splits"):
        model.fit(chain)
    scores = ForestDensity(random_state=0).fit(chain).subset_scores_
    assert model.fit(chain, subset_scores=scores).edges_ == heaviest_forest(pair_gains(scores)).edges
