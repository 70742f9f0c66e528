"""The density of a tree of blocks: it is one, and can be drawn from, conditioned and marginalised along the tree."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp, kstest, multivariate_normal, norm
from sklearn.neighbors import KernelDensity

import isde
import oracles
from isde import fit_blocks
from isde.errors import InputError
from isde.marginals import MARGINAL_NAMES, resolve_marginal
from isde.tree_density import TreeDensity, check_has_marginals, fit_tree
from isde.trees import tree_of_edges
from oracles import QUADRATURE, ROUNDING

CHAIN = [(0, 1), (1, 2)]
WIDE = [0.12, 0.24]
"""Bandwidths that a grid of forty points resolves."""


@pytest.fixture(name="X")
def three_columns():
    """A column, its square with noise, and one that leans on the square; in units far from [0, 1]."""
    rng = np.random.default_rng(0)
    t = rng.normal(size=90)
    bent = t**2 + 0.4 * rng.normal(size=90)
    return np.column_stack([50 + 10 * t, 0.002 * bent, -3 + 0.5 * bent + 0.3 * rng.normal(size=90)])


def midpoints(column, n, margin):
    width = np.ptp(column)
    edges = np.linspace(column.min() - margin * width, column.max() + margin * width, n + 1)
    return (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]


def on_the_unit_cube(X):
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


# --- it is a density -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", ["kde", "gaussian", "stack"])
def test_the_density_of_a_chain_integrates_to_one(marginal):
    X = np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=1)  # plain, so that no part of a stack is narrow
    density = fit_tree(X, CHAIN, marginal, bandwidths=WIDE)
    axes = [midpoints(column, 64, 1.0) for column in X.T]
    grid = np.column_stack([m.ravel() for m in np.meshgrid(*(points for points, _ in axes))])
    cell = np.prod([length for _, length in axes])
    assert np.exp(density.score_samples(grid)).sum() * cell == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("marginal", MARGINAL_NAMES)
def test_a_clique_given_what_it_shares_integrates_to_one(X, marginal):
    density = fit_tree(X, CHAIN, marginal)
    points, length = midpoints(X[:, 2], 20_000, 9.0 if "gaussian" in marginal else 1.0)
    bends = 10 * QUADRATURE if "copula" in marginal else QUADRATURE  # at the knots of splines
    for row in X[:3]:
        rows = np.tile(row, (len(points), 1))
        rows[:, 2] = points
        assert np.exp(density.score_blocks(rows)[:, 1]).sum() * length == pytest.approx(1, abs=bends)


def test_a_clique_is_divided_by_the_marginal_of_its_own_kernel_density(X):
    density = fit_tree(X, CHAIN, "kde")
    U, log_range, h = on_the_unit_cube(X), np.log(np.ptp(X, axis=0)), density.bandwidths
    first = oracles.kde_log_density(U[:, :2], U[:, :2], h[0]) - log_range[:2].sum()
    second = (
        oracles.kde_log_density(U[:, 1:], U[:, 1:], h[1])
        - oracles.kde_log_density(U[:, [1]], U[:, [1]], h[1])
        - log_range[2]
    )
    np.testing.assert_allclose(density.score_blocks(X), np.column_stack([first, second]), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("marginal", MARGINAL_NAMES)
def test_without_separators_it_is_the_product_to_the_bit(X, marginal):
    tree, product = fit_tree(X, [(0, 1), (2,)], marginal), fit_blocks(X, [(0, 1), (2,)], marginal)
    np.testing.assert_array_equal(tree.score_blocks(X), product.score_blocks(X))
    np.testing.assert_array_equal(tree.sample(5, random_state=0), product.sample(5, random_state=0))
    np.testing.assert_array_equal(tree.bandwidths, product.bandwidths)
    assert tree.partition == product.partition


def test_the_columns_of_score_blocks_add_up(X):
    density = fit_tree(X, CHAIN, "gaussian")
    assert density.score_blocks(X).shape == (90, 2)
    np.testing.assert_allclose(density.score_blocks(X).sum(axis=1), density.score_samples(X), rtol=0, atol=ROUNDING)
    assert density.score(X) == pytest.approx(density.score_samples(X).mean(), abs=ROUNDING)


@pytest.mark.parametrize("marginal", ["kde", "gaussian", "copula+stack"])
@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("value", [1e9, 1e160, 1e307])
def test_however_far_a_row_is_its_value_is_a_very_low_number(X, marginal, column, value):
    far = X[:2].copy()
    far[0, column] = value
    values = fit_tree(X, CHAIN, marginal).score_samples(far)
    assert np.isfinite(values).all()
    assert values[0] < -20
    assert values[1] > -100


# --- Gaussians: the density with that Markov structure is known in closed form -----------------------------------


def markov_gaussian(X, tree):
    """The Gaussian of most likelihood whose precision is zero off the graph of the tree (Lauritzen, 5.21)."""
    covariance = np.cov(X.T, ddof=0)
    precision = np.zeros_like(covariance)
    for columns, sign in tree.terms:
        precision[np.ix_(columns, columns)] += sign * np.linalg.inv(covariance[np.ix_(columns, columns)])
    return multivariate_normal(X.mean(axis=0), np.linalg.inv(precision))


@st.composite
def chordal_graphs(draw, n_columns=6):
    """Edges of a graph that grows column by column, each joined to some of a clique that is there."""
    edges = []
    for column in range(1, n_columns):
        first = draw(st.integers(0, column - 1))
        clique = [first]
        for other in range(column):
            if other != first and all((min(other, c), max(other, c)) in edges for c in clique) and draw(st.booleans()):
                clique.append(other)
        if draw(st.integers(0, 4)):
            edges += [(c, column) for c in clique]
    return edges


def gaussian_rows(n_columns, n=200):
    rng = np.random.default_rng(n_columns)
    return rng.normal(size=(n, n_columns)) @ rng.normal(size=(n_columns, n_columns)) + rng.normal(size=n_columns)


@given(chordal_graphs())
def test_gaussian_cliques_make_the_gaussian_with_the_markov_structure(edges):
    X, tree = gaussian_rows(6), tree_of_edges(6, edges)
    density = fit_tree(X, tree.cliques, "gaussian")
    assert density.tree == tree
    expected = markov_gaussian(X, tree).logpdf(X)
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=0, atol=1e-7)


@given(chordal_graphs(), st.permutations(range(6)), st.integers(1, 6))
def test_gaussian_marginals_are_those_of_the_whole_or_refused_with_what_is_missing(edges, order, n):
    X, columns = gaussian_rows(6), list(order[:n])
    density = fit_tree(X, tree_of_edges(6, edges).cliques, "gaussian")
    whole = markov_gaussian(X, density.tree)
    try:
        part = density.marginal(columns)
    except InputError as error:
        missing = [c for c in range(6) if f"'x{c}'" in str(error) and c not in columns]
        assert missing
        part, columns = density.marginal([*columns, *missing]), [*columns, *missing]
    expected = multivariate_normal(whole.mean[columns], whole.cov[np.ix_(columns, columns)])
    np.testing.assert_allclose(part.score_samples(X[:, columns]), expected.logpdf(X[:, columns]), rtol=0, atol=1e-7)
    assert part.names == tuple(f"x{c}" for c in columns)
    given = density.score_given(X, columns)
    np.testing.assert_allclose(given, whole.logpdf(X) - expected.logpdf(X[:, columns]), rtol=0, atol=1e-7)


@given(chordal_graphs(), st.data())
def test_which_clique_comes_first_does_not_matter_where_cliques_agree(edges, data):
    X = gaussian_rows(6)
    density = fit_tree(X, tree_of_edges(6, edges).cliques, "gaussian")
    clique = data.draw(st.sampled_from(density.tree.cliques))
    other = density.rooted_at(clique)
    assert other.tree.cliques[0] == clique
    assert sorted(other.tree.cliques) == sorted(density.tree.cliques)
    assert other.tree.separators == density.tree.separators
    np.testing.assert_allclose(other.score_samples(X), density.score_samples(X), rtol=0, atol=1e-7)
    other.marginal(clique)  # now it has one


def test_where_cliques_disagree_the_first_one_matters(X):
    density = fit_tree(X, CHAIN, "kde")
    assert density.rooted_at([1, 2]).score(X) != pytest.approx(density.score(X), abs=1e-6)


# --- rows drawn ------------------------------------------------------------------------------------------------


def test_gaussian_rows_have_the_moments_of_the_markov_structure():
    X, tree, n = gaussian_rows(4), tree_of_edges(4, [(0, 1), (0, 2), (1, 2), (2, 3)]), 20_000
    whole = markov_gaussian(X, tree)
    drawn = fit_tree(X, tree.cliques, "gaussian").sample(n, random_state=0)
    white = np.linalg.solve(np.linalg.cholesky(whole.cov), (drawn - whole.mean).T)
    assert all(kstest(column, "norm").statistic < 2.2 / np.sqrt(n) for column in white)
    np.testing.assert_allclose(np.cov(white), np.eye(4), rtol=0, atol=5 * np.sqrt(2 / n))


def test_a_column_drawn_along_the_tree_follows_its_conditional_kernel_density(X):
    n, density = 4000, fit_tree(X, CHAIN, "kde")
    drawn, h, low, width = density.sample(n, random_state=0), density.bandwidths[1], X.min(axis=0), np.ptp(X, axis=0)
    U, V = on_the_unit_cube(X), (drawn - low) / width
    weights = norm.pdf((V[:, [1]] - U[:, 1]) / h)
    uniform = (weights * norm.cdf((V[:, [2]] - U[:, 2]) / h)).sum(axis=1) / weights.sum(axis=1)
    assert kstest(uniform, "uniform").statistic < 2.2 / np.sqrt(n)


@pytest.mark.parametrize("marginal", ["kde", "stack", "copula+stack", "gaussian"])
def test_rows_drawn_score_like_the_data(marginal):
    rng, n = np.random.default_rng(1), 2000

    def rows():
        t = rng.normal(size=n)
        u = t + rng.normal(size=n)
        return np.column_stack([t, u, u + rng.normal(size=n)])

    density = fit_tree(rows()[:800], CHAIN, marginal)
    drawn, fresh = density.score_samples(density.sample(n, random_state=0)), density.score_samples(rows())
    assert ks_2samp(drawn, fresh).statistic < 0.08  # a fit on 800 rows; two samples of one law differ by 0.06


def test_rows_drawn_given_a_clique_keep_it_and_follow_the_rest(X):
    n, density = 4000, fit_tree(X, CHAIN, "kde")
    given = np.tile(X[0, [1]], (n, 1))
    drawn = density.sample_given([1], given, random_state=0)
    np.testing.assert_array_equal(drawn[:, [1]], given)
    # Of all rows drawn, given the second column, those of the first by its clique's density, of the third by its own.
    U, V, h = on_the_unit_cube(X), (drawn - X.min(axis=0)) / np.ptp(X, axis=0), density.bandwidths
    for column, bandwidth in ((0, h[0]), (2, h[1])):
        weights = norm.pdf((V[0, 1] - U[:, 1]) / bandwidth)
        uniform = norm.cdf((V[:, [column]] - U[:, column]) / bandwidth) @ weights / weights.sum()
        assert kstest(uniform, "uniform").statistic < 2.2 / np.sqrt(n)


def test_drawing_follows_the_seed(X):
    density = fit_tree(X, CHAIN, "kde")
    np.testing.assert_array_equal(density.sample(5, random_state=3), density.sample(5, random_state=3))
    assert (density.sample(5, random_state=3) != density.sample(5, random_state=4)).all()
    with pytest.raises(ValueError, match="n_samples=0"):
        density.sample(0)


# --- part of the columns -----------------------------------------------------------------------------------------


def test_a_marginal_is_the_integral_over_the_columns_left_out(X):
    density = fit_tree(X, CHAIN, "kde")
    points, length = midpoints(X[:, 2], 3000, 2.0)
    for row in X[:3]:
        rows = np.tile(row, (len(points), 1))
        rows[:, 2] = points
        integral = np.exp(density.score_samples(rows)).sum() * length
        assert density.marginal([0, 1]).score_samples(row[None, :2])[0] == pytest.approx(np.log(integral), abs=1e-6)
        first, length0 = midpoints(X[:, 0], 3000, 2.0)
        rows = np.column_stack([first, np.full(3000, row[1]), np.full(3000, row[2])])
        integral = np.exp(density.score_samples(rows)).sum() * length0
        found = density.marginal([2, 1]).score_samples(row[None, [2, 1]])[0]
        assert found == pytest.approx(np.log(integral), abs=1e-6)


def test_a_product_has_every_marginal(X):
    density = fit_blocks(X, [(0, 2), (1,)], "kde")
    part = density.marginal([2, 1])
    assert part.partition == ((0,), (1,))
    U, h = on_the_unit_cube(X), density.bandwidths
    expected = oracles.kde_log_density(U[:, [2]], U[:, [2]], h[0]) + oracles.kde_log_density(U[:, [1]], U[:, [1]], h[1])
    expected -= np.log(np.ptp(X, axis=0))[1:].sum()
    np.testing.assert_allclose(part.score_samples(X[:, [2, 1]]), expected, rtol=0, atol=ROUNDING)


def test_a_column_in_the_middle_cannot_be_left_out(X):
    density = fit_tree(pd.DataFrame(X, columns=["a", "b", "c"]), CHAIN, "gaussian")
    for ask in (density.marginal, lambda columns: density.score_given(X, columns)):
        with pytest.raises(InputError, match="density of 'c', 'a' alone has no closed form: their cliques hang on 'b'"):
            ask(["c", "a"])
    with pytest.raises(InputError, match="hang on 'b'"):
        density.sample_given(["c"], X[:, [2]])
    assert density.rooted_at(["c", "b"]).marginal(["c"]).names == ("c",)
    with pytest.raises(InputError, match="No clique holds 'a', 'c' together"):
        density.rooted_at(["a", "c"])


@pytest.mark.parametrize("column", [3, -1])
def test_no_clique_comes_first_for_a_column_that_is_not_there(X, column):
    with pytest.raises(InputError, match=rf"There is no column {column}: columns are numbered 0 to 2\."):
        fit_tree(X, CHAIN, "gaussian").rooted_at([0, column])


@pytest.mark.parametrize("values", [np.ones(3), np.ones((2, 2)), np.empty((0, 1)), [[np.nan]]], ids=str)
def test_values_that_do_not_fit_the_columns_are_refused(X, values):
    with pytest.raises(ValueError, match="values"):
        fit_tree(X, CHAIN, "gaussian").sample_given([0], values)


@pytest.mark.parametrize(("columns", "complaint"), [(["e"], "no column 'e'"), ([0, 0], "twice"), ([7], "0 to 2")])
def test_columns_that_are_not_there_are_refused(X, columns, complaint):
    with pytest.raises(ValueError, match=complaint):
        fit_tree(X, CHAIN, "gaussian").marginal(columns)


# --- input -------------------------------------------------------------------------------------------------------


def test_cliques_can_be_given_by_names_in_any_order(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    one, other = fit_tree(frame, [("c", "b"), ("b", "a")], "gaussian"), fit_tree(X, CHAIN, "gaussian")
    assert one.tree == other.tree
    np.testing.assert_array_equal(one.score_samples(frame), other.score_samples(X))


@pytest.mark.parametrize(
    ("cliques", "complaint"),
    [
        ([(0, 1)], "No clique holds 'x2'"),
        ([(0, 1), (1, 2), (2,)], "maximal cliques are"),
        ([(0, 1), (1, 2), (0, 2)], "maximal cliques are"),
        ([(0, 1), (1, 2, 3)], "columns 0 to 2"),
        ([("a", 1), (2,)], "no column 'a'"),
    ],
)
def test_what_is_no_tree_of_the_columns_is_refused(X, cliques, complaint):
    with pytest.raises(ValueError, match=complaint):
        fit_tree(X, cliques, "gaussian")


class Untouched(KernelDensity):
    """Raises when it is fitted."""

    def fit(self, X, y=None, sample_weight=None):
        raise AssertionError("something was fitted")


@pytest.mark.parametrize("marginal", [Untouched(), ["gaussian", Untouched()]], ids=["alone", "in a list"])
def test_a_family_without_marginals_is_refused_by_name_before_anything_is_fitted(X, marginal):
    with pytest.raises(InputError, match="isde knows none of Untouched: use 'copula\\+stack'"):
        fit_tree(X, CHAIN, marginal)


def test_a_family_without_marginals_will_do_where_nothing_is_shared(X):
    density = fit_tree(X, [(0, 1), (2,)], KernelDensity(bandwidth=0.5), scale=None)
    assert np.isfinite(density.score_samples(X)).all()


@pytest.mark.parametrize("name", MARGINAL_NAMES)
def test_every_family_by_name_can_stand_in_a_tree(X, name):
    check_has_marginals(resolve_marginal(name))
    for block in fit_tree(X, CHAIN, name).blocks:
        assert block.marginal([0]).n_columns == 1


# --- on disk -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", MARGINAL_NAMES)
def test_a_saved_density_is_the_same_to_the_bit(X, marginal, tmp_path):
    density = fit_tree(X, CHAIN, marginal)
    density.save(tmp_path / "tree.isde")
    again = isde.load(tmp_path / "tree.isde")
    assert isinstance(again, TreeDensity)
    assert (again.tree, again.names) == (density.tree, density.names)
    np.testing.assert_array_equal(again.score_blocks(X), density.score_blocks(X))
    np.testing.assert_array_equal(again.sample(4, random_state=0), density.sample(4, random_state=0))


def test_part_of_a_tree_can_be_saved_too(X, tmp_path):
    part = fit_tree(X, CHAIN, "kde").marginal([2, 1])
    part.save(tmp_path / "part.isde")
    np.testing.assert_array_equal(
        isde.load(tmp_path / "part.isde").score_samples(X[:, [2, 1]]), part.score_samples(X[:, [2, 1]])
    )


@pytest.mark.parametrize(
    ("cliques", "parents"),
    [
        ([[0, 1], [1, 2]], [-1, -1]),
        ([[0, 1], [1, 2]], [-1, 1]),
        ([[0, 1], [1, 2]], [-1, -2]),
        ([[0, 1], [1, 2]], [-1]),
        ([[0, 1], [2, 1]], [-1, 0]),
        ([[0, 1], [1, 3]], [-1, 0]),
    ],
    ids=str,
)
def test_a_file_whose_cliques_do_not_hang_together_is_refused(X, tmp_path, cliques, parents):
    path = tmp_path / "tree.isde"
    fit_tree(X, CHAIN, "gaussian").save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    top = json.loads(members["header.json"])
    top["content"]["parents"] = parents
    for entry, clique in zip(top["content"]["blocks"], cliques, strict=True):
        entry["columns"] = clique
    members["header.json"] = json.dumps(top).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match="damaged"):
        isde.load(path)
